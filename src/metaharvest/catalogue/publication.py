"""Reads of the catalogue for publication: items, whole records, document types, origins, sets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, and_, bindparam, func, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.catalogue.provenance import ORIGIN_OF_CURRENT, PROVENANCE, Provenance, provenance_from
from metaharvest.catalogue.selection import CatalogueEntry, Hidden, published
from metaharvest.database.models import Base, CatalogueSet, DocumentOrigin, DocumentRevision

_REVISIONS = Base.metadata.tables[DocumentRevision.__tablename__]
_ORIGINS = Base.metadata.tables[DocumentOrigin.__tablename__]
_SETS = Base.metadata.tables[CatalogueSet.__tablename__]
_IS_CURRENT = and_(_REVISIONS.c.document_id == DOCUMENTS.c.document_id, _REVISIONS.c.revision == DOCUMENTS.c.revision)
_ID = DOCUMENTS.c.document_id
_OF_ITEMS = (
    select(*DOCUMENTS.c["catalogue_document_id", "item_identifier", "origin", "site_schedule_id"], _ORIGINS.c.altered)
    .outerjoin(_ORIGINS, ORIGIN_OF_CURRENT)
    .where(DOCUMENTS.c.item_identifier.in_(bindparam("items", expanding=True)))
)
_STORED = (
    select(
        DOCUMENTS.c.catalogue_document_id,
        *_REVISIONS.c["document_revision_id", "size"],
        _ORIGINS.c.document_id,
        *PROVENANCE,
    )
    .join(_REVISIONS, _IS_CURRENT)
    .outerjoin(_ORIGINS, ORIGIN_OF_CURRENT)
    .where(DOCUMENTS.c.catalogue_document_id.in_(bindparam("documents", expanding=True)))
)
_CONTENTS = select(*_REVISIONS.c["document_revision_id", "content"]).where(
    _REVISIONS.c.document_revision_id.in_(bindparam("revisions", expanding=True))
)
_NOTHING = Hidden()


@dataclass(frozen=True, slots=True)
class ItemDocument:
    """A document of an item: the origin of the item, and its identifier there. `altered`: it was normalised."""

    item_identifier: str
    origin: str | None
    altered: bool


@dataclass(frozen=True, slots=True)
class StoredRevision:
    """A current revision: its number in the table, its size in bytes, and its provenance.

    The provenance is None for a document of a harvest list as received. It is without sets: sets_of() has those of the
    document.
    """

    number: int
    size: int
    provenance: Provenance | None


def documents_of_items(session: Session, item_identifiers: Collection[str], hidden: Hidden) -> Sequence[ItemDocument]:
    """The published documents, of any origin, of these items, in the order of their numbers; deleted ones, too."""
    rows: Sequence[Any] = session.connection().execute(_OF_ITEMS, {"items": list(item_identifiers)}).all()
    # Compared here too: MariaDB ignores spaces at the end.
    return [
        ItemDocument(item, origin, bool(altered))
        for _, item, origin, site, altered in sorted(rows, key=itemgetter(0))
        if item in item_identifiers and site not in hidden.sites and origin not in hidden.origins
    ]


def stored_revisions(session: Session, entries: Collection[CatalogueEntry]) -> Mapping[int, StoredRevision]:
    """The current revisions of these documents, by number; one whose content was erased is left out."""
    rows: Sequence[Any] = session.connection().execute(_STORED, {"documents": [each.number for each in entries]}).all()
    return {
        document: StoredRevision(number, size, None if of is None else provenance_from(values))
        for document, number, size, of, *values in rows
    }


def contents(session: Session, revisions: Collection[StoredRevision]) -> Mapping[int, bytes]:
    """The bytes of these revisions, by their number in the table."""
    rows = session.connection().execute(_CONTENTS, {"revisions": [each.number for each in revisions]}).all()
    return dict(tuple(row) for row in rows)


def document_types(session: Session) -> Sequence[str]:
    """The document types of all documents, sorted."""
    return list(_distinct(session, DOCUMENTS.c.document_type))


def origins(session: Session, hidden: Hidden = _NOTHING) -> Sequence[str]:
    """The origins of all documents that are not hidden, sorted."""
    found = [each for each in _distinct(session, DOCUMENTS.c.origin) if each not in hidden.origins]
    if not hidden.sites:
        return found
    own = select(DOCUMENTS.c.origin).where(*published(DOCUMENTS, hidden)).limit(1)
    return [each for each in found if session.scalar(own.where(DOCUMENTS.c.origin == each)) is not None]


def has_origin(session: Session, origin: str) -> bool:
    """True if a document has this origin."""
    # Compared here: MariaDB ignores spaces at the end.
    return session.scalar(select(DOCUMENTS.c.origin).where(DOCUMENTS.c.origin == origin).limit(1)) == origin


def has_several_formats(session: Session) -> bool:
    """True if the catalogue has the records of any origin in several formats.

    The document id of a record is its origin, prefix and identifier: only the first and the last one are compared.
    """
    for origin in origins(session):
        # Document ids that begin with `origin/`: `0` follows `/`.
        of_origin = select(_ID).where(f"{origin}/" <= _ID, f"{origin}0" > _ID).limit(1)
        first, last = session.scalar(of_origin.order_by(_ID)), session.scalar(of_origin.order_by(_ID.desc()))
        if first and last and first.split("/")[1] != last.split("/")[1]:
            return True
    return False


def source_sets(session: Session, hidden: Hidden) -> Sequence[tuple[str, str]]:
    """The sets of source repositories, as origin and set spec, sorted; also sets that have deleted documents only.

    Sets that have only hidden documents are left out.
    """
    query = select(DOCUMENTS.c.origin, _SETS.c.set_spec).join(
        DOCUMENTS, DOCUMENTS.c.catalogue_document_id == _SETS.c.catalogue_document_id
    )
    rows = session.execute(query.where(DOCUMENTS.c.origin.is_not(None), *published(DOCUMENTS, hidden)).distinct())
    return sorted((origin, set_spec) for origin, set_spec in rows)


def _distinct(session: Session, column: ColumnElement[Any]) -> Iterator[str]:
    """The values of a column that begins an index, from one to the next."""
    value = session.scalar(select(func.min(column)))
    while value is not None:
        yield str(value)
        value = session.scalar(select(func.min(column)).where(column > value))
