"""Copies everything from one database into another of any kind: all tables, and the last numbers that were assigned.

Rows are copied in the order of their keys, a page in a transaction each. A table of its own marks the new database as
an unfinished copy, and names the old one: after a kill the next copy continues behind the last row of each table,
unless the old database has changed meanwhile; then it begins again. At the end both are compared, table by table, and
the mark is removed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Date,
    Engine,
    Integer,
    LargeBinary,
    MetaData,
    Row,
    String,
    Table,
    Text,
    case,
    cast,
    delete,
    extract,
    func,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import DataError, IntegrityError, StatementError
from sqlalchemy.orm import Session

from metaharvest.config.files import require_folder
from metaharvest.database import console_models, dialects, models
from metaharvest.database.all_tables import Base
from metaharvest.database.base import UtcDateTime
from metaharvest.database.engine import create_file, database_errors, database_file, run_lock, shown_database, upgrade
from metaharvest.database.pipeline_models import PIPELINE_TABLES
from metaharvest.database.rows import insert_rows
from metaharvest.database.worker_models import HostLease, Job, JobEvent, Worker
from metaharvest.errors import DatabaseUnavailable, LockHeld, MetaharvestError
from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.text import one_line

Totals = dict[str, int]
"""The total of a table: its number of rows, and for each column a number that depends on its values."""

_ROWS_AT_ONCE = 2000
_BYTES_AT_ONCE = 8_000_000
_MODULUS = 1_000_003
"""Sums of remainders, as a sum of large numbers may exceed the numbers of a database."""

_DAY = (("year", 1, 1, 4), ("month", 13, 6, 2), ("day", 32, 9, 2))
_TIME = (("hour", 24, 12, 2), ("minute", 60, 15, 2), ("second", 60, 18, 2))
"""The parts of a date, and of a time: name, number of values, and the place in the text of SQLite with its length."""

_CHANGED_BY_PEOPLE = (
    *(console_models.ApiCall, console_models.ApiKey, console_models.ConsoleLink, console_models.ConsoleSession),
    *(console_models.ConsoleUser, console_models.SiteRegistration, models.AuditEntry, models.DaemonState),
    *(models.HarvestRequest, models.SiteProgress, HostLease),
)
_OPERATIONS = models.HarvestOperation.__tablename__
_SCHEDULE = models.HarvestSiteSchedule.__tablename__
_COPIED_AGAIN = (*(each.__tablename__ for each in _CHANGED_BY_PEOPLE), *PIPELINE_TABLES)
"""The tables that people and the pipeline change between runs: a resumed copy copies them again."""
_WITH_OTHER_TIMES = (_SCHEDULE, *_COPIED_AGAIN, *(each.__tablename__ for each in (Worker, Job, JobEvent)))
"""The tables whose times may change during a copy: the heartbeats of workers, too. Their times are only counted."""
_MARK = Table(
    "metaharvest_copy",
    MetaData(),
    Column("source", Text, nullable=False),
    Column("totals", Text, nullable=False),
    mysql_charset="utf8mb4",
    mariadb_charset="utf8mb4",
)


@frozen
class CopiedTable:
    """A copied table: its rows, the number in the new database, and the number that an earlier attempt had copied."""

    table: str
    rows: int
    copied: int
    copied_before: int


def copy_database(source: Engine, target: Engine, report: Callable[[CopiedTable], None]) -> list[CopiedTable]:
    """Copy everything; `report` is called with each finished table. Both databases are locked against runs.

    Raises MetaharvestError if the new database contains something else, or the two differ at the end, LockHeld,
    DatabaseUnavailable, SchemaMismatch.
    """
    if _place(source) == _place(target):
        raise MetaharvestError(f"{shown_database(target)} is the database itself: name another one.")
    with run_lock(source), database_errors(target):
        _require_ours(target, source)
        upgrade(target)
        try:
            with run_lock(target):
                return _copy(source, target, report)
        except LockHeld as error:
            raise LockHeld(f"{error} Is it the source database under another name?") from error


def _place(engine: Engine) -> str:
    """The name of a database: the file, or the server and the database."""
    if file := database_file(engine):
        return str(file.resolve())
    return f"{engine.dialect.name} {engine.url.host}:{engine.url.port} {engine.url.database} {dict(engine.url.query)}"


def _copy(source: Engine, target: Engine, report: Callable[[CopiedTable], None]) -> list[CopiedTable]:
    # First the table that most likely has a row that cannot be copied; no other table refers to it.
    tables = sorted(Base.metadata.sorted_tables, key=lambda table: table.name != _SCHEDULE)
    wanted = _totals(source)
    _require_room(source, target, tables)
    _begin(target, shown_database(source), wanted)
    copied = []
    for table in tables:
        before = _count(target, table)
        with _row_errors(table, target):
            _copy_table(source, target, table)
        if (number := _last_number(source, table)) is not None:
            _set_last_number(target, table, number)
        done = _count(target, table)
        kept = 0 if table.name in (_OPERATIONS, _SCHEDULE, *_COPIED_AGAIN) else before
        copied.append(CopiedTable(table.name, wanted[table.name]["rows"], done, kept))
        report(copied[-1])
    _require_same(source, target, wanted)
    with target.begin() as connection:
        _MARK.drop(connection)
    return copied


# -- the new database


def _require_ours(target: Engine, source: Engine) -> None:
    """Mark the new database; raises MetaharvestError if it contains anything but a copy of ours."""
    shown = shown_database(target)
    if file := database_file(target):
        try:
            require_folder(file.parent)
        except OSError as error:
            raise MetaharvestError(f"The database {shown} cannot be made: {error.strerror}.") from error
    create_file(target)
    with target.connect() as connection:
        there = set(inspect(connection).get_table_names())
        if foreign := there - set(Base.metadata.tables) - {"alembic_version", _MARK.name}:
            named = one_line(", ".join(sorted(foreign)), 200)
            raise MetaharvestError(f"The database {shown} has tables of something else: {named}. Name an empty one.")
        if _MARK.name in there:
            begun = connection.scalar(select(_MARK.c.source))
            if begun not in (None, shown_database(source)):
                raise MetaharvestError(
                    f"The database {shown} has part of a copy of {begun}: finish that one, or name an empty database."
                )
            return
        for name in sorted(there & set(Base.metadata.tables) - {_OPERATIONS}):
            if connection.execute(select(1).select_from(Base.metadata.tables[name]).limit(1)).first() is not None:
                raise MetaharvestError(f"The database {shown} is in use: its table {name} has rows. Name an empty one.")
    with target.begin() as connection:
        _MARK.create(connection)


def _begin(target: Engine, source: str, wanted: dict[str, Totals]) -> None:
    """Begin a copy. The rows of an earlier attempt stay if it had the same source; otherwise they are deleted."""
    compared = {name: totals for name, totals in wanted.items() if name not in _COPIED_AGAIN}
    totals = json.dumps(compared, sort_keys=True)
    with _writing(target) as connection:
        if connection.scalar(select(_MARK.c.totals)) == totals:
            return
        connection.execute(delete(_MARK))
        for table in reversed(Base.metadata.sorted_tables):
            if table.name != _OPERATIONS:
                connection.execute(delete(table))
        connection.execute(insert(_MARK), {"source": source, "totals": totals})


def _require_room(source: Engine, target: Engine, tables: Sequence[Table]) -> None:
    """Raises MetaharvestError if a document or a report is larger than the new database's limit for one statement."""
    with target.connect() as connection:
        packet = dialects.largest_packet(connection)
    if packet is None:
        return
    contents = [column for table in tables for column in table.columns if isinstance(column.type, LargeBinary)]
    with source.connect() as connection:
        largest = max(connection.scalar(select(func.max(func.length(column)))) or 0 for column in contents)
    if largest > dialects.document_size_for(packet):
        raise MetaharvestError(
            f"A document or a report has {largest:,} bytes, more than {shown_database(target)} takes: set its "
            f"max_allowed_packet ({packet:,}) to {dialects.packet_for(largest):,} or more."
        )


