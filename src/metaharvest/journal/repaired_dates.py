"""Moves dates in the future, left by a wrong clock, to today, so that nothing waits for them."""

from __future__ import annotations

from datetime import date, datetime, timedelta

from sqlalchemy import Table, func, select, update
from sqlalchemy.orm import Session

from metaharvest.catalogue.change_feed import repair_times
from metaharvest.database.models import IS_REAL, Base, HarvestRun, HarvestSiteRun
from metaharvest.database.worker_models import Job
from metaharvest.journal.totals import move_totals
from metaharvest.ledger.rows import move_dates
from metaharvest.model import HARVESTED
from metaharvest.sites.registry import read_sites_harvested_after, set_next_harvest

_GRACE = timedelta(days=1)
"""Two machines need not agree on the day."""

_DATES = {
    "problems": ("site_problem", ("first_seen", "last_seen", "ended_on")),
    "log rows": ("harvest_log", ("harvest_date",)),
    "runs": ("harvest_run", ("harvest_date",)),
}
_TIMES = {
    "log rows": ("harvest_log", ("logged_at",)),
    "runs": ("harvest_run", ("started_at", "ended_at", "heartbeat_at")),
    "site runs": ("harvest_site_run", ("started_at", "ended_at")),
    "jobs": (Job.__tablename__, ("not_before", "lease_until", "ended_at")),
}


def repair_dates(session: Session, now: datetime, today: date) -> dict[str, int]:
    """Move dates and times after tomorrow to today; return the number of changed rows of each kind.

    Sites whose last harvest lies in the future are due at once. A next date in the future stays if the last is past.
    """
    documents = max(move_dates(session, today + _GRACE, today), repair_times(session, now + _GRACE, now))
    repaired = {"sites": _repair_sites(session, today), "documents": documents}
    for values, limit, value in ((_DATES, today + _GRACE, today), (_TIMES, now + _GRACE, now)):
        for what, (name, columns) in values.items():
            rows = [_move(session, Base.metadata.tables[name], column, limit, value) for column in columns]
            repaired[what] = max(repaired.get(what, 0), *rows)
    # Workers then harvest the sites that are due today.
    _move(session, Base.metadata.tables[HarvestRun.__tablename__], "due_sites_of", today + _GRACE, None)
    if repaired.get("runs") or repaired.get("site runs"):
        move_totals(session, today + _GRACE, today)
    return {what: number for what, number in repaired.items() if number}


def _move(session: Session, table: Table, column: str, limit: date, value: date | None) -> int:
    statement = update(table).where(table.c[column] > limit).values({column: value})
    return session.connection().execute(statement).rowcount


def _repair_sites(session: Session, today: date) -> int:
    """Give the sites the day of their last harvest that is not in the future, and have them due today."""
    sites = read_sites_harvested_after(session, today + _GRACE)
    for site in sites:
        last = session.scalar(
            select(func.max(HarvestRun.harvest_date))
            .join(HarvestSiteRun, HarvestSiteRun.run_id == HarvestRun.run_id)
            .where(
                HarvestSiteRun.site_schedule_id == site.site_id,
                HarvestSiteRun.status.in_(HARVESTED),
                IS_REAL,
                HarvestRun.harvest_date <= today,
            )
        )
        set_next_harvest(session, site.site_id, last, today)
    return len(sites)
