"""The distinct values of a column that begins an index: a database looks each one up, and reads no other row."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Select, func, select
from sqlalchemy.orm import Session


def distinct_values(session: Session, column: Column[Any]) -> Select[Any]:
    """The statement for the values of this column, in no order, without NULL.

    Each value is one look into the index. For this, MariaDB needs DISTINCT: it reads half of the index for each `min`.
    With DISTINCT, the other databases read the whole index.
    """
    if session.get_bind().dialect.name in ("mysql", "mariadb"):
        return select(column.label("value")).where(column.is_not(None)).distinct()
    following = column.table.alias("following").c[column.name]
    found = select(func.min(column).label("value")).cte("found", recursive=True)
    larger = select(func.min(following)).where(following > found.c.value).correlate(found).scalar_subquery()
    found = found.union_all(select(larger).where(found.c.value.is_not(None)))
    return select(found.c.value).where(found.c.value.is_not(None))
