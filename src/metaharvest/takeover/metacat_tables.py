"""Reads the tables of the Metacat Harvester, from a database of Metacat or from CSV files.

Nothing is written there. Every value is read as text, whatever its column type, so that dates that only one database
has, and text in another encoding, cause no errors in the reader; unset values are None.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    LargeBinary,
    String,
    cast,
    create_engine,
    inspect,
    make_url,
    quoted_name,
    select,
)
from sqlalchemy import column as sql_column
from sqlalchemy import table as sql_table
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.types import TypeEngine

from metaharvest.config.field_types import check_database_url
from metaharvest.config.files import open_file
from metaharvest.config.paths import at_home
from metaharvest.config.secret_references import HOW_TO_REFER, check_reference, resolve_secret
from metaharvest.database.dialects import reason_of
from metaharvest.database.engine import open_url
from metaharvest.errors import DatabaseUnavailable, MetaharvestError, SettingsError
from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.text import one_line, shown_url

SCHEDULE = "harvest_site_schedule"
LOG = "harvest_log"
DETAIL_LOG = "harvest_detail_log"
COLUMNS: Mapping[str, tuple[str, ...]] = {
    SCHEDULE: (
        *("site_schedule_id", "documentlisturl", "ldapdn", "datenextharvest", "datelastharvest", "updatefrequency"),
        *("unit", "contact_email", "ldappwd"),
    ),
    LOG: ("harvest_log_id", "harvest_date", "status", "message", "harvest_operation_code", "site_schedule_id"),
    DETAIL_LOG: (
        *("detail_log_id", "harvest_log_id", "scope", "identifier", "revision"),
        *("document_url", "error_message", "document_type"),
    ),
}
_REQUIRED = {
    SCHEDULE: ("documentlisturl",),
    LOG: ("harvest_log_id", "harvest_date", "harvest_operation_code"),
    DETAIL_LOG: ("harvest_log_id",),
}
_OURS = frozenset(("source_kind", "site_run_id", "fingerprint"))
"""Columns that the tables of metaharvest have, and the tables of a Metacat lack."""

_NOT_SET = frozenset(("", "NULL", "\\N", "(null)"))
"""The text in a CSV file for an unset value of a database."""

_DELIMITERS = ",;\t|"
_LONGEST_VALUE = 16_777_216
_ROWS_AT_ONCE = 1000


@frozen
class TableRow:
    """A row: its columns by name, in lower case; `place` is its place. `problem`: the reason why it cannot be read."""

    place: str
    values: Mapping[str, str | None]
    problem: str = ""


class DatabaseTables:
    """The tables in a database of Metacat. Made by `database_tables`."""

    def __init__(self, engine: Engine, url: URL) -> None:
        """`url` is the original URL: the engine's one has more parts."""
        self._engine = engine
        self._shown = shown_url(url.render_as_string(hide_password=True))

    def rows(self, table: str) -> Iterator[TableRow]:
        """The rows of SCHEDULE, LOG or DETAIL_LOG, in the order of their numbers; names may be in any case.

        Raises MetaharvestError if there is no such table, or it cannot be read.
        """
        try:
            with self._engine.connect() as connection:
                yield from self._rows(connection, table)
        except (SQLAlchemyError, OSError) as error:
            raise DatabaseUnavailable(f"{self._shown} cannot be read: {reason_of(error)}.") from error

    def _rows(self, connection: Connection, table: str) -> Iterator[TableRow]:
        inspector = inspect(connection)
        there = {name.lower(): name for name in (*inspector.get_view_names(), *inspector.get_table_names())}
        if table not in there:
            problem = f"{self._shown} has no table {table.upper()}: name the database of Metacat"
            raise MetaharvestError(f"{problem}, and a user who may read it.")
        columns = {each["name"].lower(): each["name"] for each in inspector.get_columns(there[table])}
        _require_metacat(columns, self._shown)
        _require_columns(table, columns, self._shown)
        known = [name for name in COLUMNS[table] if name in columns]
        # As bytes on SQLite, which may store a text in any encoding.
        kind: TypeEngine[Any] = LargeBinary() if connection.dialect.name == "sqlite" else String()
        named: list[ColumnElement[Any]] = [sql_column(quoted_name(columns[name], True)) for name in known]
        # Under their own names, so that an order by number is not an order by text.
        texts = (cast(each, kind).label(f"text_{number}") for number, each in enumerate(named))
        query = select(*texts).select_from(sql_table(quoted_name(there[table], True)))
        if known[0].endswith("_id"):
            query = query.order_by(named[0])
        for number, row in enumerate(connection.execute(query.execution_options(yield_per=_ROWS_AT_ONCE)), start=1):
            values = dict(zip(known, map(_text, row), strict=True))
            yield TableRow(_place(table, values, f"row {number}"), values)


