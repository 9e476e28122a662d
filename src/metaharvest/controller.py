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
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from metaharvest import ledger, reports
from metaharvest.database.engine import database_errors, readers, require_current, run_lock, writers
from metaharvest.documents import (
    Batch,
    Progress,
    Tools,
    harvest_documents,
    ledger_batches,
    retry_batches,
    staged_batches,
)
from metaharvest.due import is_due
from metaharvest.errors import DatabaseError, FetchError, ListError, RunLost, ScheduleError
from metaharvest.journal import Clock, Journal, SiteRun
from metaharvest.records import RunStatus, Site, SiteRunKind
from metaharvest.register import BrokenSite, read_sites
from metaharvest.settings import Settings
from metaharvest.sources import Listing, Source, source_for
from metaharvest.staging import Staging
from metaharvest.targets import Target

if TYPE_CHECKING:
    from metaharvest.fetch import Fetcher
    from metaharvest.validation import Validator

log = logging.getLogger(__name__)

SourceFor = Callable[["Site", "Fetcher"], Source]

SITES_AT_ONCE = 32
"""Sites under way side by side; what they may ask for together is bounded by harvester.workers."""


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
    stop: threading.Event | None = None,
) -> Ended:
    """Harvest every site that is due or has documents to retry, or those that are asked for.

    Raises LockHeld where another run is under way, ScheduleError for a name that is not registered or switched off,
    DatabaseError, RunLost. What a site does wrong never raises. Once `stop` is set, what is under way is finished, the
    rest is put off, and the run ends as ever.
    """
    require_current(engine)
    with run_lock(engine) as lock:
        sites = _read_schedule(engine)
        _check_names(sites, request.names)
        journal = Journal(engine, settings, target, clock, request.today, lock)
        interrupted = journal.open_run()
        with database_errors(engine), readers(engine)() as session:
            waiting = ledger.sites_to_retry(session, request.today)
        chosen = list(choose(sites, request, waiting, interrupted))
        if chosen:
            names = {site.site_id: site.name for site in sites}
            with _workshop(settings) as (fetcher, validator, workers, checkers):
                stop = stop or threading.Event()
                tools = Tools(
                    settings, journal, target, validator, workers, checkers, progress, clock, names, waiting, stop
                )
                _harvest_all(chosen, source, fetcher, tools)
        with database_errors(engine):
            to_sites = reports.deliver(writers(engine), settings, clock())
        journal.report_run()
        status = journal.close_run()
        with database_errors(engine):
            to_all = reports.deliver(writers(engine), settings, clock())
    undelivered = journal.reports_not_made + to_sites.refused + to_all.refused + to_all.waiting
    return Ended(journal.run_id, status, undelivered)


def choose(
    sites: Collection[Site | BrokenSite],
    request: Request,
    waiting: Collection[int],
    interrupted: Mapping[int, SiteRunKind],
) -> Iterator[tuple[Site | BrokenSite, SiteRunKind]]:
    """The sites that this run harvests, and why: named, due, left unfinished, or with documents to retry. Pure.

    A broken row cannot say when it is due: it is told every time, until it is mended or switched off.
    """
    for site in sites:
        if request.names:
            if site.name in request.names:
                yield site, SiteRunKind.NAMED
        elif not site.enabled:
            continue
        elif request.force or _is_due(site, request.today):
            yield site, SiteRunKind.SCHEDULED
        elif site.site_id in interrupted:
            yield site, interrupted[site.site_id]
        elif site.site_id in waiting:
            yield site, SiteRunKind.RETRY


