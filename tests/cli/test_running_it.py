"""What operators need around a run: first words, help, completion, units for systemd, metrics, logs for machines."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import click
import pytest
from prometheus_client.parser import text_string_to_metric_families

from metaharvest.cli import cli
from metaharvest.config.settings import WorkersSettings
from metaharvest.errors import SettingsError
from support.cli import tell
from support.harvester import SETTINGS, Harvester, publish
from support.http_server import HttpServer

OPERATORS = Path(__file__).parents[2] / "docs" / "operators.md"
PACKAGING = Path(__file__).parents[2] / "packaging"


def commands(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, help_option_names=["-h", "--help"])
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield " ".join((*words, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))


def test_the_help_of_every_command_has_an_example() -> None:
    names = ["-h", "--help"]
    helps = {words: each.get_help(click.Context(each, help_option_names=names)) for words, each in commands(cli)}
    assert [words for words, text in helps.items() if not re.search(r"Examples?:\s+metaharvest", text)] == []


def test_without_a_command_it_says_what_to_do_first_and_then_what_is_next(tmp_path: Path) -> None:
    first = tell(tmp_path).out
    assert "There are no settings here yet." in first
    assert "demo" in first
    tell(tmp_path, "init")
    assert "sites add" in tell(tmp_path).out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str, tmp_path: Path) -> None:
    script = tell(tmp_path, "completion", shell).out
    assert f"_METAHARVEST_COMPLETE={shell}_complete" in script
    environment = {"_METAHARVEST_COMPLETE": "bash_complete", "COMP_WORDS": "metaharvest rep", "COMP_CWORD": "1"}
    program = [sys.executable, "-m", "metaharvest"]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=False)
    assert "plain,reports" in done.stdout


UNITS = [
    "metaharvest.service",
    "metaharvest.timer",
    "metaharvest-daemon.service",
    "metaharvest-serve.service",
    "metaharvest-worker@.service",
    "metaharvest-coordinate.service",
    "metaharvest-coordinate.timer",
]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is missing: install systemd")
@pytest.mark.parametrize("unit", UNITS)
def test_systemd_takes_the_units(unit: str, tmp_path: Path) -> None:
    # The program is not installed where the unit says: another one stands in for it.
    for file in PACKAGING.glob("metaharvest*"):
        text = file.read_text(encoding="utf-8").replace("/opt/metaharvest/bin/metaharvest", "/bin/true")
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / unit)], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "metaharvest" in line] == []


def hours_of_runs() -> Iterator[time]:
    """The hours at which the timer, and cron by the lines in the documentation, start a run every night."""
    [timer] = re.findall(
        r"^OnCalendar=\*-\*-\* (.*)$", (PACKAGING / "metaharvest.timer").read_text(encoding="utf-8"), re.M
    )
    yield time.fromisoformat(timer)
    for page in ("README.md", "docs/operators.md"):
        text = (PACKAGING.parent / page).read_text(encoding="utf-8")
        [(minute, hour)] = re.findall(r"^ *(\d+) (\d+) \* \* \*  cd", text, re.MULTILINE)
        yield time(int(hour), int(minute))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Europe/Helsinki", "America/Los_Angeles", "Pacific/Auckland"])
def test_no_change_of_clocks_skips_or_repeats_a_nightly_run_also_if_days_are_in_utc(zone: str) -> None:
    """systemd leaves out a run at a skipped hour: https://github.com/systemd/systemd/issues/5595"""
    nights = [date(2026, 1, 1) + timedelta(days=number) for number in range(365)]
    for hour in set(hours_of_runs()):
        moments = [datetime.combine(night, hour, ZoneInfo(zone)) for night in nights]
        assert all(moment.utcoffset() == moment.replace(fold=1).utcoffset() for moment in moments)
        days = [moment.astimezone(UTC).date() for moment in moments]
        assert [later - day for day, later in pairwise(days)] == [timedelta(days=1)] * 364


