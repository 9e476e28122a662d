"""`metaharvest log`, `runs` and `reports`: what they tell of a real run over the sample sites."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from email import message_from_bytes, policy
from pathlib import Path

import click
import pytest

from metaharvest.config.settings import load
from metaharvest.database.engine import database_url, open_url, run_lock
from metaharvest.demo.samples import SampleNetwork
from metaharvest.errors import LockHeld, MetaharvestError
from support.cli import attempt, harvested, in_database, initialize, process, tell
from support.databases import KINDS, Servers
from support.harvester import settings_for
from support.ports import free_port
from support.smtp_sink import SmtpSink


@pytest.fixture(scope="module", params=KINDS)
def folder(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Two sample sites, harvested once into each kind of database; nothing in this folder is changed afterwards."""
    made = tmp_path_factory.mktemp("harvested")
    with servers.another(request.param) as url:
        (made / "metaharvest.toml").write_text(settings_for(url))
        harvested(made)
        yield made


@pytest.fixture(scope="module")
def harvested_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("to-be-copied")
    harvested(made)
    return made


@pytest.fixture
def own(harvested_folder: Path, tmp_path: Path) -> Path:
    """The same in a folder that can be copied, SQLite file and all, to be changed."""
    copied = tmp_path / "copy"
    shutil.copytree(harvested_folder, copied)
    return copied


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    initialize(tmp_path)
    return tmp_path


def rows(folder: Path, *arguments: str) -> list[dict[str, str]]:
    raw = tell(folder, "log", "--csv", *arguments).raw
    return list(csv.DictReader(io.StringIO(raw.decode("utf-8-sig"), newline="")))


def site_runs(folder: Path, run: int = 1) -> dict[str, dict[str, int]]:
    return {site["site_name"]: site for site in tell(folder, "runs", "show", str(run), "--json").json["sites"]}


# -- log


def test_the_log_of_the_newest_run_has_each_error_with_its_place_and_remedy(folder: Path) -> None:
    out = tell(folder, "log").out
    assert "InsertDocSuccess" in out
    assert "GetDocSuccess" not in out
    assert "error, line 123: The id 'col-pool' occurs more than once" in out
    assert "What to do: Give each element an id of its own" in out


def test_a_level_shows_itself_and_graver_ones(folder: Path) -> None:
    def levels(level: str) -> set[str]:
        return {row["level"] for row in tell(folder, "log", "--level", level, "--json").json if not row["findings"]}

    assert "debug" in levels("debug")
    assert levels("error") <= {"error"}
    assert "info" in levels("info")
    assert "debug" not in levels("info")


def test_the_log_of_one_site_is_its_own(folder: Path) -> None:
    told = tell(folder, "log", "--site", "alder-creek", "--json").json
    assert {row["site"] for row in told} == {"alder-creek"}
    assert sum(row["outcome"] == "inserted" for row in told) == 7


@pytest.mark.parametrize("name", ["ren-basalt.17", "ren-basalt.17.1", " ren-basalt.17 "])
def test_the_log_of_one_document_is_found_by_document_id_and_by_docid(folder: Path, name: str) -> None:
    told = tell(folder, "log", "--document", name, "--level", "error", "--json").json
    assert [row["outcome"] for row in told] == ["invalid"]
    assert told[0]["findings"][0]["rule"] == "eml.id-duplicate"


def test_a_limit_keeps_the_last_rows_and_says_so(folder: Path) -> None:
    told = tell(folder, "log", "--limit", "2")
    assert told.out.splitlines()[-1].endswith("The run ended: with-errors.")
    assert "Only the last 2 rows" in told.err
    assert len(tell(folder, "log", "--limit", "2", "--json").json) == 2


