"""What the findings of a site amount to over the nights: which are new, which are still there, which were fixed.

A problem is a finding by its fingerprint (document id, rule, place). It is brought up to date as a site run closes,
from what that has logged; reports and people read it from the table site_problem. Nothing here asks what a rule means,
but for one thing: a document that could not be fetched was not looked at, so what was wrong in it stays open.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import ColumnElement, and_, case, delete, exists, func, insert, literal, or_, select, update
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestDetailLog, HarvestDocument, HarvestLog, SiteProblem
from metaharvest.model import OutcomeKind, SiteRunKind
from metaharvest.reports.findings import is_attention

OPEN, FIXED, GONE = "open", "fixed", "gone"

_PROBLEM = Base.metadata.tables[SiteProblem.__tablename__]
_LOG, _DETAIL, _LEDGER = HarvestLog, HarvestDetailLog, HarvestDocument
_LOOKED_AT = [
    kind.value for kind in (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.INVALID, OutcomeKind.UPLOAD_ERROR)
]
_BEFORE_CHECKS = ("http.", "file.", "list.", "target.", "site.", "harvest.")
"""What the rules begin with that are not about what is in a document."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A site run that closes. `list_was_read`: the ledger mirrors what the site lists now."""

    site_id: int
    site_run_id: int
    kind: SiteRunKind
    list_was_read: bool
    has_findings: bool


def update_problems(session: Session, ended: Sequence[Ended], today: date) -> None:
    """Bring the problems of these sites up to date; nothing is asked of sites that have none, and had none."""
    sites = [each.site_id for each in ended]
    query = select(_PROBLEM.c.site_schedule_id).where(_PROBLEM.c.site_schedule_id.in_(sites), _is_open()).distinct()
    with_problems = set(session.scalars(query))
    for each in ended:
        if each.site_id in with_problems and each.kind is not SiteRunKind.RETRY:
            _count_night(session, each)
        if each.has_findings:
            _see_again(session, each, today)
            _add_new(session, each, today)
        if each.site_id in with_problems:
            _end(session, each, today)


def purge(session: Session, limit: date) -> None:
    """Delete what ended before `limit`."""
    session.execute(delete(_PROBLEM).where(_PROBLEM.c.ended_on < limit))


def _is_open() -> ColumnElement[bool]:
    return _PROBLEM.c.state == OPEN


def _of(ended: Ended) -> ColumnElement[bool]:
    return _PROBLEM.c.site_schedule_id == ended.site_id


def _count_night(session: Session, ended: Ended) -> None:
    session.execute(update(_PROBLEM).where(_of(ended), _is_open()).values(nights=_PROBLEM.c.nights + 1))


def _see_again(session: Session, ended: Ended, today: date) -> None:
    """Problems that this site run found again; those that had ended begin anew."""
    found = (
        select(_DETAIL.fingerprint)
        .join(_LOG, _LOG.harvest_log_id == _DETAIL.harvest_log_id)
        .where(_LOG.site_run_id == ended.site_run_id, _DETAIL.fingerprint.is_not(None))
    )
    again = (_of(ended), _PROBLEM.c.fingerprint.in_(found))
    session.execute(
        update(_PROBLEM)
        .where(*again, ~_is_open())
        .values(
            state=OPEN,
            first_seen=today,
            first_site_run=ended.site_run_id,
            nights=1,
            ended_on=None,
            ended_site_run=None,
        )
    )
    session.execute(update(_PROBLEM).where(*again).values(last_seen=today, last_site_run=ended.site_run_id))


def _add_new(session: Session, ended: Ended, today: date) -> None:
    known = exists().where(_of(ended), _PROBLEM.c.fingerprint == _DETAIL.fingerprint)
    found = (
        select(
            literal(ended.site_id),
            _DETAIL.fingerprint,
            func.min(_LOG.document_id),
            func.min(_DETAIL.rule),
            func.max(case((is_attention(), 1), else_=0)) == 1,
            func.min(_DETAIL.detail_log_id),
            literal(OPEN),
            literal(today),
            literal(ended.site_run_id),
            literal(today),
            literal(ended.site_run_id),
            literal(1),
        )
        .join(_LOG, _LOG.harvest_log_id == _DETAIL.harvest_log_id)
        .where(_LOG.site_run_id == ended.site_run_id, _DETAIL.fingerprint.is_not(None), ~known)
        .group_by(_DETAIL.fingerprint)
    )
    columns = (
        "site_schedule_id fingerprint document_id rule needs_attention detail_log_id state first_seen first_site_run "
        "last_seen last_site_run nights"
    )
    session.execute(insert(_PROBLEM).from_select(columns.split(), found, include_defaults=False))


def _end(session: Session, ended: Ended, today: date) -> None:
    """End what this site run has not found again, although it looked; and what there is nothing left to look at of."""
    unseen = (_of(ended), _is_open(), _PROBLEM.c.last_site_run != ended.site_run_id)
    document = _PROBLEM.c.document_id
    logged = exists().where(
        _LOG.site_run_id == ended.site_run_id, _LOG.document_id == document, _LOG.outcome.is_not(None)
    )
    looked_at = exists().where(
        _LOG.site_run_id == ended.site_run_id, _LOG.document_id == document, _LOG.outcome.in_(_LOOKED_AT)
    )
    in_ledger = exists().where(_LEDGER.site_schedule_id == ended.site_id, _LEDGER.document_id == document)
    not_in_document = or_(*(_PROBLEM.c.rule.startswith(prefix) for prefix in _BEFORE_CHECKS))
    fixed = [and_(document.is_not(None), looked_at)]
    gone = [and_(document.is_not(None), logged, ~looked_at, not_in_document)]
    if ended.kind is not SiteRunKind.RETRY and ended.list_was_read:
        # Of a document that is there unchanged, warnings are still true: it was not looked at again.
        fixed += [document.is_(None), and_(~logged, in_ledger, _PROBLEM.c.needs_attention)]
        gone += [and_(document.is_not(None), ~in_ledger)]
    for state, which in ((FIXED, fixed), (GONE, gone)):
        values = {"state": state, "ended_on": today, "ended_site_run": ended.site_run_id}
        session.execute(update(_PROBLEM).where(*unseen, or_(*which)).values(**values))
