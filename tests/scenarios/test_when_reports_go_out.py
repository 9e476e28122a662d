"""When reports go out: reminders of what stays broken, the administrator's where something needs it, the digest."""

from __future__ import annotations

import json
from datetime import date, timedelta
from email.message import EmailMessage
from pathlib import Path

import pytest

from support.harvester import SETTINGS, Harvester, eml, harvest_list, publish
from support.http_server import HttpServer
from support.mails import BAD as BAD_BAR
from support.mails import text_of
from support.ports import free_port

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

BAD = eml("a.1.1").replace(b"<title>A title</title>", b"")
MONDAY = date(2026, 11, 16)


def days_told(harvester: Harvester, name: str) -> list[str]:
    """The days of which `name` got a report."""
    told = [mail["Subject"] for mail in harvester.mails() if str(mail["To"]).startswith(name)]
    return sorted(subject[-11:-1] for subject in told)


def set_reports(harvester: Harvester, lines: str) -> None:
    harvester.config.write_text(f"{SETTINGS}[reports]\n{lines}\n", encoding="utf-8")


def test_a_site_that_wants_changes_alone_is_reminded_of_what_stays_broken(
    harvester: Harvester, server: HttpServer
) -> None:
    set_reports(harvester, "remind_days = 3")
    harvester.add_site("site", publish(server, "a.1.1"), notify="on-change")
    harvester.add_site("well", publish(server, "b.1.1", path="/b.xml"), notify="on-change")
    server.serve("/a.1.1.xml", BAD)
    for number in range(8):
        harvester.run(str(MONDAY + timedelta(days=number)))
    assert days_told(harvester, "site") == ["2026-11-16", "2026-11-19", "2026-11-22"]
    assert days_told(harvester, "well") == ["2026-11-16"]


def test_what_happened_once_is_told_to_those_who_want_changes_once(harvester: Harvester, server: HttpServer) -> None:
    docids = [f"a.{number}.1" for number in range(10, 30)]
    harvester.add_site("site", publish(server, *docids), notify="on-change")
    harvester.run("2026-11-16")
    publish(server, *docids[:12])
    harvester.run("2026-11-17")
    harvester.run("2026-11-18")
    publish(server, *docids[:5])
    harvester.run("2026-11-19")
    publish(server, *docids[:4])
    harvester.run("2026-11-20")
    harvester.run("2026-11-21")
    assert days_told(harvester, "site") == ["2026-11-16", "2026-11-17", "2026-11-19", "2026-11-20"]


def test_what_a_retry_has_told_is_no_change_to_the_next_harvest(harvester: Harvester, server: HttpServer) -> None:
    gone = ("a.2.1", server.url("/gone.xml"))
    harvester.add_site("site", publish(server, "a.1.1", also=[gone]), notify="on-change", unit="weeks")
    server.serve("/a.1.1.xml", b"busy", status=503)
    harvester.run("2026-11-16")
    server.serve("/a.1.1.xml", eml("a.1.1"))
    harvester.run("2026-11-17")
    harvester.run("2026-11-23")
    assert days_told(harvester, "site") == ["2026-11-16", "2026-11-17"]
    server.serve("/gone.xml", eml("a.2.1"))
    harvester.run("2026-11-30")
    assert days_told(harvester, "site")[2:] == ["2026-11-30"]


def test_a_server_that_stays_down_is_no_change_to_a_contact(harvester: Harvester, server: HttpServer) -> None:
    dead = free_port()
    docids = [f"a.{number}.1" for number in range(1, 41)]
    server.serve("/a.xml", harvest_list([(docid, f"http://127.0.0.1:{dead}/{docid}.xml") for docid in docids]))
    harvester.add_site("site", server.url("/a.xml"), notify="on-change")
    for number in range(4):
        harvester.run(str(MONDAY + timedelta(days=number)))
    assert days_told(harvester, "site") == ["2026-11-16"]


def test_a_server_that_is_back_without_its_documents_is_a_change_to_a_contact(
    harvester: Harvester, server: HttpServer
) -> None:
    publish(server, *(f"a.{number}.1" for number in range(6)))
    harvester.add_site("site", server.url("/list.xml"), notify="on-change")
    for number in range(6):
        server.serve(f"/a.{number}.1.xml", b"busy", status=503, headers={"Retry-After": "86400"})
    harvester.run("2026-11-16")
    for number in range(6):
        server.serve(f"/a.{number}.1.xml", b"no", status=404)
    for day in (17, 18, 19):
        harvester.run(f"2026-11-{day}")
    assert days_told(harvester, "site") == ["2026-11-16", "2026-11-17"]


