"""The date and the reason of a deletion in a target."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import (
    DocumentTombstone,
    DocumentWithdrawal,
    HarvestDocument,
    HarvestLog,
    HarvestSiteSchedule,
)
from metaharvest.model import OutcomeKind


def departure(session: Session, document_id: str) -> str:
    """A sentence with the date and the reason of this document's deletion; empty if that is not known."""
    withdrawal = session.get(DocumentWithdrawal, document_id)
    if withdrawal is not None and withdrawal.document_id == document_id:
        erased = " Its content was erased." if withdrawal.erased else ""
        by = f" by {withdrawal.withdrawn_by}" if withdrawal.withdrawn_by else ""
        reason = f"The reason: {withdrawal.reason}"
        return f"{document_id} was withdrawn on {withdrawal.withdrawn_on}{by}.{erased} {reason}"
    tombstone = session.get(DocumentTombstone, document_id)
    if tombstone is not None and tombstone.document_id == document_id:
        day, site = f"{tombstone.deleted_at:%Y-%m-%d}", _site_name(session, tombstone.site_schedule_id)
        return f"{document_id} was deleted on {day}, as {site} says that it was deleted there."
    return _by_the_log(session, document_id)


def _by_the_log(session: Session, document_id: str) -> str:
    """The same from the newest outcome in the log, for targets that keep no date of their own."""
    log = HarvestLog
    newest = (
        select(log.outcome, log.harvest_date, log.site_schedule_id, log.document_id)
        .join(HarvestDocument, HarvestDocument.document_id == log.document_id)
        .where(log.document_id == document_id, log.outcome.is_not(None))
        .order_by(log.harvest_log_id.desc())
        .limit(1)
    )
    row = session.execute(newest).first()
    if row is None or row[3] != document_id or row[0] != OutcomeKind.DELETED.value:
        return ""
    return f"{document_id} was deleted on {row[1]}, as {_site_name(session, row[2])} says that it was deleted there."


def _site_name(session: Session, site_id: int | None) -> str:
    its_row = HarvestSiteSchedule.site_schedule_id == (site_id or 0)
    name = session.scalar(select(HarvestSiteSchedule.name).where(its_row))
    return f"the site '{name}'" if name else "its site"
