"""The loop of a worker: it claims jobs, and leads each through the one life of every job.

The harvests of one run share a session: a client, checks and a journal, as in a run alone. A thread waits for each of
them while the event loop of the session does the work.

The steps of a life are: notify that the job starts, collect what it needs, perform it, finalise with what it used,
assess what becomes of it, notify that it has ended. Each is an event of the job.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import resource
import socket
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

from sqlalchemy import update
from sqlalchemy.orm import Session

from metaharvest import __version__
from metaharvest.config.kinds import JOBS
from metaharvest.database.dialects import is_raced, is_refused
from metaharvest.database.engine import repeated, require_current
from metaharvest.database.models import HarvestRun
from metaharvest.errors import (
    DatabaseError,
    IndexUnavailable,
    LockHeld,
    MetaharvestError,
    RunLost,
    SchemaMismatch,
    StoreUnavailable,
)
from metaharvest.harvest.coordination import tick
from metaharvest.harvest.worker_session import HarvestJob, SiteWork, SliceEnd, WorkerSession
from metaharvest.jobs import claims, workers
from metaharvest.jobs.claims import Claim, HeldClaims, Used
from metaharvest.jobs.policy import GIVEN_UP, LONGER_AFTER_OUTAGE, MOST_ATTEMPTS, RUN_ENDED, assess, pause_after
from metaharvest.jobs.workers import WorkerProcess
from metaharvest.journal.taken_requests import taken_stops
from metaharvest.journal.workers_journal import RunOfWorkers
from metaharvest.model import RunStatus
from metaharvest.model.jobs import Assessment, JobKind, JobState, Step
from metaharvest.model.values import frozen
from metaharvest.requests import taking
from metaharvest.services import pipeline
from metaharvest.services.harvester import Harvester
from metaharvest.services.job_kinds import JobContext, kind_of
from metaharvest.text import one_line

log = logging.getLogger(__name__)

_BEAT_SECONDS = 10.0
"""The time after which a worker renews its leases, and notes that it is there."""

_POLL_SECONDS = 10.0
"""The time after which an idle worker looks for jobs without a message: messages may be lost."""

_REFILL_SECONDS = 2.0
"""The time after which a worker with free places looks for jobs."""

_GATHER_SECONDS = 0.02
"""The time that the end of a job waits for others, so that new jobs are claimed together."""

_REQUEST_TIME = timedelta(minutes=2)
"""The most time that a job waits for a coordinator, whose timer calls it every minute, to take a request."""

_CLAIM_TRIES = 5

_CAREFUL_AFTER = 2
"""The number of sessions in a row with an outage of the database, after which a session has one job."""

_writing = threading.BoundedSemaphore(6)
"""The threads of jobs leave connections to the journal and to the leases: a pool has 15."""

_LONGEST = 1000
"""The most characters of a job's sentence, whose end says what to do."""

_LOST = "The worker lost one of its jobs, and gave the others back."


def process_named(name: str) -> WorkerProcess:
    """This process as a worker with this name; without one, its machine and number are its name."""
    host, pid = socket.gethostname(), os.getpid()
    return WorkerProcess(name or f"{host}-{pid}", host, pid, __version__)


