from __future__ import annotations

from collections.abc import Collection, Mapping

from metaharvest.pipeline.search.related import shared_terms, telling_terms

FIRST = {"title": "Shelters of larvae during floods", "abstract": "Mayflies and them under 12 stones."}
SECOND = {"title": "Larvae during drift", "abstract": "Mayflies and them."}


def two_of_three(terms: Collection[str]) -> Mapping[str, int]:
    return {"": 3, **dict.fromkeys(terms, 2)}


def test_outputs_share_no_words_of_grammar_and_no_numbers() -> None:
    terms = telling_terms(FIRST, two_of_three)
    assert set(terms) == {"shelters", "larvae", "floods", "mayflies", "stones"}
    assert shared_terms(SECOND, terms) == ["larvae", "mayflies"]
