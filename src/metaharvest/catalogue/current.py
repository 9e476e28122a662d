"""The current documents of the catalogue, by document id, and their number."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, bindparam, func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, CatalogueDocument, HarvestDocument, HarvestSiteSchedule
from metaharvest.model import Holding, OutcomeKind

DOCUMENTS = Base.metadata.tables[CatalogueDocument.__tablename__]
_SITES = Base.metadata.tables[HarvestSiteSchedule.__tablename__]
_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_CURRENT = (
    select(
        *DOCUMENTS.c["catalogue_document_id", "deleted", "document_id", "revision", "sha256"],
        _SITES.c.site_schedule_id,
        DOCUMENTS.c.document_type,
    )
    .outerjoin(_SITES, _SITES.c.site_schedule_id == DOCUMENTS.c.site_schedule_id)
    .where(DOCUMENTS.c.document_id.in_(bindparam("documents", expanding=True)))
)
_BETWEEN = (
    select(DOCUMENTS.c.document_id)
    .where(
        DOCUMENTS.c.document_id >= bindparam("first"),
        DOCUMENTS.c.document_id < bindparam("end"),
        DOCUMENTS.c.deleted.is_(False),
    )
    .order_by(DOCUMENTS.c.document_id)
)
_KEPT = (
    select(func.count())
    .select_from(_LEDGER)
    .join(
        DOCUMENTS,
        (DOCUMENTS.c.document_id == _LEDGER.c.document_id)
        & (DOCUMENTS.c.revision == _LEDGER.c.target_revision)
        & (DOCUMENTS.c.site_schedule_id == _LEDGER.c.site_schedule_id)
        & DOCUMENTS.c.deleted.is_(False),
    )
    .where(
        _LEDGER.c.site_schedule_id == bindparam("site"),
        _LEDGER.c.outcome == OutcomeKind.UNCHANGED.value,
        _LEDGER.c.pending_sha256.is_(None),
    )
)


@dataclass(frozen=True, slots=True)
class Current:
    """A document as it is now, with its number in the catalogue. Its site is the registered one, if there is one."""

    number: int
    deleted: bool
    document_type: str
    holding: Holding


def current_documents(session: Session, document_ids: Collection[str]) -> Mapping[str, Current]:
    """These documents, deleted ones too, by document id."""
    rows = session.connection().execute(_CURRENT, {"documents": list(document_ids)}).all()
    return {row[2]: Current(row[0], bool(row[1]), row[6], _holding(row)) for row in rows}


def held_documents(session: Session, document_ids: Collection[str]) -> Mapping[str, Holding]:
    """The documents among these that are not deleted, by document id."""
    rows = session.connection().execute(_CURRENT, {"documents": list(document_ids)}).all()
    return {row[2]: _holding(row) for row in rows if not row[1]}


def held_between(session: Session, first: str, end: str) -> list[str]:
    """The ids of documents that are not deleted, from `first` up to but without `end`, in the order of their bytes."""
    return list(session.scalars(_BETWEEN, {"first": first, "end": end}))


def number_held(session: Session) -> int:
    """The number of documents that are not deleted."""
    return session.scalar(select(func.count()).where(DOCUMENTS.c.deleted.is_(False))) or 0


def number_as_in_ledger(session: Session, site_id: int) -> int:
    """The number of the site's ledger entries that agree with the catalogue: document, revision, site."""
    return session.connection().execute(_KEPT, {"site": site_id}).scalar_one()


def _holding(row: Row[*tuple[Any, ...]]) -> Holding:
    return Holding(row[2], row[3], row[4], row[5])
