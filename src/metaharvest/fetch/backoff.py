"""The one policy for further attempts within a run at what failed transiently: whether there is one, and when.

It holds for documents, lists and records (`sources/attempts.py`) and for questions to a target (`targets/http.py`). The
wait doubles from attempt to attempt and is drawn at random below that bound ("full jitter"), so that what failed
together does not come back together. A server's Retry-After is obeyed. The ledger decides about attempts in later runs.
"""

from __future__ import annotations

import logging
import random
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from metaharvest.errors import FetchError, NotAsked
from metaharvest.model import Finding

if TYPE_CHECKING:  # so that the process that reads long answers needs no settings
    from metaharvest.config.settings import HttpSettings

log = logging.getLogger(__name__)

LONGEST_RETRY_AFTER = 86_400.0
"""Seconds: a server that asks for a longer pause gets a day."""

_EARLY = 0.05
"""Seconds by which an exchange may be broken off before its deadline, as clocks tick."""


def back_off(number: int, http: HttpSettings) -> float:
    """Seconds to wait after the failure number `number` in a row (from 1): full jitter below a doubling bound."""
    return random.uniform(0.0, min(http.retry_wait_limit, http.retry_wait * 2.0 ** (number - 1)))


def wait_after(failures: int, http: HttpSettings, asked: float | None = None) -> float | None:
    """Seconds until the next attempt, after this number of failures in a row; None: there is none in this run.

    `asked`: the seconds that the server asks for in Retry-After, if it does.
    """
    if failures > http.retries or (asked or 0.0) > http.retry_wait_limit:
        return None
    return max(asked or 0.0, back_off(failures, http))


@dataclass(slots=True)
class Attempts:
    """The attempts at one URL, each of which may take `deadline` seconds.

    `failure` is the last one, with the number of attempts in its message and the seconds that all of them took. Before
    the first request it is NotAsked.
    """

    http: HttpSettings
    deadline: float
    number: int = 0
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    failure: FetchError | None = None

    def after(self, error: FetchError) -> tuple[FetchError, float | None]:
        """The failure now that an attempt ended with `error`, and seconds until the next; None: there is none.

        A URL that has taken its server as long as one attempt may is not requested again in this run.
        """
        log.debug("Attempt %d failed: %s", self.number + 1, error)
        if isinstance(error, NotAsked):
            self.failure = self.failure if self.number and self.failure else error
            is_short = (error.retry_after or 0.0) <= self.http.retry_wait_limit
            return self.failure, error.retry_after if is_short else None
        self.number += 1
        self.seconds += error.seconds or 0.0
        self.failure = type(error)(
            *self._findings(error),
            transient=error.transient,
            seconds=None if error.seconds is None else self.seconds,
            retry_after=error.retry_after,
            counted=error.counted,
            status=error.status,
            page=error.page,
        )
        if not error.transient or self.seconds + _EARLY >= self.deadline:
            return self.failure, None
        return self.failure, wait_after(self.number, self.http, error.retry_after)

    def _findings(self, error: FetchError) -> tuple[Finding, ...]:
        """The findings of the last attempt, with the number of attempts and their total time."""
        first, *others = error.findings
        message = first.message
        if self.number > 1:
            message += f" It was tried {self.number} times over {time.monotonic() - self.began:.1f} seconds."
        if (error.retry_after or 0.0) > self.http.retry_wait_limit:
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


def seconds_wanted(retry_after: str, date: str) -> float | None:
    """seconds_to_wait() of an answer with these headers. Without a date, the clock of this machine counts."""
    return seconds_to_wait(retry_after, http_date(date) or datetime.now(UTC))


def http_date(text: str) -> datetime | None:
    """A date in any of the three forms of RFC 9110, 5.6.7; None if it is none."""
    from email.utils import parsedate_to_datetime  # the process that reads answers needs no dates: 1 MB

    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
