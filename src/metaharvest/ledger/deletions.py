"""Deletions that source repositories report, and that wait until the target deletes the documents."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestDocument, HarvestLog, HarvestSiteSchedule, SiteCheckpoint
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.ledger.records import BEFORE_SPLIT
from metaharvest.ledger.rows import ENTRY
from metaharvest.ledger.states import DELETION_WAITS
from metaharvest.ledger.sweeps import keep_columns
from metaharvest.model import DocumentState, OutcomeKind, Site

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_CHECKPOINTS = Base.metadata.tables[SiteCheckpoint.__tablename__]
_AT_ONCE = 500
_WAITS = _LEDGER.c.state.in_(DELETION_WAITS)


DEFAULT_MAX_LOSS = 10
"""The share of a site's documents, in percent, that may be deleted in one harvest without being confirmed."""

ALWAYS_DELETED = 20
"""So many deletions are never too many, but for a site that may lose none."""

_IS_TO_BE_CONFIRMED = (
    _LEDGER.c.state == DocumentState.TO_CONFIRM.value,
    _LEDGER.c.next_attempt.is_not(None),  # so it always is: there is an index
)


def most_unconfirmed(max_loss: int | None, held: int) -> int:
    """So many of its documents a site may lose at once without that being confirmed: a share, or a few; none for 0."""
    if max_loss == 0:
        return 0
    return max(ALWAYS_DELETED, held * (DEFAULT_MAX_LOSS if max_loss is None else max_loss) // 100)


def to_delete(session: Session, site_id: int, site_run_id: int) -> list[LedgerEntry]:
    """The records that their repository says are deleted, and of which the target has not been told yet.

    Those that were refused in this site run, before it was interrupted, are left to the next one.
    """
    refused = select(HarvestLog.document_id).where(
        HarvestLog.site_run_id == site_run_id,
        HarvestLog.document_id.is_not(None),
        HarvestLog.outcome == OutcomeKind.UPLOAD_ERROR.value,
    )
    query = select(*ENTRY).where(_LEDGER.c.site_schedule_id == site_id, _WAITS, _LEDGER.c.document_id.not_in(refused))
    rows = session.connection().execute(query.order_by(_LEDGER.c.document_id))
    return [LedgerEntry(*row) for row in rows]


def waiting_before_split(session: Session, site: Site, document_ids: Sequence[str]) -> set[str]:
    """Those of these records whose deletions wait at the site that this one was split from: they are told there."""
    first = site.options.split_from
    if first is None or first == site.name or not document_ids:
        return set()
    query = select(_LEDGER.c.document_id).join(
        HarvestSiteSchedule, HarvestSiteSchedule.site_schedule_id == _LEDGER.c.site_schedule_id
    )
    query = query.where(HarvestSiteSchedule.name == first, _LEDGER.c.listing == BEFORE_SPLIT, _WAITS)
    found: set[str] = set()
    for begin in range(0, len(document_ids), _AT_ONCE):
        found |= {*session.scalars(query.where(_LEDGER.c.document_id.in_(document_ids[begin : begin + _AT_ONCE])))}
    return found


def confirm_deletions(session: Session, site_id: int) -> int:
    """Let the next harvest delete the documents that were put off, however many; how many there are."""
    number = deletions_to_confirm(session, site_id)
    if number:
        keep_columns(session, site_id, {"confirmed": number})
    return number


def deletions_to_confirm(session: Session, site_id: int) -> int:
    """How many documents were put off as too many of the site are deleted, confirmed or not, and wait still.

    Those that wait for something else, as the list of a set or the target, are not among them.
    """
    here = _LEDGER.c.site_schedule_id == site_id
    return session.scalar(select(func.count()).where(here, *_IS_TO_BE_CONFIRMED)) or 0


def deletions_unconfirmed(session: Session) -> dict[int, int]:
    """The number of deletions that wait for a confirmation, by site. Sites without any are left out."""
    rows = (
        select(_LEDGER.c.site_schedule_id, func.count(), func.coalesce(func.max(_CHECKPOINTS.c.confirmed), 0))
        .outerjoin(_CHECKPOINTS, _CHECKPOINTS.c.site_schedule_id == _LEDGER.c.site_schedule_id)
        .where(*_IS_TO_BE_CONFIRMED)
        .group_by(_LEDGER.c.site_schedule_id)
    )
    return {
        site_id: put_off - confirmed for site_id, put_off, confirmed in session.execute(rows) if put_off > confirmed
    }
