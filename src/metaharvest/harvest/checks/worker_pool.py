"""Worker processes that check documents: started when they are needed, ended when a call takes too long.

pebble's pool ends only the worker with the long call, and keeps the others.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures.process import BrokenProcessPool
from math import inf
from typing import TYPE_CHECKING, TypeVar

from metaharvest.harvest.limits import CheckLimits
from metaharvest.model import ListedDocument, Verdict
from metaharvest.validation.processing_policy import ProcessingPolicy
from metaharvest.validation.worker_processes import WorkerContext

if TYPE_CHECKING:
    from pebble import ProcessPool

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

Task = tuple[bytes, ListedDocument, ProcessingPolicy]
"""A document's bytes, its entry in the list, and its processing policy."""

_LOOK_SECONDS = 0.5
"""Seconds between two looks at the pool while an answer is awaited: a broken pool may leave it unanswered."""

_QUIET = "ignore::UserWarning:multiprocessing.resource_tracker"
_UNDISTURBED_SECONDS = 0.5
_undisturbed = threading.Lock()
"""Held while a pool starts: the interval between switches of threads is one for the whole process."""

_BROKEN_POOLS = 3
"""After this number of useless pools in a row, no other pool is started."""


class TookTooLong(Exception):
    """A call reached its time limit; its worker was ended."""


class WorkerLost(Exception):
    """The worker ended, or did not answer, before the call was done."""


class TransformTookTooLong(WorkerLost):
    """The worker ended itself, as a site's filters or normalising took too long."""


class OutOfMemory(WorkerLost):
    """The worker ended because it reached its memory limit."""


class NoWorkers(Exception):
    """No worker could be started."""


