"""The watch that the harvester keeps on itself: what the administrator reads, and what the doctor tells monitoring."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event

from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import load
from metaharvest.database.engine import readers
from metaharvest.harvest.run import RunRequest
from metaharvest.reports.compose import admin_report
from support.databases import on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.journal_rows import NAMED
from support.mails import words_of
from support.smtp_sink import SmtpSink


def today() -> date:
    """It may be another day than at the start of the tests."""
    return datetime.now(UTC).date()


def night(before: int) -> str:
    """The day so many nights ago."""
    return str(today() - timedelta(days=before))


def doctor(harvester: Harvester) -> tuple[int, dict[str, tuple[str, str]]]:
    """The doctor's exit code, and the state and message of each check."""
    said = harvester("doctor", "--json")
    told = json.loads(said.out)
    checks = {check["check"]: (check["state"], check["message"]) for check in told["checks"]}
    assert (told["state"] == "PROBLEM") == (said.code == 1)
    return said.code, checks


def last_report(harvester: Harvester) -> str:
    """The words of the newest report to the administrator."""
    [(number,)] = harvester.rows("SELECT max(report_id) FROM report_outbox WHERE kind = 'admin'")
    return " ".join(harvester("reports", "show", str(number)).out.split())


def days_pass(harvester: Harvester, days: int) -> None:
    """Make every report and attempt so many days older."""
    for table, key, column in (
        ("report_outbox", "report_id", "created_at"),
        ("report_delivery", "delivery_id", "last_attempt_at"),
    ):
        rows = harvester.rows(f"SELECT {key}, {column} FROM {table} WHERE {column} IS NOT NULL")
        for number, moment in rows:
            then = datetime.fromisoformat(moment).replace(tzinfo=None) - timedelta(days=days)
            harvester.rows(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", then.isoformat(" "), number)


@on_one_database
def test_a_list_that_fails_every_night_is_told_as_overdue_from_the_third_night_on(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("good", publish(server, "b.1.1", path="/good.xml"))
    url = publish(server, "a.1.1")
    harvester.add_site("bad", url, datenextharvest=today() - timedelta(days=3))
    server.serve("/list.xml", b"gone", status=404)
    for before in (3, 2):
        harvester.run(night(before))
        assert "overdue" not in last_report(harvester)
    harvester.run(night(1))
    harvester.run(night(0))
    told = last_report(harvester)
    assert "1 site is overdue" in told
    assert f"bad has been due since {night(3)}; the last 4 runs that tried could not harvest it." in told
    assert "good has been due" not in told
    code, checks = doctor(harvester)
    assert code == 1
    assert checks["sites"][0] == "PROBLEM"
    assert f"bad has been due since {night(3)}; the last 4 runs" in checks["sites"][1]
    publish(server, "a.1.1")
    harvester.run(night(0))
    assert "overdue" not in last_report(harvester)
    assert doctor(harvester)[1]["sites"][0] == "OK"


@on_one_database
def test_a_site_that_was_never_harvested_is_overdue_too(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("new", server.url("/no-list.xml"))
    for before in (2, 1):
        harvester.run(night(before))
        assert "overdue" not in last_report(harvester)
    harvester.run(night(0))
    assert f"new has been due since {night(2)}; the last 3 runs that tried" in last_report(harvester)
    assert doctor(harvester)[0] == 1
    harvester("sites", "disable", "new")
    assert doctor(harvester)[1]["sites"][0] == "OK"


@on_one_database
def test_a_site_that_no_run_takes_up_is_overdue(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("named", publish(server, "a.1.1"))
    harvester.add_site("left", server.url("/other.xml"), datenextharvest=today() - timedelta(days=9))
    harvester.run(night(0), "--site", "named")
    assert f"left has been due since {night(9)}, and no run has harvested it." in last_report(harvester)
    code, checks = doctor(harvester)
    assert (code, checks["sites"][0]) == (1, "PROBLEM")


def test_a_run_that_never_ended_is_a_problem_until_the_next_one_tells_the_administrator(harvester: Harvester) -> None:
    harvester.run(night(1))
    harvester.rows("UPDATE harvest_run SET status = 'running', ended_at = NULL")
    code, checks = doctor(harvester)
    assert (code, checks["run lock"][0]) == (1, "PROBLEM")
    assert "never ended" in checks["run lock"][1]
    harvester.run(night(0))
    told = last_report(harvester)
    assert "Trouble of the run itself" in told
    assert "never ended" in told
    assert doctor(harvester)[0] == 0


@on_one_database
def test_a_schedule_that_nobody_keeps_is_a_problem(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run(night(2))
    code, checks = doctor(harvester)
    assert (code, checks["schedule"][0]) == (1, "PROBLEM")
    harvester.run(night(1))
    assert "schedule" not in doctor(harvester)[1]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_an_outbox_that_does_not_empty_is_told_in_the_report_and_by_the_doctor(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    with SmtpSink() as sink:
        smtp = f'backend = "smtp"\nhost = "127.0.0.1"\nport = {sink.port}\n'
        harvester.config.write_text(harvester.config.read_text().replace("[mail]\n", f"[mail]\n{smtp}"))
        sink.answers["site@example.org"] = "450 4.2.1 mailbox busy"
        harvester.run(night(3))
        days_pass(harvester, 3)
        run = harvester.run(night(0))
        assert run["exit_code"] == 4
        told = words_of(sink.to("steward@example.org")[-1])
        assert "The outbox does not empty: 1 delivery has waited for more than two days" in told
        assert f"since {night(3)}" in told
        assert "site@example.org (waiting, written" in told
        code, checks = doctor(harvester)
        assert (code, checks["reports"][0]) == (1, "PROBLEM")
        assert night(3) in checks["reports"][1]
        sink.answers.clear()
        assert harvester("reports", "deliver").code == 0
        assert doctor(harvester)[1]["reports"][0] == "OK"
        assert len(sink.to("site@example.org")) == 2


def test_reports_that_no_run_has_tried_to_deliver_are_a_problem_after_two_days(harvester: Harvester) -> None:
    harvester.run(night(0))
    harvester.rows("UPDATE report_delivery SET status = 'queued', attempts = 0, last_attempt_at = NULL")
    code, checks = doctor(harvester)
    assert (code, checks["reports"][0]) == (0, "WARNING")
    days_pass(harvester, 3)
    code, checks = doctor(harvester)
    assert (code, checks["reports"][0]) == (1, "PROBLEM")
    assert "does not empty" in checks["reports"][1]


@pytest.fixture
def few_parameters() -> Iterator[None]:
    """As in SQLite's own build, where a statement takes no more than 32,766 parameters; only fewer."""

    def limit(connection: Any, _record: object) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 2000)

    event.listen(Engine, "connect", limit)
    yield
    event.remove(Engine, "connect", limit)


@pytest.mark.usefixtures("few_parameters")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("next_day", [None, "2026-11-09"])
def test_more_sites_than_a_statement_takes_parameters_are_told_of(
    harvester: Harvester, server: HttpServer, next_day: str | None
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-10")
    harvester.run("2026-11-20")
    names = "name, documentlisturl, contact_email, updatefrequency, unit, source_kind, notify, enabled"
    many = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) "
    harvester.rows(
        f"INSERT INTO harvest_site_schedule ({names}, datenextharvest) {many}"
        f"SELECT {names.replace('name,', 'name || i,')}, ? FROM harvest_site_schedule, n",
        next_day,
    )
    columns = [row[1] for row in harvester.rows("PRAGMA table_info(harvest_site_run)")]
    others = ", ".join(column for column in columns if column not in ("site_run_id", "site_schedule_id"))
    harvester.rows(
        f"INSERT INTO harvest_site_run (site_schedule_id, {others}) {many}"
        f"SELECT i + 1, {others} FROM harvest_site_run, n"
    )
    harvester.rows("UPDATE harvest_site_run SET status = 'failed' WHERE site_schedule_id > 1 AND run_id = 1")
    with readers(harvester.engine)() as session:
        report = admin_report(session, 2, ReportContext(load(harvester.config, {}), NAMED, datetime.now(UTC)))
    text = " ".join(report.text.split())
    assert "2,501 sites name" in text
    assert "2,500 sites are overdue" in text


FAR = datetime(2099, 5, 5, 1, 0, tzinfo=UTC)


def run_by_a_clock_that_is_far_ahead(harvester: Harvester) -> None:
    with harvester.opened(clock=lambda: FAR) as opened:
        opened.run(RunRequest(FAR.date()))


def test_the_clock_beside_another_problem_is_one_sentence(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("daily", publish(server, "a.1.1"))
    run_by_a_clock_that_is_far_ahead(harvester)
    harvester.add_site("gone", server.url("/gone.xml"))
    harvester.run(night(0))
    assert "1 site failed as a whole and the clock is or was wrong: see below." in last_report(harvester)


def test_what_a_run_by_a_clock_far_ahead_leaves_is_reported_and_repaired_by_one_command(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("daily", publish(server, "a.1.1"))
    harvester.add_site("monthly", publish(server, "b.1.1", path="/other.xml"), unit="months")
    harvester.add_site("off", publish(server, "c.1.1", path="/off.xml"), enabled=False)
    harvester.run(night(1))
    assert "clock" not in doctor(harvester)[1]
    run_by_a_clock_that_is_far_ahead(harvester)
    code, checks = doctor(harvester)
    assert (code, checks["clock"][0]) == (1, "PROBLEM")
    output = " ".join(harvester("doctor").out.split())
    assert "Runs are dated in the future: 2 of 2099-05-05." in output
    assert "last and next harvest are in the future: daily, monthly. They are not harvested." in output
    run = harvester.run(night(0))
    assert (run["sites"], run["status"]) == ([], "succeeded")
    report = last_report(harvester)
    assert "The clock was wrong, or is: see below." in report
    assert "Runs are dated in the future: 2 of 2099-05-05." in report
    assert "in the future: daily, monthly." in report
    assert "`metaharvest database repair-dates` moves all dates" in report
    assert harvester("database", "repair-dates").code == 0
    assert harvester("run").code == 0
    dates = harvester.rows("SELECT name, datelastharvest FROM harvest_site_schedule WHERE enabled ORDER BY name")
    assert dates == [("daily", str(today())), ("monthly", str(today()))]
    assert harvester.rows("SELECT datenextharvest FROM harvest_site_schedule WHERE name = 'daily'") == [
        (str(today() + timedelta(days=1)),)
    ]
    code, checks = doctor(harvester)
    assert (code, "clock" in checks) == (0, False)
    assert "clock" not in last_report(harvester)


@on_one_database
def test_one_site_alone_can_be_repaired_by_its_next_date(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("daily", publish(server, "a.1.1"))
    run_by_a_clock_that_is_far_ahead(harvester)
    assert "in the future: daily." in doctor(harvester)[1]["clock"][1]
    assert harvester("sites", "edit", "daily", "--next", str(today())).code == 0
    assert "in the future: daily." not in harvester("doctor").out
    assert [site["status"] for site in harvester.run(str(today()))["sites"]] == ["succeeded"]
    assert harvester("database", "repair-dates").code == 0
    assert doctor(harvester)[0] == 0


def test_a_run_by_a_clock_far_ahead_does_not_silence_the_alarm(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("daily", publish(server, "a.1.1"))
    run_by_a_clock_that_is_far_ahead(harvester)
    harvester.run(night(9))
    harvester.rows("UPDATE harvest_site_schedule SET datenextharvest = ?", night(8))
    assert f"The last run was on {night(9)}" in doctor(harvester)[1]["schedule"][1]


@on_one_database
@pytest.mark.parametrize(
    ("unit", "days", "is_told"),
    [("days", 1, False), ("days", 3, True), ("weeks", 7, False), ("weeks", 40, True), ("months", 27, False)],
)
def test_a_next_date_beyond_the_frequency_is_told(harvester: Harvester, unit: str, days: int, is_told: bool) -> None:
    day = str(today() + timedelta(days=days))
    harvester.add_site("site", "https://example.org/list.xml", unit=unit)
    assert harvester("sites", "edit", "site", "--next", day).code == 0
    words = f"than the frequency would have it: site ({day})."
    told = [line for line in harvester("doctor").out.splitlines() if words in line]
    assert bool(told) == is_told
    if told:
        assert told[0].startswith("WARNING")
        assert told[0].endswith(f"`metaharvest sites edit NAME --next {today()}`")
