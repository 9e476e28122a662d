"""Opens the database, creates and upgrades its tables, holds the run lock.

`dialects.py` has the differences between SQLite, PostgreSQL and MariaDB/MySQL, and `locks.py` the locks of each.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, insert, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, TimeoutError
from sqlalchemy.orm import Session

from metaharvest.config.files import create_private, make_folder
from metaharvest.config.paths import data_folder
from metaharvest.config.secret_references import resolve_secret
from metaharvest.config.settings import Settings, where_looked
from metaharvest.database import dialects, locks
from metaharvest.database.models import HarvestOperation, HarvestRun
from metaharvest.database.operations import OPERATIONS
from metaharvest.errors import DatabaseError, DatabaseUnavailable, LockHeld, SchemaMismatch, SettingsError
from metaharvest.model.actions import todo
from metaharvest.text import one_line, shown_url

SCHEMA_VERSION = "0033"
"""The newest migration in sql/migrations; the database must be at it."""

_NO_ROOM_BYTES = 1_000_000
_TRIES = 5
_Result = TypeVar("_Result")

SAYS_MORE = f"; {todo('installation.check')} says more."
"""The end of the sentence about a database that cannot be used; the check itself leaves it out."""


class Sessions:
    """Makes sessions. A `sessionmaker` makes a class first, which takes longer than a short transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __call__(self) -> Session:
        """A session without a transaction."""
        return Session(self._engine, expire_on_commit=False)

    @contextmanager
    def begin(self) -> Iterator[Session]:
        """A session with a transaction, which is committed at the end."""
        with self() as session, session.begin():
            yield session


def database_url(settings: Settings) -> URL:
    """The database's URL, with an absolute path for SQLite, and with its password. Raises SettingsError."""
    place = settings.place("database", "url")
    try:
        url = make_url(settings.database.url)
    except (ArgumentError, ValueError) as error:
        raise SettingsError(
            f"{place} = '{shown_url(settings.database.url)}' is not a database URL; "
            "write it like sqlite:///metaharvest.db, postgresql+psycopg://host/name or mysql+pymysql://host/name, "
            "with a user name and an @ before the host."
        ) from error
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            raise SettingsError(f"{place} names no file; write it like sqlite:///metaharvest.db.")
        return url.set(database=str(settings.path(Path(url.database))))
    secret = resolve_secret(settings.database.password, settings.folder)
    return url.set(password=secret) if secret else url


def open_database(settings: Settings) -> Engine:
    """An engine for the configured database; it connects when it is first used. Raises SettingsError."""
    return open_url(database_url(settings), settings.place("database", "url"))


OLDEST_SQLITE = (3, 33, 0)
"""The first version of SQLite with UPDATE FROM."""


def open_url(url: URL, place: str = "[database] url") -> Engine:
    """An engine for `url`, set up so that the databases behave alike.

    Raises SettingsError if it cannot be used, or if there is no driver for it; `place` is its place in the settings.
    """
    try:
        engine = create_engine(url, **dialects.engine_options(url))
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise SettingsError(f"{place} = {dialects.missing_driver(url)}") from error
    except (ArgumentError, ValueError) as error:
        raise SettingsError(f"{place} cannot be used: {one_line(str(error), 300)}.") from error
    if wrong := dialects.driver_error(engine):
        raise SettingsError(f"{place}: {wrong}")
    if engine.dialect.name == "sqlite" and sqlite3.sqlite_version_info < OLDEST_SQLITE:
        oldest = ".".join(map(str, OLDEST_SQLITE[:2]))
        raise SettingsError(
            f"{place}: this Python has SQLite {sqlite3.sqlite_version}; metaharvest needs SQLite {oldest} or later. "
            "Install a Python with a newer SQLite, or use PostgreSQL or MariaDB."
        )
    dialects.prepare(engine)
    return engine


def readers(engine: Engine) -> Sessions:
    """Sessions for reading."""
    return Sessions(engine)


def writers(engine: Engine) -> Sessions:
    """Sessions for writing: on SQLite each takes the write lock when it begins, so that it does not fail later."""
    return Sessions(engine.execution_options(sqlite_begin="BEGIN IMMEDIATE"))


def writers_without_wait(engine: Engine) -> Sessions:
    """As `writers`; on SQLite a session fails at once if another one has the write lock."""
    return Sessions(engine.execution_options(sqlite_begin="BEGIN IMMEDIATE", sqlite_wait_seconds=0))


