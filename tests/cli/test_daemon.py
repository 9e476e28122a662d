"""`metaharvest daemon`: when it runs, and how it goes on and ends."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import threading
import time as clock
from datetime import UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import Self
from zoneinfo import ZoneInfo

import click
import pytest

from metaharvest.cli import daemon
from metaharvest.cli.invocation import Invocation
from metaharvest.config.settings import load
from metaharvest.database.engine import database_url, open_url, run_lock
from metaharvest.services.requests import next_at, next_time
from support.cli import attempt, initialize, process, tell
from support.fork_server import ForkedPopen
from support.harvester import Harvester, publish
from support.http_server import HttpServer

DAY = timedelta(days=1)
BERLIN = ZoneInfo("Europe/Berlin")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("2026-11-20 01:00", "2026-11-20 02:00"),
        ("2026-11-20 02:00", "2026-11-20 02:00"),
        ("2026-11-20 02:01", "2026-11-21 02:00"),
        ("2026-07-20 00:30", "2026-07-20 01:00"),
        ("2026-10-24 12:00", "2026-10-25 02:00"),
        ("2026-03-28 12:00", "2026-03-29 01:00"),
    ],
)
def test_a_time_of_day_is_meant_in_the_harvester_s_time_zone_summer_and_winter(after: str, expected: str) -> None:
    assert next_at(moment(after), [time(3, 0)], BERLIN) == moment(expected)


def test_a_time_that_a_clock_change_leaves_out_comes_all_the_same() -> None:
    assert next_at(moment("2026-03-28 12:00"), [time(2, 30)], BERLIN) == moment("2026-03-29 01:30")


def test_an_hour_that_clocks_show_twice_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is in Berlin, where it is 02:30 at 00:30 UTC, and again at 01:30 UTC."""
    slept = list[float]()

    class At0030(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(moment("2026-10-25 00:30").timestamp() + sum(slept), tz)

    def sleep(_event: threading.Event, seconds: float) -> bool:
        slept.append(seconds)
        return False

    monkeypatch.setenv("TZ", "Europe/Berlin")
    clock.tzset()
    monkeypatch.setattr(daemon, "datetime", At0030)
    monkeypatch.setattr(daemon._Plan, "_is_requested", lambda *_: False)
    monkeypatch.setattr(threading.Event, "wait", sleep)
    plan = daemon._Plan(Invocation(None), DAY, (), BERLIN)
    assert plan._wait(moment("2026-10-25 01:30"), None)
    monkeypatch.undo()
    clock.tzset()
    assert sum(slept) == 3600


@pytest.mark.parametrize(
    ("began", "now", "hours", "expected"),
    [
        ("2026-11-20 03:00", "2026-11-20 03:20", 24, "2026-11-21 03:00"),
        ("2026-11-20 03:00", "2026-11-20 03:20", 6, "2026-11-20 09:00"),
        ("2026-11-20 03:00", "2026-11-20 16:00", 6, "2026-11-20 21:00"),
    ],
)
def test_a_period_counts_from_the_start_of_a_run_and_missed_ones_are_left_out(
    began: str, now: str, hours: int, expected: str
) -> None:
    planned = next_time(moment(began), moment(now), timedelta(hours=hours), (), BERLIN)
    assert planned == moment(expected)


def test_with_a_time_of_day_the_next_run_is_so_many_days_later() -> None:
    began, now = moment("2026-11-20 02:00"), moment("2026-11-20 04:00")
    assert next_time(began, now, DAY, [time(3, 0)], BERLIN) == moment("2026-11-21 02:00")
    assert next_time(began, now, 2 * DAY, [time(3, 0)], BERLIN) == moment("2026-11-22 02:00")
    long_run = moment("2026-11-21 05:00")
    assert next_time(began, long_run, DAY, [time(3, 0)], BERLIN) == moment("2026-11-22 02:00")


def test_a_run_that_begins_after_midnight_is_followed_on_the_same_evening() -> None:
    began, now = moment("2026-11-20 23:10"), moment("2026-11-20 23:40")
    assert next_time(began, now, DAY, [time(23, 0)], BERLIN) == moment("2026-11-21 22:00")
    assert next_time(began, now, 2 * DAY, [time(23, 0)], BERLIN) == moment("2026-11-22 22:00")


def test_of_several_times_of_day_the_next_one_comes() -> None:
    times = [time(3, 0), time(15, 0)]
    assert next_at(moment("2026-11-20 04:00"), times, BERLIN) == moment("2026-11-20 14:00")
    began = moment("2026-11-20 02:00")
    assert next_time(began, moment("2026-11-20 02:00"), DAY, times, BERLIN) == moment("2026-11-20 14:00")
    assert next_time(began, moment("2026-11-20 14:05"), DAY, times, BERLIN) == moment("2026-11-21 02:00")


@pytest.mark.parametrize(
    "options",
    [
        ("--every", "0"),
        ("--every", "nan"),
        ("--delay", "nan"),
        ("--at", "3 am"),
        ("--at", "03:00", "--every", "12"),
        ("--at", "3:00", "--at", "4:00", "--every", "48"),
    ],
)
def test_a_plan_that_makes_no_sense_is_a_usage_error(tmp_path: Path, options: tuple[str, ...]) -> None:
    initialize(tmp_path)
    assert isinstance(attempt(tmp_path, "daemon", *options).error, click.UsageError)


def test_bad_settings_end_it_before_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "metaharvest.toml").write_text("[harvester]\nworkers = 0\n")
    done = process(tmp_path, "daemon")
    assert done.returncode == 2
    assert "workers" in done.stderr


