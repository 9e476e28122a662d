"""The differences between SQLite, PostgreSQL and MariaDB/MySQL: connections, limits, sizes, errors and their messages.

All other modules treat them alike, except `locks.py` and the types of columns in `models.py`. Every connection is set
up here in the same way, whatever the defaults of the server are: UTC, UTF-8, READ COMMITTED, no text cut off silently,
a time limit on every wait for a lock.
"""

from __future__ import annotations

import inspect
import os
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, event, text
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, NotSupportedError

from metaharvest.config.secret_references import masked
from metaharvest.errors import DatabaseError
from metaharvest.text import one_line

EXTRAS = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}
"""Kind of database -> the extra of this package that installs its driver."""

_MEANT = {
    **dict.fromkeys(("postgresql", "postgres", "pgsql", "psql", "pg"), "postgresql+psycopg"),
    **dict.fromkeys(("mysql", "mariadb"), "mysql+pymysql"),
    **dict.fromkeys(("sqlite", "sqlite3"), "sqlite"),
}
"""The kind of database, as a URL may name it -> the right beginning of the URL."""

_CONNECT_SECONDS = 10
_MORE_CONNECTIONS = 40
"""In addition to the five that stay open: each site under way may read, and one thread writes."""

_WAIT_SECONDS = 60
"""The time that a statement waits for a locked row or table (SQLite: for the one write lock)."""

_STATEMENT_BYTES = 65_536
"""Space for the rest of the statement that stores a document."""

_PRAGMA_TRIES = 50
_PRAGMA_PAUSE_SECONDS = 0.2

_SQLITE_PRAGMAS = (
    f"busy_timeout={_WAIT_SECONDS * 1000}",
    # Bytes, for a new file. Each commit writes a page of each index: pages of 16 KB write a third more. Pages of 4 KB,
    # the default, take more system calls for a document of 20 KB.
    "page_size=8192",
    # KB for each connection: a run has three, and twice as much is no quicker.
    "cache_size=-1000",
    "journal_mode=WAL",
    # 2,000 pages are 16 MB, as the default of 1,000 pages of 16 KB was (32 MB in a file of an earlier version). A page
    # that many commits change is written into the file less often.
    "wal_autocheckpoint=2000",
    "synchronous=FULL",
    "foreign_keys=ON",
)
_POSTGRESQL_SETTINGS = (
    f"SET TIME ZONE 'UTC'; SET DateStyle = 'ISO'; SET lock_timeout = '{_WAIT_SECONDS}s'; SET jit = off; "
    "SET max_parallel_workers_per_gather = 0"
)
"""`jit` is off: to compile a statement takes 300 ms, and most statements run for a few.

A statement starts no parallel processes: on a busy machine their start takes some 10 ms.
"""

_MYSQL_SETTINGS = (
    "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"
    f", innodb_lock_wait_timeout = {_WAIT_SECONDS}, lock_wait_timeout = {_WAIT_SECONDS}"
)


def engine_options(url: URL) -> dict[str, Any]:
    """The options of `create_engine` for this URL; options in the URL's query take precedence."""
    backend = url.get_backend_name()
    # The values of a row may hold a URL with a password: messages of errors do not show them.
    options: dict[str, Any] = {"max_overflow": _MORE_CONNECTIONS, "hide_parameters": True}
    if backend == "sqlite":
        return options
    arguments: dict[str, object] = {"connect_timeout": _CONNECT_SECONDS}
    if backend == "postgresql":
        # Without client_encoding, a database in SQL_ASCII would hand over bytes in place of text.
        arguments |= {"client_encoding": "utf8", "fallback_application_name": "metaharvest"}
        arguments |= {"keepalives_idle": 60, "keepalives_interval": 15}
    elif backend in ("mysql", "mariadb"):
        arguments |= {"charset": "utf8mb4", "init_command": _MYSQL_SETTINGS}
    given = {name: value for name, value in arguments.items() if name not in url.query}
    return {**options, "connect_args": given, "isolation_level": "READ COMMITTED", "pool_pre_ping": True}