class WorkerPool:
    """Worker processes of one event loop, each with a limit of seconds for a call and of bytes of memory; 0: no limit.

    `other_document_types`: see ValidationSettings. `meanwhile` is called in a thread while the workers start.
    """

    def __init__(
        self,
        number: int,
        other_document_types: tuple[str, ...],
        seconds: float,
        limits: CheckLimits,
        meanwhile: Callable[[], None] = lambda: None,
        memory_bytes: int = 0,
    ) -> None:
        self._memory_bytes = memory_bytes
        self.number = number
        self._types = other_document_types
        self._seconds = seconds
        self._limits = limits
        self._meanwhile = meanwhile
        self._pool: ProcessPool | None = None
        self._starting: asyncio.Task[None] | None = None
        self._broken = 0
        self.is_up = False

    def start_soon(self) -> None:
        """Start the workers, without waiting for them."""
        if self._starting is None and self._broken < _BROKEN_POOLS:
            self._starting = asyncio.create_task(self._start())

    async def check_all(self, tasks: Sequence[Task]) -> list[Verdict]:
        """The verdicts on these documents, checked by one worker. Raises TookTooLong, WorkerLost, NoWorkers.

        What the checks themselves raise comes out as RuntimeError, with the worker's traceback as a note.
        """
        self.start_soon()
        if self._starting is None:
            raise NoWorkers
        await asyncio.shield(self._starting)
        if self._pool is None:
            raise NoWorkers
        verdicts = await self._call(tasks)
        for verdict in verdicts:
            if isinstance(verdict, str):
                error = RuntimeError(verdict.strip().splitlines()[-1])
                error.add_note(verdict)
                raise error
        return [verdict for verdict in verdicts if isinstance(verdict, Verdict)]

    async def close(self) -> None:
        """End the workers, without waiting for their results."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
            if pool := self._taken_away():
                # The last worker ends a little later: there is no need to wait for it.
                threading.Thread(target=pool.join, name="workers").start()

    async def _start(self) -> None:
        """Wait until the workers are up; if they fail to start, the next call finds out."""
        try:
            longest = 2 * self._seconds + self._limits.patience if self._seconds else 0.0
            given = self._types, longest, self._limits.transform_seconds, self._memory_bytes
            self._pool = await asyncio.to_thread(_started, self.number, given)
            asyncio.get_running_loop().run_in_executor(None, self._meanwhile)
            await self._call([])
            self.is_up = True
        except (WorkerLost, TookTooLong) as error:
            log.debug("Worker processes did not come up: %s", error)
        except RuntimeError as error:  # there is no memory for a thread
            log.warning("Worker processes could not be started: %s", error)
            await self._give_up(self._pool)

    async def _call(self, tasks: Sequence[Task]) -> list[Verdict | str]:
        from pebble import ProcessExpired

        from metaharvest.validation import worker

        pool = self._pool
        began = time.monotonic()
        try:
            if pool is None:
                raise BrokenProcessPool("no process could be started")
            future = pool.schedule(worker.check_all, (list(tasks),), timeout=self._seconds or None)
            verdicts: list[Verdict | str] = await self._answer(pool, asyncio.wrap_future(future))
        except ProcessExpired as error:
            kinds = {
                -worker.TOO_COSTLY: TransformTookTooLong,
                worker.OUT_OF_MEMORY: OutOfMemory,
                -signal.SIGABRT: OutOfMemory,  # a library that does not go on without memory
            }
            raise kinds.get(error.exitcode, WorkerLost)(str(error)) from error
        except TimeoutError as error:
            # The pool measures by the machine's clock, which may have been set meanwhile.
            raise (TookTooLong if time.monotonic() - began >= self._seconds else WorkerLost) from error
        except (BrokenProcessPool, RuntimeError, OSError) as error:
            await self._give_up(pool)
            raise WorkerLost(str(error)) from error
        self._broken = 0
        return verdicts

    async def _answer(self, pool: ProcessPool, answer: asyncio.Future[Answer]) -> Answer:
        """Wait for an answer. Raises BrokenProcessPool if none can come any more, or none comes for too long."""
        # A call may have to wait for the one before it.
        longest = 2 * self._seconds + self._limits.patience if self._seconds else inf
        began = time.monotonic()
        try:
            while not (await asyncio.wait([answer], timeout=_LOOK_SECONDS))[0]:
                if not pool.active or time.monotonic() - began > longest:
                    raise BrokenProcessPool("it does not answer")
            return await answer
        finally:
            answer.cancel()

    async def _give_up(self, pool: ProcessPool | None) -> None:
        """Give this pool up; the next call starts another, unless too many have failed."""
        if pool is not self._pool:
            return
        self._broken += 1
        if self._broken == _BROKEN_POOLS:
            log.warning("The run's own process checks documents, as worker processes cannot be started")
        if pool := self._taken_away():
            await asyncio.to_thread(pool.join)

    def _taken_away(self) -> ProcessPool | None:
        """Stop the pool, if there is one, and return it; the next call starts another."""
        pool, self._pool, self._starting, self.is_up = self._pool, None, None, False
        if pool is not None:
            pool.stop()  # type: ignore[no-untyped-call]
        return pool


def _started(number: int, given: tuple[tuple[str, ...], float, float, int]) -> ProcessPool | None:
    """A pool with started processes and these settings; None if the system allows none."""
    from pebble import ProcessPool

    from metaharvest.validation import worker

    pool = ProcessPool(max_workers=number, initializer=worker.start, initargs=given, context=WorkerContext())
    # The standard library's resource tracker would warn of semaphores that a killed run has left. It removes them.
    if _QUIET not in sys.warnoptions:
        sys.warnoptions.append(_QUIET)
    # If the run is killed after a process was started and before it was sent its first bytes, that process prints a
    # traceback. No other thread of the run may be scheduled meanwhile, so that this takes as little time as possible.
    with _undisturbed:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(_UNDISTURBED_SECONDS)
        try:
            return pool if pool.active else None
        except Exception as error:  # noqa: BLE001 - for any reason, the run's own process checks then
            log.warning("Worker processes could not be started: %s", error)
            _end(pool)
            return None
        finally:
            sys.setswitchinterval(interval)


def _end(pool: ProcessPool) -> None:
    """End the processes and threads of a pool of which only a part could be started: they would keep their memory."""
    pool.stop()  # type: ignore[no-untyped-call]
    try:
        pool.join()
    except Exception as error:  # noqa: BLE001 - they end with the run
        log.warning("Worker processes could not be ended: %s", error)
