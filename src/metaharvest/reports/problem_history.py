"""A site's problems over the nights in a report: new, still there, or fixed.

Read from site_problem, which the journal keeps (problems/follow.py). Problems that were not checked again tonight have
one line per rule, with the first few documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from sqlalchemy import ColumnElement, and_, bindparam, distinct, exists, func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import (
    IS_FULL,
    IS_REAL,
    HarvestDetailLog,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
    SiteCheckpoint,
    SiteProblem,
)
from metaharvest.database.statements import by_document, without_index
from metaharvest.ledger.entries import nights
from metaharvest.ledger.records import unnamed
from metaharvest.ledger.retries import number_put_off, numbers_failing
from metaharvest.model import HARVESTED, Deletions, OutcomeKind, Site, SiteRunKind
from metaharvest.model.values import frozen
from metaharvest.problems.attention import EMPTY, FEWER, LOST, MOVED, SHRANK
from metaharvest.reports.findings import since_when
from metaharvest.reports.phrasing import OUTCOME_TITLES, Doubts
from metaharvest.rules import RULES, title_of
from metaharvest.sites.registry import read_sites_of
from metaharvest.sites.rows import BrokenSite
from metaharvest.text import counted, one_line

_PROBLEM = SiteProblem
_NEEDS_ATTENTION = and_(_PROBLEM.state == "open", _PROBLEM.needs_attention.is_(True))
_REMEMBERED = (
    select(_PROBLEM.site_problem_id)
    .where(
        _PROBLEM.site_schedule_id == bindparam("site"),
        or_(_PROBLEM.state == "open", _PROBLEM.ended_site_run == bindparam("site_run")),
        _PROBLEM.first_site_run < bindparam("site_run"),
    )
    .limit(1)
)
_PREVIOUS = (
    select(HarvestSiteRun)
    .where(
        HarvestSiteRun.site_schedule_id == bindparam("site"),
        HarvestSiteRun.site_run_id < bindparam("site_run"),
        IS_FULL,
        IS_REAL,
        HarvestSiteRun.status.in_(HARVESTED),
    )
    .order_by(HarvestSiteRun.site_run_id.desc())
    .limit(1)
)

_NOT_OF_CONTACTS = [name for name, rule in RULES.items() if rule.for_contact]
"""Rules of problems that contacts have not fixed when they are gone: most often the administrator has."""


@frozen
class RememberedProblems:
    """The problems of one rule that a site has, or had: their number, the first documents, since when."""

    rule: str
    title: str
    count: int
    documents: tuple[str, ...]
    since: str = ""

    @property
    def more(self) -> int:
        """The number of documents that are not named."""
        return max(self.count - len(self.documents), 0) if self.documents else 0


@frozen
class FailingSite:
    """A site with a problem that needs attention, harvested tonight or not."""

    name: str
    documents: int
    since: str
    nights: int
    rules: str
    last_harvest: str


def has_remembered(session: Session, site_run: HarvestSiteRun) -> bool:
    """True if the site has problems from before this harvest, or had until this one: most sites have none."""
    this = {"site": site_run.site_schedule_id, "site_run": site_run.site_run_id}
    return session.scalar(_REMEMBERED, this) is not None


def fixed(session: Session, site_run: HarvestSiteRun, limit: int) -> tuple[RememberedProblems, ...]:
    """Problems that were checked again and are fixed; not those that the administrator has corrected or removed."""
    ended = and_(
        _PROBLEM.ended_site_run == site_run.site_run_id,
        without_index(_PROBLEM.state) == "fixed",
        _PROBLEM.rule.not_in(_NOT_OF_CONTACTS),
    )
    return tuple(_by_rule(session, site_run, ended, limit))


def standing(session: Session, site_run: HarvestSiteRun, limit: int, *, grave: bool) -> tuple[RememberedProblems, ...]:
    """Problems of an earlier harvest that were not checked again in this one."""
    return tuple(_by_rule(session, site_run, _unseen(site_run, grave), limit))


def failing_sites(
    session: Session, today: date, limit: int, *, also_new: bool = False
) -> tuple[tuple[FailingSite, ...], int]:
    """The sites that have needed attention since before `today`, the longest first; and the number of the others.

    `also_new`: or since today. Their documents are those that `documents --failing` shows.
    """
    failing, problems = numbers_failing(session), _since_of_sites(session)
    sites = read_sites_of(session, failing.keys() | problems.keys())
    found = []
    for site_id, site in sites.items():
        number, first = failing.get(site_id, (0, None))
        since = min(filter(None, (first, problems.get(site_id))), default=None)
        if not site.enabled or since is None or (since >= today and not also_new):
            continue
        # A fault of a loose site is failing too, but needs no attention.
        if site_id in problems or number_put_off(session, site_id):
            found.append((since, site.name, site_id, number))
    shown = [
        FailingSite(
            one_line(name),
            number,
            since.isoformat(),
            nights(since, today),
            _rules(session, site_id),
            _last(sites[site_id]),
        )
        for since, name, site_id, number in sorted(found)[:limit]
    ]
    return tuple(shown), len(found) - len(shown)


def _last(site: Site | BrokenSite) -> str:
    if isinstance(site, BrokenSite):
        return "not known"
    return site.last_harvest.isoformat() if site.last_harvest else "never"


def _since_of_sites(session: Session) -> dict[int, date]:
    """By site, the first day of its problems that need attention."""
    query = select(_PROBLEM.site_schedule_id, func.min(_PROBLEM.first_seen)).where(_NEEDS_ATTENTION)
    return {row[0]: row[1] for row in session.execute(query.group_by(_PROBLEM.site_schedule_id))}


def previous(session: Session, site_run: HarvestSiteRun) -> HarvestSiteRun | None:
    """The harvest of the whole list before this one, with an outcome for every document."""
    return session.scalar(_PREVIOUS, {"site": site_run.site_schedule_id, "site_run": site_run.site_run_id})


def doubts(session: Session, site_run: HarvestSiteRun) -> Doubts:
    """Doubts about this site run beside its documents."""
    rules = _list_rules(session, site_run) if site_run.warnings else {}
    lost = _lost(session, site_run, rules[SHRANK]) if SHRANK in rules else 0
    return Doubts(lost, _still_broken(session, site_run), EMPTY in rules, FEWER in rules, LOST in rules)


def _list_rules(session: Session, site_run: HarvestSiteRun) -> dict[str, date]:
    """The rules of the findings about the list itself, each with its day."""
    about_list = and_(HarvestLog.site_run_id == site_run.site_run_id, HarvestLog.document_id.is_(None))
    of_row = HarvestDetailLog.harvest_log_id == HarvestLog.harvest_log_id
    query = select(HarvestDetailLog.rule, HarvestLog.harvest_date).join(HarvestLog, of_row).where(about_list)
    return {row[0]: row[1] for row in session.execute(query)}


def number_noted(session: Session, site_runs: Sequence[HarvestSiteRun]) -> int:
    """The number of deletions in these site runs that are only recorded: all of some sites, and of moved records."""
    with_deletions = [row for row in site_runs if row.deleted]
    if not with_deletions:
        return 0
    sites = read_sites_of(session, [row.site_schedule_id for row in with_deletions])
    noting = {key for key, site in sites.items() if isinstance(site, Site) and site.options.deletions is Deletions.KEEP}
    others = [row.site_run_id for row in with_deletions if row.site_schedule_id not in noting]
    is_deleted = (HarvestLog.site_run_id.in_(others), HarvestLog.outcome == OutcomeKind.DELETED.value)
    of_row = HarvestDetailLog.harvest_log_id == HarvestLog.harvest_log_id
    moved = select(func.count()).where(*is_deleted, exists().where(of_row, HarvestDetailLog.rule == MOVED))
    noted = sum(row.deleted or 0 for row in with_deletions if row.site_schedule_id in noting)
    return noted + (session.scalar(moved) or 0 if others else 0)


def _lost(session: Session, site_run: HarvestSiteRun, reported_on: date) -> int:
    """The number of documents that a list which shrank has lost since the last harvest."""
    if state := session.get(SiteCheckpoint, site_run.site_schedule_id):
        # Most lists of a source repository name only the changes. A list that was empty has marked nothing.
        gone = unnamed(session, state.site_schedule_id, state.listing)
        return sum(each.has_copy and each.missing_since in (None, reported_on) for each in gone)
    before = previous(session, site_run)
    return before.listed - before.duplicate - (site_run.listed - site_run.duplicate) if before else 0


def _still_broken(session: Session, site_run: HarvestSiteRun) -> int:
    """The number of documents of its site (and the list) that a retry has not tried, and that are still broken."""
    if site_run.kind != SiteRunKind.RETRY.value:
        return 0
    tried = exists().where(
        HarvestLog.site_run_id == site_run.site_run_id,
        HarvestLog.outcome.is_not(None),
        HarvestLog.document_id == _PROBLEM.document_id,
    )
    query = select(func.count(distinct(func.coalesce(_PROBLEM.document_id, "")))).where(
        _PROBLEM.site_schedule_id == site_run.site_schedule_id, _unseen(site_run, grave=True), ~tried
    )
    return session.scalar(query) or 0


def _unseen(site_run: HarvestSiteRun, grave: bool) -> ColumnElement[bool]:
    """Open problems that were not found again in this site run."""
    return and_(
        without_index(_PROBLEM.state) == "open",
        _PROBLEM.last_site_run < site_run.site_run_id,
        _PROBLEM.needs_attention.is_(grave),
    )


def _by_rule(
    session: Session, site_run: HarvestSiteRun, which: ColumnElement[bool], limit: int
) -> Iterator[RememberedProblems]:
    today = session.get_one(HarvestRun, site_run.run_id).harvest_date
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
            .group_by(_PROBLEM.document_id)
            .order_by(*by_document(_PROBLEM.document_id))
            .limit(limit)
        )
        documents = tuple(one_line(str(name)) for name in session.scalars(names))
        yield RememberedProblems(rule, title_of(rule), int(count), documents, since_when(first, today))


def _rules(session: Session, site_id: int) -> str:
    """The faults of a site now, with the findings of today."""
    query = (
        select(_PROBLEM.rule, func.count())
        .where(_PROBLEM.site_schedule_id == site_id, _NEEDS_ATTENTION)
        .group_by(_PROBLEM.rule)
        .order_by(func.count().desc(), _PROBLEM.rule)
    )
    kinds = [(title_of(rule), number) for rule, number in session.execute(query)]
    if put_off := number_put_off(session, site_id):
        kinds.append((OUTCOME_TITLES[OutcomeKind.DEFERRED], put_off))
    more = f", and {counted(len(kinds) - 3, 'more kind')}" if len(kinds) > 3 else ""
    return ", ".join(f"{title} ({number:,})" for title, number in kinds[:3]) + more
