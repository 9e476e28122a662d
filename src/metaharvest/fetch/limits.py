"""The limits of simultaneous requests, to one host and over all hosts, and of the memory that documents may take."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager, nullcontext, suppress
from math import inf

from metaharvest.model.values import frozen

BUDGET_BYTES = 64_000_000


class WaitedTooLong(Exception):
    """No place came free in time, or all waiting has ended."""


class Waiting:
    """Waits for a used resource, as long as each caller may wait, and until all waiting is ended."""

    def __init__(self) -> None:
        self._timeouts: set[asyncio.Timeout] = set()
        self._ended = False

    def end(self) -> None:
        """End all waiting: present and future waiters get WaitedTooLong."""
        self._ended = True
        now = asyncio.get_running_loop().time()
        for timeout in self._timeouts:
            with suppress(RuntimeError):  # it has passed in this very moment
                timeout.reschedule(now)

    @asynccontextmanager
    async def at_most(self, seconds: float, *, to_the_end: bool = False) -> AsyncIterator[None]:
        """Limits the waiting in its body; `to_the_end`: end() does not end it. Raises WaitedTooLong."""
        if (self._ended and not to_the_end) or seconds <= 0:
            raise WaitedTooLong
        try:
            async with asyncio.timeout(None if seconds == inf else seconds) as timeout:
                if not to_the_end:
                    self._timeouts.add(timeout)
                try:
                    yield
                finally:
                    self._timeouts.discard(timeout)
        except TimeoutError as error:
            raise WaitedTooLong from error


class FairLimiter:
    """A limited number of places for all users together. No user may hold more places than it leaves free.

    So a user (a site, a host) with a slow server leaves room for others. The user that holds the fewest places comes
    first.
    """

    def __init__(self, number: int, waiting: Waiting) -> None:
        self._free = number
        self._waiting = waiting
        self._held: Counter[Hashable] = Counter()
        self._queue: dict[asyncio.Future[None], Hashable] = {}

    async def acquire(self, user: Hashable, seconds: float) -> None:
        """Take one more place for this user, within this many seconds. Raises WaitedTooLong."""
        if self._may_begin(user):
            self._begin(user)
            return
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue[begun] = user
        try:
            async with self._waiting.at_most(seconds):
                await begun
        except BaseException:
            # It may have begun in the very moment in which the waiting ended.
            if self._queue.pop(begun, None) is None and not begun.cancelled():
                self.release(user)
            raise

    def release(self, user: Hashable) -> None:
        """Give back one place of this user."""
        self._free += 1
        self._held[user] -= 1
        if not self._held[user]:
            del self._held[user]
        self._begin_those_who_may()

    def _may_begin(self, user: Hashable) -> bool:
        return self._held[user] < self._free

    def _begin(self, user: Hashable) -> None:
        self._free -= 1
        self._held[user] += 1

    def _begin_those_who_may(self) -> None:
        while self._queue and self._free:
            begun = self._next()
            if not begun.done() and not self._may_begin(self._queue[begun]):
                return
            user = self._queue.pop(begun)
            if begun.done():  # its waiting has ended, and its task has not run since
                continue
            self._begin(user)
            begun.set_result(None)

    def _next(self) -> asyncio.Future[None]:
        """The waiter whose user holds the fewest places, the first of equals: mostly the first that holds none."""
        found, fewest = next(iter(self._queue)), inf
        for begun, user in self._queue.items():
            held = self._held[user]
            if held < fewest:
                found, fewest = begun, held
            if not held:
                break
        return found


@frozen
class FairPlace:
    """One place of `limiter` for `user`, with the interface of a semaphore."""

    limiter: FairLimiter
    user: Hashable

    async def acquire(self) -> None:
        """Wait for the place without a limit of time."""
        await self.limiter.acquire(self.user, inf)

    def release(self) -> None:
        """Give it back."""
        self.limiter.release(self.user)


class HostLimiter:
    """A limit of simultaneous requests to each host, over all sites; hosts are distinguished by name.

    acquire() waits until another one may begin. First come, first served.
    """

    def __init__(self, per_host: int, waiting: Waiting) -> None:
        self._per_host = per_host
        self._waiting = waiting
        self._hosts: dict[str, asyncio.Semaphore] = {}
        self._users: Counter[str] = Counter()
        """The number of requests to each host that are under way, or wait."""

    async def acquire(self, host: str, seconds: float, *, to_the_end: bool = False) -> None:
        """Begin a request to the host, within these seconds; `to_the_end`: see Waiting. Raises WaitedTooLong."""
        if (semaphore := self._hosts.get(host)) is None:
            semaphore = self._hosts[host] = asyncio.Semaphore(self._per_host)
        self._users[host] += 1
        try:
            is_full = semaphore.locked()
            async with self._waiting.at_most(seconds, to_the_end=to_the_end) if is_full else nullcontext():
                await semaphore.acquire()
        except BaseException:
            self._users[host] -= 1
            raise

    def release(self, host: str) -> None:
        """The request has ended."""
        self._hosts[host].release()
        self._users[host] -= 1
        if not self._users[host]:
            del self._hosts[host], self._users[host]


class MemoryBudget:
    """Counts the bytes of documents that arrive, or wait to be checked and recorded. For one event loop.

    At `limit` bytes, nothing more is begun. Documents that are under way then may continue, up to four times the limit:
    a document that would take more than this gives way to the others.

    Of the bytes of one site, no more than a quarter of `limit` counts for the others: it does not hold them up, however
    large its documents are, and however long their checks take. Of several such sites together, the part that is not
    counted is half of `limit` at most, or the bytes of one of them. Bytes that wait to be recorded count for no site.
    """

    def __init__(self, limit: int = BUDGET_BYTES) -> None:
        self.limit = limit
        self._most = 4 * limit
        self._share = limit // 4
        self._most_uncounted = limit // 2
        self._taken = 0
        self._by_site: Counter[int] = Counter()
        self._uncounted = 0
        self._given_back = asyncio.Event()

    async def room(self, site_id: int = 0) -> None:
        """Wait until another document may be requested, for this site."""
        while not self.has_room(site_id):
            await self._given_back.wait()

    def has_room(self, site_id: int = 0) -> bool:
        """True if another document may be requested, for this site."""
        if not self._uncounted:
            return self._taken < self.limit
        of_others = self._uncounted - self._uncounted_of(site_id)
        if of_others > self._most_uncounted:
            largest = max(self._uncounted_of(each) for each in self._by_site if each != site_id)
            of_others = min(of_others, max(largest, self._most_uncounted))
        counted = self._taken - of_others
        return counted < self.limit and self._taken < self._most

    def take(self, number: int, site_id: int = 0) -> None:
        """This number of bytes arrived, for this site; 0: for none."""
        self._taken += number
        if site_id:
            before = self._by_site[site_id]
            self._by_site[site_id] = after = before + number
            if before > self._share or after > self._share:
                self._uncounted += max(after - self._share, 0) - max(before - self._share, 0)

    def give_back(self, number: int, site_id: int = 0) -> None:
        """This number of bytes was recorded, or dropped."""
        self.take(-number, site_id)
        # The waiters look again, each in its turn; later ones wait for the next time.
        self._given_back.set()
        self._given_back.clear()

    def _uncounted_of(self, site_id: int) -> int:
        taken = self._by_site[site_id]
        return taken - self._share if taken > self._share else 0

    def must_give_way(self, own: int) -> bool:
        """True if an exchange that has taken `own` bytes has to return them, and begin again when there is room.

        The last one that holds any never has to, so that there is always progress.
        """
        return self._taken > self._most and self._taken > own
