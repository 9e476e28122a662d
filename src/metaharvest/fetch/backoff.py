"""Further attempts at one URL within a run, if it failed transiently: whether there is one, and when.

The wait doubles from attempt to attempt and is drawn at random below that bound ("full jitter"), so that what failed
together does not come back together. What a server asks for in Retry-After is obeyed. Attempts in later runs are
decided in the ledger.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from metaharvest.errors import FetchError
from metaharvest.model import Finding

if TYPE_CHECKING:  # so that the process that reads long answers does without the settings
    from metaharvest.config.settings import HttpSettings

log = logging.getLogger(__name__)

LONGEST_RETRY_AFTER = 86_400.0
"""Seconds: a server that asks for more is left alone for a day."""

_EARLY = 0.05
"""Seconds by which an exchange may be broken off before its deadline, as clocks tick."""


def back_off(number: int, http: HttpSettings) -> float:
    """Seconds to wait after the failure number `number` in a row (from 1): full jitter below a doubling bound."""
    return random.uniform(0.0, min(http.retry_wait_limit, http.retry_wait * 2.0 ** (number - 1)))


def may_be_waited_for(error: FetchError, http: HttpSettings) -> bool:
    """Whether what the server asks for in Retry-After, if anything, is within what a run waits."""
    return (error.retry_after or 0.0) <= http.retry_wait_limit


@dataclass(frozen=True, slots=True)
class Attempts:
    """The attempts at one URL that failed: how many, since when (time.monotonic), how many seconds its server took."""

    number: int = 0
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0

    def and_one(self, error: FetchError) -> Attempts:
        """One more, that ended with `error`."""
        log.debug("Attempt %d failed: %s", self.number + 1, error)
        return replace(self, number=self.number + 1, seconds=self.seconds + (error.seconds or 0.0))

    def wait(self, error: FetchError, http: HttpSettings, deadline: float) -> float | None:
        """Seconds until the next attempt; None: there is none in this run.

        What has taken its server as long as one attempt may (`deadline`, in seconds) is not asked for again.
        """
        if not error.transient or self.number > http.retries or self.seconds + _EARLY >= deadline:
            return None
        if not may_be_waited_for(error, http):
            return None
        return max(error.retry_after or 0.0, back_off(self.number, http))

    def findings(self, error: FetchError, http: HttpSettings) -> tuple[Finding, ...]:
        """What the last of them found, which also says how often it was tried and over how long."""
        first, *others = error.findings
        message = first.message
        if self.number > 1:
            message += f" It was tried {self.number} times over {time.monotonic() - self.began:.1f} seconds."
        if not may_be_waited_for(error, http):
            message += f" The server wants to be left alone for {error.retry_after:,.0f} seconds (Retry-After)."
        return replace(first, message=message), *others


def seconds_to_wait(retry_after: str, now: datetime) -> float | None:
    """A Retry-After header (RFC 9110, 10.2.3: seconds or a date) in seconds from `now`, a day at most; None: no use.

    `now` is best the server's own, from its Date header: its clock may be wrong.
    """
    if retry_after.isascii() and retry_after.isdigit():
        return min(float(retry_after.lstrip("0")[:9] or 0), LONGEST_RETRY_AFTER)
    then = http_date(retry_after)
    return None if then is None else min(max((then - now).total_seconds(), 0.0), LONGEST_RETRY_AFTER)


def http_date(text: str) -> datetime | None:
    """A date in any of the three forms of RFC 9110, 5.6.7; None where it is none."""
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
