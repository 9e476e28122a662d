"""The revisions of the catalogue: their descriptions, and their bytes."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.database.models import Base, DocumentRevision
from metaharvest.model import HeldRevision

_REVISIONS = Base.metadata.tables[DocumentRevision.__tablename__]
_DESCRIBED = select(
    *_REVISIONS.c["document_id", "revision", "document_type", "size", "sha256", "inserted_at", "source_url"],
    _REVISIONS.c.site_schedule_id.label("site_id"),
    DOCUMENTS.c.title,
).join(DOCUMENTS, DOCUMENTS.c.document_id == _REVISIONS.c.document_id)
_PAGE = (
    _DESCRIBED.where(_REVISIONS.c.document_id > bindparam("after"), DOCUMENTS.c.deleted.is_(False))
    .order_by(_REVISIONS.c.document_id, _REVISIONS.c.revision)
    .limit(bindparam("number"))
)
_OF_DOCUMENT = _DESCRIBED.where(_REVISIONS.c.document_id == bindparam("document")).order_by(
    _REVISIONS.c.revision.desc()
)
_THIS = (_REVISIONS.c.document_id == bindparam("document"), _REVISIONS.c.revision == bindparam("revision"))


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
    return session.scalar(select(_REVISIONS.c.content).where(*_THIS), this)


def has_bytes(session: Session, document_id: str, revision: int, sha256: str) -> bool:
    """True if exactly these bytes are there under this document id and revision."""
    this = {"document": document_id, "revision": revision}
    found = session.execute(select(_REVISIONS.c.document_id, _REVISIONS.c.sha256).where(*_THIS), this).first()
    # Compared here too: MariaDB ignores spaces at the end.
    return found == (document_id, sha256)