def driver_error(engine: Engine) -> str:
    """What is wrong with the options in a URL for PyMySQL, or "": PyMySQL raises errors of Python for these."""
    url = engine.url
    if url.get_driver_name() != "pymysql":
        return ""
    from pymysql.charset import charset_by_name
    from pymysql.connections import Connection as PyMySQLConnection

    if twice := [name for name, value in url.query.items() if not isinstance(value, str)]:
        return f"the option {one_line(twice[0], 60)} is there twice. Leave one of them out."
    charset = str(url.query.get("charset", "utf8mb4"))
    if charset_by_name(charset) is None:
        return f"PyMySQL has no charset '{one_line(charset, 60)}'. Leave it out: utf8mb4 is used."
    _, arguments = engine.dialect.create_connect_args(url)
    unknown = arguments.keys() - inspect.signature(PyMySQLConnection).parameters.keys()
    if unknown:
        return f"PyMySQL has no option '{one_line(min(unknown), 60)}'. Correct its name, or leave it out."
    for name in ("ssl_ca", "ssl_cert", "ssl_key"):
        path = url.query.get(name)
        if path and not Path(str(path)).exists():
            return f"the file {one_line(str(path), 200)}, which {name} names, is not there."
    return ""


def prepare(engine: Engine) -> None:
    """Register the functions that set up every new connection of `engine`."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    elif engine.dialect.name == "postgresql":
        event.listen(engine, "connect", _prepare_postgresql)


_LOCKED_MYSQL = (1020, 1205, 1213)
_LOCKED_POSTGRESQL = ("40001", "40P01", "55P03")


def is_locked_out(error: BaseException | None) -> bool:
    """True if the database ended a transaction because of another one, so that it should be tried again.

    The reasons: a deadlock, a lock time-out, a row that changed meanwhile. An error that follows from these, such as
    one about a savepoint that the database removed, has the real one in its chain, which is searched.
    """
    return any(
        _code_of(said) in _LOCKED_MYSQL or getattr(said, "sqlstate", None) in _LOCKED_POSTGRESQL
        for _, said in _chain(error)
    )


def is_raced(error: DatabaseError) -> bool:
    """True if another process wrote the same rows at this moment, so that the transaction should be tried again."""
    return is_locked_out(error) or isinstance(error.__cause__, IntegrityError)


_FULL_MYSQL = (1021, 1114)
_FAILED_MYSQL = (3, 1026, 1030)
"""Errors while MariaDB writes a file; the message has the number of the system's error, of which 28 is "no space"."""


def is_full(error: BaseException | None) -> bool:
    """True if the database has no room: its disk, its quota or its tablespace is full."""
    return any(
        getattr(said, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        or getattr(said, "sqlstate", None) == "53100"
        or _code_of(said) in _FULL_MYSQL
        or (_code_of(said) in _FAILED_MYSQL and re.search(r"\b28\b", str(said)) is not None)
        for _, said in _chain(error)
    )


_PACKET_MYSQL = (1153, 1301)
_LARGE = 100_000
"""Characters or bytes of a statement's values: above this number, a server may close the connection."""


def is_about_statement(error: BaseException | None) -> bool:
    """True if the database refused a statement for the values in it: too long, out of range, too large a packet."""
    kinds = (DataError, IntegrityError, NotSupportedError)
    return any(isinstance(each, kinds) or _code_of(said) in _PACKET_MYSQL for each, said in _chain(error))


_PASSING_POSTGRESQL = ("08", "25", "28", "3D", "40", "53", "55", "57", "58")
"""Classes of states that pass: a lost connection, a restart, no room, a lock, a time-out, a server without writes."""

_SERVER_MYSQL = range(1000, 2000)
_AWAY_MYSQL = (1040, 1041, 1044, 1045, 1049, 1053, 1077, 1079, 1080, 1129, 1130, 1152, 1158, 1159, 1160, 1161)
_CLOSED_MYSQL = (1184, 1203, 1226, 1290, 1317, 1792, 1836, 1927, 1969)
_PASSING_MYSQL = frozenset((*_AWAY_MYSQL, *_CLOSED_MYSQL, *_LOCKED_MYSQL, *_FULL_MYSQL, *_FAILED_MYSQL))
"""Errors of a server that ends, is full, has too many connections or too little time, or may only be read."""

_REFUSED_SQLITE = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH)


def is_refused(error: BaseException | None) -> bool:
    """True if the database is there and refused a statement, so that waiting does not help: a value, a permission."""
    return any(_refuses(each, said) for each, said in _chain(error) if isinstance(each, DBAPIError))


