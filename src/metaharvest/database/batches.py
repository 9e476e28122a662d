"""Divides values into batches: a statement has a limited number of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Value = TypeVar("Value")


def batches(values: Sequence[Value], size: int = 500) -> Iterator[Sequence[Value]]:
    """The values in order, in batches of at most `size`."""
    return (values[start : start + size] for start in range(0, len(values), size))
