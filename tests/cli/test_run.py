"""`metaharvest run` and `demo` as people, cron and machines see them."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from metaharvest.cli.invocation import usage_errors
from metaharvest.errors import RequestError
from support.cli import attempt, initialize, process, tell
from support.console import Browser
from support.databases import on_one_database
from support.fork_server import ForkedPopen
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.waiting import wait_until


@pytest.mark.quick
@on_one_database
def test_run_prints_a_table_and_exits_with_zero_when_documents_have_errors(
    harvester: Harvester, server: HttpServer
) -> None:
    url = publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))])
    harvester.add_site("alder-creek", url)
    said = harvester("run", "--date", "2026-11-20")
    assert said.code == 0
    assert "Run 1 (2026-11-20): with-errors." in said.out
    assert "alder-creek  with-errors  2" in said.out


@on_one_database
def test_strict_exits_with_three_when_documents_have_errors(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1", also=[("a.2.1", server.url("/gone.xml"))])
    harvester.add_site("alder-creek", url)
    assert harvester("run", "--strict").code == 3


def test_run_as_json_is_one_document_with_the_rows_of_the_journal(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder-creek", publish(server, "a.1.1"))
    said = harvester("run", "--json", "--date", "2026-11-20")
    run = json.loads(said.out)
    assert (run["status"], run["harvest_date"], run["undelivered"]) == ("succeeded", "2026-11-20", 0)
    site = run["sites"][0]
    assert (site["site_name"], site["listed"], site["inserted"], site["next_harvest"]) == (
        "alder-creek",
        1,
        1,
        "2026-11-21",
    )


@on_one_database
def test_a_report_that_cannot_be_handed_over_makes_the_exit_code_four_and_arrives_the_next_night(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("alder-creek", publish(server, "a.1.1"))
    (harvester.folder / "mail").write_text("a file where the folder should be")
    run = harvester.run("2026-11-20")
    assert (run["exit_code"], run["undelivered"]) == (4, 2)
    (harvester.folder / "mail").unlink()
    assert harvester.run("2026-11-21")["exit_code"] == 0
    assert len(harvester.mails()) == 4


@on_one_database
def test_what_is_said_of_one_thing_is_said_in_the_singular(harvester: Harvester, server: HttpServer) -> None:
    harvester.config.write_text(harvester.config.read_text().replace('administrators = ["steward@example.org"]', ""))
    harvester.add_site("alder-creek", publish(server, "a.1.1"))
    (harvester.folder / "mail").write_text("a file where the folder should be")
    said = harvester("run", "--date", "2026-11-20")
    assert "Reports could not be handed over in 1 case: `metaharvest reports --undelivered` says why." in said.out
    assert harvester("run", "--date", "2026-11-21").code == 4
    assert "1 document is unchanged." in harvester("log").out


@on_one_database
def test_usage_errors_exit_with_two_and_a_sentence(harvester: Harvester) -> None:
    for arguments in (
        ["run", "--date", "20th of November"],
        ["run", "--force", "--site", "a"],
        ["run", "--nonsense"],
        ["nonsense"],
        ["check"],
    ):
        said = harvester(*arguments)
        assert said.code == 2, arguments
        assert said.err
        assert "Traceback" not in said.err


@on_one_database
def test_a_refused_request_is_one_sentence_without_control_characters(harvester: Harvester) -> None:
    folder = harvester.folder / "x\x1b[31m"
    folder.mkdir()
    (folder / "file").touch()
    said = harvester("export", "dataset", str(folder))
    shown = str(folder).replace("\x1b", "\ufffd")
    assert (said.code, said.err) == (2, f"{shown} is not empty. Give a new folder.\n")
    said = harvester("reports", "drop", "1", "--reason", "r" * 1001)
    assert (said.code, said.err) == (2, "A reason has at most 1,000 characters.\n")


def test_errors_of_usage_have_no_control_characters() -> None:
    with pytest.raises(click.UsageError) as raised, usage_errors():
        raise RequestError("x\x1b[31m cannot be used.")
    assert raised.value.message == "x\ufffd[31m cannot be used."


@on_one_database
def test_settings_that_are_wrong_exit_with_two_and_name_the_key(harvester: Harvester) -> None:
    harvester.config.write_text('[mail]\nbackend = "pigeon"\n')
    said = harvester("run")
    assert said.code == 2
    assert "[mail] backend = 'pigeon'" in said.err


def test_the_command_is_there_as_a_module_too_and_names_its_version() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "metaharvest", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("metaharvest, version ")


@on_one_database
def test_the_demo_needs_no_configuration_and_says_where_everything_is(harvester: Harvester, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    said = harvester("demo", "--nights", "1", "--folder", str(folder))
    assert said.code == 0
    assert "Night 1" in said.out
    assert f"--config {folder / 'metaharvest.toml'} runs" in said.out
    assert len(list((folder / "mail" / "new").iterdir())) == 9  # with the two about the library
    assert len(list((folder / "html").iterdir())) == 7
    again = harvester("demo", "--folder", str(folder))
    assert again.code == 2
    assert "not empty" in again.err


@pytest.mark.parametrize("day", ["", "2026-02-30", "tomorrow", "0001-01-01", "9999-12-31"])
def test_a_date_that_no_harvest_can_have_is_a_usage_error_and_begins_no_run(tmp_path: Path, day: str) -> None:
    initialize(tmp_path)
    error = attempt(tmp_path, "run", "--date", day).error
    assert isinstance(error, click.BadParameter)
    assert "--date" in error.format_message()
    assert tell(tmp_path, "runs", "--json").json == []


def test_moments_in_json_are_iso_8601(tmp_path: Path) -> None:
    initialize(tmp_path)
    run = tell(tmp_path, "run", "--json").json
    assert datetime.fromisoformat(run["started_at"]).tzinfo is not None
    assert "T" in run["started_at"]


@pytest.mark.parametrize("folder", ["/proc/demo", "file/demo"])
def test_a_folder_that_the_demo_cannot_use_is_told(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("")
    said = process(tmp_path, "demo", "--folder", folder)
    assert said.returncode == 2
    assert f"The folder {folder} cannot be used" in said.stderr
    assert "Traceback" not in said.stderr


def test_the_demo_leaves_no_dates_in_the_future_and_can_be_harvested_again_while_it_serves(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [sys.executable, "-m", "metaharvest", "demo", "--serve", "--port", "0", "--folder", str(folder)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with ForkedPopen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment) as serving:
        assert serving.stdout is not None
        output = ""
        while "Ctrl-C ends it." not in output:
            output += serving.stdout.readline()
        config = str(folder / "metaharvest.toml")
        checked = process(tmp_path, "--config", config, "doctor")
        assert "clock" not in checked.stdout
        assert "schedule" not in checked.stdout
        again = process(tmp_path, "--config", config, "run", "--force", "--dry-run", "--json")
        statuses = {site["site"]: site["status"] for site in json.loads(again.stdout)["sites"]}
        assert statuses["alder-creek"] == "succeeded"
        link = re.search(r"http://\S+/console/link/\S+", output)
        assert link
        operator = Browser(link[0].partition("/console/")[0])
        operator.open(link[0]).submit("Sign in")
        operator.open("/console/actions/sites.harvest?name=fern-gorge").submit(
            "Ask for the harvest of the site fern-gorge"
        )
        wait_until(lambda: requests_of(folder) == [("fern-gorge", "done")], 60)
        serving.send_signal(signal.SIGINT)
        assert serving.wait(30) == 0
    newest = process(tmp_path, "--config", config, "runs", "--json")
    days = [run["harvest_date"] for run in json.loads(newest.stdout)]
    today = datetime.now(UTC).date()
    assert days == [str(today - timedelta(days=before)) for before in (0, 0, 0, 1, 2)]


def requests_of(folder: Path) -> list[tuple[str, str]]:
    """The site and the state of each request of people to the harvester."""
    with closing(sqlite3.connect(folder / "metaharvest.db")) as connection:
        return list(connection.execute("SELECT site_name, state FROM harvest_request"))


def test_the_demo_says_that_its_port_is_taken_before_it_plays(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = process(tmp_path, "demo", "--serve", "--port", port)
    assert said.returncode == 2
    assert f"Port {port} cannot be used: Address already in use." in said.stderr
    assert "Night" not in said.stdout


@on_one_database
def test_the_log_names_the_run_in_which_it_has_found_nothing(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("alder-creek", publish(server, "a.1.1"))
    for day in ("2026-11-20", "2026-11-21"):
        harvester.run(day)
    assert "The log has nothing of that in run 2;" in harvester("log", "--level", "error").out
    assert "The log has nothing of that in run 1;" in harvester("log", "--level", "error", "--run", "1").out
    assert harvester("log", "--document", "nothing.1").out.startswith("The log has nothing of that.")