def upgrade(engine: Engine) -> None:
    """Create the tables, or upgrade them to this program's version. Raises DatabaseUnavailable, SchemaMismatch."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(data_folder("sql") / "migrations").replace("%", "%%"))
    with database_errors(engine):
        create_file(engine)
        writing = engine.execution_options(sqlite_begin="BEGIN IMMEDIATE")
        with locks.upgrade_lock(engine), writing.begin() as connection:
            _require_encoding(connection)
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as error:
                raise SchemaMismatch(_newer(schema_version(connection), shown_database(engine))) from error
            _complete_operations(connection)


def database_file(engine: Engine) -> Path | None:
    """The file of a SQLite database; None for a database on a server, or in memory."""
    name = engine.url.database
    return Path(name) if engine.dialect.name == "sqlite" and name and name != ":memory:" else None


def create_file(engine: Engine) -> None:
    """Make the file of a SQLite database, with its folder, if it is not there; SQLite gives its journal the same mode.

    SQLite reports a file that cannot be made.
    """
    if file := database_file(engine):
        make_folder(file.parent)
        with suppress(OSError):
            create_private(file)


def create_tables(engine: Engine) -> None:
    """Create the tables without migrations, for a database that is thrown away afterwards."""
    from metaharvest.database.all_tables import Base

    with engine.begin() as connection:
        Base.metadata.create_all(connection)
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
        connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": SCHEMA_VERSION})
        _complete_operations(connection)


def require_there(engine: Engine, settings: Settings) -> None:
    """Raises DatabaseUnavailable if these settings name a missing SQLite file: they may be the wrong settings."""
    if (file := database_file(engine)) is None or file.exists():
        return
    database = shown_database(engine)
    if settings.file is None:
        raise DatabaseUnavailable(
            f"There is no settings file (looked for {where_looked()}), and no database at {database}. If there is an "
            f"installation, change to its folder, or name its settings file: {todo('installation.choose')}. If there "
            f"is none yet, {todo('installation.make')} makes one in this folder."
        )
    raise DatabaseUnavailable(
        f"There is no database at {database}, which the settings file {settings.file.absolute()} names. If another "
        f"file is meant: {todo('installation.choose')}. If this installation is new, {todo('installation.make')} "
        "creates it."
    )


def require_current(engine: Engine) -> None:
    """Raises SchemaMismatch if the tables are not this program's, DatabaseUnavailable if none can be used."""
    database = shown_database(engine)
    if (file := database_file(engine)) and not file.exists():
        raise DatabaseUnavailable(
            f"There is no database at {database} yet. Create it with {todo('installation.make')}."
        )
    with database_errors(engine), engine.connect() as connection:
        _require_encoding(connection)
        version = schema_version(connection)
    if version is None:
        raise SchemaMismatch(
            f"The database {database} has no tables yet. Create them with {todo('installation.make')}."
        )
    if version < SCHEMA_VERSION:
        raise SchemaMismatch(
            f"The database {database} is older than this program (its tables are at {version}, "
            f"this program's at {SCHEMA_VERSION}). Make a copy of it, then {todo('installation.make')} upgrades it."
        )
    if version > SCHEMA_VERSION:
        raise SchemaMismatch(_newer(version, database))


def _require_encoding(connection: Connection) -> None:
    """Raises DatabaseUnavailable if the database cannot hold every character."""
    if wrong := dialects.wrong_encoding(connection):
        raise DatabaseUnavailable(wrong)


def schema_version(connection: Connection) -> str | None:
    """The newest migration that the tables have had; None if there are no tables."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if version is None else str(version)


def shown_database(engine: Engine) -> str:
    """The database as it may be shown: a SQLite file's path, or the URL without its password."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    return engine.url.render_as_string(hide_password=True)


def repeated(transaction: Callable[[], _Result]) -> _Result:
    """The result of a transaction, which is tried again if another process wrote the same rows at this moment."""
    for _ in range(_TRIES - 1):
        try:
            return transaction()
        except DatabaseError as error:
            if not dialects.is_raced(error):
                raise
    return transaction()


@contextmanager
def database_errors(engine: Engine) -> Iterator[None]:
    """Turns the errors of a database that is away, full or read-only into DatabaseUnavailable, with a sentence.

    Other failed writes, such as printing, are no errors of the database.
    """
    try:
        yield
    except (DBAPIError, TimeoutError, OSError) as error:
        if isinstance(error, OSError) and not _is_about_its_file(error, engine):
            raise
        reason = dialects.reason_of(error) + _full_folder(engine) + _closed_folder(engine, error)
        raise DatabaseUnavailable(
            f"The database {shown_database(engine)} cannot be used: {reason}{'' if reason.endswith('?') else '.'} "
            f"Check that it is there and that this user may write to it{SAYS_MORE}"
        ) from error


def _is_about_its_file(error: OSError, engine: Engine) -> bool:
    """True if an error names the SQLite file, or one of its folders."""
    if (file := database_file(engine)) is None or not isinstance(error.filename, str | os.PathLike):
        return False
    return Path(error.filename) in (file, *file.parents)


