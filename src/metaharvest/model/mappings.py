"""Values of an object by name, for JSON, tables and forms."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

_Record = TypeVar("_Record")


def picked(row: object, keys: str) -> dict[str, Any]:
    """Values of an object, by name. `keys` are names with spaces between them.

    The key of a value with another name comes before it: `role=role.word`.
    """
    return {key: value(row) for key, value in _getters(keys)}


def record_of(model: type[_Record], row: object, /, **values: object) -> _Record:
    """A record of this dataclass: with these values, and the others from the row, by name."""
    return model(**{name: getattr(row, name) for name in _names(model) if name not in values}, **values)  # type: ignore[arg-type]


@cache
def _names(model: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(model))


@cache
def _getters(keys: str) -> tuple[tuple[str, attrgetter[Any]], ...]:
    parts = (key.partition("=") for key in keys.split())
    return tuple((key, attrgetter(name or key)) for key, _, name in parts)
