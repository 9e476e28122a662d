"""A database that an earlier state of the program left, in the middle of a run, is taken up as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.harvester import Harvester, eml, harvest_list
from support.http_server import Asking, HttpServer, Route, answering
from support.mails import text_of

DUMP = Path(__file__).parent / "before_the_event_loop.sql"
ADDRESS = "127.0.0.1:54321"
"""Where the sites of that database were."""

ALDER = ("alder.1.1", "alder.2.3", "alder.3.1", "alder.4.1", "alder.5.1", "alder.6.1")
CEDAR = ("cedar.1.1", "cedar.2.1", "cedar.3.1", "cedar.4.1", "cedar.1.1", "cedar.9.1")


def unless_known(etag: str, content: bytes) -> Route:
    def route(asking: Asking) -> None:
        known = asking.headers.get("If-None-Match") == etag
        asking.answer(b"" if known else content, 304 if known else 200, {"ETag": etag})

    return route


@pytest.fixture
def harvester(tmp_path: Path, server: HttpServer) -> Iterator[Harvester]:
    """That database, the sites that it names, and what they still have."""
    at = server.url("").removeprefix("http://")
    with closing(sqlite3.connect(tmp_path / "metaharvest.db")) as database:
        database.executescript(DUMP.read_text(encoding="utf-8").replace(ADDRESS, at))
    for name, docids in (("alder", ALDER), ("cedar", CEDAR)):
        content = harvest_list((docid, server.url(f"/{docid}.xml")) for docid in docids)
        server.route(f"/{name}.xml", unless_known(f'"{name}-1"', content))
        for docid in docids:
            server.serve(f"/{docid}.xml", eml(docid))
    server.route("/alder.6.1.xml", answering(b"gone", status=404))
    installed = Harvester(tmp_path)
    assert installed("init").code == 0
    yield installed
    installed.close()


def counts(site_run: dict[str, object]) -> dict[str, object]:
    """Its outcomes, without those that it has not."""
    names = ("inserted", "updated", "unchanged", "duplicate", "deferred", "access_error", "invalid", "upload_error")
    return {name: site_run[name] for name in names if site_run[name]}


def test_the_run_that_was_killed_is_taken_up_by_the_next_one(harvester: Harvester, server: HttpServer) -> None:
    held = harvester.held()
    assert sorted(held) == ["alder.1.1", "alder.2.3", "alder.5.1", "cedar.1.1", "cedar.3.1", "cedar.4.1"]
    run = harvester.run("2026-11-21")
    # The killed run had finished alder and birch on this day.
    [cedar] = run["sites"]
    assert (run["run_id"], cedar["site_run_id"], cedar["site_name"]) == (3, 4, "cedar")
    assert (cedar["listed"], cedar["status"]) == (6, "with-errors")
    assert counts(cedar) == {"inserted": 4, "duplicate": 1, "invalid": 1}
    asked = [request.path for request in server.requests]
    assert asked == ["/cedar.xml", "/cedar.9.1.xml"]
    assert harvester.held() == {**held, "cedar.9.1": eml("cedar.9.1")}
    assert harvester.rows("SELECT status FROM harvest_run ORDER BY run_id") == [
        ("with-errors",),
        ("interrupted",),
        ("with-errors",),
    ]
    outcomes = "SELECT count(*) FROM harvest_log WHERE site_run_id = 4 AND outcome IS NOT NULL"
    assert harvester.rows(outcomes) == [(6,)]


def test_reports_that_waited_are_delivered_and_the_interruption_is_told(harvester: Harvester) -> None:
    [(waiting,)] = harvester.rows("SELECT message_id FROM report_outbox")
    harvester.run("2026-11-21")
    assert [mail["To"] for mail in harvester.mails() if mail["Message-ID"] == waiting] == ["birch@example.org"]
    assert sorted(mail["To"] for mail in harvester.mails()) == [
        "birch@example.org",
        "cedar@example.org",
        "steward@example.org",
        "steward@example.org",
    ]
    assert any("never ended" in text_of(mail) for mail in harvester.mails() if mail["To"] == "steward@example.org")
    assert harvester.rows("SELECT DISTINCT status FROM report_delivery") == [("sent",)]


def test_what_was_owed_is_done_on_the_nights_after(harvester: Harvester, server: HttpServer) -> None:
    harvester.run("2026-11-21")
    server.serve("/birch.xml", harvest_list([("birch.1.1", server.serve("/birch.1.1.xml", eml("birch.1.1")))]))
    sites = {site["site_name"]: site for site in harvester.run("2026-11-22")["sites"]}
    assert {name: (site["kind"], counts(site)) for name, site in sites.items()} == {
        "alder": ("retry", {"inserted": 1}),
        "birch": ("scheduled", {"inserted": 1}),
        "cedar": ("scheduled", {"unchanged": 4, "inserted": 1, "duplicate": 1}),
    }
    assert {"alder.4.1", "cedar.2.1"} <= set(harvester.held())


def test_what_the_ledger_knows_is_not_asked_for_again(harvester: Harvester, server: HttpServer) -> None:
    """The list is the one that was read before; its server knows it by the ETag that was kept."""
    run = harvester.run("2026-11-27", "--site", "alder")
    [alder] = run["sites"]
    assert counts(alder) == {"unchanged": 3, "inserted": 2, "access_error": 1}
    assert "HarvestListUnchanged" in harvester.operations(run["run_id"])
    assert sorted(request.path for request in server.requests) == [
        "/alder.3.1.xml",
        "/alder.4.1.xml",
        "/alder.6.1.xml",
        "/alder.xml",
    ]
    since = harvester.rows("SELECT failing_since, attempts FROM harvest_document WHERE document_id = 'alder.6'")
    assert since == [("2026-11-20", 2)]


def test_what_it_tells_can_be_read(harvester: Harvester) -> None:
    for command, said in (
        (("runs",), "with-errors"),
        (("runs", "show", "1"), "alder"),
        (("log", "--document", "alder.3"), "is not acceptable"),
        (("reports", "--undelivered"), "birch: harvest list could not be read"),
        (("reports", "show", "4"), "harvest list could not be read"),
        (("sites", "list"), "cedar"),
        (("target", "show", "alder.2"), "alder.2"),
    ):
        told = harvester(*command)
        assert told.err == "", command
        assert said in told.out, command
    assert harvester("init").code == 0


def test_its_documents_are_looked_at_again_in_their_turn(harvester: Harvester) -> None:
    """When each was fetched last is not known: they have their turn as if they had come today."""
    assert harvester.rows("SELECT count(*) FROM harvest_document WHERE looked_at IS NULL") == [(0,)]
