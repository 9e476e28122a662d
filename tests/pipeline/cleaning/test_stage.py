"""The stage: from stored bytes to the table `output`, again and again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from metaharvest.config.settings import load
from metaharvest.database.models import DocumentRevision
from metaharvest.database.pipeline_models import OutputRecord
from metaharvest.pipeline.cleaning.stage import STAGE, cleaned
from metaharvest.pipeline.stage import Context, Document, StepState
from metaharvest.pipeline.stored_outputs import output_of
from support.format_documents import DATACITE, OAI_DC
from support.harvester import Harvester

AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)


def document(number: int, revision: int = 1, revision_id: int | None = None) -> Document:
    name = f"oai:r:{number}"
    return Document(number, name, name, None, "oai_dc", revision, revision_id or number, number, None, None, False)


def store(harvester: Harvester, contents: Mapping[int, str]) -> None:
    rows = [
        {
            "document_revision_id": number,
            "document_id": f"oai:r:{number}",
            "revision": number,
            "document_type": "oai_dc",
            "size": len(content),
            "sha256": "0" * 64,
            "source_url": "",
            "inserted_at": AT,
            "content": content.encode(),
        }
        for number, content in contents.items()
    ]
    with Session(harvester.engine) as session, session.begin():
        session.execute(insert(DocumentRevision), rows)


def run(harvester: Harvester, *documents: Document) -> list[StepState]:
    context = Context(harvester.engine, load(harvester.config), lambda: AT)
    results = list(STAGE.perform(context, documents))
    with Session(harvester.engine) as session, session.begin():
        STAGE.store(session, results, AT)
    return [each.state for each in results]


def outputs(harvester: Harvester) -> list[tuple[int, int, int | None, str | None, str]]:
    with Session(harvester.engine) as session:
        rows = session.scalars(select(OutputRecord).order_by(OutputRecord.catalogue_document_id))
        return [
            (row.catalogue_document_id, row.revision, row.year, row.doi, output_of(row.content).title) for row in rows
        ]


def test_outputs_are_written_replaced_and_removed(harvester: Harvester) -> None:
    store(harvester, {1: OAI_DC, 2: DATACITE, 3: "<a", 4: OAI_DC.replace("Water", "Air")})
    documents = [document(1), document(2), document(3), document(5)]
    first = (1, 1, 2026, None, "Water temperature")
    second = (2, 1, 2026, "10.1234/water", "Water temperature")
    for _ in range(2):
        # Document 5 has no bytes: it is left out.
        assert run(harvester, *documents) == [StepState.DONE, StepState.DONE, StepState.FAILED]
        assert outputs(harvester) == [first, second]
    assert run(harvester, document(1, 2, revision_id=4)) == [StepState.DONE]
    assert outputs(harvester) == [(1, 2, 2026, None, "Air temperature"), second]
    assert run(harvester, document(1, 3, revision_id=3)) == [StepState.FAILED]
    assert outputs(harvester) == [second]
    with Session(harvester.engine) as session, session.begin():
        STAGE.remove(session, [1, 2])
    assert outputs(harvester) == []


@pytest.mark.parametrize(
    ("content", "rule", "words"),
    [
        ("<a", "cleaning.not-xml", "oai:r:1 cannot be read as XML: it is not well-formed"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a/>', "cleaning.not-xml", "its DOCTYPE has declarations"),
        ("<a><b>Frogs</b></a>", "cleaning.nothing-known", "oai:r:1 (oai_dc) has no title and no identifier."),
    ],
)
def test_a_document_without_an_output_has_a_reason(content: str, rule: str, words: str) -> None:
    result = cleaned(document(1), content.encode())
    assert result.value is None
    assert result.failure is not None
    assert result.failure.rule == rule
    assert words in result.failure.message


def test_an_output_has_the_language_of_its_words() -> None:
    german = "Die Erholung der Buchenwälder nach Stürmen wurde über zehn Jahre auf vierzig Flächen untersucht."
    for title, code in ((german, "de"), ("Beech", "und")):
        content = OAI_DC.replace(' xml:lang="en">Water temperature', f">{title}")
        result = cleaned(document(1), content.encode())
        assert (result.value.language, result.value.likely_language) == (None, code)
