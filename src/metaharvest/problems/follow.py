"""Follows the findings of a site over the nights: new, still there, or fixed.

A problem is a finding by its fingerprint (document id, rule, place). It is updated as a site run closes, from the log
of that site run; reports and people read it from the table site_problem. The meaning of a rule matters only for one
thing: a problem stays open if its place was not checked, because the document could not be fetched, or because an
earlier check failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, and_, case, delete, exists, false, func, insert, literal, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from metaharvest.database.models import Base, HarvestDetailLog, HarvestDocument, HarvestLog, SiteCheckpoint, SiteProblem
from metaharvest.ledger.entries import GOOD
from metaharvest.model import DocumentState, OutcomeKind, SiteRunKind
from metaharvest.model.values import frozen
from metaharvest.problems.attention import IS_ATTENTION, MANY_DELETIONS, MISSING, SPLIT

OPEN, FIXED, GONE = "open", "fixed", "gone"

_PROBLEM = Base.metadata.tables[SiteProblem.__tablename__]
_IS_OPEN = _PROBLEM.c.state == OPEN
_LOG, _DETAIL, _LEDGER = HarvestLog, HarvestDetailLog, HarvestDocument
_LOOKED_AT = [kind.value for kind in (OutcomeKind.INSERTED, OutcomeKind.UPDATED)]
"""The outcomes of documents that were checked completely; others were checked as far as `_looked_at` says."""

_NOT_WANTED = [kind.value for kind in (OutcomeKind.DELETED, OutcomeKind.FILTERED)]
"""The outcomes of documents whose problems no longer matter."""

_STAGES = {
    "xml.": 1,
    "eml.not-eml": 2,
    "eml.document-type": 2,
    "schema.": 3,
    "validation.no-schema": 3,
    "findings.": 3,
    "eml.": 4,
    "target.": 5,
}
"""The order of the checks of a document, by the beginnings of rules: an error ends them. Other rules come first."""

_OF_WHOLE_LISTS = (
    "oai.empty", "oai.datestamp", "oai.duplicates", "oai.from", "oai.identifier", "oai.ill-formed", "oai.list-size",
    "oai.no-metadata", "oai.protocol",
)  # fmt: skip
"""The rules of oddities in the records of a source repository's list as a whole."""

_BEFORE_CHECKS = ("http.", "file.", "list.", "target.", "site.", "harvest.")
"""The beginnings of rules that are not about the content of a document."""


@frozen
class EndedSiteRun:
    """A site run that closes. `list_was_read`: the ledger mirrors the site's present list.

    `is_complete`: the list named everything, not only the changes.
    """

    site_id: int
    site_run_id: int
    kind: SiteRunKind
    list_was_read: bool
    has_findings: bool
    is_complete: bool = True


def update_problems(session: Session, ended: Sequence[EndedSiteRun], today: date) -> None:
    """Update the problems of these sites; there is no query for sites that have no problems, and had none."""
    sites = [each.site_id for each in ended]
    query = select(_PROBLEM.c.site_schedule_id).where(_PROBLEM.c.site_schedule_id.in_(sites), _IS_OPEN).distinct()
    with_problems = set(session.scalars(query))
    for each in ended:
        if each.site_id in with_problems and each.kind is not SiteRunKind.RETRY:
            session.execute(update(_PROBLEM).where(_of(each), _IS_OPEN).values(nights=_PROBLEM.c.nights + 1))
        if each.has_findings:
            _see_again(session, each, today)
            _add_new(session, each, today)
        if each.site_id in with_problems:
            _end(session, each, today)


def end_those_of_lists(session: Session, site_id: int, site_run_id: int, today: date) -> None:
    """End the problems of the site's lists without a repair: from now on the site requests other records.

    Problems that are found again begin again; problems of documents end with the list, if that does not name them.
    """
    of_lists = (_PROBLEM.c.document_id.is_(None), or_(_starts_with("oai."), _PROBLEM.c.rule == MISSING))
    values = {"state": GONE, "ended_on": today, "ended_site_run": site_run_id}
    session.execute(update(_PROBLEM).where(_PROBLEM.c.site_schedule_id == site_id, _IS_OPEN, *of_lists).values(values))


def purge(session: Session, limit: date) -> None:
    """Delete what ended before `limit`."""
    session.execute(delete(_PROBLEM).where(_PROBLEM.c.ended_on < limit))


def _of(ended: EndedSiteRun) -> ColumnElement[bool]:
    return _PROBLEM.c.site_schedule_id == ended.site_id


