"""The times of the daemon's runs: periods, and times of day as clocks show them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo


def next_at(after: datetime, at: Sequence[time], zone: ZoneInfo) -> datetime:
    """The first moment not before `after` at which clocks in `zone` show one of the times `at`, in UTC.

    A time that a clock change skips is moved by the change; one that it repeats counts once.
    """
    day = after.astimezone(zone).date()
    days = [day + timedelta(days=number) for number in range(3)]
    moments = sorted(datetime.combine(each, one, zone).astimezone(UTC) for each in days for one in at)
    return next(moment for moment in moments if moment >= after)


def next_time(began: datetime, now: datetime, period: timedelta, at: Sequence[time], zone: ZoneInfo) -> datetime:
    """The time of the run after the one that began at `began`: whole periods later, and not in the past."""
    if not at:
        return began + period * max(1, -((began - now) // period))
    if len(at) > 1:
        return next_at(max(began + timedelta(minutes=1), now), at, zone)
    days = period // timedelta(days=1)
    local = began.astimezone(zone)
    start = datetime.combine(local.date() + timedelta(days=days), time(0), zone)
    return next_at(max(start.astimezone(UTC), now), at, zone)
