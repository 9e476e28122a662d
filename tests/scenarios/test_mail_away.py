"""The mail server, or the mail folder, away for nights: every report arrives in the end, once, and somebody is told."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from metaharvest.harvest.run import RunRequest
from support.databases import on_one_database
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer
from support.mails import words_of
from support.ports import free_port
from support.smtp_sink import SmtpSink

NIGHTS = ("2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23")


def send_by_smtp(harvester: Harvester, port: int) -> None:
    text = re.sub(r"backend = .*\nhost = .*\nport = .*\n", "", harvester.config.read_text())
    smtp = f'backend = "smtp"\nhost = "127.0.0.1"\nport = {port}\n'
    harvester.config.write_text(text.replace("[mail]\n", f"[mail]\n{smtp}"))


def night_passes(harvester: Harvester, hours: float = 24) -> None:
    """Make the last attempts to deliver so many hours older."""
    sql = "SELECT delivery_id, last_attempt_at FROM report_delivery WHERE last_attempt_at IS NOT NULL"
    for number, moment in harvester.rows(sql):
        then = datetime.fromisoformat(moment).replace(tzinfo=None) - timedelta(hours=hours)
        statement = "UPDATE report_delivery SET last_attempt_at = ? WHERE delivery_id = ?"
        harvester.rows(statement, then.isoformat(" "), number)


def three_nights(harvester: Harvester, server: HttpServer) -> None:
    """A site with two contacts, and three nights on which no mail leaves; each brings a new document."""
    docids = []
    for number, day in enumerate(NIGHTS[:3], 1):
        docids.append(f"a.{number}.1")
        url = publish(server, *docids)
        if number == 1:
            harvester.add_site("site", url, contact_email="a@example.org, b@example.org")
        run = harvester.run(day)
        assert (run["exit_code"], run["status"]) == (4, "succeeded")
        assert run["undelivered"] == 3 * number
        night_passes(harvester)


def attempts(harvester: Harvester) -> list[int]:
    return [number for (number,) in harvester.rows("SELECT attempts FROM report_delivery ORDER BY delivery_id")]


def test_a_mail_server_that_is_away_for_three_nights_gets_all_reports_on_the_fourth(
    harvester: Harvester, server: HttpServer
) -> None:
    port = free_port()
    send_by_smtp(harvester, port)
    three_nights(harvester, server)
    assert attempts(harvester) == [3, 3, 3, 2, 2, 2, 1, 1, 1]
    stored = Counter(harvester.rows("SELECT message_id FROM report_outbox"))
    with SmtpSink(port) as sink:
        assert harvester.run(NIGHTS[3])["exit_code"] == 0
        got = Counter((mail.recipients[0], mail.message["Subject"]) for mail in sink.messages)
        assert set(got.values()) == {1}
        for recipient in ("a@example.org", "b@example.org"):
            days = [mail["Subject"].rpartition("(")[2] for mail in sink.to(recipient)]
            assert days == [f"{day})" for day in NIGHTS]
        assert len(sink.to("steward@example.org")) == 4
        sent_ids = Counter((mail.message["Message-ID"],) for mail in sink.messages)
        assert set(stored) <= set(sent_ids)
        assert harvester.run(NIGHTS[3])["exit_code"] == 0
        assert len([mail for mail in sink.messages if mail.message["Message-ID"] in {key for (key,) in stored}]) == 9


@on_one_database
def test_mail_that_waits_has_the_day_of_its_report(harvester: Harvester, server: HttpServer) -> None:
    """In Auckland, 04:30 is in the day before of UTC."""
    send_by_smtp(harvester, free_port())
    text = harvester.config.read_text().replace("[harvester]\n", '[harvester]\ntime_zone = "Pacific/Auckland"\n')
    harvester.config.write_text(text)
    harvester.add_site("site", publish(server, "a.1.1"))
    for day in (19, 20, 22):
        moment = datetime(2026, 11, day, 15, 30, tzinfo=UTC)
        with harvester.opened(clock=lambda now=moment: now) as opened:
            opened.run(RunRequest(opened.today()))
    report = " ".join(harvester("reports", "show", "6").out.split())
    assert "site@example.org (waiting, written 2026-11-20, 3 attempts)" in report
    assert "deliveries have waited for more than two days, the first since 2026-11-20." in report
    assert "deliveries could not be made so far, the first since 2026-11-20:" in harvester("doctor").out


@pytest.mark.quick
@on_one_database
def test_a_maildir_that_is_away_for_three_nights_has_each_report_once(harvester: Harvester, server: HttpServer) -> None:
    (harvester.folder / "mail").write_text("a file where the folder should be")
    three_nights(harvester, server)
    (harvester.folder / "mail").unlink()
    assert harvester.run(NIGHTS[3])["exit_code"] == 0
    subjects = Counter(harvester.subjects())
    assert set(subjects.values()) == {1}
    assert len(subjects) == 8
    harvester.rows("UPDATE report_delivery SET status = 'queued', attempts = 0, last_attempt_at = NULL")
    assert harvester("reports", "deliver").code == 0
    assert Counter(harvester.subjects()) == subjects


@on_one_database
def test_hourly_runs_knock_less_and_less_often_and_the_first_of_a_day_always_does(
    harvester: Harvester, server: HttpServer
) -> None:
    port = free_port()
    send_by_smtp(harvester, port)
    harvester.add_site("site", publish(server, "a.1.1"), notify="always")
    harvester.run(NIGHTS[0], "--site", "site")
    assert attempts(harvester) == [1, 1]
    seen = []
    for _ in range(16):
        night_passes(harvester, 1)
        harvester("run", "--date", NIGHTS[0])
        seen.append(attempts(harvester)[0])
    assert seen == [2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 6]
    harvester("run", "--date", NIGHTS[1])
    assert attempts(harvester)[0] == 7
    harvester("run", "--date", NIGHTS[1])
    assert attempts(harvester)[0] == 7
    assert harvester("reports", "deliver").code == 1
    assert attempts(harvester)[0] == 8


def test_a_refused_recipient_stops_nobody_and_is_shown_everywhere(harvester: Harvester, server: HttpServer) -> None:
    with SmtpSink() as sink:
        send_by_smtp(harvester, sink.port)
        sink.answers["gone@example.org"] = "550 5.1.1 no such user here"
        contacts = "first@example.org, gone@example.org, last@example.org"
        harvester.add_site("site", publish(server, "a.1.1"), contact_email=contacts)
        run = harvester.run(NIGHTS[0])
        assert (run["exit_code"], run["undelivered"]) == (4, 1)
        assert {mail.recipients[0] for mail in sink.messages} == {
            "first@example.org",
            "last@example.org",
            "steward@example.org",
        }
        told = words_of(sink.to("steward@example.org")[0])
        assert "Mail that did not arrive" in told
        assert "gone@example.org (refused" in told
        assert "no such user here" in told

        [report] = json.loads(harvester("reports", "--undelivered", "--json").out)
        states = {each["recipient"]: each["status"] for each in report["deliveries"]}
        assert states == {"first@example.org": "sent", "gone@example.org": "refused", "last@example.org": "sent"}
        checks = json.loads(harvester("doctor", "--json").out)["checks"]
        [check] = [check for check in checks if check["check"] == "reports"]
        assert (check["state"], "refused" in check["message"]) == ("WARNING", True)

        night_passes(harvester)
        harvester.run(NIGHTS[1])
        assert len(sink.to("first@example.org")) == 2
        assert harvester.rows("SELECT status, attempts FROM report_delivery WHERE recipient = 'gone@example.org'") == [
            ("refused", 1),
            ("refused", 1),
        ]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_crash_at_the_moment_of_acceptance_repeats_one_message_under_its_message_id(
    harvester: Harvester, server: HttpServer
) -> None:
    server.serve("/a.1.1.xml", eml("a.1.1"))
    with SmtpSink() as sink:
        send_by_smtp(harvester, sink.port)
        harvester.add_site("site", publish(server, "a.1.1"))
        harvester.rows(
            "CREATE TRIGGER lost BEFORE UPDATE OF status ON report_delivery WHEN NEW.status = 'sent' "
            "BEGIN SELECT RAISE(ABORT, 'lost after the mail server said 250'); END"
        )
        assert harvester("run", "--date", NIGHTS[0]).code == 69
        harvester.rows("DROP TRIGGER lost")
        harvester.run(NIGHTS[0])
        first, again = sink.to("site@example.org")
        assert first["Message-ID"] == again["Message-ID"]
        assert first.as_bytes() == again.as_bytes()


@on_one_database
def test_an_address_that_is_no_contact_any_more_is_not_tried_again(harvester: Harvester, server: HttpServer) -> None:
    with SmtpSink() as sink:
        send_by_smtp(harvester, sink.port)
        sink.answers = {"busy@example.org": "451 4.3.0 later", "gone@example.org": "550 5.1.1 no such user"}
        contacts = "busy@example.org, gone@example.org, good@example.org"
        harvester.add_site("elm", publish(server, "a.1.1"), contact_email=contacts)
        assert harvester.run(NIGHTS[0])["exit_code"] == 4
        harvester("sites", "edit", "elm", "--contact", "new@example.org, good@example.org")
        night_passes(harvester)
        assert harvester.run(NIGHTS[1])["exit_code"] == 0
        assert len(sink.to("new@example.org")) == 1
    listed = json.loads(harvester("reports", "--undelivered", "--json").out)
    states = {each["recipient"]: each for report in listed for each in report["deliveries"]}
    assert {name: states[name]["status"] for name in states if name != "good@example.org"} == {
        "busy@example.org": "refused",
        "gone@example.org": "refused",
    }
    for name, answer in (("busy@example.org", "451"), ("gone@example.org", "550")):
        told = states[name]["last_error"]
        assert told.startswith("This address gets these reports no longer, so it is not tried again. The last answer: ")
        assert answer in told
    assert "None waits to be delivered." in harvester("doctor").out
    # Sent again, it goes to those who get such reports now.
    again = harvester("reports", "resend", str(listed[0]["report_id"]))
    for name in ("busy@example.org", "gone@example.org"):
        assert f"{name} no longer gets these reports. --to sends this one anyway" in again.out


@on_one_database
def test_a_mistake_in_one_contact_costs_the_others_no_mail(harvester: Harvester, server: HttpServer) -> None:
    port = free_port()
    send_by_smtp(harvester, port)
    harvester.add_site("elm", publish(server, "a.1.1"), contact_email="one@example.org, two@example.org")
    harvester.run(NIGHTS[0])
    broken = "one@example.org two@example.org, three@example.org"
    harvester.rows("UPDATE harvest_site_schedule SET contact_email = ?", broken)
    with SmtpSink(port=port) as sink:
        harvester("reports", "deliver")
        assert (len(sink.to("one@example.org")), len(sink.to("two@example.org"))) == (1, 1)


def test_what_a_removed_site_is_owed_and_what_an_administrator_is_no_longer(
    harvester: Harvester, server: HttpServer
) -> None:
    port = free_port()
    send_by_smtp(harvester, port)
    harvester.add_site("elm", publish(server, "a.1.1"))
    harvester.run(NIGHTS[0])
    harvester("sites", "remove", "elm", "--yes")
    text = harvester.config.read_text()
    harvester.config.write_text(text.replace("steward@example.org", "successor@example.org"))
    with SmtpSink(port) as sink:
        assert harvester("reports", "deliver").out == (
            "1 sent, 0 waiting, 0 refused.\nNot tried any more, as their recipients get these reports no longer: 1.\n"
        )
        assert [mail.recipients for mail in sink.messages] == [("elm@example.org",)]


def test_deliver_tells_no_old_refusal_as_a_reason_of_now(harvester: Harvester, server: HttpServer) -> None:
    with SmtpSink() as sink:
        send_by_smtp(harvester, sink.port)
        sink.answers = {"gone@example.org": "550 5.1.1 no such user", "busy@example.org": "451 4.3.0 later"}
        harvester.add_site("elm", publish(server, "a.1.1"), contact_email="gone@example.org, busy@example.org")
        harvester.run(NIGHTS[0])
        told = harvester("reports", "deliver")
        assert (told.code, told.out) == (1, "0 sent, 1 waiting, 0 refused.\n")
        assert "451" in told.err
        assert "550" not in told.err
        again = harvester("reports", "resend", "1")
        assert (again.out, "550" in again.err) == ("0 sent, 1 waiting, 1 refused.\n", True)
