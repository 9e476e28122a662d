"""The turns and the rate limits of requests."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from threading import Event, Lock
from time import monotonic

from starlette.requests import Request

_HOST_BITS = 64
"""The bits of an IPv6 address that a host chooses by itself: RFC 4291, section 2.5.4."""

_MOST_WAITING = 100
"""Requests that wait at a time, of one address at most half; others are refused at once."""

_MOST_CLIENTS = 10_000
"""The clients whose rates are counted."""


class Busy(Exception):
    """The maximum of lists and documents is being read: the client should try again later."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    client: str
    wake: Callable[[], object]


class Turns:
    """The turns of all requests of a process that read lists or documents, for several threads.

    A bounded number has a turn at a time, of one address at most half. Requests wait in the order in which they came.
    """

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._of_one = max(1, at_once // 2)
        self._under_way = Counter[str]()
        self._waiting: list[_Waiting] = []
        self._lock = Lock()

    @contextmanager
    def turn(self, address: str, seconds: float) -> Iterator[None]:
        """The turn of a request from this address; empty: of any. The thread waits. Raises Busy after this time."""
        has_turn = Event()
        waiting = self._enter(address, has_turn.set)
        try:
            if not has_turn.wait(seconds):
                raise Busy
            yield
        finally:
            self._leave(waiting)

    @asynccontextmanager
    async def turn_without_thread(self, address: str, seconds: float) -> AsyncIterator[None]:
        """The same for a coroutine: no thread waits."""
        loop, has_turn = asyncio.get_running_loop(), asyncio.Event()
        waiting = self._enter(address, lambda: loop.call_soon_threadsafe(has_turn.set))
        try:
            try:
                await asyncio.wait_for(has_turn.wait(), seconds)
            except TimeoutError:
                raise Busy from None
            yield
        finally:
            self._leave(waiting)

    def _enter(self, address: str, wake: Callable[[], object]) -> _Waiting:
        """Take a turn, or wait for it. Raises Busy if too many requests wait."""
        waiting = _Waiting(client_of(address), wake)
        with self._lock:
            self._waiting.append(waiting)
            self._give_turns()
            if waiting in self._waiting and self._is_crowded(waiting.client):
                self._waiting.remove(waiting)
                raise Busy
        return waiting

    def _is_crowded(self, client: str) -> bool:
        of_client = sum(each.client == client for each in self._waiting) if client else 0
        return len(self._waiting) > _MOST_WAITING or of_client > _MOST_WAITING // 2

    def _leave(self, waiting: _Waiting) -> None:
        """End a turn, or the waiting for it."""
        with self._lock:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
                return
            self._under_way[waiting.client] -= 1
            if not self._under_way[waiting.client]:
                del self._under_way[waiting.client]
            self._give_turns()

    def _give_turns(self) -> None:
        for each in list(self._waiting):
            if self._has_room(each.client):
                self._waiting.remove(each)
                self._under_way[each.client] += 1
                # The event loop of a server that ends is closed.
                with suppress(RuntimeError):
                    each.wake()

    def _has_room(self, client: str) -> bool:
        has_own = not client or self._under_way[client] < self._of_one
        return has_own and self._under_way.total() < self._at_once


class RateLimit:
    """At most `most` requests of a client within `seconds`; used by several threads."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()
        self._times: dict[str, deque[float]] = {}

    def seconds_to_wait(self, client: str, most: int | None = None) -> int:
        """Count a request: 0 if it may go on, or the seconds after which the client may come again.

        `most` is another number for this kind of client.
        """
        with self._lock:
            now = self._clock()
            times = self._times.setdefault(client, deque())
            while times and times[0] <= now - self._seconds:
                times.popleft()
            if len(times) >= (self._most if most is None else most):
                return int(times[0] + self._seconds - now) + 1
            times.append(now)
            if len(self._times) > _MOST_CLIENTS:
                self._forget(now)
            return 0

    def _forget(self, now: float) -> None:
        """Forget the clients without a request in the period; if all have one, the first half."""
        kept = {key: times for key, times in self._times.items() if times and times[-1] > now - self._seconds}
        self._times = dict(list(kept.items())[-_MOST_CLIENTS // 2 :])


def address_of(request: Request) -> str:
    """The address of the client; behind a proxy that the settings name, the one that the proxy reports."""
    return request.client.host if request.client else ""


def client_of(address: str) -> str:
    """The client with this address: IPv6 addresses of one network of 64 bits belong to one."""
    try:
        read = ip_address(address)
    except ValueError:
        return address
    if isinstance(read, IPv6Address):
        return str(read.ipv4_mapped or f"{int(read) >> _HOST_BITS:x}::")
    return str(read)
