"""The sites that are due, and their next dates. Pure functions: `today` is a date in the harvester's time zone.

The rules are the same as in the original Harvester: a site is due if its next date is today or past, and the next date
is today plus the frequency. A month is a calendar month; the original counted 30 days.
"""

from __future__ import annotations

import calendar
from datetime import date, timedelta

from metaharvest.model import Site, Unit


def is_due(site: Site, today: date) -> bool:
    """True if `site` should be harvested today; a site without any date was never harvested, and is due now."""
    since = due_since(site)
    return since <= today if since else site.last_harvest is None


def due_since(site: Site) -> date | None:
    """The day on which `site` became or becomes due: its next date, or one frequency after its last harvest.

    None if it was never harvested, or is due after year 9999.
    """
    if site.next_harvest is not None:
        return site.next_harvest
    try:
        return next_harvest(site, site.last_harvest) if site.last_harvest else None
    except ValueError:
        return None


def next_harvest(site: Site, today: date) -> date:
    """The date of the harvest after today's.

    Months keep the day that the site was set for (`day_of_month`): 31 January, 28 February, 31 March. A harvest on
    another day (a night was missed, or the site was asked for by name) does not move that day: of the possible dates,
    the one nearest to today plus the frequency is taken. Raises ValueError if it would be later than year 9999.
    """
    try:
        if site.unit is Unit.DAYS:
            return today + timedelta(days=site.frequency)
        if site.unit is Unit.WEEKS:
            return today + timedelta(weeks=site.frequency)
        return _nearest(set_day(site) or today.day, _add_months(today, site.frequency))
    except OverflowError as error:
        raise ValueError(f"the next harvest would be after the year {date.max.year}") from error


def set_day(site: Site) -> int | None:
    """The day of the month that a monthly site was set for.

    `day_of_month` counts only while the next date agrees with it. If the next date was changed, the site is now set for
    the day of that date.
    """
    scheduled = site.next_harvest or site.last_harvest
    if scheduled is None:
        return site.day_of_month
    if site.day_of_month is not None and _on_day(scheduled.year, scheduled.month, site.day_of_month) == scheduled:
        return site.day_of_month
    return scheduled.day


def _nearest(day: int, wanted: date) -> date:
    months = [_add_months(wanted.replace(day=1), offset) for offset in (-1, 0, 1)]
    candidates = [_on_day(month.year, month.month, day) for month in months]
    return min(candidates, key=lambda candidate: (abs((candidate - wanted).days), candidate))


def _on_day(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, calendar.monthrange(year, month)[1]))


def _add_months(start: date, months: int) -> date:
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= year <= date.max.year:
        raise OverflowError
    return _on_day(year, month + 1, start.day)
