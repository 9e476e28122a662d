"""`metaharvest sites`: keeping the schedule."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from metaharvest.errors import ScheduleError
from support.cli import attempt, in_database, initialize, process, tell
from support.databases import TestDatabase, on_one_database
from support.harvester import settings_for

URL = "https://alder.example.org/list.xml"


@pytest.fixture
def folder(tmp_path: Path, database: TestDatabase) -> Path:
    if database.url:
        (tmp_path / "metaharvest.toml").write_text(settings_for(database.url), encoding="utf-8")
    initialize(tmp_path)
    tell(tmp_path, "sites", "add", "alder-creek", "--list-url", URL, "--contact", "a@example.org; b@example.org")
    return tmp_path


def shown(folder: Path, name: str = "alder-creek") -> dict[str, object]:
    view: dict[str, object] = tell(folder, "sites", "show", name, "--json").json
    return view


def test_a_site_needs_a_name_a_url_and_a_contact_and_is_then_due_today_and_every_day(folder: Path) -> None:
    site = shown(folder)
    assert site["next_harvest"] == datetime.now(UTC).date().isoformat()
    assert (site["every"], site["unit"], site["notify"], site["state"]) == (1, "days", "always", "due")
    assert site["contacts"] == ["a@example.org", "b@example.org"]


def test_every_option_of_a_new_site_is_kept(folder: Path) -> None:
    options = (
        "--every 3 --unit weeks --next 2030-02-28 --notify on-change --package-id-mismatch error "
        "--allow-network 10.1.0.0/16 --allow-network 192.168.1.7 --contact c@example.org --contact d@example.org"
    )
    tell(folder, "sites", "add", "elm", "--list-url", "http://e.example.org/l", *options.split())
    site = shown(folder, "elm")
    assert (site["every"], site["unit"], site["next_harvest"]) == (3, "weeks", "2030-02-28")
    assert (site["notify"], site["package_id_mismatch"]) == ("on-change", "error")
    assert site["allow_networks"] == ["10.1.0.0/16", "192.168.1.7/32"]
    assert site["contacts"] == ["c@example.org", "d@example.org"]
    assert site["state"] == "waiting"


@on_one_database
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://example.org/my list.xml", "the list URL contains a space; write it as %20"),
        ("https://example.org/list.xml\u200b", "contains the character U+200B (ZERO WIDTH SPACE); delete it"),
    ],
)
def test_an_address_with_a_space_or_an_invisible_character_says_so(folder: Path, url: str, said: str) -> None:
    told = attempt(folder, "sites", "add", "elm", "--list-url", url, "--contact", "a@example.org")
    assert said in str(told.error)


@on_one_database
def test_everything_wrong_with_a_new_site_is_told_at_once_and_nothing_is_registered(folder: Path) -> None:
    told = attempt(folder, "sites", "add", "elm", "--list-url", "ftp://x", "--contact", "nobody")
    assert isinstance(told.error, ScheduleError)
    assert "'ftp://x' is not a web address" in str(told.error)
    assert "'nobody' is not an email address" in str(told.error)
    assert len(tell(folder, "sites", "list", "--json").json) == 1


@on_one_database
@pytest.mark.parametrize(
    "options", [("--every", "100"), ("--unit", "Days"), ("--next", "tomorrow"), ("--allow-network", "10.0.0.0/99")]
)
def test_an_option_that_makes_no_sense_is_a_usage_error(folder: Path, options: tuple[str, str]) -> None:
    told = attempt(folder, "sites", "edit", "alder-creek", *options)
    assert isinstance(told.error, click.BadParameter)
    assert options[1] in told.error.format_message()


def test_a_name_is_given_once(folder: Path) -> None:
    again = attempt(folder, "sites", "add", "alder-creek", "--list-url", URL, "--contact", "a@example.org")
    assert "already" in str(again.error)
    tell(folder, "sites", "add", "elm", "--list-url", f"{URL}?elm", "--contact", "a@example.org")
    renamed = attempt(folder, "sites", "edit", "elm", "--name", "alder-creek")
    assert isinstance(renamed.error, ScheduleError)
    assert "already" in str(renamed.error)


def test_credentials_in_a_list_url_are_kept_and_not_shown(folder: Path) -> None:
    tell(folder, "sites", "edit", "alder-creek", "--list-url", "https://me:secret@alder.example.org/list.xml")
    for arguments in (("list",), ("list", "--json"), ("show", "alder-creek"), ("show", "alder-creek", "--json")):
        out = tell(folder, "sites", *arguments).out
        assert "secret" not in out
        assert "https://alder.example.org/list.xml" in out
    rows = in_database(folder, "SELECT documentlisturl FROM harvest_site_schedule")
    assert rows == [("https://me:secret@alder.example.org/list.xml",)]


def test_edit_changes_what_is_named_and_nothing_else(folder: Path) -> None:
    before = shown(folder)
    tell(folder, "sites", "edit", "alder-creek", "--name", "alder", "--every", "2", "--unit", "months")
    after = shown(folder, "alder")
    assert (after["every"], after["unit"], after["frequency"]) == (2, "months", "every 2 months")
    changed = dict.fromkeys(("name", "site", "every", "unit", "frequency"))
    assert {**after, **changed} == {**before, **changed}


@on_one_database
def test_a_site_s_own_options_are_changed_one_by_one_and_taken_back(folder: Path) -> None:
    tell(folder, "sites", "edit", "alder-creek", "--allow-network", "10.0.0.0/8")
    tell(folder, "sites", "edit", "alder-creek", "--package-id-mismatch", "error")
    site = shown(folder)
    assert (site["allow_networks"], site["package_id_mismatch"]) == (["10.0.0.0/8"], "error")
    tell(folder, "sites", "edit", "alder-creek", "--allow-network", "none", "--package-id-mismatch", "as-settings")
    site = shown(folder)
    assert (site["allow_networks"], site["package_id_mismatch"]) == ([], "as-settings")


@on_one_database
def test_an_edit_of_nothing_is_a_usage_error(folder: Path) -> None:
    assert isinstance(attempt(folder, "sites", "edit", "alder-creek").error, click.UsageError)


def test_a_site_is_switched_off_and_on(folder: Path) -> None:
    tell(folder, "sites", "disable", "alder-creek")
    assert shown(folder)["state"] == "off"
    tell(folder, "sites", "enable", "alder-creek")
    assert shown(folder)["state"] == "due"


@on_one_database
def test_a_site_long_past_its_date_is_shown_as_overdue_once_a_run_could_not_harvest_it(folder: Path) -> None:
    """As the reports and the doctor have it: where no run came, it is no site that is late."""
    past = (datetime.now(UTC) - timedelta(days=9)).date().isoformat()
    tell(folder, "sites", "edit", "alder-creek", "--list-url", "http://127.0.0.1:9/list.xml")
    in_database(folder, "UPDATE harvest_site_schedule SET datenextharvest = ?", past)
    assert shown(folder)["state"] == "due"
    tell(folder, "run")
    assert shown(folder)["state"] == f"overdue since {past}"
    assert f"alder-creek has been due since {past}" in attempt(folder, "doctor").out
    assert f"overdue since {past}" in tell(folder, "sites", "list").out


def test_a_broken_row_is_listed_with_what_is_wrong_and_can_be_mended(folder: Path) -> None:
    in_database(folder, "UPDATE harvest_site_schedule SET unit = 'fortnights', contact_email = NULL")
    told = tell(folder, "sites", "list")
    assert "broken" in told.out
    assert "alder-creek: unit is 'fortnights'" in told.out
    assert "there is no contact" in told.out
    half = attempt(folder, "sites", "edit", "alder-creek", "--unit", "weeks")
    assert "there is no contact" in str(half.error)
    tell(folder, "sites", "edit", "alder-creek", "--unit", "weeks", "--contact", "c@example.org")
    assert shown(folder)["problems"] == []


def test_a_broken_row_is_shown_as_it_is(folder: Path) -> None:
    in_database(folder, "UPDATE harvest_site_schedule SET updatefrequency = 0, options = 'nonsense'")
    site = shown(folder)
    assert (site["state"], site["every"], site["options"]) == ("broken", 0, "nonsense")
    assert len(site["problems"]) == 2  # type: ignore[arg-type]


def test_a_removed_site_needs_a_yes_and_is_gone(folder: Path) -> None:
    asked = attempt(folder, "sites", "remove", "alder-creek")
    assert isinstance(asked.error, click.UsageError)
    assert "--yes" in asked.error.format_message()
    told = tell(folder, "sites", "remove", "alder-creek", "--yes")
    assert "history stays" in told.out
    assert tell(folder, "sites", "list", "--json").json == []


def test_an_empty_schedule_says_how_to_add_a_site(tmp_path: Path) -> None:
    initialize(tmp_path)
    assert "sites add" in tell(tmp_path, "sites", "list").out


@on_one_database
@pytest.mark.parametrize("verb", ["show", "enable", "disable", "remove", "edit"])
def test_an_unknown_site_is_answered_with_the_known_ones(folder: Path, verb: str) -> None:
    told = attempt(folder, "sites", verb, "elder-creek")
    assert isinstance(told.error, ScheduleError)
    assert "alder-creek" in str(told.error)


@on_one_database
def test_an_unknown_site_ends_with_exit_code_2(folder: Path) -> None:
    done = process(folder, "sites", "show", "elder-creek")
    assert done.returncode == 2
    assert done.stderr == "There is no site named 'elder-creek'. Known sites: alder-creek.\n"


@on_one_database
def test_a_command_to_paste_is_quoted_for_the_shell(folder: Path) -> None:
    url = "https://elm.example.org/list?a=1&b=2"
    out = tell(folder, "sites", "add", "elm", "--list-url", url, "--contact", "a@example.org").out
    assert f" check '{url}'" in out


def test_what_is_wrong_with_a_row_is_shown_on_one_line_without_control_characters(folder: Path) -> None:
    in_database(folder, "UPDATE harvest_site_schedule SET contact_email = ?", "x\x1b[31m\ny@")
    for command in (("list",), ("show", "alder-creek")):
        problem = tell(folder, "sites", *command).out.splitlines()[-1]
        assert "is not an email address" in problem
        assert "\x1b" not in problem


@on_one_database
@pytest.mark.parametrize(
    "command", ["add new --list-url https://elm.example.org/l --contact a@b.org", "edit alder-creek"]
)
def test_a_next_harvest_in_the_past_is_refused_with_what_is_right(folder: Path, command: str) -> None:
    today = datetime.now(UTC).date()
    told = attempt(folder, "sites", *command.split(), "--next", "2020-01-01")
    assert isinstance(told.error, click.UsageError)
    assert "2020-01-01 is past; give today, " in told.error.message
    assert len(tell(folder, "sites", "list", "--json").json) == 1
    assert tell(folder, "sites", *command.split(), "--next", str(today)).code is None


@on_one_database
def test_a_new_frequency_that_begins_far_away_is_taken_with_a_warning(folder: Path) -> None:
    edit, following = ("sites", "edit", "alder-creek"), datetime.now(UTC).date() + timedelta(days=80)
    quarterly = ("--unit", "months", "--every", "3", "--next", str(following))
    assert tell(folder, *edit, *quarterly).err == ""
    said = tell(folder, *edit, "--unit", "days", "--every", "1")
    assert f"Changed alder-creek: next harvest {following}, then every day." in said.out
    assert f"alder-creek: the next harvest, {following}, is 80 days from today" in " ".join(said.err.split())
    assert tell(folder, *edit, "--notify", "never").err == ""


@on_one_database
@pytest.mark.parametrize(
    "command", ["add new --list-url https://elm.example.org/l --contact a@b.org", "edit alder-creek"]
)
def test_a_next_harvest_that_is_far_away_is_taken_with_a_warning(folder: Path, command: str) -> None:
    today = datetime.now(UTC).date()
    far = today + timedelta(days=365_000)
    said = tell(folder, "sites", *command.split(), "--next", str(far))
    assert said.code is None
    assert f": the next harvest, {far}, is 365,000 days from today, which is {today}." in " ".join(said.err.split())
    assert str(far) in tell(folder, "sites", "list", "--json").out
    near = tell(folder, "sites", "edit", "alder-creek", "--next", str(today + timedelta(days=1)))
    assert "warning" not in near.err


@on_one_database
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_a_date_at_an_end_of_the_calendar_is_refused(folder: Path, day: str) -> None:
    told = attempt(folder, "sites", "edit", "alder-creek", "--next", day)
    assert isinstance(told.error, click.BadParameter)
    assert "too far away" in told.error.message


@on_one_database
def test_a_terminal_without_some_characters_shows_what_it_can_and_gets_all_of_the_json(folder: Path) -> None:
    tell(folder, "sites", "edit", "alder-creek", "--name", "Źródło ☀")
    table = process(folder, "sites", "list", PYTHONIOENCODING="ascii")
    assert (table.returncode, table.stderr) == (0, "")
    assert "a@example.org" in table.stdout
    listed = process(folder, "sites", "list", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(listed.stdout)[0]["name"] == "Źródło ☀"


@on_one_database
def test_bytes_that_are_no_text_are_a_usage_error(folder: Path) -> None:
    said = process(folder, "log", "--site", "\udcff")
    assert said.returncode == 2
    assert "is not text in this terminal's encoding" in said.stderr


@on_one_database
def test_output_that_cannot_be_written_is_told(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        said = subprocess.run(
            [sys.executable, "-m", "metaharvest", "sites", "list"],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
    assert said.returncode == 1
    assert "No space left" in said.stderr
    assert "Traceback" not in said.stderr


@on_one_database
def test_a_certificate_file_in_a_home_folder_that_is_not_there_is_refused_in_a_sentence(folder: Path) -> None:
    told = attempt(folder, "sites", "edit", "alder-creek", "--ca-file", "~nosuchuser/ca.pem")
    assert isinstance(told.error, ScheduleError)
    assert "no such home folder; write the path out in full" in str(told.error)
    assert shown(folder)["ca_file"] is None


@on_one_database
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("sites import -", "The first line names no column `name`"),
        ("contacts forget anna@example.org", "Nobody is here to ask"),
        ("target transfer --from-file - alder", "standard input names no document"),
    ],
)
def test_without_a_standard_input_there_is_a_sentence(folder: Path, command: str, sentence: str) -> None:
    line = f"{shlex.quote(sys.executable)} -m metaharvest {command} <&-"
    done = subprocess.run(line, shell=True, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr
