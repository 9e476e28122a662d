"""A period over all sites: documents in and lost, harvests that went well, days until a repair, silent sites, rules.

The totals of the harvests come from `site_totals`: sums of weeks, which the journal keeps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from sqlalchemy import Row, distinct, func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import AuditEntry, DocumentWithdrawal, HarvestRun, HarvestSiteRun, SiteProblem
from metaharvest.model import RunStatus
from metaharvest.problems.follow import FIXED, OPEN
from metaharvest.queries.site_totals import kept_spans, runs_between, totals_between
from metaharvest.queries.sites import last_names
from metaharvest.rules import RULES
from metaharvest.sites.registry import read_sites

_SUMS = ("harvests", "failed_harvests", "went_well", "inserted", "updated", "deleted")
_TOP = 20
_run, _site_run, _problem = HarvestRun, HarvestSiteRun, SiteProblem


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class RuleOfYear:
    """A rule with the problems that were open on any day of the period; documents count once for each site."""

    rule: str
    rule_title: str
    number_of_problems: int
    number_of_documents: int
    number_of_sites: int


@dataclass(frozen=True, slots=True, kw_only=True)
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
    runs = runs_between(session, first_day, last_day)
    rows = totals_between(session, first_day, last_day, runs, kept_spans(session, first_day, last_day))
    names = last_names(session)
    registered = {site.site_id: site for site in read_sites(session)}
    sites = sorted(_sites(rows, names, registered), key=lambda site: site.site.casefold())
    succeeded = {site.site_id for site in sites if site.last_success}
    days = _days_until_fixed(session, first_day, last_day)
    return YearFigures(
        first_day=first_day,
        last_day=last_day,
        number_of_runs=sum(len(run_ids) for day, run_ids in runs.items() if first_day <= day <= last_day),
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
    """The sites of these totals."""
    by_site: dict[int, list[Row[*tuple[Any, ...]]]] = {}
    for row in rows:
        by_site.setdefault(row.site_schedule_id, []).append(row)
    for site_id, own in by_site.items():
        yield YearOfSite(
            site=names.get(site_id, f"site {site_id}"),
            site_id=site_id,
            registered=site_id in registered,
            **{name: sum(int(getattr(row, name)) for row in own) for name in _SUMS},
            last_success=max((row.last_success for row in own if row.last_success), default=None),
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
    counted: dict[int, int] = {}
    for first, ended, number in session.execute(query):
        days = max((ended - first).days, 0) if ended else 0
        counted[days] = counted.get(days, 0) + number
    return sorted(counted.items())


def _median(days: Sequence[tuple[int, int]]) -> float | None:
    """The median of days, each with its number; in the middle of two, if it lies between them."""
    total = sum(number for _, number in days)
    if not total:
        return None
    middle, passed, found = ((total - 1) // 2, total // 2), 0, []
    for each, number in days:
        found += [each for place in middle if passed <= place < passed + number]
        passed += number
    return sum(found) / len(found)


def _rules(session: Session, first_day: date, last_day: date) -> list[RuleOfYear]:
    """The rules with the most documents in the period."""
    counted = (func.count(), func.count(distinct(_problem.document_id)))
    query = (
        select(_problem.rule, _problem.site_schedule_id, *counted)
        .where(or_(_problem.state == OPEN, _problem.ended_on >= first_day), _problem.first_seen <= last_day)
        .group_by(_problem.rule, _problem.site_schedule_id)
    )
    by_rule: dict[str, list[tuple[int, int]]] = {}
    for rule, _, problems, documents in session.execute(query):
        by_rule.setdefault(rule, []).append((problems, documents))
    found = [
        RuleOfYear(
            rule,
            RULES[rule].title if rule in RULES else rule,
            sum(problems for problems, _ in at_sites),
            sum(documents for _, documents in at_sites),
            len(at_sites),
        )
        for rule, at_sites in by_rule.items()
    ]
    return sorted(found, key=lambda each: (-each.number_of_documents, -each.number_of_problems, each.rule))[:_TOP]
