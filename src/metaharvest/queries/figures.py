"""Totals of all sites in a period, or of each week, month or site in it. Rehearsals do not count."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Row
from sqlalchemy.orm import Session

from metaharvest.queries.site_totals import SUMS, kept_spans, runs_between, total_between, totals_between
from metaharvest.queries.sites import last_names

_COUNTS = tuple(name for name in SUMS.split() if name not in ("runs", "seconds", "went_well"))


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

    def figures(self, begin: date, end: date, site: str | None, runs: int) -> Figures:
        """The totals that were added."""
        counts = {name: int(self.sums[name]) for name in _COUNTS}
        return Figures(
            begin,
            end,
            site,
            number_of_runs=runs,
            number_of_sites=len(self.failing),
            **counts,
            failing=sum(self.failing.values()),
            took_seconds=round(float(self.sums["seconds"]), 3),
            last_success=max(self.last_successes.values(), default=None),
        )


def figures(session: Session, begin: date, end: date, per: Per | None = None) -> list[Figures]:
    """The figures of these days: one for all sites, or one for each week, month or site that has site runs.

    Weeks begin on Mondays. The first and the last row end where the period ends.
    """
    runs = runs_between(session, begin, end)
    kept = kept_spans(session, begin, end)
    if per is Per.SITE:
        return _of_sites(session, begin, end, runs, kept)
    firsts = {_first_day(per, day, begin) for day in runs if begin <= day <= end} or ({begin} if per is None else set())
    found = []
    for first in sorted(firsts):
        since, until = max(first, begin), min(_last_day(per, first, end), end)
        number = sum(len(run_ids) for day, run_ids in runs.items() if since <= day <= until)
        total = total_between(session, since, until, runs, kept)
        if total is None:
            tally = _Tally()
            for row in totals_between(session, since, until, runs, kept):
                tally.add(row)
            found.append(tally.figures(since, until, None, number))
        else:
            found.append(_figures(total, since, until, number))
    return found


def _figures(total: Row[*tuple[Any, ...]], begin: date, end: date, runs: int) -> Figures:
    """The figures of all sites from a total."""
    return Figures(
        begin,
        end,
        None,
        number_of_runs=runs,
        number_of_sites=total.sites,
        **{name: int(getattr(total, name)) for name in _COUNTS},
        failing=int(total.failing),
        took_seconds=round(float(total.seconds), 3),
        last_success=total.last_success,
    )


def _of_sites(
    session: Session, begin: date, end: date, runs: Mapping[date, Sequence[int]], kept: Collection[date]
) -> list[Figures]:
    names, tallies = last_names(session), dict[int, _Tally]()
    for row in totals_between(session, begin, end, runs, kept):
        tallies.setdefault(row.site_schedule_id, _Tally()).add(row)
    found = [
        each.figures(begin, end, names.get(key, f"site {key}"), int(each.sums["runs"])) for key, each in tallies.items()
    ]
    return sorted(found, key=lambda each: (each.site or "").casefold())


def _first_day(per: Per | None, day: date, begin: date) -> date:
    """The first day of the row that has this day."""
    if per is Per.WEEK:
        return day - timedelta(days=day.weekday())
    return day.replace(day=1) if per is Per.MONTH else begin


def _last_day(per: Per | None, first: date, end: date) -> date:
    if per is Per.WEEK:
        return first + timedelta(days=6)
    if per is Per.MONTH:
        return (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    return end
