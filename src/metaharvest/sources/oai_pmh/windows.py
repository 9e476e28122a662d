"""Windows: ranges of datestamps, the unit of progress of a sweep. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

from metaharvest.model.values import frozen
from metaharvest.sources.oai_pmh.datestamps import moment, written

_BEFORE_ALL = datetime(1990, 1, 1, tzinfo=UTC)


@frozen
class Window:
    """The requested datestamps, as they are sent, both inclusive; None: no limit.

    `one_by_one`: its identifiers are listed, and its records are fetched individually.
    """

    begin: str | None = None
    until: str | None = None
    one_by_one: bool = False

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

    def __str__(self) -> str:
        """The window as messages name it."""
        return f"{self.begin or 'the first record'} to {self.until or 'today'}"

    def arguments(self) -> dict[str, str]:
        """The window as arguments of a request."""
        named = {"from": self.begin, "until": self.until}
        return {name: stamp for name, stamp in named.items() if stamp}

    def in_days(self) -> Window:
        """The same in whole days."""
        return replace(self, begin=self.begin and self.begin[:10], until=self.until and self.until[:10])

    def contains(self, other: Window) -> bool:
        """True if all of the other window is within this one."""
        begin, until = moment(self.begin or ""), moment(self.until or "")
        others_begin, others_until = moment(other.begin or ""), moment(other.until or "")
        is_after = begin is None or (others_begin is not None and others_begin >= begin)
        return is_after and (until is None or (others_until is not None and others_until <= until))

    def is_far(self, datestamp: str) -> bool:
        """True if the datestamp is outside by more than two days. Clocks and granularities differ by less."""
        when, begin, until = moment(datestamp), moment(self.begin or ""), moment(self.until or "")
        if when is None:
            return False
        days = timedelta(days=2)
        return (begin is not None and begin - when > days) or (until is not None and when - until > days)

    def halves(self, earliest: str, latest: str, *, seconds: bool) -> tuple[Window, Window] | None:
        """Two windows in its place; None if it has at most two days, or two seconds.

        The second one begins with the day or second that the first one ends with: some source repositories take the
        end of a window for its first moment (https://github.com/ilri/DSpace/issues/63). A window without a limit is
        divided as if it had the limits `earliest` and `latest`. The first half begins as the window does, and the
        second one ends as it does.
        """
        seconds = seconds and not self.has_days
        unit = timedelta(seconds=1) if seconds else timedelta(days=1)
        until = moment(self.until or latest)
        begin = moment(self.begin or earliest) or _BEFORE_ALL
        if until is not None and not (self.begin or self.until) and begin > until:
            begin = _BEFORE_ALL
        units = 0 if until is None else (_floor(until, seconds=seconds) - _floor(begin, seconds=seconds)) // unit
        if units < 2:
            return None
        middle = written(_floor(begin, seconds=seconds) + units // 2 * unit, seconds=seconds)
        return replace(self, until=middle), replace(self, begin=middle)


def joined(windows: Sequence[Window]) -> Window:
    """One window in place of these, and of the time between them; its records are fetched individually."""
    begins, untils = [each.begin for each in windows], [each.until for each in windows]
    begin = None if None in begins else min(filter(None, begins))
    return Window(begin, None if None in untils else max(filter(None, untils)), one_by_one=True)


def window(begin: str | None, until: str | None, since: str | None, *, seconds: bool) -> Window:
    """The window of a sweep: within the site's own limits, and from `since` on.

    Both ends of a window have one granularity: days, if one of them has.
    """
    limits = [stamp for stamp in (begin, since) if stamp]
    latest = max(limits, key=lambda stamp: moment(stamp) or _BEFORE_ALL, default=None)
    whole = Window(latest, until)
    in_days = not seconds or any("T" not in stamp for stamp in (latest, until) if stamp)
    return whole.in_days() if in_days else whole


def _floor(when: datetime, *, seconds: bool) -> datetime:
    """The second, or the day, that the moment is in."""
    return when.replace(microsecond=0) if seconds else when.replace(hour=0, minute=0, second=0, microsecond=0)


class Step(Enum):
    """The fate of a window after a page of it failed."""

    REPEAT = auto()
    """The window begins again."""
    HALVE = auto()
    """Two windows take its place."""
    ONE_BY_ONE = auto()
    """Its identifiers are listed, and its records are fetched individually."""
    HOLE = auto()
    """The window is left out of this sweep, and each harvest tries it again."""


@frozen
class Failure:
    """A page that failed, and its window."""

    token_refused: bool
    """True if the page failed as its token is refused."""
    is_one_by_one: bool
    """True if the records of the window are fetched individually."""
    has_halves: bool
    """True if the window can be divided: it is not the smallest, and the source repository respects windows."""
    has_few: bool
    """True if the window has few records."""
    may_repeat_smallest: bool
    """True if no token was refused before in this harvest, or the window, one by one, brought new records.

    Tokens may expire while records are fetched individually.
    """


def next_step(failure: Failure) -> Step:
    """The next step for a window after a page of it failed. Pure."""
    if failure.token_refused and failure.may_repeat_smallest and not failure.has_halves:
        return Step.REPEAT
    if failure.has_halves and not failure.has_few:
        return Step.HALVE
    return Step.HOLE if failure.is_one_by_one else Step.ONE_BY_ONE
