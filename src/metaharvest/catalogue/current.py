"""The tables of the catalogue, its current documents by document id, and all revisions with their bytes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, Table, bindparam, func, select
from sqlalchemy.orm import Session

from metaharvest.database import models
from metaharvest.model import HeldRevision, Holding, OutcomeKind
from metaharvest.model.values import frozen


def _table(model: type[models.Base]) -> Table:
    return models.Base.metadata.tables[model.__tablename__]


DOCUMENTS = _table(models.CatalogueDocument)
REVISIONS = _table(models.DocumentRevision)
ORIGINS = _table(models.DocumentOrigin)
TOMBSTONES = _table(models.DocumentTombstone)
COUNTER = _table(models.CatalogueCounter)
FORMER = _table(models.CatalogueFormerFormat)
SETS = _table(models.CatalogueSet)
WITHHELD = _table(models.CatalogueWithheld)
SITES = _table(models.HarvestSiteSchedule)
_LEDGER = _table(models.HarvestDocument)

IS_CURRENT = (REVISIONS.c.document_id == DOCUMENTS.c.document_id) & (REVISIONS.c.revision == DOCUMENTS.c.revision)
ORIGIN_OF_CURRENT = (ORIGINS.c.document_id == DOCUMENTS.c.document_id) & (ORIGINS.c.revision == DOCUMENTS.c.revision)
SITE_OF_CURRENT = SITES.c.site_schedule_id == DOCUMENTS.c.site_schedule_id
"""The conditions that join a current document to its revision, to its origin, and to its registered site."""

_CURRENT = (
    select(
        *DOCUMENTS.c["catalogue_document_id", "deleted", "document_id", "revision", "sha256"],
        SITES.c.site_schedule_id,
        DOCUMENTS.c.document_type,
    )
    .outerjoin(SITES, SITE_OF_CURRENT)
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

_DESCRIBED = select(
    *REVISIONS.c["document_id", "revision", "document_type", "size", "sha256", "inserted_at", "source_url"],
    REVISIONS.c.site_schedule_id.label("site_id"),
    DOCUMENTS.c.title,
).join(DOCUMENTS, DOCUMENTS.c.document_id == REVISIONS.c.document_id)
_PAGE = (
    _DESCRIBED.where(REVISIONS.c.document_id > bindparam("after"), DOCUMENTS.c.deleted.is_(False))
    .order_by(REVISIONS.c.document_id, REVISIONS.c.revision)
    .limit(bindparam("number"))
)
_OF_DOCUMENT = _DESCRIBED.where(REVISIONS.c.document_id == bindparam("document")).order_by(REVISIONS.c.revision.desc())
_CONTENTS = select(*REVISIONS.c["document_revision_id", "content"]).where(
    REVISIONS.c.document_revision_id.in_(bindparam("revisions", expanding=True))
)
_THIS = (REVISIONS.c.document_id == bindparam("document"), REVISIONS.c.revision == bindparam("revision"))


@frozen
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


def held_page(session: Session, after: str, number: int) -> list[HeldRevision]:
    """The next revisions of documents with a higher id than `after`, in the order of ids; no deleted documents."""
    rows = session.execute(_PAGE, {"after": after, "number": number}).mappings()
    return [HeldRevision(**row) for row in rows]


def revisions_of(session: Session, document_id: str) -> Sequence[HeldRevision]:
    """The revisions of one document, of a deleted one as well, the highest first."""
    rows = session.execute(_OF_DOCUMENT, {"document": document_id}).mappings()
    # Compared here too: MariaDB ignores spaces at the end.
    return [each for each in (HeldRevision(**row) for row in rows) if each.document_id == document_id]


def content_of(session: Session, document_id: str, revision: int) -> bytes | None:
    """The exact bytes of one revision; None if it is not there."""
    this = {"document": document_id, "revision": revision}
    return session.scalar(select(REVISIONS.c.content).where(*_THIS), this)


def contents_of(session: Session, revision_ids: Collection[int]) -> Mapping[int, bytes]:
    """The bytes of these revisions by key; erased ones are left out."""
    if not revision_ids:
        return {}
    rows = session.connection().execute(_CONTENTS, {"revisions": list(revision_ids)})
    return {row[0]: row[1] for row in rows}


def has_bytes(session: Session, document_id: str, revision: int, sha256: str) -> bool:
    """True if exactly these bytes are there under this document id and revision."""
    this = {"document": document_id, "revision": revision}
    found = session.execute(select(REVISIONS.c.document_id, REVISIONS.c.sha256).where(*_THIS), this).first()
    # Compared here too: MariaDB ignores spaces at the end.
    return found == (document_id, sha256)


def _holding(row: Row[*tuple[Any, ...]]) -> Holding:
    return Holding(row[2], row[3], row[4], row[5])
