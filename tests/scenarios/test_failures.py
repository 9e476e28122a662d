"""Failures that pass are tried again the next night, those that last wait; a bad server costs its own site alone."""

import time
from datetime import date
from math import inf

import pytest

from metaharvest.fetch.client import Fetcher
from metaharvest.harvest.run import RunRequest
from metaharvest.model import ListVersion, Site
from metaharvest.sites import due
from metaharvest.sources.base import Listing, PagedSource, Source
from metaharvest.sources.harvest_list.source import HarvestListSource
from metaharvest.sources.lookup import source_for
from support.databases import on_one_database
from support.harvester import IMPATIENT, Harvester, eml, harvest_list, publish
from support.http_server import HttpServer, dripped, endless, reset_after
from support.mails import words_of


def test_a_failure_that_may_pass_is_tried_again_the_next_night_whatever_the_schedule(
    harvester: Harvester, server: HttpServer
) -> None:
    url = publish(server, "a.1.1", "a.2.1")
    server.serve("/a.2.1.xml", b"busy", status=503)
    harvester.add_site("monthly", url, unit="months", datenextharvest="2026-11-20")
    first = harvester.run("2026-11-20")
    assert harvester.outcomes(first["run_id"]) == {"a.1.1": "inserted", "a.2.1": "access-error"}
    assert first["sites"][0]["next_harvest"] == "2026-12-20"

    server.serve("/a.2.1.xml", eml("a.2.1"))
    second = harvester.run("2026-11-21")
    assert [(site["kind"], site["listed"], site["inserted"]) for site in second["sites"]] == [("retry", 1, 1)]
    assert len(server.asked("/list.xml")) == 1
    sql = "SELECT datelastharvest, datenextharvest FROM harvest_site_schedule"
    assert harvester.rows(sql) == [("2026-11-20", "2026-12-20")]
    assert harvester.run("2026-11-22")["sites"] == []


def test_a_lasting_failure_waits_for_the_sites_next_turn(harvester: Harvester, server: HttpServer) -> None:
    gone = ("a.2.1", server.url("/gone.xml"))
    harvester.add_site("weekly", publish(server, "a.1.1", also=[gone]), unit="weeks", datenextharvest="2026-11-20")
    harvester.run("2026-11-20")
    assert harvester.run("2026-11-21")["sites"] == []
    assert harvester.run("2026-11-27")["sites"][0]["access_error"] == 1
    failing = harvester.rows("SELECT failing_since, attempts FROM harvest_document WHERE document_id = 'a.2'")
    assert failing == [("2026-11-20", 2)]


def test_a_retry_in_which_nothing_changes_sends_no_report_and_ends_after_a_week(
    harvester: Harvester, server: HttpServer
) -> None:
    url = publish(server, "a.1.1")
    server.serve("/a.1.1.xml", b"busy", status=503)
    harvester.add_site("monthly", url, unit="months", datenextharvest="2026-11-01")
    for day in range(1, 12):
        harvester.run(f"2026-11-{day:02}")
    kinds = harvester.rows("SELECT kind, count(*) FROM harvest_site_run GROUP BY kind ORDER BY kind")
    assert kinds == [("retry", 7), ("scheduled", 1)]
    assert len([mail for mail in harvester.mails() if "monthly:" in mail["Subject"]]) == 1


@on_one_database
def test_an_older_revision_is_not_retried_after_a_newer_one_went_in(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1", "a.1.2")
    server.serve("/a.1.1.xml", b"busy", status=503)
    harvester.add_site("weekly", url, unit="weeks", datenextharvest="2026-11-20")
    first = harvester.run("2026-11-20")
    assert harvester.outcomes(first["run_id"]) == {"a.1.1": "access-error", "a.1.2": "inserted"}
    assert harvester.run("2026-11-21")["sites"] == []


@on_one_database
def test_an_html_page_in_a_documents_place_is_told_by_its_title(harvester: Harvester, server: HttpServer) -> None:
    server.serve("/page", b"<!DOCTYPE html><html><head><title>Please log in</title></head><body/></html>")
    harvester.add_site("site", publish(server, also=[("a.1.1", server.url("/page"))]))
    run = harvester.run("2026-11-20")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "access-error"}
    assert harvester.findings(run["run_id"]) == [("a.1", "error", "http.html-page")]
    message = harvester.rows("SELECT error_message FROM harvest_detail_log")[0][0]
    assert "Please log in" in message


