"""Divides values into batches, as a statement has a limited number of parameters; and puts values into groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from math import inf
from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def batches(values: Iterable[Value], size: int = 500) -> Iterator[Sequence[Value]]:
    """The values in order, in batches of at most `size`."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


def batches_by_size(
    values: Iterable[Value], most: int, size_of: Callable[[Value], int], number: float = inf
) -> Iterator[Sequence[Value]]:
    """The values in order, in batches of at most this size together, and this number; a larger value is one alone."""
    batch, size = list[Value](), 0
    for value in values:
        more = size_of(value)
        if batch and (size + more > most or len(batch) == number):
            yield batch
            batch, size = [], 0
        batch.append(value)
        size += more
    if batch:
        yield batch


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values by their keys, in their order."""
    groups: dict[Key, list[Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups
