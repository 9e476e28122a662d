"""What the findings of a site amount to over the nights: which are new, which are still there, which were fixed.

A problem is a finding by its fingerprint (document id, rule, place). It is brought up to date as a site run closes,
from what that has logged; reports and people read it from the table site_problem. Nothing here asks what a rule means,
but for one thing: what was not looked at stays open, because the document could not be fetched, or because something
that is looked at earlier was wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import ColumnElement, and_, case, delete, exists, false, func, insert, literal, or_, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from metaharvest.database.models import Base, HarvestDetailLog, HarvestDocument, HarvestLog, SiteCheckpoint, SiteProblem
from metaharvest.ledger.entries import GOOD
from metaharvest.model import DocumentState, OutcomeKind, SiteRunKind
from metaharvest.reports.findings import MANY_DELETIONS, MISSING, SPLIT, is_attention

OPEN, FIXED, GONE = "open", "fixed", "gone"

_PROBLEM = Base.metadata.tables[SiteProblem.__tablename__]
_LOG, _DETAIL, _LEDGER = HarvestLog, HarvestDetailLog, HarvestDocument
_LOOKED_AT = [kind.value for kind in (OutcomeKind.INSERTED, OutcomeKind.UPDATED)]
"""The outcomes of documents of which everything was looked at; others were as far as `_looked_at` says."""

_NOT_WANTED = [kind.value for kind in (OutcomeKind.DELETED, OutcomeKind.FILTERED)]
"""The outcomes of documents of which nobody wants to know any more what is wrong with them."""

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
"""In which order documents are looked at, by what rules begin with: an error ends it. All other rules come first."""

_OF_WHOLE_LISTS = (
    "oai.empty", "oai.datestamp", "oai.duplicates", "oai.from", "oai.identifier", "oai.ill-formed", "oai.list-size",
    "oai.no-metadata", "oai.protocol",
)  # fmt: skip
"""The rules of what is odd about the records of a repository's list as a whole."""

_BEFORE_CHECKS = ("http.", "file.", "list.", "target.", "site.", "harvest.")
"""What the rules begin with that are not about what is in a document."""


@dataclass(frozen=True, slots=True)
class EndedSiteRun:
    """A site run that closes. `list_was_read`: the ledger mirrors what the site lists now.

    `is_complete`: the list named everything, not only what has changed.
    """

    site_id: int
    site_run_id: int
    kind: SiteRunKind
    list_was_read: bool
    has_findings: bool
    is_complete: bool = True


def update_problems(session: Session, ended: Sequence[EndedSiteRun], today: date) -> None:
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


def end_those_of_lists(session: Session, site_id: int, site_run_id: int, today: date) -> None:
    """End the problems of the site's lists, which nobody has mended: from now on it asks for other records.

    Those that are found again begin anew; those of documents end with the list, if that does not name them.
    """
    of_lists = (_PROBLEM.c.document_id.is_(None), or_(_starts_with("oai."), _PROBLEM.c.rule == MISSING))
    values = {"state": GONE, "ended_on": today, "ended_site_run": site_run_id}
    session.execute(
        update(_PROBLEM).where(_PROBLEM.c.site_schedule_id == site_id, _is_open(), *of_lists).values(values)
    )


def purge(session: Session, limit: date) -> None:
    """Delete what ended before `limit`."""
    session.execute(delete(_PROBLEM).where(_PROBLEM.c.ended_on < limit))


def _is_open() -> ColumnElement[bool]:
    return _PROBLEM.c.state == OPEN


def _of(ended: EndedSiteRun) -> ColumnElement[bool]:
    return _PROBLEM.c.site_schedule_id == ended.site_id


def _count_night(session: Session, ended: EndedSiteRun) -> None:
    session.execute(update(_PROBLEM).where(_of(ended), _is_open()).values(nights=_PROBLEM.c.nights + 1))


def _see_again(session: Session, ended: EndedSiteRun, today: date) -> None:
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
    # The site may be checked at another level by now: what was an error may be a warning, and the other way round.
    grave = _PROBLEM.c.fingerprint.in_(found.where(is_attention()))
    seen = {"last_seen": today, "last_site_run": ended.site_run_id, "needs_attention": grave}
    session.execute(update(_PROBLEM).where(*again).values(seen))


def _add_new(session: Session, ended: EndedSiteRun, today: date) -> None:
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


def _end(session: Session, ended: EndedSiteRun, today: date) -> None:
    """End what this site run has not found again, although it looked; and what there is nothing left to look at of."""
    fixed, gone = _ended_by_log(ended)
    if ended.kind is not SiteRunKind.RETRY and ended.list_was_read:
        fixed_by_list, gone_by_list = _ended_by_list(ended)
        fixed, gone = or_(fixed, fixed_by_list), or_(gone, gone_by_list)
    unseen = (_of(ended), _is_open(), _PROBLEM.c.last_site_run != ended.site_run_id)
    for state, which in ((FIXED, fixed), (GONE, gone)):  # what is fixed is not gone as well: it is not open any more
        values = {"state": state, "ended_on": today, "ended_site_run": ended.site_run_id}
        session.execute(update(_PROBLEM).where(*unseen, which).values(**values))


