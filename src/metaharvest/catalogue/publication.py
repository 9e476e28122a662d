"""Reads published items with their contents: whole records, document types, origins, sets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import bindparam, case, exists, func, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import (
    DOCUMENTS,
    FORMER,
    IS_CURRENT,
    ORIGIN_OF_CURRENT,
    ORIGINS,
    REVISIONS,
    SETS,
    WITHHELD,
    contents_of,
)
from metaharvest.catalogue.provenance import PROVENANCE, Provenance, provenance_from
from metaharvest.catalogue.selection import (
    NOTHING_HIDDEN,
    CatalogueEntry,
    Hidden,
    Position,
    Selection,
    Statement,
    list_rows,
    published,
    set_specs,
    sets_of,
)
from metaharvest.database.batches import batches
from metaharvest.database.statements import distinct_values

_NUMBER = DOCUMENTS.c.catalogue_document_id
_ID = DOCUMENTS.c.document_id
_OF_ITEMS = (
    select(*DOCUMENTS.c["catalogue_document_id", "item_identifier", "origin"], ORIGINS.c.altered)
    .outerjoin(ORIGINS, ORIGIN_OF_CURRENT)
    .where(DOCUMENTS.c.item_identifier.in_(bindparam("items", expanding=True)))
)
_OTHER = DOCUMENTS.alias("other")
_IS_SHARED = (
    exists()
    .where(_OTHER.c.item_identifier == DOCUMENTS.c.item_identifier, _OTHER.c.catalogue_document_id != _NUMBER)
    .correlate(DOCUMENTS)
)
_WIDTH = len(CatalogueEntry._fields)
_WITHHELD = select(WITHHELD.c.catalogue_document_id).limit(1)
_ORIGINS_AT_ONCE = 25


class ItemDocument(NamedTuple):
    """A document of an item: the origin of the item, and its identifier there. `altered`: it was normalised."""

    item_identifier: str
    origin: str | None
    altered: bool


class StoredRevision(NamedTuple):
    """A current revision: its number in the table, its size in bytes, its provenance, and its bytes, if they were read.

    The provenance is None for a document of a harvest list as received. It is without sets.
    """

    number: int
    size: int
    provenance: Provenance | None
    content: bytes | None


class PublishedDocument(NamedTuple):
    """A document as a list has it. `altered`: it was normalised. `is_alone`: no other document has its item identifier.

    `sets` are its sets at its source repository. The revision is None if it was not asked for, or was erased.
    """

    entry: CatalogueEntry
    altered: bool
    is_alone: bool
    sets: tuple[str, ...]
    revision: StoredRevision | None


def published_documents(
    session: Session, selection: Selection, limit: int, after: Position | None, most_bytes: int | None = None
) -> Sequence[PublishedDocument]:
    """The next documents of a list, as list_entries() has them.

    With their revisions, if `most_bytes` is a number; larger ones are without their bytes.
    """
    extended = _with_header if most_bytes is None else _with_revision
    rows = list_rows(session, selection, {"limit": limit, "most_bytes": most_bytes or 0}, after, extended)
    return _listed(session, [(CatalogueEntry._make(row[:_WIDTH]), row[_WIDTH:]) for row in rows])


def published_document(session: Session, entry: CatalogueEntry) -> PublishedDocument:
    """This document with its current revision, without the bytes."""
    query = _with_revision(select().select_from(DOCUMENTS)).where(DOCUMENTS.c.catalogue_document_id == entry.number)
    row = session.execute(query, {"most_bytes": 0}).one()
    return _listed(session, [(entry, tuple(row))])[0]


def documents_of_items(session: Session, item_identifiers: Collection[str], hidden: Hidden) -> Sequence[ItemDocument]:
    """The published documents, of any origin, of these items, in the order of their numbers; deleted ones, too."""
    query = _OF_ITEMS.where(*published(DOCUMENTS, hidden)) if hidden != NOTHING_HIDDEN else _OF_ITEMS
    rows: Sequence[Any] = session.connection().execute(query, {"items": list(item_identifiers)}).all()
    # Compared here too: MariaDB ignores spaces at the end.
    return [
        ItemDocument(item, origin, bool(altered))
        for _, item, origin, altered in sorted(rows, key=itemgetter(0))
        if item in item_identifiers
    ]


def contents(session: Session, revisions: Iterable[StoredRevision]) -> Mapping[int, bytes]:
    """The bytes of these revisions, by their number in the table."""
    known = {each.number: each.content for each in revisions}
    found = contents_of(session, [number for number, content in known.items() if content is None])
    return {**found, **{number: content for number, content in known.items() if content is not None}}


def _with_header(query: Statement) -> Statement:
    """The statement for documents with the other values of PublishedDocument, without the revision."""
    query = query.add_columns(_IS_SHARED, *ORIGINS.c["document_id", "altered", "sets"])
    return query.outerjoin(ORIGINS, ORIGIN_OF_CURRENT)


def _with_revision(query: Statement) -> Statement:
    """The same with the revision; `most_bytes` is a value of the statement."""
    content = case((REVISIONS.c.size <= bindparam("most_bytes"), REVISIONS.c.content))
    columns = *REVISIONS.c["document_revision_id", "size"], content, *PROVENANCE
    return _with_header(query).add_columns(*columns).outerjoin(REVISIONS, IS_CURRENT)


def _listed(session: Session, found: Sequence[tuple[CatalogueEntry, Sequence[Any]]]) -> Sequence[PublishedDocument]:
    # The origin of an erased document is gone, and its sets stay.
    erased = [entry.number for entry, values in found if values[1] is None and entry.origin is not None]
    known = sets_of(session, erased) if erased else {}
    return [
        PublishedDocument(
            entry,
            bool(altered),
            not is_shared,
            known.get(entry.number, ()) if sets is None else set_specs(sets),
            _revision(origin, revision) if revision and revision[0] is not None else None,
        )
        for entry, (is_shared, origin, altered, sets, *revision) in found
    ]


def _revision(origin: str | None, values: Sequence[Any]) -> StoredRevision:
    number, size, content, *provenance = values
    return StoredRevision(number, size, None if origin is None else provenance_from(provenance), content)


def document_types(session: Session) -> Sequence[str]:
    """The document types that documents have or had, sorted."""
    types = DOCUMENTS.c.document_type, FORMER.c.document_type
    return sorted({each for column in types for each in session.scalars(distinct_values(session, column))})


def origins(session: Session, hidden: Hidden = NOTHING_HIDDEN) -> Sequence[str]:
    """The origins of all documents that are not hidden, sorted."""
    known = session.scalars(distinct_values(session, DOCUMENTS.c.origin))
    found = sorted(each for each in known if each not in hidden.origins)
    if not hidden.sites and not hidden.withheld:
        return found
    own = select(DOCUMENTS.c.origin).where(*published(DOCUMENTS, hidden)).limit(1)
    return [each for each in found if session.scalar(own.where(DOCUMENTS.c.origin == each)) is not None]


def has_withheld(session: Session) -> bool:
    """True if the catalogue has withheld documents."""
    return session.scalar(_WITHHELD) is not None


def retracted_sites(session: Session) -> Collection[int]:
    """The numbers of the sites with retracted documents: their sets are known, and have these as deletions."""
    rows = select(DOCUMENTS.c.site_schedule_id).join(
        WITHHELD, WITHHELD.c.catalogue_document_id == DOCUMENTS.c.catalogue_document_id
    )
    found = session.scalars(rows.where(WITHHELD.c.retracted, DOCUMENTS.c.site_schedule_id.is_not(None)).distinct())
    return [each for each in found if each is not None]


def has_origin(session: Session, origin: str) -> bool:
    """True if a document has this origin."""
    # Compared here: MariaDB ignores spaces at the end.
    return session.scalar(select(DOCUMENTS.c.origin).where(DOCUMENTS.c.origin == origin).limit(1)) == origin


def has_several_formats(session: Session) -> bool:
    """True if the catalogue has, or had, the records of any origin in several formats.

    The document id of a record is its origin, prefix and identifier: only the first and the last one are compared.
    """
    if session.scalar(select(FORMER.c.catalogue_document_id).limit(1)) is not None:
        return True
    for some in batches(origins(session), _ORIGINS_AT_ONCE):
        # Document ids that begin with `origin/`: `0` follows `/`.
        begins = {f"begin{number}": f"{origin}/" for number, origin in enumerate(some)}
        ends = {f"end{number}": f"{origin}0" for number, origin in enumerate(some)}
        first_and_last = session.execute(_first_and_last(len(some)), {**begins, **ends}).one()
        for first, last in zip(first_and_last[::2], first_and_last[1::2], strict=True):
            if first and last and first.split("/")[1] != last.split("/")[1]:
                return True
    return False


@lru_cache
def _first_and_last(number: int) -> Statement:
    """The statement for the first and the last document id of each of this number of ranges of ids.

    MariaDB uses no index for ranges from another table. Cached: to make it takes as long as to execute it.
    """
    ids = [select(_ID).where(bindparam(f"begin{each}") <= _ID, bindparam(f"end{each}") > _ID) for each in range(number)]
    ends = (each.with_only_columns(end(_ID)).scalar_subquery() for each in ids for end in (func.min, func.max))
    return select(*ends)


def source_sets(session: Session, hidden: Hidden) -> Sequence[tuple[str, str]]:
    """The sets of source repositories, as origin and set spec, sorted; also sets that have deleted documents only.

    Sets that have only hidden documents are left out.
    """
    query = select(DOCUMENTS.c.origin, SETS.c.set_spec).join(
        DOCUMENTS, DOCUMENTS.c.catalogue_document_id == SETS.c.catalogue_document_id
    )
    rows = session.execute(query.where(DOCUMENTS.c.origin.is_not(None), *published(DOCUMENTS, hidden)).distinct())
    return sorted((origin, set_spec) for origin, set_spec in rows)
