"""Terms: how words of many scripts are cut and folded, and that a search has terms that the index has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaharvest.pipeline.search.terms import folded, indexed, searched


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Leaf-Area index, 2nd ed.", "leaf area index 2nd ed"),
        ("Über die Größe der Straße", "uber die grosse der strasse"),
        ("Ærøskøbing, Łódź, Đorđe", "aeroskobing lodz dorde"),
        ("cafe\u0301 naïve", "cafe naive"),
        ("co\u00adoperate", "cooperate"),
        ("İstanbul ISPARTA", "istanbul isparta"),
        ("ﬁne ２０２４ x²", "fine 2024 x2"),
        ("ΟΔΟΣ Οδός", "οδοσ οδοσ"),
        ("Ёлка и Йод", "елка и иод"),
        ("हिन्दी में", "हिन्दी में"),
        ("غابة الزان", "غابة الزان"),
        ("10.5063/F1ABC", "10 5063 f1abc"),
        ("---", ""),
        ("", ""),
    ],
)
def test_words_are_in_lower_case_and_without_accents(text: str, terms: str) -> None:
    assert folded(text).split() == terms.split()
    assert indexed(text).split() == terms.split()


def test_runs_without_blanks_become_parts_of_two_and_three_characters() -> None:
    assert indexed("機械学習 model").split() == ["機械", "械学", "学習", "機械学", "械学習", "model"]
    assert indexed("王 小明").split() == ["王", "小明"]
    assert searched("機械学習") == [["機械学"], ["械学習"]]
    assert searched("学習") == [["学習"]]
    assert searched("ガラス") == searched("ｶﾞﾗｽ") == [["ガラス"]]
    assert searched("산림 생태") == [["산림"], ["생태"]]


def test_words_between_runs_are_phrases() -> None:
    assert searched("leaf area") == [["leaf", "area"]]
    assert searched("deep learning と 学習 for trees") == [["deep", "learning"], ["と"], ["学習"], ["for", "trees"]]


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(ANY_TEXT)
def test_each_text_is_found_by_itself(text: str) -> None:
    terms = indexed(text).split()
    for phrase in searched(text):
        size = len(phrase)
        assert any(terms[at : at + size] == list(phrase) for at in range(len(terms))), (phrase, terms)


@given(ANY_TEXT)
def test_folded_text_stays_as_it_is(text: str) -> None:
    once = folded(text)
    assert folded(once).split() == once.split()
