"""The story: one run, from the schedule to the report in the inbox. A newcomer starts reading here.

run.run_once()                 site.harvest_site()             lists.harvest_documents()
--------------                 -------------------             -------------------------
take the run lock              open the site run               plan: ask the target what it holds,
open the run                   list the site's documents         decide: insert, update, unchanged, ...
read the schedule              check and stage all of them     fetch
for each site that is due,     harvest_documents()             check
  or has documents to retry:   close: totals that balance,     insert or update
    harvest_site()               next date, report             log the outcome
composite report
close the run, purge, deliver
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from metaharvest.config.settings import Settings
from metaharvest.database.engine import database_errors, open_run_of_workers, readers, require_current, run_lock
from metaharvest.errors import ScheduleError
from metaharvest.harvest.deadlines import Deadlines, StopSignal
from metaharvest.harvest.setup import HarvestSetup
from metaharvest.journal.journal import Journal
from metaharvest.journal.runs import finished_before
from metaharvest.journal.taken_requests import NO_REQUESTS, TakenRequests
from metaharvest.ledger import retries
from metaharvest.model import RunStatus, Site, SiteRunKind, SiteRunStatus
from metaharvest.model.actions import todo
from metaharvest.model.requests import HarvestScope
from metaharvest.model.values import frozen
from metaharvest.sites.due import due_since, is_due
from metaharvest.sites.registry import read_sites
from metaharvest.sites.rows import BrokenSite
from metaharvest.text import some_of

if TYPE_CHECKING:
    from metaharvest.harvest.context import Chosen, Progress


@frozen
class RunRequest:
    """The request for a run: the day to use as today; sites by name, due or not; or all enabled ones.

    `full`: source repositories are asked for all their records, not only for changes. `requested`: only the sites that
    people asked for.
    """

    today: date
    names: tuple[str, ...] = ()
    force: bool = False
    full: bool = False
    requested: bool = False


@frozen
class RunResult:
    """The result of a run: its number, its status, and the number of failed deliveries.

    `cut_short` names the work that a signal or the run's deadline left undone; it is empty otherwise.
    """

    run_id: int
    status: RunStatus
    undelivered: int
    cut_short: str = ""


def run_once(setup: HarvestSetup, request: RunRequest, progress: Progress, stop: StopSignal | None = None) -> RunResult:
    """Harvest every site that is due or has documents to retry, or the requested sites.

    Raises SettingsError if the settings name something unusable, LockHeld if another run is under way, ScheduleError
    for a name that is not registered or switched off, DatabaseError, RunLost. Errors of a site never raise. Once `stop`
    is set, or the run's deadline has passed, work under way is finished, the rest is deferred, and the run ends as
    usual.
    """
    settings, engine, clock = setup.settings, setup.engine, setup.clock
    http = settings.network_policy()
    require_current(engine)
    began = clock()
    deadlines = Deadlines(stop or StopSignal()).after_run(settings.harvester.run_deadline)
    stop_is_set = deadlines.stop.is_set
    with run_lock(engine, beside_workers=_are_workers_gone(engine, settings)) as lock:
        sites = _read_schedule(engine)
        _check_names(sites, request.names)
        with Journal(engine, settings, setup.targets, clock, request.today, lock, setup.limits.group) as journal:
            asked = _take_requests(journal, request, sites)
            chosen, to_retry = _chosen(engine, sites, request, journal, asked)
            cut_short = ""
            if chosen:
                # Imported here: a night with nothing due needs neither a client nor a validator.
                from metaharvest.harvest.dispatcher import Dispatcher

                full = frozenset(site.site_id for site in sites) if request.full else asked.everything
                dispatcher = Dispatcher(setup, http, journal, progress, deadlines, full)
                not_begun = dispatcher.harvest(chosen, sites, to_retry)
                if why := deadlines.cut_short():
                    cut_short = journal.cut_short(why, not_begun)
                # Mail cannot be taken back: a run that lost the lock leaves it to the run that has it.
                journal.require_ours()
            from metaharvest.mail.outbox import DeliveringRun, deliver_in_run

            delivering = DeliveringRun(began, request.today)
            with database_errors(engine):
                to_sites = deliver_in_run(engine, settings, clock(), delivering, stop_is_set)
            journal.report_run()
            status = journal.close_run()
            with database_errors(engine):
                to_all = deliver_in_run(engine, settings, clock(), delivering, stop_is_set)
            undelivered = journal.reports_not_made + to_sites.refused + to_all.refused + to_all.waiting
            return RunResult(journal.run_id, status, undelivered, cut_short)


def choose(
    sites: Collection[Site | BrokenSite],
    request: RunRequest,
    to_retry: Collection[int],
    interrupted: Mapping[int, SiteRunKind],
    finished: Mapping[int, SiteRunStatus],
    asked: TakenRequests = NO_REQUESTS,
) -> Iterator[Chosen]:
    """The sites that this run harvests, and why: asked for, named, due, left unfinished, or with documents to retry.

    Pure. A site that is left out tonight is harvested if a person asks for it.

    A broken row cannot say when it is due: every run reports it, until a person corrects it or switches it off. If an
    interrupted run had `finished` some sites today, the run that goes on with it does not repeat or report them.
    """
    for site in sites:
        scope = asked.harvests.get(site.site_id)
        if scope is HarvestScope.FAILING and not isinstance(site, BrokenSite) and not _is_planned(site, request):
            if site.site_id in to_retry:
                yield site, SiteRunKind.RETRY
        elif scope is not None:
            yield site, SiteRunKind.NAMED
        elif request.requested or site.site_id in asked.left_out:
            continue
        elif request.names:
            if site.name in request.names:
                yield site, SiteRunKind.NAMED
        elif not site.enabled:
            continue
        elif request.force:
            yield site, SiteRunKind.SCHEDULED
        elif site.site_id in finished:
            if site.site_id in interrupted:
                yield site, interrupted[site.site_id]
            elif finished[site.site_id] is SiteRunStatus.LIST_FAILED and site.site_id in to_retry:
                yield site, SiteRunKind.RETRY
        elif _is_due(site, request.today):
            yield site, SiteRunKind.SCHEDULED
        elif site.site_id in interrupted:
            yield site, interrupted[site.site_id]
        elif site.site_id in to_retry:
            yield site, SiteRunKind.RETRY


def _take_requests(journal: Journal, request: RunRequest, sites: Collection[Site | BrokenSite]) -> TakenRequests:
    """Take the requests of people that this run is for: of the named sites, or all."""
    named = {site.site_id for site in sites if site.name in request.names} if request.names else None
    names = {site.site_id: site.name for site in sites if site.enabled}
    return journal.take_requests(names, named, leaves_out=not (request.names or request.requested))


def _chosen(
    engine: Engine, sites: Collection[Site | BrokenSite], request: RunRequest, journal: Journal, asked: TakenRequests
) -> tuple[list[Chosen], Collection[int]]:
    """The sites of this run, and the numbers of sites with documents to try again.

    Sites that people asked for come first, then the site that is due the longest.

    If there is no time for all sites, other sites are left out in the next night.
    """
    with database_errors(engine), readers(engine)() as session:
        to_retry = retries.sites_to_retry(session, request.today)
        finished = finished_before(session, journal.run_id, request.today)
    chosen = choose(sites, request, to_retry, journal.left_unfinished, finished, asked)
    order = {site_id: number for number, site_id in enumerate(asked.harvests)}
    in_order = sorted(chosen, key=lambda each: (order.get(each[0].site_id, len(order)), due_day(each[0])))
    return [(afresh(site) if site.site_id in asked.everything else site, kind) for site, kind in in_order], to_retry


def afresh(site: Site | BrokenSite) -> Site | BrokenSite:
    """The site without the version of its list, so that its whole list is harvested."""
    return replace(site, list_version=None) if isinstance(site, Site) else site


def _is_planned(site: Site | BrokenSite, request: RunRequest) -> bool:
    """True if this run harvests the site anyway."""
    if request.requested:
        return False
    return site.name in request.names if request.names else request.force or _is_due(site, request.today)


def _is_due(site: Site | BrokenSite, today: date) -> bool:
    return isinstance(site, BrokenSite) or is_due(site, today)


def due_day(site: Site | BrokenSite) -> date:
    """The day since when the site is due, for the order of sites; a site that was never harvested comes first."""
    return (due_since(site) if isinstance(site, Site) else None) or date.min


def _are_workers_gone(engine: Engine, settings: Settings) -> bool:
    """True if a run of workers is open that nobody else ends: the settings name no broker, and no worker has a job."""
    if settings.workers.broker:
        return False
    with database_errors(engine), readers(engine)() as session:
        if open_run_of_workers(session) is None:
            return False
        from metaharvest.jobs.claims import busy_workers  # its tables take time, and other runs need none of them

        return not busy_workers(session)


def _read_schedule(engine: Engine) -> list[Site | BrokenSite]:
    with database_errors(engine), readers(engine)() as session:
        return read_sites(session)


def _check_names(sites: Collection[Site | BrokenSite], names: Collection[str]) -> None:
    for name in names:
        site = next((site for site in sites if site.name == name), None)
        if site is None:
            known = some_of([site.name for site in sites]) or "none yet"
            raise ScheduleError(f"There is no site named '{name}'. Registered are: {known}.")
        if not site.enabled:
            enable = todo("sites.enable", name=name)
            raise ScheduleError(f"The site {name} is switched off; {enable} switches it on.")
