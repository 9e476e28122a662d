"""The report about a check, for a program."""

from __future__ import annotations

from metaharvest.services.check_report import CheckOptions, CheckReport
from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer


@on_one_database
def test_a_report_has_the_story_the_findings_and_the_table(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))])
    with harvester.opened() as opened, opened.check([url], CheckOptions()) as checked:
        report = CheckReport(checked, all_of_them=False)
        assert report.has_errors
        assert report.story == "2 documents: 1 would be added and 1 could not be fetched"
        [found] = report.findings
        assert (found.finding.rule, found.finding.document_id, found.file) == ("http.status", "a.2", None)
        assert "a.2.1" in "".join(report.csv())
        assert report.local_paths == ()
    assert harvester.rows("SELECT * FROM harvest_run") == []
