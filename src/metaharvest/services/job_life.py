"""The one life of every job.

The steps are: notify that the job starts, collect what it needs, perform it, finalise with what it used, assess what
becomes of it, notify that it has ended. Each is an event of the job.
"""

from __future__ import annotations

import logging
import resource
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlalchemy.orm import Session

from metaharvest.database.dialects import is_raced, is_refused
from metaharvest.database.engine import repeated
from metaharvest.errors import DatabaseError, IndexUnavailable, MetaharvestError, RunLost, StoreUnavailable
from metaharvest.jobs import claims, workers
from metaharvest.jobs.claims import Claim, HeldClaims, Used
from metaharvest.jobs.policy import GIVEN_UP, LONGER_AFTER_OUTAGE, MOST_ATTEMPTS, assess, pause_after
from metaharvest.model.jobs import Assessment, JobState, Step
from metaharvest.services.harvester import Harvester
from metaharvest.services.job_kinds import JobContext, kind_of
from metaharvest.text import one_line

log = logging.getLogger(__name__)

_writing = threading.BoundedSemaphore(6)
"""The threads of jobs leave connections to the journal and to the leases: a pool has 15."""

_LONGEST = 1000
"""The most characters of a job's sentence, whose end says what to do."""

_LOST = "The worker lost one of its jobs, and gave the others back."


@dataclass(frozen=True, slots=True)
class Performed:
    """The end of a worker's work on a job. `is_broken`: the worker can write nothing more with its other jobs.

    `is_outage`: the database, the store of files or the index was away. `is_blameless`: the job is probably not the
    reason. `is_left`: the end of the claim waits for the database.
    """

    is_done: bool
    error: str = ""
    is_broken: bool = False
    is_outage: bool = False
    is_blameless: bool = False
    is_left: bool = False


def live(context: JobContext, held: HeldClaims, is_alone: Callable[[], bool]) -> Performed:
    """Run a claimed job, which is `held`, until it is done or its slice ends.

    An outage of the database counts as a failure of a job that `is_alone`: the job may be the reason of the outage.
    """
    meter = _Meter.start(held)
    try:
        performed = _performed(context, is_alone)
    finally:
        # Nothing more is written for it but its end.
        held.remove(context.claim)
    used, attempts, is_outage = meter.used(), context.claim.attempts, performed.is_outage
    assessed = assess(is_done=performed.is_done, error=performed.error, attempts=attempts, is_outage=is_outage)
    if performed.is_blameless:
        assessed = Assessment.AGAIN
    try:
        if not repeated(lambda: _end(context.harvester, context.claim, used, assessed, performed)):
            log.warning("Job %d (%s) has another worker", context.claim.job_id, context.claim.subject)
    except DatabaseError as error:
        log.warning("The end of job %d waits for the database: %s", context.claim.job_id, error)
        blameless = performed.is_blameless or not (performed.error or is_alone())
        is_outage, is_left = performed.is_outage or _is_outage(error), _passes(error)
        return replace(performed, is_broken=True, is_outage=is_outage, is_blameless=blameless, is_left=is_left)
    return performed


def give_back(session: Session, claim: Claim, performed: Performed) -> None:
    """Give back a job whose end waited for the database. A job that another worker has meanwhile stays as it is."""
    why = performed.error or "It was interrupted."
    claims.fail_slice(session, claim, Used(), why, _pause(claim, performed), is_blameless=performed.is_blameless)


def _pause(claim: Claim, performed: Performed) -> timedelta:
    """The time before a job is tried again, longer if an outage counts as its failure: the outage may still go on."""
    if performed.is_blameless:
        return pause_after(claim.attempts) if performed.error else timedelta()
    if performed.is_outage:
        return pause_after(min(claim.attempts, MOST_ATTEMPTS)) * LONGER_AFTER_OUTAGE
    return pause_after(claim.attempts)


def _passes(error: DatabaseError) -> bool:
    """True if the same statement may succeed later."""
    return _is_outage(error) or is_raced(error)


