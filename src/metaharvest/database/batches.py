"""Divides values into batches: a statement has a limited number of parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

Value = TypeVar("Value")


def batches(values: Iterable[Value], size: int = 500) -> Iterator[Sequence[Value]]:
    """The values in order, in batches of at most `size`."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch
