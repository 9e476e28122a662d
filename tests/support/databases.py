"""Throw-away databases for tests on the real servers: made once, emptied between tests, dropped at the end."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Connection, Dialect, Engine, make_url, text
from sqlalchemy.dialects.mysql.pymysql import MySQLDialect_pymysql
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.exc import DBAPIError

from metaharvest.database.all_tables import Base
from metaharvest.database.engine import SCHEMA_VERSION, open_url, upgrade
from metaharvest.errors import SettingsError
from support.gmn import MemberNode, is_installed

KINDS = ("sqlite", "postgresql", "mariadb")

_SERVERS = {
    "postgresql": ("METAHARVEST_TEST_POSTGRESQL_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres"),
    "mariadb": ("METAHARVEST_TEST_MYSQL_URL", "mysql+pymysql://root@127.0.0.1:3306/?ssl_disabled=1"),
}
_URLS = {kind: os.environ.get(variable, default) for kind, (variable, default) in _SERVERS.items()}
_KEPT = ("harvest_operation",)
_NO_GMN = "GMN, a DataONE member node, is not installed for the tests: `make test` does it, or `python -m support.gmn`."

on_one_database = pytest.mark.parametrize("database", KINDS[:1], indirect=True)
"""For tests in which the database has no say: whatever they ask of it, others ask of every kind of database."""


@dataclass(frozen=True)
class TestDatabase:
    """The database of one test: its kind, and its URL for a settings file (empty: the default, a SQLite file).

    `engine`: one for it that stays open; None for SQLite.
    """

    __test__ = False

    kind: str
    url: str
    engine: Engine | None = None


def hide_servers() -> None:
    """Take the URLs of the servers out of the environment: `doctor` warns of variables that set nothing."""
    for variable, _ in _SERVERS.values():
        os.environ.pop(variable, None)


class Server:
    """A throw-away database on a server, without any table yet."""

    def __init__(self, kind: str, options: str = "") -> None:
        self.kind = kind
        self._home = make_url(_URLS[kind])
        self._name = f"metaharvest_test_{os.getpid()}_{uuid.uuid4().hex[:8]}"
        self.url = self._home.set(database=self._name)
        self._execute(f"CREATE DATABASE {self._name} {options}")
        if kind == "postgresql":
            self._execute(f"ALTER DATABASE {self._name} SET synchronous_commit = off")

    @cached_property
    def engine(self) -> Engine:
        return open_url(self.url)

    def empty(self) -> None:
        """Back to the state after `init`: no rows, numbers begin with one, the version as it was."""
        names = [each.name for each in reversed(Base.metadata.sorted_tables) if each.name not in _KEPT]
        # A question about all tables, and a statement for a table with rows: most tests use few tables.
        question = " UNION ALL ".join(f"(SELECT '{name}' FROM {name} LIMIT 1)" for name in names)
        with self.engine.begin() as connection:
            used = set(connection.exec_driver_sql(question).scalars())
            for name in names:
                if name in used:
                    connection.exec_driver_sql(f"DELETE FROM {name}")
            connection.execute(text("CREATE TABLE IF NOT EXISTS alembic_version (version_num VARCHAR(32) NOT NULL)"))
            connection.execute(text("DELETE FROM alembic_version"))
            connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": SCHEMA_VERSION})
            restart = _restart_postgresql if self.kind == "postgresql" else _restart_mariadb
            restart(connection)

    def drop(self) -> None:
        self.engine.dispose()
        self._execute(f"DROP DATABASE {self._name}" + (" WITH (FORCE)" if self.kind == "postgresql" else ""))

    def _execute(self, statement: str) -> None:
        home = open_url(self._home)
        with home.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(statement))
        home.dispose()


class Servers:
    """The servers that tests have asked for so far."""

    def __init__(self) -> None:
        self._made: dict[str, Server | str] = {}
        self._member_node: MemberNode | None = None
        self._of_node: list[Server] = []
        self._folders: list[tempfile.TemporaryDirectory[str]] = []

    def require(self, kind: str) -> Server:
        """The throw-away database on the server of this kind; skips the test where there is no such server."""
        if kind not in self._made:
            self._made[kind] = _server(kind)
        server = self._made[kind]
        if isinstance(server, Server):
            return server
        if os.environ.get("REQUIRE_SERVICES") == "1":
            pytest.fail(server)
        pytest.skip(server)

    def test_database(self, kind: str) -> TestDatabase:
        """The database for a test; with SQLite, the file that the settings name by default."""
        if kind == "sqlite":
            return TestDatabase(kind, "")
        server = self.require(kind)
        server.empty()
        return TestDatabase(kind, server.url.render_as_string(hide_password=False), server.engine)

    def member_node(self) -> MemberNode:
        """A DataONE member node without objects, started when it is first wanted; skips the test without it."""
        if self._member_node is None:
            self.require("postgresql")
            if not is_installed():
                (pytest.fail if os.environ.get("REQUIRE_SERVICES") == "1" else pytest.skip)(_NO_GMN)
            folder = tempfile.TemporaryDirectory(prefix="metaharvest-gmn-")
            self._folders.append(folder)
            self._of_node.append(Server("postgresql"))
            self._member_node = MemberNode(Path(folder.name), self._of_node[0].engine)
        self._member_node.empty()
        return self._member_node

    @contextmanager
    def bare(self, kind: str, options: str = "") -> Iterator[Engine]:
        """An engine for one more database on that server, without any table."""
        self.require(kind)
        server = Server(kind, options)
        try:
            yield server.engine
        finally:
            server.drop()

    @contextmanager
    def another(self, kind: str) -> Iterator[str]:
        """The URL of one more database without any table; empty for SQLite, whose file is where the settings are."""
        if kind == "sqlite":
            yield ""
            return
        with self.bare(kind) as engine:
            yield engine.url.render_as_string(hide_password=False)

    def drop(self) -> None:
        if self._member_node is not None:
            self._member_node.kill()
        for server in (*self._made.values(), *self._of_node):
            if isinstance(server, Server):
                server.drop()
        for folder in self._folders:
            folder.cleanup()


def open_sqlite_file(file: Path) -> Engine:
    """An engine for an empty database with all tables, as `init` makes it; a file that is there already is kept."""
    if not file.exists():
        file.write_bytes(empty_sqlite_file())
    return open_url(URL.create("sqlite", database=str(file)))


@cache
def empty_sqlite_file() -> bytes:
    """A SQLite file with all tables, as `init` makes it."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "empty.db"
        engine = open_url(URL.create("sqlite", database=str(file)))
        upgrade(engine)
        engine.dispose()
        return file.read_bytes()


