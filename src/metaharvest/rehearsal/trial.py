"""Prepares the rehearsal of a source that a stranger names: within narrow bounds, apart from the installation.

It uses the checks, the proxy and the certificates of the installation, but no database and no target. It reads private
networks only if the settings open them for strangers: the rights of a registered site with the same name do not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import islice
from math import inf
from pathlib import Path

from metaharvest.config.files import read_file
from metaharvest.config.settings import DatabaseSettings, Settings
from metaharvest.config.target_settings import TargetSettings
from metaharvest.database.engine import writers
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.health import server_of
from metaharvest.harvest.limits import CheckLimits, RunLimits
from metaharvest.model import ListedDocument, ListVersion, Site
from metaharvest.model.values import frozen
from metaharvest.rehearsal.check import GivenRun, GivenSite
from metaharvest.rehearsal.dry_run import rehearsal
from metaharvest.rehearsal.input.arguments import Arguments, GivenUrl
from metaharvest.rehearsal.input.source import Copies, GivenSource
from metaharvest.sites.registry import add_site
from metaharvest.sites.rows import usable_contacts
from metaharvest.sources.base import Listing, PagedSource, Source
from metaharvest.sources.lookup import source_for
from metaharvest.validation import wellformed

LIMITS = RunLimits(check=CheckLimits(few=0, small=0))
"""Worker processes check all documents of strangers: a worker can be ended."""

MOST_DOCUMENTS = 50
MOST_OTHER_SERVERS = 2
"""Documents that are fetched, and servers beside the server of the list."""

_SECONDS = 40
_DOCUMENT_SECONDS = 15
_LIST_SECONDS = 30
_MB = 1_048_576
_DOCUMENTS_WITH_CONTACTS = 10
_MOST_CONTACTS = 5


def bounded(settings: Settings) -> Settings:
    """The settings for a stranger's request: times and sizes of a page that a person waits for, and no targets."""
    http = settings.http
    least = {
        "connect_timeout": 5, "read_timeout": 10, "document_deadline": _DOCUMENT_SECONDS,
        "list_deadline": _LIST_SECONDS, "max_document_bytes": 20 * _MB, "max_list_bytes": 20 * _MB,
        "max_run_bytes": 100 * _MB, "retries": 0, "retry_wait": 0, "retry_wait_limit": 0, "connections_per_host": 2,
    }  # fmt: skip
    changes: dict[str, object] = {name: min(value, getattr(http, name)) for name, value in least.items()}
    harvester = {"run_deadline": _SECONDS, "site_deadline": _SECONDS, "workers": min(8, settings.harvester.workers)}
    changes["allow_networks"] = http.door_networks
    checks = settings.validation
    return settings.model_copy(
        update={
            "http": http.model_copy(update=changes),
            "harvester": settings.harvester.model_copy(update=harvester),
            "validation": checks.model_copy(update={"time_limit": min(checks.time_limit or 10, 10)}),
            "reports": settings.reports.model_copy(update={"templates": None, "admin": "mail"}),
            "database": DatabaseSettings(),
            "target": TargetSettings(kind="none"),
            "targets": {},
            "sites": {},
        }
    )


@frozen
class Trial:
    """A prepared rehearsal; `left_out` has the number of documents that it does not fetch, once it has run."""

    given: GivenRun
    left_out: list[int]


@contextmanager
def prepared(settings: Settings, columns: Mapping[str, object]) -> Iterator[Trial]:
    """Prepare the rehearsal of one source as a site with these columns. Raises ScheduleError for a wrong column.

    A document in the place of a list is accepted: the result says so.
    """
    with rehearsal(bounded(settings), None, None) as scratch:
        with writers(scratch.engine).begin() as session:
            site = add_site(session, {"contact_email": "nobody@example.org", "notify": "never", **columns})
        given = GivenUrl(site.list_url, site.list_url)
        copies, left_out = Copies(scratch.folder), [0]

        def source(site: Site, fetcher: Fetcher) -> Source | PagedSource:
            if site.options.oai is not None:
                return source_for(site, fetcher)
            return _FirstDocuments(given, site, fetcher, copies, left_out)

        sites = (GivenSite(site.name, given),)
        yield Trial(GivenRun(scratch, sites, Arguments((given,)), copies, source), left_out)


def contacts_in(files: Iterable[Path]) -> tuple[str, ...]:
    """The email addresses of the contacts of these documents, as far as they are EML: a few, of the first documents."""
    found: dict[str, None] = {}
    for path in islice(files, _DOCUMENTS_WITH_CONTACTS):
        with suppress(OSError, wellformed.NotReadable):
            root = wellformed.root_of(read_file(path, _MB))
            named = root.findall("*/contact/electronicMailAddress")[:_MOST_CONTACTS]
            found |= dict.fromkeys(usable_contacts(", ".join(each.text or "" for each in named)))
    return tuple(found)[:_MOST_CONTACTS]


class _FirstDocuments(GivenSource):
    """The first documents of a list, on few servers: no list can direct requests at many servers."""

    def __init__(self, given: GivenUrl, site: Site, fetcher: Fetcher, copies: Copies, left_out: list[int]) -> None:
        super().__init__(given, site, fetcher, copies)
        self._server = server_of(given.url)
        self._others: set[str] = set()
        self._left_out = left_out

    async def list_documents(self, known: ListVersion | None, seconds: float = inf) -> Listing:
        """The first documents; see Source. The list is checked as a whole."""
        listing = await super().list_documents(known, seconds)
        return replace(listing, documents=self._first(listing.documents or iter(())))

    def _first(self, documents: Iterator[ListedDocument]) -> Iterator[ListedDocument]:
        number = 0
        for document in documents:
            if number < MOST_DOCUMENTS and self._is_near(document):
                number += 1
                yield document
            else:
                self._left_out[0] += 1

    def _is_near(self, document: ListedDocument) -> bool:
        """True for the server of the list, and a few others."""
        server = server_of(document.url)
        if server != self._server and len(self._others) < MOST_OTHER_SERVERS:
            self._others.add(server)
        return server == self._server or server in self._others