def _refuses(error: DBAPIError, said: Any) -> bool:
    if error.connection_invalidated:
        return False
    state, code = getattr(said, "sqlstate", None), getattr(said, "sqlite_errorcode", None)
    if isinstance(state, str):
        return state[:2] not in _PASSING_POSTGRESQL
    if code is not None:
        return code & _PRIMARY_CODE in _REFUSED_SQLITE
    number = _code_of(said)
    return isinstance(number, int) and number in _SERVER_MYSQL and number not in _PASSING_MYSQL


def may_be_about_statement(error: BaseException | None) -> bool:
    """True if the connection was lost at a large statement: MariaDB closes it after a packet that is too large."""
    return any(
        isinstance(each, DBAPIError) and each.connection_invalidated and bool(each.statement) and _size(each) > _LARGE
        for each, _ in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[tuple[BaseException, Any]]:
    """An error and the errors behind it, each with the driver's error."""
    while error is not None:
        yield error, getattr(error, "orig", None)
        error = error.__cause__ or error.__context__


def _code_of(said: Any) -> object:
    return said.args[0] if said is not None and said.args else None


def _size(error: DBAPIError) -> int:
    """The length of the texts in the values of the statement. The values belong to one row, or to many."""
    rows: Any = error.params
    rows = rows if isinstance(rows, list | tuple) and rows and isinstance(rows[0], dict | tuple | list) else [rows]
    values = (value for row in rows if row for value in (row.values() if isinstance(row, dict) else row))
    return sum(len(value) for value in values if isinstance(value, str | bytes))


def reason_of(error: BaseException) -> str:
    """The message of the database on one line, without the driver's additions.

    When the disk is full, SQLite rolls the whole transaction back; the error is then raised by the statement that
    returns to a savepoint, and the real message is in the error before it.
    """
    while str(getattr(error, "statement", "")).startswith("ROLLBACK TO") and isinstance(error.__context__, DBAPIError):
        error = error.__context__
    said: Any = getattr(error, "orig", None) or error
    if len(said.args) > 1 and isinstance(said.args[0], int) and isinstance(said.args[1], str):
        said = said.args[1]
    return one_line(masked(str(said))).rstrip(".")


_PRIMARY_CODE = 0xFF
_NO_FILE_SQLITE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


def cannot_make_files(error: BaseException) -> bool:
    """True if SQLite cannot make the files beside the database that it needs also for reading: -wal and -shm."""
    codes = (getattr(said, "sqlite_errorcode", None) for _, said in _chain(error))
    return any(code is not None and code & _PRIMARY_CODE in _NO_FILE_SQLITE for code in codes)


def temporary_folder() -> str:
    """The folder of SQLite's temporary files (https://sqlite.org/tempfiles.html), which may differ from Python's."""
    named = (os.environ.get("SQLITE_TMPDIR"), os.environ.get("TMPDIR"), "/var/tmp", "/usr/tmp")
    return next((folder for folder in named if folder and os.access(folder, os.W_OK | os.X_OK)), tempfile.gettempdir())


def server_version(connection: Connection) -> str:
    """The database's name and version, for people."""
    if connection.dialect.name == "postgresql":
        return f"PostgreSQL {connection.scalar(text('SHOW server_version'))}"
    version = bare_version(connection)
    if connection.dialect.name == "sqlite":
        return f"SQLite {version}"
    return f"MariaDB {version}" if "mariadb" in version.lower() else f"MySQL {version}"


def bare_version(connection: Connection) -> str:
    """The version alone, as the server, or SQLite, writes it."""
    is_sqlite = connection.dialect.name == "sqlite"
    return str(connection.scalar(text("SELECT sqlite_version()" if is_sqlite else "SELECT version()")))


_SIZES = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
}
_SIZE_MYSQL = "SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE()"


def size_in_bytes(connection: Connection) -> int:
    """The size of all tables and indices."""
    return int(connection.scalar(text(_SIZES.get(connection.dialect.name, _SIZE_MYSQL))) or 0)


def wrong_encoding(connection: Connection) -> str | None:
    """A sentence if the database cannot hold every character that a document's title may have; otherwise None."""
    if connection.dialect.name != "postgresql":
        return None
    if (encoding := str(connection.scalar(text("SHOW server_encoding")))) == "UTF8":
        return None
    return (
        f"The database {connection.engine.url.database} is in the encoding {encoding}; it must be UTF8. "
        "Create it again: CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0."
    )


def largest_packet(connection: Connection) -> int | None:
    """The largest size of a statement with all its values, in bytes; None if the database has no such limit."""
    if connection.dialect.name not in ("mysql", "mariadb"):
        return None
    return int(connection.scalar(text("SELECT @@max_allowed_packet")) or 0)


