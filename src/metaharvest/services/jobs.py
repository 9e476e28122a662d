"""Jobs for people: list them, cancel one, try one again, change its priority; and the tick of the coordinator."""

from __future__ import annotations

from collections.abc import Callable
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
from metaharvest.queries.jobs import JobEventRecord, JobFilter, JobRecord
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


def shown(harvester: Harvester, job_id: int) -> tuple[JobRecord, list[JobEventRecord]]:
    """The job, and the steps of its life. Raises MetaharvestError if there is none."""
    with harvester.reading() as session:
        return _found(session, job_id), stored.job_events(session, job_id)


def cancel(harvester: Harvester, job_id: int) -> JobRecord:
    """Cancel a job that waits, or let its worker end at its next checkpoint; then it is cancelled.

    Raises MetaharvestError if there is no such job, RequestError if it has ended.
    """
    why = f"It was cancelled by {one_line(harvester.actor.name)}." if harvester.actor.name else "It was cancelled."
    return _changed(harvester, job_id, "jobs.cancel", "state", lambda session, job: making.cancel(session, job, why))


def retry(harvester: Harvester, job_id: int) -> JobRecord:
    """Let a job be tried now, with all attempts again. Raises MetaharvestError, RequestError if it does not wait."""

    def try_now(session: Session, job: Job) -> None:
        if job.state != JobState.READY.value:
            shows = todo("jobs.show", job_id=str(job_id))
            raise RequestError(f"Job {job_id} is under way: the worker {job.worker} has it ({shows}).")
        making.try_now(session, job)

    return _changed(harvester, job_id, "jobs.retry", "attempts", try_now)


def set_priority(harvester: Harvester, job_id: int, priority: int) -> JobRecord:
    """Change the priority of a job that has not ended. Raises MetaharvestError, RequestError."""
    if not 0 <= priority <= MOST_PRIORITY:
        raise RequestError(f"A priority is a number from 0 to {MOST_PRIORITY}.")
    return _changed(
        harvester, job_id, "jobs.priority", "priority", lambda session, job: making.set_priority(job, priority)
    )


def _changed(
    harvester: Harvester, job_id: int, action: str, value: str, change: Callable[[Session, Job], None]
) -> JobRecord:
    """Change an open job; the audit has this value of it, before and after."""
    with harvester.writing() as session:
        _found(session, job_id)
        job = session.get_one(Job, job_id, with_for_update=True, populate_existing=True)
        if job.open_key is None:
            raise RequestError(f"Job {job_id} has ended already: {job.state}.")
        before, subject = {value: getattr(job, value)}, f"{job_id} ({job.subject})"
        change(session, job)
        session.flush()
        harvester.audit(session, Decision(action, "job", subject, before=before, after={value: getattr(job, value)}))
        return _found(session, job_id)


def _found(session: Session, job_id: int) -> JobRecord:
    record = stored.job_record(session, job_id)
    if record is None:
        raise MetaharvestError(f"There is no job with the number {job_id}: {todo('jobs.list')} lists the jobs.")
    return record
