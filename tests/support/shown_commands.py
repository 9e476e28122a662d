"""The command lines that the documentation shows, and those that the program itself names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from metaharvest.cli import cli
from metaharvest.model.actions import ACTIONS

ROOT = Path(__file__).parents[2]
MADE = ("settings.md", "commands.md", "rules.md")
"""Pages made from the program, which its own texts are in."""

PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if page.name not in MADE]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PROGRAM = "the program"
"""Where a command line is shown that the program itself names: in its texts, and in the table of actions."""

HELP = "the help"
"""Where a command line is shown that is an example in the help of a command."""

SHOWN = re.compile(r"(?:^|[\s`(;&|])(?:\S*/)?metaharvest ((?:--config \S+ )?[a-z][a-z-]*\b[^`\n]*)")
"""A command line as it is shown: in a block of its own, or in the text between backticks."""


def shown_commands() -> Iterator[tuple[str, str]]:
    """Where a command line is shown, the name of a page, PROGRAM or HELP, and what follows `metaharvest`."""
    for page in PAGES:
        for text in shown_texts(page):
            yield from ((page.name, match[1]) for match in SHOWN.finditer(text))
    for source in SOURCES:
        text = source.read_text(encoding="utf-8")
        yield from ((PROGRAM, match[1]) for match in re.finditer(r"`metaharvest ([a-z][^`{}\n]*)`", text))
    yield from ((PROGRAM, command) for command, _ in ACTIONS.values())
    for command in commands(cli):
        texts = f"{command.help}\n{command.epilog}"
        yield from ((HELP, match[1]) for match in re.finditer(r"^ *(?:Example: )?metaharvest ([a-z].*)$", texts, re.M))


def commands(group: click.Group) -> Iterator[click.Command]:
    """The commands of a group, and those of the groups in it, with their examples."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield command
        if isinstance(command, click.Group):
            yield from commands(command)


def shown_texts(page: Path) -> Iterator[str]:
    """What a page shows as it is to be typed: the lines of its blocks, and what stands between backticks."""
    in_block = False
    for line in re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8")).splitlines():
        if line.startswith("```"):
            in_block = not in_block
        elif in_block or line.startswith("    "):
            yield line
        else:
            yield from (f" {part}" for part in re.findall(r"`([^`]*)`", line))
