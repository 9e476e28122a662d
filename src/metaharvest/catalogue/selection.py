"""Reads of the catalogue for publication: one document, all formats of a record, a list page by page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Tuple, and_, case, exists, func, or_, select, tuple_
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.database.models import Base, CatalogueSet, HarvestSiteSchedule

_SETS = Base.metadata.tables[CatalogueSet.__tablename__]
_SITES = Base.metadata.tables[HarvestSiteSchedule.__tablename__]
ENTRIES = select(
    *DOCUMENTS.c["catalogue_document_id", "document_id", "item_identifier", "origin", "document_type", "revision"],
    *DOCUMENTS.c["title", "site_schedule_id", "deleted", "changed_at"],
)
"""The statement for rows of all documents, with the values of a CatalogueEntry."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A document of the catalogue, as CatalogueDocument describes it; `number` is its number there."""

    number: int
    document_id: str
    item_identifier: str
    origin: str | None
    document_type: str
    revision: int
    title: str
    site_id: int | None
    deleted: bool
    changed_at: datetime

    @property
    def position(self) -> Position:
        """Its place in a list."""
        return Position(self.changed_at, self.number)


class Position(NamedTuple):
    """A place in a list: the time of a document's last change, and its number."""

    changed_at: datetime
    number: int


class Hidden(NamedTuple):
    """The sites, by number, and the origins whose documents are not published."""

    sites: tuple[int, ...] = ()
    origins: tuple[str, ...] = ()

    def hides(self, entry: CatalogueEntry) -> bool:
        """True if this document is not published."""
        return entry.site_id in self.sites or entry.origin in self.origins


