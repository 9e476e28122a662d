"""The current documents of the catalogue for the stages of the pipeline, and the change feed by their numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, bindparam, exists, func, not_, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.catalogue.selection import WITHHELD, Hidden, is_gone, published
from metaharvest.database.models import Base, DocumentRevision, HarvestSiteSchedule

_REVISIONS = Base.metadata.tables[DocumentRevision.__tablename__]
_SITES = Base.metadata.tables[HarvestSiteSchedule.__tablename__]
_NUMBER = DOCUMENTS.c.catalogue_document_id
_IS_WITHHELD = exists().where(WITHHELD.c.catalogue_document_id == _NUMBER).correlate(DOCUMENTS)
IS_GONE: ColumnElement[bool] = DOCUMENTS.c.deleted | _IS_WITHHELD
"""True for a document that is deleted or withheld."""

_BY_NUMBER = (
    select(
        *DOCUMENTS.c["catalogue_document_id", "document_id", "item_identifier", "origin", "document_type", "revision"],
        _REVISIONS.c.document_revision_id,
        DOCUMENTS.c.change_seq,
        *_SITES.c["site_schedule_id", "name"],
        IS_GONE.label("gone"),
    )
    .outerjoin(_SITES, _SITES.c.site_schedule_id == DOCUMENTS.c.site_schedule_id)
    .outerjoin(
        _REVISIONS,
        and_(_REVISIONS.c.document_id == DOCUMENTS.c.document_id, _REVISIONS.c.revision == DOCUMENTS.c.revision),
    )
    .where(_NUMBER.in_(bindparam("numbers", expanding=True)))
    .order_by(_NUMBER)
)


@dataclass(frozen=True, slots=True)
class Document:
    """A current document of the catalogue. `number` is its key there, `revision_id` the key of its bytes.

    `is_gone`: it is deleted or not public, or its content was erased. `site_id` is the registered site, or None.
    """

    number: int
    document_id: str
    item_identifier: str
    origin: str | None
    document_type: str
    revision: int
    revision_id: int | None
    change_seq: int
    site_id: int | None
    site: str | None
    is_gone: bool


def stage_documents(session: Session, numbers: Collection[int]) -> Mapping[int, Document]:
    """These documents by number, in its order."""
    rows = session.connection().execute(_BY_NUMBER, {"numbers": list(numbers)})
    return {row[0]: _document(row) for row in rows}


def gone_among(session: Session, numbers: Collection[int]) -> set[int]:
    """The documents among these that are deleted or withheld."""
    query = select(_NUMBER).where(_NUMBER.in_(numbers), IS_GONE)
    return set(session.scalars(query))


def removed_after(session: Session, after_seq: int, hidden: Hidden | None) -> Mapping[int, int]:
    """The numbers of the last changes after this one that removed documents, by the number of the document.

    A removed document is deleted, withheld, or `hidden`. None: the documents of all sites are published.
    """
    query = select(_NUMBER, DOCUMENTS.c.change_seq).where(DOCUMENTS.c.change_seq > after_seq, not_(_is_shown(hidden)))
    return {row[0]: row[1] for row in session.execute(query)}


def shown_after(session: Session, after_seq: int, hidden: Hidden | None) -> Iterator[int]:
    """The numbers of the documents that changed after this change, and are not removed."""
    yield from session.scalars(select(_NUMBER).where(DOCUMENTS.c.change_seq > after_seq, _is_shown(hidden)))


def _is_shown(hidden: Hidden | None) -> ColumnElement[bool]:
    if hidden is None:
        return not_(IS_GONE)
    return and_(not_(is_gone(DOCUMENTS, hidden)), *published(DOCUMENTS, hidden))


def changed_numbers(session: Session, after_seq: int, limit: int) -> Sequence[tuple[int, int]]:
    """The next changes after this one in commit order, at most `limit`: their numbers, and the documents' own."""
    change = DOCUMENTS.c.change_seq
    query = select(change, _NUMBER).where(change > after_seq).order_by(change).limit(limit)
    return [(seq, number) for seq, number in session.execute(query)]


def number_of_changes(session: Session, after_seq: int) -> int:
    """The number of documents that changed after this change."""
    return session.scalar(select(func.count()).where(DOCUMENTS.c.change_seq > after_seq)) or 0


def _document(row: Row[*tuple[Any, ...]]) -> Document:
    *values, is_gone = row
    revision_id = values[6]
    return Document(*[*values, bool(is_gone) or revision_id is None])
