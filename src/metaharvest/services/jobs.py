"""Jobs for people: list them, cancel one, try one again, change its priority; and the tick of the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy.orm import Session

from metaharvest.accounts.audit import Decision
from metaharvest.database.worker_models import Job
from metaharvest.errors import LockHeld, MetaharvestError, RequestError, SettingsError
from metaharvest.harvest import coordination
from metaharvest.harvest.coordination import Tick
from metaharvest.jobs import making
from metaharvest.model.actions import todo
from metaharvest.model.jobs import JobState
from metaharvest.queries import jobs as stored
from metaharvest.queries.jobs import JobEventRecord, JobFilter, JobRecord, WorkerRecord
from metaharvest.services import pipeline
from metaharvest.services.harvester import Harvester
from metaharvest.text import one_line

__all__ = ["JobFilter", "JobState"]

MOST_PRIORITY = 1000


def coordinate(harvester: Harvester) -> Tick:
    """Open the run of the day if it is time, make jobs, end a run whose sites are done. May be repeated at any time.

    While another coordinator is at work, nothing is left to do. Raises LockHeld if a run alone is under way,
    DatabaseError, SettingsError.
    """
    try:
        done = coordination.tick(harvester.settings, harvester.engine, harvester.targets, harvester.now)
    except LockHeld:
        with harvester.reading() as session:
            if stored.is_run_alone(session):
                raise
            done = Tick(stored.distributed_run(session))
    return replace(done, ready=done.ready + pipeline.make_jobs(harvester))


def require_broker(harvester: Harvester) -> None:
    """Raises SettingsError if the settings name no broker."""
    if not harvester.settings.workers.broker:
        raise SettingsError(
            'broker of [workers] is not set. Workers need RabbitMQ: write its address there, as "amqp://USER@HOST/", '
            f"or a reference to it. Without workers, one process harvests all sites ({todo('runs.start')})."
        )


def listed(harvester: Harvester, wanted: JobFilter, limit: int, after: int | None = None) -> list[JobRecord]:
    """The jobs, the newest first; the next page begins `after` the last job of this one."""
    with harvester.reading() as session:
        return stored.jobs(session, wanted, limit, after)


def shown(harvester: Harvester, job_id: int) -> tuple[JobRecord, list[JobEventRecord]]:
    """The job, and the steps of its life. Raises MetaharvestError if there is none."""
    with harvester.reading() as session:
        record = stored.job_record(session, job_id)
        if record is None:
            raise _no_job(job_id)
        return record, stored.job_events(session, job_id)


def is_under_way(harvester: Harvester) -> bool:
    """True if a distributed run is under way, or jobs are left."""
    with harvester.reading() as session:
        return stored.is_under_way(session)


def workers(harvester: Harvester) -> list[WorkerRecord]:
    """The workers that were seen in the last minutes."""
    with harvester.reading() as session:
        return stored.workers(session)


def cancel(harvester: Harvester, job_id: int) -> JobRecord:
    """Cancel a job that waits, or let its worker end at its next checkpoint; then it is cancelled.

    Raises MetaharvestError if there is no such job, RequestError if it has ended.
    """
    by = f" by {one_line(harvester.actor.name)}" if harvester.actor.name else ""
    with harvester.writing() as session:
        job = _open_job(session, job_id)
        before = job.state
        making.cancel(session, job, f"It was cancelled{by}.")
        session.flush()
        harvester.audit(session, _about(job, "jobs.cancel", {"state": before}, {"state": job.state}))
        return _read(session, job_id)


def retry(harvester: Harvester, job_id: int) -> JobRecord:
    """Let a job be tried now, with all attempts again. Raises MetaharvestError, RequestError if it does not wait."""
    with harvester.writing() as session:
        job = _open_job(session, job_id)
        if job.state != JobState.READY.value:
            shows = todo("jobs.show", job_id=str(job_id))
            raise RequestError(f"Job {job_id} is under way: the worker {job.worker} has it ({shows}).")
        before = {"attempts": job.attempts}
        making.try_now(session, job)
        session.flush()
        harvester.audit(session, _about(job, "jobs.retry", before, {"attempts": 0}))
        return _read(session, job_id)


def set_priority(harvester: Harvester, job_id: int, priority: int) -> JobRecord:
    """Change the priority of a job that has not ended. Raises MetaharvestError, RequestError."""
    if not 0 <= priority <= MOST_PRIORITY:
        raise RequestError(f"A priority is a number from 0 to {MOST_PRIORITY}.")
    with harvester.writing() as session:
        job = _open_job(session, job_id)
        before = {"priority": job.priority}
        making.set_priority(job, priority)
        session.flush()
        harvester.audit(session, _about(job, "jobs.priority", before, {"priority": priority}))
        return _read(session, job_id)


def _open_job(session: Session, job_id: int) -> Job:
    record = stored.job_record(session, job_id)
    if record is None:
        raise _no_job(job_id)
    job = session.get_one(Job, job_id, with_for_update=True, populate_existing=True)
    if job.open_key is None:
        raise RequestError(f"Job {job_id} has ended already: {job.state}.")
    return job


def _no_job(job_id: int) -> MetaharvestError:
    return MetaharvestError(f"There is no job with the number {job_id}: {todo('jobs.list')} lists the jobs.")


def _about(job: Job, action: str, before: Mapping[str, object], after: Mapping[str, object]) -> Decision:
    return Decision(action=action, kind="job", subject=f"{job.job_id} ({job.subject})", before=before, after=after)


def _read(session: Session, job_id: int) -> JobRecord:
    record = stored.job_record(session, job_id)
    assert record is not None
    return record
