"""How a row of a table becomes a frozen record."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from metaharvest.database.models import Base

Record = TypeVar("Record")


def record_of(kind: type[Record], row: Base, /, **values: Any) -> Record:
    """A dataclass of this kind: `values`, and for its other fields the row's columns of the same names."""
    names = (field.name for field in fields(kind) if field.name not in values)  # type: ignore[arg-type]
    return kind(**{name: getattr(row, name) for name in names}, **values)
