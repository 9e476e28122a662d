"""Prepares the arguments of a check for a run on a temporary journal, which is then the same as tonight's run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from sqlalchemy import Engine

from metaharvest.config.settings import Settings
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.harvest.limits import CheckLimits, RunLimits
from metaharvest.model import Network
from metaharvest.publishing.contents import FolderOptions
from metaharvest.rehearsal import given_sites
from metaharvest.rehearsal.dry_run import Rehearsal, rehearsal
from metaharvest.rehearsal.given_sites import GivenSite
from metaharvest.rehearsal.input.arguments import Arguments, read_arguments
from metaharvest.rehearsal.input.source import Copies
from metaharvest.sources.lookup import SourceFor, source_for
from metaharvest.targets.base import Target

LIMITS = RunLimits(check=CheckLimits(small=100_000))
"""A person waits: a few documents of the usual sizes do not start worker processes."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of a check.

    `site_name`: as this registered site; `against`: compared with this target, see `Targets.named`; `allow_networks`:
    private addresses that may be asked. `copies` keeps fetched documents for another use. `standard_input` is read for
    an argument `-`. `folders`: how folders are read. After `stop` is set, nothing new begins.
    """

    site_name: str | None = None
    against: str | None = None
    allow_networks: tuple[Network, ...] = ()
    copies: Copies | None = None
    standard_input: BinaryIO | None = None
    folders: FolderOptions = field(default_factory=FolderOptions)
    stop: StopSignal | None = None


@dataclass(frozen=True, slots=True)
class GivenRun:
    """The ingredients of a run: the rehearsal, the sites, the arguments, the copies, and the source of each site."""

    scratch: Rehearsal
    sites: tuple[GivenSite, ...]
    arguments: Arguments
    copies: Copies
    source: SourceFor


def needs_database(settings: Settings, how: CheckOptions) -> bool:
    """True if the values for the comparison are in the harvester's own database."""
    kinds = {"target": settings.target.kind, "embedded": "embedded"}
    kinds |= {name: target.kind for name, target in settings.targets.items()}
    return how.against is not None and kinds.get(how.against) == "embedded"


def asks_nobody(settings: Settings, how: CheckOptions) -> bool:
    """True if the check uses neither the database nor the targets of these settings.

    A settings file that was merely found in the working folder may be another person's, and it decides who gets which
    secret. A person who names the file, or the target, allows it.
    """
    return settings.is_found and how.against is None and not settings.is_local


def _without_programs(settings: Settings) -> Settings:
    """The settings without templates and report files, so that a stranger's settings file touches no other file.

    Templates are programs, and a check needs neither.
    """
    reports = settings.reports.model_copy(update={"templates": None, "admin": "mail"})
    changes: dict[str, object] = {"reports": reports}
    if settings.is_found:
        changes["http"] = settings.http.model_copy(update={"proxy_password": ""})
    return settings.model_copy(update=changes)


@contextmanager
def prepared(
    settings: Settings,
    target: Target | None,
    engine: Engine | None,
    own_source: SourceFor | None,
    arguments: Sequence[str],
    how: CheckOptions,
) -> Iterator[GivenRun]:
    """Prepare all parts of a check of these arguments.

    `target` and `own_source` replace the ones of the settings and of sites; `engine`: the database, if there is one.
    Raises CannotBeChecked, ScheduleError, SettingsError and DatabaseUnavailable: see `enter` and `rehearsal`.
    """
    settings = _without_programs(settings)
    http = settings.http
    http = http.model_copy(update={"allow_networks": (*http.allow_networks, *how.allow_networks)})
    settings = settings.model_copy(update={"http": http})
    with rehearsal(settings, target, engine, how.against) as scratch:
        copies = how.copies or Copies(scratch.folder)
        registered = given_sites.registered_lists(scratch)

        def stays_url(url: str) -> bool:
            return how.site_name is not None or url in registered

        read = read_arguments(arguments, copies.folder, stays_url, how.standard_input, how.folders)
        administrator = next(iter(settings.harvester.administrators), "")
        sites = given_sites.enter(
            scratch, read.given, how.site_name, administrator, is_compared=how.against is not None
        )
        source = given_sites.source_of(sites, copies, own_source or source_for)
        yield GivenRun(scratch, tuple(sites), read, copies, source)
