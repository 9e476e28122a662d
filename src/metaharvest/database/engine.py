"""Opens the database, creates and upgrades its tables, takes the run lock.

What differs between databases in how they are opened and locked is here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, inspect, make_url, select, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.orm import Session, sessionmaker

from metaharvest.database.models import OPERATIONS, Base, HarvestOperation, HarvestRun
from metaharvest.errors import DatabaseUnavailable, LockHeld, SchemaMismatch, SettingsError
from metaharvest.resources import data_folder
from metaharvest.settings import Settings, resolve_secret
from metaharvest.text import one_line, shown_url

SCHEMA_VERSION = "0001"
"""The newest migration in sql/migrations; the database must be at it."""

Sessions = sessionmaker[Session]


def database_url(settings: Settings) -> URL:
    """The database's URL: relative SQLite paths made absolute, the password filled in from its reference."""
    try:
        url = make_url(settings.database.url)
    except ArgumentError as error:
        raise SettingsError(
            f"[database] url = '{shown_url(settings.database.url)}' is not a database URL; "
            "write it like sqlite:///metaharvest.db or postgresql+psycopg://user@host/name."
        ) from error
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            raise SettingsError("[database] url names no file; write it like sqlite:///metaharvest.db.")
        return url.set(database=str(settings.path(Path(url.database))))
    secret = resolve_secret(settings.database.password, settings.folder)
    return url.set(password=secret) if secret else url


def open_database(settings: Settings) -> Engine:
    """An engine for the configured database; nothing is opened yet. Raises SettingsError."""
    return open_url(database_url(settings))


def open_url(url: URL) -> Engine:
    """An engine for `url`, with what each database needs to behave alike."""
    try:
        engine = create_engine(url, pool_pre_ping=url.get_backend_name() != "sqlite")
    except (NoSuchModuleError, ModuleNotFoundError) as error:
        raise SettingsError(
            f"[database] url = '{url.render_as_string()}': its driver is not installed ({one_line(str(error))})."
        ) from error
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def readers(engine: Engine) -> Sessions:
    """Sessions for reading."""
    return sessionmaker(engine, expire_on_commit=False)


def writers(engine: Engine) -> Sessions:
    """Sessions for writing: on SQLite each takes the write lock as it begins, so that none fails half-way for it."""
    return sessionmaker(engine.execution_options(sqlite_begin="BEGIN IMMEDIATE"), expire_on_commit=False)


def upgrade(engine: Engine) -> None:
    """Create the tables, or bring them up to this program. Raises DatabaseUnavailable, SchemaMismatch."""
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(data_folder("sql") / "migrations").replace("%", "%%"))
    with database_errors(engine):
        if engine.dialect.name == "sqlite" and engine.url.database:
            Path(engine.url.database).parent.mkdir(parents=True, exist_ok=True)
        with engine.execution_options(sqlite_begin="BEGIN IMMEDIATE").begin() as connection:
            config.attributes["connection"] = connection
            try:
                command.upgrade(config, "head")
            except CommandError as error:
                raise SchemaMismatch(_newer(schema_version(connection), engine)) from error
            _complete_operations(connection)


def create_tables(engine: Engine) -> None:
    """The tables at once, for a database that is thrown away afterwards."""
    with engine.begin() as connection:
        Base.metadata.create_all(connection)
        connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
        connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": SCHEMA_VERSION})
        _complete_operations(connection)


def require_current(engine: Engine) -> None:
    """Raises SchemaMismatch where the tables are not those of this program, DatabaseUnavailable without a database."""
    if engine.dialect.name == "sqlite" and not Path(engine.url.database or "").exists():
        raise DatabaseUnavailable(f"There is no database at {shown(engine)} yet. Create it with `metaharvest init`.")
    with database_errors(engine), engine.connect() as connection:
        version = schema_version(connection)
    if version is None:
        raise SchemaMismatch(f"The database {shown(engine)} has no tables yet. Create them with `metaharvest init`.")
    if version < SCHEMA_VERSION:
        raise SchemaMismatch(
            f"The database {shown(engine)} is older than this program (its tables are at {version}, "
            f"this program's at {SCHEMA_VERSION}). Make a copy of it, then run `metaharvest init` to upgrade it."
        )
    if version > SCHEMA_VERSION:
        raise SchemaMismatch(_newer(version, engine))


def schema_version(connection: Connection) -> str | None:
    """The migration that the tables are at; None where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if version is None else str(version)


def shown(engine: Engine) -> str:
    """The database as it may be shown: a SQLite file's path, or the URL without its password."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    return engine.url.render_as_string(hide_password=True)


@contextmanager
def database_errors(engine: Engine) -> Iterator[None]:
    """Turns what a database that is away, full or read-only raises into DatabaseUnavailable, with a sentence."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (DBAPIError, OSError) as error:
        reason = getattr(error, "orig", None) or error
        raise DatabaseUnavailable(
            f"The database {shown(engine)} cannot be used: {one_line(str(reason))}. "
            "Check that it is there and that this user may write to it; `metaharvest doctor` tells more."
        ) from error


@contextmanager
def run_lock(engine: Engine) -> Iterator[None]:
    """Hold the lock that only one run at a time can have; it goes with the process, however that ends.

    Raises LockHeld at once where another process has it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(f"{engine.url.database}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise LockHeld(f"Another run is under way on {shown(engine)}{_holder(engine)}.") from error
    except OSError as error:
        raise DatabaseUnavailable(
            f"The lock file {lock.lock_file} cannot be written: {error.strerror}. "
            "Let this user write to the folder of the database."
        ) from error
    try:
        yield
    finally:
        lock.release()


def _holder(engine: Engine) -> str:
    """Who holds the lock, and since when, as far as the database says."""
    statement = select(HarvestRun).where(HarvestRun.status == "running").order_by(HarvestRun.run_id.desc()).limit(1)
    with database_errors(engine), readers(engine)() as session:
        run = session.scalar(statement)
    if run is None:
        return ""
    return f": run {run.run_id}, by {run.host} (process {run.pid}), since {run.started_at:%Y-%m-%d %H:%M} UTC"


def _newer(version: str | None, engine: Engine) -> str:
    return (
        f"The database {shown(engine)} is newer than this program (its tables are at {version}, this program's at "
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


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # SQLAlchemy's way to have real transactions and savepoints from the sqlite3 module: it must not begin any itself.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("busy_timeout=30000", "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
