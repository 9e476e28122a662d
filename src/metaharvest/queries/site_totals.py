"""Totals of the harvests of each site over a few days, as the database adds them up; rehearsals do not count.

The totals of a *span*, the days of one week within one month, are kept in a table: so weeks, months and years are sums
of some thousand rows rather than of each site run. The journal writes them (journal/totals.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, case, exists, func, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session, aliased
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import Float

from metaharvest.database.batches import batches, grouped
from metaharvest.database.models import IS_FULL, IS_HARVEST, IS_REAL, HarvestLog, HarvestRun, HarvestSiteRun, SiteTotals
from metaharvest.model import (
    HARVESTED,
    NOT_HARVESTED,
    OutcomeKind,
    RunStatus,
    SiteRunStatus,
)
from metaharvest.model.values import frozen
from metaharvest.queries.records import columns, failing

SUMS = "runs harvests failed_harvests went_well inserted updated deleted bytes seconds"
_MOST_SPANS = 500
"""Spans of one statement: some eight years."""

_CAME_IN = (OutcomeKind.INSERTED.value, OutcomeKind.UPDATED.value)
_LAST = aliased(SiteTotals)


@frozen
class Span:
    """The days of one week within one month, both included: weeks begin on Mondays."""

    first: date
    last: date

    @classmethod
    def of(cls, day: date) -> Span:
        """The span that has this day."""
        monday = day - timedelta(days=day.weekday())
        next_month = (day.replace(day=1) + timedelta(days=31)).replace(day=1)
        return cls(max(monday, day.replace(day=1)), min(monday + timedelta(days=6), next_month - timedelta(days=1)))


class _Seconds(FunctionElement[float]):
    """The seconds from the first time to the second."""

    type = Float(53)
    inherit_cache = True
    name = "seconds"


_SECONDS = {
    "sqlite": "((julianday({1}) - julianday({0})) * 86400.0)",
    "postgresql": "EXTRACT(EPOCH FROM ({1} - {0}))",
    "mysql": "(TIMESTAMPDIFF(MICROSECOND, {0}, {1}) / 1000000.0)",
    "mariadb": "(TIMESTAMPDIFF(MICROSECOND, {0}, {1}) / 1000000.0)",
}
"""By dialect, the seconds from {0} to {1}."""


@compiles(_Seconds)
def _compiled(element: _Seconds, compiler: Any, **options: Any) -> str:
    times = (compiler.process(each, **options) for each in element.clauses)
    return _SECONDS[compiler.dialect.name].format(*times)


def totals_of_sites(run_ids: Collection[int], *conditions: ColumnElement[bool]) -> Select[Any]:
    """A row for each site with site runs in these runs: the columns of SiteTotals without `first_day`.

    The conditions are about the site runs. The runs are numbers, as SQLite would read all site runs for their dates.
    """
    run, row, log = HarvestRun, HarvestSiteRun, HarvestLog
    came_in = (log.site_run_id == row.site_run_id, log.outcome.in_(_CAME_IN))
    is_good = case((IS_FULL & row.status.in_(HARVESTED), 1), else_=0)
    newest_first = (is_good.desc(), run.harvest_date.desc(), row.site_run_id.desc())
    site_runs = (
        select(
            *columns(row, "site_schedule_id run_id inserted updated deleted"),
            case((IS_FULL, 1), else_=0).label("harvests"),
            case((IS_FULL & row.status.in_(NOT_HARVESTED), 1), else_=0).label("failed_harvests"),
            case((IS_FULL & (row.status == SiteRunStatus.SUCCEEDED.value), 1), else_=0).label("went_well"),
            select(func.sum(log.size)).where(*came_in).correlate(row).scalar_subquery().label("bytes"),
            _Seconds(row.started_at, row.ended_at).label("seconds"),
            failing(row).label("failing"),
            run.harvest_date,
            is_good.label("is_good"),
            func.row_number().over(partition_by=row.site_schedule_id, order_by=newest_first).label("place"),
        )
        .join(run, run.run_id == row.run_id)
        .where(row.run_id.in_(run_ids), IS_REAL, *conditions)
        .subquery("site_runs")
    )
    each = site_runs.c
    is_last_success = (each.place == 1) & (each.is_good == 1)
    sums = (func.coalesce(func.sum(each[name]), 0).label(name) for name in SUMS.split() if name != "runs")
    return select(
        each.site_schedule_id,
        func.count(each.run_id.distinct()).label("runs"),
        *sums,
        func.max(case((is_last_success, each.failing))).label("failing"),
        func.max(case((is_last_success, each.harvest_date))).label("last_success"),
    ).group_by(each.site_schedule_id)


class PeriodTotals:
    """The totals of the sites in parts of a period, from the table of kept spans as far as possible.

    `runs` are the numbers of the runs with site runs, by day.
    """

    def __init__(self, session: Session, first: date, last: date) -> None:
        self.runs = runs_between(session, first, last)
        self._session = session
        kept = SiteTotals.first_day
        found = session.scalars(select(kept).where(kept >= Span.of(first).first, kept <= last).distinct())
        # A run that goes on changes the totals of its span.
        under_way = select(HarvestRun.harvest_date).where(HarvestRun.status == RunStatus.RUNNING.value)
        self._kept = set(found) - {Span.of(day).first for day in session.scalars(under_way)}

    def number_of_runs(self, first: date, last: date) -> int:
        """The number of runs from the first day to the last."""
        return sum(len(run_ids) for day, run_ids in self.runs.items() if first <= day <= last)

    def by_site(self, first: date, last: date) -> Iterator[Row[*tuple[Any, ...]]]:
        """The totals from the first day to the last, as rows of `totals_of_sites`: a site may have several."""
        whole, others = self._spans(first, last)
        for some in batches(whole):
            yield from self._session.execute(_kept(some))
        for run_ids in others:
            yield from self._session.execute(totals_of_sites(run_ids))

    def of_all(self, first: date, last: date) -> Row[*tuple[Any, ...]] | None:
        """The totals from the first day to the last of all sites together, with their number as `sites`.

        None if the table does not have all of them: then `by_site` has them.
        """
        whole, others = self._spans(first, last)
        if others or not 0 < len(whole) <= _MOST_SPANS:
            return None
        each = _kept(whole).subquery("kept").c
        query = select(
            func.count().label("sites"),
            *(func.sum(each[name]).label(name) for name in SUMS.split()),
            func.sum(case((each.last_success.is_not(None), each.failing), else_=0)).label("failing"),
            func.max(each.last_success).label("last_success"),
        )
        return self._session.execute(query).one()

    def _spans(self, first: date, last: date) -> tuple[Sequence[date], Sequence[Sequence[int]]]:
        """The first days of the spans that the table has as a whole, and the runs of each of the others."""
        spans: dict[Span, list[int]] = {}
        for day, run_ids in self.runs.items():
            if first <= day <= last:
                spans.setdefault(Span.of(day), []).extend(run_ids)
        cut = {Span.of(day) for day in self.runs if not first <= day <= last}
        whole = {span for span in spans if span.first in self._kept and span not in cut}
        return sorted(span.first for span in whole), [spans[span] for span in spans if span not in whole]


def runs_between(session: Session, first: date, last: date) -> dict[date, list[int]]:
    """The numbers of the runs with site runs, by day, from the span of the first day to the span of the last."""
    run = HarvestRun
    first, last = Span.of(first).first, Span.of(last).last
    its_own = exists().where(HarvestSiteRun.run_id == run.run_id, IS_REAL)
    within = (IS_HARVEST, run.harvest_date >= first, run.harvest_date <= last, its_own)
    return grouped((row[0], row[1]) for row in session.execute(select(run.harvest_date, run.run_id).where(*within)))


def _kept(spans: Collection[date]) -> Select[*tuple[Any, ...]]:
    row, last = SiteTotals, _LAST
    with_success = case((row.last_success.is_not(None), row.first_day))
    sums = (
        select(
            row.site_schedule_id,
            *(func.sum(each).label(each.key) for each in columns(row, SUMS)),
            func.max(with_success).label("last_span"),
        )
        .where(row.first_day.in_(spans))
        .group_by(row.site_schedule_id)
        .subquery("sums")
    )
    # The spans again: PostgreSQL would read the whole table.
    is_last = last.first_day.in_(spans) & (last.first_day == sums.c.last_span)
    is_last &= last.site_schedule_id == sums.c.site_schedule_id
    return select(sums, last.failing, last.last_success).outerjoin(last, is_last)
