"""Cursors hold values, and no other text is accepted as a cursor."""

from __future__ import annotations

import pytest

from metaharvest.web.api.cursors import cursor_of, number_of, values_of
from metaharvest.web.api.problems import Problem


def test_a_cursor_gives_its_values_back() -> None:
    assert values_of(cursor_of("Zürich", 7, None), str, int, int) == ["Zürich", 7, None]
    assert number_of(cursor_of(12)) == 12
    assert number_of(None) is None


@pytest.mark.parametrize(
    "text",
    ["", "x", "W10", cursor_of("a"), cursor_of(1, 2), cursor_of(-1), cursor_of(2**60), "W3RydWVd", "a" * 3000, "é"],
)
def test_anything_else_is_a_problem(text: str) -> None:
    with pytest.raises(Problem):
        number_of(text)