class WorkerLoop:
    """Claims jobs until it is to end: as many at a time as a run alone harvests sites, but only its share of them."""

    def __init__(
        self, harvester: Harvester, process: WorkerProcess, wake_all: Callable[[], None] = lambda: None
    ) -> None:
        self._harvester = harvester
        self._process = process
        self._wake_all = wake_all
        self._wake = threading.Event()
        self._ends = False
        self._has_ended = threading.Event()
        self._held = HeldClaims()
        self._slices: dict[int, SliceEnd] = {}
        self._next: list[Claim] = []
        self._not_begun: dict[int, Claim] = {}
        self._left = queue.SimpleQueue[tuple[Claim, Performed]]()
        self._is_alone = self._had_outage = False
        self._outages = 0

    def wake(self) -> None:
        """Look for jobs now."""
        self._wake.set()

    def end(self) -> None:
        """End the slices at their next checkpoint, and claim no further job."""
        self._ends = True
        for slice_end in list(self._slices.values()):
            slice_end.end()
        self._wake.set()

    def run(self) -> None:
        """Work until end() is called. While the database is away, it waits.

        Raises SchemaMismatch if the database was upgraded: a worker with the new program takes its place.
        """
        # Before the first claim, so that its leases are later than its `began_at`. In a container, a process that died
        # may have had the same name, machine and number.
        self._unless_away(self._forget)
        self._unless_away(self._beat_once)
        beating = threading.Thread(target=self._beat, name="leases", daemon=True)
        beating.start()
        try:
            while not self._ends:
                self._wake.clear()
                if not self._work_once():
                    self._wake.wait(_POLL_SECONDS)
        finally:
            self._next = []
            self._give_back_unbegun()
            self._has_ended.set()
            beating.join()
            self._unless_away(self._forget)

    def _work_once(self) -> bool:
        """Work on jobs, or tick; False if there is nothing to do now."""
        try:
            require_current(self._harvester.engine)
            self._give_back_left()
            room = 1 if self._is_careful else self._places
            claimed, self._next = self._next or self._claim(room, suspect_first=True), []
            if not claimed:
                return self._tick()
            try:
                self._work_on(claimed)
                if not self._had_outage:
                    self._outages = 0
            finally:
                self._outages += self._had_outage
                self._give_back_unbegun()
        except SchemaMismatch:
            raise
        except (DatabaseError, RunLost) as error:
            log.warning("The worker waits for the database: %s", error)
            return False
        return True

    def _give_back_unbegun(self) -> None:
        """Hold no job whose life has not begun: its lease would be renewed for ever. Jobs of the next session stay."""
        kept = {each.job_id for each in self._next}
        dropped = [each for each in self._not_begun.values() if each.job_id not in kept]
        for claim in dropped:
            self._forget_job(claim)
            self._left.put((claim, Performed(is_done=False, is_blameless=True)))
        self._give_back_left()

    def _give_back_left(self) -> None:
        """Give back jobs whose lives did not begin or end here, at once or as soon as the database is there again.

        A job that another worker has meanwhile stays as it is.
        """
        left = []
        while not self._left.empty():
            left.append(self._left.get())
        if not left:
            return
        try:
            with self._harvester.writing() as session:
                for claim, performed in left:
                    give_back(session, claim, performed)
        except DatabaseError as error:
            log.warning("%s", error)
            for each in left:
                self._left.put(each)

    def _forget_job(self, claim: Claim) -> None:
        self._held.remove(claim)
        self._not_begun.pop(claim.job_id, None)
        self._slices.pop(claim.job_id, None)

    def _work_on(self, claimed: Sequence[Claim]) -> None:
        """Work on these jobs, and on further ones of the same run while it harvests them.

        Without a harvest, one job follows the other, until a job with a higher priority waits: the rest is given back.
        """
        self._is_alone, self._had_outage = len(claimed) == 1, False
        runs = {each.job_id: self._run_of(each) for each in claimed if each.kind == JobKind.HARVEST_SITE}
        late = {each.job_id: each for each in claimed if each.job_id in runs and runs[each.job_id] is None}
        for claim in late.values():  # the next run has the sites of a run that has ended
            self._forget_job(claim)
            self._harvester.write(claims.end, claim, Used(), JobState.CANCELLED, RUN_ENDED)
        claimed = [each for each in claimed if each.job_id not in late]
        run = next(filter(None, runs.values()), None)
        if run is None:
            for claim in claimed:
                if claim is not claimed[0] and self._harvester.read(claims.is_overtaken, claim):
                    return
                self._live(claim)
            return
        claimed = self._of_run(run, claimed)
        session = WorkerSession(self._harvester.setup, run, self._held)

        async def lead(harvest_job: HarvestJob) -> None:
            await self._lead(session, harvest_job, claimed)

        session.work(lead)

    async def _lead(self, session: WorkerSession, harvest_job: HarvestJob, waiting: Sequence[Claim]) -> None:
        """Lead these jobs, and jobs that are claimed meanwhile, side by side through their lives, to the last one."""
        loop = asyncio.get_running_loop()

        def live_beside(claim: Claim) -> Performed:
            slice_end = self._slices[claim.job_id]

            def harvest() -> bool:
                return asyncio.run_coroutine_threadsafe(harvest_job(claim, slice_end), loop).result()

            return self._live(claim, harvest if claim.kind == JobKind.HARVEST_SITE else None)

        began, is_broken = dict[asyncio.Future[Performed], float](), False
        stays_alone = self._is_careful or any(claim.attempts > claims.SUSPECT_AFTER for claim in waiting)
        threads = ThreadPoolExecutor(4 * self._places, thread_name_prefix="job")
        try:
            while True:
                for claim in waiting:
                    began[loop.run_in_executor(threads, live_beside, claim)] = time.monotonic()
                if not began:
                    return
                done, _ = await asyncio.wait(began, timeout=_REFILL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    await asyncio.sleep(_GATHER_SECONDS)
                for job in [each for each in began if each.done()]:
                    del began[job]
                    is_broken = is_broken or job.result().is_broken
                waiting = []
                if not (is_broken or stays_alone or self._ends or self._next or session.stop.is_set()):
                    try:
                        waiting = self._of_run(session.run, await self._claim_beside(began.values()))
                    except DatabaseError as error:
                        log.warning("The worker claims no further job: %s", error)
                        is_broken = True
                    self._is_alone = self._is_alone and not waiting
        finally:
            threads.shutdown(wait=False)

    async def _claim_beside(self, began: Collection[float]) -> list[Claim]:
        """Claim jobs for the free places beside jobs that began at these times. A job that takes long has no place."""
        young = sum(time.monotonic() - since < self._harvester.limits.site_seconds for since in began)
        room = min(self._places - young, 4 * self._places - len(began))
        return await asyncio.to_thread(self._claim, room)

    def _of_run(self, run: RunOfWorkers, claimed: Sequence[Claim]) -> list[Claim]:
        """The jobs among these that this session can do; another run's wait until it has ended."""
        others = {each.job_id for each in claimed if each.kind == JobKind.HARVEST_SITE and each.run_id != run.run_id}
        self._next = [each for each in claimed if each.job_id in others]
        return [each for each in claimed if each.job_id not in others]

    def _live(self, claim: Claim, harvest: Callable[[], bool] | None = None) -> Performed:
        slice_end = self._slices[claim.job_id]
        self._not_begun.pop(claim.job_id, None)
        try:
            context = JobContext(self._harvester, claim, slice_end, harvest)
            performed = live(context, self._held, lambda: self._is_alone)
            if performed.is_left:
                self._left.put((claim, performed))
            self._had_outage = self._had_outage or performed.is_broken
            return performed
        finally:
            # Another thread may have claimed the same job again.
            if self._slices.get(claim.job_id) is slice_end:
                del self._slices[claim.job_id]

    def _run_of(self, claim: Claim) -> RunOfWorkers | None:
        with self._harvester.reading() as session:
            run = session.get(HarvestRun, claim.run_id)
            is_open = run is not None and run.status == RunStatus.RUNNING.value
            return RunOfWorkers(run.run_id, run.harvest_date) if run is not None and is_open else None

    @property
    def _places(self) -> int:
        return self._harvester.settings.workers.jobs

    @property
    def _is_careful(self) -> bool:
        """True after sessions in a row with an outage: the next one has one job, which may be the reason."""
        return self._outages >= _CAREFUL_AFTER

    def _claim(self, room: int, *, suspect_first: bool = False) -> list[Claim]:
        """Claim this worker's share of the jobs that wait, at most `room`: they have started.

        `suspect_first`: a job with which workers have died comes first, and alone. Then this worker has no other job,
        but some may still end.
        """
        if room <= 0:
            return []
        name, kinds, held = self._process.name, JOBS.names(), self._held.numbers()
        for _ in range(_CLAIM_TRIES):
            try:
                with self._harvester.writing() as session:
                    found = claims.claim_suspect(session, name, kinds, held) if suspect_first else []
                    if not found:
                        share = min(room, workers.share(session, len(held)))
                        found = claims.claim(session, name, kinds, share, held)
                    workers.note_steps(session, [(each, Step.STARTED, "") for each in found], self._harvester.now())
            except DatabaseError as error:
                # Another worker took a job of the same host at this moment.
                if not is_raced(error):
                    raise
                continue
            for claim in found:
                slice_end = SliceEnd(self._harvester.settings.workers.slice)
                self._slices[claim.job_id] = slice_end
                self._not_begun[claim.job_id] = claim
                self._held.add(claim)
                if self._ends:
                    slice_end.end()
            return found
        return []

    def _tick(self) -> bool:
        """Do what the coordinator does: then the end of a run waits for no timer. True if there are new jobs.

        More than one new job wakes the other workers; a single one it takes itself.
        """
        harvester = self._harvester
        try:
            done = tick(harvester.settings, harvester.engine, harvester.targets, harvester.now)
        except LockHeld:
            return False
        new_jobs = done.new_jobs + pipeline.make_jobs(harvester)
        if new_jobs > 1:
            self._wake_all()
        return new_jobs > 0

    def _beat(self) -> None:
        """Renew the leases between commits, and note the worker, until it has ended."""
        while True:
            try:
                self._unless_away(self._beat_once)
            except Exception:  # without the thread, no lease would be renewed any more
                log.exception("The leases were not renewed")
            if self._has_ended.wait(_BEAT_SECONDS):
                return

    def _beat_once(self) -> None:
        held = self._held.all()
        for job_id in repeated(lambda: self._renew(held)):
            if slice_end := self._slices.get(job_id):
                slice_end.end()
        if held:
            # In a transaction of its own: the coordinator locks the run before its jobs.
            repeated(lambda: self._note_runs({each.run_id for each in held}))

    def _renew(self, held: Sequence[Claim]) -> set[int]:
        """Renew the leases of these jobs; return the numbers of the jobs that are to end or are lost."""
        with self._harvester.writing() as session:
            lost = {each.job_id for each in claims.renew(session, held)}
            workers.note(session, self._process, [each.job_id for each in held], is_ending=self._ends)
            return claims.to_end(session, held) | lost

    def _note_runs(self, run_ids: Collection[int | None]) -> None:
        alive = update(HarvestRun).where(HarvestRun.run_id.in_(run_ids)).values(heartbeat_at=self._harvester.now())
        with self._harvester.writing() as session:
            session.execute(alive)

    def _forget(self) -> None:
        self._harvester.write(workers.forget, self._process.name)

    def _unless_away(self, call: Callable[[], None]) -> None:
        try:
            call()
        except DatabaseError as error:
            log.warning("%s", error)


# -- the life of a job


@frozen
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
    began, cpu_began = time.monotonic(), _cpu_seconds()
    try:
        performed = _performed(context, is_alone)
    finally:
        # Nothing more is written for it but its end.
        held.remove(context.claim)
    # Jobs at the same time share the seconds of the processor evenly; the memory is the most that the process has had.
    cpu_seconds = (_cpu_seconds() - cpu_began) / (len(held.all()) + 1)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    used = Used(time.monotonic() - began, cpu_seconds, memory)
    attempts, is_outage = context.claim.attempts, performed.is_outage
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
            state = claims.end_slice(session, claim, used, _time_to_take_requests(session, claim))
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


def _time_to_take_requests(session: Session, claim: Claim) -> timedelta:
    """The time before a job is claimed again: a coordinator takes requests for its sites while no worker has it.

    A request for a site that a person stopped in this run waits for the next run.
    """
    if claim.kind != JobKind.HARVEST_SITE or claim.run_id is None or not taking.is_waiting(session):
        return timedelta()
    sites = SiteWork.read(claim.work).sites.keys() - taken_stops(session, claim.run_id).sites
    return _REQUEST_TIME if taking.is_waiting(session, sites) else timedelta()


def _cpu_seconds() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
