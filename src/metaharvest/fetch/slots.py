"""The connections that hosts may get at a time: taken, given back, and waited for in the order of arrival."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass


class Slots:
    """So many per host; from any thread. Who waits without a thread leaves word whom to call."""

    def __init__(self, per_host: int) -> None:
        self._per_host = per_host
        self._mutex = threading.Lock()
        self._used: dict[str, int] = {}
        self._waiting: dict[str, deque[Callable[[], None]]] = {}

    def take(self, host: str) -> bool:
        """Take one, if there is one."""
        with self._mutex:
            is_free = self._is_free(host)
            if is_free:
                self._used[host] = self._used.get(host, 0) + 1
            return is_free

    def wait_and_take(self, host: str, patience: float) -> bool:
        """Take one as soon as there is one, within `patience` seconds."""
        until = time.monotonic() + patience
        while not self.take(host):
            called = threading.Event()
            self.join(host, called.set)
            if not called.wait(max(0.0, until - time.monotonic())):
                self._leave(host, called.set)
                return False
        return True

    def release(self, host: str) -> None:
        """Give one back."""
        with self._mutex:
            self._used[host] -= 1
            if not self._used[host]:
                del self._used[host]
        self.call_next(host)

    def join(self, host: str, call: Callable[[], None]) -> None:
        """Have `call` called, once, when there seems to be one to take; it has to call the next if it takes none."""
        with self._mutex:
            if not self._is_free(host):
                self._waiting.setdefault(host, deque()).append(call)
                return
        call()

    def call_next(self, host: str) -> None:
        """Call who has waited longest, if there is one to take."""
        with self._mutex:
            waiting = self._waiting.get(host)
            if not waiting or not self._is_free(host):
                return
            call = waiting.popleft()
            if not waiting:
                del self._waiting[host]
        call()

    def _is_free(self, host: str) -> bool:
        return self._used.get(host, 0) < self._per_host

    def _leave(self, host: str, call: Callable[[], None]) -> None:
        with self._mutex:
            waiting = self._waiting.get(host, deque())
            if call in waiting:
                waiting.remove(call)
                if not waiting:
                    del self._waiting[host]
                return
        # It was called at this very moment: another has to know.
        self.call_next(host)


@dataclass(frozen=True, slots=True)
class Line:
    """Where one waits for a connection to `host`."""

    slots: Slots
    host: str

    def join(self, call: Callable[[], None]) -> None:
        """See Slots.join."""
        self.slots.join(self.host, call)

    def call_next(self) -> None:
        """See Slots.call_next."""
        self.slots.call_next(self.host)
