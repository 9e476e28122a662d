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
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from metaharvest import reports
from metaharvest.config.settings import HttpSettings, Settings
from metaharvest.database.engine import database_errors, readers, require_current, run_lock, writers
from metaharvest.errors import DatabaseError, FetchError, ListError, RunLost, ScheduleError
from metaharvest.fetch.backoff import in_tries
from metaharvest.harvest.deadlines import Ending
from metaharvest.harvest.documents import (
    Batch,
    Progress,
    RunContext,
    harvest_documents,
    harvest_unchanged,
    retry_batches,
    staged_batches,
)
from metaharvest.harvest.staging import BATCH, Staging
from metaharvest.journal import totals
from metaharvest.journal.journal import Clock, Journal, SiteRun
from metaharvest.journal.outcomes import is_no_room
from metaharvest.model import ListedDocument, RunStatus, Site, SiteRunKind, SiteRunStatus
from metaharvest.sites import ledger
from metaharvest.sites.due import due_since, is_due
from metaharvest.sites.registry import BrokenSite, read_sites
from metaharvest.sources.base import Listing, Source, source_for
from metaharvest.targets.base import Target

if TYPE_CHECKING:
    from metaharvest.fetch.client import Fetcher
    from metaharvest.validation import Validator

log = logging.getLogger(__name__)

SourceFor = Callable[["Site", "Fetcher"], Source]