def test_a_warning_of_an_unchanged_document_is_no_change_to_a_contact(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"), notify="on-change")
    server.serve("/a.1.1.xml", eml("zzz.1.1"))  # the packageId is another one: a warning
    harvester.run("2026-11-16")
    harvester.run("2026-11-17")
    assert days_told(harvester, "site") == ["2026-11-16"]


def test_no_reminder_is_sent_where_none_is_wanted(harvester: Harvester, server: HttpServer) -> None:
    set_reports(harvester, "remind_days = 0")
    harvester.add_site("site", publish(server, "a.1.1"), notify="on-change")
    server.serve("/a.1.1.xml", BAD)
    for number in range(9):
        harvester.run(str(MONDAY + timedelta(days=number)))
    assert days_told(harvester, "site") == ["2026-11-16"]


def test_the_subject_counts_a_site_with_a_retry_once(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    server.serve("/a.2.1.xml", b"busy", status=503)
    harvester.run("2026-11-16")
    server.serve("/list.xml", b"<no-list/>")
    run = harvester.run("2026-11-17")
    assert [site["kind"] for site in run["sites"]] == ["scheduled", "retry"]
    assert "[Test network] 1 site: 1 failed; nothing new (2026-11-17)" in harvester.subjects()
    [summary, _] = json.loads(harvester("runs", "--json").out)
    assert (summary["sites"], summary["failed"]) == (1, 1)


def test_the_subject_says_that_the_run_failed_as_its_preview_does(harvester: Harvester, server: HttpServer) -> None:
    server.serve("/list.xml", b"<no-list/>")
    harvester.add_site("site", server.url("/list.xml"))
    assert harvester.run("2026-11-16")["status"] == "failed"
    subject = "[Test network] the run failed; 1 site: 1 failed; nothing new (2026-11-16)"
    assert subject in harvester.subjects()
    assert subject in harvester("reports", "preview").out


def test_digests_of_two_installations_have_message_ids_of_their_own(
    harvester: Harvester, tmp_path: Path, server: HttpServer
) -> None:
    (tmp_path / "other").mkdir()
    other = Harvester(tmp_path / "other")
    for each in (harvester, other):
        set_reports(each, 'digest = "monday"')
        each.add_site("site", publish(server, "a.1.1"))
        each.run(str(MONDAY))
    assert len({mail["Message-ID"] for each in (harvester, other) for mail in digests(each)}) == 2
    other.close()


def test_the_administrator_hears_only_of_what_needs_attention_if_they_wish(
    harvester: Harvester, server: HttpServer
) -> None:
    set_reports(harvester, 'admin_notify = "attention"')
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-16")
    assert days_told(harvester, "steward") == []
    harvester.run("2026-11-17")
    server.serve("/list.xml", b"<broken")
    harvester.run("2026-11-18")
    assert days_told(harvester, "steward") == ["2026-11-18"]


def digests(harvester: Harvester) -> list[EmailMessage]:
    return sorted(
        (mail for mail in harvester.mails() if "the week" in mail["Subject"]), key=lambda mail: mail["Subject"][-11:]
    )


def test_the_digest_tells_of_the_weeks_once_on_its_day(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("elm", publish(server, "a.1.1", "a.2.1"))
    harvester.add_site("fir", publish(server, "b.1.1", path="/b.xml"), unit="weeks")
    server.serve("/a.1.1.xml", BAD)
    harvester.run(str(MONDAY - timedelta(days=8)))
    harvester.run(str(MONDAY - timedelta(days=1)))
    set_reports(harvester, 'digest = "monday"')
    harvester.run(str(MONDAY))
    harvester.run(str(MONDAY), "--force")
    harvester.run(str(MONDAY + timedelta(days=1)))
    [digest] = digests(harvester)
    assert digest["Subject"] == "[Test network] the week: 0 new or updated, 1 site failing (2026-11-16)"
    text = " ".join(text_of(digest).split())
    assert "elm ······█·" in text
    assert "elm: since 2026-11-08, 9 nights, 1 document" in text
    page = digest.get_body(("html",))
    assert page is not None
    assert "Sites, week by week" in page.get_content()


def test_the_digest_goes_out_with_the_first_run_after_its_day(harvester: Harvester, server: HttpServer) -> None:
    set_reports(harvester, 'digest = "monday"')
    harvester.add_site("elm", publish(server, "a.1.1"))
    for number in (0, 1, 9, 10, 13, 14):
        harvester.run(str(MONDAY + timedelta(days=number)))
    assert [mail["Subject"][-11:-1] for mail in digests(harvester)] == ["2026-11-16", "2026-11-25", "2026-11-30"]


def test_the_digest_tells_a_dead_site_from_a_quiet_one(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("dead", publish(server, "a.1.1"))
    harvester.add_site("off", publish(server, "b.1.1", path="/b.xml"))
    gone = ("c.2.1", server.url("/gone.xml"))
    harvester.add_site("weekly", publish(server, "c.1.1", path="/c.xml", also=[gone]), unit="weeks")
    server.serve("/c.1.1.xml", b"busy", status=503)
    server.serve("/list.xml", b"gone", status=404)
    for number in range(1, 7):
        harvester.run(str(MONDAY - timedelta(days=7 - number)))
    assert harvester("sites", "disable", "off").code == 0
    server.serve("/c.1.1.xml", eml("c.1.1"))
    set_reports(harvester, 'digest = "monday"')
    harvester.run(str(MONDAY))
    [digest] = digests(harvester)
    text = " ".join(text_of(digest).split())
    assert "2 sites had 8 harvests in the last seven days; 7 of them failed." in text
    # Harvests, those that failed, documents that came in (by a retry, too), documents with errors.
    assert "dead ·······× 7 7 0 0" in text
    assert "weekly ·······█ 1 0 1 2" in text
    assert "off" not in text.split()
    page = digest.get_body(("html",))
    assert page is not None
    dead = page.get_content().partition(">dead<")[2].partition("</table>")[0]
    assert "7 harvests<" in dead
    assert ", 7 of them failed<" in dead
    assert BAD_BAR in dead