def test_each_moment_says_that_it_is_utc(own: Path) -> None:
    """A person in Los Angeles may take it for local time."""
    tell(own, "users", "add", "anna@example.org", "--role", "operator")
    tell(own, "keys", "add", "portal", "--role", "viewer")
    tell(own, "sites", "harvest", "alder-creek")
    commands = ("runs show 1", "decisions", "users list", "keys list", "requests", "reports")
    for command in commands:
        heading, *lines = tell(own, *command.split()).out.splitlines()
        moments = [line for line in (heading, *lines) if re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d", line)]
        assert moments, command
        assert "(UTC)" in heading or all(" UTC" in line for line in moments), command
    for column in ("at", "at (UTC)", "AT"):
        assert tell(own, "requests", "--columns", column).out.startswith("at (UTC)")


def test_without_a_run_the_log_is_empty(empty: Path) -> None:
    assert tell(empty, "log", "--json").json == []
    assert "nothing" in tell(empty, "log").out
    header, *rows_of_it = tell(empty, "log", "--csv").out.splitlines()
    assert (header.startswith("\ufefflog_id,"), rows_of_it) == (True, [])


def test_the_csv_of_a_site_run_has_every_document_that_is_not_merely_unchanged(folder: Path) -> None:
    number = site_runs(folder)["basalt-flats"]["site_run_id"]
    table = rows(folder, "--site-run", str(number))
    assert len({(row["docid"], row["outcome"]) for row in table if row["outcome"]}) == 29
    assert {row["outcome"] for row in table} >= {"inserted", "invalid", "access-error", "duplicate"}


def test_the_csv_of_a_run_is_its_whole_log(folder: Path) -> None:
    table = rows(folder, "--run", "1")
    assert table[0]["operation"] == "HarvesterStartup"
    assert table[-1]["operation"] == "HarvesterShutdown"
    assert {"debug", "info", "error"} <= {row["operation_level"] for row in table}


def test_unchanged_documents_are_in_the_table_only_if_asked_for(own: Path) -> None:
    with SampleNetwork() as network:
        tell(own, "sites", "edit", "alder-creek", "--list-url", network.list_url("alder-creek"))
        tell(own, "run", "--site", "alder-creek")
    assert rows(own, "--site", "alder-creek") == []
    everything = rows(own, "--site", "alder-creek", "--all")
    assert [row["outcome"] for row in everything] == ["unchanged"] * 7


@pytest.mark.parametrize(
    "arguments",
    [
        ("--csv", "--json"),
        ("--all",),
        ("--all", "--csv", "--site", "alder-creek", "--level", "error"),
        ("--since", "2026-11-21", "--until", "2026-11-20"),
        ("--all", "--csv"),
        ("--run", "1", "--site-run", "1"),
    ],
)
def test_options_that_do_not_go_together_are_a_usage_error(folder: Path, arguments: tuple[str, ...]) -> None:
    assert isinstance(attempt(folder, "log", *arguments).error, click.UsageError)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("log", "--run", "99"), "There is no run 99"),
        (("log", "--site-run", "99"), "There is no site run 99"),
        (("log", "--site", "elder"), "alder-creek, basalt-flats"),
        (("log", "--run", "1", "--site", "elder"), "alder-creek, basalt-flats"),
        (("log", "--run", str(2**70)), "There is no run"),
        (("runs", "show", "99"), "There is no run 99"),
        (("reports", "show", "99"), "There is no report 99"),
        (("reports", "resend", "99"), "There is no report number 99"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    told = attempt(folder, *arguments)
    assert isinstance(told.error, MetaharvestError)
    assert sentence in str(told.error)


# -- runs


def test_the_runs_are_listed_with_totals_that_balance(folder: Path) -> None:
    (run,) = tell(folder, "runs", "--json").json
    assert (run["run_id"], run["status"], run["sites"], run["listed"]) == (1, "with-errors", 2, 36)
    assert sum(run[name] for name in ("inserted", "updated", "unchanged", "attention", "errors")) == 36
    assert "with-errors" in tell(folder, "runs").out


def test_a_run_is_shown_with_its_sites(folder: Path) -> None:
    out = tell(folder, "runs", "show", "1").out
    assert "alder-creek" in out
    assert "36 listed" in out
    sites = site_runs(folder)
    assert (sites["alder-creek"]["inserted"], sites["basalt-flats"]["invalid"]) == (7, 19)


def test_no_run_yet_is_said(empty: Path) -> None:
    assert tell(empty, "runs", "--json").json == []
    assert "no run yet" in tell(empty, "runs").out


# -- reports


def test_the_reports_are_listed_with_their_delivery(folder: Path) -> None:
    listed = tell(folder, "reports", "--json").json
    subjects = {report["subject"] for report in listed}
    assert any("alder-creek: all well, 7 new" in subject for subject in subjects)
    states = {each["recipient"]: each["status"] for report in listed for each in report["deliveries"]}
    assert states == {"alder-creek@example.org": "sent", "basalt-flats@example.org": "sent"}
    out = tell(folder, "reports").out
    assert "1 sent" in out
    assert "to nobody" in out


def test_a_report_is_shown_as_text_as_html_and_byte_for_byte(folder: Path) -> None:
    # Sites are closed in whatever order they are done.
    told = tell(folder, "reports", "--json").json
    [number] = [report["report_id"] for report in told if "alder-creek:" in report["subject"]]
    text = tell(folder, "reports", "show", str(number)).out
    assert "alder-creek@example.org (sent)" in text
    assert "Your harvest list names 7 documents" in text
    assert tell(folder, "reports", "show", str(number), "--html").out.startswith("<!DOCTYPE html>")
    [(content,)] = in_database(folder, "SELECT content FROM report_outbox WHERE report_id = ?", number)
    assert tell(folder, "reports", "show", str(number), "--raw").raw == content


def test_a_report_that_is_sent_again_keeps_its_message_id(own: Path) -> None:
    with SmtpSink() as sink:
        (own / "metaharvest.toml").write_text(f'[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = {sink.port}\n')
        told = tell(own, "reports", "resend", "1")
    assert (told.code, told.out) == (0, "1 sent, 0 waiting, 0 refused.\n")
    raw = message_from_bytes(tell(own, "reports", "show", "1", "--raw").raw, policy=policy.default)
    assert [mail.message["Message-ID"] for mail in sink.messages] == [raw["Message-ID"]]


def test_a_report_that_the_mail_folder_still_has_is_not_written_again_which_is_told(own: Path) -> None:
    before = sorted((own / "mail" / "new").iterdir())
    told = tell(own, "reports", "resend", "1")
    assert (told.code, told.out) == (
        0,
        "1 sent, 0 waiting, 0 refused.\nStill in the mail folder, and not written again: 1 of those sent.\n",
    )
    assert sorted((own / "mail" / "new").iterdir()) == before
    for file in before:
        file.unlink()
    assert tell(own, "reports", "resend", "1").out == "1 sent, 0 waiting, 0 refused.\n"
    assert len(list((own / "mail" / "new").iterdir())) == 1


def test_what_could_not_be_handed_over_is_told_with_exit_code_1_and_goes_out_later(own: Path) -> None:
    settings = own / "metaharvest.toml"
    settings.write_text(f'[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = {free_port()}\n')
    done = process(own, "reports", "resend", "1")
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    (waiting,) = tell(own, "reports", "--undelivered", "--json").json
    assert waiting["report_id"] == 1
    assert waiting["deliveries"][0]["attempts"] == 1
    settings.write_text("")
    assert tell(own, "reports", "deliver").code == 0
    assert "Every report has arrived" in tell(own, "reports", "--undelivered").out


def test_the_outbox_is_left_alone_while_a_run_is_under_way(own: Path) -> None:
    engine = open_url(database_url(load(own / "metaharvest.toml")))
    with run_lock(engine):
        assert isinstance(attempt(own, "reports", "deliver").error, LockHeld)
        assert process(own, "reports", "deliver").returncode == 75
        told = tell(own, "reports", "resend", "1")
    assert told.code == 0
    assert "the run that is under way" in told.out
    engine.dispose()


def test_a_reader_that_has_seen_enough_is_no_error_of_the_database(folder: Path) -> None:
    reader = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    reader.wait()
    command = [sys.executable, "-m", "metaharvest", "log", "--csv", "--run", "1"]
    done = subprocess.run(
        command, cwd=folder, stdout=reader.stdin, stderr=subprocess.PIPE, text=True, check=False, timeout=60
    )
    assert reader.stdin is not None
    reader.stdin.close()
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.parametrize("command", ["log", "runs", "reports"])
def test_a_limit_beyond_all_numbers_is_a_usage_error(folder: Path, command: str) -> None:
    assert isinstance(attempt(folder, command, "--limit", "9" * 30).error, click.UsageError)


def test_a_report_is_shown_with_the_line_ends_of_this_machine(folder: Path) -> None:
    for form in ("--text", "--html"):
        assert b"\r" not in tell(folder, "reports", "show", "1", form).raw
    assert b"\r\n" in tell(folder, "reports", "show", "1", "--raw").raw


def test_a_site_keeps_its_past_when_it_is_renamed(own: Path) -> None:
    before = tell(own, "log", "--site", "alder-creek", "--json").json
    tell(own, "sites", "edit", "alder-creek", "--name", "alder-brook")
    assert tell(own, "log", "--site", "alder-brook", "--json").json == before
    assert tell(own, "log", "--site", "alder-creek", "--json").json == before
    assert tell(own, "log", "--run", "1", "--site", "alder-brook", "--json").json == before
    assert tell(own, "log", "--csv", "--site", "alder-brook").out


def test_a_site_that_takes_the_name_of_a_removed_one_does_not_take_its_past(own: Path) -> None:
    alder, basalt = (tell(own, "log", "--site", name, "--json").json for name in ("alder-creek", "basalt-flats"))
    tell(own, "sites", "remove", "alder-creek", "--yes")
    assert tell(own, "log", "--site", "alder-creek", "--json").json == alder
    tell(own, "sites", "edit", "basalt-flats", "--name", "alder-creek")
    assert tell(own, "log", "--site", "alder-creek", "--json").json == basalt
    tell(own, "sites", "remove", "alder-creek", "--yes")
    tell(own, "sites", "add", "alder-creek", "--list-url", "https://example.org/l.xml", "--contact", "a@example.org")
    assert tell(own, "log", "--site", "alder-creek", "--json").json == []


def test_the_log_of_a_site_that_was_never_harvested_is_empty(own: Path) -> None:
    tell(own, "sites", "add", "elder", "--list-url", "https://example.org/l.xml", "--contact", "a@example.org")
    for command in ("log", "documents", "reports"):
        assert tell(own, command, "--site", "elder", "--json").json == []
    assert tell(own, "log", "--site", "elder").out == "The log has nothing of that.\n"
    for options in ((), ("--all",), ("--level", "info")):
        header, *rows_of_it = tell(own, "log", "--site", "elder", "--csv", *options).out.splitlines()
        assert (header.startswith("\ufeff"), rows_of_it) == (True, [])
    assert "alder-creek, basalt-flats" in str(attempt(own, "log", "--run", "1", "--site", "elder").error)
