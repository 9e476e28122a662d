"""What every command needs: the settings, the database, the target, the clock; each made when it is first asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from metaharvest.settings import Settings
    from metaharvest.targets.embedded import EmbeddedTarget


class App:
    """One invocation of the command."""

    def __init__(self, config: Path | None) -> None:
        self.config = config

    @cached_property
    def settings(self) -> Settings:
        """The settings, checked. Raises SettingsError."""
        from metaharvest.settings import load

        return load(self.config)

    @cached_property
    def engine(self) -> Engine:
        """The database, with the tables of this program. Raises SettingsError, DatabaseError."""
        from metaharvest.database.engine import open_database, require_current

        engine = open_database(self.settings)
        require_current(engine)
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
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on stdout, cells cleaned of whatever a terminal would obey; on a pipe as wide as it needs to be."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from metaharvest.text import one_line

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
    from metaharvest.text import one_line

    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        click.echo(f"{name:<{width}}  {'' if value is None else one_line(str(value), 2000)}".rstrip())


def as_date(text: str | None) -> date | None:
    """A date written like 2026-11-20. Raises click.BadParameter."""
    if text is None:
        return None
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise click.BadParameter(f"'{text}' is not a date; write it like 2026-11-20") from None
