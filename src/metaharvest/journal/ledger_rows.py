"""Writes rows of the ledger, harvest_document. What they become is decided in sites/ledger.py."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sqlalchemy import delete, update
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestDocument
from metaharvest.database.rows import insert_rows
from metaharvest.model import ListedDocument, SiteRun

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]

Columns = dict[str, object]


def ledger_key(site_run: SiteRun, document: ListedDocument) -> Columns:
    """The columns that name a document in the ledger, and say where it is."""
    return {
        "site_schedule_id": site_run.site.site_id,
        "document_id": document.document_id,
        "revision": document.revision,
        "document_url": document.url,
        "document_type": document.document_type,
    }


def write_ledger(session: Session, new: Sequence[Columns], changed: Sequence[Columns]) -> None:
    """Insert and update ledger rows, those with the same columns in one statement."""
    for rows in _alike(new):
        insert_rows(session.connection(), _LEDGER, rows)
    for rows in _alike(changed):
        session.execute(update(HarvestDocument), rows)


def delete_entries(session: Session, entry_ids: Sequence[int]) -> None:
    """Delete these rows."""
    session.execute(delete(HarvestDocument).where(HarvestDocument.harvest_document_id.in_(entry_ids)))


def forget_missing(session: Session, site_ids: Collection[int], document_ids: Sequence[str]) -> None:
    """Delete the rows of these sites about those of these records that are missing there, and are not being sent."""
    is_theirs = (_LEDGER.c.site_schedule_id.in_(site_ids), _LEDGER.c.document_id.in_(document_ids))
    is_missing = (_LEDGER.c.missing_since.is_not(None), _LEDGER.c.pending_sha256.is_(None))
    session.execute(delete(_LEDGER).where(*is_theirs, *is_missing))


def _alike(rows: Sequence[Columns]) -> Iterator[list[Columns]]:
    """The rows, those with the same columns together."""
    groups: dict[frozenset[str], list[Columns]] = {}
    for row in rows:
        groups.setdefault(frozenset(row), []).append(row)
    yield from groups.values()