def _see_again(session: Session, ended: EndedSiteRun, today: date) -> None:
    """Add the problems that this site run found; problems that had ended begin again."""
    found = (
        select(
            _DETAIL.fingerprint,
            # The site may be checked at another level by now: an error may be a warning now, and vice versa.
            func.max(case((IS_ATTENTION, 1), else_=0)).label("attention"),
            func.min(_DETAIL.detail_log_id).label("first_row"),
        )
        .join(_LOG, _LOG.harvest_log_id == _DETAIL.harvest_log_id)
        .where(_LOG.site_run_id == ended.site_run_id, _DETAIL.fingerprint.is_not(None))
        .group_by(_DETAIL.fingerprint)
        .subquery()
    )
    again = (_of(ended), _PROBLEM.c.fingerprint == found.c.fingerprint)
    session.execute(
        update(_PROBLEM)
        .where(*again, ~_IS_OPEN)
        .values(state=OPEN, first_seen=today, first_site_run=ended.site_run_id, nights=1)
        .values(ended_on=None, ended_site_run=None)
    )
    seen = {"last_seen": today, "last_site_run": ended.site_run_id, "needs_attention": found.c.attention == 1}
    session.execute(update(_PROBLEM).where(*again).values(**seen, detail_log_id=found.c.first_row))


def _add_new(session: Session, ended: EndedSiteRun, today: date) -> None:
    known = exists().where(_of(ended), _PROBLEM.c.fingerprint == _DETAIL.fingerprint)
    values: dict[str, ColumnElement[Any]] = {
        "site_schedule_id": literal(ended.site_id),
        "fingerprint": _DETAIL.fingerprint.expression,
        "document_id": func.min(_LOG.document_id),
        "rule": func.min(_DETAIL.rule),
        "needs_attention": func.max(case((IS_ATTENTION, 1), else_=0)) == 1,
        "detail_log_id": func.min(_DETAIL.detail_log_id),
        "state": literal(OPEN),
        **dict.fromkeys(("first_seen", "last_seen"), literal(today)),
        **dict.fromkeys(("first_site_run", "last_site_run"), literal(ended.site_run_id)),
        "nights": literal(1),
    }
    found = (
        select(*values.values())
        .join(_LOG, _LOG.harvest_log_id == _DETAIL.harvest_log_id)
        .where(_LOG.site_run_id == ended.site_run_id, _DETAIL.fingerprint.is_not(None), ~known)
        .group_by(_DETAIL.fingerprint)
    )
    session.execute(insert(_PROBLEM).from_select([*values], found, include_defaults=False))


def _end(session: Session, ended: EndedSiteRun, today: date) -> None:
    """End the problems that this site run has checked and not found, and the problems of documents that are gone."""
    fixed, gone = _ended_by_log(ended)
    if ended.kind is not SiteRunKind.RETRY and ended.list_was_read:
        fixed_by_list, gone_by_list = _ended_by_list(ended)
        fixed, gone = or_(fixed, fixed_by_list), or_(gone, gone_by_list)
    unseen = (_of(ended), _IS_OPEN, _PROBLEM.c.last_site_run != ended.site_run_id)
    for state, which in ((FIXED, fixed), (GONE, gone)):  # a fixed problem is not gone as well: it is no longer open
        values = {"state": state, "ended_on": today, "ended_site_run": ended.site_run_id}
        session.execute(update(_PROBLEM).where(*unseen, which).values(**values))


def _ended_by_log(ended: EndedSiteRun) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The fixed problems, and the gone ones, by the log rows of the site run."""
    is_of_document = _PROBLEM.c.document_id.is_not(None)
    looked_at = _is_logged(ended, _looked_at())
    # A document that was changed under its revision, and has the target's bytes again: see journal/list_notes.py.
    put_back = _is_logged(ended, _LOG.harvest_operation_code == "MetacatHasDoc", _LOG.outcome.is_(None))
    is_not_wanted = or_(
        _is_logged(ended, _LOG.outcome.in_(_NOT_WANTED)),
        _is_known(ended, _LEDGER.state == DocumentState.DELETED.value),
    )
    fixed = or_(and_(is_of_document, looked_at), and_(_PROBLEM.c.rule == "list.changed-content", put_back))
    if not ended.list_was_read:
        fixed = or_(fixed, and_(~is_of_document, _starts_with("http.", "file."), _list_was_served(ended)))
    gone_by_now = and_(_is_logged(ended, _LOG.outcome.is_not(None)), ~looked_at, _starts_with(*_BEFORE_CHECKS))
    return fixed, and_(is_of_document, or_(gone_by_now, is_not_wanted))


def _ended_by_list(ended: EndedSiteRun) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """The fixed problems, and the gone ones, by the list that was read."""
    rule, is_of_document = _PROBLEM.c.rule, _PROBLEM.c.document_id.is_not(None)
    # A record that a complete list did not name is still known as long as the target has it; so is a record that is no
    # longer requested, as the site has other sets or dates now.
    is_repository = exists().where(SiteCheckpoint.site_schedule_id == ended.site_id)
    is_asked_for = or_(_LEDGER.listing.is_not(None), ~is_repository)
    is_listed = _is_known(ended, _LEDGER.state != DocumentState.MISSING.value, is_asked_for)
    is_unchanged = and_(
        ~_is_logged(ended, _LOG.outcome.is_not(None)),
        _is_known(ended, _LEDGER.outcome.in_([kind.value for kind in GOOD])),
    )
    # A failed revision that the target can no longer accept, as a higher one is in.
    is_too_late = _is_known(
        ended,
        _LEDGER.revision < _LEDGER.target_revision,
        _LEDGER.revision == _DETAIL.revision,
        _DETAIL.detail_log_id == _PROBLEM.c.detail_log_id,
    )
    any_deleted = exists().where(_LOG.site_run_id == ended.site_run_id, _LOG.outcome == OutcomeKind.DELETED.value)
    # A list of changes cannot say that a problem of a full list is gone.
    of_whole = () if ended.is_complete else _OF_WHOLE_LISTS
    fixed = or_(
        # Warnings about an unchanged document are still true: it was not checked again.
        and_(is_unchanged, is_listed, ~is_too_late, _PROBLEM.c.needs_attention),
        and_(~is_of_document, rule.not_in((MISSING, MANY_DELETIONS, SPLIT, *of_whole))),
        # Fewer deletions wait for confirmation if some were confirmed, or noted: then it is not fixed.
        and_(rule == MANY_DELETIONS, ~any_deleted),
        _is_missing_no_longer(ended),
    )
    gone = or_(
        and_(is_of_document, ~is_listed),
        and_(is_unchanged, is_too_late),
        and_(~is_of_document, rule.in_((MANY_DELETIONS, SPLIT, *of_whole))),
        and_(rule == MISSING, _is_forgotten(ended)),
    )
    return fixed, gone


def _is_logged(ended: EndedSiteRun, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """True if the site run has logged this of a problem's document."""
    of_document = (_LOG.site_run_id == ended.site_run_id, _LOG.document_id == _PROBLEM.c.document_id)
    return exists().where(*of_document, *conditions)


