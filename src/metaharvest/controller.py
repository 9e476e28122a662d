"""The story: one run, from the schedule to the report in the inbox. A newcomer starts reading here.

run_once()                     harvest_site()                  documents.harvest_documents()
----------                     --------------                  -----------------------------
take the run lock              open the site run               ask the target what it holds
open the run                   list the site's documents       decide: insert, update, unchanged, ...
read the schedule              check and stage all of them     fetch
for each site that is due,     harvest_documents()             check
  or has documents to retry:   close: totals that balance,     insert or update
    harvest_site()               next date, report             log the outcome
composite report
close the run, purge, deliver
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date

from sqlalchemy import Engine

from metaharvest import ledger, reports
from metaharvest.database.engine import database_errors, readers, require_current, run_lock, writers
from metaharvest.documents import Progress, Tools, harvest_documents
from metaharvest.due import is_due
from metaharvest.errors import DatabaseError, FetchError, ListError, RunLost, ScheduleError
from metaharvest.fetch import Fetcher
from metaharvest.journal import Clock, Journal, SiteRun
from metaharvest.records import ListedDocument, RunStatus, Site, SiteRunKind
from metaharvest.register import BrokenSite, read_sites
from metaharvest.settings import Settings
from metaharvest.sources import Source, source_for
from metaharvest.staging import Staging
from metaharvest.targets import Target
from metaharvest.validation import Validator

log = logging.getLogger(__name__)

SourceFor = Callable[[Site, Fetcher], Source]


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a run: the day to take for today; sites by name, due or not; or all enabled ones."""

    today: date
    names: tuple[str, ...] = ()
    force: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its number, its status, and how many reports could not be handed over."""

    run_id: int
    status: RunStatus
    undelivered: int


def run_once(
    settings: Settings,
    engine: Engine,
    target: Target,
    request: Request,
    clock: Clock,
    progress: Progress,
    source: SourceFor = source_for,
) -> Ended:
    """Harvest every site that is due or has documents to retry, or those that are asked for.

    Raises LockHeld where another run is under way, ScheduleError for a name that is not registered or switched off,
    DatabaseError, RunLost. What a site does wrong never raises.
    """
    require_current(engine)
    with run_lock(engine):
        sites = _read_schedule(engine)
        _check_names(sites, request.names)
        journal = Journal(engine, settings, target, clock, request.today)
        interrupted = journal.open_run()
        with database_errors(engine), readers(engine)() as session:
            waiting = ledger.sites_to_retry(session, request.today)
        with (
            _fetcher(settings) as fetcher,
            ThreadPoolExecutor(settings.harvester.workers, thread_name_prefix="document") as workers,
        ):
            names = {site.site_id: site.name for site in sites}
            validator = Validator(settings.validation)
            tools = Tools(settings, journal, target, validator, workers, progress, clock, names)
            for site, kind in choose(sites, request, waiting, interrupted):
                _harvest_or_fail(site, kind, source, fetcher, tools)
        reports.deliver(writers(engine), settings, clock())
        journal.report_run()
        status = journal.close_run()
        delivered = reports.deliver(writers(engine), settings, clock())
    return Ended(journal.run_id, status, delivered.waiting + delivered.refused)


def choose(
    sites: Collection[Site | BrokenSite], request: Request, waiting: Collection[int], interrupted: Collection[int]
) -> Iterator[tuple[Site | BrokenSite, SiteRunKind]]:
    """The sites that this run harvests, and why: named, due, left unfinished, or with documents to retry. Pure.

    A broken row cannot say when it is due: it is told every time, until it is mended or switched off.
    """
    for site in sites:
        if request.names:
            if site.name in request.names:
                yield site, SiteRunKind.NAMED
        elif site.enabled and (request.force or _is_due(site, request.today) or site.site_id in interrupted):
            yield site, SiteRunKind.SCHEDULED
        elif site.enabled and site.site_id in waiting:
            yield site, SiteRunKind.RETRY


def harvest_site(site: Site, kind: SiteRunKind, source: Source, tools: Tools) -> None:
    """One site's part of the run: list its documents, bring each to its outcome, close with totals and a report."""
    journal = tools.journal
    site_run = journal.open_site_run(site, kind)
    try:
        with Staging() as staged:
            try:
                staged.fill(_listed(site_run, source, journal))
            except FetchError as error:
                journal.list_failed(site_run, "GetHarvestListError", error.findings)
                return
            except ListError as error:
                journal.list_failed(site_run, "ValidateHarvestListError", error.findings)
                return
            if kind is not SiteRunKind.RETRY:
                journal.list_read(site_run, staged.count)
            tools.progress.documents_listed(site.name, staged.count)
            tally = harvest_documents(site_run, staged, source, tools)
        journal.close_site_run(site_run, tally.listed, tally.unchanged)
    except (DatabaseError, RunLost):
        raise
    except Exception as error:
        log.exception("The harvest of %s failed", site.name)
        journal.site_failed(site_run, error)


def _harvest_or_fail(
    site: Site | BrokenSite, kind: SiteRunKind, source: SourceFor, fetcher: Fetcher, tools: Tools
) -> None:
    if isinstance(site, BrokenSite):
        tools.journal.site_broken(site)
        return
    tools.progress.site_began(site.name)
    harvest_site(site, kind, source(site, fetcher), tools)
    tools.progress.site_ended(site.name)


def _is_due(site: Site | BrokenSite, today: date) -> bool:
    return isinstance(site, BrokenSite) or is_due(site, today)


def _listed(site_run: SiteRun, source: Source, journal: Journal) -> Iterator[ListedDocument]:
    """What the site lists; for a retry, what the ledger says to try again."""
    if site_run.kind is SiteRunKind.RETRY:
        return journal.to_retry(site_run.site)
    return source.list_documents()


def _read_schedule(engine: Engine) -> list[Site | BrokenSite]:
    with database_errors(engine), readers(engine)() as session:
        return read_sites(session)


def _check_names(sites: Collection[Site | BrokenSite], names: Collection[str]) -> None:
    for name in names:
        site = next((site for site in sites if site.name == name), None)
        if site is None:
            known = ", ".join(site.name for site in sites) or "none yet"
            raise ScheduleError(f"There is no site named '{name}'. Registered are: {known}.")
        if not site.enabled:
            raise ScheduleError(f"The site {name} is switched off; `metaharvest sites enable '{name}'` switches it on.")


def _fetcher(settings: Settings) -> Fetcher:
    ca_file = settings.http.ca_file
    http = settings.http.model_copy(update={"ca_file": settings.path(ca_file) if ca_file else None})
    administrators = settings.harvester.administrators
    return Fetcher(http, name=settings.harvester.name, administrator=administrators[0] if administrators else None)
