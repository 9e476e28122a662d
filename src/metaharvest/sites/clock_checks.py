"""Finds dates that only a wrong clock or a mistyped date can leave.

A run whose clock is decades ahead gives its sites a next date that is decades away, and every later run finds them not
due. The administrator's report, `metaharvest doctor` and the purge of the log use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta

from sqlalchemy import func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import IS_HARVEST, HarvestRun
from metaharvest.model import Site
from metaharvest.model.actions import todo
from metaharvest.sites.due import due_since, next_harvest
from metaharvest.sites.registry import read_sites_harvested_after
from metaharvest.text import some_of

_GRACE = timedelta(days=1)
"""Two machines need not agree on the day, nor two clocks on the minute."""

LONGEST_PAUSE = timedelta(days=31)
"""The longest pause between two runs with a credible clock. A monthly run stays below it."""

REPAIR = todo("dates.repair")

MOST_NAMED = 5
"""The most sites, or runs, that one sentence names."""


def day_before(session: Session, run_id: int, day: date) -> date | None:
    """The newest day before `day` with another run; None if there is none."""
    others = (IS_HARVEST, HarvestRun.run_id != run_id, HarvestRun.harvest_date < day)
    return session.scalar(select(func.max(HarvestRun.harvest_date)).where(*others))


def long_pause(session: Session, run_id: int, day: date) -> str:
    """A sentence if the pause before this run is so long that the clock may be wrong; else empty."""
    before = day_before(session, run_id, day)
    if before is None or day - before <= LONGEST_PAUSE:
        return ""
    return (
        f"The run {run_id} is of {day}, and the run before it was on {before}, {(day - before).days:,} days earlier. "
        "If the harvester was not started in between, all is well. If not, the harvester's clock is wrong: "
        f"correct it, then run {REPAIR}. Old log rows and reports were not deleted; they are deleted once runs "
        "have taken place for a month without such a pause."
    )


def is_steady(session: Session, run_id: int, day: date) -> bool:
    """True if runs took place before this one, and none of the last month followed a long pause.

    A clock that is wrong on a few days leaves such a pause, also if these days are close together.
    """
    later = day
    while (before := day_before(session, run_id, later)) is not None:
        if later - before > LONGEST_PAUSE:
            return False
        if day - before > LONGEST_PAUSE:
            return True
        later = before
    return later < day


def is_too_far(site: Site, today: date) -> bool:
    """True if the next date of the site is later than its own frequency can make it."""
    since = due_since(site)
    try:
        return since is not None and since > next_harvest(site, today) + _GRACE
    except (ValueError, OverflowError):
        return False


def wrong_clock(session: Session, run_id: int | None, now: datetime, today: date) -> Iterator[str]:
    """Sentences about dates that lie in the future, as seen from `now`.

    They name runs before `run_id` (None: all runs), and enabled sites.
    """
    future = [HarvestRun.harvest_date > today + _GRACE, HarvestRun.started_at > now + _GRACE]
    before = () if run_id is None else (HarvestRun.run_id < run_id,)
    runs = session.execute(
        select(HarvestRun.run_id, HarvestRun.harvest_date)
        .where(or_(*future), IS_HARVEST, *before)
        .order_by(HarvestRun.run_id)
    ).all()
    sites = read_sites_harvested_after(session, today + _GRACE)
    names = sorted(site.name for site in sites if isinstance(site, Site) and site.enabled and is_too_far(site, today))
    if runs:
        named = some_of([f"{number} of {day}" for number, day in runs], MOST_NAMED)
        yield f"Runs are dated in the future: {named}. Today is {today}."
    if names:
        named = some_of(names, MOST_NAMED)
        yield f"The dates of the last and next harvest are in the future: {named}. They are not harvested."
    if runs or names:
        yield (
            f"The harvester's clock was wrong, or `run --date` was given a wrong day; or the clock is wrong now: "
            f"it shows {now:%Y-%m-%d %H:%M} UTC. If that is right, {REPAIR} moves all dates that lie in the future to "
            "today. If it is wrong, correct the clock first."
        )
