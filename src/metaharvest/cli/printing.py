"""The output of commands: a JSON document, names and values, a line, a page in the browser; safe for the terminal.

tables.py prints tables.
"""

from __future__ import annotations

import codecs
import json
import os
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path

import click

from metaharvest.text import clean, one_line

_MOST_CHARACTERS = 2000
"""The most characters of one cell, or one line."""

_SPOOLED_AT_ONCE = 1_000_000
"""The number of characters that are printed at once."""


def print_json(value: object) -> None:
    """Print one JSON document on stdout."""
    click.echo(json_text(value))


def print_json_rows(rows: Iterable[object]) -> None:
    """Print the list of these rows as one JSON document, in bounded memory: all of it, or nothing if one fails."""
    import tempfile

    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as spool:
        number = 0
        for number, row in enumerate(rows, start=1):
            spool.write("[\n" if number == 1 else ",\n")
            spool.write("  " + json_text(row).replace("\n", "\n  "))
        spool.write("\n]" if number else "[]")
        spool.seek(0)
        while part := spool.read(_SPOOLED_AT_ONCE):
            click.echo(part, nl=False)
    click.echo()


def print_csv(chunks: Generator[str, None, None]) -> None:
    """Print a table on stdout, in UTF-8; the generator is closed, also after a failure."""
    with closing(chunks):
        for chunk in chunks:
            click.echo(chunk.encode("utf-8", "replace"), nl=False)


def json_text(value: object) -> str:
    """`value` as JSON, dates and times as in ISO 8601.

    In ASCII if stdout does not have every character; characters that control a terminal are escaped.
    """
    from metaharvest.queries.json_keys import as_json

    encoding = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    text = json.dumps(value, ensure_ascii=encoding != "utf-8", indent=2, default=as_json)
    return text if clean(text) == text else "".join(map(_escaped, text))


def print_fields(fields: Mapping[str, object]) -> None:
    """Print names and values, one a line, on stdout."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        click.echo(f"{name:<{width}}  {cell_text(value)}".rstrip())


def print_line(text: str, *, err: bool = False, indent: int = 0) -> None:
    """Print `text` on one line of stdout or stderr, cleaned; `indent`: the blanks before it."""
    click.echo(" " * indent + one_line(text, _MOST_CHARACTERS), err=err)


def stamp(moment: datetime | None) -> str:
    """A timestamp in tables, in UTC: `2026-11-20 03:00`."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def cell_text(value: object) -> str:
    """A value in a cell of a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return "" if value is None else one_line(text, _MOST_CHARACTERS)


def _escaped(character: str) -> str:
    """The escape of a character in JSON on a terminal."""
    return character if clean(character) == character else f"\\u{ord(character):04x}"


def new_page(name: str) -> Path:
    """A new, empty file for a page; it stays, as the program cannot know when the browser has read it."""
    import tempfile

    descriptor, file = tempfile.mkstemp(prefix=f"metaharvest-{name}-", suffix=".html")
    os.close(descriptor)
    return Path(file)


def opened(file: Path) -> str:
    """Open the page, and return a sentence about it; if there is no browser, the sentence names the file."""
    import webbrowser

    done = webbrowser.open(file.resolve().as_uri())
    said = "The page is open in your browser" if done else "No browser could be opened; the page is here"
    return f"{said}: {file.resolve()}"
