"""How many requests may be under way at a time: to one host, and over all hosts. First come, first served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf


class WaitedTooLong(Exception):
    """What was waited for did not come free in time, or nobody is to wait any more."""


class Waiting:
    """Waits for what is in use, as long as each may wait, and until all waiting is ended."""

    def __init__(self) -> None:
        self._timeouts: set[asyncio.Timeout] = set()
        self._ended = False

    def end(self) -> None:
        """Nobody waits any more: those who do now, and those who would, hear WaitedTooLong."""
        self._ended = True
        now = asyncio.get_running_loop().time()
        for timeout in self._timeouts:
            timeout.reschedule(now)

    @asynccontextmanager
    async def at_most(self, seconds: float) -> AsyncIterator[None]:
        """For the waiting in its body. Raises WaitedTooLong."""
        if self._ended or seconds <= 0:
            raise WaitedTooLong
        try:
            async with asyncio.timeout(None if seconds == inf else seconds) as timeout:
                self._timeouts.add(timeout)
                try:
                    yield
                finally:
                    self._timeouts.discard(timeout)
        except TimeoutError as error:
            raise WaitedTooLong from error


class HostLimiter:
    """At most so many requests to one host at a time, by whichever site; the hosts are told apart by name."""

    def __init__(self, per_host: int, waiting: Waiting) -> None:
        self._per_host = per_host
        self._waiting = waiting
        self._hosts: dict[str, _Host] = {}

    @asynccontextmanager
    async def connection(self, host: str, seconds: float) -> AsyncIterator[None]:
        """Hold one of the host's connections; wait for it so long. Raises WaitedTooLong."""
        entry = self._hosts.setdefault(host, _Host(asyncio.Semaphore(self._per_host)))
        entry.users += 1
        try:
            if entry.semaphore.locked():
                async with self._waiting.at_most(seconds):
                    await entry.semaphore.acquire()
            else:
                await entry.semaphore.acquire()
            try:
                yield
            finally:
                entry.semaphore.release()
        finally:
            entry.users -= 1
            if not entry.users:
                del self._hosts[host]


class _Host:
    """The connections of one host, and how many requests use them or wait for them."""

    def __init__(self, semaphore: asyncio.Semaphore) -> None:
        self.semaphore = semaphore
        self.users = 0
