"""Rows as mappings of their columns by name, and the rows that belong to others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from metaharvest.database.models import Base

Record = Mapping[str, Any]
"""A row: its columns by name."""

LARGEST_ID = 2**63 - 1
_PARENTS_AT_ONCE = 500


def columns(table: type[Base], names: str) -> list[InstrumentedAttribute[Any]]:
    """The columns of these names, in their order."""
    return [getattr(table, name) for name in names.split()]


def records_under(
    session: Session, parent: InstrumentedAttribute[int], parents: Sequence[int], names: str = ""
) -> dict[int, list[Record]]:
    """The rows whose column `parent` is one of `parents`, by that number, in the order in which they were written.

    Each has the columns of these names, or all of them.
    """
    table: Any = parent.class_
    [key] = table.__table__.primary_key
    names = names or " ".join(table.__table__.columns.keys())
    found: dict[int, list[Record]] = {number: [] for number in parents}
    for start in range(0, len(parents), _PARENTS_AT_ONCE):
        chosen = parent.in_(parents[start : start + _PARENTS_AT_ONCE])
        for number, *row in session.execute(select(parent, *columns(table, names)).where(chosen).order_by(key)):
            found[number].append(dict(zip(names.split(), row, strict=True)))
    return found
