"""The documentation: pages made from the program are up to date, the site builds, what is shown can be typed."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from metaharvest.cli import cli
from metaharvest.rules import RULES, RULES_PAGE, anchor
from support.shown_commands import ROOT, shown_commands


@pytest.mark.parametrize("name", ["settings", "commands"])
def test_a_page_that_is_made_from_the_program_is_up_to_date(name: str) -> None:
    """`make docs` writes it."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == getattr(reference, name)()


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert (tmp_path / "index.html").is_file()
    # Reports link to the rules.
    anchors = set(re.findall(r'id="([^"]+)"', (tmp_path / RULES_PAGE).read_text(encoding="utf-8")))
    assert {anchor(rule) for rule in RULES} <= anchors
    # Nothing is fetched from elsewhere as people read it.
    pages = "".join(page.read_text(encoding="utf-8") for page in tmp_path.rglob("*.html"))
    assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//', pages)


def problem_with(line: str) -> str | None:
    """What is wrong with a command line; None if it names a command and options that are there."""
    line = re.split(r";|&&", line)[0]
    words = shlex.split(line.replace("[", " ").replace("]", " ").replace("|", " ").replace("'", ""), comments=True)
    command: click.Command = cli
    context = click.Context(cli)
    while words and words[0] == "--config":
        words = words[2:]
    while isinstance(command, click.Group) and words and re.fullmatch("[a-z-]+[,;:.]?", words[0]):
        if words[0].startswith("-"):
            break
        found = command.get_command(context, words[0].rstrip(",;:."))
        if found is None:
            return f"no command {words[0]}"
        command, words = found, words[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {
        "--help"
    }
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0].rstrip(",;:.") not in known]
    return f"no option {unknown[0]}" if unknown else None


def test_what_is_shown_can_be_typed() -> None:
    lines = list(shown_commands())
    assert len(lines) > 100
    wrong = {(where, line): problem for where, line in lines if (problem := problem_with(line))}
    assert wrong == {}


def test_no_page_has_the_marks_of_a_merge() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    marks = re.compile(r"^(?:<{7}|={7}|>{7})", re.MULTILINE)
    assert [page.name for page in pages if marks.search(page.read_text(encoding="utf-8"))] == []
