"""A circuit breaker: after several failures in a row a server gets no more requests.

Between the failures it gets the pauses of a retry, so that a server that was away for a moment is not given up for the
night.
"""

from __future__ import annotations

import time

from metaharvest.config.settings import HttpSettings
from metaharvest.fetch.backoff import back_off

FAILURES_IN_A_ROW = 5

_PROBE_SECONDS = 0.25
"""The interval at which callers check the result of a probe."""


class CircuitBreaker:
    """Counts the failures of one server in a row; it opens after `threshold` of them."""

    def __init__(self, threshold: int, http: HttpSettings) -> None:
        self._threshold = threshold
        self._http = http
        self._pause_until = 0.0
        self.is_probed = False
        """True while a probe is under way, a request that tests the server: the others wait for its result."""

        self.failures = 0
        self.counted = 0.0
        """The time (time.monotonic) of the last counted failure."""

    @property
    def is_open(self) -> bool:
        """True if the server gets no more requests."""
        return self.failures >= self._threshold

    @property
    def pause(self) -> float:
        """Seconds of pause that the server still has; 0: none."""
        probing = min(_PROBE_SECONDS, self._http.retry_wait_limit) if self.is_probed else 0.0
        return max(probing, self._pause_until - time.monotonic(), 0.0)

    def failed(self) -> None:
        """Count a failure; once open, it stays so."""
        if not self.is_open:
            self.failures += 1
            self.counted = time.monotonic()

    def succeeded(self) -> None:
        """The server is well; once given up, it stays so for this run."""
        if not self.is_open:
            self.failures, self._pause_until = 0, 0.0

    def resume(self, failures: int, failed_before: float, pause: float) -> None:
        """Continue after this number of failures in a row; `failed_before` and `pause` are in seconds."""
        now = time.monotonic()
        self.failures, self.counted, self._pause_until = failures, now - failed_before, now + pause

    def give_pause(self, number: int) -> None:
        """Give the server the pause of the retry number `number` (from 1); shorter pauses are extended."""
        if self._http.retries:
            self._pause_until = max(self._pause_until, time.monotonic() + back_off(number, self._http))