@on_one_database
def test_a_misbehaving_server_costs_its_site_findings_within_the_deadline_and_other_sites_nothing(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in IMPATIENT.items():
        monkeypatch.setenv(name, value)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n"
    server.route("/headers", dripped(b"HTTP/1.1 200 OK\r\n", b"X-Slow: 1\r\n" * 100))
    server.route("/body", dripped(head + b"\r\n", eml("a.2.1") * 10))
    server.route("/endless", endless(head + b"\r\n", b"<!-- -->" * 8192, pause=0.05))
    server.redirect("/private", "http://10.0.0.1/eml.xml")
    server.route("/reset", reset_after(head))
    paths = ["headers", "body", "endless", "private", "reset"]
    hostile = harvest_list([(f"a.{number}.1", server.url(f"/{path}")) for number, path in enumerate(paths, 1)])
    server.serve("/hostile.xml", hostile)
    server.route("/dripping-list.xml", dripped(head, b"X-Slow: 1\r\n" * 100))
    harvester.add_site("a-hostile", server.url("/hostile.xml"))
    harvester.add_site("b-dripping", server.url("/dripping-list.xml"))
    harvester.add_site("c-good", publish(server, "c.1.1"))

    began = time.monotonic()
    run = harvester.run("2026-11-20")
    assert time.monotonic() - began < 30
    status = {site["site_name"]: site["status"] for site in run["sites"]}
    assert status == {"a-hostile": "with-errors", "b-dripping": "list-failed", "c-good": "succeeded"}
    rules = {document: rule for document, _, rule in harvester.findings(run["run_id"]) if document}
    assert rules == {
        "a.1": "http.deadline",
        "a.2": "http.deadline",
        "a.3": "http.deadline",
        "a.4": "http.address-not-public",
        "a.5": "http.connection",
    }


@on_one_database
def test_a_server_that_stopped_answering_is_asked_no_more_and_the_rest_is_deferred_with_one_finding(
    harvester: Harvester, server: HttpServer
) -> None:
    docids = [f"a.{number}.1" for number in range(1, 61)]
    url = publish(server, *docids)
    for docid in docids:
        server.serve(f"/{docid}.xml", b"busy", status=503)
    harvester.add_site("site", url)
    run = harvester.run("2026-11-20")
    site = run["sites"][0]
    assert site["access_error"] + site["deferred"] == 60
    assert site["deferred"] >= 40
    assert site["status"] == "with-errors"
    rules = [rule for _, _, rule in harvester.findings(run["run_id"])]
    assert rules.count("http.server-stopped") == 1
    assert len(rules) == site["access_error"] + 1
    for docid in docids:
        server.serve(f"/{docid}.xml", eml(docid))
    assert harvester.run("2026-11-21")["sites"][0]["inserted"] == 60


def test_a_surprise_fails_its_site_alone_and_shows_in_the_administrators_report(
    harvester: Harvester, server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    harvester.add_site("a-bad", publish(server, "a.1.1"))
    harvester.add_site("b-good", publish(server, "b.1.1", path="/b.xml"))

    class Surprising(HarvestListSource):
        async def list_documents(self, known: ListVersion | None, seconds: float = inf) -> Listing:
            raise ZeroDivisionError("a mistake of ours")

    def source(site: Site, fetcher: Fetcher) -> Source | PagedSource:
        return Surprising(site, fetcher) if site.name == "a-bad" else source_for(site, fetcher)

    with harvester.opened(source=source) as opened:
        opened.run(RunRequest(date(2026, 11, 20)))
    statuses = harvester.rows("SELECT site_name, status FROM harvest_site_run ORDER BY site_name")
    assert statuses == [("a-bad", "failed"), ("b-good", "succeeded")]
    excerpt = harvester.rows("SELECT excerpt FROM harvest_detail_log WHERE rule = 'harvest.surprise'")[0][0]
    assert "ZeroDivisionError" in excerpt
    admin = next(mail for mail in harvester.mails() if "2 sites" in mail["Subject"])
    assert "a mistake of ours" in words_of(admin)


def test_a_site_that_cannot_be_closed_does_not_keep_those_from_it_that_end_with_it(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reckoned = due.next_harvest

    def next_harvest(site: Site, today: date) -> date:
        if site.frequency == 99:
            raise ZeroDivisionError("a mistake of ours")
        return reckoned(site, today)

    monkeypatch.setattr("metaharvest.sites.due.next_harvest", next_harvest)
    for number in range(1, 9):
        url = publish(server, f"a.{number}.1", path=f"/list-{number}.xml")
        harvester.add_site(f"site-{number}", url, updatefrequency=99 if number == 4 else 1)
    harvester.run("2026-11-20", "--force")
    assert dict(harvester.rows("SELECT site_name, status FROM harvest_site_run")) == {
        f"site-{number}": "failed" if number == 4 else "succeeded" for number in range(1, 9)
    }
    dates = dict(harvester.rows("SELECT name, datenextharvest FROM harvest_site_schedule"))
    assert {name for name, day in dates.items() if day == "2026-11-21"} == {*dates} - {"site-4"}
    assert len([subject for subject in harvester.subjects() if "] site-" in subject]) == 8
