"""What differs between SQLite, PostgreSQL and MariaDB/MySQL: connections, the run lock, the words of their errors.

Everywhere else the three are one. What a connection is set to here, it is set to whatever the server's defaults are, so
that the three behave alike: UTC, UTF-8, READ COMMITTED, nothing cut off in silence, nobody waited for without end.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from sqlalchemy import URL, Connection, Engine, TextClause, event, func, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import InstrumentedAttribute, Session

from metaharvest.config.secret_references import masked
from metaharvest.errors import DatabaseUnavailable
from metaharvest.text import one_line

EXTRAS = {"postgresql": "postgresql", "mysql": "mysql", "mariadb": "mysql"}
"""Kind of database -> the extra of this package that installs its driver."""

_CONNECT_SECONDS = 10
_MORE_CONNECTIONS = 40
"""Beside the five that are kept: each of the sites under way may read, and one thread writes."""

_WAIT_SECONDS = 60
"""For how long a statement waits for a row or table that somebody else has locked (SQLite: for the one write lock)."""

_KEEP_ALIVE_SECONDS = 60
_DEAD_AFTER_SECONDS = 600
"""A server forgets the lock of a machine that has been silent for so long: power cut, network gone."""

_STATEMENT_BYTES = 65_536
"""Room for whatever else is in the statement that stores a document."""

_TRIES = 6
_PRAGMA_TRIES = 50
_PAUSE_SECONDS = 0.2
"""A server takes a moment to notice that a process has died."""

_SQLITE_PAGE = 16_384
"""Of a new file: documents of 20 KB take fewer calls of the system than with pages of 4 KB. Older files keep theirs."""

_SQLITE_PRAGMAS = (
    f"busy_timeout={_WAIT_SECONDS * 1000}",
    f"page_size={_SQLITE_PAGE}",
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
)
_POSTGRESQL_SETTINGS = f"SET TIME ZONE 'UTC'; SET lock_timeout = '{_WAIT_SECONDS}s'"
_MYSQL_SETTINGS = (
    "SET SESSION time_zone = '+00:00', sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'"
    f", innodb_lock_wait_timeout = {_WAIT_SECONDS}, lock_wait_timeout = {_WAIT_SECONDS}"
)


def engine_options(url: URL) -> dict[str, Any]:
    """The options of `create_engine` for this URL; what its query says wins."""
    backend = url.get_backend_name()
    if backend == "sqlite":
        return {"max_overflow": _MORE_CONNECTIONS, "hide_parameters": True}
    arguments: dict[str, object] = {"connect_timeout": _CONNECT_SECONDS}
    if backend == "postgresql":
        arguments |= {"keepalives_idle": 60, "keepalives_interval": 15, "fallback_application_name": "metaharvest"}
    elif backend in ("mysql", "mariadb"):
        arguments |= {"charset": "utf8mb4", "init_command": _MYSQL_SETTINGS}
    return {
        "connect_args": {name: value for name, value in arguments.items() if name not in url.query},
        "isolation_level": "READ COMMITTED",
        "pool_pre_ping": True,
        # What is in a row may be a URL with a password: no message of an error shows it.
        "hide_parameters": True,
        "max_overflow": _MORE_CONNECTIONS,
    }


def prepare(engine: Engine) -> None:
    """Have every new connection of `engine` set up as it has to be."""
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    elif engine.dialect.name == "postgresql":
        event.listen(engine, "connect", _prepare_postgresql)


_LOCKED_MYSQL = (1020, 1205, 1213)
_LOCKED_POSTGRESQL = ("40001", "40P01", "55P03")


def is_locked_out(error: BaseException | None) -> bool:
    """Whether the database gave up a transaction for the sake of another one, and asks for it to be made again.

    A deadlock, a lock that was waited for in vain, a row that changed meanwhile. What follows from that, such as a
    savepoint that is gone with the transaction, is raised in its wake: so the whole chain is looked through.
    """
    while error is not None:
        said: Any = getattr(error, "orig", None)
        code = said.args[0] if said is not None and said.args else None
        if code in _LOCKED_MYSQL or getattr(said, "sqlstate", None) in _LOCKED_POSTGRESQL:
            return True
        error = error.__cause__ or error.__context__
    return False


def reason_of(error: BaseException) -> str:
    """What the database said, on one line, without the driver's wrapping.

    SQLite gives a transaction up by itself when the disk is full: what then fails is the way back to a savepoint.
    """
    while str(getattr(error, "statement", "")).startswith("ROLLBACK TO") and isinstance(error.__context__, DBAPIError):
        error = error.__context__
    said: Any = getattr(error, "orig", None) or error
    if len(said.args) > 1 and isinstance(said.args[0], int) and isinstance(said.args[1], str):
        said = said.args[1]
    return one_line(masked(str(said))).rstrip(".")


def server_version(connection: Connection) -> str:
    """The database's name and version, for people."""
    if connection.dialect.name == "sqlite":
        return f"SQLite {connection.scalar(text('SELECT sqlite_version()'))}"
    if connection.dialect.name == "postgresql":
        return f"PostgreSQL {connection.scalar(text('SHOW server_version'))}"
    version = str(connection.scalar(text("SELECT version()")))
    return f"MariaDB {version}" if "mariadb" in version.lower() else f"MySQL {version}"


