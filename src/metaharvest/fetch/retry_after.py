"""Reads the Retry-After header (RFC 9110, 10.2.3) and HTTP dates (5.6.7)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_RETRY_AFTER = 86_400.0
"""Seconds: a server that asks for more is left alone for a day."""


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
