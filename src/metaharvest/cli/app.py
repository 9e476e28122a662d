"""What every command needs: the settings, the database, the target, the clock; each made when it is first asked for."""

from __future__ import annotations

import codecs
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.text import clean, one_line

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from metaharvest.config.settings import Settings
    from metaharvest.targets.embedded import EmbeddedTarget


ROWS = click.IntRange(1, 1_000_000_000)
"""How many rows may be asked for."""

_DAYS = (date(1970, 1, 1), date(9000, 1, 1))
"""Days on which a harvest can be meant; nearer the ends of the calendar there is no day before or after to count to."""


class App:
    """One invocation of the command."""

    def __init__(self, config: Path | None) -> None:
        self.config = config

    @cached_property
    def settings(self) -> Settings:
        """The settings, checked. Raises SettingsError."""
        from metaharvest.config.settings import load

        return load(self.config)

    @cached_property
    def engine(self) -> Engine:
        """The database, with the tables of this program. Raises SettingsError, DatabaseError."""
        from metaharvest.database.engine import open_database, require_current
        from metaharvest.errors import DatabaseError

        engine = open_database(self.settings)
        try:
            require_current(engine)
        except DatabaseError:
            engine.dispose()
            raise
        return engine

    @cached_property
    def target(self) -> EmbeddedTarget:
        """The configured target."""
        from metaharvest.database.engine import readers
        from metaharvest.targets.embedded import EmbeddedTarget

        return EmbeddedTarget(readers(self.engine))

    def close(self) -> None:
        """Let go of the database, where it was opened."""
        if "engine" in vars(self):
            self.engine.dispose()

    def now(self) -> datetime:
        """The time, in UTC."""
        return datetime.now(UTC)

    def today(self) -> date:
        """The date in the harvester's time zone."""
        return self.now().astimezone(self.settings.harvester.zone).date()


def print_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json_text(value, indent=2))


def json_text(value: object, indent: int | None = None) -> str:
    """`value` as JSON, dates and times as in ISO 8601; in ASCII where stdout has not every character, and escaped
    where a terminal would obey one."""
    encoding = codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name
    text = json.dumps(value, ensure_ascii=encoding != "utf-8", indent=indent, default=_as_text)
    return text if clean(text) == text else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    """A character as it may stand in JSON on a terminal."""
    return character if clean(character) == character else f"\\u{ord(character):04x}"


def _as_text(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout, cells cleaned of whatever a terminal would obey; on a pipe as wide as it needs to be."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=10_000)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if cell is None else one_line(str(cell), 2000)) for cell in row))
    console.print(table)


def print_fields(fields: Mapping[str, object]) -> None:
    """Names and values, one a line, on stdout."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        click.echo(f"{name:<{width}}  {'' if value is None else one_line(str(value), 2000)}".rstrip())


def as_date(text: str | None) -> date | None:
    """A date written like 2026-11-20. Raises click.BadParameter."""
    if text is None:
        return None
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        raise click.BadParameter(f"'{one_line(text)}' is not a date; write it like 2026-11-20") from None
    if not _DAYS[0] <= day <= _DAYS[1]:
        raise click.BadParameter(f"{day} is too far away; it must be from {_DAYS[0]} to {_DAYS[1]}")
    return day
