"""Fixtures that the tests of reports share: a database with all tables, a session, rows as the journal writes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from support.databases import TestDatabase, open_sqlite_file
from support.journal_rows import JournalRows


@pytest.fixture
def engine(database: TestDatabase, tmp_path: Path) -> Iterator[Engine]:
    """An empty database with all tables: SQLite, PostgreSQL, MariaDB in turn."""
    if database.engine is not None:
        yield database.engine
        return
    engine = open_sqlite_file(tmp_path / "journal.db")
    yield engine
    engine.dispose()


@pytest.fixture
def session(engine: Engine) -> Iterator[Session]:
    with Session(engine) as session:
        yield session


@pytest.fixture
def rows(session: Session) -> JournalRows:
    return JournalRows(session)
