"""What the embedded target holds: documents, their revisions, the exact bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import DocumentRevision
from metaharvest.errors import MetaharvestError
from metaharvest.queries.records import columns

_REVISIONS = select(
    *columns(DocumentRevision, "document_id revision document_type size sha256 inserted_at source_url"),
    DocumentRevision.site_schedule_id.label("site_id"),
)
"""Revisions without their bytes. `size` is in bytes; `site_id` is the site that the revision came from."""

_ROWS_AT_ONCE = 1000


def held_documents(session: Session) -> Iterable[Row[Any]]:
    """Every document's highest revision, in the order of their ids."""
    later = aliased(DocumentRevision)
    has_later = (
        select(later.document_id)
        .where(later.document_id == DocumentRevision.document_id, later.revision > DocumentRevision.revision)
        .exists()
    )
    statement = _REVISIONS.where(~has_later).order_by(DocumentRevision.document_id)
    return session.execute(statement.execution_options(yield_per=_ROWS_AT_ONCE))


def held_revisions(session: Session, document_id: str) -> list[Row[Any]]:
    """All revisions of one document, the highest first."""
    statement = _REVISIONS.where(DocumentRevision.document_id == document_id)
    return list(session.execute(statement.order_by(DocumentRevision.revision.desc())))


def held_content(session: Session, document_id: str, revision: int) -> bytes | None:
    """The exact bytes of one revision; None if it is not there."""
    statement = select(DocumentRevision.content).filter_by(document_id=document_id, revision=revision)
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
