"""A document that is changed without a new revision: a few a night are looked at, so that it shows."""

from __future__ import annotations

import pytest

from support.harvester import SETTINGS, Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer, Route, answering, reset_after
from support.mails import text_of

FIRST, NEXT_DAY = "2026-11-20", "2026-11-21"
DUE, AFTER, LATER, LATEST = "2026-12-20", "2026-12-21", "2026-12-22", "2026-12-23"

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""What does not depend on the database."""


def versioned(content: bytes, etag: str) -> Route:
    """Answers with 304 whoever knows this version."""

    def route(asking: Asking) -> None:
        known = asking.headers.get("If-None-Match") == etag
        asking.answer(b"" if known else content, 304 if known else 200, {"ETag": etag})

    return route


def asked_for(server: HttpServer, path: str = "/a.") -> list[str]:
    return [request.path for request in server.requests if request.path.startswith(path)]


def report_of(harvester: Harvester, day: str) -> str:
    [mail] = [each for each in harvester.mails() if day in each["Subject"] and "site@" in str(each["To"])]
    return text_of(mail)


def test_a_changed_document_is_told_until_its_revision_is_raised(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    for docid in ("a.1.1", "a.2.1"):
        server.route(f"/{docid}.xml", versioned(eml(docid), f'"{docid}"'))
    harvester.run(FIRST)
    server.route("/a.2.1.xml", versioned(eml("a.2.1", "Another title"), '"changed"'))
    server.requests.clear()
    harvester.run(NEXT_DAY)
    assert asked_for(server) == []

    run = harvester.run(DUE)
    assert [request.headers["if-none-match"] for request in server.requests if request.path == "/a.1.1.xml"] == [
        '"a.1.1"'
    ]
    [site] = run["sites"]
    assert (site["status"], site["listed"], site["unchanged"], site["warnings"]) == ("succeeded", 2, 2, 1)
    assert harvester.findings(run["run_id"]) == [("a.2", "warning", "list.changed-content")]
    told = report_of(harvester, DUE)
    assert "The document was changed, and its revision was not raised" in told
    assert "Raise the revision to 2" in told
    assert harvester.held() == {docid: eml(docid) for docid in ("a.1.1", "a.2.1")}

    # It is looked at every night until it is mended; others have their turn again after thirty days.
    server.requests.clear()
    harvester.run(AFTER)
    assert asked_for(server) == ["/a.2.1.xml"]
    told = report_of(harvester, AFTER)
    assert "Warnings: still there" in told
    assert f"since {DUE}" in told

    server.serve("/a.2.2.xml", eml("a.2.2", "Another title"))
    entries = [(docid, server.url(f"/{docid}.xml")) for docid in ("a.1.1", "a.2.2")]
    server.serve("/list.xml", harvest_list(entries))
    run = harvester.run(LATER)
    assert run["sites"][0]["updated"] == 1
    told = report_of(harvester, LATER)
    assert "Fixed since the last harvest: thank you" in told
    assert "still there" not in told
    server.requests.clear()
    harvester.run(LATEST)
    assert asked_for(server) == []


def test_a_document_that_is_put_back_is_fixed(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run(FIRST)
    server.serve("/a.1.1.xml", eml("a.1.1", "Another title"))
    harvester.run(DUE)
    # A server that is away for a night tells nothing of it.
    server.route("/a.1.1.xml", reset_after())
    run = harvester.run(AFTER)
    assert (run["status"], harvester.findings(run["run_id"])) == ("succeeded", [])
    assert "Warnings: still there" in report_of(harvester, AFTER)
    server.serve("/a.1.1.xml", eml("a.1.1"))
    harvester.run(LATER)
    assert "Fixed since the last harvest: thank you" in report_of(harvester, LATER)
    assert harvester.rows("SELECT state, nights FROM site_problem") == [("fixed", 3)]


@on_sqlite
def test_a_few_a_night_have_their_turn_the_oldest_first(harvester: Harvester, server: HttpServer) -> None:
    docids = [f"a.{number}.1" for number in range(10, 22)]
    harvester.add_site("site", publish(server, *docids))
    harvester.run(FIRST)
    server.requests.clear()
    seen: list[int] = []
    for day in (DUE, AFTER, LATER, LATEST):
        harvester.run(day)
        seen.append(len(asked_for(server)) - sum(seen))
    assert seen == [5, 5, 2, 0]
    assert sorted(asked_for(server)) == [f"/{docid}.xml" for docid in docids]


@on_sqlite
@pytest.mark.parametrize("route", [answering(b"gone", status=404), answering(b"<html><title>Log in</title></html>")])
def test_what_cannot_be_fetched_is_passed_over_until_its_next_turn(
    harvester: Harvester, server: HttpServer, route: Route
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run(FIRST)
    server.route("/a.1.1.xml", route)
    server.requests.clear()
    for day in (DUE, AFTER):
        run = harvester.run(day)
        assert (run["status"], run["exit_code"], harvester.findings(run["run_id"])) == ("succeeded", 0, [])
        assert run["sites"][0]["unchanged"] == 1
    assert len(asked_for(server)) == 1


@on_sqlite
def test_a_server_that_fails_is_asked_once(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1", "a.3.1"))
    harvester.run(FIRST)
    for docid in ("a.1.1", "a.2.1", "a.3.1"):
        server.route(f"/{docid}.xml", answering(b"", status=503))
    server.requests.clear()
    assert harvester.run(DUE)["status"] == "succeeded"
    assert len(asked_for(server)) == 1


@on_sqlite
def test_a_document_that_came_in_by_another_way_is_compared_with_the_repository(
    harvester: Harvester, server: HttpServer
) -> None:
    """The ledger knows no digest of what was there before the site was harvested first."""
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    harvester.run(FIRST)
    harvester.rows("UPDATE harvest_document SET sha256 = NULL")
    server.serve("/a.2.1.xml", eml("a.2.1", "Another title"))
    run = harvester.run(DUE)
    assert harvester.findings(run["run_id"]) == [("a.2", "warning", "list.changed-content")]


@on_sqlite
def test_it_can_be_switched_off(harvester: Harvester, server: HttpServer) -> None:
    settings = harvester.config.read_text("utf-8")
    harvester.config.write_text(settings.replace("[harvester]\n", "[harvester]\nlook_again = 0\n"), "utf-8")
    assert "look_again" not in SETTINGS
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run(FIRST)
    server.requests.clear()
    harvester.run(DUE)
    assert asked_for(server) == []
