"""Parallel tasks, of which the first error ends all and is raised itself; and calls in threads."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from math import inf
from typing import Protocol, TypeVar

from metaharvest.errors import DatabaseError, RunLost

Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


class Place(Protocol):
    """A place that only some tasks may hold at a time, such as a semaphore."""

    async def acquire(self) -> object:
        """Wait for it."""

    def release(self) -> None:
        """Let others have it."""


async def in_thread(call: Callable[[], Answer]) -> Answer:
    """Call `call` in a thread. If the caller is cancelled, it waits for the thread, which may use open resources."""
    running = asyncio.ensure_future(asyncio.to_thread(call))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled() and (error := running.exception()):
            log.debug("What was cancelled had failed already", exc_info=error)
        raise


@asynccontextmanager
async def side_by_side() -> AsyncIterator[asyncio.TaskGroup]:
    """A task group. Of several errors, the one that ends the whole run is raised, otherwise the first."""
    try:
        async with asyncio.TaskGroup() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        errors = list(_leaves(group))
        gravest = next((error for error in errors if isinstance(error, DatabaseError | RunLost)), errors[0])
        raise gravest from gravest.__cause__


@asynccontextmanager
async def in_background(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Do this work beside the body; it is cancelled at the end of the body, and an error of it is only logged."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        [ended] = await asyncio.gather(task, return_exceptions=True)
        if isinstance(ended, Exception):
            log.error("The work in the background failed", exc_info=ended)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


@asynccontextmanager
async def held_for(semaphore: Place, seconds: float) -> AsyncIterator[None]:
    """Hold `semaphore` for the body, for `seconds` at most."""
    await semaphore.acquire()
    is_held = True

    def release() -> None:
        nonlocal is_held
        if is_held:
            is_held = False
            semaphore.release()

    timer = None if seconds == inf else asyncio.get_running_loop().call_later(seconds, release)
    try:
        yield
    finally:
        if timer is not None:
            timer.cancel()
        release()
