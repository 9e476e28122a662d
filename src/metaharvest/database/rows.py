"""Inserts rows by the hundred, without a look at each value of each row.

Statements are SQLAlchemy's, and so is what its types make of values. But a statement is compiled once, and values are
converted a column at a time, where there is anything to convert: SQLAlchemy's own way takes as long as SQLite itself.
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
    """Insert rows, all with the same columns, two or more; `same` are further columns, alike in all rows.

    What is in neither is left to the database: the defaults of the models are not asked.
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
    """The statement as the driver takes it; the columns in its order, with what converts their values, if anything."""
    columns = [column for column in table.columns if column.name in names]
    # Inline: what numbers the database gives to the rows is not asked for.
    compiled = insert(table).inline().compile(dialect=dialect, column_keys=[column.name for column in columns])
    return str(compiled), {column.name: column.type.dialect_impl(dialect).bind_processor(dialect) for column in columns}
