"""The hosts that this process holds, where several processes harvest at a time.

A process sends requests to a host only while it holds the host: so the limit of simultaneous requests, and the pauses,
hold over all processes, and a request needs no question to the database. The process gives a host back when it has no
request for it for a moment, or when another process has waited for a few seconds. The next holder learns the trouble of
the host's servers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from enum import Enum
from math import inf
from typing import Protocol, TypeVar

from metaharvest.errors import DatabaseError
from metaharvest.fetch.health import HostHealth
from metaharvest.fetch.limits import Waiting
from metaharvest.model import ServerTrouble
from metaharvest.model.values import frozen

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class HostLeases(Protocol):
    """The leases of hosts in a database that all processes share. Calls may block, and raise DatabaseError."""

    seconds: float
    """A lease ends this time after its last renewal."""

    def take(self, host: str) -> Sequence[ServerTrouble] | None:
        """Take the lease, and return the trouble of the host's servers; None if another process has it."""

    def renew(self, hosts: Collection[str]) -> Mapping[str, bool]:
        """Renew the leases. Returns the hosts that are still held, with True if another process waits for the host."""

    def note(self, host: str, troubles: Sequence[ServerTrouble]) -> None:
        """Write the trouble of the servers of a held host."""

    def give_back(self, host: str, troubles: Sequence[ServerTrouble]) -> None:
        """Let another process take a held host."""

    def delete_old(self) -> None:
        """Delete what no process needs any more."""


@frozen
class Times:
    """The times of a process that holds hosts, in seconds; all of them are parts of the length of a lease.

    `lease`: no request goes on longer than this after a renewal; the rest is a margin. `turn`: a host is kept for this
    time, even if another process waits. `idle`: a host without a request is given back after this time. `poll`: the
    time between two attempts to take a host. `give_way`: after its turn, the process does not take the host again for
    this time, so that another one does.
    """

    lease: float
    renewal: float
    turn: float
    idle: float
    poll: float
    give_way: float

    @classmethod
    def of(cls, seconds: float) -> Times:
        """The times for leases of this length: for 30 seconds they are 25, 3, 5, 2, 0.5 and 1.5."""
        return cls(seconds * 5 / 6, seconds / 10, seconds / 6, seconds / 15, seconds / 60, seconds / 20)


class Step(Enum):
    """The next step for a host."""

    NONE = "none"
    TAKE = "take"
    GIVE_BACK = "give back"
    FORGET = "forget"


@dataclass(slots=True)
class Host:
    """A host that this process holds, or waits for. Times are by the clock of the event loop.

    `under_way` and `waiting`: the numbers of its requests; `waiters` has a future for each one that waits. `taken`:
    when the process took it. `used`: when its last request ended. `sure_until`: until then nobody else can hold it.
    `next_attempt`: when the process may try to take it. `is_given_way`: another process waits, and this one begins no
    request. `has_changed`: there is trouble to write.
    """

    name: str
    is_held: bool = False
    is_given_way: bool = False
    has_changed: bool = False
    under_way: int = 0
    waiting: int = 0
    taken: float = 0.0
    used: float = 0.0
    sure_until: float = 0.0
    next_attempt: float = 0.0
    waiters: list[asyncio.Future[None]] = field(default_factory=list)
    requests: Waiting = field(default_factory=Waiting)
    lapse: asyncio.TimerHandle | None = None

    def is_open(self, now: float) -> bool:
        """True if a request may begin."""
        return self.is_held and not self.is_given_way and now < self.sure_until

    def take_waiters(self) -> list[asyncio.Future[None]]:
        """The futures of the requests that wait; the caller ends them."""
        found = [each for each in self.waiters if not each.done()]
        self.waiters.clear()
        return found


def next_step(host: Host, now: float, times: Times) -> tuple[Step, float]:
    """The step that is due for the host, and the seconds until one may be."""
    if not host.is_held:
        if not host.waiting:
            return (Step.NONE, inf) if host.under_way else (Step.FORGET, 0.0)
        left = host.next_attempt - now
        # Requests that were aborted because the lease had ended must be gone.
        return (Step.NONE, max(left, times.poll)) if host.under_way or left > 0 else (Step.TAKE, 0.0)
    if host.under_way or (host.waiting and not host.is_given_way):
        return Step.NONE, inf
    left = 0.0 if host.is_given_way else host.used + times.idle - now
    return (Step.NONE, left) if left > 0 else (Step.GIVE_BACK, 0.0)


