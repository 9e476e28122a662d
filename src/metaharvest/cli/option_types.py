"""What several commands' options take: a number of rows, a day."""

from __future__ import annotations

from datetime import date

import click

from metaharvest.text import one_line

ROWS = click.IntRange(1, 1_000_000_000)
"""How many rows may be asked for."""

_DAYS = (date(1970, 1, 1), date(9000, 1, 1))
"""Days on which a harvest can be meant; nearer the ends of the calendar there is no day before or after to count to."""


def day(_context: click.Context, _parameter: click.Parameter, text: str | None) -> date | None:
    """An option's value, written like 2026-11-20, as a date. Raises click.BadParameter."""
    if text is None:
        return None
    try:
        found = date.fromisoformat(text.strip())
    except ValueError:
        raise click.BadParameter(f"'{one_line(text)}' is not a date; write it like 2026-11-20") from None
    if not _DAYS[0] <= found <= _DAYS[1]:
        raise click.BadParameter(f"{found} is too far away; it must be from {_DAYS[0]} to {_DAYS[1]}")
    return found