def _is_known(ended: EndedSiteRun, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """True if the ledger says this of a problem's document."""
    of_document = (_LEDGER.site_schedule_id == ended.site_id, _LEDGER.document_id == _PROBLEM.c.document_id)
    return exists().where(*of_document, *conditions)


def _starts_with(*prefixes: str) -> ColumnElement[bool]:
    return or_(*(_PROBLEM.c.rule.startswith(prefix) for prefix in prefixes))


def _is_missing_no_longer(ended: EndedSiteRun) -> ColumnElement[bool]:
    """True if a missing record was named again. For the number of missing records: if it is no longer reported.

    The findings about them are on one log row without a document.
    """
    is_named = and_(_LEDGER.state != DocumentState.MISSING.value, _LEDGER.listing.is_not(None))
    is_number = _found(_DETAIL.document_id.is_(None)) if ended.is_complete else false()
    return and_(_PROBLEM.c.rule == MISSING, or_(_found(_names_record(ended, is_named)), is_number))


def _is_forgotten(ended: EndedSiteRun) -> ColumnElement[bool]:
    """True if the ledger no longer has the missing record of a problem.

    The number of missing records names no record, and the log may have deleted a finding with its name: such a problem
    stays as long as any record of the site is missing.
    """
    names_one = _DETAIL.document_id.is_not(None)
    any_missing = exists().where(
        _LEDGER.site_schedule_id == ended.site_id, _LEDGER.state == DocumentState.MISSING.value
    )
    return or_(_found(names_one, ~_names_record(ended)), and_(~_found(names_one), ~any_missing))


def _found(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """True if the log still has the finding of a problem, and it meets these conditions."""
    return exists().where(_DETAIL.detail_log_id == _PROBLEM.c.detail_log_id, *conditions)


def _names_record(ended: EndedSiteRun, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """True if a finding names a record whose row in the ledger meets these conditions."""
    its_row = (_LEDGER.site_schedule_id == ended.site_id, _LEDGER.document_id == _DETAIL.document_id)
    return exists().where(*its_row, *conditions)


def _list_was_served(ended: EndedSiteRun) -> ColumnElement[bool]:
    """True if anything was found in the list of this site run: then it was fetched."""
    return (
        exists()
        .where(_LOG.site_run_id == ended.site_run_id, _LOG.document_id.is_(None))
        .where(_DETAIL.harvest_log_id == _LOG.harvest_log_id)
        .where(_DETAIL.rule.startswith("list."))
    )


def _looked_at() -> ColumnElement[bool]:
    """True if the log row of a document's outcome says that the place of a problem in it was checked.

    An invalid document is checked up to the stage at which it failed. For a loose site the findings are warnings, too.
    A refused document may not have been fetched.
    """
    as_far = (
        exists()
        .where(
            _DETAIL.harvest_log_id == _LOG.harvest_log_id,
            _stage(_DETAIL.rule) >= _stage(_PROBLEM.c.rule),
        )
        .correlate(_LOG, _PROBLEM)
    )
    return or_(
        _LOG.outcome.in_(_LOOKED_AT),
        and_(_LOG.outcome == OutcomeKind.INVALID.value, as_far),
        and_(_LOG.outcome == OutcomeKind.UPLOAD_ERROR.value, _LOG.size.is_not(None)),
    )


def _stage(rule: ColumnElement[str] | InstrumentedAttribute[str]) -> ColumnElement[int]:
    return case(*((rule.startswith(beginning), number) for beginning, number in _STAGES.items()), else_=0)
