"""Reads of the catalogue for publication: one document, all formats of a record, a list page by page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import chain
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, FromClause, Tuple, bindparam, case, exists, func, literal, or_, select, tuple_
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
_SETS_OF = (
    select(_SETS.c.catalogue_document_id, _SETS.c.set_spec)
    .where(_SETS.c.catalogue_document_id.in_(bindparam("documents", expanding=True)))
    .order_by(_SETS.c.catalogue_set_id)
)
_FEW = 5_000
"""Documents of a set."""

_COUNTED = 10_000
"""Documents that are looked up for the number of a list."""

_SAMPLES = (7, 31, 101, 503)
"""One of this number of documents. Prime numbers: the formats of a source repository may take turns."""


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
    if len(types := selection.document_types) > 1:
        # An index has the order of one type.
        parts = (list_entries(session, replace(selection, document_types=(each,)), limit, after) for each in types)
        return sorted(chain.from_iterable(parts), key=lambda each: each.position)[:limit]
    conditions = _conditions(session, selection)
    changed_at, number = DOCUMENTS.c.changed_at, DOCUMENTS.c.catalogue_document_id
    if after is not None:
        later = tuple_(changed_at, number) > tuple_(literal(after.changed_at, changed_at.type), after.number)
        # Repeated, for MariaDB, which uses no index to compare rows.
        conditions += [changed_at >= after.changed_at, later]
    query = ENTRIES.where(*conditions).order_by(changed_at, number).limit(limit)
    return [CatalogueEntry(*row) for row in session.execute(query).all()]


def number_of_entries(session: Session, selection: Selection) -> int:
    """The number of documents of a list, deleted ones included.

    An index counts types, sites, origins and times. Sets, hidden documents and items are looked up for each document,
    and for a sample of a long list, so that the number is an estimate.
    """
    wider = replace(selection, set_spec=None, hidden=_NOTHING, one_of=None)
    if selection.set_spec is None or not _has_few(session, selection.set_spec):
        number = _number(session, wider)
        if selection == wider:
            return number
        if number > _COUNTED:
            one_of = next((each for each in _SAMPLES if number <= each * _COUNTED), _SAMPLES[-1])
            return max(1, one_of * _number(session, selection, DOCUMENTS.c.catalogue_document_id % one_of == 0))
    return _number(session, selection)


def sets_of(session: Session, numbers: Collection[int]) -> Mapping[int, tuple[str, ...]]:
    """The sets of each of these documents at its source repository, by number; no set: left out."""
    found: dict[int, list[str]] = {}
    for number, set_spec in session.connection().execute(_SETS_OF, {"documents": list(numbers)}).all():
        found.setdefault(number, []).append(set_spec)
    return {number: tuple(specs) for number, specs in found.items()}


def _entries(session: Session, *conditions: ColumnElement[bool]) -> list[CatalogueEntry]:
    query = ENTRIES.where(*conditions).order_by(DOCUMENTS.c.document_id)
    return [CatalogueEntry(*row) for row in session.execute(query)]


def _number(session: Session, selection: Selection, *more: ColumnElement[bool]) -> int:
    conditions = _conditions(session, selection)
    return session.scalar(select(func.count()).select_from(DOCUMENTS).where(*conditions, *more)) or 0


def _conditions(session: Session, selection: Selection) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    document_type: ColumnElement[str] = DOCUMENTS.c.document_type
    origin: ColumnElement[str | None] = DOCUMENTS.c.origin
    if selection.set_spec is not None:
        number, rows = DOCUMENTS.c.catalogue_document_id, _in_set(selection.set_spec)
        if _has_few(session, selection.set_spec):
            found.append(number.in_(select(_SETS.c.catalogue_document_id).where(*rows)))
            # Hidden from the database, which would read all documents of the origin in the order of the list.
            document_type, origin = func.coalesce(document_type, ""), func.coalesce(origin, "")
        else:
            found.append(exists().where(_SETS.c.catalogue_document_id == number, *rows))
    if selection.document_types:
        found.append(document_type.in_(selection.document_types))
    if selection.site_id is not None:
        found.append(DOCUMENTS.c.site_schedule_id == selection.site_id)
    if selection.origin is not None:
        found.append(origin == selection.origin)
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
        found.append(~_has_better(selection.one_of, selection.preferred, selection.hidden))
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


@lru_cache(maxsize=100)
def _has_better(one_of: Literal["item", "format"], preferred: str, hidden: Hidden) -> ColumnElement[bool]:
    """True if another document of the same item is listed in its place."""
    other = DOCUMENTS.alias("other")

    def rank(documents: FromClause) -> Tuple:
        is_other_type = case((documents.c.document_type == preferred, 0), else_=1)
        return tuple_(case((documents.c.deleted, 1), else_=0), is_other_type, documents.c.catalogue_document_id)

    same = [other.c.item_identifier == DOCUMENTS.c.item_identifier, other.c.origin == DOCUMENTS.c.origin]
    if one_of == "format":
        same.append(other.c.document_type == DOCUMENTS.c.document_type)
    return exists().where(*same, *published(other, hidden), rank(other) < rank(DOCUMENTS))


def _has_few(session: Session, set_spec: str) -> bool:
    """True if few documents of any origin are in this set, so that a page is found by looking at all of them."""
    some = select(_SETS.c.catalogue_set_id).where(*_in_set(set_spec)).limit(_FEW + 1).subquery()
    return (session.scalar(select(func.count()).select_from(some)) or 0) <= _FEW


def _in_set(set_spec: str) -> tuple[ColumnElement[bool], ...]:
    """The rows of a set, and of its subsets."""
    # The subsets of `a` begin with `a:`, and `;` follows `:`. One range, so that a database needs one look-up.
    in_range = (_SETS.c.set_spec >= set_spec, _SETS.c.set_spec < f"{set_spec};")
    return *in_range, or_(_SETS.c.set_spec == set_spec, _SETS.c.set_spec >= f"{set_spec}:")