def wrong_encoding(connection: Connection) -> str | None:
    """A sentence, where the database cannot hold every character that a document's title may have."""
    if connection.dialect.name != "postgresql":
        return None
    encoding = str(connection.scalar(text("SHOW server_encoding")))
    if encoding == "UTF8":
        return None
    return (
        f"The database's encoding is {encoding}; it must be UTF8. "
        "Create it anew: CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0."
    )


def largest_packet(connection: Connection) -> int | None:
    """How many bytes a statement may have with all its values; None where there is no limit that matters."""
    if connection.dialect.name not in ("mysql", "mariadb"):
        return None
    return int(connection.scalar(text("SELECT @@max_allowed_packet")) or 0)


def packet_for(document: int) -> int:
    """The packet that a document of so many bytes takes: the driver writes each byte as two."""
    return 2 * document + _STATEMENT_BYTES


def room_in(packet: int) -> int:
    """How large a document may be to fit into a packet of so many bytes; a larger one would break the connection."""
    return max(0, packet - _STATEMENT_BYTES) // 2


def missing_driver(url: URL) -> str:
    """A sentence for a database whose driver is not installed."""
    extra = EXTRAS.get(url.get_backend_name())
    shown = url.render_as_string(hide_password=True)
    if extra is None:
        return f"[database] url = '{shown}': this is not a kind of database that metaharvest knows."
    return (
        f"[database] url = '{shown}': the driver {url.get_driver_name()} is not installed. "
        f"Install it with `pip install 'metaharvest[{extra}]'`."
    )


def next_numbers(session: Session, column: InstrumentedAttribute[int], number: int) -> list[int]:
    """So many numbers for rows to be; only for tables that the journal alone writes."""
    if session.get_bind().dialect.name == "postgresql":
        sequence = text("SELECT nextval(pg_get_serial_sequence(:t, :c)) FROM generate_series(1, :n)")
        names: dict[str, Any] = {"t": column.class_.__tablename__, "c": column.key, "n": number}
        return [int(key) for key in session.scalars(sequence, names)]
    highest = session.scalar(select(func.max(column))) or 0
    return list(range(highest + 1, highest + 1 + number))


# -- the run lock


