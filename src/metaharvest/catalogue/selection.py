"""Selects published documents of the catalogue: one document, all formats of a record, a list page by page."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from itertools import product
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from sqlalchemy import (
    ColumnElement,
    FromClause,
    Row,
    Select,
    Tuple,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS, FORMER, SETS, SITES, WITHHELD
from metaharvest.model.values import frozen

_SETS_OF = (
    select(SETS.c.catalogue_document_id, SETS.c.set_spec)
    .where(SETS.c.catalogue_document_id.in_(bindparam("documents", expanding=True)))
    .order_by(SETS.c.catalogue_set_id)
)
_OF_DOCUMENT: ColumnElement[bool] = FORMER.c.catalogue_document_id == DOCUMENTS.c.catalogue_document_id
_FEW = 5_000
"""Documents of a set."""

_COUNTED = 10_000
"""Documents that are looked up for the number of a list."""

_SAMPLES = (7, 31, 101, 503)
"""One of this number of documents. Prime numbers: the formats of a source repository may take turns."""


class CatalogueEntry(NamedTuple):
    """A document of the catalogue, as CatalogueDocument describes it; `number` is its number there.

    A retracted document counts as deleted.
    """

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
    """The sites, by number, and the origins whose documents are not published.

    `withheld`: the catalogue has withheld documents. Retracted documents are published as deleted ones.
    """

    sites: tuple[int, ...] = ()
    origins: tuple[str, ...] = ()
    withheld: bool = False


NOTHING_HIDDEN = Hidden()
Statement = Select[*tuple[Any, ...]]
LONGEST_SET = 800
_ANY_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_POSITION = (9, 0)
"""The places of the values of a Position in a row."""


@frozen
class Selection:
    """The documents of a list; None, or no document type: any.

    `set_spec` is a set of the source repository `origin`: its subsets belong to it. `since` and `until` are the times
    of the first and the last change. `has_site`, `has_origin`: only documents of any registered site, of any origin.
    Documents of the `hidden` sites and origins are left out.

    With `one_of`, a list has one document of each item (a record in all its formats), or of each format of an item: the
    first one that is not deleted. A list of formats has former ones, too, as deleted documents. Of an item, a document
    of the `preferred` type comes first.
    """

    document_types: tuple[str, ...] = ()
    site_id: int | None = None
    origin: str | None = None
    set_spec: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    has_site: bool = False
    has_origin: bool = False
    hidden: Hidden = NOTHING_HIDDEN
    one_of: Literal["item", "format"] | None = None
    preferred: str = ""


def entry_of(session: Session, document_id: str, hidden: Hidden = NOTHING_HIDDEN) -> CatalogueEntry | None:
    """The document with this id; None if the catalogue never had it, or it is hidden."""
    found = _entries(session, hidden, DOCUMENTS.c.document_id == document_id)
    # Compared here too: MariaDB ignores spaces at the end.
    return next((each for each in found if each.document_id == document_id), None)


def entries_of_item(
    session: Session, origin: str | None, item_identifier: str, hidden: Hidden = NOTHING_HIDDEN
) -> Sequence[CatalogueEntry]:
    """The documents of a record that are not hidden: one for each format of its source repository."""
    found = _entries(session, hidden, DOCUMENTS.c.origin == origin, DOCUMENTS.c.item_identifier == item_identifier)
    return [each for each in found if each.item_identifier == item_identifier]


def former_formats(session: Session, documents: Sequence[CatalogueEntry]) -> Sequence[CatalogueEntry]:
    """The former formats of these documents, as deleted documents."""
    numbers = {each.number: each for each in documents}
    query = select(*FORMER.c["catalogue_document_id", "document_type", "changed_at"])
    return [
        numbers[number]._replace(document_type=kind, deleted=True, changed_at=changed_at)
        for number, kind, changed_at in session.execute(query.where(FORMER.c.catalogue_document_id.in_(numbers)))
    ]


def list_entries(
    session: Session, selection: Selection, limit: int, after: Position | None = None
) -> Sequence[CatalogueEntry]:
    """The next documents of a list after this position, in the order of their last changes; deleted ones, too.

    A document that changes meanwhile moves to the end of the list.
    """
    return [CatalogueEntry._make(row) for row in list_rows(session, selection, {"limit": limit}, after)]


def list_rows(
    session: Session,
    selection: Selection,
    values: Mapping[str, int],
    after: Position | None,
    extended: Callable[[Statement], Statement] = lambda query: query,
) -> Sequence[Row[Any]]:
    """The values of list_entries(), with more columns where the statement is extended.

    `values` are the values of the statement: `limit`, and the values of the extension.
    """
    has_few = selection.set_spec is not None and _has_few(session, selection.set_spec)
    given = {"since": selection.since, "until": selection.until, **values}
    if after is not None:
        given.update(after._asdict())
    # The statement is the same for all times: it has any time in place of each time of the selection.
    since, until = (None if each is None else _ANY_TIME for each in (selection.since, selection.until))
    # An index has the order of one type.
    types: Sequence[tuple[str, ...]] = [(each,) for each in selection.document_types] or [()]
    found: list[Row[Any]] = []
    for document_types, of in product(types, _tables(selection)):
        part = replace(selection, since=since, until=until, document_types=document_types)
        found += session.execute(_page(part, of, has_few, after is None, extended), given).all()
    return sorted(found, key=itemgetter(*_POSITION))[: values["limit"]]


@lru_cache(maxsize=200)
def _page(
    selection: Selection, of: FromClause, has_few: bool, is_first: bool, extended: Callable[[Statement], Statement]
) -> Statement:
    """The statement for a page. Cached: to make it takes as long as to execute it."""
    changed_at, number = of.c.changed_at, of.c.catalogue_document_id
    conditions = _conditions(selection, of, has_few)
    if not is_first:
        conditions += _later_than(of, bindparam("changed_at", type_=changed_at.type), bindparam("number"))
    query = extended(_columns(selection.hidden, of).where(*conditions))
    return query.order_by(changed_at, number).limit(bindparam("limit"))


def later_than(after: Position) -> list[ColumnElement[bool]]:
    """The conditions for documents behind this position."""
    return _later_than(DOCUMENTS, literal(after.changed_at, DOCUMENTS.c.changed_at.type), literal(after.number))


def _later_than(of: FromClause, at: ColumnElement[datetime], number: ColumnElement[int]) -> list[ColumnElement[bool]]:
    later = tuple_(of.c.changed_at, of.c.catalogue_document_id) > tuple_(at, number)
    # Repeated, for MariaDB, which uses no index to compare rows.
    return [of.c.changed_at >= at, later]


def number_of_entries(session: Session, selection: Selection) -> int:
    """The number of documents of a list, deleted ones included.

    An index counts types, sites, origins and times. Sets, hidden documents and items are looked up for each document,
    and for a sample of a long list, so that the number is an estimate.
    """
    wider = replace(selection, set_spec=None, hidden=NOTHING_HIDDEN, one_of=None)
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


@lru_cache(maxsize=4096)
def set_specs(sets: str) -> tuple[str, ...]:
    """The sets in this value of document_origin that have a row in catalogue_set, in their order."""
    return tuple(dict.fromkeys(each for each in json.loads(sets) if each.isascii() and len(each) <= LONGEST_SET))


def _columns(hidden: Hidden, of: FromClause = DOCUMENTS) -> Statement:
    """The statement for documents in their formats, or in their former ones, with the values of a CatalogueEntry."""
    query = select(
        *DOCUMENTS.c["catalogue_document_id", "document_id", "item_identifier", "origin"],
        of.c.document_type,
        *DOCUMENTS.c["revision", "title", "site_schedule_id"],
        (is_gone(DOCUMENTS, hidden) if of is DOCUMENTS else true()).label("deleted"),
        of.c.changed_at,
    )
    return query.select_from(DOCUMENTS) if of is DOCUMENTS else query.join_from(FORMER, DOCUMENTS, _OF_DOCUMENT)


def _entries(session: Session, hidden: Hidden, *conditions: ColumnElement[bool]) -> list[CatalogueEntry]:
    query = _columns(hidden).where(*conditions, *published(DOCUMENTS, hidden)).order_by(DOCUMENTS.c.document_id)
    return [CatalogueEntry(*row) for row in session.execute(query)]


def _number(session: Session, selection: Selection, *more: ColumnElement[bool]) -> int:
    number, values = 0, {"since": selection.since, "until": selection.until}
    has_few = selection.set_spec is not None and _has_few(session, selection.set_spec)
    for of in _tables(selection):
        query = _columns(selection.hidden, of).with_only_columns(func.count(), maintain_column_froms=True)
        number += session.scalar(query.where(*_conditions(selection, of, has_few), *more), values) or 0
    return number


def _tables(selection: Selection) -> Sequence[FromClause]:
    """The tables with the records of a list: a list of a format has records that are no longer there in it."""
    return (DOCUMENTS, FORMER) if selection.one_of == "format" else (DOCUMENTS,)


def _conditions(selection: Selection, of: FromClause, has_few: bool) -> list[ColumnElement[bool]]:
    """The conditions for a selection; its times are the values `since` and `until` of the statement."""
    found: list[ColumnElement[bool]] = []
    document_type: ColumnElement[str] = of.c.document_type
    origin: ColumnElement[str | None] = DOCUMENTS.c.origin
    if selection.set_spec is not None:
        number, rows = DOCUMENTS.c.catalogue_document_id, _in_set(selection.set_spec)
        if has_few:
            found.append(number.in_(select(SETS.c.catalogue_document_id).where(*rows)))
            # Hidden from the database, which would read all documents of the origin in the order of the list.
            document_type, origin = func.coalesce(document_type, ""), func.coalesce(origin, "")
        else:
            found.append(exists().where(SETS.c.catalogue_document_id == number, *rows))
    if selection.document_types:
        found.append(document_type.in_(selection.document_types))
    if selection.site_id is not None:
        found.append(DOCUMENTS.c.site_schedule_id == selection.site_id)
    if selection.origin is not None:
        found.append(origin == selection.origin)
    if selection.since is not None:
        found.append(of.c.changed_at >= bindparam("since", type_=of.c.changed_at.type))
    if selection.until is not None:
        found.append(of.c.changed_at <= bindparam("until", type_=of.c.changed_at.type))
    if selection.has_site:
        found.append(DOCUMENTS.c.site_schedule_id.in_(select(SITES.c.site_schedule_id)))
    if selection.has_origin:
        found.append(DOCUMENTS.c.origin.is_not(None))
    found += published(DOCUMENTS, selection.hidden)
    if of is not DOCUMENTS:
        found.append(~_is_there_still(selection.hidden))
    elif selection.one_of:
        found.append(~_has_better(selection.one_of, selection.preferred, selection.hidden))
    return found


def published(documents: FromClause, hidden: Hidden) -> list[ColumnElement[bool]]:
    """The conditions that leave out the documents of hidden sites and origins, and withheld documents."""
    site, origin = documents.c.site_schedule_id, documents.c.origin
    found: list[ColumnElement[bool]] = []
    if hidden.sites:
        found.append(or_(site.is_(None), site.not_in(hidden.sites)))
    if hidden.origins:
        found.append(or_(origin.is_(None), origin.not_in(hidden.origins)))
    if hidden.withheld:
        return [or_(_is_withheld(documents, WITHHELD.c.retracted), and_(~_is_withheld(documents), *found))]
    return found


def is_gone(documents: FromClause, hidden: Hidden) -> ColumnElement[bool]:
    """True for a document that is deleted or retracted."""
    if not hidden.withheld:
        return documents.c.deleted
    return or_(documents.c.deleted, _is_withheld(documents, WITHHELD.c.retracted))


def shown(hidden: Hidden) -> list[ColumnElement[bool]]:
    """The conditions for documents that are published, and neither deleted nor retracted."""
    return [~is_gone(DOCUMENTS, hidden), *published(DOCUMENTS, hidden)]


def _is_withheld(documents: FromClause, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    # Without the explicit correlation, a query that is nested twice would read all documents.
    of_document = WITHHELD.c.catalogue_document_id == documents.c.catalogue_document_id
    return exists().where(of_document, *conditions).correlate(documents)


@lru_cache(maxsize=100)
def _has_better(one_of: Literal["item", "format"], preferred: str, hidden: Hidden) -> ColumnElement[bool]:
    """True if another document of the same item is listed in its place."""
    other = DOCUMENTS.alias("other")

    def rank(documents: FromClause) -> Tuple:
        is_other_type = case((documents.c.document_type == preferred, 0), else_=1)
        return tuple_(case((is_gone(documents, hidden), 1), else_=0), is_other_type, documents.c.catalogue_document_id)

    same = [other.c.item_identifier == DOCUMENTS.c.item_identifier, other.c.origin == DOCUMENTS.c.origin]
    if one_of == "format":
        same.append(other.c.document_type == DOCUMENTS.c.document_type)
    return exists().where(*same, *published(other, hidden), rank(other) < rank(DOCUMENTS))


def _is_there_still(hidden: Hidden) -> ColumnElement[bool]:
    """True if another document of the item is listed in a former format in its place."""
    other, before = DOCUMENTS.alias("other"), FORMER.alias("before")
    same = [other.c.item_identifier == DOCUMENTS.c.item_identifier, other.c.origin == DOCUMENTS.c.origin]
    same += published(other, hidden)
    is_earlier = and_(
        before.c.catalogue_document_id == other.c.catalogue_document_id,
        before.c.document_type == FORMER.c.document_type,
        other.c.catalogue_document_id < DOCUMENTS.c.catalogue_document_id,
    )
    has_format = other.c.document_type == FORMER.c.document_type
    return exists().where(*same, or_(has_format, exists().where(is_earlier).correlate(other, FORMER, DOCUMENTS)))


def _has_few(session: Session, set_spec: str) -> bool:
    """True if few documents of any origin are in this set, so that a page is found by looking at all of them."""
    some = select(SETS.c.catalogue_set_id).where(*_in_set(set_spec)).limit(_FEW + 1).subquery()
    return (session.scalar(select(func.count()).select_from(some)) or 0) <= _FEW


def _in_set(set_spec: str) -> tuple[ColumnElement[bool], ...]:
    """The rows of a set, and of its subsets."""
    # The subsets of `a` begin with `a:`, and `;` follows `:`. One range, so that a database needs one look-up.
    in_range = (SETS.c.set_spec >= set_spec, SETS.c.set_spec < f"{set_spec};")
    return *in_range, or_(SETS.c.set_spec == set_spec, SETS.c.set_spec >= f"{set_spec}:")
