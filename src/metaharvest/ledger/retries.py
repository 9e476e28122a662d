"""Failing documents, and documents that must be tried again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date

from sqlalchemy import ColumnElement, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import Base, HarvestDocument, HarvestLog
from metaharvest.ledger.entries import DELETION_WAITS, OWED
from metaharvest.model import DocumentState, ListedDocument, OutcomeKind

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]


MOST_FAILED = 100
"""Records that failed permanently and are fetched again in each harvest, although their datestamp did not change."""


def numbers_failing(session: Session, site_ids: Sequence[int] | None = None) -> dict[int, tuple[int, date]]:
    """The number of failing documents, and the day since which the first one has failed, by site. Others are left out.

    A document is failing if it was not accepted, or was put off.
    """
    site_id = HarvestDocument.site_schedule_id
    query = select(site_id, func.count(), func.min(HarvestDocument.failing_since)).group_by(site_id)
    if site_ids is not None:
        query = query.where(site_id.in_(site_ids))
    rows = session.execute(query.where(HarvestDocument.failing_since.is_not(None)))
    return {site_id: (number, since) for site_id, number, since in rows if since is not None}


def number_put_off(session: Session, site_id: int) -> int:
    """The number of failing documents of a site that were put off the last time."""
    ours = (HarvestDocument.site_schedule_id == site_id, HarvestDocument.failing_since.is_not(None))
    put_off = HarvestDocument.outcome == OutcomeKind.DEFERRED.value
    return session.scalar(select(func.count()).select_from(HarvestDocument).where(*ours, put_off)) or 0


def to_retry(session: Session, site_id: int, today: date) -> Iterator[ListedDocument]:
    """The site's documents to try again today, sorted by document id and revision."""
    statement = (
        select(*_LEDGER.c["document_id", "revision", "document_type", "document_url"])
        .where(HarvestDocument.site_schedule_id == site_id, *_waiting(today))
        .order_by(HarvestDocument.document_id, HarvestDocument.revision)
    )
    for row in session.execute(statement.execution_options(yield_per=1000)):
        yield ListedDocument(*row)


def sites_to_retry(session: Session, today: date, site_ids: Collection[int] | None = None) -> set[int]:
    """The sites that have documents to try again today: all such sites, or only the ones among `site_ids`."""
    # Not DISTINCT: SQLite would then read the whole ledger in the order of the sites.
    query = select(HarvestDocument.site_schedule_id).where(*_waiting(today))
    if site_ids is not None:
        query = query.where(HarvestDocument.site_schedule_id.in_(site_ids))
    return set(session.scalars(query))


def _waiting(today: date) -> tuple[ColumnElement[bool], ...]:
    """Rows that are due for another try, except revisions that are too late: the target already has a higher one."""
    later = aliased(HarvestDocument)
    superseded = exists().where(
        later.site_schedule_id == HarvestDocument.site_schedule_id,
        later.document_id == HarvestDocument.document_id,
        later.revision > HarvestDocument.revision,
        later.state == DocumentState.HELD.value,
    )
    return HarvestDocument.next_attempt <= today, HarvestDocument.state.not_in(DELETION_WAITS), ~superseded


def failing(session: Session, site_id: int, site_run_id: int) -> Iterator[ListedDocument]:
    """The records that are not in the target as they should be, and have no outcome in this site run.

    These are all records that were put off, that failed transiently, whose upload has no known result, or of which a
    list showed older versions. Records that failed permanently may have been corrected without a new datestamp: a few
    of them are included, the least often tried first. Missing records are left out.
    """
    columns = _LEDGER.c["document_id", "revision", "document_type", "document_url"]
    ended = select(HarvestLog.document_id).where(
        HarvestLog.site_run_id == site_run_id, HarvestLog.document_id.is_not(None), HarvestLog.outcome.is_not(None)
    )
    is_asked_for = _LEDGER.c.listing.is_not(None)
    here = (_LEDGER.c.site_schedule_id == site_id, is_asked_for, _LEDGER.c.document_id.not_in(ended))
    has_failed, has_date = _LEDGER.c.state == DocumentState.FAILED.value, _LEDGER.c.next_attempt.is_not(None)
    # Not sorted, and the states in one IN: otherwise SQLite reads all records of the site.
    owed = (_LEDGER.c.state.in_([*OWED, DocumentState.FAILED]), or_(~has_failed, has_date))
    for row in session.connection().execute(select(*columns).where(*here, *owed)):
        yield ListedDocument(*row)
    few = select(*columns).where(*here, has_failed, ~has_date)
    few = few.order_by(_LEDGER.c.attempts, _LEDGER.c.document_id).limit(MOST_FAILED)
    for row in session.connection().execute(few):
        yield ListedDocument(*row)
