"""Actions on the pages: the question before, the change, the audit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.console import Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester

pytestmark = on_one_database


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    harvester.add_site("alder", "http://127.0.0.1:9/list.xml")
    with served_console(harvester) as made:
        yield made


def test_a_site_is_switched_off_after_a_question(console: Served, harvester: Harvester) -> None:
    steward = console.signed_in("steward")
    page = steward.open("/console/actions/sites.disable?name=alder&back=/console/users")
    assert page.title == "Switch off the site alder?"
    assert "Its documents stay." in page.text
    assert harvester.rows("SELECT enabled FROM harvest_site_schedule") == [(1,)]
    page.submit("Switch off the site alder")
    assert harvester.rows("SELECT enabled FROM harvest_site_schedule") == [(0,)]
    decision = harvester.rows("SELECT actor, via, action FROM audit_entry WHERE subject = 'alder'")
    assert decision == [("steward@example.org", "console", "sites.disable")]


def test_without_a_deletion_that_waits_there_is_a_sentence_and_no_button(console: Served) -> None:
    page = console.signed_in("steward").open("/console/actions/sites.confirm?name=alder")
    assert "No deletion of the site alder waits for a confirmation." in page.text
    assert b"Confirm the deletions of the site alder</button>" not in page.content


def _wait(harvester: Harvester, document_id: str) -> None:
    harvester.rows(
        "INSERT INTO harvest_document (site_schedule_id, document_id, revision, document_url, document_type, "
        "state, to_delete) VALUES (1, ?, 1, '', '', 'to-confirm', TRUE)",
        document_id,
    )


def test_deletions_that_were_confirmed_do_not_wait_any_more(console: Served, harvester: Harvester) -> None:
    def pages() -> tuple[str, str]:
        own = console.signed_in_as("alder@example.org").open("/console/sites/alder").text
        return own, console.signed_in("steward").open("/console/actions/sites.confirm?name=alder").text

    _wait(harvester, "a.1")
    console.signed_in("steward").open("/console/actions/sites.confirm?name=alder").submit(
        "Confirm the deletions of the site alder"
    )
    confirmed = "1 deletion is confirmed for the next harvest."
    own, question = pages()
    assert confirmed in own
    assert "until a steward confirms" not in own
    assert f"No deletion of the site alder waits for a confirmation. {confirmed}" in question
    _wait(harvester, "a.2")
    own, question = pages()
    assert "1 deletion waits until a steward confirms it." in own
    assert "says that 1 document was deleted." in question
    assert f"{confirmed} Documents of both: a.1; a.2." in " ".join(question.split())
    assert "alder: 1 deletion waits." in harvester("doctor").out
    assert "alder would lose 1 document" in console.signed_in("steward").open("/console/tonight").text
    harvester.rows("UPDATE harvest_site_schedule SET enabled = FALSE")
    assert "alder: 1 deletion waits." not in harvester("doctor").out
    assert "alder would lose" not in console.signed_in("steward").open("/console/tonight").text


def test_deletions_that_came_after_the_page_are_not_confirmed(console: Served, harvester: Harvester) -> None:
    _wait(harvester, "a.1")
    own = console.signed_in_as("alder@example.org").open("/console/sites/alder").text
    assert "1 deletion waits until a steward confirms it." in own
    page = console.signed_in("steward").open("/console/actions/sites.confirm?name=alder")
    _wait(harvester, "a.2")
    answer = page.submit(page.title.rstrip("?"))
    assert answer.status == 422
    assert "2 deletions wait by now, and you saw 1. Look at them again." in answer.text
    assert harvester.rows("SELECT state FROM harvest_document") == [("to-confirm",)] * 2
    assert harvester.rows("SELECT action FROM audit_entry WHERE action = 'sites.confirm'") == []


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("sites.confirm?name=nobody", 422, "nobody"),
        ("sites.confirm", 422, "The action needs a value: name."),
        ("runs.remove?run_id=99", 422, "There is no run 99."),
        ("runs.remove?run_id=1e9", 404, "'1e9' is not the number of a run or a request."),
        ("sites.remove?name=alder", 404, "There is no such action."),
        ("documents.transfer?name=alder&document=<script>", 404, "<script>"),
    ],
)
def test_a_mistake_gets_a_sentence(console: Served, path: str, status: int, sentence: str) -> None:
    page = console.signed_in("steward").open(f"/console/actions/{path}")
    assert (page.status, sentence in page.text) == (status, True)
    assert b"<script>" not in page.content.replace(b"<script src=", b"")


def test_viewers_decide_nothing(console: Served) -> None:
    assert console.signed_in("viewer").open("/console/actions/sites.disable?name=alder").status == 403
