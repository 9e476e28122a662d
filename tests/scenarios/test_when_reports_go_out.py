"""When reports go out: reminders of what stays broken, the administrator's where something needs it, the digest."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from support.harvester import SETTINGS, Harvester, eml, publish
from support.http_server import HttpServer
from support.mails import text_of

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


def test_no_reminder_is_sent_where_none_is_wanted(harvester: Harvester, server: HttpServer) -> None:
    set_reports(harvester, "remind_days = 0")
    harvester.add_site("site", publish(server, "a.1.1"), notify="on-change")
    server.serve("/a.1.1.xml", BAD)
    for number in range(9):
        harvester.run(str(MONDAY + timedelta(days=number)))
    assert days_told(harvester, "site") == ["2026-11-16"]


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


def test_the_digest_tells_of_the_weeks_once_on_its_day(harvester: Harvester, server: HttpServer) -> None:
    set_reports(harvester, 'digest = "monday"')
    harvester.add_site("elm", publish(server, "a.1.1", "a.2.1"))
    harvester.add_site("fir", publish(server, "b.1.1", path="/b.xml"), unit="weeks")
    server.serve("/a.1.1.xml", BAD)
    harvester.run(str(MONDAY - timedelta(days=8)))
    harvester.run(str(MONDAY - timedelta(days=1)))
    assert not [mail for mail in harvester.mails() if "the week" in mail["Subject"]]
    harvester.run(str(MONDAY))
    harvester.run(str(MONDAY), "--force")
    [digest] = [mail for mail in harvester.mails() if "the week" in mail["Subject"]]
    assert digest["Subject"] == "[Test network] the week: 0 new or updated, 1 site failing (2026-11-16)"
    text = " ".join(text_of(digest).split())
    assert "elm ······█·" in text
    assert "elm: since 2026-11-08, 3 harvests, 1 document" in text
    page = digest.get_body(("html",))
    assert page is not None
    assert "Sites, week by week" in page.get_content()
