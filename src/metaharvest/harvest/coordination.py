"""The coordinator: opens a run whose sites workers harvest, makes a job for each origin, and ends the run.

A tick may be repeated at any time, by several machines at once: the run lock lets one of them work. It changes the run
and its jobs in one transaction, so that a coordinator that dies leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial

from sqlalchemy import ColumnElement, Engine, func, select
from sqlalchemy.orm import Session

from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.database.engine import database_errors, repeated, require_current, run_lock, writers
from metaharvest.database.models import HarvestRun
from metaharvest.database.worker_models import Job
from metaharvest.harvest.context import by_origin, host_of
from metaharvest.harvest.deadlines import STOPPED
from metaharvest.harvest.run import RunRequest, choose, due_day
from metaharvest.harvest.worker_session import SiteWork, last_ended
from metaharvest.jobs import claims, making, workers
from metaharvest.jobs.making import NewJob
from metaharvest.jobs.policy import Waiting, is_time, priority_of, runs_too_long
from metaharvest.journal import runs, taken_requests
from metaharvest.journal.journal import Clock
from metaharvest.journal.log_rows import Stamp
from metaharvest.journal.runs import finished_before
from metaharvest.journal.taken_requests import TakenRequests
from metaharvest.ledger import retries
from metaharvest.mail import outbox
from metaharvest.model import Finding, Level, RunStatus, Site, SiteRunKind
from metaharvest.model.jobs import OPEN, JobKind, JobState, Priority
from metaharvest.model.values import frozen
from metaharvest.requests import taking
from metaharvest.sites.registry import read_sites
from metaharvest.sites.rows import BrokenSite
from metaharvest.sites.same_source import sites_of_one_origin
from metaharvest.targets.lookup import Targets

MAIL_HOST = "mail"
"""The host of the jobs that deliver reports: one at a time, so that no report is sent twice."""

DELIVER_EVERY = timedelta(minutes=10)

NEXT_DAY = Finding(
    "harvest.next-day",
    "The run of the next day began before all was done.",
    "That run goes on with it. If this happens every night, the administrator should start more workers, or see which "
    "sites take long.",
    Level.WARNING,
)
RUN_DEADLINE = Finding(
    "harvest.run-deadline",
    "The run's deadline ([harvester] run_deadline) passed before all was done.",
    "The next run goes on with it. If this happens every night, the administrator should start more workers, or raise "
    "the deadline.",
    Level.WARNING,
)
WHY_ENDED = {each.message: each for each in (STOPPED, NEXT_DAY, RUN_DEADLINE)}
"""Why a run took its jobs back, by the sentence of such a job."""


@frozen
class Tick:
    """The result of a tick: the run under way, the number of new jobs, and of jobs that wait for a worker.

    `opened`: the tick opened the run. `ends`: all of its sites are done.
    """

    run_id: int | None = None
    opened: bool = False
    new_jobs: int = 0
    ready: int = 0
    ends: bool = False


def tick(settings: Settings, engine: Engine, targets: Targets, clock: Clock) -> Tick:
    """Do what is to do now. Raises LockHeld if a run alone, or another coordinator, is at work; DatabaseError."""
    require_current(engine)
    with run_lock(engine, beside_workers=True):
        done = repeated(lambda: _tick_once(settings, engine, targets, clock))
        oldest = clock().astimezone(settings.harvester.zone).date() - timedelta(days=settings.harvester.log_period_days)
        repeated(lambda: _forget_old(engine, oldest))
        return done


def _tick_once(settings: Settings, engine: Engine, targets: Targets, clock: Clock) -> Tick:
    with database_errors(engine), writers(engine).begin() as session:
        return _Coordinator(settings, targets, session, clock()).tick()


def _forget_old(engine: Engine, oldest: date) -> None:
    """Forget lost workers, and jobs that ended before this day. Meanwhile no worker waits for the row of the run."""
    with database_errors(engine), writers(engine).begin() as session:
        workers.forget_lost(session)
        making.purge(session, oldest)


class _Coordinator:
    """One tick, in one transaction."""

    def __init__(self, settings: Settings, targets: Targets, session: Session, now: datetime) -> None:
        self._settings = settings
        self._targets = targets
        self._session = session
        self._now = now
        self._today = now.astimezone(settings.harvester.zone).date()

    def tick(self) -> Tick:
        """Do what is to do now."""
        run = self._session.scalar(
            select(HarvestRun)
            .where(HarvestRun.status == RunStatus.RUNNING.value, HarvestRun.distributed.is_(True))
            .with_for_update(key_share=True)  # it is not closed meanwhile, and workers go on
        )
        opened = run is None
        if run is None:
            if not (self._is_time() or taking.is_waiting(self._session)):
                return Tick(None, ready=self._deliver())
            run = self._open()
        taken_requests.take_stops(self._session, self._stamp(run))
        new = self._add_jobs(run)
        closing = self._end(run)
        return Tick(run.run_id, opened, new + (closing or 0), self._deliver(), closing is not None)

    def _is_time(self) -> bool:
        """True if the sites of today have no jobs yet, and it is time for them."""
        last = self._session.scalar(select(func.max(HarvestRun.due_sites_of)))
        return is_time(self._now, last, self._settings.workers.run_at, self._settings.harvester.zone)

    def _open(self) -> HarvestRun:
        context = ReportContext(self._settings, self._targets.name_all(), self._now)
        opened = runs.open_run(self._session, context, self._today, distributed=True)
        return self._session.get_one(HarvestRun, opened.run_id)

    def _stamp(self, run: HarvestRun) -> Stamp:
        return Stamp(run.run_id, run.harvest_date, self._now)

    # -- jobs

    def _add_jobs(self, run: HarvestRun) -> int:
        """Make jobs for the sites that are due, once a day, and for the sites that people asked for."""
        if run.harvest_date > self._today or self._why_ended(run) or self._is_closing(run):
            return 0
        with_due = self._is_time()
        if not (with_due or taking.is_waiting(self._session)):
            return 0
        sites = read_sites(self._session)
        enabled = {site.site_id: site.name for site in sites if site.enabled}
        waiting = self._busy_sites(run)
        named = {site.site_id for site in sites} - waiting if waiting else None
        asked = taken_requests.take(self._session, self._stamp(run), enabled, named, leaves_out=with_due)
        chosen = self._chosen(run, sites, asked, with_due=with_due)
        if with_due:
            run.due_sites_of = self._today
        return making.make(self._session, self._new_jobs(run, sites, chosen, asked), partial(self._merged, run))

    def _busy_sites(self, run: HarvestRun) -> set[int]:
        """The sites whose requests wait: a worker has their job, or a person has stopped them in this run.

        The worker has read what its job is to do. The next slice, or the next run, does what was asked for.
        """
        taken = self._session.scalars(select(Job.work).where(*_taken(run)))
        stopped = taken_requests.taken_stops(self._session, run.run_id).sites
        return {site_id for work in taken for site_id in SiteWork.read(work).sites} | stopped

    def _is_closing(self, run: HarvestRun) -> bool:
        """True if the run is being closed: the next run has what comes now."""
        is_open = (Job.run_id == run.run_id, Job.kind == JobKind.CLOSE_RUN.value, Job.state.in_(OPEN))
        return self._session.scalar(select(Job.job_id).where(*is_open).limit(1)) is not None

    def _chosen(
        self, run: HarvestRun, sites: Collection[Site | BrokenSite], asked: TakenRequests, *, with_due: bool
    ) -> list[tuple[Site | BrokenSite, SiteRunKind]]:
        request = RunRequest(self._today, requested=not with_due)
        to_retry = retries.sites_to_retry(self._session, self._today)
        unfinished = runs.unfinished_sites(self._session)
        finished = finished_before(self._session, run.run_id, self._today)
        return list(choose(sites, request, to_retry, unfinished, finished, asked))

    def _new_jobs(
        self,
        run: HarvestRun,
        sites: Collection[Site | BrokenSite],
        chosen: Sequence[tuple[Site | BrokenSite, SiteRunKind]],
        asked: TakenRequests,
    ) -> list[NewJob]:
        """A job for each origin: the deletions of its sites wait for each other.

        If a worker has a job of the origin, that job does the requested work, and the new job waits for it.
        """
        origins = sites_of_one_origin(sites, self._settings.target_of)
        by_id = {site.site_id: site for site in sites}
        in_order = sorted(chosen, key=lambda each: due_day(each[0]))
        hosts = self._hosts(run)
        found = []
        for group in by_origin(in_order, origins):
            site_ids = [site.site_id for site, _ in group]
            ended = frozenset(runs.ended_site_runs(self._session, run.run_id, site_ids))
            work = SiteWork(dict(zip(site_ids, (kind for _, kind in group), strict=True)), asked.everything, ended)
            # All jobs of an origin have one host: no two of them are under way.
            members = sorted(origins.get(site_ids[0], site_ids))
            host = next((hosts[each] for each in members if each in hosts), None) or host_of(by_id[members[0]])
            key = f"{JobKind.HARVEST_SITE}:{run.run_id}:{min(site_ids)}"
            found.append(
                NewJob(
                    kind=JobKind.HARVEST_SITE,
                    key=key,
                    next_key=f"{key}:due",
                    subject=", ".join(site.name for site, _ in group),
                    work=work.text(),
                    run_id=run.run_id,
                    host=host,
                    priority=max(priority_of(self._waiting(site, kind, asked), self._today) for site, kind in group),
                )
            )
        return found

    def _merged(self, run: HarvestRun, old: str, new: str) -> str:
        """The work of two jobs for sites of one origin. Sites that have ended since the old job was made are done."""
        work, more = SiteWork.read(old), SiteWork.read(new)
        done = last_ended(work, runs.ended_site_runs(self._session, run.run_id, work.sites.keys() & more.sites.keys()))
        sites = {site_id: kind for site_id, kind in work.sites.items() if site_id not in done}
        return replace(work, sites=sites, everything=work.everything - done.keys()).with_more(more).text()

    def _hosts(self, run: HarvestRun) -> dict[int, str]:
        """The host of the open jobs of each site. A person may have changed the address of the site since then."""
        its = (Job.run_id == run.run_id, Job.kind == JobKind.HARVEST_SITE.value, Job.state.in_(OPEN))
        jobs = self._session.execute(select(Job.host, Job.work).where(*its))
        return {site_id: host for host, work in jobs for site_id in SiteWork.read(work).sites}

    def _waiting(self, site: Site | BrokenSite, kind: SiteRunKind, asked: TakenRequests) -> Waiting:
        is_known = isinstance(site, BrokenSite) or site.last_harvest is not None
        return Waiting(kind, asked.priorities.get(site.site_id), due_day(site), was_harvested=is_known)

    # -- the end

    def _end(self, run: HarvestRun) -> int | None:
        """End the run if nothing is left to do. A run that ends early takes its jobs back.

        Returns the number of new jobs that close the run; None: sites are left.
        """
        if self._is_closing(run):
            return 0
        if why := self._why_ended(run):
            making.cancel_ready(self._session, why.message, run.run_id)
            if why is not STOPPED:  # workers see a stop by themselves, and defer documents as a run alone does
                making.ask_to_end(self._session, why.message, run.run_id)
        its = (Job.run_id == run.run_id, Job.state.in_(OPEN), Job.kind == JobKind.HARVEST_SITE.value)
        if self._session.scalar(select(Job.job_id).where(*its).limit(1)) is not None:
            return None
        closing = NewJob(
            kind=JobKind.CLOSE_RUN,
            key=f"{JobKind.CLOSE_RUN}:{run.run_id}",
            subject=f"run {run.run_id}",
            run_id=run.run_id,
            host=MAIL_HOST,
            priority=Priority.CLOSING,
        )
        return making.make(self._session, [closing])

    def _why_ended(self, run: HarvestRun) -> Finding | None:
        """Why the run is to end before its sites are done; None: it goes on."""
        if taken_requests.taken_stops(self._session, run.run_id).whole_run:
            return STOPPED
        if runs_too_long(self._now, run.started_at, self._settings.harvester.run_deadline):
            return RUN_DEADLINE
        if run.harvest_date < self._today and self._is_time():
            return NEXT_DAY
        return None

    # -- what waits

    def _deliver(self) -> int:
        """Let a worker deliver waiting reports now and then. Returns the number of jobs that wait for a worker."""
        last = select(func.max(Job.ended_at)).where(Job.kind == JobKind.DELIVER.value)
        ended = self._session.scalar(last)
        if outbox.number_waiting(self._session) and (ended is None or self._now - ended >= DELIVER_EVERY):
            making.make(self._session, [deliver_job()])
        return self._ready()

    def _ready(self) -> int:
        self._session.flush()
        ready = select(func.count()).select_from(Job).where(Job.state == JobState.READY.value)
        return (self._session.scalar(ready) or 0) + claims.number_of_lapsed(self._session)


def _taken(run: HarvestRun) -> tuple[ColumnElement[bool], ...]:
    """The harvests of this run that a worker has."""
    return Job.run_id == run.run_id, Job.state == JobState.TAKEN.value, Job.kind == JobKind.HARVEST_SITE.value


def deliver_job() -> NewJob:
    """A job that delivers waiting reports."""
    return NewJob(
        kind=JobKind.DELIVER,
        key=JobKind.DELIVER.value,
        subject="waiting reports",
        host=MAIL_HOST,
        priority=Priority.CLOSING,
    )
