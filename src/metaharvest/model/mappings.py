"""Values of an object by name, for JSON, tables and forms."""

from __future__ import annotations

from functools import cache
from operator import attrgetter
from typing import Any


def picked(row: object, keys: str) -> dict[str, Any]:
    """Values of an object, by name. `keys` are names with spaces between them.

    The key of a value with another name comes before it: `role=role.word`.
    """
    return {key: value(row) for key, value in _getters(keys)}


@cache
def _getters(keys: str) -> tuple[tuple[str, attrgetter[Any]], ...]:
    parts = (key.partition("=") for key in keys.split())
    return tuple((key, attrgetter(name or key)) for key, _, name in parts)
