"""Inserts many rows at once, quicker than SQLAlchemy does.

Statements and conversions of values are SQLAlchemy's. But a statement is compiled once, and values are converted column
by column, and only in columns that need it: SQLAlchemy handles each value of each row, for as long as SQLite works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, Table, insert

Columns = Mapping[str, object]

_NONE: Columns = {}


def insert_rows(connection: Connection, table: Table, rows: Sequence[Columns], same: Columns = _NONE) -> None:
    """Insert `rows`, which all have the same two or more columns; `same` has the columns with one value for all rows.

    Columns in neither get the database's default; defaults of the models are not applied.
    """
    given = tuple(rows[0])
    statement, conversions = _prepared(connection.dialect, table, (*given, *same))
    values: dict[str, Iterable[Any]] = dict(zip(given, zip(*map(itemgetter(*given), rows), strict=True), strict=True))
    for name, convert in conversions.items():
        if name in same:
            values[name] = repeat(convert(same[name]) if convert else same[name], len(rows))
        elif convert:
            values[name] = map(convert, values[name])
    ready: list[Any] = list(zip(*(values[name] for name in conversions), strict=True))
    if not connection.dialect.positional:
        ready = [dict(zip(conversions, row, strict=True)) for row in ready]
    connection.exec_driver_sql(statement, ready)


@lru_cache(maxsize=64)
def _prepared(
    dialect: Dialect, table: Table, names: tuple[str, ...]
) -> tuple[str, Mapping[str, Callable[[Any], Any] | None]]:
    """The statement for the driver, and its columns in order, each with the function that converts values, if any."""
    columns = [column for column in table.columns if column.name in names]
    # Inline: the statement does not return the keys of the new rows.
    compiled = insert(table).inline().compile(dialect=dialect, column_keys=[column.name for column in columns])
    return str(compiled), {column.name: column.type.dialect_impl(dialect).bind_processor(dialect) for column in columns}