# -- rows


def _copy_table(source: Engine, target: Engine, table: Table) -> None:
    if table.name == _OPERATIONS:
        _replace_operations(source, target, table)
        return
    # The first column orders the pages: a page has all rows with its last value.
    key = next(iter(table.primary_key.columns))
    with _writing(target) as connection:
        if table.name in (_SCHEDULE, *_COPIED_AGAIN):
            # People change them between runs: the rows of an earlier attempt may be out of date.
            connection.execute(delete(table))
        after = connection.scalar(select(func.max(key)))
    for rows in _pages(source, table, key, after):
        with _writing(target) as connection:
            insert_rows(connection, table, [dict(row._mapping) for row in rows])


def _pages(source: Engine, table: Table, key: Column[Any], after: Any) -> Iterator[Sequence[Row[Any]]]:
    """The rows with a key above `after`, in the order of their keys, some at a time."""
    large = [column for column in table.columns if isinstance(column.type, LargeBinary)]
    while True:
        with database_errors(source), source.connect() as connection:
            upto = _upto(connection, key, large, after)
            if upto is None:
                return
            query = select(table).where(key <= upto).order_by(key)
            rows = connection.execute(query if after is None else query.where(key > after)).all()
        yield rows
        after = upto


def _upto(connection: Connection, key: Column[Any], large: Sequence[Column[Any]], after: Any) -> Any:
    """The last key of the next page; None if there is none."""
    sizes = [func.coalesce(func.length(column), 0) for column in large]
    query = select(key, *sizes).order_by(key).limit(_ROWS_AT_ONCE)
    upto, size = None, 0
    for found, *lengths in connection.execute(query if after is None else query.where(key > after)):
        size += sum(lengths)
        if upto is not None and size > _BYTES_AT_ONCE:
            break
        upto = found
    return upto


def _replace_operations(source: Engine, target: Engine, table: Table) -> None:
    """Copy the operations of the old database; rows of the log refer to them."""
    with Session(source) as session:
        kept = {each.harvest_operation_code: each for each in session.scalars(select(models.HarvestOperation))}
    with _writing(target) as connection, Session(connection) as session:
        for each in kept.values():
            session.merge(each)
        session.flush()
        connection.execute(delete(table).where(table.c.harvest_operation_code.not_in(kept)))


