"""Resumption tokens: read as they were written, and refused in a sentence if they are anything else."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaharvest.web.provider.tokens import LIFETIME, Token, moment, read_token, written

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
KEY = b"key"
TOKEN = Token(
    "ListRecords", "oai_dc", "a:b", 1, 2, True, 3, 4, cursor=200, size=1000, issued=int(NOW.timestamp())
)  # fmt: skip
TEXT = written(TOKEN, KEY)


@given(
    st.builds(
        Token,
        verb=st.just("ListSets"),
        set_spec=st.text(),
        last=st.text(),
        last_at=st.integers(0, 10**11),
        last_number=st.integers(0, 2**63),
        issued=st.just(TOKEN.issued),
    )
)
def test_a_token_comes_back_and_needs_no_escapes(token: Token) -> None:
    text = written(token, KEY)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", text)
    assert read_token(text, KEY, "ListSets", NOW) == token


@pytest.mark.parametrize(
    ("text", "key", "verb", "now"),
    [
        (TEXT, b"other", "ListRecords", NOW),
        (TEXT, KEY, "ListIdentifiers", NOW),
        (TEXT, KEY, "ListRecords", NOW + LIFETIME + timedelta(seconds=1)),
        (TEXT[:-1], KEY, "ListRecords", NOW),
        (f"{TEXT}A", KEY, "ListRecords", NOW),
        (f"{TEXT}=", KEY, "ListRecords", NOW),
        (f" {TEXT}", KEY, "ListRecords", NOW),
        ("", KEY, "ListRecords", NOW),
        ("oai_dc!0!200", KEY, "ListRecords", NOW),
        ("ü", KEY, "ListRecords", NOW),
    ],
)
def test_other_tokens_are_refused(text: str, key: bytes, verb: str, now: datetime) -> None:
    assert str(read_token(text, key, verb, now)).startswith("The resumptionToken ")


@given(st.integers(0, len(TEXT) - 1), st.characters(min_codepoint=32, max_codepoint=126))
def test_no_character_of_a_token_can_be_another_one(place: int, character: str) -> None:
    changed = TEXT[:place] + character + TEXT[place + 1 :]
    assert isinstance(read_token(changed, KEY, "ListRecords", NOW), str) == (changed != TEXT)


def test_a_token_is_valid_for_48_hours() -> None:
    assert moment(TOKEN.issued) + timedelta(hours=48) == TOKEN.expires
    assert read_token(TEXT, KEY, "ListRecords", TOKEN.expires) == TOKEN
    assert replace(TOKEN, cursor=1) != TOKEN
