"""Totals of all sites in a period, or of each week, month or site in it. Rehearsals do not count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Row, and_, exists, func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import IS_HARVEST, IS_REAL, HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.model import OutcomeKind, SiteRunKind
from metaharvest.queries.failed_sites import FAILED, HARVESTED
from metaharvest.queries.records import columns
from metaharvest.queries.sites import last_names
from metaharvest.queries.trends import failing, seconds_between

_CAME_IN = (OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value)
_ERRORS = "access_error invalid upload_error deferred"
_NUMBERS = f"site_schedule_id kind status inserted updated deleted {_ERRORS} started_at ended_at"


_SiteRunRow = Row[*tuple[Any, ...]]
"""The columns _NUMBERS of a site run, with `run_id` and `harvest_date` of its run."""


class Per(StrEnum):
    """The unit of one row of the figures."""

    WEEK = "week"
    MONTH = "month"
    SITE = "site"


@dataclass(frozen=True, slots=True)
class Figures:
    """Totals from `first_day` to `last_day`, both included; `site` is None for all sites.

    `harvests` counts site runs without retries, `failed_harvests` the ones that failed as a whole. `failing` is the
    number of documents that failed in the last harvest of each site in the period. `bytes` is the size of the documents
    that went in, as far as the log goes back. `took_seconds` is the time of all site runs together. `last_success` is
    the day of the last harvest that succeeded, or had errors in single documents.
    """

    first_day: date
    last_day: date
    site: str | None
    number_of_runs: int
    number_of_sites: int
    harvests: int
    failed_harvests: int
    inserted: int
    updated: int
    deleted: int
    failing: int
    bytes: int
    took_seconds: float
    last_success: date | None


class _Tally:
    """Adds up site runs, the oldest first."""

    def __init__(self) -> None:
        self.runs: set[int] = set()
        self.failing: dict[int, int] = {}
        self.counts = {"harvests": 0, "failed_harvests": 0, "inserted": 0, "updated": 0, "deleted": 0, "bytes": 0}
        self.seconds = 0.0
        self.last_success: date | None = None

    def add(self, row: _SiteRunRow) -> None:
        """Count a site run; a retry of single documents is no harvest."""
        site_id, status = row.site_schedule_id, row.status
        self.runs.add(row.run_id)
        for name in ("inserted", "updated", "deleted"):
            self.counts[name] += getattr(row, name) or 0
        self.seconds += seconds_between(row.started_at, row.ended_at) or 0.0
        self.failing.setdefault(site_id, 0)
        if row.kind == SiteRunKind.RETRY.value:
            return
        self.counts["harvests"] += 1
        self.counts["failed_harvests"] += status in FAILED
        if status in HARVESTED:
            self.failing[site_id] = failing(row)
            self.last_success = row.harvest_date

    def figures(self, begin: date, end: date, site: str | None) -> Figures:
        """The totals of the site runs that were added."""
        return Figures(
            begin,
            end,
            site,
            number_of_runs=len(self.runs),
            number_of_sites=len(self.failing),
            **self.counts,
            failing=sum(self.failing.values()),
            took_seconds=round(self.seconds, 3),
            last_success=self.last_success,
        )


def figures(session: Session, begin: date, end: date, per: Per | None = None) -> list[Figures]:
    """The figures of these days: one for all sites, or one for each week, month or site that has site runs.

    Weeks begin on Mondays. The first and the last row end where the period ends.
    """
    names = last_names(session) if per is Per.SITE else {}
    tallies: dict[int, _Tally] = {} if per else {begin.toordinal(): _Tally()}
    for row in _site_runs(session, begin, end):
        tallies.setdefault(_key(per, row.harvest_date, row.site_schedule_id, begin), _Tally()).add(row)
    for day, site_id, size in _bytes(session, begin, end):
        if (key := _key(per, day, site_id, begin)) in tallies:
            tallies[key].counts["bytes"] += size
    if per is Per.SITE:
        found = [each.figures(begin, end, names.get(key, f"site {key}")) for key, each in tallies.items()]
        return sorted(found, key=lambda each: (each.site or "").casefold())
    days = {key: date.fromordinal(key) for key in sorted(tallies)}
    return [
        tallies[key].figures(max(first, begin), min(_last_day(per, first, end), end), None)
        for key, first in days.items()
    ]


def _key(per: Per | None, day: date, site_id: int, begin: date) -> int:
    """The key of a row: the number of a site, or of the first day."""
    if per is Per.SITE:
        return site_id
    if per is Per.WEEK:
        return (day - timedelta(days=day.weekday())).toordinal()
    return (day.replace(day=1) if per is Per.MONTH else begin).toordinal()


def _last_day(per: Per | None, first: date, end: date) -> date:
    if per is Per.WEEK:
        return first + timedelta(days=6)
    if per is Per.MONTH:
        return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return end


def _site_runs(session: Session, begin: date, end: date) -> Iterable[_SiteRunRow]:
    query = (
        select(HarvestRun.harvest_date, HarvestRun.run_id, *columns(HarvestSiteRun, _NUMBERS))
        .join(HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id)
        .where(IS_HARVEST, IS_REAL, HarvestRun.harvest_date >= begin, HarvestRun.harvest_date <= end)
        .order_by(HarvestRun.harvest_date, HarvestSiteRun.site_run_id)
    )
    return session.execute(query.execution_options(yield_per=1000))


def _bytes(session: Session, begin: date, end: date) -> Iterator[tuple[date, int, int]]:
    """The bytes of new and updated documents, by day and site."""
    within = and_(HarvestLog.harvest_date >= begin, HarvestLog.harvest_date <= end, HarvestLog.outcome.in_(_CAME_IN))
    rehearsed = exists().where(HarvestSiteRun.site_run_id == HarvestLog.site_run_id, ~IS_REAL)
    query = (
        select(HarvestLog.harvest_date, HarvestLog.site_schedule_id, func.sum(HarvestLog.size))
        .where(within, HarvestLog.site_schedule_id.is_not(None), ~rehearsed)
        .group_by(HarvestLog.harvest_date, HarvestLog.site_schedule_id)
    )
    for day, site_id, size in session.execute(query):
        yield day, int(site_id or 0), int(size or 0)
