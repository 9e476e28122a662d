"""Divides values into batches, as a statement has a limited number of parameters; and puts values into groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def batches(values: Iterable[Value], size: int = 500) -> Iterator[Sequence[Value]]:
    """The values in order, in batches of at most `size`."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values by their keys, in their order."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
