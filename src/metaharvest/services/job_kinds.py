"""The kinds of jobs: what a worker does with a job of each kind.

A kind has three functions: `collect` reads what the job needs, `perform` works until the job is done (True) or its
slice ends (False), and `give_up` ends the work after too many workers have died with the job. Another distribution adds
a kind by an entry point in the group `metaharvest.jobs`, whose object is a `Kind`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from typing import Any

from sqlalchemy import and_, or_, select

from metaharvest.config.kinds import JOBS
from metaharvest.database.engine import database_errors
from metaharvest.database.models import HarvestRun, HarvestSiteRun
from metaharvest.database.worker_models import Job
from metaharvest.harvest.coordination import WHY_ENDED, deliver_job
from metaharvest.harvest.deadlines import STOPPED
from metaharvest.harvest.worker_session import SiteWork, SliceEnd
from metaharvest.jobs import making
from metaharvest.jobs.claims import Claim, HeldClaims
from metaharvest.jobs.policy import GIVEN_UP, MOST_ATTEMPTS
from metaharvest.journal import taken_requests
from metaharvest.journal.workers_journal import RunOfWorkers, WorkersJournal
from metaharvest.mail import outbox
from metaharvest.model import Finding, RunStatus
from metaharvest.model.actions import todo
from metaharvest.model.jobs import JobKind, JobState
from metaharvest.model.values import frozen
from metaharvest.services import pipeline, public_flags
from metaharvest.services.harvester import Harvester
from metaharvest.services.runs import end_of_distributed_run
from metaharvest.sites.registry import read_sites
from metaharvest.text import one_line


@frozen
class JobContext:
    """The job that a worker has, the installation, and the end of the slice.

    `harvest` is there for the harvest of sites: it harvests for a slice, beside the worker's other jobs, and returns
    True if the job is done.
    """

    harvester: Harvester
    claim: Claim
    slice_end: SliceEnd
    harvest: Callable[[], bool] | None = None


@frozen
class Kind:
    """A kind of jobs: see above. `collect` may raise what `perform` may."""

    collect: Callable[[JobContext], Any]
    perform: Callable[[JobContext, Any], bool]
    give_up: Callable[[JobContext, Any], object] = lambda context, collected: None


def kind_of(name: str) -> Kind:
    """The kind with this name. Raises ValueError with a sentence if there is none, or it cannot be loaded."""
    if name in _BUILT_IN:
        return _BUILT_IN[name]
    kind: Kind = JOBS.load(name)
    return kind


# -- the harvest of the sites of one origin


def _harvest(context: JobContext, _collected: None) -> bool:
    assert context.harvest is not None
    return context.harvest()


# -- the end of a run


def _collect_closing(context: JobContext) -> tuple[date, RunStatus] | None:
    """The day of the run, and its status: a worker may have died after it closed the run; None if it was removed."""
    with context.harvester.reading() as session:
        run = session.get(HarvestRun, context.claim.run_id)
        return None if run is None else (run.harvest_date, RunStatus(run.status))


def _close_run(context: JobContext, collected: tuple[date, RunStatus] | None) -> bool:
    """Close the run with its composite report, and have the reports delivered by a job of its own."""
    harvester, claim = context.harvester, context.claim
    if collected is not None and claim.run_id is not None:
        today, status = collected
        taken_back = _taken_back(harvester, claim.run_id)
        if status is RunStatus.RUNNING:
            public_flags.align(harvester)
            status = _closed(context, RunOfWorkers(claim.run_id, today), taken_back)
        end_of_distributed_run(harvester, claim.run_id, status, " ".join(why.message for why, _ in taken_back))
    harvester.write(making.make, [deliver_job()])
    return True


def _closed(context: JobContext, run: RunOfWorkers, taken_back: Sequence[tuple[Finding, Sequence[str]]]) -> RunStatus:
    """Close the run. Each step may be repeated: a worker may have died after it."""
    harvester, held = context.harvester, HeldClaims()
    held.add(context.claim)
    with WorkersJournal(harvester.engine, harvester.settings, harvester.targets, harvester.now, run, held) as journal:
        for why, subjects in taken_back:
            journal.cut_short(why, subjects)
        if failed := _failed(harvester, run.run_id):
            journal.not_whole(failed)
        journal.report_run()
        return journal.close_run()


def _taken_back(harvester: Harvester, run_id: int) -> Sequence[tuple[Finding, Sequence[str]]]:
    """The reasons why the run ended early, each with the names of the sites that were not begun.

    A worker that sees the stop of the run ends a job by itself, which is then done.
    """
    found: dict[str, list[str]] = {}
    its = (Job.run_id == run_id, Job.kind == JobKind.HARVEST_SITE.value)
    taken_back = and_(Job.state == JobState.CANCELLED.value, Job.sentence.in_(WHY_ENDED))
    with harvester.reading() as session:
        stopped = taken_requests.taken_stops(session, run_id)
        if stopped.whole_run:
            found[STOPPED.message] = []
            taken_back = or_(taken_back, Job.state == JobState.DONE.value)
        jobs = session.scalars(select(Job).where(*its, taken_back).order_by(Job.job_id)).all()
        if not jobs:
            return [(WHY_ENDED[why], ()) for why in found]
        names = {site.site_id: site.name for site in read_sites(session) if site.enabled}
        site_runs: dict[int, set[int]] = {}
        for site_id, site_run_id in session.execute(
            select(HarvestSiteRun.site_schedule_id, HarvestSiteRun.site_run_id).where(HarvestSiteRun.run_id == run_id)
        ):
            site_runs.setdefault(site_id, set()).add(site_run_id)
    for job in jobs:
        work, why = SiteWork.read(job.work), job.sentence if job.sentence in WHY_ENDED else STOPPED.message
        not_begun = [each for each in work.sites if site_runs.get(each, set()) <= work.ended]
        found.setdefault(why, []).extend(
            names[each] for each in not_begun if each in names and each not in stopped.sites
        )
    return [(WHY_ENDED[why], list(dict.fromkeys(sites))) for why, sites in found.items()]


def _failed(harvester: Harvester, run_id: int) -> Sequence[str]:
    """Sentences about the harvests that failed, and whose sites have no finding: it could not be written."""
    its = (Job.run_id == run_id, Job.kind == JobKind.HARVEST_SITE.value, Job.state == JobState.FAILED.value)
    failed = select(Job).where(*its, Job.sentence != GIVEN_UP).order_by(Job.job_id)
    with harvester.reading() as session:
        return [
            f"The harvest of {one_line(job.subject, 200)} failed {MOST_ATTEMPTS} times: {job.sentence} "
            f"The next run tries it again. ({todo('jobs.show', job_id=str(job.job_id))})"
            for job in session.scalars(failed)
        ]


# -- the delivery of reports


def _deliver(context: JobContext, _collected: None) -> bool:
    harvester, today = context.harvester, context.harvester.today()
    midnight = datetime.combine(today, time(), harvester.settings.harvester.zone)
    delivering = outbox.DeliveringRun(harvester.now(), today, midnight=midnight)
    with database_errors(harvester.engine):
        stop = context.slice_end.signal()
        outbox.deliver_in_run(harvester.engine, harvester.settings, harvester.now(), delivering, stop.is_set)
    return True


# -- the pipeline


def _run_stage(context: JobContext, _collected: None) -> bool:
    context.slice_end.work_begins()
    try:
        return pipeline.perform_job(context.harvester, context.claim.work, context.slice_end.signal().is_set)
    finally:
        context.slice_end.cancel()


_BUILT_IN = {
    JobKind.HARVEST_SITE.value: Kind(lambda context: None, _harvest, _harvest),
    JobKind.CLOSE_RUN.value: Kind(_collect_closing, _close_run),
    JobKind.DELIVER.value: Kind(lambda context: None, _deliver),
    JobKind.PIPELINE.value: Kind(lambda context: None, _run_stage),
}
