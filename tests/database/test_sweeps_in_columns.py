"""How far a sweep has come moves from the words of its source into columns, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import make_url

from metaharvest.config.paths import data_folder
from metaharvest.database.engine import open_url, upgrade
from support.databases import KINDS, Servers
from support.harvester import rows_of

SWEEP = {"full": True, "todo": [{"begin": None}], "token": "t'1", "received": 10, "announced": 25, "came": 3}
OF_RUN = {"treatment": "d" * 64, "again": True, "moved": 2}
BEFORE: dict[int, dict[str, Any]] = {
    1: {"watermark": "2026", "sweep": SWEEP, **OF_RUN},
    2: {"watermark": "2026", "sweep": {**SWEEP, "full": False, "announced": None}, **OF_RUN, "again": False},
    3: {"watermark": "2026", "sweep": None, "full": True, "again": False, "moved": 0},
    4: {"token": "of another source"},
}
COLUMNS = "treatment, rechecks, moved, full_wanted, kind, windows, token, received, announced"
WINDOWS = json.dumps(SWEEP["todo"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_sweep_is_kept_in_columns(servers: Servers, tmp_path: Path, kind: str) -> None:
    with servers.another(kind) as url:
        engine = open_url(make_url(url or f"sqlite:///{tmp_path / 'before.db'}"))
        config = Config()
        config.set_main_option("script_location", str(data_folder("sql") / "migrations"))
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "0016")
        for site_id, checkpoint in BEFORE.items():
            values = f"{site_id}, '{json.dumps(checkpoint).replace(chr(39), chr(39) * 2)}'"
            rows_of(engine, f"INSERT INTO site_checkpoint (site_schedule_id, checkpoint) VALUES ({values})")
        rows_of(engine, "INSERT INTO site_checkpoint (site_schedule_id, confirmed) VALUES (5, 7)")
        upgrade(engine)
        found = [tuple(row) for row in rows_of(engine, f"SELECT {COLUMNS} FROM site_checkpoint ORDER BY 1, 5")]
        assert sorted(found, key=str) == sorted(
            [
                ("d" * 64, True, 2, False, "full", WINDOWS, "t'1", 10, 25),
                ("d" * 64, False, 2, False, "changes", WINDOWS, "t'1", 10, None),
                (None, False, 0, True, None, None, None, None, None),
                (None, False, 0, False, None, None, None, None, None),
                (None, False, 0, False, None, None, None, None, None),
            ],
            key=str,
        )
        kept = {site_id: json.loads(text) for site_id, text in checkpoints(engine)}
        assert kept[1] == {"watermark": "2026", "sweep": {"came": 3}}
        assert kept[4] == BEFORE[4]
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.downgrade(config, "0016")
        back = {site_id: json.loads(text) for site_id, text in checkpoints(engine)}
        defaults = {"again": False, "moved": 0}
        assert back == {**BEFORE, 4: {**BEFORE[4], **defaults}}
        engine.dispose()


def checkpoints(engine: Any) -> list[tuple[int, str]]:
    sql = "SELECT site_schedule_id, checkpoint FROM site_checkpoint WHERE checkpoint IS NOT NULL"
    return [(row[0], row[1]) for row in rows_of(engine, sql)]