def share_compiled_statements() -> None:
    """Have all engines of this process for one kind of database share what they compile: that takes most tests' time.

    A kind is on one server here. The dialect is part of what a compiled statement is found by, so it is shared too, as
    soon as it has asked its server what it is like; MariaDB's knows the name of its database.
    """
    for dialect in (SQLiteDialect_pysqlite, PGDialect_psycopg, MySQLDialect_pymysql):
        dialect.engine_created = classmethod(_share)  # type: ignore[assignment,method-assign]


_shared: dict[tuple[type[Dialect], str | None], tuple[Dialect, dict[Any, Any]]] = {}


def _share(kind: type[Dialect], engine: Engine) -> None:
    of = kind, engine.url.database if engine.dialect.name == "mysql" else None
    if of not in _shared or not getattr(_shared[of][0], "server_version_info", None):
        _shared[of] = engine.dialect, {}
    engine.dialect, compiled = _shared[of]
    engine.update_execution_options(compiled_cache=compiled)


def _restart_postgresql(connection: Connection) -> None:
    given_out = "pg_sequence_last_value(seqrelid) IS NOT NULL"
    connection.execute(text(f"SELECT setval(seqrelid, 1, false) FROM pg_sequence WHERE {given_out}"))


def _restart_mariadb(connection: Connection) -> None:
    # Each ALTER waits for the disk: only those tables that have given out numbers.
    used = connection.scalars(
        text("SELECT table_name FROM information_schema.tables WHERE table_schema = database() AND auto_increment > 1")
    )
    for name in used.all():
        connection.execute(text(f"ALTER TABLE {name} AUTO_INCREMENT = 1"))


def _server(kind: str) -> Server | str:
    variable, default = _SERVERS[kind]
    try:
        server = Server(kind)
        upgrade(server.engine)
        return server
    except (DBAPIError, SettingsError) as error:
        return (
            f"No {kind} server was found ({error}). Install and start one (Debian: `apt install "
            f"{'postgresql' if kind == 'postgresql' else 'mariadb-server'}`) and name it in {variable}, "
            f"a user that may create databases; without it {default} is tried."
        )
