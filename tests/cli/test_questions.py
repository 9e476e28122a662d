"""Every command of docs/questions.md is run as it is written, and answers."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from metaharvest.demo.samples import SampleNetwork
from support.cli import tell

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"
ROW = re.compile(
    r"^\| (?P<question>.+\?) \| `(?P<command>metaharvest [^`|]+)` \| (?:–|`(?P<page>[^`|]+)`) \|$", re.MULTILINE
)
NIGHTS = ("2026-11-20", "2026-11-21", "2026-11-22")
"""The nights of the page; a test has the last three days instead, since some commands answer about this year."""
NO_ANSWER = ("The log has nothing of that", "There is no such document.", "0 documents", "No site was harvested")


def commands() -> list[str]:
    return [row["command"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))]


def last_nights() -> dict[str, str]:
    """The last three days for the nights of the page, and the year of the last day."""
    today = datetime.now(UTC).date()
    days = {night: str(today - timedelta(days=2 - number)) for number, night in enumerate(NIGHTS)}
    return days | {day: f"{today.year}{day[4:]}" for day in ("2026-01-01", "2026-12-31")}


def three_nights(folder: Path, days: Iterable[str]) -> None:
    """Three nights of some of the sample network."""
    tell(folder, "init")
    with SampleNetwork() as network:
        for name in ("alder-creek", "basalt-flats", "elm-ridge"):
            options = ["--contact", f"{name}@example.org", "--allow-network", "127.0.0.0/8"]
            tell(folder, "sites", "add", name, "--list-url", network.list_url(name), *options)
        tell(folder, "sites", "disable", "elm-ridge")
        for night, day in enumerate(days, start=1):
            network.night = night
            tell(folder, "run", "--force", "--date", day)
    (folder / "moved.txt").write_text("ren-alder.2\nren-alder.3\n")


def test_the_page_has_questions_of_all_kinds() -> None:
    assert len(commands()) > 25
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if "`metaharvest " in line]
    assert len(rows) == len(commands())
    named = {command.split()[1] for command in commands()}
    assert named == {
        "documents",
        "log",
        "sites",
        "runs",
        "diff",
        "reports",
        "target",
        "database",
        "doctor",
        "problems",
        "figures",
        "year",
        "export",
    }


def test_each_command_answers_as_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = last_nights()
    three_nights(tmp_path, [days[night] for night in NIGHTS])
    monkeypatch.chdir(tmp_path)
    for line in commands():
        command = re.sub(r"\d{4}-\d\d-\d\d", lambda day: days[day[0]], line)
        told = tell(tmp_path, *shlex.split(command)[1:])
        assert told.code in (0, None) or command == "metaharvest doctor", command
        assert told.out.strip(), command
        assert [words for words in NO_ANSWER if words in told.out] == [], command
        assert "--csv" not in command or len(told.out.splitlines()) > 1, command
