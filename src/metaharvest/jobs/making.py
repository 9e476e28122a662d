"""Makes jobs, and changes and ends jobs that no worker has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.clock import database_now
from metaharvest.database.models import Base
from metaharvest.database.rows import insert_numbered
from metaharvest.database.worker_models import Job, JobEvent
from metaharvest.model.jobs import JobKind, JobState
from metaharvest.model.mappings import picked
from metaharvest.model.values import frozen

_JOBS = Base.metadata.tables[Job.__tablename__]
_NUMBERS = ("fence", "attempts", "slices", "seconds", "cpu_seconds", "memory_bytes")
_UNUSED = {"is_to_end": False, **dict.fromkeys(_NUMBERS, 0)}


@frozen
class NewJob:
    """A job to make. `key` names it while it is open: there is never a second open job with the same key.

    `next_key` names it instead while a worker has the job with this key. `subject` is for people: the name of a site.
    `work` is JSON, as the kind needs it.
    """

    kind: str
    key: str
    subject: str = ""
    work: str = "{}"
    run_id: int | None = None
    host: str = ""
    priority: int = 0
    next_key: str = ""


def make(session: Session, jobs: Sequence[NewJob], merge: Callable[[str, str], str] = lambda old, new: old) -> int:
    """Make these jobs. Returns the number of new ones.

    A job that is open already gets the higher priority. If no worker has it, `merge` adds the new work to it. It can
    be claimed now, unless it failed.
    """
    known, now = _open_jobs(session, [each.key for each in jobs]), database_now(session)
    taken = {key for key, job in known.items() if job.state == JobState.TAKEN.value}
    jobs = [replace(each, key=each.next_key) if each.next_key and each.key in taken else each for each in jobs]
    known |= _open_jobs(session, [each.key for each in jobs if each.key == each.next_key])
    for each in jobs:
        if job := known.get(each.key):
            job.priority = max(job.priority, each.priority)
            if job.state == JobState.READY.value:
                job.work = merge(job.work, each.work)
                if not job.attempts:
                    job.not_before = min(job.not_before, now)
                names = dict.fromkeys([*job.subject.split(", "), *each.subject.split(", ")])
                job.subject = ", ".join(names)[:255]
    session.flush()
    new = [each for each in jobs if each.key not in known]
    if new:
        same = {"state": JobState.READY.value, "not_before": now, "made_at": now, **_UNUSED}
        insert_numbered(session.connection(), _JOBS, [_columns(each) for each in new], same)
    return len(new)


def ask_to_end(session: Session, sentence: str, run_id: int) -> None:
    """Let the workers of this run end at their next checkpoint: then their jobs are cancelled."""
    its = (Job.run_id == run_id, Job.state == JobState.TAKEN.value, Job.kind == JobKind.HARVEST_SITE.value)
    asked = update(Job).where(*its).values(is_to_end=True, sentence=sentence)
    session.execute(asked.execution_options(synchronize_session=False))


def cancel_ready(session: Session, sentence: str, run_id: int) -> None:
    """Cancel the harvests of this run that no worker has."""
    its = (Job.run_id == run_id, Job.state == JobState.READY.value, Job.kind == JobKind.HARVEST_SITE.value)
    now = database_now(session)
    for job in session.scalars(select(Job).where(*its).with_for_update()):
        _cancel(job, sentence, now)


def cancel(session: Session, job: Job, sentence: str) -> None:
    """Cancel this open job, at the next checkpoint of its worker if it has one."""
    if job.state == JobState.READY.value:
        _cancel(job, sentence, database_now(session))
    else:
        job.is_to_end, job.sentence = True, sentence


def try_now(session: Session, job: Job) -> None:
    """Let a waiting job be claimed now, with all attempts again."""
    job.not_before, job.attempts, job.sentence = database_now(session), 0, None


def set_priority(job: Job, priority: int) -> None:
    """Change the priority of a job."""
    job.priority = priority


def purge(session: Session, before: date) -> None:
    """Delete jobs that ended before this day, with their events."""
    limit = datetime.combine(before, time(), UTC)
    old = session.scalars(select(Job.job_id).where(Job.open_key.is_(None), Job.ended_at < limit)).all()
    # By their numbers: MariaDB would lock the rows of all jobs that it looks at, and wait for their workers.
    for some in batches(old):
        session.execute(delete(JobEvent).where(JobEvent.job_id.in_(some)))
        session.execute(delete(Job).where(Job.job_id.in_(some)))


def _open_jobs(session: Session, keys: Sequence[str]) -> dict[str, Job]:
    found: dict[str, Job] = {}
    for some in batches(keys, 500):
        open_jobs = select(Job).where(Job.open_key.in_(some)).with_for_update()
        found |= {str(job.open_key): job for job in session.scalars(open_jobs)}
    return found


def _cancel(job: Job, sentence: str, now: datetime) -> None:
    job.state, job.sentence, job.ended_at, job.open_key = JobState.CANCELLED.value, sentence, now, None


def _columns(new: NewJob) -> dict[str, object]:
    columns = picked(new, "kind run_id work priority open_key=key")
    return {**columns, "subject": new.subject[:255], "host": new.host[:255]}