class HeldLock(Protocol):
    """The run lock, held by this process."""

    def still_held(self) -> bool:
        """Whether it is: false for ever once the connection that held it was lost."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...


def take_lock(engine: Engine) -> HeldLock | None:
    """The run lock of this database; None where somebody else has it. Raises DBAPIError, DatabaseUnavailable."""
    if engine.dialect.name == "sqlite":
        return _FileLock.take(f"{engine.url.database}.lock")
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    connection.detach()
    try:
        for left in reversed(range(_TRIES)):
            lock = _SessionLock.take(connection)
            if lock is not None:
                return lock
            if left:
                time.sleep(_PAUSE_SECONDS)
    except BaseException:
        connection.close()
        raise
    connection.close()
    return None


@contextmanager
def upgrade_lock(engine: Engine) -> Iterator[None]:
    """Let one program at a time create or upgrade tables; others wait. On SQLite the write lock does it already.

    It is held on a connection of its own, beyond the commit of whatever is done under it.
    """
    if engine.dialect.name == "sqlite":
        yield
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.detach()
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_lock(:what)"), {"what": _number("metaharvest upgrade")})
        else:
            name = {"name": server_wide_name(connection, "upgrade")}
            if not connection.scalar(text(f"SELECT GET_LOCK(:name, {_WAIT_SECONDS})"), name):
                raise DatabaseUnavailable("Another program is changing the tables; try again when it is done.")
        yield


class _FileLock:
    """A lock file beside the SQLite file; the operating system releases it with the process."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    @classmethod
    def take(cls, path: str) -> _FileLock | None:
        from filelock import FileLock, Timeout

        lock = FileLock(path, timeout=0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            return None
        except OSError as error:
            raise DatabaseUnavailable(
                f"The lock file {path} cannot be written: {error.strerror}. "
                "Let this user write to the folder of the database."
            ) from error
        return cls(lock)

    def still_held(self) -> bool:
        return bool(self._lock.is_locked)

    def release(self) -> None:
        self._lock.release()


class _SessionLock:
    """An advisory lock of the server's. It belongs to one connection, which is kept busy so that nothing closes it."""

    def __init__(self, connection: Connection, statements: _LockStatements) -> None:
        self._connection = connection
        self._statements = statements
        self._held = True
        self._mutex = threading.Lock()
        self._released = threading.Event()
        threading.Thread(target=self._keep_alive, name="run-lock", daemon=True).start()

    @classmethod
    def take(cls, connection: Connection) -> _SessionLock | None:
        statements = _LockStatements(connection)
        if not connection.scalar(statements.take, statements.names):
            return None
        connection.execute(statements.guard)
        return cls(connection, statements)

    def still_held(self) -> bool:
        with self._mutex:
            if self._held:
                try:
                    self._held = bool(self._connection.scalar(self._statements.ask, self._statements.names))
                except DBAPIError:
                    self._held = False
            return self._held

    def release(self) -> None:
        self._released.set()
        with self._mutex, self._connection:
            if not self._held:
                return
            self._held = False
            # Where this fails, the connection is gone, and the lock with it.
            with suppress(DBAPIError):
                self._connection.execute(self._statements.release, self._statements.names)

    def _keep_alive(self) -> None:
        while not self._released.wait(_KEEP_ALIVE_SECONDS):
            self.still_held()


class _LockStatements:
    """How a session lock is taken, guarded against a dead machine, asked about and given back on this server."""

    def __init__(self, connection: Connection) -> None:
        self.names: Mapping[str, object]
        if connection.dialect.name == "postgresql":
            # Advisory locks are a database's own already; the schema tells two installations in one database apart.
            schema = connection.scalar(text("SELECT current_schema()"))
            self.names = {"what": _number("metaharvest"), "where": _number(str(schema))}
            self.take = text("SELECT pg_try_advisory_lock(:what, :where)")
            self.guard: TextClause = text(
                "SELECT set_config('tcp_keepalives_idle', '60', false), "
                f"set_config('tcp_keepalives_interval', '{_DEAD_AFTER_SECONDS // 20}', false), "
                "set_config('tcp_keepalives_count', '10', false)"
            )
            self.ask = text(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() "
                "AND classid = :what AND objid = :where AND granted"
            )
            self.release = text("SELECT pg_advisory_unlock(:what, :where)")
            return
        self.names = {"name": server_wide_name(connection, "run")}
        self.take = text("SELECT GET_LOCK(:name, 0)")
        self.guard = text(f"SET SESSION wait_timeout = {_DEAD_AFTER_SECONDS}")
        self.ask = text("SELECT IS_USED_LOCK(:name) = CONNECTION_ID()")
        self.release = text("SELECT RELEASE_LOCK(:name)")


def server_wide_name(connection: Connection, purpose: str) -> str:
    """A lock's name on MariaDB and MySQL, where names are the whole server's and at most 64 characters long."""
    database = str(connection.scalar(text("SELECT database()")))
    return f"metaharvest.{purpose}.{hashlib.sha256(database.encode()).hexdigest()[:32]}"


def _number(name: str) -> int:
    """A name as a positive 31-bit number."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") >> 1


# -- new connections


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # SQLAlchemy's way to have real transactions and savepoints from the sqlite3 module: it must not begin any itself.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in _SQLITE_PRAGMAS:
        _set_pragma(cursor, pragma)
    cursor.close()


def _set_pragma(cursor: Any, pragma: str) -> None:
    """Set it; a new file that two programs make write-ahead at once is "locked" for one of them, without a wait."""
    for left in reversed(range(_PRAGMA_TRIES)):
        try:
            cursor.execute(f"PRAGMA {pragma}")
            return
        except sqlite3.OperationalError as error:
            if not left or "locked" not in str(error):
                raise
            time.sleep(_PAUSE_SECONDS)


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))


def _prepare_postgresql(connection: Any, _record: object) -> None:
    connection.execute(_POSTGRESQL_SETTINGS)
    connection.commit()
