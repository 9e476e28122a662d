"""Dates that only a wrong clock, or a mistyped date, can have brought about: what they say must wait is not harvested.

A run whose clock is decades ahead gives its sites a next date that is decades away, and every later run finds them not
due. For the administrator's report and for `metaharvest doctor`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestRun
from metaharvest.model import Site
from metaharvest.sites.due import due_since, next_harvest
from metaharvest.sites.registry import read_sites_harvested_after
from metaharvest.text import one_line

_GRACE = timedelta(days=1)
"""Two machines need not agree on the day, nor a clock and the one it is set by on the minute."""

_NAMED = 5


def is_too_far(site: Site, today: date) -> bool:
    """Whether the site is next due later than its own frequency can make it."""
    since = due_since(site)
    try:
        return since is not None and since > next_harvest(site, today) + _GRACE
    except (ValueError, OverflowError):
        return False


def wrong_clock(session: Session, run_id: int | None, now: datetime, today: date) -> Iterator[str]:
    """What a clock that was wrong has left behind, in sentences, as seen from `now`.

    Judged are the run before `run_id` (None: the last run), and the enabled sites whose dates are in the future.
    """
    before = () if run_id is None else (HarvestRun.run_id < run_id,)
    last = session.scalars(select(HarvestRun).where(*before).order_by(HarvestRun.run_id.desc()).limit(1)).first()
    if last is not None and last.started_at > now + _GRACE:
        yield (
            f"Run {last.run_id} began on {last.started_at:%Y-%m-%d %H:%M} UTC, and now it is {now:%Y-%m-%d %H:%M} UTC: "
            "the clock of this machine was wrong then, or is wrong now. See that a time server sets it."
        )
    sites = read_sites_harvested_after(session, today + _GRACE)
    names = sorted(site.name for site in sites if isinstance(site, Site) and site.enabled and is_too_far(site, today))
    if names:
        yield (
            f"The dates of the last and next harvest are in the future: {some_of(names)}. The clock was wrong when "
            "they were harvested. `metaharvest run --force` harvests all sites now, and sets their dates right."
        )


def some_of(texts: Sequence[str]) -> str:
    """The first few of these texts, and how many more there are."""
    more = f" and {len(texts) - _NAMED:,} more" if len(texts) > _NAMED else ""
    return one_line(", ".join(texts[:_NAMED]), 1000) + more
