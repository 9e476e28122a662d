"""The numbers that a database gives to new rows: the last one, so that none is ever given twice."""

from __future__ import annotations

from sqlalchemy import Engine, Integer, Table, func, select, text


def last_number(engine: Engine, table: Table) -> int | None:
    """The highest number that a row of this table was ever given, also if that row was deleted.

    None if its keys are no numbers, or not given by the database.
    """
    key = next(iter(table.primary_key.columns))
    if not isinstance(key.type, Integer) or key.autoincrement is False:
        return None
    with engine.connect() as connection:
        highest = connection.scalar(select(func.max(key))) or 0
        name = {"name": table.name}
        if engine.dialect.name == "sqlite":
            given = connection.scalar(text("SELECT seq FROM sqlite_sequence WHERE name = :name"), name)
        elif engine.dialect.name == "postgresql":
            sequence = connection.scalar(text("SELECT pg_get_serial_sequence(:name, :key)"), {**name, "key": key.name})
            given = connection.scalar(text(f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}"))
        else:
            next_one = text(
                "SELECT auto_increment FROM information_schema.tables "
                "WHERE table_schema = database() AND table_name = :name"
            )
            given = (connection.scalar(next_one, name) or 1) - 1
        return max(highest, int(given or 0))


def set_last_number(engine: Engine, table: Table, number: int) -> None:
    """Let the next new row of this table have a higher number than this one."""
    [key] = table.primary_key.columns
    if number < 1:
        return
    with engine.execution_options(sqlite_begin="BEGIN IMMEDIATE").begin() as connection:
        given = {"name": table.name, "number": number}
        if engine.dialect.name == "sqlite":
            connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), given)
            connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :number)"), given)
        elif engine.dialect.name == "postgresql":
            sequence = text("SELECT setval(pg_get_serial_sequence(:name, :key), :number)")
            connection.execute(sequence, {**given, "key": key.name})
        else:
            connection.execute(text(f"ALTER TABLE {table.name} AUTO_INCREMENT = {number + 1}"))