@pytest.mark.parametrize("unit", ["metaharvest.service", "metaharvest-daemon.service"])
def test_what_init_writes_as_a_unit_says_is_where_the_unit_may_write(unit: str, tmp_path: Path) -> None:
    text = (PACKAGING / unit).read_text(encoding="utf-8")
    [writable] = re.findall(r"^ReadWritePaths=(.*)$", text, re.MULTILINE)
    [init] = re.findall(
        r"^#   runuser -u metaharvest -- /opt/metaharvest/bin/metaharvest (.* init)$", text, re.MULTILINE
    )
    [start] = re.findall(r"^ExecStart=/opt/metaharvest/bin/metaharvest (.*)$", text, re.MULTILINE)
    assert f"install -d -o metaharvest -g metaharvest -m 750 {writable}\n" in text
    settings = Path(writable, "metaharvest.toml")
    assert init == f"--config {settings} init"
    assert start.startswith(f"--config {settings} ")
    command = start.replace(writable, str(tmp_path)).split()[2:]
    tell(tmp_path, "init")
    if command[0] == "run":
        assert "no site was due" in tell(tmp_path, *command).out
    assert {file.name for file in tmp_path.iterdir()} <= {"metaharvest.toml", "metaharvest.db", "metaharvest.db.lock"}


def commands_of_workers() -> Iterator[str]:
    """The commands that units and supervisord start for workers, with their places filled in."""
    for unit in ("metaharvest-worker@.service", "metaharvest-coordinate.service"):
        yield from re.findall(r"^ExecStart=(.*)$", (PACKAGING / unit).read_text(encoding="utf-8"), re.MULTILINE)
    yield supervised()["command"] % {"host_node_name": "fir", "process_num": 1}


def supervised() -> configparser.SectionProxy:
    """The section of the workers in the settings of supervisord."""
    read = configparser.ConfigParser(interpolation=None)
    read.read(PACKAGING / "supervisord.conf", encoding="utf-8")
    return read["program:worker"]


def test_units_and_supervisord_start_workers_by_commands_that_are_there(tmp_path: Path) -> None:
    tell(tmp_path, "init")
    for command in commands_of_workers():
        program, *words = command.replace("/var/lib/metaharvest", str(tmp_path)).split()
        assert program == "/opt/metaharvest/bin/metaharvest"
        with pytest.raises(SettingsError, match=r"broker of \[workers\] is not set"):
            tell(tmp_path, *words[2:])


def test_a_worker_has_more_time_to_end_than_its_slice_takes() -> None:
    longest = max(each.le for each in WorkersSettings.model_fields["slice"].metadata if hasattr(each, "le"))
    unit = (PACKAGING / "metaharvest-worker@.service").read_text(encoding="utf-8")
    [minutes] = re.findall(r"^TimeoutStopSec=(\d+)min$", unit, re.MULTILINE)
    assert int(minutes) * 60 > longest
    section = supervised()
    assert section.getint("stopwaitsecs") > longest
    assert section["stopsignal"] == "TERM"
    assert not section.getboolean("stopasgroup")


def test_supervisord_tries_a_worker_until_the_database_is_there() -> None:
    section = supervised()
    assert section.getboolean("autorestart")
    assert int(section["startretries"]) >= 1_000_000


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_each_run_writes_the_file_for_prometheus(harvester: Harvester, server: HttpServer, tmp_path: Path) -> None:
    file = tmp_path / "metaharvest.prom"
    harvester.config.write_text(f'{SETTINGS}[monitoring]\nmetrics_file = "{file}"\n', encoding="utf-8")
    harvester.add_site('elm "x"', publish(server, "a.1.1", "a.2.1"), contact_email="elm@example.org")
    server.serve("/a.2.1.xml", b"<broken")
    harvester.run("2026-11-20")
    families = text_string_to_metric_families(file.read_text(encoding="utf-8"))
    samples = {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}
    assert samples["metaharvest_site_documents", 'elm "x"', "inserted"] == 1
    assert samples["metaharvest_site_documents", 'elm "x"', "invalid"] == 1
    assert samples["metaharvest_site_open_problems", 'elm "x"'] == 1
    assert samples["metaharvest_last_run_status", "with-errors"] == 1
    file.unlink()
    file.mkdir()
    said = harvester("run", "--date", "2026-11-21")
    assert "metrics_file" in said.err
    assert said.code == 0