SITES_AT_ONCE = 32
"""Sites under way side by side; what they may ask for together is bounded by harvester.workers."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What is asked of a run: the day to take for today; sites by name, due or not; or all enabled ones."""

    today: date
    names: tuple[str, ...] = ()
    force: bool = False


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended: its number, its status, and how many deliveries could not be made.

    `cut_short` says what was left undone, where a signal or the run's deadline ended it; it is empty otherwise.
    """

    run_id: int
    status: RunStatus
    undelivered: int
    cut_short: str = ""


def run_once(
    settings: Settings,
    engine: Engine,
    target: Target,
    request: RunRequest,
    clock: Clock,
    progress: Progress,
    source: SourceFor = source_for,
    stop: threading.Event | None = None,
) -> RunResult:
    """Harvest every site that is due or has documents to retry, or those that are asked for.

    Raises SettingsError for what the settings name and cannot be used, LockHeld where another run is under way,
    ScheduleError for a name that is not registered or switched off, DatabaseError, RunLost. What a site does wrong
    never raises. Once `stop` is set, or the run's deadline has passed, what is under way is finished, the rest is put
    off, and the run ends as ever.
    """
    http = settings.network_policy()
    require_current(engine)
    turn = reports.Turn(clock(), request.today)
    ending = Ending(stop or threading.Event()).after_run(settings.harvester.run_deadline)
    with run_lock(engine) as lock:
        sites = _read_schedule(engine)
        _check_names(sites, request.names)
        journal = Journal(engine, settings, target, clock, request.today, lock)
        interrupted = journal.open_run()
        with database_errors(engine), readers(engine)() as session:
            waiting = ledger.sites_to_retry(session, request.today)
            finished = totals.finished_before(session, journal.run_id, request.today)
        # The longest due first: should there be no time for all, it is not the same ones that go without every night.
        chosen = sorted(choose(sites, request, waiting, interrupted, finished), key=lambda each: _due_since(each[0]))
        cut_short = ""
        if chosen:
            names = {site.site_id: site.name for site in sites}
            with _workshop(settings, http) as (fetcher, validator, workers):
                tools = RunContext(
                    settings, journal, target, validator, workers, progress, clock, names, waiting, ending
                )
                not_begun = _harvest_all(chosen, source, fetcher, tools)
            if why := ending.cut_short():
                cut_short = journal.cut_short(why, not_begun)
            # Mail is nothing that could be taken back: who has lost the lock leaves it to the run that has it.
            journal.require_ours()
        with database_errors(engine):
            to_sites = reports.deliver(writers(engine), settings, clock(), turn)
        journal.report_run()
        status = journal.close_run()
        with database_errors(engine):
            to_all = reports.deliver(writers(engine), settings, clock(), turn)
    undelivered = journal.reports_not_made + to_sites.refused + to_all.refused + to_all.waiting
    return RunResult(journal.run_id, status, undelivered, cut_short)


def choose(
    sites: Collection[Site | BrokenSite],
    request: RunRequest,
    waiting: Collection[int],
    interrupted: Mapping[int, SiteRunKind],
    finished: Mapping[int, SiteRunStatus],
) -> Iterator[tuple[Site | BrokenSite, SiteRunKind]]:
    """The sites that this run harvests, and why: named, due, left unfinished, or with documents to retry. Pure.

    A broken row cannot say when it is due: it is told every time, until it is mended or switched off. What a run that
    was broken off had `finished` today is not done again by the one that goes on with it, nor told again.
    """
    for site in sites:
        if request.names:
            if site.name in request.names:
                yield site, SiteRunKind.NAMED
        elif not site.enabled:
            continue
        elif request.force:
            yield site, SiteRunKind.SCHEDULED
        elif site.site_id in finished:
            if site.site_id in interrupted:
                yield site, interrupted[site.site_id]
            elif finished[site.site_id] is SiteRunStatus.LIST_FAILED and site.site_id in waiting:
                yield site, SiteRunKind.RETRY
        elif _is_due(site, request.today):
            yield site, SiteRunKind.SCHEDULED
        elif site.site_id in interrupted:
            yield site, interrupted[site.site_id]
        elif site.site_id in waiting:
            yield site, SiteRunKind.RETRY


def harvest_site(site: Site, kind: SiteRunKind, source: Source, tools: RunContext) -> bool:
    """One site's part of the run: list its documents, bring each to its outcome, close with totals and a report.

    Where there is no time left for that, the list is not read, or the rest of the documents put off.

    False where its list could not be read.
    """
    journal = tools.journal
    site_run = journal.open_site_run(site, kind)
    try:
        with Staging() as staged:
            try:
                listing = _listing(site_run, source, tools)
                if listing.documents is not None:
                    staged.fill(_in_time(listing.documents, tools.ending))
            except FetchError as error:
                journal.list_failed(site_run, "GetHarvestListError", error.findings)
                return False
            except ListError as error:
                journal.list_failed(site_run, "ValidateHarvestListError", error.findings)
                return False
            _note_list(site_run, listing, staged.count, tools)
            if listing.documents is None:
                tally = harvest_unchanged(site_run, source, tools)
            else:
                tally = harvest_documents(site_run, _batches(site_run, staged, journal), source, tools)
        journal.close_site_run(site_run, tally.listed, tally.unchanged, listing.version)
    except (DatabaseError, RunLost):
        raise
    except Exception as error:
        if not is_no_room(error):
            log.exception("The harvest of %s failed", site.name)
        journal.site_failed(site_run, error)
    return True


def _harvest_all(
    chosen: Iterable[tuple[Site | BrokenSite, SiteRunKind]], source: SourceFor, fetcher: Fetcher, tools: RunContext
) -> list[str]:
    """Harvest the sites side by side; the names of those that were not begun, as there was no time left.

    The first that meets the loss of the run ends it for all.
    """
    with ThreadPoolExecutor(SITES_AT_ONCE, thread_name_prefix="site") as threads:
        under_way = {
            threads.submit(_harvest_one, site, kind, source, fetcher, tools): site.name for site, kind in chosen
        }
        try:
            begun = {future: future.result() for future in as_completed(under_way)}
            return [name for future, name in under_way.items() if not begun[future]]
        except BaseException:
            tools.journal.abandon()
            tools.ending.stop.set()
            threads.shutdown(wait=False, cancel_futures=True)
            raise


def _harvest_one(
    site: Site | BrokenSite, kind: SiteRunKind, source: SourceFor, fetcher: Fetcher, tools: RunContext
) -> bool:
    """Harvest this site, by its own deadline; False where it was not even begun.

    A surprise costs this site alone: what it leaves open, the next run takes up.
    """
    if tools.ending.why():
        return False
    try:
        _begin(site, kind, source, fetcher, tools)
    except (DatabaseError, RunLost):
        raise
    except Exception as error:
        log.exception("The harvest of %s failed", site.name)
        tools.journal.site_met_unexpected_error(site, kind, error)
    return True


def _begin(site: Site | BrokenSite, kind: SiteRunKind, source: SourceFor, fetcher: Fetcher, tools: RunContext) -> None:
    if isinstance(site, BrokenSite):
        tools.journal.site_broken(site, kind)
        return
    tools = replace(tools, ending=tools.ending.after_site(tools.settings.harvester.site_deadline))
    tools.progress.site_began(site.name)
    site = tools.settings.furnished(site)
    list_was_read = harvest_site(site, kind, source(site, fetcher), tools)
    if not list_was_read and site.site_id in tools.waiting and not tools.ending.why():
        # What failed transiently is owed another try whatever became of the list.
        harvest_site(site, SiteRunKind.RETRY, source(site, fetcher), tools)
    tools.progress.site_ended(site.name)


def _is_due(site: Site | BrokenSite, today: date) -> bool:
    return isinstance(site, BrokenSite) or is_due(site, today)


def _due_since(site: Site | BrokenSite) -> date:
    return (due_since(site) if isinstance(site, Site) else None) or date.min


def _listing(site_run: SiteRun, source: Source, tools: RunContext) -> Listing:
    """What the site lists; for a retry, what the ledger says to try again. Raises FetchError after the last try."""
    if site_run.kind is SiteRunKind.RETRY:
        return Listing(tools.journal.to_retry(site_run.site))
    known, ending, http = site_run.known_list, tools.ending, tools.settings.http
    try:
        return in_tries(lambda: source.list_documents(known, ending.left()), http, http.list_deadline, ending)
    except FetchError as error:
        if error.transient and (late := ending.late()):
            # It may have failed for no other reason than that.
            raise FetchError(late, transient=True, seconds=error.seconds) from error
        raise


def _in_time(documents: Iterable[ListedDocument], ending: Ending) -> Iterator[ListedDocument]:
    """The documents of a list as long as there is time to read it. Raises ListError."""
    for number, document in enumerate(documents):
        if number % BATCH == 0 and (late := ending.late()):
            raise ListError(late)
        yield document


def _note_list(site_run: SiteRun, listing: Listing, staged: int, tools: RunContext) -> None:
    unchanged = listing.documents is None
    listed = site_run.known_documents if unchanged else staged
    if site_run.kind is not SiteRunKind.RETRY:
        tools.journal.list_read(site_run, listed, unchanged)
    tools.progress.documents_listed(site_run.site.name, listed)


def _batches(site_run: SiteRun, staged: Staging, journal: Journal) -> Iterator[Batch]:
    """The listed documents, a thousand at a time."""
    if site_run.kind is SiteRunKind.RETRY:
        return retry_batches(site_run, staged, journal)
    return staged_batches(site_run, staged, journal)


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
def _workshop(settings: Settings, http: HttpSettings) -> Iterator[tuple[Fetcher, Validator, Executor]]:
    """The client, the validator and the threads of a run, imported only here: a night with nothing due needs none."""
    from metaharvest.fetch.client import Fetcher
    from metaharvest.validation import Validator

    administrator = next(iter(settings.harvester.administrators), None)
    with (
        Fetcher(
            http,
            name=settings.harvester.name,
            administrator=administrator,
            other_document_types=settings.validation.other_document_types,
        ) as fetcher,
        ThreadPoolExecutor(settings.harvester.workers, thread_name_prefix="document") as workers,
    ):
        yield fetcher, Validator(settings.validation), workers
