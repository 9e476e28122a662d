"""The language of an entry of the index."""

from __future__ import annotations

import pytest

from metaharvest.model.outputs import Output, Text
from metaharvest.pipeline.search.entries import FullText, _codes_and_texts, _language

GERMAN = "Die Erholung der Buchenwälder nach Stürmen wurde über zehn Jahre auf vierzig Flächen untersucht."


@pytest.mark.parametrize(
    ("declared", "of_text", "title", "code"),
    [
        ("en", "de", "Beech", "de"),
        ("en", "und", "Beech", "en"),
        ("en", None, "Beech", "en"),
        (None, None, GERMAN, "de"),
        (None, "und", GERMAN, "de"),
        (None, None, "Beech", None),
    ],
)
def test_the_text_counts_most_then_what_is_declared_then_the_title(
    declared: str | None, of_text: str | None, title: str, code: str | None
) -> None:
    full_text = None if of_text is None else FullText("0" * 64, "text", of_text)
    assert _language(Output("oai_dc", (Text(title, "dc:title"),), language=declared), full_text) == code


def test_the_language_that_cleaning_found_is_not_looked_for_again() -> None:
    """Texts of other languages show where the value comes from."""
    for likely, code in (("fr", "fr"), ("und", None)):
        output = Output("oai_dc", (Text(GERMAN, "dc:title"),), language="en", likely_language=likely)
        assert _language(output, None) == code


def test_each_declared_language_is_found_by_its_code_and_as_it_is_written() -> None:
    assert _codes_and_texts(["eng", "French", "nowhere"]) == ["en", "eng", "fr", "French", None, "nowhere"]
