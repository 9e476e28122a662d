"""Outbox, decisions and installation: the pages, and the changes that their buttons make."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from metaharvest.database.engine import writers
from metaharvest.database.models import ReportOutbox
from metaharvest.mail import outbox
from support.console import Served, served_console
from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.smtp_sink import SmtpSink

DAY = "2026-11-20"
MALICE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>'

pytestmark = on_one_database


@pytest.fixture
def console(harvester: Harvester) -> Iterator[Served]:
    with served_console(harvester) as made:
        yield made


@pytest.fixture
def harvested(harvester: Harvester, server: HttpServer) -> Harvester:
    harvester.add_site("elm", publish(server, "a.1.1"))
    harvester.run(DAY)
    return harvester


def refuse(harvester: Harvester, recipient: str) -> None:
    with writers(harvester.engine).begin() as session:
        session.connection().exec_driver_sql(
            "UPDATE report_delivery SET status = 'refused', last_error = '550 no such mailbox'"
            f" WHERE recipient = '{recipient}'"
        )


def test_the_outbox_shows_recipients_and_the_state_of_each_delivery(console: Served, harvested: Harvester) -> None:
    refuse(harvested, "elm@example.org")
    viewer = console.signed_in("viewer")
    page = viewer.open("/console/outbox")
    rows = page.table("Mails, the newest first")
    assert [row[2] for row in rows] == ["to the administrators", "to the contacts of a site"]
    assert "refused elm@example.org, since" in rows[1][1]
    assert "550 no such mailbox" in rows[1][1]
    assert "sent steward@example.org" in rows[0][1]
    assert len(viewer.open("/console/outbox?state=refused").table()) == 1
    assert len(viewer.open("/console/outbox?site=elm&kind=site&recipient=ELM@example.org").table()) == 1
    assert "There is no such mail." in viewer.open("/console/outbox?recipient=nobody@example.org").text
    page = viewer.open("/console/outbox?site=oak")
    assert page.status == 422
    assert "oak" in page.text
    mail = viewer.open("/console/outbox").follow(rows[1][0])
    assert "[Test network] elm" in mail.title
    assert "Send again" not in mail.text


def test_the_html_of_a_mail_is_shown_without_scripts_and_loads(console: Served, harvested: Harvester) -> None:
    viewer = console.signed_in("viewer")
    page = viewer.open("/console/outbox/1/html")
    policy = page.headers["Content-Security-Policy"]
    assert policy.startswith("sandbox; default-src 'none'")
    assert "script" not in policy
    assert "http" not in policy
    assert "<html" in page.content.decode()
    raw = viewer.open("/console/outbox/1/eml")
    assert raw.headers["Content-Disposition"] == 'attachment; filename="report-1.eml"'
    assert raw.content.startswith(b"Subject: ")
    assert viewer.open("/console/outbox/99").title == "There is no mail with the number 99."
    assert viewer.open("/console/outbox/x/html").status == 404


def test_a_mail_is_sent_again_and_dropped_with_a_reason(console: Served, harvested: Harvester) -> None:
    refuse(harvested, "elm@example.org")
    steward = console.signed_in("steward")
    page = steward.open("/console/outbox?site=elm").follow("elm: all well, 1 new (2026-11-20)")
    assert "It goes to the present recipients, under its old Message-ID: elm@example.org." in page.text
    page = page.submit("Send again", {"to": "oak@example.org"})
    assert "waits in the outbox again, for oak@example.org" in page.notice
    assert {row[0]: row[1].split()[-1] for row in page.table("Deliveries")} == {
        "elm@example.org": "refused",
        "oak@example.org": "waiting",
    }
    page = page.submit("Drop this mail", {"reason": "Both have left"})
    assert page.notice == "2 deliveries dropped."
    assert f"dropped by steward@example.org on {console.harvester.today()}: Both have left." in page.text
    [last, *_] = steward.open("/console/decisions").table()
    assert last[1:3] == ["steward@example.org (console)", "drop the report 1 Both have left"]
    assert "Drop this mail" not in page.text


def test_mails_that_were_refused_long_ago_can_be_sent_again(console: Served, harvested: Harvester) -> None:
    refuse(harvested, "elm@example.org")
    harvested.rows("UPDATE report_delivery SET last_attempt_at = '2020-01-01 00:00:00' WHERE status = 'refused'")
    page = console.signed_in("steward").open("/console/outbox")
    assert "refused a mail in the last seven days" not in page.text
    page = page.submit("Send refused mails again …")
    assert [row[1] for row in page.table("Refused mails")] == ["elm@example.org"]


def test_refused_mails_are_sent_again_after_a_question_and_delivered(console: Served, harvested: Harvester) -> None:
    refuse(harvested, "elm@example.org")
    steward = console.signed_in("steward")
    page = steward.open("/console/outbox").submit("Send refused mails again …")
    assert [row[1] for row in page.table("Refused mails")] == ["elm@example.org"]
    page = page.submit("Send all of them again")
    assert page.notice.startswith("1 delivery of 1 mail to send again.")
    page = page.submit("Deliver the waiting mails now")
    assert page.notice == "1 sent, 0 waiting, 0 refused."
    assert "No mail waits." in page.text


def test_a_slow_mail_server_holds_the_next_run_for_a_minute_only(
    harvested: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    harvested.rows("UPDATE report_delivery SET status = 'queued', attempts = 0")
    monkeypatch.setattr(outbox, "_AFTER_STOP", 0.0)
    with SmtpSink() as sink:
        text = harvested.config.read_text()
        smtp = f'[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = {sink.port}\n'
        harvested.config.write_text(text.replace("[mail]\n", smtp))
        with served_console(harvested) as console:
            page = console.signed_in("steward").open("/console/outbox").submit("Deliver the waiting mails now")
        assert page.notice == "1 sent, 1 waiting, 0 refused."
        assert len(sink.messages) == 1


def test_decisions_are_said_in_words(console: Served, harvested: Harvester) -> None:
    harvested("keys", "add", "portal", "--role", "viewer")
    harvested("keys", "revoke", "1")
    harvested("users", "add", "anna@example.org", "--role", "steward")
    shown = [row[2] for row in console.signed_in("viewer").open("/console/decisions").table()]
    assert {"make the key portal", "revoke the key portal"} <= set(shown)
    assert "add the user anna@example.org" in shown


def test_decisions_are_filtered_shown_before_and_after_and_downloaded(console: Served, harvested: Harvester) -> None:
    harvested("sites", "edit", "elm", "--every", "3", "--notify", "on-change")
    harvested("sites", "disable", "elm")
    viewer = console.signed_in("viewer")
    page = viewer.open("/console/decisions?site=elm")
    assert page.table()[0][2:] == ["switch off the site elm", "enabled", "yes", "no"]
    page = page.submit("Filter", {"action": "sites.edit", "site": "elm"})
    assert {row[-3] for row in page.table()} >= {"every"}
    assert viewer.open("/console/decisions?actor=nobody").text.count("There is no such decision.") == 1
    assert viewer.open("/console/decisions?since=2050-01-01").text.count("There is no such decision.") == 1
    assert len(viewer.open(f"/console/decisions?until={console.harvester.today()}").table()) >= 2
    wrong = viewer.open("/console/decisions?since=yesterday")
    assert (wrong.status, "'yesterday' is not a day" in wrong.text) == (422, True)
    assert wrong.root.get_element_by_id("field-since").get("aria-invalid") == "true"
    table = viewer.open("/console/decisions.csv?action=sites.disable")
    lines = table.content.decode("utf-8-sig").splitlines()
    assert lines[0].startswith("decision_id,at_utc" if "at_utc" in lines[0] else "decision_id,at")
    assert len(lines) == 2


def test_the_installation_masks_secrets_and_says_where_values_are_from(
    console: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = console.signed_in("operator")
    page = operator.open("/console/installation")
    settings = {row[0]: row[1:] for row in page.table("Settings")}
    assert settings["[harvester] name"] == ["Test network", "settings file"]
    assert settings["[harvester] workers"] == ["128", "default"]
    assert "Python" in page.text
    assert "MB" in page.text or "kB" in page.text
    page = page.follow("Make the checks")
    assert "settings" in {row[0] for row in page.table("Checks")}
    assert operator.open("/console/installation/checks").table("Checks")
    assert console.signed_in("steward").open("/console/installation").status == 403


def test_tonight_shows_the_problems_of_the_installation_to_operators(console: Served, harvester: Harvester) -> None:
    operator = console.signed_in("operator")
    [box] = operator.open("/console/tonight").root.xpath("//*[contains(@hx-get, 'checks')]")
    assert "found no problem" in operator.open(box.get("hx-get")).text
    with harvester.config.open("a") as file:
        file.write("[harvester]\n")
    problems = operator.open(box.get("hx-get"))
    assert "settings" in problems.root.find_class("bad")[0].text_content()
    assert console.signed_in("steward").open("/console/tonight").root.xpath("//*[contains(@hx-get, 'checks')]") == []


def test_tonight_shows_a_file_of_a_site_that_cannot_be_used_and_lists_a_broken_site_once(
    console: Served, harvester: Harvester
) -> None:
    harvester.add_site("alder", "http://127.0.0.1:9/list.xml")
    harvester.add_site("fern", "http://127.0.0.1:9/fern.xml")
    harvester.rows("UPDATE harvest_site_schedule SET options = ? WHERE name = 'alder'", '{"filters": "/nowhere.xml"}')
    harvester.rows("UPDATE harvest_site_schedule SET updatefrequency = 0 WHERE name = 'fern'")
    operator = console.signed_in("operator")
    problems = operator.open("/console/installation/checks?problems=yes").text
    assert "alder: " in problems
    assert "/nowhere.xml" in problems
    assert "updatefrequency" not in problems
    assert operator.open("/console/tonight").text.count("The registration of fern cannot be used") == 1


def test_texts_from_outside_are_text_in_the_outbox(console: Served, harvested: Harvester) -> None:
    with writers(harvested.engine).begin() as session:
        row = session.get(ReportOutbox, 1)
        assert row is not None
        row.subject = MALICE
        row.content = b"Subject: x\r\nContent-Type: text/plain\r\n\r\n" + MALICE.encode()
    viewer = console.signed_in("viewer")
    for path in ("/console/outbox", "/console/outbox/1"):
        page = viewer.open(path).content.decode()
        assert "<script>alert" not in page
        assert "<img" not in page
