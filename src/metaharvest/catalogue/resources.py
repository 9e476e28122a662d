"""The published documents in parts of a fixed size, for sitemaps, and in ranges of numbers, for synchronisation.

A range has the documents whose numbers lie between two fixed bounds. It keeps its bounds while documents come, change
and go, so that a list that is read range by range loses none.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import zip_longest
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS, IS_CURRENT, REVISIONS
from metaharvest.catalogue.selection import Hidden, is_gone, published, shown
from metaharvest.model.values import frozen

RANGE = 10_000
"""The numbers in a range; it may have fewer documents."""

_NUMBER, _CHANGE = DOCUMENTS.c.catalogue_document_id, DOCUMENTS.c.change_seq


class Part(NamedTuple):
    """A part: the documents with numbers above `after`; `changed_at` is the last change of any of them."""

    after: int
    changed_at: datetime


def parts(session: Session, hidden: Hidden, size: int) -> Sequence[Part]:
    """All documents that are published and not deleted, in parts of this size."""
    found: list[Part] = []
    after = 0
    while True:
        rows = _part(after, hidden, size).subquery()
        last, number, changed_at = session.execute(
            select(func.max(rows.c.catalogue_document_id), func.count(), func.max(rows.c.changed_at))
        ).one()
        if number:
            found.append(Part(after, changed_at))
        if number < size:
            return found
        after = last


def documents_after(session: Session, hidden: Hidden, after: int, size: int) -> Sequence[tuple[str, datetime]]:
    """The documents of a part, as ids and times of their last changes."""
    rows = session.execute(_part(after, hidden, size))
    return [(row.document_id, row.changed_at) for row in rows]


def _part(after: int, hidden: Hidden, size: int) -> Select[*tuple[Any, ...]]:
    columns = DOCUMENTS.c["catalogue_document_id", "document_id", "changed_at"]
    return select(*columns).where(after < _NUMBER, *shown(hidden)).order_by(_NUMBER).limit(size)


class Resource(NamedTuple):
    """A document as a resource; `size` is in bytes. `is_new`: its only change is the one that brought it.

    The content of a deleted document may be erased: then its size is None.
    """

    document_id: str
    document_type: str
    changed_at: datetime
    sha256: str
    size: int | None
    deleted: bool
    is_new: bool


@frozen
class Changes:
    """The changes of a range, in the order of their commits. They are all from the time `since` until the time `until`.

    `since` is None if there are no changes before; `until` is None if later changes may join the range.
    """

    since: datetime | None
    until: datetime | None
    resources: Sequence[Resource]


@frozen
class ChangeRange:
    """A range of changes by its index, with the times of `Changes`."""

    index: int
    since: datetime | None
    until: datetime | None


def number_of_resources(session: Session, hidden: Hidden) -> int:
    """The number of documents that are published and not deleted."""
    return session.scalar(select(func.count()).select_from(DOCUMENTS).where(*shown(hidden))) or 0


def resource_ranges(session: Session, hidden: Hidden) -> Sequence[int]:
    """The indices of the ranges that have documents which are published and not deleted."""
    return [index for index, _ in _ranges(session, _NUMBER, shown(hidden))]


def resources_in(session: Session, index: int, hidden: Hidden) -> Sequence[Resource]:
    """The documents of this range that are published and not deleted, in the order of their numbers."""
    return _resources(session, _NUMBER, index, hidden, [~is_gone(DOCUMENTS, hidden)])


def change_ranges(session: Session, hidden: Hidden, last: datetime) -> Sequence[ChangeRange]:
    """The ranges that have changes of published documents until the time `last`."""
    found = _ranges(session, _CHANGE, _changed(hidden, last))
    ends = [at for _, at in found[1:]]
    return [
        ChangeRange(index, at if number else None, end)
        for number, ((index, at), end) in enumerate(zip_longest(found, ends))
    ]


def changes_in(session: Session, index: int, hidden: Hidden, last: datetime) -> Changes:
    """The last changes of published documents in this range, until the time `last`; deletions, too."""
    conditions = _changed(hidden, last)
    first, later = (_first(session, _CHANGE, each, conditions) for each in (0, index + 1))
    until = later[1] if later is not None else None
    resources = _resources(session, _CHANGE, index, hidden, [DOCUMENTS.c.changed_at <= last])
    if first is None or first[0] >= index:
        return Changes(None, until, resources)
    return Changes(resources[0].changed_at if resources else until or last, until, resources)


def _changed(hidden: Hidden, last: datetime) -> list[ColumnElement[bool]]:
    return [DOCUMENTS.c.changed_at <= last, *published(DOCUMENTS, hidden)]


def _ranges(
    session: Session, number: ColumnElement[int], conditions: Sequence[ColumnElement[bool]]
) -> Sequence[tuple[int, datetime]]:
    """The ranges with documents, each with the time of the last change of its first document.

    One document of each range is read: that takes a tenth of the time that grouping all of them takes.
    """
    found: list[tuple[int, datetime]] = []
    while (row := _first(session, number, found[-1][0] + 1 if found else 0, conditions)) is not None:
        found.append(row)
    return found


def _first(
    session: Session, number: ColumnElement[int], index: int, conditions: Sequence[ColumnElement[bool]]
) -> tuple[int, datetime] | None:
    """The range of the first document in this range or a later one, and the time of its last change."""
    query = select(number, DOCUMENTS.c.changed_at).where(number >= index * RANGE, *conditions)
    row = session.execute(query.order_by(number).limit(1)).first()
    return None if row is None else (row[0] // RANGE, row[1])


def _resources(
    session: Session, number: ColumnElement[int], index: int, hidden: Hidden, conditions: Sequence[ColumnElement[bool]]
) -> Sequence[Resource]:
    query = select(
        *DOCUMENTS.c["document_id", "document_type", "changed_at", "sha256"],
        REVISIONS.c.size,
        is_gone(DOCUMENTS, hidden).label("deleted"),
        (_NUMBER == _CHANGE).label("is_new"),
    ).outerjoin(REVISIONS, IS_CURRENT)
    in_range = (number >= index * RANGE, number < (index + 1) * RANGE)
    found = query.where(*in_range, *published(DOCUMENTS, hidden), *conditions).order_by(number)
    return [Resource(**row) for row in session.execute(found).mappings()]
