"""A new database in memory, for the queries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.orm import Session

from support.journal_rows import JournalRows, new_database


@pytest.fixture
def session() -> Iterator[Session]:
    engine = new_database()
    with Session(engine) as opened:
        yield opened
    engine.dispose()


@pytest.fixture
def rows(session: Session) -> JournalRows:
    return JournalRows(session)
