"""Documents that are gone: deletions with date and reason, deletions that wait, the missing records of a site."""

from __future__ import annotations

from datetime import date

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import (
    CatalogueDocument,
    DocumentOwner,
    DocumentTombstone,
    DocumentWithdrawal,
    HarvestDocument,
    HarvestLog,
    HarvestSiteSchedule,
)
from metaharvest.database.statements import by_document
from metaharvest.ledger.deletions import deletions_to_confirm, only_records
from metaharvest.ledger.sweeps import confirmed_deletions
from metaharvest.model import DocumentState, OutcomeKind
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen
from metaharvest.queries.records import columns, docid
from metaharvest.sites.registry import find_site
from metaharvest.text import counted, shown_url

_MISSING = "harvest_document_id document_id revision title document_url missing_since"


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
        day, site_id = tombstone.deleted_at.date(), tombstone.site_schedule_id
    elif not _is_held(session, document_id) and (deletion := _by_the_log(session, document_id)):
        day, site_id = deletion
    else:
        return ""
    name = session.scalar(select(HarvestSiteSchedule.name).where(HarvestSiteSchedule.site_schedule_id == site_id))
    site = f"the site '{name}'" if name else "its site"
    return f"{document_id} was deleted on {day}, as {site} says that it was deleted there."


def _is_held(session: Session, document_id: str) -> bool:
    """True if a target has the document: a deletion may be only recorded, and a record may move to another site."""
    catalogue = select(CatalogueDocument.document_id).where(
        CatalogueDocument.document_id == document_id, CatalogueDocument.deleted.is_(False)
    )
    others = select(DocumentOwner.document_id).where(DocumentOwner.document_id == document_id)
    # Compared here too: MariaDB ignores spaces at the end.
    return document_id in (session.scalar(catalogue), session.scalar(others))


def _by_the_log(session: Session, document_id: str) -> tuple[date, int | None] | None:
    """The day and the site of the deletion by the newest outcome, for targets that keep no date."""
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
        return None
    return row[1], row[2]


@frozen
class WaitingDeletions:
    """The `number` of deletions of a site that no person has confirmed, and the number `confirmed`.

    `documents`: the first documents of both, with their titles.
    """

    number: int
    confirmed: int
    documents: tuple[tuple[str, str | None], ...]

    @property
    def confirmed_sentence(self) -> str:
        """The number that was confirmed, in a sentence; empty if there is none."""
        if not self.confirmed:
            return ""
        return f"{counted(self.confirmed, 'deletion is', 'deletions are')} confirmed for the next harvest."


def waiting_deletions(session: Session, site: str, limit: int) -> WaitingDeletions:
    """The deletions that wait at this site. Raises ScheduleError if there is no such site."""
    document, found = HarvestDocument, find_site(session, site)
    site_id = found.site_id
    total = 0 if only_records(found) else deletions_to_confirm(session, site_id)
    confirmed = min(confirmed_deletions(session, site_id), total)
    its = (document.state == DocumentState.TO_CONFIRM.value, document.site_schedule_id == site_id)
    first = select(document.document_id, document.title).where(*its)
    rows = session.execute(first.order_by(*by_document(document.document_id)).limit(limit))
    return WaitingDeletions(total - confirmed, confirmed, tuple((row[0], row[1]) for row in rows))


@frozen
class MissingRecord:
    """A document of a site that full lists of its source repository do not name any more."""

    entry_id: int
    docid: str | None
    document_id: str
    title: str | None
    url: str
    missing_since: date | None


def missing_records(session: Session, site_id: int, limit: int = 100, after: int | None = None) -> list[MissingRecord]:
    """The missing records of a site in the order in which they came; `after`: the `entry_id` of a page's last one."""
    ledger = HarvestDocument
    conditions = [ledger.site_schedule_id == site_id, ledger.state == DocumentState.MISSING.value]
    if after is not None:
        conditions.append(ledger.harvest_document_id > after)
    query = select(*columns(ledger, _MISSING)).where(*conditions).order_by(ledger.harvest_document_id).limit(limit)
    return [
        record_of(
            MissingRecord,
            row,
            entry_id=row.harvest_document_id,
            docid=docid(row.document_id, row.revision),
            url=shown_url(row.document_url),
        )
        for row in session.execute(query)
    ]
