"""A worker claims jobs, renews its lease, and gives the jobs back or ends them.

The row is the job: a message about it is only a hint. Each function is called in a transaction. The times are by
the database's clock. A job whose lease has passed can be claimed by another worker; the fencing number of the claim
before is then too old, and its worker can write nothing more.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, and_, bindparam, case, func, or_, select, tuple_, update
from sqlalchemy.orm import Session

from metaharvest.database.base import Base
from metaharvest.database.clock import database_now, now_by_database
from metaharvest.database.worker_models import Job
from metaharvest.model.jobs import OPEN, JobState
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen

LEASE = timedelta(seconds=60)

SUSPECT_AFTER = 2
"""Workers that may die with a job before it is claimed alone."""


@frozen
class Claim:
    """A job that a worker has: `fence` is its number of this claim.

    `attempts` counts this claim and the claims before it that did not end by themselves.
    """

    job_id: int
    kind: str
    run_id: int | None
    subject: str
    work: str
    worker: str
    fence: int
    attempts: int
    slices: int


_CLAIMED = [getattr(Job, each.name) for each in fields(Claim)] + [Job.host]


class HeldClaims:
    """The claims that a worker holds, for all of its threads."""

    def __init__(self) -> None:
        self._claims: dict[int, Claim] = {}
        self._lock = threading.Lock()

    def add(self, claim: Claim) -> None:
        """Hold this one."""
        with self._lock:
            self._claims[claim.job_id] = claim

    def remove(self, claim: Claim) -> None:
        """Hold it no longer: nothing more is written for it."""
        with self._lock:
            if self._claims.get(claim.job_id) == claim:
                del self._claims[claim.job_id]

    def has(self, claim: Claim) -> bool:
        """True if this one is held."""
        with self._lock:
            return self._claims.get(claim.job_id) == claim

    def all(self) -> list[Claim]:
        """All of them, in the order of their jobs: so the rows are locked in one order."""
        with self._lock:
            return [self._claims[job_id] for job_id in sorted(self._claims)]

    def numbers(self) -> set[int]:
        """The numbers of their jobs."""
        return {each.job_id for each in self.all()}


@frozen
class Used:
    """What a claim used: seconds by the clock, seconds of the processor, and the most memory, in bytes."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_bytes: int = 0


def claim(
    session: Session, worker: str, kinds: Collection[str], limit: int = 1, held: Collection[int] = ()
) -> list[Claim]:
    """Claim the next jobs of these kinds, by priority; never one whose host another worker has.

    The worker still writes for the jobs that it has `held`: it renews a lease that has passed, or it learns that it
    lost the job. A second claim would hide that from the slice under way.

    Jobs with which two workers have died are left out: see claim_suspect(). Raises IntegrityError if another worker
    takes the same host at this moment: then the caller tries again.
    """
    now = database_now(session)
    its = (Job.kind.in_(kinds), Job.attempts < SUSPECT_AFTER, Job.job_id.not_in(held))
    found = list(session.execute(_next(limit).where(_is_lapsed(now), *its)))
    if left := limit - len(found):
        hosts: set[str] = set()
        for job in session.execute(_next(left).where(_is_ready(session, now), *its)):
            if not (job.host and job.host in hosts):
                hosts.add(job.host)
                found.append(job)
    return _take(session, found, worker, now)


def claim_suspect(session: Session, worker: str, kinds: Collection[str], held: Collection[int] = ()) -> list[Claim]:
    """Claim a job with which two workers have died: it may be the reason. The worker should have no other job.

    Otherwise the jobs beside it would be given up with it. Raises IntegrityError like claim().
    """
    now = database_now(session)
    its = (Job.state.in_(OPEN), Job.kind.in_(kinds), Job.attempts >= SUSPECT_AFTER, Job.job_id.not_in(held))
    return _take(
        session, list(session.execute(_next(1).where(*its, or_(_is_lapsed(now), _is_ready(session, now))))), worker, now
    )


def renew(session: Session, held: Sequence[Claim]) -> list[Claim]:
    """Renew the leases of these jobs; return the claims that are no longer valid."""
    if not held:
        return []
    until = database_now(session) + LEASE
    these = tuple_(Job.job_id, Job.fence).in_([(each.job_id, each.fence) for each in held])
    its = (these, Job.state == JobState.TAKEN.value)
    renewed = session.execute(
        update(Job).where(*its).values(lease_until=until).execution_options(synchronize_session=False)
    )
    if renewed.rowcount == len(held):  # type: ignore[attr-defined]
        return []
    valid = {(job_id, fence) for job_id, fence in session.execute(select(Job.job_id, Job.fence).where(*its))}
    return [each for each in held if (each.job_id, each.fence) not in valid]


def to_end(session: Session, held: Sequence[Claim]) -> set[int]:
    """The numbers of the jobs that are to end at their next checkpoint: a person asked for it, or the run ends."""
    its = (Job.job_id.in_([each.job_id for each in held]), Job.is_to_end.is_(True))
    return set(session.scalars(select(Job.job_id).where(*its))) if held else set()


def keep_work(session: Session, claim: Claim, work: str) -> None:
    """Replace the work of a job by the work that is left for its next slice."""
    kept = update(Job).where(*_is(claim)).values(work=work)
    session.execute(kept.execution_options(synchronize_session=False))


def end_slice(session: Session, claim: Claim, used: Used, wait: timedelta = timedelta()) -> JobState | None:
    """Give the job back after a slice that ended by itself. It can be claimed again after `wait`.

    The slice is counted, and earlier failures are forgotten.

    A job that is to end is cancelled. Returns the new state of the job; None if the claim is no longer valid.
    """
    return _give_back(session, claim, used, wait, {"slices": Job.slices + 1, "attempts": 0, "sentence": None})


