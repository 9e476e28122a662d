"""What is doubtful about a valid list, seen beside what was harvested before: somebody is told, nothing is lost."""

from __future__ import annotations

from email.message import EmailMessage

import pytest

from metaharvest.harvest.limits import RunLimits
from support.harvester import SETTINGS, Harvester, eml, harvest_list, publish
from support.http_server import HttpServer
from support.mails import DOUBTFUL, GOOD, tone_of, words_of

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""


BAD = eml("a.2.2").replace(b"<title>A title</title>", b"")


def warnings(harvester: Harvester, rule: str) -> list[str]:
    sql = "SELECT error_message FROM harvest_detail_log WHERE rule = ? ORDER BY detail_log_id"
    return [message for (message,) in harvester.rows(sql, rule)]


def report_to(harvester: Harvester, address: str, day: str) -> str:
    return words_of(mail_to(harvester, address, day))


def mail_to(harvester: Harvester, address: str, day: str) -> EmailMessage:
    [mail] = [each for each in harvester.mails() if day in each["Subject"] and address in str(each["To"])]
    return mail


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


@pytest.mark.parametrize(("was_read", "number"), [(False, 1), (True, 0)])
def test_a_list_that_lost_much_is_told_by_the_run_that_reads_it_first(
    harvester: Harvester, server: HttpServer, was_read: bool, number: int
) -> None:
    """The run before it was interrupted, before or after it had read the list."""
    docids = [f"a.{number}.1" for number in range(10, 30)]
    harvester.add_site("site", publish(server, *docids))
    harvester.run("2026-11-20")
    harvester.run("2026-11-21")
    harvester.rows("UPDATE harvest_site_run SET status = 'interrupted' WHERE run_id = 2")
    if not was_read:
        harvester.rows("DELETE FROM harvest_log WHERE run_id = 2 AND site_run_id IS NOT NULL")
    publish(server, *docids[:12])
    harvester.run("2026-11-22")
    assert len(warnings(harvester, "list.shrank")) == number


def test_a_list_that_collapsed_is_told_in_the_subjects_and_to_the_administrator_by_site(
    harvester: Harvester, server: HttpServer
) -> None:
    docids = [f"a.{number}.1" for number in range(10, 30)]
    harvester.add_site("birch", publish(server, *docids))
    harvester.add_site("alder", publish(server, "b.1.1", path="/b.xml"))
    harvester.run("2026-11-20")
    publish(server, *docids[:12])
    run = harvester.run("2026-11-21")
    assert (run["exit_code"], run["status"]) == (0, "succeeded")

    mail = mail_to(harvester, "birch@", "2026-11-21")
    assert mail["Subject"] == "[Test network] birch: the list lost 8 documents, nothing new (2026-11-21)"
    assert "Needs your attention" in words_of(mail)
    assert tone_of(mail) == DOUBTFUL
    steward = mail_to(harvester, "steward@", "2026-11-21")
    assert steward["Subject"] == "[Test network] 2 sites: 2 well; 1 list lost 8 documents; nothing new (2026-11-21)"
    assert tone_of(steward) == DOUBTFUL
    told = words_of(steward)
    assert "the list lost 8 documents, 9 warnings" in told
    told = told[told.index("Documents that need attention") :]
    assert told.index("birch") < told.index("The list lost many of its documents") < told.index("8 documents, such as")
    assert "The list names 12 documents; at the last harvest it named 20." in told
    assert told.count("listed no longer; the repository keeps it") == 1
    assert tone_of(mail_to(harvester, "alder@", "2026-11-21")) == GOOD


