"""Letters without accents."""

from __future__ import annotations

import pytest

from metaharvest.pipeline.letters import without_accents

CASES = [("Müller", "Muller"), ("thèse", "these"), ("\ufb01r", "fir"), ("oak", "oak"), ("ガ", "ガ"), ("가", "가")]


@pytest.mark.parametrize(("text", "plain"), CASES)
def test_accents_are_left_out_and_other_marks_stay(text: str, plain: str) -> None:
    assert without_accents(text) == plain
