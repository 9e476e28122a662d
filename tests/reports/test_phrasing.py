"""The words of reports."""

from __future__ import annotations

import pytest

from metaharvest.model.actions import Remedy, todo
from metaharvest.reports.phrasing import without_commands


@pytest.mark.parametrize(
    ("remedy", "words"),
    [
        ("Write `packageId`.", "Write `packageId`."),
        (Remedy("He confirms it ({}), then.", todo("sites.confirm", name="a (`b`)")), "He confirms it, then."),
        (Remedy("Ask for {}.", todo("runs.full", name="alder")), 'Ask for "fetch the whole list of the site alder".'),
        (Remedy("{} tries it.", todo("lists.check", url="a.xml")), "`metaharvest check a.xml` tries it."),
        ("He types `metaharvest sites confirm 'alder'`.", "He types `metaharvest sites confirm 'alder'`."),
    ],
)
def test_contacts_are_shown_only_the_commands_that_they_can_type(remedy: str, words: str) -> None:
    assert without_commands(remedy) == words