@contextmanager
def _row_errors(table: Table, target: Engine) -> Iterator[None]:
    """Turns an error of a database about a value into a sentence about the table."""
    try:
        yield
    except (DataError, IntegrityError, ValueError, TypeError) as error:
        raise _not_copied(table, target, error) from error
    except (DatabaseUnavailable, StatementError) as error:
        said = error.__cause__ if isinstance(error, DatabaseUnavailable) else error
        if "decode" in str(said) or isinstance(getattr(said, "orig", None), ValueError | TypeError):
            raise _not_copied(table, target, said or error) from error
        raise


def _not_copied(table: Table, target: Engine, error: BaseException) -> MetaharvestError:
    schedule = f" {todo('sites.list')} shows it." if table.name == _SCHEDULE else ""
    return MetaharvestError(
        f"A row of {table.name} has a value that {shown_database(target)} does not take: "
        f"{dialects.reason_of(error)}.{schedule} Correct it, then copy again: copied rows stay."
    )


def _writing(engine: Engine) -> Any:
    return engine.execution_options(sqlite_begin="BEGIN IMMEDIATE").begin()


# -- the numbers that a database gives to new rows


def _last_number(engine: Engine, table: Table) -> int | None:
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


def _set_last_number(engine: Engine, table: Table, number: int) -> None:
    """Let the next new row of this table have a higher number than this one."""
    [key] = table.primary_key.columns
    if number < 1:
        return
    with _writing(engine) as connection:
        given = {"name": table.name, "number": number}
        if engine.dialect.name == "sqlite":
            connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), given)
            connection.execute(text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :number)"), given)
        elif engine.dialect.name == "postgresql":
            sequence = text("SELECT setval(pg_get_serial_sequence(:name, :key), :number)")
            connection.execute(sequence, {**given, "key": key.name})
        else:
            connection.execute(text(f"ALTER TABLE {table.name} AUTO_INCREMENT = {number + 1}"))


# -- the totals of both


def _require_same(source: Engine, target: Engine, wanted: dict[str, Totals]) -> None:
    """Raises MetaharvestError if the totals of the databases differ, table by table."""
    now, copied = _totals(source), _totals(target)
    changed = [name for name in wanted if wanted[name] != now[name]]
    if not changed and _rows(source, _SCHEDULE) != _rows(target, _SCHEDULE):
        changed = [_SCHEDULE]
    if changed:
        raise MetaharvestError(
            f"The database {shown_database(source)} was changed while it was copied ({', '.join(changed)}): "
            "copy again, which begins again."
        )
    if wrong := [name for name in wanted if wanted[name] != copied[name]]:
        raise MetaharvestError(
            f"The copy {shown_database(target)} is not the same ({', '.join(wrong)}). Do not use it: tell the "
            "developers, and copy into an empty database."
        )


def _rows(engine: Engine, name: str) -> list[tuple[Any, ...]]:
    table = Base.metadata.tables[name]
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]


def _totals(engine: Engine) -> dict[str, Totals]:
    found = {}
    with database_errors(engine), engine.connect() as connection:
        for table in Base.metadata.sorted_tables:
            parts = {"rows": func.count(), **{column.name: _sum(column, engine) for column in table.columns}}
            row = connection.execute(select(*parts.values()).select_from(table)).one()
            found[table.name] = {name: int(value or 0) for name, value in zip(parts, row, strict=True)}
    return found


def _sum(column: Column[Any], engine: Engine) -> Any:
    if isinstance(column.type, LargeBinary):
        return func.sum(func.length(column))
    if isinstance(column.type, Integer):
        return func.sum(column % _MODULUS)
    if isinstance(getattr(column.type, "impl_instance", column.type), String):
        characters = func.char_length if engine.dialect.name in ("mysql", "mariadb") else func.length
        return func.sum(characters(column))
    if isinstance(column.type, Boolean):
        return func.sum(case((column.is_(True), 2), (column.is_(False), 1), else_=0))
    if isinstance(column.type, (Date, UtcDateTime)) and column.table.name not in _WITH_OTHER_TIMES:
        return func.sum(_seconds(column, engine) % _MODULUS)
    return func.count(column)


def _seconds(column: Column[Any], engine: Engine) -> Any:
    """A date, or a time in whole seconds, as a number: the same in every database."""
    parts = _DAY if isinstance(column.type, Date) else _DAY + _TIME
    number: Any = 0
    for name, most, begin, length in parts:
        if engine.dialect.name == "sqlite":  # it stores texts, and its own functions round the seconds
            part = cast(func.substr(column, begin, length), BigInteger)
        else:
            part = cast(func.floor(extract(name, column)), BigInteger)
        number = number * most + part
    return number


def _count(engine: Engine, table: Table) -> int:
    with engine.connect() as connection:
        return int(connection.scalar(select(func.count()).select_from(table)) or 0)