def harvest_site(site: Site, kind: SiteRunKind, source: Source, tools: Tools) -> bool:
    """One site's part of the run: list its documents, bring each to its outcome, close with totals and a report.

    False where its list could not be read.
    """
    journal = tools.journal
    site_run = journal.open_site_run(site, kind)
    try:
        with Staging() as staged:
            try:
                listing = _listing(site_run, source, journal)
                if listing.documents is not None:
                    staged.fill(listing.documents)
            except FetchError as error:
                journal.list_failed(site_run, "GetHarvestListError", error.findings)
                return False
            except ListError as error:
                journal.list_failed(site_run, "ValidateHarvestListError", error.findings)
                return False
            batches = _batches(site_run, listing, staged, tools)
            tally = harvest_documents(site_run, batches, source, tools)
        journal.close_site_run(site_run, tally.listed, tally.unchanged, listing.version)
    except (DatabaseError, RunLost):
        raise
    except Exception as error:
        log.exception("The harvest of %s failed", site.name)
        journal.site_failed(site_run, error)
    return True


def _harvest_all(
    chosen: Iterable[tuple[Site | BrokenSite, SiteRunKind]], source: SourceFor, fetcher: Fetcher, tools: Tools
) -> None:
    """Harvest the sites side by side; the first that meets the end of the run ends it for all."""
    with ThreadPoolExecutor(SITES_AT_ONCE, thread_name_prefix="site") as threads:
        under_way = [threads.submit(_harvest_one, site, kind, source, fetcher, tools) for site, kind in chosen]
        try:
            for future in as_completed(under_way):
                future.result()
        except BaseException:
            tools.stop.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _harvest_one(site: Site | BrokenSite, kind: SiteRunKind, source: SourceFor, fetcher: Fetcher, tools: Tools) -> None:
    if tools.stop.is_set():
        return
    if isinstance(site, BrokenSite):
        tools.journal.site_broken(site, kind)
        return
    tools.progress.site_began(site.name)
    list_was_read = harvest_site(site, kind, source(site, fetcher), tools)
    if not list_was_read and site.site_id in tools.waiting:
        # What failed in passing is owed another try whatever became of the list.
        harvest_site(site, SiteRunKind.RETRY, source(site, fetcher), tools)
    tools.progress.site_ended(site.name)


def _is_due(site: Site | BrokenSite, today: date) -> bool:
    return isinstance(site, BrokenSite) or is_due(site, today)


def _listing(site_run: SiteRun, source: Source, journal: Journal) -> Listing:
    """What the site lists; for a retry, what the ledger says to try again."""
    if site_run.kind is SiteRunKind.RETRY:
        return Listing(journal.to_retry(site_run.site))
    return source.list_documents(journal.known_list(site_run.site))


def _batches(site_run: SiteRun, listing: Listing, staged: Staging, tools: Tools) -> Iterator[Batch]:
    """The listed documents, a thousand at a time: from the list that was read, or, as it is unchanged, the ledger."""
    journal, site = tools.journal, site_run.site
    unchanged = listing.documents is None
    listed = journal.number_known(site) if unchanged else staged.count
    if site_run.kind is not SiteRunKind.RETRY:
        journal.list_read(site_run, listed, unchanged)
    tools.progress.documents_listed(site.name, listed)
    if site_run.kind is SiteRunKind.RETRY:
        return retry_batches(site_run, staged, journal)
    return ledger_batches(site_run, journal) if unchanged else staged_batches(site_run, staged, journal)


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


@contextmanager
def _workshop(settings: Settings) -> Iterator[tuple[Fetcher, Validator, Executor, Executor]]:
    """The client, the validator and the threads of a run, imported only here: a night with nothing due needs none."""
    from metaharvest.fetch import Fetcher
    from metaharvest.validation import Validator

    ca_file, administrators = settings.http.ca_file, settings.harvester.administrators
    http = settings.http.model_copy(update={"ca_file": settings.path(ca_file) if ca_file else None})
    with (
        Fetcher(http, name=settings.harvester.name, administrator=next(iter(administrators), None)) as fetcher,
        ThreadPoolExecutor(settings.harvester.workers, thread_name_prefix="document") as workers,
        ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="check") as checkers,
    ):
        yield fetcher, Validator(settings.validation), workers, checkers
