"""Further tries of one URL within a run, where it failed transiently: whether, and when.

The wait doubles from try to try and is drawn at random below that, so that what failed together does not come back
together; what a server asks for in Retry-After is obeyed. What is tried again in the next run is the ledger's affair.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, NotAsked
from metaharvest.harvest.deadlines import Ending
from metaharvest.model import Finding

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

FAILURES_IN_A_ROW = 5

_EARLY = 0.05
"""Seconds by which an exchange may be broken off before its deadline, as clocks tick."""


def failures_in_a_row(http: HttpSettings) -> int:
    """After so many transient failures in a row a server is asked for no more documents.

    Always more than can meet the same moment: as many as it is asked for at a time, and the one that is begun in the
    place of the first that failed.
    """
    return max(FAILURES_IN_A_ROW, http.connections_per_host + 2)


def pause(number: int, http: HttpSettings) -> float:
    """Seconds to wait after the failure number `number` in a row (from 1): full jitter below a doubling bound."""
    return random.uniform(0.0, min(http.retry_wait_limit, http.retry_wait * 2.0 ** (number - 1)))


def may_be_waited_for(error: FetchError, http: HttpSettings) -> bool:
    """Whether what the server asks for in Retry-After, if anything, is within what a run waits."""
    return (error.retry_after or 0.0) <= http.retry_wait_limit


@dataclass(frozen=True, slots=True)
class Tries:
    """The tries of one URL that failed: how many, since when (time.monotonic), how many seconds its server took."""

    number: int = 0
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def and_one(self, error: FetchError) -> Tries:
        """One more, that ended with `error`."""
        log.debug("Try %d failed: %s", self.number + 1, error)
        return replace(self, number=self.number + 1, seconds=self.seconds + (error.seconds or 0.0))

    def wait(self, error: FetchError, http: HttpSettings, deadline: float) -> float | None:
        """Seconds until the next try; None: there is none in this run.

        What has taken its server as long as one try may (`deadline`, in seconds) is not asked for again.
        """
        if not error.transient or self.number > http.retries or self.seconds + _EARLY >= deadline:
            return None
        return max(error.retry_after or 0.0, pause(self.number, http)) if may_be_waited_for(error, http) else None

    def findings(self, error: FetchError, http: HttpSettings) -> tuple[Finding, ...]:
        """What the last of them found, which also says how often it was tried and over how long."""
        first, *others = error.findings
        message = first.message
        if self.number > 1:
            message += f" It was tried {self.number} times over {time.monotonic() - self.began:.1f} seconds."
        if not may_be_waited_for(error, http):
            message += f" The server wants to be left alone for {error.retry_after:,.0f} seconds (Retry-After)."
        return replace(first, message=message), *others


def in_tries(fetch: Callable[[], Answer], http: HttpSettings, deadline: float, ending: Ending) -> Answer:
    """What `fetch` brings, after as many tries as it takes and the settings allow, waiting in between.

    Raises the last FetchError. A signal, or a deadline, ends the waiting.
    """
    tries = Tries()
    failure: FetchError | None = None
    while True:
        try:
            return fetch()
        except NotAsked as error:
            failure = failure or error
            wait = error.retry_after if may_be_waited_for(error, http) else None
        except FetchError as error:
            tries = tries.and_one(error)
            wait = tries.wait(error, http, deadline)
            findings = tries.findings(error, http)
            failure = FetchError(
                *findings, transient=error.transient, seconds=tries.seconds, retry_after=error.retry_after
            )
        if wait is not None:
            ending.wait(wait)
        if wait is None or ending.why():
            raise failure
