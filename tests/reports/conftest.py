"""Fixtures that the tests of reports share: a database with all tables, a session, rows as the journal writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, make_url
from sqlalchemy.orm import Session

from metaharvest.database.engine import create_tables, open_url
from support.databases import TestDatabase
from support.journal_rows import JournalRows


@pytest.fixture
def engine(database: TestDatabase, tmp_path: Path) -> Iterator[Engine]:
    """An empty database with all tables: SQLite, PostgreSQL, MariaDB in turn."""
    if database.engine is not None:
        yield database.engine
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
