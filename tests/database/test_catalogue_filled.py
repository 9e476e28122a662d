"""A database from before the catalogue has a row there for each document of the embedded target."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, make_url

from metaharvest.catalogue.selection import Selection, list_entries
from metaharvest.config.paths import data_folder
from metaharvest.database.engine import open_url, readers, upgrade
from support.databases import KINDS, Servers
from support.harvester import rows_of

REVISIONS = [
    ("a.1", 1, "2026-11-01 00:00:00.700000"),
    ("a.2", 1, "2026-11-02 00:00:00"),
    ("a.1", 2, "2026-11-03 00:00:00.900000"),
    ("a.3", 1, "2099-01-01 00:00:00"),
    ("r.org/oai_dc/oai:r:1", 4, "2026-11-04 00:00:00"),
    ("r.org/oai_dc/oai:r:1", 3, "2026-11-05 00:00:00"),
    ("s.1", 1, "2026-11-06 00:00:00"),
]
CONTENTS = {"a.1": b"<x>", "a.2": b"<!DOCTYPE x SYSTEM 'x.dtd'><x/>", "a.3": b"<!DOCTYPE x [<!ENTITY e 'x'>]><x/>"}
CHANGED = "SELECT document_id, changed_at FROM catalogue_document ORDER BY change_seq"


def up_to(engine: Engine, version: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(data_folder("sql") / "migrations"))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)


def fill(engine: Engine) -> None:
    for document_id, revision, moment in REVISIONS:
        rows_of(
            engine,
            "INSERT INTO document_revision (document_id, revision, document_type, size, sha256, source_url, "
            "site_schedule_id, inserted_at, content) VALUES (?, ?, 'eml', 1, ?, 'u', 1, ?, ?)",
            *(document_id, revision, f"{document_id}/{revision}", moment, CONTENTS.get(document_id, b"<x/>")),
        )


def fill_later(engine: Engine) -> None:
    """What an installation of 0.1 does not have: origins, tombstones, titles."""
    origin = (
        "INSERT INTO document_origin (document_id, revision, base_url, identifier, prefix, datestamp, response_date, "
        "namespace, digest, altered, sets, about) VALUES (?, ?, 'u', 'oai:r:1', ?, '', '', 'eml', '', FALSE, ?, '[]')"
    )
    rows_of(engine, origin, "r.org/oai_dc/oai:r:1", 4, "oai_dc", '["a", "b:c", "a", "\\u00fc"]')
    rows_of(engine, origin, "r.org/oai_dc/oai:r:1", 3, "oai_dc", '["old"]')
    rows_of(engine, origin, "a.2", 1, "", "[]")
    rows_of(engine, origin, "s.1", 1, "of-a-plug-in", "[]")
    tombstone = "INSERT INTO document_tombstone VALUES (?, 1, 1, '', ?)"
    rows_of(engine, tombstone, "s.1", "2026-11-07 00:00:00")
    rows_of(engine, tombstone, "erased.1", "2026-11-08 00:00:00")
    listed = (
        "INSERT INTO harvest_document (site_schedule_id, document_id, revision, document_url, document_type, title, "
        "to_delete) VALUES (?, ?, ?, 'u', 'eml', ?, FALSE)"
    )
    for site, document_id, revision, title in (
        (1, "a.1", 1, "Old"),
        (1, "a.1", 2, "New"),
        (2, "a.2", 1, "Of another site"),
    ):
        rows_of(engine, listed, site, document_id, revision, title)


@pytest.mark.parametrize("kind", KINDS)
def test_the_catalogue_has_what_the_embedded_target_had(servers: Servers, tmp_path: Path, kind: str) -> None:
    with servers.another(kind) as url:
        engine = open_url(make_url(url or f"sqlite:///{tmp_path / 'before.db'}"))
        up_to(engine, "0001")
        fill(engine)
        up_to(engine, "0017")
        fill_later(engine)
        upgrade(engine)
        columns = "document_id, revision, sha256, origin, item_identifier, title, deleted, change_seq"
        rows = rows_of(engine, f"SELECT {columns} FROM catalogue_document ORDER BY change_seq")
        record = ("r.org/oai_dc/oai:r:1", 4, "r.org/oai_dc/oai:r:1/4", "r.org", "oai:r:1", "", False, 3)
        assert rows == [
            ("a.2", 1, "a.2/1", None, "a.2", "", False, 1),
            ("a.1", 2, "a.1/2", None, "a.1", "New", False, 2),
            record,
            ("s.1", 1, "s.1/1", None, "s.1", "", True, 4),
            ("a.3", 1, "a.3/1", None, "a.3", "", False, 5),
            ("erased.1", 1, "", None, "erased.1", "", True, 6),
        ]
        # The first is not well-formed, the second has declarations; the erased one has no content.
        without_format = rows_of(engine, "SELECT document_id FROM catalogue_document WHERE document_type = ''")
        assert {each[0] for each in without_format} == {"a.1", "a.3", "erased.1"}
        sets = rows_of(engine, "SELECT catalogue_document_id, set_spec FROM catalogue_set ORDER BY catalogue_set_id")
        assert sets == [(3, "a"), (3, "b:c")]
        with readers(engine)() as session:
            listed = list_entries(session, Selection(), 10)
        moments = [f"{each.changed_at:%Y-%m-%d %H:%M:%S.%f}" for each in listed]
        assert moments[:5] == [f"2026-11-{day} 00:00:00.000000" for day in ("02", "03", "04", "07", "08")]
        assert moments[5] < "2099"
        [(last, stamp)] = rows_of(engine, "SELECT change_seq, changed_at FROM catalogue_counter")
        assert (last, str(stamp)[:19]) == (6, moments[5][:19])
        engine.dispose()


@pytest.mark.parametrize("kind", KINDS)
def test_a_database_without_documents_has_an_empty_catalogue(servers: Servers, tmp_path: Path, kind: str) -> None:
    with servers.another(kind) as url:
        engine = open_url(make_url(url or f"sqlite:///{tmp_path / 'before.db'}"))
        upgrade(engine)
        for table in ("catalogue_document", "catalogue_set", "catalogue_counter"):
            assert rows_of(engine, f"SELECT * FROM {table}") == []
        engine.dispose()
