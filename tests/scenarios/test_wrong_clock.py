"""A wrong clock or a mistyped date purges nothing, and one command repairs the dates."""

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Self

import pytest

from metaharvest.database import clock
from metaharvest.harvest.run import RunRequest
from metaharvest.monitoring import database_checks
from metaharvest.services import harvester as services
from support.databases import KINDS, on_one_database
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.mails import words_of

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def night(harvester: Harvester, moment: datetime) -> int:
    """A run whose clock shows this moment. Returns its number."""
    with harvester.opened(clock=lambda: moment) as opened:
        return opened.run(RunRequest(opened.today())).run_id


def number_of_rows(harvester: Harvester, run_id: int) -> tuple[int, int]:
    """The log rows and the reports of a run."""
    [(rows,)] = harvester.rows("SELECT count(*) FROM harvest_log WHERE run_id = ?", run_id)
    [(reports,)] = harvester.rows("SELECT count(*) FROM report_outbox WHERE run_id = ?", run_id)
    return rows, reports


@on_one_database
def test_old_log_rows_and_reports_are_purged_after_the_log_period(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    first = night(harvester, NOON)
    for days in (30, 60, 90):
        night(harvester, NOON + timedelta(days=days))
    assert all(number_of_rows(harvester, first))
    last = night(harvester, NOON + timedelta(days=91))
    assert number_of_rows(harvester, first) == (0, 0)
    assert "LogPurged" in harvester.operations(last)
    assert set(harvester.held()) == {"a.1.1"}


@on_one_database
@pytest.mark.parametrize("years", [1, 73])
def test_a_run_by_a_clock_far_ahead_purges_nothing_and_says_so(
    harvester: Harvester, server: HttpServer, years: int
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    before = [night(harvester, NOON), night(harvester, NOON + timedelta(days=1))]
    rows = [number_of_rows(harvester, run_id) for run_id in before]
    ahead = NOON.replace(year=NOON.year + years)
    for hours in (0, 3):
        wrong = night(harvester, ahead + timedelta(hours=hours))
        assert [number_of_rows(harvester, run_id) for run_id in before] == rows
        assert "LogNotPurged" in harvester.operations(wrong)
        assert (None, "warning", "harvest.clock") in harvester.findings(wrong)
    report = next(words_of(mail) for mail in harvester.mails() if f"run {wrong}," in words_of(mail).lower())
    assert f"The run {wrong} is of {ahead.date()}, and the run before it was on 2026-03-02" in report
    right = night(harvester, NOON + timedelta(days=2))
    assert "LogNotPurged" not in harvester.operations(right)


@on_one_database
def test_after_a_long_pause_the_runs_of_a_month_come_before_the_purge(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    first = night(harvester, NOON)
    night(harvester, NOON + timedelta(days=200))
    assert all(number_of_rows(harvester, first))
    for days in (201, 216, 231):
        later = night(harvester, NOON + timedelta(days=days))
        assert "LogNotPurged" not in harvester.operations(later)
        assert all(number_of_rows(harvester, first))
    night(harvester, NOON + timedelta(days=232))
    assert number_of_rows(harvester, first) == (0, 0)


@on_one_database
def test_after_a_long_pause_the_report_says_that_it_was_long_and_not_that_the_clock_is_wrong(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    night(harvester, NOON)
    night(harvester, NOON + timedelta(days=79))
    report = next(words_of(mail) for mail in harvester.mails() if "run 2," in words_of(mail).lower())
    assert "1 site names 1 document. The run before was long ago: see below." in report
    assert "79 days earlier. If the harvester was not started in between, all is well." in report


@on_one_database
def test_a_clock_that_is_wrong_on_several_days_purges_nothing(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    first = night(harvester, NOON)
    night(harvester, NOON + timedelta(days=1))
    for day in (1, 11, 12, 31):
        night(harvester, datetime(2099, 1, day, 12, 0, tzinfo=UTC))
        assert all(number_of_rows(harvester, first))


@on_one_database
def test_nothing_is_purged_under_date(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    first = harvester.run("2026-01-01")["run_id"]
    for day in ("2026-01-20", "2026-02-10", "2026-03-01", "2026-03-20", "2026-04-10"):
        run = harvester.run(day)["run_id"]
        assert not {"LogPurged", "LogNotPurged"} & set(harvester.operations(run))
    assert all(number_of_rows(harvester, first))


@on_one_database
def test_a_date_far_from_the_clock_needs_force_date(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    with harvester.opened() as opened:
        today = opened.today()
    for days in (8, -8, 366):
        day = str(today + timedelta(days=days))
        said = harvester("run", f"--date={day}")
        assert (said.code, said.out) == (2, "")
        assert f"{abs(days)} days from today, which is {today}" in said.err
        assert "--force-date" in said.err
        assert harvester("run", "--dry-run", f"--date={day}").code == 0
    assert harvester.rows("SELECT count(*) FROM harvest_run") == [(0,)]
    assert harvester("run", f"--date={today + timedelta(days=7)}").code == 0
    assert harvester("run", f"--date={today + timedelta(days=366)}", "--force-date").code == 0


def test_dates_in_the_future_are_a_problem_until_they_are_repaired(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("good", publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))]))
    harvester.add_site("bad", server.url("/no-list.xml"))
    night(harvester, datetime.now(UTC) - timedelta(days=1))
    night(harvester, datetime(2099, 1, 1, 12, 0, tzinfo=UTC))
    today = datetime.now(UTC).date()
    output = " ".join(harvester("doctor").out.split())
    assert "The dates of the last and next harvest are in the future: good." in output
    harvester("run", "--force")  # it harvests the sites, and the runs in the future are still there
    said = harvester("doctor")
    assert said.code == 1
    output = " ".join(said.out.split())
    assert "PROBLEM clock: Runs are dated in the future: 2 of 2099-01-01." in output
    assert "`metaharvest database repair-dates` moves all dates" in output
    said = harvester("database", "repair-dates")
    assert said.code == 0
    assert f"Moved to {today}" in said.out
    assert "clock" not in harvester("doctor").out.replace("the clock", "")
    assert harvester("database", "repair-dates").out.startswith("No date lies in the future")
    columns = {
        "harvest_run": ("harvest_date", "started_at", "ended_at"),
        "harvest_log": ("harvest_date", "logged_at"),
        "harvest_site_schedule": ("datelastharvest", "datenextharvest"),
        "harvest_document": ("failing_since", "next_attempt", "looked_at"),
        "site_problem": ("first_seen", "last_seen"),
    }
    for table, names in columns.items():
        for name in names:
            [(newest,)] = harvester.rows(f"SELECT max({name}) FROM {table}")
            assert newest is None or newest[:10] <= str(today + timedelta(days=1)), (table, name)


@on_one_database
def test_sites_are_due_once_their_dates_are_repaired(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.add_site("monthly", publish(server, "b.1.1", path="/b.xml"), unit="months")
    harvester.add_site("later", publish(server, "c.1.1", path="/c.xml"))
    now = datetime.now(UTC)
    night(harvester, now - timedelta(days=3))
    far = date(2098, 7, 1)
    harvester("sites", "edit", "later", "--next", str(far))
    night(harvester, datetime(2097, 1, 1, 12, 0, tzinfo=UTC))
    assert harvester("run", "--json").out.count('"site_name"') == 0
    assert harvester("database", "repair-dates").code == 0
    dates = dict(harvester.rows("SELECT name, datelastharvest FROM harvest_site_schedule"))
    assert dates == dict.fromkeys(("site", "monthly", "later"), str((now - timedelta(days=3)).date()))
    assert harvester("run", "--json").out.count('"site_name"') == 2
    [(kept,)] = harvester.rows("SELECT datenextharvest FROM harvest_site_schedule WHERE name = 'later'")
    assert kept == str(far)


@pytest.mark.parametrize("database", KINDS[1:], indirect=True)
@pytest.mark.parametrize("hours", [24, -24])
def test_commands_go_by_the_clock_of_the_database_and_not_by_the_clock_of_their_machine(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    class MachineClock(datetime):
        @classmethod
        def now(cls, zone: tzinfo | None = None) -> Self:
            return cls.fromtimestamp((datetime.now(zone) + timedelta(hours=hours)).timestamp(), zone)

    for module in (clock, services, database_checks):
        monkeypatch.setattr(module, "datetime", MachineClock)
    today = datetime.now(UTC).date()
    url = publish(server, "a.1.1")
    assert harvester("sites", "add", "alder", "--list-url", url, "--contact", "a@example.org").code == 0
    assert harvester.rows("SELECT datenextharvest FROM harvest_site_schedule") == [(str(today),)]
    assert harvester("run").code == 0
    [(day, began, ended)] = harvester.rows("SELECT harvest_date, started_at, ended_at FROM harvest_run")
    assert {day, began[:10], ended[:10]} <= {str(today), str(today + timedelta(days=1))}
    harvester.rows("UPDATE harvest_run SET status = 'running'")
    assert "has not written" not in harvester("runs", "now").out
    word = "ahead of" if hours > 0 else "behind"
    said = " ".join(harvester("doctor").out.split())
    assert f"WARNING clock of this machine: It is 1,440 minutes {word} the clock of the database" in said
