"""What is doubtful about a valid list, seen beside what was harvested before: somebody is told, nothing is lost."""

from __future__ import annotations

import pytest

from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer
from support.mails import words_of

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""


def warnings(harvester: Harvester, rule: str) -> list[str]:
    sql = "SELECT error_message FROM harvest_detail_log WHERE rule = ? ORDER BY detail_log_id"
    return [message for (message,) in harvester.rows(sql, rule)]


def report_to(harvester: Harvester, address: str, day: str) -> str:
    [mail] = [each for each in harvester.mails() if day in each["Subject"] and address in str(each["To"])]
    return words_of(mail)


def test_a_list_that_lost_much_and_what_it_lost_are_told_once(harvester: Harvester, server: HttpServer) -> None:
    docids = [f"a.{number}.1" for number in range(10, 30)]
    harvester.add_site("site", publish(server, *docids))
    harvester.run("2026-11-20")
    publish(server, *docids[:12])
    run = harvester.run("2026-11-21")
    assert warnings(harvester, "list.shrank") == ["The list names 12 documents; at the last harvest it named 20."]
    assert len(warnings(harvester, "list.vanished")) == 8
    assert run["sites"][0]["warnings"] == 9
    assert run["status"] == "succeeded"
    told = report_to(harvester, "site@", "2026-11-21")
    assert "The list lost many of its documents" in told
    assert "a.22 is listed no longer; the repository keeps it, at revision 1." in told
    assert len(harvester.held()) == 20

    harvester.run("2026-11-22")
    assert len(warnings(harvester, "list.vanished")) == 8
    told = report_to(harvester, "site@", "2026-11-22")
    assert "listed no longer" not in told
    assert "Fixed since" not in told


@pytest.mark.parametrize(("before", "after"), [(20, 17), (4, 1), (3, 5)])
def test_a_list_that_lost_a_few_entries_did_not_shrink(
    harvester: Harvester, server: HttpServer, before: int, after: int
) -> None:
    docids = [f"a.{number}.1" for number in range(10, 40)]
    harvester.add_site("site", publish(server, *docids[:before]))
    harvester.run("2026-11-20")
    publish(server, *docids[:after])
    harvester.run("2026-11-21")
    assert warnings(harvester, "list.shrank") == []
    assert len(warnings(harvester, "list.vanished")) == max(before - after, 0)


def test_a_raised_revision_and_what_never_went_in_have_not_vanished(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    server.serve("/a.2.1.xml", b"<broken")
    harvester.run("2026-11-20")
    publish(server, "a.1.2")
    harvester.run("2026-11-21")
    assert warnings(harvester, "list.vanished") == []


def test_more_than_a_hundred_that_vanished_are_a_number(harvester: Harvester, server: HttpServer) -> None:
    docids = [f"a.{number}.1" for number in range(100, 251)]
    harvester.add_site("site", publish(server, *docids))
    harvester.run("2026-11-20")
    publish(server, docids[0])
    harvester.run("2026-11-21")
    assert len(warnings(harvester, "list.vanished")) == 100
    sql = "SELECT message FROM harvest_log WHERE harvest_operation_code = 'ValidateHarvestListWarning'"
    assert ("150 documents are listed no longer; the repository keeps what it has.",) in harvester.rows(sql)


def test_a_new_revision_with_the_old_bytes_goes_in_and_is_told(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    server.serve("/a.1.2.xml", eml("a.1.1"))
    server.serve("/list.xml", harvest_list([("a.1.2", server.url("/a.1.2.xml"))]))
    run = harvester.run("2026-11-21")
    assert run["sites"][0]["updated"] == 1
    assert warnings(harvester, "list.same-content") == ["Revision 2 has exactly the bytes of revision 1."]


def test_revisions_of_one_list_with_the_same_bytes_are_told_too(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1", "a.1.2", "a.1.3")
    for revision in (2, 3):
        server.serve(f"/a.1.{revision}.xml", eml("a.1.2"))
    harvester.add_site("site", url)
    harvester.run("2026-11-20")
    assert warnings(harvester, "list.same-content") == ["Revision 3 has exactly the bytes of revision 2."]
