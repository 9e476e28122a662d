"""The page of the pipeline: its numbers, its failures page by page, and another try for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from metaharvest.database.engine import writers
from metaharvest.model.kinds import StepState
from metaharvest.web.console.pages import pipeline as page_of_pipeline
from support.console import Served, served_console
from support.harvester import Harvester
from support.pipeline_steps import add_failure, add_step
from support.provider import document, store

STAGES = "Stages of the pipeline"
BY_RULE = "Failures by rule, the most frequent first"
FAILED = "Documents that failed"
AT = datetime(2050, 1, 2, 3, 4, tzinfo=UTC)
MALICE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harvester]:
    """Two documents lead to no file, a third one waits for its file; all three are cleaned, one badly."""
    made = Harvester(tmp_path_factory.mktemp("pipeline"))
    with made.config.open("a") as file:
        file.write("[pipeline]\nenabled = true\n")
    made.add_site("alder", "https://alder.example.org/list.xml")
    store(made, *(document(each, b"<eml/>") for each in ("a.1", "a.2", "a.3")))
    ended = datetime.now(UTC)
    with writers(made.engine).begin() as session:
        add_failure(session, "a.1", "full-text.no-link", f"No page: {MALICE}", at=AT)
        add_failure(session, "a.2", "full-text.no-link", "The record has no address.", at=AT)
        add_step(session, "a.3", "full-text", StepState.WAITING)
        add_failure(session, "a.2", "cleaning.not-xml", "It is not well-formed.", "cleaning")
        add_step(session, "a.1", "cleaning", StepState.DONE, ended_at=ended - timedelta(seconds=30))
        add_step(session, "a.3", "cleaning", StepState.SKIPPED, ended_at=ended)
    yield made
    made.close()


@pytest.fixture(scope="module")
def console(installed: Harvester) -> Iterator[Served]:
    with served_console(installed) as made:
        yield made


def test_a_viewer_sees_how_far_it_is_and_what_failed(console: Served) -> None:
    page = console.signed_in("viewer").open("/console/").follow("Pipeline")
    rows = {row[0]: row[1:] for row in page.table(STAGES)}
    assert rows["cleaning"] == ["1", "0", "1 failed at cleaning", "1", "2", "–"]
    assert rows["full-text"] == ["0", "1", "2 failed at full-text", "0", "–", "–"]
    assert page.table(BY_RULE) == [
        ["The record leads to no file full-text.no-link", "full-text", "2", "from 2050-01-02 03:04 UTC"],
        [
            "The pipeline cannot read the document cleaning.not-xml",
            "cleaning",
            "1",
            "after the next change of the document",
        ],
    ]
    assert "looks for the file of the full text" in page.text
    page = page.follow("The record leads to no file")
    assert "citation_pdf_url" in page.text
    assert [row[0] for row in page.table(FAILED)] == ["A title a.1", "A title a.2"]
    assert page.table(FAILED)[0][1:] == ["alder", "full-text", f"No page: {MALICE}", "from 2050-01-02 03:04 UTC"]
    assert MALICE not in page.content.decode()
    assert "Try again" not in page.text


def test_failures_are_shown_page_by_page_each_once(console: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_of_pipeline, "_ON_A_PAGE", 2)
    viewer = console.signed_in("viewer")
    page = viewer.open("/console/pipeline/failures")
    assert [(row[0], row[2]) for row in page.table(FAILED)] == [
        ("A title a.1", "full-text"), ("A title a.2", "cleaning"), ("A title a.2", "full-text"),
    ]  # fmt: skip
    assert "No document failed." in page.follow("Next page").text
    page = viewer.open("/console/pipeline/failures?stage=full-text&site=elm")
    assert "No document failed like this." in page.text
    page = viewer.open("/console/pipeline/failures?stage=x")
    assert (page.status, "There is no stage x" in page.text) == (422, True)


def test_a_steward_lets_failures_be_tried_again(console: Served, installed: Harvester) -> None:
    steward = console.signed_in("steward")
    page = steward.open("/console/pipeline/failures?stage=cleaning").submit("Try again all that failed like this")
    assert page.notice == "1 document waits again: the next run of the pipeline tries them."
    assert [row[0] for row in page.table(BY_RULE)] == ["The record leads to no file full-text.no-link"]
    [last, *_] = steward.open("/console/decisions").table()
    assert last[1:3] == [
        "steward@example.org (console)",
        "let the documents that failed at the stage cleaning be tried again",
    ]
    again = steward.request("POST", "/console/pipeline/retry", data={"stage": "cleaning"})
    assert again.status == 403  # without the token of a form
    installed.rows("UPDATE pipeline_step SET state = 'failed' WHERE stage = 'cleaning' AND rule IS NOT NULL")


def test_the_page_says_how_to_switch_the_pipeline_on(tmp_path_factory: pytest.TempPathFactory) -> None:
    made = Harvester(tmp_path_factory.mktemp("off"))
    with served_console(made) as console:
        viewer = console.signed_in("viewer")
        assert "Pipeline" not in viewer.open("/console/runs").links()
        page = viewer.open("/console/pipeline")
    made.close()
    assert "The pipeline does not run by itself in this installation." in page.text
    assert "enabled = true" in page.text
    assert page.root.xpath("//table") == []
