"""`metaharvest works`: a person looks at pairs, decides, and the decision holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from metaharvest.database.engine import writers
from metaharvest.database.pipeline_models import OutputDecision, PipelineStep
from metaharvest.pipeline.duplicates import tables
from support import schemas
from support.compared_outputs import an_output, put
from support.databases import TestDatabase
from support.harvester import Harvester

TITLE = "Phenology of beech forests in the Solling mountains"


@pytest.fixture
def installed(tmp_path: Path, database: TestDatabase) -> Iterator[Harvester]:
    """Four outputs: two are the same, a third one may be; the fourth one is another one."""
    made = Harvester(tmp_path, database=database)
    outputs = {1: an_output(TITLE), 2: an_output(TITLE.upper()), 3: an_output(TITLE, year=2016), 4: an_output("Mosses")}
    with writers(made.engine).begin() as session:
        put(session, outputs)
        tables.replace(session, tables.read_facts(session, list(outputs)))
        for stage in ("duplicates", "index"):
            step = {"stage": stage, "state": "done", "woken": 1, "attempts": 0}
            session.add_all(PipelineStep(catalogue_document_id=each, **step) for each in outputs)
    yield made
    made.close()


def answered(installed: Harvester, schema: str, *arguments: str) -> Any:
    said = installed("works", *arguments, "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert schemas.problems(schema, found) == []
    return found


def works(installed: Harvester) -> list[list[str]]:
    shown = [answered(installed, "works-show", "show", f"d.{each}") for each in (1, 2, 3, 4)]
    return [[each["document_id"] for each in work["outputs"]] for work in shown]


def test_a_decided_pair_has_the_answer_of_the_rules_also_in_a_work_with_many_pairs(
    installed: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered(installed, "works-decide", "decide", "d.3", "d.1", "--same")
    monkeypatch.setattr("metaharvest.queries.works._MOST_PAIRS", 1)
    pairs = answered(installed, "works-show", "show", "d.3")["pairs"]
    assert [(each["first"]["document_id"], each["second"]["document_id"], each["answer"]) for each in pairs] == [
        ("d.1", "d.2", "same"),
        ("d.1", "d.3", "look"),
    ]


def test_a_person_looks_at_a_pair_and_decides(installed: Harvester) -> None:
    assert works(installed) == [["d.1", "d.2"], ["d.1", "d.2"], ["d.3"], ["d.4"]]
    first = answered(installed, "works-look", "look", "--limit", "1")
    second = answered(installed, "works-look", "look", "--limit", "1", "--after", first["next"])
    pairs = [*first["pairs"], *second["pairs"]]
    assert [(each["first"]["document_id"], each["second"]["document_id"]) for each in pairs] == [
        ("d.1", "d.3"),
        ("d.2", "d.3"),
    ]
    assert pairs[0]["reason"] == "The titles agree at 100 of 100, the years are 4 apart, both name Rivera."

    answered(installed, "works-decide", "decide", "d.3", "d.1", "--same", "--reason", "The year is a mistake.")
    assert works(installed) == [["d.1", "d.2", "d.3"]] * 3 + [["d.4"]]
    shown = answered(installed, "works-show", "show", "d.3")
    assert [each["decided"] for each in shown["pairs"]] == [None, "same", None]
    assert [len(answered(installed, "works-look", "look")["pairs"])] == [1]
    assert "The year is a mistake." in installed("decisions", "--json").out

    with writers(installed.engine).begin() as session:
        tables.replace(session, tables.read_facts(session, [1, 2, 3, 4]))
    assert works(installed) == [["d.1", "d.2", "d.3"]] * 3 + [["d.4"]]

    answered(installed, "works-decide", "decide", "d.1", "d.3", "--undo")
    assert works(installed)[2] == ["d.3"]


def test_a_decision_wakes_the_stages_that_it_concerns(installed: Harvester) -> None:
    assert installed("works", "decide", "d.1", "d.2", "--different").code == 0
    with writers(installed.engine).begin() as session:
        waiting = session.execute(
            select(PipelineStep.stage, PipelineStep.catalogue_document_id).where(PipelineStep.state == "waiting")
        ).all()
    assert sorted(map(tuple, waiting)) == [("duplicates", 1), ("duplicates", 2), ("index", 2)]


def test_what_is_related_is_a_decision_of_its_own(installed: Harvester) -> None:
    assert installed("works", "decide", "d.1", "d.4", "--unrelated").code == 0
    assert works(installed)[0] == ["d.1", "d.2"]
    with writers(installed.engine).begin() as session:
        assert session.scalars(select(OutputDecision.kind)).all() == ["related"]


def test_people_read_tables_and_sentences(installed: Harvester) -> None:
    assert "4 apart" in installed("works", "look").out
    assert TITLE.upper() in installed("works", "show", "d.1").out
    said = installed("works", "decide", "d.1", "d.2", "--different")
    assert said.out == "Your decision holds: different. d.1 is in a work of 1 output.\n"
    assert "Decided by" in installed("works", "show", "d.1").out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("show", "nothing.1"), "The catalogue has no document 'nothing.1'."),
        (("decide", "d.1", "d.1", "--same"), "Name two different documents."),
        (("decide", "d.1", "d.2"), "Use one of --same, --different"),
        (("decide", "d.1", "d.2", "--undo"), "Nobody has decided about d.1 and d.2"),
        (("look", "--after", "x"), "--after takes the place"),
    ],
)
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_mistakes_get_a_sentence(installed: Harvester, arguments: tuple[str, ...], sentence: str) -> None:
    said = installed("works", *arguments)
    assert said.code != 0
    assert sentence in said.err


@pytest.mark.parametrize("database", ["mariadb"], indirect=True)
def test_blanks_behind_a_name_make_no_other_document(installed: Harvester) -> None:
    # MariaDB compares texts without the blanks at their ends.
    assert "Name two different documents." in installed("works", "decide", "d.1", "d.1 ", "--same").err
