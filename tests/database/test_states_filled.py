"""The state of each document is filled from the columns that said it before."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import make_url

from metaharvest.config.paths import data_folder
from metaharvest.database.engine import open_url, upgrade
from support.databases import KINDS, Servers
from support.harvester import rows_of

DAY = "'2026-11-20'"
WORDS = ("inserted", "updated", "unchanged", "deleted", "filtered", "stale", "deferred", "access-error", "invalid")
HELD = {"target_revision": "1", "sha256": "'x'"}
PENDING = {"pending_run": "1", "pending_sha256": "'x'"}
ASKED_FOR = {"next_attempt": DAY}
ROWS: dict[str, list[dict[str, str]]] = {
    "held": [{"outcome": f"'{each}'", **HELD} for each in WORDS[:3]],
    "left-out": [
        {"outcome": "'filtered'", "missing_since": DAY, "target_revision": "NULL"},
        {"outcome": "'stale'", **HELD},
    ],
    "failed": [{"outcome": "'invalid'", **HELD}, {"outcome": "'access-error'", **ASKED_FOR}, {"outcome": "NULL"}],
    "deferred": [{"outcome": "'deferred'", **HELD}, {"outcome": "'deferred'", **ASKED_FOR}],
    "pending": [
        {"outcome": "NULL", **PENDING},
        {"outcome": "'unchanged'", **HELD, **PENDING},
        {"outcome": "'deleted'", **HELD, **PENDING, "missing_since": DAY},
        {"outcome": "'deferred'", **PENDING, **ASKED_FOR},
    ],
    "pending-older": [{"outcome": "NULL", **PENDING, **ASKED_FOR}, {"outcome": "'unchanged'", **PENDING, **ASKED_FOR}],
    "older": [{"outcome": "'unchanged'", **HELD, **ASKED_FOR}, {"outcome": "'filtered'", **ASKED_FOR}],
    "reappeared": [{"outcome": "'deleted'", **HELD, **ASKED_FOR}],
    "to-delete": [
        {"to_delete": "true", "outcome": "NULL", "target_revision": "1"},
        {"to_delete": "true", "outcome": "'unchanged'", **HELD, **PENDING},
        {"to_delete": "true", "outcome": "'deferred'", **HELD},
        {"to_delete": "true", "outcome": "'upload-error'", **HELD},
    ],
    "to-confirm": [{"to_delete": "true", "outcome": "'deferred'", **HELD, **ASKED_FOR}],
    "deleted": [{"outcome": "'deleted'", **HELD}, {"outcome": "'deleted'", **HELD, "missing_since": DAY}],
    "missing": [
        {"outcome": "'unchanged'", **HELD, "missing_since": DAY},
        {"outcome": "'invalid'", **HELD, "missing_since": DAY},
    ],
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_row_has_the_state_that_its_columns_said(servers: Servers, tmp_path: Path, kind: str) -> None:
    with servers.another(kind) as url:
        engine = open_url(make_url(url or f"sqlite:///{tmp_path / 'before.db'}"))
        config = Config()
        config.set_main_option("script_location", str(data_folder("sql") / "migrations"))
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "0015")
        common = {"site_schedule_id": "1", "revision": "1", "document_url": "'u'", "document_type": "'t'"}
        for state, rows in ROWS.items():
            for number, columns in enumerate(rows):
                values = {**common, "document_id": f"'{state}/{number}'", **columns}
                names, given = ", ".join(values), ", ".join(values.values())
                rows_of(engine, f"INSERT INTO harvest_document ({names}) VALUES ({given})")
        upgrade(engine)
        found = dict(rows_of(engine, "SELECT document_id, state FROM harvest_document"))
        assert found == {f"{state}/{number}": state for state, rows in ROWS.items() for number in range(len(rows))}
        pending = "SELECT count(*) FROM harvest_document WHERE state = 'pending' AND missing_since IS NOT NULL"
        assert rows_of(engine, pending) == [(0,)]
        engine.dispose()
