"""The published documents in parts of a fixed size, in the order of their numbers, for sitemaps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.catalogue.selection import Hidden, is_gone, published

_NUMBER = DOCUMENTS.c.catalogue_document_id


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
    conditions = [after < _NUMBER, ~is_gone(DOCUMENTS, hidden), *published(DOCUMENTS, hidden)]
    return select(*columns).where(*conditions).order_by(_NUMBER).limit(size)