def test_it_makes_as_many_runs_as_asked_for(tmp_path: Path) -> None:
    initialize(tmp_path)
    assert process(tmp_path, "daemon", "--every", "0.001", "--max-runs", "2").returncode == 0
    assert [run["run_id"] for run in tell(tmp_path, "runs", "--json").json] == [2, 1]


def test_a_run_that_cannot_be_made_is_told_and_the_next_one_comes(tmp_path: Path) -> None:
    initialize(tmp_path)
    engine = open_url(database_url(load(tmp_path / "metaharvest.toml")))
    with run_lock(engine):
        done = process(tmp_path, "daemon", "--every", "0.001", "--max-runs", "2")
    engine.dispose()
    assert done.returncode == 0
    assert done.stderr.count("Another run is under way") == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2>&-", "2>&- >&- <&-"])
def test_that_nobody_can_read_what_it_says_ends_no_daemon(tmp_path: Path, stderr: str) -> None:
    initialize(tmp_path)
    command = shlex.join([sys.executable, "-m", "metaharvest", "daemon", "--every", "0.001", "--max-runs", "2"])
    subprocess.run(f"{command} {stderr}", shell=True, cwd=tmp_path, check=False)
    assert [run["status"] for run in tell(tmp_path, "runs", "--json").json] == ["succeeded"] * 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_between_two_runs_ends_it_politely(tmp_path: Path, number: signal.Signals) -> None:
    initialize(tmp_path)
    with ForkedPopen(
        [sys.executable, "-m", "metaharvest", "daemon", "--delay", "5"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as daemon:
        assert daemon.stderr is not None
        assert "The next run is at" in daemon.stderr.readline()
        daemon.send_signal(number)
        assert daemon.stderr.read() == "Stopped between two runs.\n"
    assert daemon.returncode == 0
    assert tell(tmp_path, "runs", "--json").json == []


def test_sighup_has_the_settings_read_again_and_the_next_run_reckoned_anew(tmp_path: Path) -> None:
    tell(tmp_path, "init")
    command = [sys.executable, "-m", "metaharvest", "--config", str(tmp_path / "metaharvest.toml")]
    with ForkedPopen([*command, "daemon", "--at", "03:00"], stderr=subprocess.PIPE, text=True) as daemon:
        assert daemon.stderr is not None
        assert daemon.stderr.readline().endswith("03:00 UTC.\n")
        (tmp_path / "metaharvest.toml").write_text('[harvester]\ntime_zone = "Asia/Tokyo"\n')
        daemon.send_signal(signal.SIGHUP)
        assert daemon.stderr.readline() == "The settings were read again.\n"
        assert daemon.stderr.readline().endswith("03:00 JST.\n")
        (tmp_path / "metaharvest.toml").write_text("[harvester]\nworkers = 0\n")
        daemon.send_signal(signal.SIGHUP)
        assert "and cannot be used: " in daemon.stderr.readline()
        assert daemon.stderr.readline().endswith("03:00 JST.\n")
        daemon.terminate()
        assert "Stopped between two runs." in daemon.stderr.read()
    assert daemon.returncode == 0


def test_a_settings_file_that_is_away_is_told_and_no_other_one_takes_its_place(tmp_path: Path) -> None:
    initialize(tmp_path)
    file = tmp_path / "metaharvest.toml"
    file.write_text('[harvester]\ntime_zone = "Asia/Tokyo"\n')
    command = [sys.executable, "-m", "metaharvest", "daemon", "--delay", "0.0003", "--max-runs", "1"]
    with ForkedPopen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as daemon:
        assert daemon.stderr is not None
        assert daemon.stderr.readline().endswith(" JST.\n")
        file.rename(tmp_path / "away.toml")
        daemon.send_signal(signal.SIGHUP)
        told = daemon.stderr.read()
    assert f"The settings were read again, and cannot be used: The settings file {file} is not there." in told
    assert "This run failed: The settings file" in told
    assert "UTC" not in told
    (tmp_path / "away.toml").rename(file)
    assert tell(tmp_path, "runs", "--json").json == []


def test_a_run_is_told_in_one_line_with_its_sites_and_its_exit_code(tmp_path: Path, server: HttpServer) -> None:
    harvester = Harvester(tmp_path)
    server.serve("/bad.xml", b"<eml>")
    harvester.add_site("alder", publish(server, "a.1.1", "a.2.1", also=[("a.3.1", server.url("/bad.xml"))]))
    harvester.add_site("birch", server.url("/gone.xml"))
    said = harvester("daemon", "--max-runs", "1")
    assert (said.code, said.out) == (0, "")
    begun, output = said.err.splitlines()[1:]
    assert begun.startswith("A run begins at ")
    day = harvester.rows("SELECT harvest_date FROM harvest_run")[0][0]
    sites = "2 sites: 1 with errors, 1 failed; 2 new; 1 error"
    assert output == f"Run 1 ({day}): with-errors; {sites}; exit code 3."
    harvester.close()


def test_where_the_log_is_json_every_line_is_and_says_which_are_errors(tmp_path: Path) -> None:
    initialize(tmp_path)
    (tmp_path / "metaharvest.db").unlink()
    done = process(tmp_path, "--log-format", "json", "daemon", "--max-runs", "1")
    told = [json.loads(line) for line in done.stderr.splitlines()]
    begins = [(each["level"], " ".join(each["message"].split()[:4])) for each in told]
    assert begins == [("INFO", "The next run is"), ("INFO", "A run begins at"), ("ERROR", "This run failed: There")]


@pytest.mark.parametrize("option", [("--log-format", "json"), ("--log-format=json",)])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("runs",), "The settings file /no/file is not there."),
        (("runs", "--nonsense"), "No such option"),
        (("no-such-command",), "No such command"),
    ],
)
def test_where_the_log_is_json_the_sentence_of_a_failure_is_too(
    tmp_path: Path, option: tuple[str, ...], arguments: tuple[str, ...], message: str
) -> None:
    done = process(tmp_path, *option, "--config", "/no/file", *arguments)
    [told] = [json.loads(line) for line in done.stderr.splitlines()]
    assert (done.returncode, told["level"], message in told["message"]) == (2, "ERROR", True)
