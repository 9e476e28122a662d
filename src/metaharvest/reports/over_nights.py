"""What a report tells of a site's problems over the nights: which are new, which are still there, which were fixed.

Read from site_problem, which the journal keeps (journal/problems.py); of problems that were not found anew tonight,
as nobody looked, each rule is one line with the first few documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from sqlalchemy import ColumnElement, and_, distinct, func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestSiteRun, HarvestSiteSchedule, SiteProblem
from metaharvest.model import SiteRunKind, SiteRunStatus
from metaharvest.reports.findings import title_of
from metaharvest.text import one_line

_PROBLEM = SiteProblem


@dataclass(frozen=True, slots=True)
class RememberedProblems:
    """The problems of one rule that a site has, or had: how many, the first documents, since when."""

    rule: str
    title: str
    count: int
    documents: tuple[str, ...]
    since: str = ""

    @property
    def more(self) -> int:
        """How many are not named."""
        return max(self.count - len(self.documents), 0) if self.documents else 0


@dataclass(frozen=True, slots=True)
class FailingSite:
    """A site with something that needs attention, whether it was harvested tonight or not."""

    name: str
    documents: int
    since: str
    nights: int
    rules: str
    last_harvest: str


def has_remembered(session: Session, site_run: HarvestSiteRun) -> bool:
    """Whether the site has problems from before this harvest, or had until this one: most sites have none."""
    here = or_(_PROBLEM.state == "open", _PROBLEM.ended_site_run == site_run.site_run_id)
    earlier = and_(here, _PROBLEM.first_site_run < site_run.site_run_id)
    of_site = _PROBLEM.site_schedule_id == site_run.site_schedule_id
    return session.scalar(select(_PROBLEM.site_problem_id).where(of_site, earlier).limit(1)) is not None


def fixed(session: Session, site_run: HarvestSiteRun, limit: int) -> tuple[RememberedProblems, ...]:
    """What was looked at again, and is well now."""
    ended = and_(_PROBLEM.ended_site_run == site_run.site_run_id, _PROBLEM.state == "fixed")
    return tuple(_by_rule(session, site_run, ended, limit))


def standing(session: Session, site_run: HarvestSiteRun, limit: int, *, grave: bool) -> tuple[RememberedProblems, ...]:
    """What was found in an earlier harvest, and not looked at again in this one."""
    here = and_(
        _PROBLEM.state == "open",
        _PROBLEM.last_site_run < site_run.site_run_id,
        _PROBLEM.needs_attention.is_(grave),
    )
    return tuple(_by_rule(session, site_run, here, limit))


def failing_sites(session: Session, today: date, limit: int) -> tuple[tuple[FailingSite, ...], int]:
    """The sites that have needed attention since before `today`, the longest first; how many more there are."""
    failing = _failing(today)
    site = HarvestSiteSchedule
    query = (
        select(
            site.site_schedule_id,
            site.name,
            func.count(distinct(_PROBLEM.document_id)),
            func.min(_PROBLEM.first_seen),
            func.max(_PROBLEM.nights),
        )
        .join(_PROBLEM, _PROBLEM.site_schedule_id == site.site_schedule_id)
        .where(failing, site.enabled)
        .group_by(site.site_schedule_id, site.name)
        .order_by(func.min(_PROBLEM.first_seen), site.name)
    )
    rows = session.execute(query).all()
    shown = [
        FailingSite(
            one_line(str(name)),
            int(number),
            since.isoformat(),
            int(nights),
            _rules(session, site_id, today),
            _last(session, site_id),
        )
        for site_id, name, number, since, nights in rows[:limit]
    ]
    return tuple(shown), len(rows) - len(shown)


def previous(session: Session, site_run: HarvestSiteRun) -> HarvestSiteRun | None:
    """The harvest of the whole list before this one, of which every document was accounted for."""
    row = HarvestSiteRun
    query = select(row).where(
        row.site_schedule_id == site_run.site_schedule_id,
        row.site_run_id < site_run.site_run_id,
        row.kind != SiteRunKind.RETRY.value,
        row.status.in_([SiteRunStatus.SUCCEEDED.value, SiteRunStatus.WITH_ERRORS.value]),
    )
    return session.scalar(query.order_by(row.site_run_id.desc()).limit(1))


def _by_rule(
    session: Session, site_run: HarvestSiteRun, which: ColumnElement[bool], limit: int
) -> Iterator[RememberedProblems]:
    here = and_(_PROBLEM.site_schedule_id == site_run.site_schedule_id, which)
    query = (
        select(_PROBLEM.rule, func.count(), func.min(_PROBLEM.first_seen))
        .where(here)
        .group_by(_PROBLEM.rule)
        .order_by(func.count().desc(), _PROBLEM.rule)
    )
    for rule, count, first in session.execute(query).all():
        names = (
            select(_PROBLEM.document_id)
            .where(here, _PROBLEM.rule == rule, _PROBLEM.document_id.is_not(None))
            .distinct()
            .order_by(_PROBLEM.document_id)
            .limit(limit)
        )
        documents = tuple(one_line(str(name)) for name in session.scalars(names))
        yield RememberedProblems(rule, title_of(rule), int(count), documents, f"since {first.isoformat()}")


def _failing(today: date) -> ColumnElement[bool]:
    return and_(_PROBLEM.state == "open", _PROBLEM.needs_attention.is_(True), _PROBLEM.first_seen < today)


def _rules(session: Session, site_id: int, today: date) -> str:
    query = (
        select(_PROBLEM.rule, func.count())
        .where(_PROBLEM.site_schedule_id == site_id, _failing(today))
        .group_by(_PROBLEM.rule)
        .order_by(func.count().desc(), _PROBLEM.rule)
    )
    rows = session.execute(query).all()
    more = f", and {len(rows) - 3} more kinds" if len(rows) > 3 else ""
    return ", ".join(f"{title_of(str(rule))} ({number:,})" for rule, number in rows[:3]) + more


def _last(session: Session, site_id: int) -> str:
    day = session.scalar(
        select(HarvestSiteSchedule.datelastharvest).where(HarvestSiteSchedule.site_schedule_id == site_id)
    )
    return day.isoformat() if day else "never"
