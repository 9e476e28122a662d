"""An unchanged list is not read again; its documents are looked after all the same."""

from datetime import date

import pytest

from metaharvest.harvest.context import Progress
from metaharvest.harvest.limits import RunLimits
from metaharvest.harvest.run import RunRequest
from metaharvest.services import sites
from metaharvest.services.sites import SiteValues
from support.databases import on_one_database
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer


def with_etag(server: HttpServer, *docids: str, etag: str = '"v1"', path: str = "/list.xml") -> str:
    """Publish documents and a list that answers 304 to whoever knows its ETag."""
    url = publish(server, *docids, path=path)
    content = harvest_list([(docid, server.url(f"/{docid}.xml")) for docid in docids])

    def route(asking: Asking) -> None:
        if asking.headers.get("If-None-Match") == etag:
            asking.answer(b"", 304, {"ETag": etag})
        else:
            asking.answer(content, 200, {"ETag": etag, "Last-Modified": "Fri, 20 Nov 2026 01:00:00 GMT"})

    server.route(path, route)
    return url


def test_a_list_answered_304_is_not_read_again_and_its_documents_are_counted(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", with_etag(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    assert harvester.rows("SELECT list_etag, list_sha256 IS NOT NULL FROM harvest_site_schedule") == [('"v1"', 1)]
    run = harvester.run("2026-11-21")
    assert server.asked("/list.xml")[-1].headers["if-none-match"] == '"v1"'
    assert server.asked("/list.xml")[-1].headers["if-modified-since"] == "Fri, 20 Nov 2026 01:00:00 GMT"
    site = run["sites"][0]
    assert (site["listed"], site["unchanged"], site["status"]) == (2, 2, "succeeded")
    assert "HarvestListUnchanged" in harvester.operations(run["run_id"])
    assert harvester.rows("SELECT list_etag FROM harvest_site_schedule") == [('"v1"',)]


@on_one_database
def test_the_same_bytes_without_an_etag_are_unchanged_too(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    assert "HarvestListUnchanged" in harvester.operations(harvester.run("2026-11-21")["run_id"])
    publish(server, "a.1.1", "a.2.1")
    third = harvester.run("2026-11-22")
    assert "HarvestListUnchanged" not in harvester.operations(third["run_id"])
    assert harvester.outcomes(third["run_id"]) == {"a.2.1": "inserted"}


def test_a_document_that_the_target_lost_goes_in_again_though_the_list_is_unchanged(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", with_etag(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    harvester.run("2026-11-21")
    harvester.lose("a.2")
    run = harvester.run("2026-11-22")
    assert "HarvestListUnchanged" in harvester.operations(run["run_id"])
    assert harvester.outcomes(run["run_id"]) == {"a.2.1": "inserted"}
    assert run["sites"][0]["unchanged"] == 1


@on_one_database
def test_documents_to_retry_and_repaired_ones_are_not_hidden_by_an_unchanged_list(
    harvester: Harvester, server: HttpServer
) -> None:
    url = with_etag(server, "a.1.1", "a.2.1", "a.3.1")
    server.serve("/a.2.1.xml", b"busy", status=503)
    server.serve("/a.3.1.xml", b"<not-eml/>")
    harvester.add_site("site", url)
    harvester.run("2026-11-20")
    server.serve("/a.2.1.xml", eml("a.2.1"))
    server.serve("/a.3.1.xml", eml("a.3.1"))
    run = harvester.run("2026-11-21")
    assert "HarvestListUnchanged" in harvester.operations(run["run_id"])
    assert harvester.outcomes(run["run_id"]) == {"a.2.1": "inserted", "a.3.1": "inserted"}


def test_many_revisions_and_documents_come_back_whole_from_the_ledger(harvester: Harvester, server: HttpServer) -> None:
    harvester.limits = RunLimits(batch=4)
    docids = [*(f"a.1.{revision}" for revision in range(1, 10)), "a.2.1", "a.3.1", "a.3.2", "a.4.1", "a.5.1"]
    harvester.add_site("site", with_etag(server, *docids))
    assert harvester.run("2026-11-20")["sites"][0]["status"] == "succeeded"
    for day in ("2026-11-21", "2026-11-22"):
        site = harvester.run(day)["sites"][0]
        assert (site["listed"], site["unchanged"], site["status"]) == (14, 14, "succeeded")


@on_one_database
def test_a_list_with_a_docid_listed_twice_is_read_every_time(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", also=[("a.1.1", server.url("/a.1.1.xml"))]))
    harvester.run("2026-11-20")
    site = harvester.run("2026-11-21")["sites"][0]
    assert (site["listed"], site["unchanged"], site["duplicate"]) == (2, 1, 1)


def test_a_list_is_read_again_where_the_ledger_or_the_url_was_changed_by_hand(
    harvester: Harvester, server: HttpServer
) -> None:
    url = with_etag(server, "a.1.1", "a.2.1")
    harvester.add_site("site", url)
    harvester.run("2026-11-20")
    harvester.rows("DELETE FROM harvest_document")
    site = harvester.run("2026-11-21")["sites"][0]
    assert (site["listed"], site["unchanged"]) == (2, 2)
    with_etag(server, "a.3.1", path="/moved.xml")
    harvester.rows("UPDATE harvest_site_schedule SET documentlisturl = ?", server.url("/moved.xml"))
    run = harvester.run("2026-11-22")
    assert harvester.outcomes(run["run_id"]) == {"a.3.1": "inserted"}
    assert "if-none-match" not in server.asked("/moved.xml")[0].headers


@on_one_database
def test_a_changed_list_is_known_in_the_next_night(harvester: Harvester, server: HttpServer) -> None:
    text = '<filters match="all"><filter xpath="//creator" regexp="secret" invert="true"/></filters>'
    (harvester.folder / "filters.xml").write_text(text)
    harvester.add_site("site", with_etag(server, "a.1.1"), options='{"filters": "filters.xml", "max_loss": 7}')
    harvester.run("2026-11-20")
    with_etag(server, "a.1.1", "a.2.1", etag='"v2"')
    harvester.run("2026-11-21")
    run = harvester.run("2026-11-22")
    assert "HarvestListUnchanged" in harvester.operations(run["run_id"])


@on_one_database
def test_a_list_is_read_again_if_its_site_was_edited_in_the_run(harvester: Harvester, server: HttpServer) -> None:
    url = with_etag(server, "a.1.1")
    harvester.add_site("site", url)

    class Edits(Progress):
        def site_began(self, name: str) -> None:
            sites.edit(opened, ["site"], SiteValues(max_loss=7))

    harvester.run("2026-11-20")
    with_etag(server, "a.1.1", "a.2.1", etag='"v2"')
    with harvester.opened() as opened:
        opened.run(RunRequest(date(2026, 11, 21)), Edits())
    run = harvester.run("2026-11-22")
    assert "HarvestListUnchanged" not in harvester.operations(run["run_id"])
    run = harvester.run("2026-11-23")
    assert "HarvestListUnchanged" in harvester.operations(run["run_id"])


@on_one_database
def test_a_list_that_became_invalid_is_reported_and_the_known_version_stays(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", with_etag(server, "a.1.1"))
    harvester.run("2026-11-20")
    server.serve("/list.xml", b"<nonsense/>")
    assert harvester.run("2026-11-21")["sites"][0]["status"] == "list-failed"
    with_etag(server, "a.1.1")
    assert harvester.run("2026-11-21")["sites"][0]["unchanged"] == 1


@on_one_database
def test_a_list_that_comes_back_after_a_harvest_that_was_not_closed_is_read_again(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    publish(server, "a.1.2", "a.2.1")
    with monkeypatch.context() as patched:
        patched.setattr("metaharvest.journal.journal.Journal.close_site_run", fail)
        assert harvester.run("2026-11-21")["sites"][0]["status"] == "failed"
    publish(server, "a.1.1", "a.2.1")
    run = harvester.run("2026-11-22")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "stale"}
