"""Keeps the totals of sites over weeks, so that the figures of a year need not read each site run.

They are added up again at the end of each run, and when site runs of other days have changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from sqlalchemy import Select, delete, insert, literal, select, true
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import HarvestRun, HarvestSiteRun, SiteTotals
from metaharvest.queries.site_totals import SUMS, Span, runs_between, totals_of_sites


def keep_totals_of_run(session: Session, run_id: int) -> None:
    """Add up the totals of the sites of this run over the days around it."""
    its_own = aliased(HarvestSiteRun)
    days = session.scalars(select(HarvestRun.harvest_date).where(HarvestRun.run_id == run_id)).all()
    keep_totals(session, days, select(its_own.site_schedule_id).where(its_own.run_id == run_id))


def keep_totals(session: Session, days: Iterable[date], sites: Select[int] | None = None) -> None:
    """Add up the totals over the spans of these days; `sites` selects the numbers of the sites, None: all."""
    names = f"site_schedule_id {SUMS} failing last_success".split()
    session.flush()
    for span in {Span.of(day) for day in days}:
        old = delete(SiteTotals).where(SiteTotals.first_day == span.first)
        is_meant = true() if sites is None else HarvestSiteRun.site_schedule_id.in_(sites)
        session.execute(old if sites is None else old.where(SiteTotals.site_schedule_id.in_(sites)))
        runs = runs_between(session, span.first, span.last).values()
        totals = totals_of_sites([number for of_day in runs for number in of_day], is_meant).subquery()
        query = select(literal(span.first), *(totals.c[name] for name in names))
        session.execute(insert(SiteTotals).from_select(["first_day", *names], query))


def move_totals(session: Session, limit: date, today: date) -> None:
    """Add up the totals again, after runs with days behind `limit` got today's date."""
    session.execute(delete(SiteTotals).where(SiteTotals.first_day > today))
    keep_totals(session, [today, limit])