def _full_folder(engine: Engine) -> str:
    """The folder that has no room, for a sentence about a SQLite file: its own or the one for temporary files."""
    if (file := database_file(engine)) is None:
        return ""
    folders = (file.parent, Path(dialects.temporary_folder()))
    full = [str(folder) for folder in folders if folder.is_dir() and shutil.disk_usage(folder).free < _NO_ROOM_BYTES]
    return f" (there is no room in {' and '.join(dict.fromkeys(full))})" if full else ""


def _closed_folder(engine: Engine, error: BaseException) -> str:
    """The folder in which this user cannot make SQLite's files, for a sentence; "" if it is about something else."""
    if (file := database_file(engine)) is None or not dialects.cannot_make_files(error):
        return ""
    folder = file.parent
    if not folder.is_dir() or os.access(folder, os.W_OK | os.X_OK):
        return ""
    return f" (SQLite makes files beside it, also to read it: this user may not write to the folder {folder})"


@contextmanager
def run_lock(engine: Engine, *, beside_workers: bool = False) -> Iterator[locks.HeldLock]:
    """Hold the lock that only one run at a time can have; the end of the process releases it, however it ends.

    On a server the lock belongs to a connection of its own, which may be lost: code that writes under the lock asks
    `still_held()` before each commit. Raises LockHeld if another process has the lock, or if workers harvest the sites
    of a run, unless `beside_workers`; DatabaseUnavailable.
    """
    with _lock_for(engine, "run") as lock:
        if not beside_workers:
            _require_no_workers(engine)
        yield lock


def pipeline_lock(engine: Engine) -> AbstractContextManager[locks.HeldLock]:
    """Hold the lock that only one process which runs the pipeline can have. Raises LockHeld, DatabaseUnavailable."""
    return _lock_for(engine, "pipeline", "runs the pipeline on")


def outbox_lock(engine: Engine) -> AbstractContextManager[locks.HeldLock]:
    """Hold the lock that only one process which delivers reports can have. Raises LockHeld, DatabaseUnavailable."""
    return _lock_for(engine, "outbox", "delivers the reports of")


@contextmanager
def _lock_for(engine: Engine, purpose: str, what: str = "") -> Iterator[locks.HeldLock]:
    """Hold the lock for a purpose. `what`: the work of the process that has it; empty for a run."""
    with database_errors(engine):
        lock = locks.take_lock(engine, purpose)
    if lock is None and what:
        raise LockHeld(f"Another process {what} {shown_database(engine)}. Try again when it is done.")
    if lock is None:
        holder = _holder(engine) or ", or documents are being copied (`target copy`)"
        raise LockHeld(f"Another run is under way on {shown_database(engine)}{holder}.")
    try:
        yield lock
    finally:
        lock.release()


def open_run_of_workers(session: Session) -> int | None:
    """The number of the run whose sites workers harvest; None if there is none."""
    open_runs = select(HarvestRun.run_id).where(HarvestRun.status == "running", HarvestRun.distributed.is_(True))
    return session.scalar(open_runs.limit(1))


def _require_no_workers(engine: Engine) -> None:
    """Raises LockHeld if workers harvest the sites of a run. Tables of an older program know no such runs."""
    with suppress(DatabaseError), database_errors(engine), readers(engine)() as session:
        if run_id := open_run_of_workers(session):
            raise LockHeld(
                f"Workers harvest the sites of run {run_id} on {shown_database(engine)}: {todo('jobs.list')} shows "
                f"their work, {todo('runs.stop')} stops it."
            )


def _holder(engine: Engine) -> str:
    """The holder of the lock, and since when, if the database knows; otherwise an empty text."""
    statement = select(HarvestRun).where(HarvestRun.status == "running").order_by(HarvestRun.run_id.desc()).limit(1)
    # The tables may not be there yet; the message is complete without it.
    with suppress(DatabaseError), database_errors(engine), readers(engine)() as session:
        if run := session.scalar(statement):
            return f": run {run.run_id}, by {run.host} (process {run.pid}), since {run.started_at:%Y-%m-%d %H:%M} UTC"
    return ""


def _newer(version: str | None, database: str) -> str:
    return (
        f"The database {database} is newer than this program (its tables are at {version}, this program's at "
        f"{SCHEMA_VERSION}). Install the version of metaharvest that made it, or a later one."
    )


def _complete_operations(connection: Connection) -> None:
    known = set(connection.scalars(select(HarvestOperation.harvest_operation_code)))
    missing = [
        {"harvest_operation_code": code, "level": level, "explanation": explanation}
        for code, (level, explanation) in OPERATIONS.items()
        if code not in known
    ]
    if missing:
        connection.execute(insert(HarvestOperation), missing)
