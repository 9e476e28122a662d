"""Limits of rates: how often one client may ask for something, counted in this process."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable

_MOST_CLIENTS = 10_000


class RateLimit:
    """At most `most` requests of a client within `seconds`; used by several threads."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
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
