"""Hints for databases: SQLite has no statistics, and may choose an index that has most rows of a table."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, func
from sqlalchemy.orm import InstrumentedAttribute


def without_index(column: InstrumentedAttribute[str] | ColumnElement[Any]) -> ColumnElement[str]:
    """A column with text that is never null, so that its index is not used."""
    return func.coalesce(column, "")
