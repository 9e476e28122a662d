"""What the embedded target holds: documents, their revisions, the exact bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, aliased, defer

from metaharvest.database.models import DocumentRevision
from metaharvest.errors import MetaharvestError
from metaharvest.queries.records import record_of

_ROWS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class HeldRevision:
    """One revision of a document, without its bytes. `size` is in bytes; `site_id` is the site that it came from."""

    document_id: str
    revision: int
    document_type: str
    size: int
    sha256: str
    inserted_at: datetime
    source_url: str
    site_id: int | None


def held_documents(session: Session) -> Iterator[HeldRevision]:
    """Every document's highest revision, in the order of their ids."""
    later = aliased(DocumentRevision)
    has_later = (
        select(later.document_id)
        .where(later.document_id == DocumentRevision.document_id, later.revision > DocumentRevision.revision)
        .exists()
    )
    statement = _revisions().where(~has_later).order_by(DocumentRevision.document_id)
    return map(_held, session.scalars(statement.execution_options(yield_per=_ROWS_AT_ONCE)))


def held_revisions(session: Session, document_id: str) -> list[HeldRevision]:
    """All revisions of one document, the highest first."""
    statement = _revisions().where(DocumentRevision.document_id == document_id)
    return [_held(row) for row in session.scalars(statement.order_by(DocumentRevision.revision.desc()))]


def held_content(session: Session, document_id: str, revision: int) -> bytes | None:
    """The exact bytes of one revision; None if it is not there."""
    statement = select(DocumentRevision.content).where(
        DocumentRevision.document_id == document_id, DocumentRevision.revision == revision
    )
    return session.scalar(statement)


def find_document(session: Session, name: str) -> tuple[str, int | None]:
    """The document that `name` means, and the revision if it names one: read as a docid first, then as a document id.

    Raises MetaharvestError if the target has neither.
    """
    head, _, tail = name.rpartition(".")
    held: list[int] = []
    if head and tail.isdecimal() and tail.isascii():
        held = [row.revision for row in held_revisions(session, head)]
        if int(tail) in held:
            return head, int(tail)
    if held_revisions(session, name):
        return name, None
    if held:
        known = ", ".join(map(str, held))
        raise MetaharvestError(f"The target has no revision {tail} of {head}. It has: {known}.")
    raise MetaharvestError(f"The target has no document '{name}'. `metaharvest target list` lists those it has.")


def _revisions() -> Select[DocumentRevision]:
    return select(DocumentRevision).options(defer(DocumentRevision.content))


def _held(row: DocumentRevision) -> HeldRevision:
    return record_of(HeldRevision, row, site_id=row.site_schedule_id)
