"""Suggestions for a name that is no document: a part of an id, an OAI identifier, a title, a slip."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.orm import Session

from metaharvest.model import OutcomeKind
from metaharvest.queries import document_search
from metaharvest.queries.document_search import did_you_mean, nearest_documents
from support.journal_rows import JournalRows, new_database

KNOWN = {
    "knb-lter-gce.109": "Stream chemistry",
    "knb-lter-gce.110": "Salt marsh plants: 100% cover_types",
    "repo/oai_dc/oai:repo.example.org:17": "Field notes of 1931",
    "ren-alder.5": None,
}


@pytest.fixture
def session() -> Iterator[Session]:
    engine = new_database()
    with Session(engine) as opened:
        rows = JournalRows(opened)
        site_run = rows.site_run(rows.run(), rows.site("a"))
        for document_id, title in KNOWN.items():
            for revision in (1, 2):
                rows.ledger(site_run, document_id, revision, OutcomeKind.INSERTED, title=title)
        yield opened
    engine.dispose()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("oai:repo.example.org:17", ["repo/oai_dc/oai:repo.example.org:17"]),
        ("gce.109", ["knb-lter-gce.109"]),
        ("field notes", ["repo/oai_dc/oai:repo.example.org:17"]),
        ("100%", ["knb-lter-gce.110"]),
        ("cover_t", ["knb-lter-gce.110"]),
        ("cover%types", []),
        ("ren-adler.5", ["ren-alder.5"]),
        ("ren-adler.5.2", ["ren-alder.5"]),
        ("knb-lter-gec.109", ["knb-lter-gce.109", "knb-lter-gce.110"]),
        ("nothing-of-the-kind", []),
        ("", []),
        ("a", []),
        ("x" * 5000, []),
    ],
)
def test_documents_that_may_be_meant_are_suggested(session: Session, name: str, meant: list[str]) -> None:
    assert [each.document_id for each in nearest_documents(session, name)] == meant


def test_a_mistyped_name_is_found_by_its_beginning_in_a_ledger_that_is_too_long_to_be_searched(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document_search, "_MOST_SEARCHED", 1)
    assert [each.document_id for each in nearest_documents(session, "ren-alder.55")] == ["ren-alder.5"]
    assert nearest_documents(session, "chemistry of nothing") == []


def test_a_suggestion_is_a_sentence_with_titles(session: Session) -> None:
    assert did_you_mean(session, "gce.109") == ' Did you mean knb-lter-gce.109 ("Stream chemistry")?'
    assert did_you_mean(session, "knb") == (
        ' Did you mean knb-lter-gce.109 ("Stream chemistry") or knb-lter-gce.110 '
        '("Salt marsh plants: 100% cover_types")?'
    )
    assert did_you_mean(session, "nothing-of-the-kind") == ""