def packet_for(document_size: int) -> int:
    """The packet, in bytes, that storing a document of this size takes: the driver writes each byte as two."""
    return 2 * document_size + _STATEMENT_BYTES


def document_size_for(packet: int) -> int:
    """The largest document, in bytes, that fits into a packet of `packet` bytes; a larger one breaks the connection."""
    return max(0, packet - _STATEMENT_BYTES) // 2


def missing_driver(url: URL) -> str:
    """A URL and a sentence about it: its database is not known, or its driver is not installed."""
    shown = f"'{url.render_as_string(hide_password=True)}'"
    kind, _, driver = url.drivername.lower().partition("+")
    meant = _MEANT.get(kind)
    if meant is None:
        kinds = "sqlite:///metaharvest.db, postgresql+psycopg://host/name or mysql+pymysql://host/name"
        return f"{shown}: this is not a kind of database that metaharvest knows; write it like {kinds}."
    right = url.set(drivername=meant).render_as_string(hide_password=True)
    if not driver or kind not in EXTRAS:
        return f"{shown}: it must name the kind of database and the driver. Write it like {right}."
    install = f"`pip install 'metaharvest[{EXTRAS[kind]}]'`"
    if driver != meant.partition("+")[2]:
        return f"{shown}: the driver {driver} is not installed. Write it like {right}, whose driver {install} installs."
    return f"{shown}: the driver {driver} is not installed. Install it with {install}."


# -- deleted rows

_BYTES_THAT_STAY = {
    "postgresql": "PostgreSQL keeps the bytes of deleted rows until VACUUM, and in its write-ahead log and archives.",
    **dict.fromkeys(
        ("mysql", "mariadb"),
        "MariaDB keeps the bytes of deleted rows until InnoDB uses their place again, and in its binary logs.",
    ),
}


def scrub(engine: Engine) -> str:
    """Remove the bytes of deleted rows; returns a sentence about the bytes that stay, empty if none do.

    SQLite writes the file again with VACUUM, which needs as much free room as the file takes.
    """
    if engine.dialect.name != "sqlite":
        return _BYTES_THAT_STAY.get(engine.dialect.name, "")
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute("VACUUM")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        busy = (cursor.fetchone() or (0,))[0]
        cursor.close()
    except sqlite3.Error as error:
        return f"The database file still has the bytes of deleted rows: VACUUM failed, since {reason_of(error)}."
    finally:
        connection.close()
    if not busy:
        return ""
    return "Another program reads the database: until it ends, the file beside it (-wal) has the bytes of deleted rows."


# -- new connections


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # As SQLAlchemy documents it for real transactions and savepoints: the sqlite3 module must not begin any itself.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _SQLITE_PRAGMAS:
        _set_pragma(cursor, pragma)
    cursor.close()


def _set_pragma(cursor: Any, pragma: str) -> None:
    """Set it, with retries: while another program makes a new file write-ahead, the file is "locked" at once.

    A file that may only be read stays as it is: a copy made by VACUUM INTO is not write-ahead, and can be read.
    """
    for left in reversed(range(_PRAGMA_TRIES)):
        try:
            cursor.execute(f"PRAGMA {pragma}")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_READONLY:
                return
            if not left or "locked" not in str(error):
                raise
            time.sleep(_PRAGMA_PAUSE_SECONDS)


def _begin_sqlite(connection: Connection) -> None:
    options = connection.get_execution_options()
    begin, seconds = options.get("sqlite_begin", "BEGIN"), options.get("sqlite_wait_seconds", _WAIT_SECONDS)
    # The changes since a savepoint would go into a temporary file: writing must not need room in two places.
    place = "FILE" if begin == "BEGIN" else "MEMORY"
    if connection.info.get("temp_store") != place:
        connection.exec_driver_sql(f"PRAGMA temp_store={place}")
        connection.info["temp_store"] = place
    if connection.info.get("wait_seconds", _WAIT_SECONDS) != seconds:
        connection.exec_driver_sql(f"PRAGMA busy_timeout={seconds * 1000}")
        connection.info["wait_seconds"] = seconds
    connection.exec_driver_sql(begin)


def _prepare_postgresql(connection: Any, _record: object) -> None:
    connection.execute(_POSTGRESQL_SETTINGS)
    connection.commit()
