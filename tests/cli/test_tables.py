"""Tables on a terminal: a narrow one shows fewer columns, and never breaks a name."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

import pytest

from metaharvest.cli.invocation import OutputForm
from metaharvest.cli.printing import Column, Fitted, fit, json_text, print_for_program
from metaharvest.cli.target_copy import _print
from metaharvest.model import Finding
from metaharvest.replication.result import CopyOutcome, CopyRequest, CopyResult, NotCopied
from metaharvest.text import clean
from support.fork_server import ForkedPopen
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer

COLUMNS = (Column("site"), Column("state", 1), Column("trend", 3), Column("why", 2, wrap=True))
CELLS = [["alder-creek", "waiting", "0 0 0", "word " * 20], ["basalt-flats-of-the-north", "due", "", ""]]
"""In full, the columns are 25, 7, 5 and 100 characters wide."""


def shown(columns: Fitted) -> list[str]:
    return [COLUMNS[place].heading for place in columns.shown]


def test_text_for_people_needs_no_table() -> None:
    assert not print_for_program(OutputForm.TEXT, [], pytest.fail)


@pytest.mark.parametrize(
    ("room", "headings", "width"),
    [
        (None, ["site", "state", "trend", "why"], 143),
        (200, ["site", "state", "trend", "why"], 143),
        (80, ["site", "state", "trend", "why"], 80),
        (66, ["site", "state", "why"], 66),
        (50, ["site", "state"], 34),
        (30, ["site"], 25),
        (10, ["site"], 25),
    ],
)
def test_columns_without_room_are_left_out_and_sentences_wrap(room: int, headings: list[str], width: int) -> None:
    fitted = fit(COLUMNS, CELLS, room)

    assert shown(fitted) == headings
    assert sum(fitted.widths) + 2 * (len(headings) - 1) == width
    assert sorted(fitted.shown + fitted.left_out) == [0, 1, 2, 3]


def test_letters_of_two_columns_count_as_two() -> None:
    assert fit([Column("site")], [["溪流生態"]], 80).widths == (8,)


@pytest.fixture
def harvester(tmp_path: Path) -> Harvester:
    made = Harvester(tmp_path)
    made.add_site("alder-creek-of-the-river", "https://alder.example.org/list.xml")
    made.add_site("moss", "https://moss.example.org/list.xml", contact_email="a@moss.example.org, b@moss.example.org")
    return made


def on_a_terminal(harvester: Harvester, width: int, *arguments: str) -> list[str]:
    """The lines of a command on a terminal of this width."""
    plain = re.sub(
        r"\x1b\[[0-9;]*m", "", printed_on_a_terminal(harvester, width, *arguments)
    )  # what makes headings bold
    return plain.replace("\r", "").splitlines()


def printed_on_a_terminal(harvester: Harvester, width: int, *arguments: str) -> str:
    """The output of a command on a terminal of this width."""
    terminal, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    command = [sys.executable, "-m", "metaharvest", "--config", str(harvester.config), *arguments]
    others = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment = {**others, "TERM": "xterm", "NO_COLOR": "1"}
    process = ForkedPopen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    printed = b""
    try:
        while part := os.read(terminal, 10_000):
            printed += part
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(terminal)
    process.wait()
    return printed.decode()


def test_doctor_has_no_colours_if_nobody_wants_them(harvester: Harvester) -> None:
    assert "\x1b[3" not in printed_on_a_terminal(harvester, 80, "doctor")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_name_is_broken_on_a_narrow_terminal(harvester: Harvester, width: int) -> None:
    lines = on_a_terminal(harvester, width, "sites", "list")

    assert [line.split()[0] for line in lines[:3]] == ["site", "alder-creek-of-the-river", "moss"]
    assert max(len(line.rstrip()) for line in lines[:3]) <= width, lines
    assert lines[3].startswith("No room for: ")
    assert "contacts, list. --wide shows all columns" in lines[3]


def test_all_columns_or_those_that_are_named_can_be_asked_for(harvester: Harvester) -> None:
    wide = on_a_terminal(harvester, 60, "sites", "list", "--wide")
    assert "https://alder.example.org/list.xml" in wide[1]
    assert len(wide) == 3
    named = on_a_terminal(harvester, 60, "sites", "list", "--columns", "List,site,last_harvest")
    assert named[0].split() == ["list", "site", "last", "harvest"]
    assert named[2].split() == ["https://moss.example.org/list.xml", "moss"]


def test_a_pipe_gets_all_columns(harvester: Harvester) -> None:
    assert "a@moss.example.org, b@moss.example.org" in harvester("sites", "list").out


def test_a_column_that_is_not_there_is_a_mistake(harvester: Harvester) -> None:
    answer = harvester("sites", "list", "--columns", "site,colour")
    assert answer.code == 2
    assert "There is no column 'colour'. The columns are: site, state, last harvest, " in answer.err


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (110, "a.2.1  {size}  2026-11-20 03:00  elm  " + "Moss " * 12),
        (80, "a.2.1  {size}  2026-11-20 03:00  elm  Moss Moss Moss Moss Moss Moss Moss"),
        (50, "a.2.1  elm  Moss Moss"),
        (20, "a.2.1  elm"),
    ],
)
def test_a_list_of_documents_shows_of_a_title_what_there_is_room_for(
    tmp_path: Path, server: HttpServer, width: int, line: str
) -> None:
    made = Harvester(tmp_path)
    path = server.serve("/x.xml", eml("a.2.1", ("Moss " * 12).strip()))
    made.add_site("elm", publish(server, "a.1.1", also=[("a.2.1", path)]))
    made.run("2026-11-20")
    made.rows("UPDATE document_revision SET inserted_at = '2026-11-20 03:00:00.000000'")
    lines = on_a_terminal(made, width, "target", "list")
    expected = line.format(size=f"{len(eml('a.2.1', ('Moss ' * 12).strip()))} bytes").rstrip()
    assert lines[1].startswith(expected)
    assert max(map(len, lines[:2])) <= width
    assert lines[1].endswith("…") == (width in (80, 50))


@pytest.mark.parametrize("character", ["\x9b", "\u202e", "\U000e0001", "\U0001f600"])
def test_json_with_escaped_characters_is_json(character: str) -> None:
    text = json_text({"title": character})
    assert clean(text) == text
    assert json.loads(text) == {"title": character}


def test_revisions_left_for_the_next_copy_are_not_taken_off_the_problems(capsys: pytest.CaptureFixture[str]) -> None:
    left, refused = CopyOutcome.LEFT, CopyOutcome.REFUSED
    finding = Finding("target.refused", "The target refuses it.")
    shown = [NotCopied("a.1", number, left if number < 10 else refused, finding) for number in range(35)]
    result = CopyResult("one", "two", 1, {left: 10, refused: 25}, 0, "", reached_limit=False)
    _print(CopyRequest("one", "two"), result, shown, None)
    assert "And 15 more;" in capsys.readouterr().out
