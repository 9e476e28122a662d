"""Fixtures that the tests of reports share: a database with all tables, a session, rows as the journal writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url
from sqlalchemy.orm import Session

from metaharvest.database.engine import create_tables, open_url
from support.databases import Servers, TestDatabase
from support.journal_rows import JournalRows


@pytest.fixture(scope="session")
def engines(servers: Servers) -> Iterator[dict[str, Engine]]:
    """Engines by URL that stay open: to connect to a server takes longer than most tests."""
    opened: dict[str, Engine] = {}
    yield opened
    for engine in opened.values():
        engine.dispose()


@pytest.fixture
def engine(database: TestDatabase, engines: dict[str, Engine], tmp_path: Path) -> Iterator[Engine]:
    """An empty database with all tables: SQLite, PostgreSQL, MariaDB in turn."""
    if database.url:
        if database.url not in engines:
            engines[database.url] = open_url(make_url(database.url))
        yield engines[database.url]
        return
    engine = open_url(make_url(f"sqlite:///{tmp_path / 'journal.db'}"))
    create_tables(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    with Session(engine) as session:
        yield session


@pytest.fixture
def rows(session: Session) -> JournalRows:
    return JournalRows(session)
