"""Outputs as values."""

from __future__ import annotations

import pytest

from metaharvest.model.outputs import Access


@pytest.mark.parametrize(
    ("access", "until", "on_that_day"),
    [
        (Access.EMBARGOED, "2026-11-28", Access.OPEN),
        (Access.EMBARGOED, "2026-11-29", Access.EMBARGOED),
        (Access.EMBARGOED, None, Access.EMBARGOED),
        (Access.RESTRICTED, "2026-11-28", Access.RESTRICTED),
    ],
)
def test_an_output_is_open_when_its_embargo_has_ended(access: Access, until: str | None, on_that_day: Access) -> None:
    assert access.as_of("2026-11-28", until) is on_that_day
