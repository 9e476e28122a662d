"""Highlights: words and phrases are marked where they stand, and everything else is escaped."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaharvest.pipeline.search.highlights import SNIPPET, marker
from metaharvest.pipeline.search.query_language import read_query
from metaharvest.text import clean


@pytest.mark.parametrize(
    ("query", "text", "marked"),
    [
        ("beech", "The Beech, bééch and beeches", "The <mark>Beech</mark>, <mark>bééch</mark> and beeches"),
        ("beech", "a <b>beech</b> & more", "a &lt;b&gt;<mark>beech</mark>&lt;/b&gt; &amp; more"),
        ('"leaf area"', "Leaf-area, leaf of area", "<mark>Leaf-area</mark>, leaf of area"),
        ("größe", "Die Größe", "Die <mark>Größe</mark>"),
        ("機械学習", "これは機械学習の研究", "これは<mark>機械学習</mark>の研究"),
        ("title:oak elm", "oak elm", "<mark>oak</mark> <mark>elm</mark>"),
        ("author:oak elm", "oak elm", "oak <mark>elm</mark>"),
        ("elm -oak", "oak elm", "oak <mark>elm</mark>"),
        ('leaf "leaf area"', "leaf area", "<mark>leaf area</mark>"),
        ("c.d", "c.d c d", "<mark>c.d</mark> <mark>c d</mark>"),
        ("beech", "a\nbeech\x1b", "a <mark>beech</mark>\ufffd"),
    ],
)
def test_words_are_marked(query: str, text: str, marked: str) -> None:
    assert marker(read_query(query), "title").whole(text) == marked


def test_a_text_without_the_words_has_no_highlight() -> None:
    for query in ("oak", "author:beech", "-beech", "year:2019", ""):
        assert marker(read_query(query), "title").whole("beech") is None
        assert marker(read_query(query), "title").snippet("beech") is None


def test_a_snippet_is_the_part_with_most_of_the_words() -> None:
    text = f"{'moss ' * 300}alone and {'fern ' * 300}beech grows by oak trees. {'lichen ' * 300}"
    snippet = marker(read_query("beech oak alone"), "text").snippet(text)
    assert snippet is not None
    assert "<mark>beech</mark> grows by <mark>oak</mark>" in snippet
    assert snippet.startswith("… fern")
    assert snippet.endswith("lichen …")
    assert len(re.sub("<[^>]*>", "", snippet)) <= SNIPPET + 4


@given(st.text(max_size=400), st.text(max_size=12))
def test_without_its_marks_a_highlight_is_the_text(text: str, word: str) -> None:
    query = read_query(" ".join(re.sub(r"[\W_]|OR|NOT|AND", " ", word).split()))
    marked = marker(query, "text").whole(text)
    if marked is not None:
        plain = unescape(marked.replace("<mark>", "").replace("</mark>", ""))
        assert plain.split() == clean(text).split()
