"""The databases that a full night is measured on: SQLite always, the servers that answer beside it.

Each gets a throw-away database, dropped afterwards; durability is as the server has it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import DBAPIError

from metaharvest.database.engine import open_url
from metaharvest.errors import SettingsError

NAME = f"metaharvest_benchmark_{os.getpid()}"
SQLITE = "sqlite:///metaharvest.db"
SERVERS = {
    "PostgreSQL": ("METAHARVEST_TEST_POSTGRESQL_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres"),
    "MariaDB": ("METAHARVEST_TEST_MYSQL_URL", "mysql+pymysql://root@127.0.0.1:3306/"),
}


class NoServer(Exception):
    """A database server is not there; the message says what to do about it."""


@contextmanager
def server_database(kind: str) -> Iterator[str]:
    """The URL of a throw-away database on the server. Raises NoServer."""
    variable, default = SERVERS[kind]
    home = make_url(os.environ.get(variable, default))
    try:
        engine = open_url(home)
        _execute(engine, f"CREATE DATABASE {NAME}")
    except (SettingsError, DBAPIError) as error:
        raise NoServer(f"{kind} does not answer; set {variable} to the URL of a server for tests") from error
    try:
        yield home.set(database=NAME).render_as_string(hide_password=False)
    finally:
        _execute(engine, f"DROP DATABASE {NAME}{' WITH (FORCE)' if kind == 'PostgreSQL' else ''}")
        engine.dispose()


def _execute(engine: Engine, statement: str) -> None:
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(statement))
