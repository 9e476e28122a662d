"""Files whose rows are gone are deleted, those that rows name stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.engine import writers
from metaharvest.pipeline import leftovers
from metaharvest.pipeline.stage import Context
from support.databases import open_sqlite_file


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Context]:
    engine = open_sqlite_file(tmp_path / "test.db")
    yield Context(engine, Settings(), lambda: datetime.now(UTC))
    engine.dispose()


def test_a_noted_file_is_deleted_once_if_no_row_names_it(context: Context) -> None:
    deleted: list[str] = []

    def used(_session: Session, digests: Sequence[str]) -> Sequence[str]:
        return [each for each in digests if each == "b"]

    def remove(digest: str) -> bool:
        deleted.append(digest)
        return digest != "young"

    with writers(context.engine).begin() as session:
        leftovers.note(session, "text", ["a", "b", "young"])
        leftovers.note(session, "text", ["a"])
        leftovers.note(session, "file", ["c"])
    leftovers.delete_unused(context, "text", used, remove)
    assert sorted(deleted) == ["a", "young"]
    deleted.clear()
    leftovers.delete_unused(context, "text", used, remove)
    assert deleted == ["young"]
