"""Figures of a period: totals of all sites, of each week, month or site; the report on a period; a site by week.

The totals of the harvests come from `site_totals`: sums of weeks, which the journal keeps. Rehearsals do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date, timedelta
from enum import StrEnum
from statistics import median
from typing import Any

from sqlalchemy import Row, distinct, func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.batches import grouped
from metaharvest.database.models import (
    IS_FULL,
    IS_HARVEST,
    IS_REAL,
    AuditEntry,
    DocumentWithdrawal,
    HarvestRun,
    HarvestSiteRun,
    SiteProblem,
)
from metaharvest.model import NOT_HARVESTED, RunStatus
from metaharvest.model.values import frozen
from metaharvest.problems.follow import FIXED, OPEN
from metaharvest.queries.records import columns, failing
from metaharvest.queries.site_totals import SUMS, PeriodTotals
from metaharvest.queries.sites import last_names
from metaharvest.queries.trends import READ_A_LIST, seconds_between
from metaharvest.rules import title_of
from metaharvest.sites.registry import read_sites

_COUNTS = tuple(name for name in SUMS.split() if name not in ("runs", "seconds", "went_well"))
_SUMS = ("harvests", "failed_harvests", "went_well", "inserted", "updated", "deleted")
_SITE_RUN = "listed inserted updated deleted status started_at ended_at deferred access_error invalid upload_error"
_TOP = 20
_run, _site_run, _problem = HarvestRun, HarvestSiteRun, SiteProblem


class Per(StrEnum):
    """The unit of one row of the figures."""

    WEEK = "week"
    MONTH = "month"
    SITE = "site"


@frozen
class Figures:
    """Totals from `first_day` to `last_day`, both included; `site` is None for all sites.

    `harvests` counts site runs without retries, `failed_harvests` the ones that failed as a whole. `failing` is the
    number of documents that failed in the last harvest of each site in the period. `bytes` is the size of the documents
    that went in, as far as the log went back when it was added up. `took_seconds` is the time of all site runs
    together. `last_success` is the day of the last harvest that succeeded, or had errors in single documents.
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
    """Adds up totals of sites."""

    def __init__(self) -> None:
        self.failing: dict[int, int] = {}
        self.last_successes: dict[int, date] = {}
        self.sums = dict.fromkeys(SUMS.split(), 0)

    def add(self, row: Row[*tuple[Any, ...]]) -> None:
        """Count the totals of a site over some days."""
        for name in self.sums:
            self.sums[name] += getattr(row, name)
        site_id, success = row.site_schedule_id, row.last_success
        self.failing.setdefault(site_id, 0)
        if success is not None and success >= self.last_successes.get(site_id, success):
            self.failing[site_id], self.last_successes[site_id] = int(row.failing), success

    def total(self) -> Mapping[str, Any]:
        """The totals that were added, by the names of `PeriodTotals.of_all`."""
        return {
            **self.sums,
            "sites": len(self.failing),
            "failing": sum(self.failing.values()),
            "last_success": max(self.last_successes.values(), default=None),
        }


def figures(session: Session, begin: date, end: date, per: Per | None = None) -> list[Figures]:
    """The figures of these days: one for all sites, or one for each week, month or site that has site runs.

    Weeks begin on Mondays. The first and the last row end where the period ends.
    """
    totals = PeriodTotals(session, begin, end)
    if per is Per.SITE:
        return _of_sites(last_names(session), totals, begin, end)
    parts = {_part(per, day) for day in totals.runs if begin <= day <= end} if per else {(begin, end)}
    found = []
    for first, last in sorted(parts):
        since, until = max(first, begin), min(last, end)
        kept = totals.of_all(since, until)
        if kept is None:
            tally = _Tally()
            for row in totals.by_site(since, until):
                tally.add(row)
        total = tally.total() if kept is None else dict(kept._mapping)
        found.append(_figures(since, until, None, totals.number_of_runs(since, until), total))
    return found


def _figures(begin: date, end: date, site: str | None, runs: int, total: Mapping[str, Any]) -> Figures:
    return Figures(
        begin,
        end,
        site,
        number_of_runs=runs,
        number_of_sites=total["sites"],
        **{name: int(total[name]) for name in _COUNTS},
        failing=int(total["failing"]),
        took_seconds=round(float(total["seconds"]), 3),
        last_success=total["last_success"],
    )


def _of_sites(names: Mapping[int, str], totals: PeriodTotals, begin: date, end: date) -> list[Figures]:
    found = [
        _figures(begin, end, names.get(site_id, f"site {site_id}"), int(each.sums["runs"]), each.total())
        for site_id, each in _by_site(totals.by_site(begin, end)).items()
    ]
    return sorted(found, key=lambda each: (each.site or "").casefold())


