"""Inserts many rows at once, quicker than SQLAlchemy does.

Statements and conversions of values are SQLAlchemy's. But a statement is compiled once, and values are converted column
by column, and only in columns that need it: SQLAlchemy handles each value of each row, for as long as SQLite works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Dialect, LargeBinary, Table, insert, text

from metaharvest.database.base import Identifier
from metaharvest.database.batches import batches_by_size

Columns = Mapping[str, object]

_NONE: Columns = {}
_PORTION = 200_000
"""Characters or bytes in the values of one statement for MariaDB and MySQL, which limit its size."""
_PORTION_ROWS = 200


def insert_rows(connection: Connection, table: Table, rows: Sequence[Columns], same: Columns = _NONE) -> None:
    """Insert `rows`, which all have the same two or more columns; `same` has the columns with one value for all rows.

    Columns in neither get the database's default; defaults of the models are not applied.
    """
    statement, ready = _ready(connection.dialect, table, rows, same)
    connection.exec_driver_sql(statement, ready)


def insert_numbered(connection: Connection, table: Table, rows: Sequence[Columns], same: Columns = _NONE) -> list[int]:
    """Insert `rows` like insert_rows(); return their numbers, which the database gives, in the order of the rows.

    Other connections may insert into the table at the same time.
    """
    if connection.dialect.name == "sqlite":
        # AUTOINCREMENT counts on by one, and the first INSERT of a transaction takes the only write lock.
        insert_rows(connection, table, rows, same)
        last = connection.exec_driver_sql("SELECT last_insert_rowid()").scalar_one()
        return list(range(last - len(rows) + 1, last + 1))
    if connection.dialect.name == "postgresql":
        [key] = table.primary_key.columns
        sequence = {"table": table.name, "key": key.name, "rows": len(rows)}
        numbers = list(connection.scalars(_FROM_SEQUENCE, sequence))
        insert_rows(connection, table, [{key.name: each, **row} for each, row in zip(numbers, rows, strict=True)], same)
        return numbers
    numbers = []
    for portion in batches_by_size(rows, _PORTION, _size_of, _PORTION_ROWS):
        # The numbers of one INSERT with VALUES follow one another, in each innodb_autoinc_lock_mode:
        # https://dev.mysql.com/doc/refman/8.0/en/innodb-auto-increment-handling.html
        statement, ready = _ready(connection.dialect, table, portion, same)
        head, one = statement.partition(" VALUES ")[0], f"({', '.join(['%s'] * len(ready[0]))})"
        values = tuple(chain.from_iterable(row.values() for row in ready))
        connection.exec_driver_sql(f"{head} VALUES {', '.join([one] * len(ready))}", values)
        first, step = connection.exec_driver_sql("SELECT last_insert_id(), @@auto_increment_increment").one()
        numbers += range(first, first + step * len(portion), step)
    return numbers


_FROM_SEQUENCE = text("SELECT nextval(pg_get_serial_sequence(:table, :key)) FROM generate_series(1, :rows)")


def _size_of(row: Columns) -> int:
    return sum(len(value) for value in row.values() if isinstance(value, str | bytes))


def _ready(dialect: Dialect, table: Table, rows: Sequence[Columns], same: Columns) -> tuple[str, list[Any]]:
    """The statement for one row, and the values of each row as the driver takes them."""
    given = tuple(rows[0])
    statement, conversions = _prepared(dialect, table, (*given, *same))
    values: dict[str, Iterable[Any]] = dict(zip(given, zip(*map(itemgetter(*given), rows), strict=True), strict=True))
    for name, convert in conversions.items():
        if name in same:
            values[name] = repeat(convert(same[name]) if convert else same[name], len(rows))
        elif convert and isinstance(table.c[name].type, LargeBinary):
            values[name] = map(convert, values[name])  # to compare documents takes longer than to convert them
        elif convert:
            if isinstance(table.c[name].type, Identifier) and "".join(filter(None, values[name])).isascii():
                continue  # almost all identifiers: no conversion changes them
            # Most columns to convert have few different values, such as the day.
            converted = {value: convert(value) for value in set(values[name])}
            values[name] = map(converted.__getitem__, values[name])
    ready: list[Any] = list(zip(*(values[name] for name in conversions), strict=True))
    if not dialect.positional:
        ready = [dict(zip(conversions, row, strict=True)) for row in ready]
    return statement, ready


@lru_cache(maxsize=64)
def _prepared(
    dialect: Dialect, table: Table, names: tuple[str, ...]
) -> tuple[str, Mapping[str, Callable[[Any], Any] | None]]:
    """The statement for the driver, and its columns in order, each with the function that converts values, if any."""
    columns = [column for column in table.columns if column.name in names]
    # Inline: the statement does not return the keys of the new rows.
    compiled = insert(table).inline().compile(dialect=dialect, column_keys=[column.name for column in columns])
    return str(compiled), {column.name: column.type.dialect_impl(dialect).bind_processor(dialect) for column in columns}