def samples_of(file: Path) -> dict[tuple[str, ...], float]:
    """The values of a file for Prometheus, by name and labels."""
    families = text_string_to_metric_families(file.read_text(encoding="utf-8"))
    return {(s.name, *sorted(s.labels.values())): s.value for family in families for s in family.samples}


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_file_for_prometheus_is_written_also_if_no_run_could_begin(
    harvester: Harvester, server: HttpServer, tmp_path: Path
) -> None:
    file = tmp_path / "metaharvest.prom"
    harvester.config.write_text(f'{SETTINGS}[monitoring]\nmetrics_file = "{file}"\n', encoding="utf-8")
    harvester.add_site("elm", publish(server, "a.1.1"))
    harvester.add_site("oak", server.url("/no-list.xml"), datenextharvest="2020-01-01")
    assert harvester("run").code == 3
    samples = samples_of(file)
    assert samples["metaharvest_last_attempt_exit_code",] == 3
    assert samples["metaharvest_database_up",] == 1
    assert samples["metaharvest_last_success_seconds",] > 0
    assert samples["metaharvest_site_last_success_seconds", "elm"] > 0
    assert ("metaharvest_site_last_success_seconds", "oak") not in samples
    assert [samples["metaharvest_site_overdue", name] for name in ("elm", "oak")] == [0, 1]
    assert [samples["metaharvest_site_open_problems", name] for name in ("elm", "oak")] == [0, 1]
    assert samples["metaharvest_site_failing_documents", "elm"] == 0
    assert samples["metaharvest_reports_refused",] == 0
    harvester.rows("UPDATE alembic_version SET version_num = '9999'")
    harvester.keeps_engine = False
    assert harvester("run").code == 69
    samples = samples_of(file)
    assert samples["metaharvest_last_attempt_exit_code",] == 69
    assert samples["metaharvest_database_up",] == 0
    assert not [name for name in samples if name[0] == "metaharvest_last_run_status"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_every_metric_is_documented_and_every_alert_asks_for_one(
    harvester: Harvester, server: HttpServer, tmp_path: Path
) -> None:
    file = tmp_path / "metaharvest.prom"
    harvester.config.write_text(
        f'{SETTINGS}[monitoring]\nmetrics_file = "{file}"\n[pipeline]\nenabled = true\n', encoding="utf-8"
    )
    harvester.add_site("elm", publish(server, "a.1.1"))
    assert harvester("run").code == 0
    written = {name for name, *_ in samples_of(file)}
    documented = re.findall(r"^\| `(metaharvest_\w+)` \|", OPERATORS.read_text(encoding="utf-8"), re.MULTILINE)
    assert written == set(documented)
    alerts = (PACKAGING / "metaharvest-alerts.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"metaharvest_\w+", alerts)) <= written


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
@pytest.mark.parametrize("place", ["no-folder/metaharvest.prom", "a-folder"])
def test_the_doctor_says_if_the_file_for_prometheus_cannot_be_written(harvester: Harvester, place: str) -> None:
    (harvester.folder / "a-folder").mkdir()
    harvester.config.write_text(f'{SETTINGS}[monitoring]\nmetrics_file = "{place}"\n', encoding="utf-8")
    said = harvester("doctor")
    assert said.code == 1
    assert "PROBLEM  metrics file: " in said.out
    good = f'{SETTINGS}[monitoring]\nmetrics_file = "metaharvest.prom"\n'
    harvester.config.write_text(good, encoding="utf-8")
    assert "OK       metrics file: " in harvester("doctor").out


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_log_of_the_program_is_json_where_machines_read_it(harvester: Harvester, server: HttpServer) -> None:
    secret = harvester.folder / "secret"
    secret.write_text("something long")
    secret.chmod(0o644)
    text = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(
        text.replace("[http]", f'[http]\nproxy = "http://me@127.0.0.1:9"\nproxy_password = "file:{secret}"')
    )
    command = [sys.executable, "-m", "metaharvest", "--log-format", "json", "--config", str(harvester.config), "run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    records = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [record["level"] for record in records] == ["WARNING"]
    assert "Everybody on this machine may read the secret" in records[0]["message"]
