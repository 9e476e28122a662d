"""Transfers that only the log told of, before they had a table of their own, are known after the upgrade."""

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

SITES = ("elm", "basalt's flats", "fern")
TOLD = [
    (1, "a.1", "a.1 was transferred from the site 'elm' to the site 'fern' by kim."),
    (None, "a.2", "a.2 was transferred from no registered site to the site 'basalt's flats'."),
    (3, "a.1", "a.1 was transferred from the site 'fern' to the site 'gone' by o'hara."),
    (2, "a.3", "a sentence that somebody has changed"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_transfers_of_the_log_are_taken_over_once(servers: Servers, tmp_path: Path, kind: str) -> None:
    with servers.another(kind) as url:
        engine = open_url(make_url(url or f"sqlite:///{tmp_path / 'before.db'}"))
        config = Config()
        config.set_main_option("script_location", str(data_folder("sql") / "migrations"))
        with engine.begin() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "0003")
        for name in SITES:
            rows_of(engine, "INSERT INTO harvest_site_schedule (name, documentlisturl) VALUES (?, 'x')", name)
        run = "harvest_date, started_at, status, host, pid, heartbeat_at"
        rows_of(
            engine, f"INSERT INTO harvest_run ({run}) VALUES ('2026-11-20', '2026-11-20', 'x', 'x', 1, '2026-11-20')"
        )
        rows_of(engine, "INSERT INTO harvest_operation VALUES ('UpdateDocSuccess', 'x', 'info')")
        columns = (
            "harvest_date, logged_at, status, message, harvest_operation_code, site_schedule_id, run_id, document_id"
        )
        for site_id, document_id, message in TOLD:
            values = "'2026-11-20', '2026-11-21 03:04:05.678901', 0, ?, 'UpdateDocSuccess', ?, 1, ?"
            rows_of(engine, f"INSERT INTO harvest_log ({columns}) VALUES ({values})", message, site_id, document_id)
        for _ in range(2):
            upgrade(engine)
        told = "SELECT document_id, from_site_id, from_site, to_site_id, to_site, transferred_by, message, run_id"
        assert rows_of(engine, f"{told} FROM document_transfer ORDER BY transfer_id") == [
            ("a.1", 1, "elm", 3, "fern", "kim", TOLD[0][2], 1),
            ("a.2", None, None, 2, "basalt's flats", "", TOLD[1][2], 1),
            ("a.1", 3, "fern", None, "gone", "o'hara", TOLD[2][2], 1),
            ("a.3", 2, None, None, "", "", TOLD[3][2], 1),
        ]
        [(day, moment)] = rows_of(engine, "SELECT DISTINCT transferred_on, transferred_at FROM document_transfer")
        assert (day, moment) == ("2026-11-20", "2026-11-21 03:04:05.678901")
        engine.dispose()
