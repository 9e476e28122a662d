"""Writes the pages that are made from the program: docs/settings.md and docs/commands.md.

`python docs/reference.py settings` prints the one, `python docs/reference.py commands` the other.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from metaharvest.cli import cli
from metaharvest.config.paths import data_folder


def settings() -> str:
    """The settings file that `init` writes, as a page."""
    text = (data_folder("templates") / "metaharvest.toml").read_text(encoding="utf-8")
    return (
        "# Settings\n\n"
        "<!-- Made by `make docs` from templates/metaharvest.toml: change that. -->\n\n"
        "This is the file that `metaharvest init` writes. Every key has its default there.\n\n"
        f"```toml\n{text}```\n"
    )


def commands() -> str:
    """The help of every command, as a page."""
    pages = "\n".join(_commands(cli, ("metaharvest",)))
    return (
        "# Commands\n\n"
        "<!-- Made by `make docs` from the program's help: change that. -->\n\n"
        f"What `metaharvest COMMAND --help` says.\n\n{pages}"
    )


def _commands(command: click.Command, words: tuple[str, ...]) -> Iterator[str]:
    help_options = command.context_settings.get("help_option_names", ["-h", "--help"])
    context = click.Context(command, info_name=" ".join(words), terminal_width=100, help_option_names=help_options)
    help_text = "\n".join(line.rstrip() for line in command.get_help(context).splitlines())
    yield f"{'#' * min(len(words) + 1, 3)} {' '.join(words)}\n\n```text\n{help_text}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            each = command.get_command(context, name)
            assert each is not None
            yield from _commands(each, (*words, name))


if __name__ == "__main__":
    sys.stdout.write({"settings": settings, "commands": commands}[sys.argv[1]]())