class HeldHosts:
    """Takes the leases of hosts for the requests of one client, and gives them back; `health` is about its servers.

    A task, and a thread for the database, begin with the first request.
    """

    def __init__(self, leases: HostLeases, health: HostHealth, waiting: Waiting) -> None:
        self._leases = leases
        self._health = health
        self._waiting = waiting
        self._times = Times.of(leases.seconds)
        self._hosts: dict[str, Host] = {}
        self._wake = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="host-leases")
        self._renewed = 0.0
        self._is_closing = False
        health.on_change = self._has_changed

    async def acquire(self, host: str, seconds: float, *, to_the_end: bool = False) -> None:
        """Begin a request when this process holds the host, within these seconds; `to_the_end`: see Waiting.

        Raises WaitedTooLong, and DatabaseError.
        """
        loop = asyncio.get_running_loop()
        its = self._hosts.get(host)
        if its is None:
            its = self._hosts[host] = Host(host)
        if not its.is_open(loop.time()):
            its.waiting += 1
            try:
                async with self._waiting.at_most(seconds, to_the_end=to_the_end):
                    while not its.is_open(loop.time()):
                        its.waiters.append(loop.create_future())
                        self._wake_keeper()
                        await its.waiters[-1]
            finally:
                its.waiting -= 1
        its.under_way += 1

    def release(self, host: str) -> None:
        """The request has ended. The host is given back later, when the caller has noted the answer of the server."""
        its = self._hosts[host]
        its.under_way -= 1
        its.used = asyncio.get_running_loop().time()
        if not its.under_way:
            self._wake.set()

    def while_held(self, host: str) -> AbstractAsyncContextManager[None]:
        """Ends its body, a request, if the lease cannot be renewed in time: then raises WaitedTooLong."""
        its = self._hosts[host]
        return its.requests.at_most(inf if its.is_held else 0)

    async def close(self) -> None:
        """Give all hosts back; no request is under way any more."""
        if self._keeper is None:
            return
        self._is_closing = True
        self._wake.set()
        try:
            await self._keeper
            for host in list(self._hosts.values()):
                if host.is_held:
                    await self._give_back(host)
            await self._call(self._leases.delete_old)
        except DatabaseError as error:  # the leases end by themselves
            log.warning("The leases of hosts were not given back: %s", error)
        finally:
            self._thread.shutdown(wait=False)

    def _has_changed(self, host: str) -> None:
        if its := self._hosts.get(host):
            its.has_changed = True
            self._wake.set()

    def _wake_keeper(self) -> None:
        self._wake.set()
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())
            self._keeper.add_done_callback(self._ended)
        elif self._keeper.done():
            self._keeper.result()

    async def _call(self, call: Callable[..., Answer], *values: object) -> Answer:
        """A call of the leases in the one thread for them."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *values)

    async def _keep(self) -> None:
        """Do what is due for each host. This is the only task that changes which hosts are held."""
        while not self._is_closing:
            self._wake.clear()
            pause = inf
            for host in list(self._hosts.values()):
                try:
                    pause = min(pause, await self._step(host))
                except DatabaseError as error:
                    self._fail(host, error)
            pause = min(pause, await self._renew())
            with suppress(TimeoutError):
                async with asyncio.timeout(None if pause == inf else pause):
                    await self._wake.wait()

    async def _step(self, host: Host) -> float:
        """Do the next step for this host. Returns the seconds until another one may be due."""
        now = asyncio.get_running_loop().time()
        step, pause = next_step(host, now, self._times)
        if step is Step.FORGET:
            del self._hosts[host.name]
            return inf
        if step is Step.TAKE:
            await self._take(host, now)
        elif step is Step.GIVE_BACK:
            await self._give_back(host)
        elif host.has_changed and host.is_held:
            host.has_changed = False
            await self._call(self._leases.note, host.name, self._health.trouble_of(host.name))
        return pause

    async def _take(self, host: Host, now: float) -> None:
        host.next_attempt = now + self._times.poll
        troubles = await self._call(self._leases.take, host.name)
        if troubles is None:
            return
        self._health.replace_trouble(host.name, troubles)
        host.is_held, host.is_given_way, host.has_changed = True, False, False
        host.taken = host.used = asyncio.get_running_loop().time()
        self._is_sure(host, now)

    async def _give_back(self, host: Host) -> None:
        wait = self._times.give_way if host.is_given_way else 0.0
        host.next_attempt = asyncio.get_running_loop().time() + wait
        self._let_go(host)
        await self._call(self._leases.give_back, host.name, self._health.trouble_of(host.name))

    async def _renew(self) -> float:
        """Renew all leases if it is time. Returns the seconds until the next time."""
        now = asyncio.get_running_loop().time()
        held = [host for host in self._hosts.values() if host.is_held]
        if not held:
            return inf
        oldest = min(host.sure_until for host in held) - self._times.lease
        left = max(oldest, self._renewed) + self._times.renewal - now
        if left > 0:
            return left
        self._renewed = now
        try:
            renewed = await self._call(self._leases.renew, [host.name for host in held])
        except DatabaseError as error:
            log.warning("The leases of hosts were not renewed: %s", error)
            return self._times.renewal
        for host in held:
            if not host.is_held:
                continue  # it has lapsed meanwhile
            if host.name not in renewed:
                self._lapsed(host)
                continue
            self._is_sure(host, now)
            if renewed[host.name] and now - host.taken >= self._times.turn:
                host.is_given_way = True
                self._wake.set()
        return self._times.renewal

    def _is_sure(self, host: Host, asked: float) -> None:
        """The lease was taken or renewed by a question that began at `asked`: requests may begin."""
        host.sure_until = asked + self._times.lease
        if host.lapse:
            host.lapse.cancel()
        loop = asyncio.get_running_loop()
        host.lapse = loop.call_at(host.sure_until, self._lapsed, host)
        if host.is_open(loop.time()):
            for waiter in host.take_waiters():
                waiter.set_result(None)

    def _lapsed(self, host: Host) -> None:
        """Another process may hold the host: end its requests."""
        log.warning("The lease of the host %s was lost, and its requests are aborted", host.name)
        self._let_go(host)
        host.requests.end()
        host.requests = Waiting()
        self._wake.set()

    def _let_go(self, host: Host) -> None:
        host.is_held = False
        if host.lapse:
            host.lapse.cancel()
            host.lapse = None

    def _ended(self, keeper: asyncio.Task[None]) -> None:
        if not keeper.cancelled() and (error := keeper.exception()):
            for host in self._hosts.values():
                self._fail(host, error)

    def _fail(self, host: Host, error: BaseException) -> None:
        """The requests that wait for the host get the error. Without any, the log has it."""
        waiters = host.take_waiters()
        if not waiters:
            log.warning("The pauses of %s could not be stored for other workers: %s", host.name, error)
        for waiter in waiters:
            waiter.set_exception(error)
