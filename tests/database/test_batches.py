"""Batches of values."""

from __future__ import annotations

import pytest

from metaharvest.database.batches import batches


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], []), ([1], [[1]]), ([1, 2], [[1, 2]]), ([1, 2, 3], [[1, 2], [3]])],
)
def test_batches_have_all_values_in_order(values: list[int], expected: list[list[int]]) -> None:
    assert list(batches(values, 2)) == expected