def fail_slice(
    session: Session,
    claim: Claim,
    used: Used,
    sentence: str,
    wait: timedelta = timedelta(),
    *,
    is_blameless: bool = False,
) -> JobState | None:
    """Let the job be claimed again after this time, with the sentence why its slice failed.

    If the job `is_blameless`, this attempt does not count. The rest is as in end_slice().
    """
    attempts = Job.attempts - 1 if is_blameless else Job.attempts
    return _give_back(session, claim, used, wait, {"sentence": sentence, "attempts": attempts})


def _give_back(
    session: Session, claim: Claim, used: Used, wait: timedelta, values: dict[str, object]
) -> JobState | None:
    asked = session.execute(select(Job.is_to_end, Job.sentence).where(*_is(claim)).with_for_update()).first()
    if asked is None:
        return None
    if asked.is_to_end:
        return JobState.CANCELLED if end(session, claim, used, JobState.CANCELLED, asked.sentence or "") else None
    not_before = database_now(session) + wait
    ready = {"state": JobState.READY.value, "not_before": not_before, **values}
    return JobState.READY if _end_claim(session, claim, used, ready) else None


def end(session: Session, claim: Claim, used: Used, state: JobState, sentence: str = "") -> bool:
    """End the job; False if the claim is no longer valid."""
    ended = {"state": state.value, "open_key": None, "ended_at": now_by_database(session)}
    values: dict[str, object] = {**ended, "sentence": sentence or None}
    return _end_claim(session, claim, used, values)


def number_of_lapsed(session: Session) -> int:
    """The number of jobs whose worker did not renew its lease."""
    return session.scalar(select(func.count()).select_from(Job).where(_is_lapsed(database_now(session)))) or 0


def is_overtaken(session: Session, claim: Claim) -> bool:
    """True if a job with a higher priority than this one waits for a worker."""
    its_own = select(Job.priority).where(Job.job_id == claim.job_id).scalar_subquery()
    first = select(Job.job_id).where(_is_ready(session, database_now(session)), Job.priority > its_own)
    return session.scalar(first.limit(1)) is not None


def busy_workers(session: Session) -> list[str]:
    """The names of the workers that have a job, and a lease that has not passed."""
    its = (Job.state == JobState.TAKEN.value, Job.lease_until >= database_now(session))
    return sorted({str(each) for each in session.scalars(select(Job.worker).where(*its))})


def _is_lapsed(now: datetime) -> ColumnElement[bool]:
    """True for a job whose worker did not renew its lease."""
    return and_(Job.state == JobState.TAKEN.value, Job.lease_until < now)


def _is_ready(session: Session, now: datetime) -> ColumnElement[bool]:
    """True for a job that waits no longer, and whose host no worker has."""
    taken = {str(each) for each in session.scalars(select(Job.host_key).where(Job.host_key.is_not(None)))}
    return and_(Job.state == JobState.READY.value, Job.not_before <= now, Job.host.not_in(taken))


def _take(session: Session, jobs: Sequence[Row[*tuple[Any, ...]]], worker: str, now: datetime) -> list[Claim]:
    """Take these jobs, whose rows are locked, in one statement."""
    taken = {
        "state": JobState.TAKEN.value,
        "worker": worker,
        "lease_until": now + LEASE,
        "host_key": func.nullif(Job.host, ""),
        "fence": Job.fence + 1,
        "attempts": Job.attempts + 1,
        "began_at": func.coalesce(Job.began_at, now),
    }
    if jobs:
        its = Job.job_id.in_([job.job_id for job in jobs])
        session.execute(update(Job).where(its).values(taken), execution_options={"synchronize_session": False})
    # `jobs` has the values from before the update.
    return [record_of(Claim, job, worker=worker, fence=job.fence + 1, attempts=job.attempts + 1) for job in jobs]


def _next(limit: int) -> Select[*tuple[Any, ...]]:
    """The first jobs in the order of their priority; rows that another worker is claiming are left out."""
    return select(*_CLAIMED).order_by(Job.priority.desc(), Job.job_id).limit(limit).with_for_update(skip_locked=True)


def _end_claim(session: Session, claim: Claim, used: Used, values: dict[str, object]) -> bool:
    its = {"its_job": claim.job_id, "its_fence": claim.fence}
    numbers = {"used": used.seconds, "used_cpu": used.cpu_seconds, "used_memory": used.memory_bytes}
    return session.connection().execute(_ENDS.values(values), its | numbers).rowcount == 1


_JOBS = Base.metadata.tables[Job.__tablename__]
_MEMORY = bindparam("used_memory", type_=_JOBS.c.memory_bytes.type)
_ENDS = (
    update(_JOBS)
    .where(
        _JOBS.c.job_id == bindparam("its_job"),
        _JOBS.c.fence == bindparam("its_fence"),
        _JOBS.c.state == JobState.TAKEN.value,
    )
    .values(
        host_key=None,
        lease_until=None,
        is_to_end=False,
        seconds=_JOBS.c.seconds + bindparam("used"),
        cpu_seconds=_JOBS.c.cpu_seconds + bindparam("used_cpu"),
        memory_bytes=case((_JOBS.c.memory_bytes < _MEMORY, _MEMORY), else_=_JOBS.c.memory_bytes),
    )
)
"""The end of a claim, built once: jobs end one by one."""


def _is(claim: Claim) -> tuple[ColumnElement[bool], ...]:
    return Job.job_id == claim.job_id, Job.fence == claim.fence, Job.state == JobState.TAKEN.value