def _by_site(rows: Iterable[Row[*tuple[Any, ...]]]) -> dict[int, _Tally]:
    tallies: dict[int, _Tally] = {}
    for row in rows:
        tallies.setdefault(row.site_schedule_id, _Tally()).add(row)
    return tallies


def _part(per: Per, day: date) -> tuple[date, date]:
    """The first and the last day of the week or month that has this day."""
    monday, first = day - timedelta(days=day.weekday()), day.replace(day=1)
    if per is Per.WEEK:
        return monday, monday + timedelta(days=6)
    return first, (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)


@frozen
class YearOfSite:
    """A site in the period, with the numbers of YearFigures."""

    site: str
    site_id: int
    registered: bool
    harvests: int
    failed_harvests: int
    went_well: int
    inserted: int
    updated: int
    deleted: int
    last_success: date | None

    @property
    def share_well(self) -> float | None:
        """The share of its harvests that succeeded without errors, from 0 to 1."""
        return self.went_well / self.harvests if self.harvests else None


@frozen
class RuleOfYear:
    """A rule with the problems that were open on any day of the period; documents count once for each site."""

    rule: str
    rule_title: str
    number_of_problems: int
    number_of_documents: int
    number_of_sites: int


@frozen(kw_only=True)
class YearFigures:
    """The period from `first_day` to `last_day`, both included. `number_of_runs` to `deleted` are as in `figures`.

    `went_well` is the number of harvests that succeeded without errors. `withdrawn` counts the documents that a person
    withdrew. `fixed` problems were repaired in the period: after a median of `days_until_fixed` days, the last one
    after `most_days_until_fixed`. `silent` are the registered sites, switched on, without a harvest that succeeded.
    """

    first_day: date
    last_day: date
    number_of_runs: int
    number_of_sites: int
    harvests: int
    failed_harvests: int
    went_well: int
    inserted: int
    updated: int
    deleted: int
    withdrawn: int
    fixed: int
    days_until_fixed: float | None
    most_days_until_fixed: int | None
    silent: tuple[str, ...]
    sites: tuple[YearOfSite, ...]
    rules: tuple[RuleOfYear, ...]

    @property
    def share_well(self) -> float | None:
        """The share of harvests that succeeded without errors, from 0 to 1."""
        return self.went_well / self.harvests if self.harvests else None


COLUMNS = (
    "first_day", "last_day", "number_of_runs", "number_of_sites", "harvests", "failed_harvests", "went_well",
    "share_well", "inserted", "updated", "deleted", "withdrawn", "fixed", "days_until_fixed", "most_days_until_fixed",
)  # fmt: skip
"""The single numbers of YearFigures."""

SITE_COLUMNS = (*(each.name for each in fields(YearOfSite)), "share_well")
"""The values of YearOfSite in tables."""


def year_figures(session: Session, first_day: date, last_day: date) -> YearFigures:
    """The figures of these days. Rehearsals, and retries of single documents, do not count."""
    totals = PeriodTotals(session, first_day, last_day)
    names = last_names(session)
    registered = {site.site_id: site for site in read_sites(session)}
    sites = sorted(
        _sites(totals.by_site(first_day, last_day), names, registered), key=lambda site: site.site.casefold()
    )
    succeeded = {site.site_id for site in sites if site.last_success}
    days = _days_until_fixed(session, first_day, last_day)
    return YearFigures(
        first_day=first_day,
        last_day=last_day,
        number_of_runs=totals.number_of_runs(first_day, last_day),
        number_of_sites=len(sites),
        **{name: sum(getattr(site, name) for site in sites) for name in _SUMS},
        withdrawn=_withdrawn(session, first_day, last_day),
        fixed=sum(number for _, number in days),
        days_until_fixed=_median(days),
        most_days_until_fixed=max((each for each, _ in days), default=None),
        silent=tuple(
            site.name
            for site in sorted(registered.values(), key=lambda site: site.name.casefold())
            if site.enabled and site.site_id not in succeeded
        ),
        sites=tuple(sites),
        rules=tuple(_rules(session, first_day, last_day)),
    )


def state_of_figures(session: Session) -> tuple[object, ...] | None:
    """A value that changes when the figures of any period may change; None while a run is under way."""
    newest = select(_run.run_id, _run.status, _run.ended_at).order_by(_run.run_id.desc()).limit(1)
    run = session.execute(newest).first()
    if run is not None and run.status == RunStatus.RUNNING.value:
        return None
    numbers = (func.max(_site_run.site_run_id), func.max(_run.run_id), func.count(_run.run_id))
    of_runs = [session.scalar(select(number)) for number in numbers]
    decision = session.scalar(select(func.max(AuditEntry.audit_entry_id)))
    return (*(run or ()), *of_runs, decision)