def _ended_by_log(ended: EndedSiteRun) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """What was fixed, and what is gone, by what the site run has logged of documents, and of an unread list."""
    is_of_document = _PROBLEM.c.document_id.is_not(None)
    looked_at = _is_logged(ended, _looked_at())
    # A document that had been changed under its revision, and has the repository's bytes again: see journal/looks.py.
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
    """What was fixed, and what is gone, by what the list says that was read."""
    rule, is_of_document = _PROBLEM.c.rule, _PROBLEM.c.document_id.is_not(None)
    # What a complete list of a repository did not name is known still, as long as the target has it; and so is what is
    # not asked for any more, as somebody has given the site other sets or dates.
    is_asked_for = or_(_LEDGER.listing.is_not(None), ~_is_repository(ended))
    is_listed = _is_known(ended, _LEDGER.state != DocumentState.MISSING.value, is_asked_for)
    is_unchanged = and_(
        ~_is_logged(ended, _LOG.outcome.is_not(None)),
        _is_known(ended, _LEDGER.outcome.in_([kind.value for kind in GOOD])),
    )
    # A revision that failed, and that the repository cannot take any more, as a higher one is in.
    is_too_late = _is_known(
        ended,
        _LEDGER.revision < _LEDGER.target_revision,
        _LEDGER.revision == _DETAIL.revision,
        _DETAIL.detail_log_id == _PROBLEM.c.detail_log_id,
    )
    # Whether it is gone what a full list showed, changes alone cannot say.
    of_whole = () if ended.is_complete else _OF_WHOLE_LISTS
    fixed = or_(
        # Of a document that is there unchanged, warnings are still true: it was not looked at again.
        and_(is_unchanged, is_listed, ~is_too_late, _PROBLEM.c.needs_attention),
        and_(~is_of_document, rule.not_in((MISSING, MANY_DELETIONS, SPLIT, *of_whole))),
        and_(rule == MANY_DELETIONS, ~_was_any_deleted(ended)),
        _is_missing_no_longer(ended),
    )
    gone = or_(
        and_(is_of_document, ~is_listed),
        and_(is_unchanged, is_too_late),
        and_(~is_of_document, rule.in_((MANY_DELETIONS, SPLIT, *of_whole))),
        _is_forgotten(ended),
    )
    return fixed, gone


def _is_logged(ended: EndedSiteRun, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether the site run has logged this of a problem's document."""
    of_document = (_LOG.site_run_id == ended.site_run_id, _LOG.document_id == _PROBLEM.c.document_id)
    return exists().where(*of_document, *conditions)


def _is_known(ended: EndedSiteRun, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether the ledger says this of a problem's document."""
    of_document = (_LEDGER.site_schedule_id == ended.site_id, _LEDGER.document_id == _PROBLEM.c.document_id)
    return exists().where(*of_document, *conditions)


def _starts_with(*prefixes: str) -> ColumnElement[bool]:
    return or_(*(_PROBLEM.c.rule.startswith(prefix) for prefix in prefixes))


def _is_repository(ended: EndedSiteRun) -> ColumnElement[bool]:
    return exists().where(SiteCheckpoint.site_schedule_id == ended.site_id)


def _was_any_deleted(ended: EndedSiteRun) -> ColumnElement[bool]:
    """Whether there are fewer deletions to be confirmed for having been confirmed, or noted."""
    return exists().where(_LOG.site_run_id == ended.site_run_id, _LOG.outcome == OutcomeKind.DELETED.value)


def _is_missing_no_longer(ended: EndedSiteRun) -> ColumnElement[bool]:
    """Whether a record that was missing has been named again; of the number of all of them, whether it is told no more.

    The findings about them are on one log row, which is of none of them.
    """
    is_named = and_(_LEDGER.state != DocumentState.MISSING.value, _LEDGER.listing.is_not(None))
    is_number = ~_names() if ended.is_complete else false()
    return and_(_PROBLEM.c.rule == MISSING, or_(_names(_LEDGER.site_schedule_id == ended.site_id, is_named), is_number))


def _is_forgotten(ended: EndedSiteRun) -> ColumnElement[bool]:
    """Whether nothing is known any more of a record that was missing."""
    return and_(_PROBLEM.c.rule == MISSING, ~_names(_LEDGER.site_schedule_id == ended.site_id))


def _names(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Whether the finding of a problem names a record; with conditions, one whose row in the ledger meets them."""
    of_problem = exists().where(_DETAIL.detail_log_id == _PROBLEM.c.detail_log_id, _DETAIL.document_id.is_not(None))
    return of_problem.where(_LEDGER.document_id == _DETAIL.document_id, *conditions) if conditions else of_problem


def _list_was_served(ended: EndedSiteRun) -> ColumnElement[bool]:
    """Whether anything was found in the list of this site run: then it was fetched."""
    return (
        exists()
        .where(_LOG.site_run_id == ended.site_run_id, _LOG.document_id.is_(None))
        .where(_DETAIL.harvest_log_id == _LOG.harvest_log_id)
        .where(_DETAIL.rule.startswith("list."))
    )


def _looked_at() -> ColumnElement[bool]:
    """Whether the log row of a document's outcome tells that the place of a problem in it was looked at.

    Of what is not valid, that is so up to the stage at which it failed: nothing was found after that, and for a loose
    site the findings are warnings, too. What was refused may not have been fetched.
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
