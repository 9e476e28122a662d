"""The run lock, which only one run at a time can hold, the locks of the pipeline and of the outbox, and the lock for
upgrades of tables.

SQLite has a lock file next to the database; PostgreSQL has advisory locks; MariaDB and MySQL have GET_LOCK. Each is
released when the process that holds it ends, however it ends. `engine.py` uses the locks, and has the sentences for
people.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, TextClause, text
from sqlalchemy.exc import DBAPIError

from metaharvest.config.files import mode_of
from metaharvest.errors import DatabaseUnavailable

_UPGRADE_WAIT_SECONDS = 60
"""The time that an upgrade waits for another one on MariaDB and MySQL."""

_TRIES = 6
_PAUSE_SECONDS = 0.2
"""The pause between tries: a server takes a moment to notice that the process with the lock has ended."""

_KEEP_ALIVE_SECONDS = 60
_DEAD_AFTER_SECONDS = 600
"""A server releases the lock of a machine after this time of silence, PostgreSQL after 360 s: no power, no network."""


def take_lock(engine: Engine, purpose: str = "run") -> HeldLock | None:
    """The lock of this database for a purpose; None if another process has it. Raises DBAPIError, DatabaseUnavailable.

    The purposes are `run`, `pipeline` and `outbox`.
    """
    if engine.dialect.name == "sqlite":
        return _FileLock.take(f"{engine.url.database}.{'' if purpose == 'run' else f'{purpose}.'}lock")
    with ExitStack() as unless_taken:
        connection = unless_taken.enter_context(_lasting_connection(engine))
        for left in reversed(range(_TRIES)):
            if lock := _SessionLock.take(connection, purpose):
                unless_taken.pop_all()
                return lock
            if left:
                time.sleep(_PAUSE_SECONDS)
    return None


def _lasting_connection(engine: Engine) -> Connection:
    """A connection outside of the pool and of transactions, for a lock that it holds until it is closed."""
    connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    connection.detach()
    return connection


@contextmanager
def upgrade_lock(engine: Engine) -> Iterator[None]:
    """Hold the lock for creating or upgrading tables; wait for it. SQLite needs none: its write lock is enough.

    A connection of its own holds it until after the commit.
    """
    if engine.dialect.name == "sqlite":
        yield
        return
    with _lasting_connection(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_lock(:what)"), {"what": _number("metaharvest upgrade")})
        else:
            name = {"name": server_wide_name(connection, "upgrade")}
            if not connection.scalar(text(f"SELECT GET_LOCK(:name, {_UPGRADE_WAIT_SECONDS})"), name):
                raise DatabaseUnavailable("Another program is changing the tables; try again when it is done.")
        yield


class _FileLock:
    """A lock file next to the SQLite file; the operating system releases it when the process ends."""

    def __init__(self, lock: Any) -> None:
        self._lock = lock

    @classmethod
    def take(cls, path: str) -> _FileLock | None:
        from filelock import FileLock, Timeout

        lock = FileLock(path, mode=mode_of(Path(path)) | 0o600, timeout=0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            return None
        except OSError as error:
            reason = f"{error.strerror}. Let this user write to the folder of the database."
            raise DatabaseUnavailable(f"The lock file {path} cannot be written: {reason}") from error
        return cls(lock)

    def still_held(self) -> bool:
        return bool(self._lock.is_locked)

    def release(self) -> None:
        self._lock.release()


class _SessionLock:
    """A named lock of the server. It belongs to one connection, which a thread uses often enough to keep it open."""

    def __init__(self, connection: Connection, statements: _LockStatements) -> None:
        self._connection = connection
        self._statements = statements
        self._held = True
        self._lost: DBAPIError | None = None
        self._mutex = threading.Lock()
        self._released = threading.Event()
        threading.Thread(target=self._keep_alive, name="run-lock", daemon=True).start()

    @classmethod
    def take(cls, connection: Connection, purpose: str) -> _SessionLock | None:
        statements = _LockStatements(connection, purpose)
        if not connection.scalar(statements.take, statements.names):
            return None
        connection.execute(statements.guard)
        return cls(connection, statements)

    def still_held(self) -> bool:
        """True if it is still held. Raises DBAPIError, from then on, if the connection that held it is lost."""
        with self._mutex:
            if self._held:
                try:
                    self._held = bool(self._connection.scalar(self._statements.ask, self._statements.names))
                except DBAPIError as error:
                    self._held, self._lost = False, error
            if self._lost is not None:
                raise self._lost
            return self._held

    def release(self) -> None:
        """Release it; a lock that was lost is left alone."""
        self._released.set()
        with self._mutex, self._connection:
            if not self._held:
                return
            self._held = False
            # If this fails, the connection is gone, and the lock with it.
            with suppress(DBAPIError):
                self._connection.execute(self._statements.release, self._statements.names)

    def _keep_alive(self) -> None:
        while not self._released.wait(_KEEP_ALIVE_SECONDS):
            # The next writer gets an error.
            with suppress(DBAPIError):
                self.still_held()


HeldLock = _FileLock | _SessionLock
"""The run lock, held by this process."""


class _LockStatements:
    """The SQL of a session lock: take it, let a dead machine lose it, check it, release it."""

    def __init__(self, connection: Connection, purpose: str) -> None:
        self.names: Mapping[str, object]
        if connection.dialect.name == "postgresql":
            # An advisory lock holds for one database; the schema distinguishes two installations in it.
            schema = connection.scalar(text("SELECT current_schema()"))
            program = "metaharvest" if purpose == "run" else f"metaharvest {purpose}"
            self.names = {"what": _number(program), "where": _number(str(schema))}
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
        self.names = {"name": server_wide_name(connection, purpose)}
        self.take = text("SELECT GET_LOCK(:name, 0)")
        self.guard = text(f"SET SESSION wait_timeout = {_DEAD_AFTER_SECONDS}")
        self.ask = text("SELECT IS_USED_LOCK(:name) = CONNECTION_ID()")
        self.release = text("SELECT RELEASE_LOCK(:name)")


def server_wide_name(connection: Connection, purpose: str) -> str:
    """A lock's name on MariaDB and MySQL, where it must be unique on the server and at most 64 characters long."""
    database = str(connection.scalar(text("SELECT database()")))
    return f"metaharvest.{purpose}.{hashlib.sha256(database.encode()).hexdigest()[:32]}"


def _number(name: str) -> int:
    """A positive 31-bit number made from `name`; PostgreSQL numbers its advisory locks."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") >> 1