def _sites(
    rows: Iterable[Row[*tuple[Any, ...]]], names: Mapping[int, str], registered: Collection[int]
) -> Iterator[YearOfSite]:
    for site_id, tally in _by_site(rows).items():
        yield YearOfSite(
            site=names.get(site_id, f"site {site_id}"),
            site_id=site_id,
            registered=site_id in registered,
            **{name: int(tally.sums[name]) for name in _SUMS},
            last_success=tally.last_successes.get(site_id),
        )


def _withdrawn(session: Session, first_day: date, last_day: date) -> int:
    withdrawal = DocumentWithdrawal
    within = (withdrawal.withdrawn_on >= first_day, withdrawal.withdrawn_on <= last_day)
    return session.scalar(select(func.count()).select_from(withdrawal).where(*within)) or 0


def _days_until_fixed(session: Session, first_day: date, last_day: date) -> list[tuple[int, int]]:
    """The days from the first finding to the repair, each with its number of problems, the fewest days first."""
    query = (
        select(_problem.first_seen, _problem.ended_on, func.count())
        .where(_problem.ended_on >= first_day, _problem.ended_on <= last_day, _problem.state == FIXED)
        .group_by(_problem.first_seen, _problem.ended_on)
    )
    counted = Counter[int]()
    for first, ended, number in session.execute(query):
        counted[max((ended - first).days, 0) if ended else 0] += number
    return sorted(counted.items())


def _median(days: Sequence[tuple[int, int]]) -> float | None:
    """The median of days, each with its number."""
    each = [day for day, number in days for _ in range(number)]
    return float(median(each)) if each else None


def _rules(session: Session, first_day: date, last_day: date) -> list[RuleOfYear]:
    """The rules with the most documents in the period."""
    counted = (func.count(), func.count(distinct(_problem.document_id)))
    query = (
        select(_problem.rule, _problem.site_schedule_id, *counted)
        .where(or_(_problem.state == OPEN, _problem.ended_on >= first_day), _problem.first_seen <= last_day)
        .group_by(_problem.rule, _problem.site_schedule_id)
    )
    by_rule = grouped((row[0], (row[2], row[3])) for row in session.execute(query))
    found = [
        RuleOfYear(
            rule,
            title_of(rule),
            sum(problems for problems, _ in at_sites),
            sum(documents for _, documents in at_sites),
            len(at_sites),
        )
        for rule, at_sites in by_rule.items()
    ]
    return sorted(found, key=lambda each: (-each.number_of_documents, -each.number_of_problems, each.rule))[:_TOP]


@frozen
class SitePeriod:
    """The harvests of a site from `first_day` to `last_day`, both included; retries and rehearsals do not count.

    `listed` and `failing` are numbers of documents after the last harvest of the period that read a list; None: there
    was no such harvest. `inserted` to `failed_harvests`, and `took_seconds`, are sums.
    """

    first_day: date
    last_day: date
    harvests: int
    failed_harvests: int
    listed: int | None
    failing: int | None
    inserted: int
    updated: int
    deleted: int
    took_seconds: float


def site_year(session: Session, site_id: int, first_day: date, last_day: date) -> list[SitePeriod]:
    """The weeks from `first_day` on; the last one ends on `last_day`.

    Weeks without a harvest are among them, so that a chart has no hole.
    """
    query = (
        select(HarvestRun.harvest_date, *columns(HarvestSiteRun, _SITE_RUN))
        .join(HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id)
        .where(
            HarvestSiteRun.site_schedule_id == site_id,
            IS_FULL,
            IS_REAL,
            IS_HARVEST,
            HarvestRun.harvest_date >= first_day,
            HarvestRun.harvest_date <= last_day,
        )
        .order_by(HarvestSiteRun.site_run_id)
    )
    by_week = grouped(((last_day - row.harvest_date).days // 7, row) for row in session.execute(query))
    number = (last_day - first_day).days // 7 + 1
    ends = ((back, last_day - timedelta(weeks=back)) for back in reversed(range(number)))
    return [_period(max(first_day, end - timedelta(days=6)), end, by_week.get(back, ())) for back, end in ends]


def _period(first_day: date, last_day: date, rows: Iterable[Any]) -> SitePeriod:
    rows = list(rows)
    read = [row for row in rows if row.listed or row.status in READ_A_LIST]
    return SitePeriod(
        first_day,
        last_day,
        len(rows),
        sum(row.status in NOT_HARVESTED for row in rows),
        read[-1].listed if read else None,
        failing(read[-1]) if read else None,
        sum(row.inserted for row in rows),
        sum(row.updated for row in rows),
        sum(row.deleted for row in rows),
        round(sum(seconds_between(row.started_at, row.ended_at) or 0.0 for row in rows), 3),
    )