def test_a_list_that_collapsed_is_told_to_those_who_want_only_what_is_wrong(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.config.write_text(f'{SETTINGS}[reports]\nadmin_notify = "attention"\n', encoding="utf-8")
    docids = [f"a.{number}.1" for number in range(10, 30)]
    harvester.add_site("site", publish(server, *docids), notify="on-error")
    harvester.run("2026-11-20")
    assert harvester.mails() == []
    publish(server, docids[0])
    harvester.run("2026-11-21")
    assert [subject.partition("] ")[2] for subject in harvester.subjects()] == [
        "1 site: 1 well; 1 list lost 19 documents; nothing new (2026-11-21)",
        "site: the list lost 19 documents, nothing new (2026-11-21)",
    ]


def test_a_document_changed_under_its_revision_is_told_to_the_administrator(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    server.serve("/a.1.1.xml", eml("a.1.1", "Another title"))
    harvester.run("2026-12-25")
    told = report_to(harvester, "steward@", "2026-12-25")
    told = told[told.index("Documents that need attention") :]
    assert "1 document, such as a.1.1 The document was changed, but is still listed as revision 1" in told


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


@pytest.mark.parametrize("second", [BAD, None])
def test_a_document_whose_newest_revision_failed_has_vanished_too(
    harvester: Harvester, server: HttpServer, second: bytes | None
) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    publish(server, "a.1.1", "a.2.2")
    server.serve("/a.2.2.xml", second or b"busy", status=200 if second else 503)
    harvester.run("2026-11-21")
    publish(server, "a.1.1")
    harvester.run("2026-11-22")
    assert warnings(harvester, "list.vanished") == ["a.2 is listed no longer; the repository keeps it, at revision 1."]


def test_a_document_whose_list_was_behind_has_vanished_too(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.3"))
    harvester.run("2026-11-20")
    publish(server, "a.1.1", "a.2.1")
    harvester.run("2026-11-21")
    publish(server, "a.1.1")
    harvester.run("2026-11-22")
    assert warnings(harvester, "list.vanished") == ["a.2 is listed no longer; the repository keeps it, at revision 3."]


def test_a_document_that_was_put_off_has_vanished_too(harvester: Harvester, server: HttpServer) -> None:
    entry = ("a.2.1", server.url("/a.2.1.xml"))
    harvester.add_site("site", publish(server, "a.1.1", also=[entry]))
    server.serve("/a.2.1.xml", eml("a.2.1"))
    harvester.run("2026-11-20")
    # The repository did not answer: it is not known what it holds.
    harvester.rows(
        "UPDATE harvest_document SET outcome = 'deferred', state = 'deferred', target_revision = NULL, "
        "next_attempt = '2026-11-21' WHERE document_id = 'a.2'"
    )
    publish(server, "a.1.1")
    harvester.run("2026-11-21")
    assert warnings(harvester, "list.vanished") == ["a.2 is listed no longer; the repository keeps it, at revision 1."]


def test_a_document_that_was_transferred_away_and_taken_out_has_not_vanished(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    harvester.add_site("elm", publish(server, "b.1.1", path="/b.xml"))
    harvester.run("2026-11-20")
    assert harvester("target", "transfer", "a.2", "elm").code == 0
    publish(server, "a.1.1", "a.2.2")
    harvester.run("2026-11-21")
    publish(server, "a.1.1")
    harvester.run("2026-11-22")
    assert warnings(harvester, "list.vanished") == []


def test_raised_revisions_of_a_long_list_have_not_vanished(harvester: Harvester, server: HttpServer) -> None:
    harvester.limits = RunLimits(batch=3)
    harvester.add_site("site", publish(server, *(f"a.{number}.1" for number in range(10, 20))))
    harvester.run("2026-11-20")
    publish(server, *(f"a.{number}.2" for number in range(10, 20)))
    harvester.run("2026-11-21")
    assert warnings(harvester, "list.vanished") == []


def test_more_than_a_hundred_that_vanished_are_a_number(harvester: Harvester, server: HttpServer) -> None:
    docids = [f"a.{number}.1" for number in range(100, 251)]
    harvester.add_site("site", publish(server, *docids))
    harvester.run("2026-11-20")
    publish(server, docids[0])
    harvester.run("2026-11-21")
    told = warnings(harvester, "list.vanished")
    assert len(told) == 101
    assert told[0] == "150 documents are listed no longer; the repository keeps what it has."
    assert "150 documents are listed no longer" in report_to(harvester, "site@", "2026-11-21")
    sql = "SELECT message FROM harvest_log WHERE harvest_operation_code = 'ValidateHarvestListWarning'"
    assert ("150 documents are listed no longer; the repository keeps what it has.",) in harvester.rows(sql)


def test_documents_that_left_a_long_list_are_one_number(harvester: Harvester, server: HttpServer) -> None:
    harvester.limits = RunLimits(batch=50)
    docids = [f"a.{number}.1" for number in range(100, 351)]
    harvester.add_site("site", publish(server, *docids))
    harvester.run("2026-11-20")
    publish(server, docids[0])
    harvester.run("2026-11-21")
    found = warnings(harvester, "list.vanished")
    assert len(found) == 101
    assert found[0] == "250 documents are listed no longer; the repository keeps what it has."
    assert harvester.rows("SELECT count(*) FROM harvest_document") == [(1,)]


def test_a_list_from_which_duplicates_were_deleted_has_not_shrunk(harvester: Harvester, server: HttpServer) -> None:
    docids = [f"a.{number}.1" for number in range(10, 20)]
    twice = [(docid, server.url(f"/{docid}.xml")) for docid in docids]
    harvester.add_site("site", publish(server, *docids, also=twice))
    assert harvester.run("2026-11-20")["sites"][0]["duplicate"] == 10
    publish(server, *docids)
    harvester.run("2026-11-21")
    assert warnings(harvester, "list.shrank") == []
    publish(server, *docids[:5])
    harvester.run("2026-11-22")
    assert warnings(harvester, "list.shrank") == ["The list names 5 documents; at the last harvest it named 10."]


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
