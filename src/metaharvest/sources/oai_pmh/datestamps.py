"""Datestamps of OAI-PMH: days, or seconds in UTC; and windows of them, which can be halved.

A harvest goes by the repository's own clock, never by ours: what it says in its responseDate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from metaharvest.fetch.backoff import http_date

OVERLAP = timedelta(minutes=5)
"""How far before the last harvest the next one begins, where datestamps have seconds; a day where they have not, or
where the repository does not say what its clock shows in UTC."""

_QUARTER = timedelta(minutes=15)

_STAMP = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,]\d+)?\s*(Z|[+-]\d\d:?\d\d)?)?", re.IGNORECASE)
_PROPER = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])(?:T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?"
)
_BEFORE_ALL = datetime(1990, 1, 1, tzinfo=UTC)


def moment(text: str) -> datetime | None:
    """A datestamp or responseDate, also with fractions or an offset; None where it is neither. Raises nothing."""
    found = _STAMP.fullmatch(text.strip())
    if not found:
        return None
    day, time, offset = found[1], found[2] or "00:00:00", found[3] or "Z"
    try:
        return datetime.fromisoformat(f"{day}T{time}{'+00:00' if offset in 'Zz' else offset}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def has_zone(text: str) -> bool:
    """Whether it is a date that says what it means in UTC: with Z, or an offset."""
    found = _STAMP.fullmatch(text.strip())
    return found is not None and found[3] is not None


def is_proper(text: str) -> bool:
    """Whether the protocol has datestamps of this form."""
    return _PROPER.fullmatch(text) is not None


def written(when: datetime, *, seconds: bool) -> str:
    """A moment as a datestamp."""
    return f"{when:%Y-%m-%dT%H:%M:%SZ}" if seconds else f"{when:%Y-%m-%d}"


def may_be_a_zone(difference: timedelta) -> bool:
    """Whether two clocks differ as those of a zone and of UTC do: by quarters of an hour, and 14 hours at the most."""
    quarters = round(abs(difference) / _QUARTER)
    return 1 <= quarters <= 14 * 4 and abs(abs(difference) - quarters * _QUARTER) <= timedelta(minutes=1)


def ahead_of(shown: str, sent: str) -> timedelta:
    """By how much a responseDate is ahead of the HTTP header Date beside it; 0 where one of them is no date."""
    one, other = moment(shown), http_date(sent)
    return one - other if one and other and has_zone(shown) else timedelta(0)


def from_watermark(watermark: str, ahead: timedelta, *, seconds: bool, local: bool) -> str | None:
    """From where on to ask after a list whose first responseDate was `watermark`; None if that is no date.

    `ahead`: by so much the clock that showed it was ahead of another one, by which datestamps may go.
    `local`: the repository counts days by the clock that its responseDate shows (1.0 and 1.1).
    """
    when = moment(watermark[:10] if local else watermark)
    if when is None:
        return None
    try:
        is_sure = seconds and has_zone(watermark)
        return written(when - (OVERLAP if is_sure else timedelta(days=1)) - ahead, seconds=seconds)
    except OverflowError:
        return None


@dataclass(frozen=True, slots=True)
class Window:
    """The datestamps that are asked for, as they are sent, both inclusive; None: no limit."""

    begin: str | None = None
    until: str | None = None

    @property
    def has_seconds(self) -> bool:
        """True if it is sent with seconds."""
        return any("T" in stamp for stamp in (self.begin, self.until) if stamp)

    @property
    def has_days(self) -> bool:
        """True if it is sent without a time of day."""
        return any("T" not in stamp for stamp in (self.begin, self.until) if stamp)

    @property
    def is_empty(self) -> bool:
        """True if it ends before it begins."""
        begin, until = moment(self.begin or ""), moment(self.until or "")
        return begin is not None and until is not None and begin > until

    def arguments(self) -> dict[str, str]:
        """As arguments of a request."""
        named = {"from": self.begin, "until": self.until}
        return {name: stamp for name, stamp in named.items() if stamp}

    def in_days(self) -> Window:
        """The same in whole days."""
        return Window(self.begin and self.begin[:10], self.until and self.until[:10])

    def is_far(self, datestamp: str) -> bool:
        """True if it is days before this, or behind: more than clocks and granularities may differ by."""
        when, begin, until = moment(datestamp), moment(self.begin or ""), moment(self.until or "")
        if when is None:
            return False
        days = timedelta(days=2)
        return (begin is not None and begin - when > days) or (until is not None and when - until > days)

    def halves(self, earliest: str, latest: str, *, seconds: bool) -> tuple[Window, Window] | None:
        """Two windows in its place; None if it is two days, or two seconds, or less.

        The second begins with the day or second that the first ends with: some repositories take the end of a window
        for its first moment. `earliest` and `latest` say where records are to be expected if it has no limits; those
        stay open.
        """
        unit = timedelta(seconds=1) if seconds else timedelta(days=1)
        until = moment(self.until or latest)
        begin = moment(self.begin or earliest) or _BEFORE_ALL
        if until is not None and self == Window() and begin > until:
            begin = _BEFORE_ALL
        units = 0 if until is None else (_floor(until, seconds=seconds) - _floor(begin, seconds=seconds)) // unit
        if units < 2:
            return None
        middle = written(_floor(begin, seconds=seconds) + units // 2 * unit, seconds=seconds)
        return Window(self.begin, middle), Window(middle, self.until)


def _floor(when: datetime, *, seconds: bool) -> datetime:
    """The second, or the day, that the moment is in."""
    return when.replace(microsecond=0) if seconds else when.replace(hour=0, minute=0, second=0, microsecond=0)


def window(begin: str | None, until: str | None, watermark: str | None, *, seconds: bool) -> Window:
    """What to ask for: the site's own limits, and not what is older than the `watermark` (see from_watermark).

    Both ends of a window have one granularity: days, if one of them has.
    """
    limits = [stamp for stamp in (begin, watermark) if stamp]
    latest = max(limits, key=lambda stamp: moment(stamp) or _BEFORE_ALL, default=None)
    whole = Window(latest, until)
    in_days = not seconds or any("T" not in stamp for stamp in (latest, until) if stamp)
    return whole.in_days() if in_days else whole
