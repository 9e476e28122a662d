"""The context for the harvest of a site, made once a run, and the progress of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.engine import database_errors, readers
from metaharvest.harvest.deadlines import Deadlines
from metaharvest.harvest.origin_turns import OriginTurns, Turn
from metaharvest.harvest.site_target import RunTargets, SiteTarget
from metaharvest.harvest.tasks import in_thread
from metaharvest.journal.journal import Clock, Journal
from metaharvest.journal.log_rows import LogRow
from metaharvest.model import SameOrigin, Site, SiteRun, SiteRunKind
from metaharvest.model.requests import LivePhase
from metaharvest.model.values import frozen
from metaharvest.sites.rows import BrokenSite
from metaharvest.sources.base import DocumentSource
from metaharvest.validation.processing_policy import ProcessingPolicy

if TYPE_CHECKING:
    from metaharvest.fetch.client import Fetcher
    from metaharvest.harvest.checks.checker import Checker

Answer = TypeVar("Answer")


class Progress:
    """Receives the progress of a run. This class ignores it; the command line's class shows it."""

    def site_began(self, name: str) -> None:
        """A site's harvest began."""

    def documents_listed(self, name: str, listed: int) -> None:
        """The site's list was read."""

    def documents_ended(self, name: str, number: int) -> None:
        """`number` more documents have their outcome."""

    def document_failed(self, name: str) -> None:
        """A document has an outcome that is an error."""

    def site_closes(self, name: str) -> None:
        """All documents of the site have their outcomes; its totals and its report are made."""

    def site_ended(self, name: str) -> None:
        """The site's harvest ended."""

    def in_phase(self, name: str, phase: LivePhase) -> AbstractContextManager[None]:
        """A context in which a document of the site is in this phase."""
        return nullcontext()


READERS_AT_ONCE = 2
"""Lists and ledgers that are read at a time. Python runs one thread of a process at a time, and switches threads at
each row from SQLite: with eight of them, a quiet night takes a fifth longer.
"""

READING_TURN_SECONDS = 5.0
"""A list that takes longer to read gives up its turn: it does not hold up the lists of other sites."""


@frozen
class RunContext:
    """The context for the harvest of a site; `deadlines` include the site's own.

    `site_names` are the names of the registered sites by id. `same_origin` are the other sites of the site's origin,
    among which it has its `turn`. Sites `to_retry` have documents to try again, sites `to_look_at` have documents whose
    spot check is due. `batch`: see RunLimits. `full`: source repositories list all of their records.
    `used_seconds`: the part of its deadline that each site has used so far. `policy`: how the site's
    documents are filtered, normalised and checked. `reading_turns` are for work that takes the processor.
    """

    settings: Settings
    engine: Engine
    journal: Journal
    targets: RunTargets
    fetcher: Fetcher
    checker: Checker
    progress: Progress
    clock: Clock
    site_names: Mapping[int, str]
    to_retry: Collection[int]
    deadlines: Deadlines
    batch: int
    to_look_at: Collection[int] = ()
    full: bool = False
    used_seconds: MutableMapping[int, float] = field(default_factory=dict)
    policy: ProcessingPolicy = field(default_factory=ProcessingPolicy)
    same_origin: SameOrigin = field(default_factory=SameOrigin)
    turn: Turn = field(default_factory=lambda: Turn(OriginTurns(1)))
    reading_turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(READERS_AT_ONCE))

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A short session for reading, in any thread. Raises DatabaseError."""
        with database_errors(self.engine), readers(self.engine)() as session:
            yield session


Chosen = tuple[Site | BrokenSite, SiteRunKind]
"""A site to harvest, or to report as broken, and why."""


@frozen
class Group:
    """The chosen sites of one origin for a worker; all registered `sites`, and the sites with documents `to_retry`.

    `full`: the sites whose source repositories list all of their records. `used_seconds`: the part of its deadline that
    each site has used in earlier slices; the harvest adds its own time.
    """

    chosen: Sequence[Chosen]
    sites: Collection[Site | BrokenSite]
    to_retry: Collection[int]
    full: frozenset[int]
    used_seconds: MutableMapping[int, float]


@frozen
class SiteHarvest:
    """One site's part of a run: its site run, its source, its target, and the context of the run."""

    site_run: SiteRun
    source: DocumentSource
    target: SiteTarget
    ctx: RunContext

    @property
    def site(self) -> Site:
        """The site."""
        return self.site_run.site

    async def read(self, question: Callable[[Session], Answer]) -> Answer:
        """Ask the database, in a thread. Raises DatabaseError."""

        def read() -> Answer:
            with self.ctx.reading() as session:
                return question(session)

        return await in_thread(read)

    async def write(self, write: Callable[[Session], Iterable[LogRow]]) -> None:
        """Have the writer call `write` and log the rows that it returns, after all earlier requests."""
        await self.ctx.journal.write(self.site_run, write)


def by_origin(chosen: Sequence[Chosen], origins: Mapping[int, frozenset[int]]) -> Iterable[list[Chosen]]:
    """The sites of each origin together, in the order of the first of each."""
    groups: dict[frozenset[int], list[Chosen]] = {}
    for site, kind in chosen:
        groups.setdefault(origins.get(site.site_id, frozenset({site.site_id})), []).append((site, kind))
    return groups.values()


def host_of(site: Site | BrokenSite) -> str:
    """The host of a site's list; without one, a name of the site's own."""
    try:
        host = None if isinstance(site, BrokenSite) else urlsplit(site.list_url).hostname
    except ValueError:
        host = None
    return host.rstrip(".") if host else f"site {site.site_id}"