class CsvTables:
    """Tables as CSV files: the schedule in `file`, the log in HARVEST_LOG.csv and HARVEST_DETAIL_LOG.csv beside it."""

    def __init__(self, file: Path) -> None:
        self._schedule = file

    def rows(self, table: str) -> Iterator[TableRow]:
        """As of DatabaseTables, in the order of the file. The first line names the columns, in any order and case."""
        path = self._schedule if table == SCHEDULE else self._beside(table)
        number = 1
        try:
            with io.TextIOWrapper(open_file(path), "utf-8-sig", newline="") as lines:
                header = lines.readline()
                delimiter = _delimiter(header, table)
                names = [name.strip().lower() for name in next(csv.reader([header], delimiter=delimiter), [])]
                _require_metacat(names, str(path))
                _require_columns(table, names, str(path))
                csv.field_size_limit(_LONGEST_VALUE)
                quoting = _quoting(path, delimiter, len(names))
                reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
                for cells in reader:
                    if cells:
                        yield _csv_row(table, names, cells, f"line {number + 1}")
                    number = reader.line_num + 1
        except UnicodeDecodeError as error:
            raise MetaharvestError(f"{path} is not UTF-8 text: save it as UTF-8.") from error
        except csv.Error as error:
            what = "a quotation mark is never closed" if "unexpected end" in str(error) else error
            remedy = "export the table again, or correct it: a quotation mark in a value is written twice, and"
            again = f"{remedy} the value stands in quotation marks. Then import again; nothing was taken over"
            raise MetaharvestError(f"{path}, line {number + 1}, is not CSV: {what}; {again}.") from error
        except OSError as error:
            raise MetaharvestError(f"{path} cannot be read: {error.strerror}.") from error

    def _beside(self, table: str) -> Path:
        name = f"{table}.csv"
        try:
            found = [each for each in self._schedule.parent.iterdir() if each.name.lower() == name]
        except OSError as error:
            raise MetaharvestError(f"{self._schedule.parent} cannot be read: {error.strerror}.") from error
        if not found:
            raise MetaharvestError(f"There is no {name.upper()[:-4]}.csv beside {self._schedule}: put it there.")
        return found[0]


MetacatTables = DatabaseTables | CsvTables
"""The tables of a Metacat Harvester, wherever they are."""


@contextmanager
def database_tables(url: str, password: str, folder: Path) -> Iterator[DatabaseTables]:
    """The tables in the database of this URL, whose password is behind a reference (a relative path: from `folder`).

    Raises SettingsError if the URL or the reference cannot be used.
    """
    try:
        check_database_url(url)
    except ValueError:
        where = f"and with --password {HOW_TO_REFER}"
        raise SettingsError(f"--database: a password is never written here: take it out of the URL, {where}.") from None
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        right = "write it like postgresql+psycopg://metacat@host/metacat, mysql+pymysql://metacat@host/metacat or "
        problem = f"--database: '{shown_url(url)}' is not a database URL; {right}"
        raise SettingsError(f"{problem}sqlite:////path/to/file.") from None
    try:
        secret = resolve_secret(check_reference(password), folder)
    except ValueError as error:
        raise SettingsError(f"--password (not shown) cannot be used: {error}.") from None
    engine = _engine(parsed.set(password=secret) if secret else parsed)
    try:
        yield DatabaseTables(engine, parsed)
    finally:
        engine.dispose()


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return open_url(url, "--database")
    # Unlike the harvester's own database: this changes nothing in another person's file.
    try:
        path = at_home(Path(url.database or "")).resolve()
    except (ValueError, RuntimeError, OSError) as error:
        raise SettingsError(f"--database names no file that can be used: {one_line(str(error))}.") from error
    if not path.is_file():
        raise MetaharvestError(f"There is no file {path}.")
    return create_engine(URL.create("sqlite", database=f"{path.as_uri()}?mode=ro", query={"uri": "true"}))


def _text(value: object) -> str | None:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return None if text is None or text == "" else str(text)


def _require_metacat(names: Iterable[str], where: str) -> None:
    """Raises MetaharvestError if the columns are metaharvest's: its tables have the same names as Metacat's."""
    if not _OURS.isdisjoint(names):
        raise MetaharvestError(
            f"{where} is of metaharvest, and not of a Metacat: {todo('sites.export')} there and {todo('sites.import')} "
            "here take its sites over."
        )


def _require_columns(table: str, names: Mapping[str, str] | Sequence[str], where: str) -> None:
    missing = [name.upper() for name in _REQUIRED[table] if name not in names]
    if missing:
        known = ", ".join(name.upper() for name in COLUMNS[table])
        problem = f"{where} has no {' and no '.join(missing)} for {table.upper()}"
        raise MetaharvestError(f"{problem}; the columns (in CSV: named in the first line) are {known}.")


def _delimiter(header: str, table: str) -> str:
    """The character that separates the values: the one by which the first line names the most columns."""

    def known(delimiter: str) -> int:
        names = next(csv.reader([header], delimiter=delimiter), [])
        return sum(name.strip().lower() in COLUMNS[table] for name in names)

    return max(_DELIMITERS, key=known)


def _quoting(path: Path, delimiter: str, columns: int) -> Literal[0, 3]:
    """True if quotation marks belong to the values, as `mysql --batch` writes them; false if they enclose values.

    They belong to the values in a file with tabs that has one row per line, if some do not enclose values correctly.
    """
    if delimiter != "\t":
        return csv.QUOTE_MINIMAL
    are_around = True
    with io.TextIOWrapper(open_file(path), "utf-8-sig", newline="") as lines:
        for line in lines:
            if not line.strip("\r\n"):
                continue
            if line.count(delimiter) + 1 != columns:
                return csv.QUOTE_MINIMAL
            are_around = are_around and _is_quoted_row(line, delimiter, columns)
    return csv.QUOTE_MINIMAL if are_around else csv.QUOTE_NONE


def _is_quoted_row(line: str, delimiter: str, columns: int) -> bool:
    try:
        return len(next(csv.reader([line], delimiter=delimiter, strict=True))) == columns
    except csv.Error:
        return False


def _csv_row(table: str, names: Sequence[str], cells: Sequence[str], line: str) -> TableRow:
    values = {name: None if cell.strip() in _NOT_SET else cell for name, cell in zip(names, cells, strict=False)}
    if len(cells) != len(names):
        return TableRow(line, {}, f"it has {len(cells)} values, and the first line names {len(names)} columns")
    return TableRow(_place(table, values, line), values)


def _place(table: str, values: Mapping[str, str | None], otherwise: str) -> str:
    column = COLUMNS[table][0]
    number = (values.get(column) or "").strip()
    return f"{column.upper()} {one_line(number, 40)}" if number else otherwise
