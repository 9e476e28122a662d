"""Datestamps of OAI-PMH: days, or seconds in UTC.

A harvest goes by the source repository's own clock, as the responseDate shows it, never by ours.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from metaharvest.fetch.backoff import http_date

OVERLAP = timedelta(minutes=5)
"""The time by which a harvest begins before the end of the last one, if datestamps have seconds. It is a day if they
have not, or if the source repository does not say the time of its clock in UTC.
"""

_QUARTER = timedelta(minutes=15)

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?\s*(Z|[+-]\d\d:?\d\d)?)?", re.IGNORECASE)
_PROPER = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?"
)


def moment(text: str) -> datetime | None:
    """A datestamp or responseDate, also with fractions or an offset; None if it is neither. Never raises."""
    found = _STAMP.fullmatch(text.strip())
    if not found:
        return None
    day, time, offset = found[1], found[2] or "00:00:00", found[3] or "Z"
    try:
        return datetime.fromisoformat(f"{day}T{time}{'+00:00' if offset in 'Zz' else offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def has_zone(text: str) -> bool:
    """True if the date has a definite meaning in UTC: it has a Z, or an offset.

    Dates without either: https://github.com/OpenWIS/openwis/issues/294
    """
    found = _STAMP.fullmatch(text.strip())
    return found is not None and found[3] is not None


def is_proper(text: str) -> bool:
    """True if the protocol has datestamps of this form."""
    return _PROPER.fullmatch(text) is not None


def written(when: datetime, *, seconds: bool) -> str:
    """A moment as a datestamp."""
    return f"{when:%Y-%m-%dT%H:%M:%SZ}" if seconds else f"{when:%Y-%m-%d}"


def may_be_a_zone(difference: timedelta) -> bool:
    """True if the difference of two clocks may be that of a time zone: quarters of an hour, 14 hours at most.

    Local time that is written with a Z: https://github.com/DSpace/DSpace/pull/825
    """
    quarters = round(abs(difference) / _QUARTER)
    return 1 <= quarters <= 14 * 4 and abs(abs(difference) - quarters * _QUARTER) <= timedelta(minutes=1)


def ahead_of(shown: str, sent: str) -> timedelta:
    """The time by which a responseDate is ahead of the HTTP header Date beside it; 0 if one of them is not a date."""
    one, other = moment(shown), http_date(sent)
    return one - other if one and other and has_zone(shown) else timedelta(0)


def from_watermark(watermark: str, *, seconds: bool, local: bool) -> str | None:
    """The `from` of a list of changes after `watermark`; None if the watermark is not a date.

    `local`: the source repository counts days by the clock that its responseDate shows (1.0 and 1.1).
    """
    when = moment(watermark[:10] if local else watermark)
    if when is None:
        return None
    try:
        is_sure = seconds and has_zone(watermark)
        return written(when - (OVERLAP if is_sure else timedelta(days=1)), seconds=seconds)
    except OverflowError:
        return None
