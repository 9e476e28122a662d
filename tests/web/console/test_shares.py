"""The parts of a bar."""

from __future__ import annotations

from metaharvest.web.console.pages.runs import Share, shares


def test_no_time_has_no_parts() -> None:
    assert shares({"a": 0.0, "b": 0.0}) == []


def test_the_parts_fill_the_bar() -> None:
    assert shares({"a": 3.0, "b": 1.0}) == [Share("a", 3.0, 0.0, 75.0), Share("b", 1.0, 75.0, 25.0)]