_NOTHING = Hidden()


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents of a list; None, or no document type: any.

    `set_spec` is a set of the source repository `origin`: its subsets belong to it. `since` and `until` are the times
    of the first and the last change. `has_site`, `has_origin`: only documents of any registered site, of any origin.
    Documents of the `hidden` sites and origins are left out.

    With `one_of`, a list has one document of each item (a record in all its formats), or of each format of an item: the
    first one that is not deleted. Of an item, a document of the `preferred` type comes first.
    """

    document_types: tuple[str, ...] = ()
    site_id: int | None = None
    origin: str | None = None
    set_spec: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    has_site: bool = False
    has_origin: bool = False
    hidden: Hidden = _NOTHING
    one_of: Literal["item", "format"] | None = None
    preferred: str = ""


def entry_of(session: Session, document_id: str) -> CatalogueEntry | None:
    """The document with this id; None if the catalogue never had it."""
    found = _entries(session, DOCUMENTS.c.document_id == document_id)
    # Compared here too: MariaDB ignores spaces at the end.
    return next((each for each in found if each.document_id == document_id), None)


def entries_of_item(session: Session, origin: str | None, item_identifier: str) -> Sequence[CatalogueEntry]:
    """The documents of a record: one for each format of its source repository that is harvested."""
    found = _entries(session, DOCUMENTS.c.origin == origin, DOCUMENTS.c.item_identifier == item_identifier)
    return [each for each in found if each.item_identifier == item_identifier]


def list_entries(
    session: Session, selection: Selection, limit: int, after: Position | None = None
) -> Sequence[CatalogueEntry]:
    """The next documents of a list after this position, in the order of their last changes; deleted ones, too.

    A document that changes meanwhile moves to the end of the list.
    """
    conditions = _conditions(selection)
    changed_at, number = DOCUMENTS.c.changed_at, DOCUMENTS.c.catalogue_document_id
    if after is not None:
        later = or_(changed_at > after.changed_at, and_(changed_at == after.changed_at, number > after.number))
        # Repeated, for databases that use an index only for a condition on every row.
        conditions += [changed_at >= after.changed_at, later]
    query = ENTRIES.where(*conditions).order_by(changed_at, number).limit(limit)
    return [CatalogueEntry(*row) for row in session.execute(query)]


def number_of_entries(session: Session, selection: Selection) -> int:
    """The number of documents of a list, deleted ones included."""
    return session.scalar(select(func.count()).select_from(DOCUMENTS).where(*_conditions(selection))) or 0


def sets_of(session: Session, numbers: Collection[int]) -> Mapping[int, Sequence[str]]:
    """The sets of each of these documents at its source repository, by number; no set: left out."""
    query = select(_SETS.c.catalogue_document_id, _SETS.c.set_spec).where(_SETS.c.catalogue_document_id.in_(numbers))
    found: dict[int, list[str]] = {}
    for number, set_spec in session.execute(query.order_by(_SETS.c.catalogue_set_id)):
        found.setdefault(number, []).append(set_spec)
    return found


def _entries(session: Session, *conditions: ColumnElement[bool]) -> list[CatalogueEntry]:
    query = ENTRIES.where(*conditions).order_by(DOCUMENTS.c.document_id)
    return [CatalogueEntry(*row) for row in session.execute(query)]


def _conditions(selection: Selection) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if selection.document_types:
        found.append(DOCUMENTS.c.document_type.in_(selection.document_types))
    if selection.site_id is not None:
        found.append(DOCUMENTS.c.site_schedule_id == selection.site_id)
    if selection.origin is not None:
        found.append(DOCUMENTS.c.origin == selection.origin)
    if selection.set_spec is not None:
        found.append(_in_set(selection.set_spec))
    if selection.since is not None:
        found.append(DOCUMENTS.c.changed_at >= selection.since)
    if selection.until is not None:
        found.append(DOCUMENTS.c.changed_at <= selection.until)
    if selection.has_site:
        found.append(DOCUMENTS.c.site_schedule_id.in_(select(_SITES.c.site_schedule_id)))
    if selection.has_origin:
        found.append(DOCUMENTS.c.origin.is_not(None))
    found += published(DOCUMENTS, selection.hidden)
    if selection.one_of:
        found.append(~_has_better(selection))
    return found


def published(documents: FromClause, hidden: Hidden) -> list[ColumnElement[bool]]:
    """The conditions that leave out the documents of hidden sites and origins."""
    site, origin = documents.c.site_schedule_id, documents.c.origin
    found: list[ColumnElement[bool]] = []
    if hidden.sites:
        found.append(or_(site.is_(None), site.not_in(hidden.sites)))
    if hidden.origins:
        found.append(or_(origin.is_(None), origin.not_in(hidden.origins)))
    return found


def _has_better(selection: Selection) -> ColumnElement[bool]:
    """True if another document of the same item is listed in its place."""
    other = DOCUMENTS.alias("other")

    def rank(documents: FromClause) -> Tuple:
        is_other_type = case((documents.c.document_type == selection.preferred, 0), else_=1)
        return tuple_(case((documents.c.deleted, 1), else_=0), is_other_type, documents.c.catalogue_document_id)

    same = [other.c.item_identifier == DOCUMENTS.c.item_identifier, other.c.origin == DOCUMENTS.c.origin]
    if selection.one_of == "format":
        same.append(other.c.document_type == DOCUMENTS.c.document_type)
    return exists().where(*same, *published(other, selection.hidden), rank(other) < rank(DOCUMENTS))


def _in_set(set_spec: str) -> ColumnElement[bool]:
    """True if the document is in this set, or in a subset of it."""
    its_own = _SETS.c.catalogue_document_id == DOCUMENTS.c.catalogue_document_id
    # The subsets of `a` begin with `a:`, and `;` follows `:`. One range, so that a database needs one look-up.
    in_range = (_SETS.c.set_spec >= set_spec, _SETS.c.set_spec < f"{set_spec};")
    return exists().where(its_own, *in_range, or_(_SETS.c.set_spec == set_spec, _SETS.c.set_spec >= f"{set_spec}:"))
