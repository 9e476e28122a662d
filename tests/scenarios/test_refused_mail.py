"""A mail server that refuses: everybody for some hours, which is its own fault, or one address among others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, timedelta

import pytest

from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.ports import free_port
from support.smtp_sink import SmtpSink

NIGHTS = ["2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26"]
REFUSALS = {
    "RCPT": "550 5.1.1 user unknown",
    "MAIL": "550 5.7.1 sender rejected",
    "DATA": "554 5.7.1 message refused",
    "too large": "552 5.3.4 message too large",
}


@pytest.fixture
def sink() -> Iterator[SmtpSink]:
    with SmtpSink() as sink:
        yield sink


def send_by_smtp(harvester: Harvester, port: int) -> None:
    text = re.sub(r"backend = .*\nhost = .*\nport = .*\n", "", harvester.config.read_text())
    smtp = f'backend = "smtp"\nhost = "127.0.0.1"\nport = {port}\n'
    harvester.config.write_text(text.replace("[mail]\n", f"[mail]\n{smtp}"))


def two_sites(harvester: Harvester, server: HttpServer, sink: SmtpSink) -> None:
    send_by_smtp(harvester, sink.port)
    harvester.add_site("elm", publish(server, "a.1.1", path="/a.xml"), contact_email="elm@example.org")
    harvester.add_site("fir", publish(server, "b.1.1", path="/b.xml"), contact_email="fir@example.org")


def states(harvester: Harvester) -> dict[str, int]:
    counted = harvester.rows("SELECT status, COUNT(*) FROM report_delivery GROUP BY status")
    return dict(counted)


def age(harvester: Harvester, days: int) -> None:
    """Make all mail older by some days, as if the nights had passed."""
    for table, key, column in (
        ("report_delivery", "delivery_id", "last_attempt_at"),
        ("report_outbox", "report_id", "created_at"),
    ):
        for number, moment in harvester.rows(f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL"):
            then = date.fromisoformat(moment[:10]) - timedelta(days=days)
            harvester.rows(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", f"{then}{moment[10:26]}", number)


def reports_check(harvester: Harvester) -> dict[str, str]:
    checks = json.loads(harvester("doctor", "--json").out)["checks"]
    [check] = [check for check in checks if check["check"] == "reports"]
    return dict(check)


@pytest.mark.parametrize("command", REFUSALS)
def test_a_server_that_refuses_everybody_loses_no_report(
    harvester: Harvester, server: HttpServer, sink: SmtpSink, command: str
) -> None:
    two_sites(harvester, server, sink)
    sink.refuses = {"DATA" if command == "too large" else command: REFUSALS[command]}
    run = harvester.run(NIGHTS[0])
    assert (run["exit_code"], run["undelivered"]) == (4, 3)
    assert states(harvester) == {"queued": 3}
    answer = harvester("reports", "deliver")
    assert (answer.code, answer.out) == (1, "0 sent, 3 waiting, 0 refused.\n")
    assert REFUSALS[command] in answer.err.replace(": ", " ")
    assert ("refused everybody (3 of the waiting deliveries)" in answer.err) == (command != "MAIL")
    check = reports_check(harvester)
    assert (check["state"], "`metaharvest reports deliver` tries again" in check["message"]) == ("PROBLEM", True)
    age(harvester, 1)
    sink.refuses = {}
    assert harvester.run(NIGHTS[1])["exit_code"] == 0
    assert states(harvester) == {"sent": 6}
    for address in ("elm@example.org", "fir@example.org", "steward@example.org"):
        assert len(sink.to(address)) == 2


@on_one_database
def test_one_report_alone_is_in_doubt_until_the_administrator_is_heard(
    harvester: Harvester, server: HttpServer, sink: SmtpSink
) -> None:
    send_by_smtp(harvester, sink.port)
    harvester.add_site("elm", publish(server, "a.1.1"), contact_email="elm@example.org")
    sink.refuses = {"RCPT": "550 5.1.1 user unknown"}
    harvester.run(NIGHTS[0])
    assert states(harvester) == {"queued": 2}
    # The same address, where the server accepts another one in the same run: the address is wrong.
    sink.refuses, sink.answers = {}, {"elm@example.org": "550 5.1.1 user unknown"}
    age(harvester, 1)
    run = harvester.run(NIGHTS[1])
    assert (run["exit_code"], run["undelivered"]) == (4, 2)
    assert states(harvester) == {"refused": 2, "sent": 2}


@on_one_database
def test_a_refused_address_is_final_whatever_the_order(
    harvester: Harvester, server: HttpServer, sink: SmtpSink
) -> None:
    two_sites(harvester, server, sink)
    sink.answers = {"elm@example.org": "550 5.1.1 user unknown"}
    harvester.run(NIGHTS[0])
    sink.answers = {"fir@example.org": "550 5.1.1 user unknown"}
    harvester.run(NIGHTS[1], "--site", "elm", "--site", "fir")
    refused = harvester.rows("SELECT recipient, attempts FROM report_delivery WHERE status = 'refused' ORDER BY 1")
    assert refused == [("elm@example.org", 1), ("fir@example.org", 1)]


@on_one_database
def test_a_relay_that_takes_only_its_own_addresses_keeps_the_reports_of_all_contacts(
    harvester: Harvester, server: HttpServer, sink: SmtpSink
) -> None:
    two_sites(harvester, server, sink)
    denied = "554 5.7.1 relay access denied"
    sink.answers = {"elm@example.org": denied, "fir@example.org": denied}
    harvester.run(NIGHTS[0])
    assert states(harvester) == {"queued": 2, "sent": 1}


@on_one_database
def test_a_server_that_refuses_everybody_for_days_is_given_up_and_all_is_sent_again_by_one_command(
    harvester: Harvester, server: HttpServer, sink: SmtpSink
) -> None:
    two_sites(harvester, server, sink)
    sink.refuses = {"RCPT": "550 5.1.1 user unknown"}
    for night in NIGHTS[:5]:
        harvester.run(night)
        age(harvester, 1)
    assert states(harvester) == {"refused": 3, "queued": 12}
    sink.refuses = {}
    assert harvester("reports", "deliver").code == 0
    answer = harvester("reports", "deliver")
    assert (answer.code, answer.out) == (0, "0 sent, 0 waiting, 0 refused.\n")
    assert "3 deliveries are refused and not tried any more: `metaharvest reports resend --state refused`" in answer.err
    check = reports_check(harvester)
    assert check["state"] == "PROBLEM"
    [since] = re.findall(r"reports resend --state refused --since (\S+)`", check["message"])
    assert harvester("reports", "resend", "--state", "refused", "--since", "2040-01-01").out == (
        "No report was refused.\n"
    )
    again = harvester("reports", "resend", "--state", "refused", "--since", since)
    assert (again.code, again.out) == (
        0,
        "3 deliveries of 3 reports to send again.\n3 sent, 0 waiting, 0 refused.\n",
    )
    assert states(harvester) == {"sent": 15}
    assert len({mail.message["Message-ID"] for mail in sink.messages}) == 15
    assert reports_check(harvester)["state"] == "OK"
    assert harvester("reports", "resend", "--state", "refused").out == "No report was refused.\n"


@on_one_database
def test_refused_reports_go_to_the_corrected_contact_and_never_twice(
    harvester: Harvester, server: HttpServer, sink: SmtpSink
) -> None:
    two_sites(harvester, server, sink)
    harvester("sites", "edit", "elm", "--contact", "gone@example.org", "--contact", "good@example.org")
    sink.answers = dict.fromkeys(("gone@example.org", "fir@example.org"), "550 5.1.1 user unknown")
    harvester.run(NIGHTS[0])
    check = reports_check(harvester)
    assert (check["state"], "2 recipients refused a report" in check["message"]) == ("WARNING", True)
    harvester("sites", "edit", "elm", "--contact", "right@example.org", "--contact", "good@example.org")
    [(number,)] = harvester.rows("SELECT report_id FROM report_delivery WHERE recipient = 'fir@example.org'")
    harvester("sites", "remove", "fir", "--yes")
    answer = harvester("reports", "resend", "--state", "refused")
    assert answer.out.startswith(f"Report {number} stays refused: nobody gets such reports now.")
    assert f"`metaharvest reports resend {number} --to ADDRESS`" in answer.out
    assert "1 delivery of 1 report to send again.\n1 sent, 0 waiting, 0 refused.\n" in answer.out
    assert [len(sink.to(f"{name}@example.org")) for name in ("right", "good", "gone")] == [1, 1, 0]
    # The program no longer reports a delivery that was given up.
    assert harvester("reports", "drop", str(number)).out == (
        "1 delivery was given up. The mail server had refused 1 of them.\n"
    )
    assert reports_check(harvester)["state"] == "OK"
    assert harvester("reports", "deliver").err == ""


@on_one_database
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Name the number of a report, or --state refused"),
        (("1", "--state", "refused"), "Name the number of a report, or --state refused"),
        (("--state", "refused", "--to", "a@example.org"), "--to goes with the number of a report"),
        (("1", "--since", "2026-11-20"), "--since goes with --state refused"),
    ],
)
def test_what_cannot_be_resent_is_said(harvester: Harvester, arguments: tuple[str, ...], sentence: str) -> None:
    answer = harvester("reports", "resend", *arguments)
    assert (answer.code, sentence in answer.err) == (2, True)


@on_one_database
def test_a_server_that_hangs_up_or_is_away_refuses_nobody(
    harvester: Harvester, server: HttpServer, sink: SmtpSink
) -> None:
    two_sites(harvester, server, sink)
    sink.refuses = {"RCPT": "421 4.3.2 shutting down"}
    harvester.run(NIGHTS[0])
    assert states(harvester) == {"queued": 3}
    send_by_smtp(harvester, free_port())
    age(harvester, 1)
    harvester.run(NIGHTS[1])
    assert states(harvester) == {"queued": 6}
