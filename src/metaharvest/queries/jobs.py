"""Jobs, the steps of their life, and the workers that are there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.batches import grouped
from metaharvest.database.clock import database_now
from metaharvest.database.models import HarvestRun
from metaharvest.database.worker_models import Job, JobEvent, Worker
from metaharvest.jobs.claims import LEASE
from metaharvest.jobs.workers import SILENT_AFTER
from metaharvest.model import RunStatus
from metaharvest.model.jobs import OPEN, JobState
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen
from metaharvest.queries.records import equalities, row_of


@frozen(kw_only=True)
class JobRecord:
    """A job. `kind` and `state` are values of model/jobs.py; `subject` names its sites, or its run.

    `worker` has it, or had it last. `slices` are the claims that ended by themselves, `attempts` the claims since the
    last one of them. `seconds` are by the clock, `cpu_seconds` by the processor, and `memory_bytes` is the most that a
    worker had.
    """

    job_id: int
    kind: str
    run_id: int | None
    subject: str
    host: str
    priority: int
    state: str
    worker: str | None
    attempts: int
    slices: int
    made_at: datetime
    not_before: datetime
    began_at: datetime | None
    lease_until: datetime | None
    ended_at: datetime | None
    seconds: float
    cpu_seconds: float
    memory_bytes: int
    sentence: str | None

    @property
    def is_open(self) -> bool:
        """True if it waits, or a worker has it."""
        return self.state in OPEN


@frozen(kw_only=True)
class JobEventRecord:
    """A step in the life of a job; `claim` is the number of the claim that it belongs to."""

    claim: int
    step: str
    worker: str
    at: datetime
    sentence: str | None


@frozen(kw_only=True)
class WorkerRecord:
    """A worker, the number of its `jobs`, and the oldest of them.

    `is_ending`: it finishes its slices, and takes no further job. `is_silent`: it may have died.
    """

    name: str
    host: str
    pid: int
    version: str
    began_at: datetime
    seen_at: datetime
    is_ending: bool
    is_silent: bool
    jobs: int
    job_id: int | None
    kind: str | None
    subject: str | None


@frozen
class JobFilter:
    """The selection of jobs; None or empty: any."""

    states: Sequence[JobState] = ()
    run_id: int | None = None


def jobs(session: Session, wanted: JobFilter, limit: int | None = None, after: int | None = None) -> list[JobRecord]:
    """The jobs, the newest first; the next page begins `after` the last job of this one."""
    conditions = equalities((Job.state, wanted.states), (Job.run_id, wanted.run_id))
    if after is not None:
        conditions.append(Job.job_id < after)
    rows = select(Job).where(*conditions).order_by(Job.job_id.desc()).limit(limit)
    return [record_of(JobRecord, row) for row in session.scalars(rows)]


def job_record(session: Session, job_id: int) -> JobRecord | None:
    """The job of this number; None if there is none."""
    row = row_of(session, Job, job_id)
    return None if row is None else record_of(JobRecord, row)


def job_events(session: Session, job_id: int) -> list[JobEventRecord]:
    """The steps in the life of a job, the oldest first."""
    rows = session.scalars(select(JobEvent).where(JobEvent.job_id == job_id).order_by(JobEvent.job_event_id))
    return [record_of(JobEventRecord, row, claim=row.fence) for row in rows]


_LEAST_RESTART = timedelta(seconds=1)
"""The least time between the last claim of a dead worker and the start of the next one of its name."""

_RUNNING = select(HarvestRun.run_id).where(HarvestRun.status == RunStatus.RUNNING.value).limit(1)


def is_under_way(session: Session) -> bool:
    """True if a distributed run is under way, or jobs are left."""
    left = select(Job.job_id).where(Job.state.in_(OPEN))
    return distributed_run(session) is not None or session.scalar(left.limit(1)) is not None


def distributed_run(session: Session) -> int | None:
    """The number of the run whose sites workers harvest now; None if there is none."""
    return session.scalar(_RUNNING.where(HarvestRun.distributed.is_(True)))


def is_run_alone(session: Session) -> bool:
    """True if a run that harvests by itself is under way."""
    return session.scalar(_RUNNING.where(HarvestRun.distributed.is_(False))) is not None


@frozen(kw_only=True)
class JobNumbers:
    """Numbers of all jobs: `ready` ones wait for a worker, since `oldest_ready`; `lapsed` ones have lost theirs.

    `by_kind` has the numbers of open and ended jobs by kind and state.
    """

    ready: int
    taken: int
    lapsed: int
    oldest_ready: datetime | None
    by_kind: dict[tuple[str, str], int]


def job_numbers(session: Session) -> JobNumbers:
    """The numbers of all jobs."""
    now = database_now(session)
    is_ready = (Job.state == JobState.READY.value, Job.not_before <= now)
    is_lapsed = (Job.state == JobState.TAKEN.value, Job.lease_until < now)
    by_kind = select(Job.kind, Job.state, func.count()).group_by(Job.kind, Job.state)
    numbers = {(str(kind), str(state)): number for kind, state, number in session.execute(by_kind)}
    return JobNumbers(
        ready=session.scalar(select(func.count()).select_from(Job).where(*is_ready)) or 0,
        taken=sum(number for (_, state), number in numbers.items() if state == JobState.TAKEN),
        lapsed=session.scalar(select(func.count()).select_from(Job).where(*is_lapsed)) or 0,
        oldest_ready=session.scalar(select(func.min(Job.not_before)).where(*is_ready)),
        by_kind=numbers,
    )


def number_failed_since(session: Session, since: datetime) -> int:
    """The number of jobs that have failed since this moment."""
    its = (Job.state == JobState.FAILED.value, Job.ended_at >= since)
    return session.scalar(select(func.count()).select_from(Job).where(*its)) or 0


def workers(session: Session) -> list[WorkerRecord]:
    """The workers that are not forgotten yet, by name, also silent ones.

    A worker that died and has started again with the same name has lost its jobs: no lease was renewed since.
    """
    has = select(Job).where(Job.state == JobState.TAKEN.value).order_by(Job.job_id)
    taken = grouped((job.worker, job) for job in session.scalars(has))
    heard_since = database_now(session) - SILENT_AFTER
    rows = session.scalars(select(Worker).order_by(Worker.name))
    return [_worker(row, taken.get(row.name, []), heard_since) for row in rows]


def _worker(row: Worker, taken: Sequence[Job], heard_since: datetime) -> WorkerRecord:
    claimed_since = row.began_at - _LEAST_RESTART
    jobs = [job for job in taken if job.lease_until and job.lease_until >= claimed_since + LEASE]
    oldest = next(iter(jobs), None)
    return record_of(
        WorkerRecord,
        row,
        is_silent=row.seen_at < heard_since,
        jobs=len(jobs),
        job_id=oldest.job_id if oldest else None,
        kind=oldest.kind if oldest else None,
        subject=oldest.subject if oldest else None,
    )