def _is_outage(error: DatabaseError) -> bool:
    return not (is_refused(error) or is_raced(error))


def _performed(context: JobContext, is_alone: Callable[[], bool]) -> Performed:
    """Collect and perform. Expected and unexpected errors cost this job alone, unless nothing can be written."""
    claim = context.claim
    try:
        kind = kind_of(claim.kind)
        collected = kind.collect(context)
        repeated(lambda: _note_collected(context.harvester, claim))
        if claim.attempts > MOST_ATTEMPTS:
            kind.give_up(context, collected)
            return Performed(is_done=True)
        return Performed(kind.perform(context, collected))
    except RunLost:
        return Performed(is_done=False, error=_LOST, is_broken=True, is_blameless=True)
    except DatabaseError as error:
        # An outage passes. What the database refuses, it refuses again: one of the jobs of this moment is the reason.
        why, blameless = one_line(str(error), _LONGEST), _passes(error) and not is_alone()
        log.warning("Job %d (%s) was interrupted: %s", claim.job_id, claim.subject, why)
        is_outage = _is_outage(error)
        return Performed(is_done=False, error=why, is_broken=True, is_outage=is_outage, is_blameless=blameless)
    except MetaharvestError as error:
        log.warning("Job %d (%s) failed: %s", claim.job_id, claim.subject, one_line(str(error), _LONGEST))
        is_outage = isinstance(error, StoreUnavailable | IndexUnavailable)
        return Performed(is_done=False, error=one_line(str(error), _LONGEST), is_outage=is_outage)
    except Exception as error:
        log.exception("Job %d (%s) failed", claim.job_id, claim.subject)
        return Performed(is_done=False, error=one_line(f"{type(error).__name__}: {error}"))


def _note_collected(harvester: Harvester, claim: Claim) -> None:
    with _writing, harvester.writing() as session:
        workers.note_steps(session, [(claim, Step.COLLECTED, "")], harvester.now())


def _end(harvester: Harvester, claim: Claim, used: Used, assessed: Assessment, performed: Performed) -> bool:
    """Finalise, assess and end in one transaction; False if another worker has the job."""
    numbers = f"{used.seconds:.1f} s, {used.cpu_seconds:.1f} s of the processor, {used.memory_bytes / 1e6:.0f} MB"
    error = performed.error
    with _writing, harvester.writing() as session:
        if assessed is Assessment.AGAIN and error:
            pause, blameless = _pause(claim, performed), performed.is_blameless
            state = claims.fail_slice(session, claim, used, error, pause, is_blameless=blameless)
        elif assessed is Assessment.AGAIN:
            state = claims.end_slice(session, claim, used)
        else:
            why = error or (GIVEN_UP if assessed is Assessment.FAILED else "")
            ended = JobState(assessed.value)
            state = ended if claims.end(session, claim, used, ended, why) else None
        if state is not None:
            # A person, or the end of the run, may have cancelled a job that would go on.
            becomes = assessed.value if state is JobState.READY else state.value
            steps = (
                (Step.PERFORMED, error),
                (Step.FINALISED, numbers),
                (Step.ASSESSED, becomes),
                (Step.ENDED, ""),
            )
            workers.note_steps(session, [(claim, *each) for each in steps], harvester.now())
        return state is not None


@dataclass(frozen=True, slots=True)
class _Meter:
    """Measures what a job uses. Jobs at the same time share the seconds of the processor evenly."""

    seconds: float
    cpu_seconds: float
    number_of_jobs: Callable[[], int]

    @classmethod
    def start(cls, held: HeldClaims) -> _Meter:
        """Begin now."""
        return cls(time.monotonic(), _cpu_seconds(), lambda: len(held.all()))

    def used(self) -> Used:
        """What was used since the beginning. The memory is the most that the process has had."""
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        shared_by = self.number_of_jobs() + 1
        return Used(time.monotonic() - self.seconds, (_cpu_seconds() - self.cpu_seconds) / shared_by, memory)


def _cpu_seconds() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
