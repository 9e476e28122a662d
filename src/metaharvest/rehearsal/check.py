"""Prepares the arguments of a check for a run on a temporary journal, which is then the same as tonight's run.

Each list, and all documents without a list, become a site of the rehearsal. A list whose URL is registered belongs to
that site, with all its values. Other lists get sites that are deleted with the rehearsal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import chain, count
from pathlib import Path
from typing import BinaryIO

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.engine import readers, writers
from metaharvest.errors import CannotBeChecked
from metaharvest.fetch.client import Fetcher
from metaharvest.harvest.deadlines import StopSignal
from metaharvest.harvest.limits import CheckLimits, RunLimits
from metaharvest.model import Network, Notify, Site
from metaharvest.model.values import frozen
from metaharvest.publishing.contents import FolderOptions
from metaharvest.rehearsal.dry_run import Compared, Rehearsal, rehearsal
from metaharvest.rehearsal.input.arguments import Arguments, Given, GivenDocuments, GivenList, GivenUrl, read_arguments
from metaharvest.rehearsal.input.source import Copies, GivenSource
from metaharvest.sites.registry import add_site, edit_site, find_site, read_sites
from metaharvest.sites.rows import HARVEST_LIST, BrokenSite, check_list_url
from metaharvest.sources.base import PagedSource, Source
from metaharvest.sources.lookup import SourceFor, source_for
from metaharvest.targets.base import Target
from metaharvest.text import shown_url

_LONGEST_NAME = 80

_UNREPORTED = {"notify": Notify.NEVER.value}
"""Findings are reported in other ways: a mail of a rehearsal has no reader."""


LIMITS = RunLimits(check=CheckLimits(small=100_000))
"""A person waits: a few documents of the usual sizes do not start worker processes."""


@frozen
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


@frozen
class GivenSite:
    """The list or documents that are harvested as the site `name`. `registered`: the real site, if there is one."""

    name: str
    given: Given
    registered: Site | BrokenSite | None = None


@frozen
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
    Raises CannotBeChecked, ScheduleError, SettingsError and DatabaseUnavailable: see `rehearsal`.
    """
    settings = _without_programs(settings)
    networks = (*settings.http.allow_networks, *how.allow_networks)
    settings = settings.model_copy(update={"http": settings.http.model_copy(update={"allow_networks": networks})})
    with rehearsal(settings, target, engine, how.against) as scratch:
        copies = how.copies or Copies(scratch.folder)
        with readers(scratch.engine)() as session:
            registered = {site.list_url for site in read_sites(session)}

        def stays_url(url: str) -> bool:
            return how.site_name is not None or url in registered

        read = read_arguments(arguments, copies.folder, stays_url, how.standard_input, how.folders)
        administrator = next(iter(settings.harvester.administrators), "")
        sites = _enter(scratch, read.given, how, administrator)
        source = _source_of(sites, copies, own_source or source_for)
        yield GivenRun(scratch, sites, read, copies, source)


def _enter(scratch: Rehearsal, given: Sequence[Given], how: CheckOptions, administrator: str) -> tuple[GivenSite, ...]:
    """The sites for these lists and documents, enabled in the schedule of the rehearsal.

    A list belongs to the site of the options; without one, to the site with this list URL; without one, to a new site.
    Raises CannotBeChecked, and ScheduleError for an unknown name.
    """
    if how.site_name is not None and (len(given) > 1 or isinstance(given[0], GivenDocuments)):
        raise CannotBeChecked("One harvest list can be rehearsed as a registered site: give its URL, or its file.")
    entered: list[GivenSite] = []
    with writers(scratch.engine).begin() as session:
        for each in given:
            site = _enter_one(session, each, how.site_name, administrator)
            entered.append(site)
            if site.registered is None and how.against is not None:
                scratch.compared[site.name] = Compared.AS_NOBODY
            elif isinstance(each, GivenDocuments):
                scratch.compared[site.name] = Compared.NOT
    return tuple(entered)


def _enter_one(session: Session, given: Given, site_name: str | None, administrator: str) -> GivenSite:
    url = _list_url(given)
    sites = read_sites(session)
    of_this_url = (site.name for site in sites if isinstance(site, Site) and site.list_url == url)
    name = site_name or next(of_this_url, None)
    if name is not None:
        before = find_site(session, name)
        moved = {"documentlisturl": url} if isinstance(given, GivenUrl) else {}
        return GivenSite(edit_site(session, name, {"enabled": True, **_UNREPORTED, **moved}).name, given, before)
    new = {
        "name": _unused_name(given, {site.name for site in sites}),
        "documentlisturl": url,
        "contact_email": administrator or "contact@localhost.localdomain",
        **_UNREPORTED,
    }
    return GivenSite(add_site(session, new).name, given)


def _list_url(given: Given) -> str:
    if isinstance(given, GivenList):
        return given.file.url
    if isinstance(given, GivenDocuments):
        return given.files[0].url
    try:
        return check_list_url(given.url)
    except ValueError as error:
        raise CannotBeChecked(f"{error}.".replace("the list URL", "The URL", 1)) from None


def _unused_name(given: Given, used: set[str]) -> str:
    if isinstance(given, GivenUrl):
        name = shown_url(given.url).partition("://")[2].partition("/")[0]
    else:
        name = Path(given.shown).name or given.shown
    name = (
        "".join(c for c in " ".join(name.split()) if c.isprintable() and c != "\ufffd")[:_LONGEST_NAME].strip()
        or "rehearsal"
    )
    others = (f"{name} ({number})" for number in count(2))
    return next(each for each in chain([name], others) if each not in used)


def _source_of(sites: Iterable[GivenSite], copies: Copies, own: SourceFor) -> SourceFor:
    """The source of each of these sites; for a registered site without a harvest list, its `own`."""
    by_name = {site.name: site for site in sites}

    def source(site: Site, fetcher: Fetcher) -> Source | PagedSource:
        given = by_name[site.name]
        if site.source_kind != HARVEST_LIST and isinstance(given.given, GivenUrl):
            return own(site, fetcher)
        return GivenSource(given.given, site, fetcher, copies, is_site=given.registered is not None)

    return source
