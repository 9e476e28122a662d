"""How commands print: one JSON document, a table, names and values; safe for the terminal they end up on."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import date, datetime

import click

from metaharvest.text import clean, one_line

_MOST_CHARACTERS = 2000
"""Of one cell, or one line."""


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json_text(value, indent=2))


def json_text(value: object, indent: int | None = None) -> str:
    """`value` as JSON, dates and times as in ISO 8601.

    In ASCII if stdout does not have every character; characters that control a terminal are escaped.
    """
    encoding = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    text = json.dumps(value, ensure_ascii=encoding != "utf-8", indent=indent, default=_as_text)
    return text if clean(text) == text else "".join(map(_escaped, text))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout, cells cleaned of what controls a terminal; on a pipe as wide as it needs to be."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 10_000
    columns = (Column(heading, overflow="fold") for heading in headings)
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(Text(_cell(cell)) for cell in row))
    console.print(table)


def print_fields(fields: Mapping[str, object]) -> None:
    """Names and values, one a line, on stdout."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        click.echo(f"{name:<{width}}  {_cell(value)}".rstrip())


def print_line(text: str, *, err: bool = False, indent: int = 0) -> None:
    """`text` on one line of stdout or stderr, cleaned, after so many blanks."""
    click.echo(" " * indent + one_line(text, _MOST_CHARACTERS), err=err)


def stamp(moment: datetime | None) -> str:
    """A timestamp as tables show it, in UTC: `2026-11-20 03:00`."""
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return "" if value is None else one_line(text, _MOST_CHARACTERS)


def _escaped(character: str) -> str:
    """A character as it may stand in JSON on a terminal."""
    return character if clean(character) == character else f"\\u{ord(character):04x}"


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)
