"""Pages of long lists: each database reads them in the order of an index, and sorts nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, Engine, event, insert, text

from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.catalogue.selection import Hidden, Position, Selection, list_entries
from metaharvest.database.engine import readers
from metaharvest.database.models import CatalogueSet
from support.harvester import Harvester

NUMBER = 6_000
START = datetime(2026, 11, 1, tzinfo=UTC)
SHOWN = Selection(until=START + timedelta(days=30), hidden=Hidden((7,), ("hidden",)), one_of="item", preferred="urn:dc")


@pytest.fixture
def filled(harvester: Harvester) -> Harvester:
    """Records of two origins in two formats, a second each; each in the set `a:b`."""
    documents = [
        {
            "catalogue_document_id": number,
            "document_id": f"{origin}/{kind}/{number}",
            "item_identifier": str(number - number % 2),
            "origin": origin,
            "document_type": f"urn:{kind}",
            "revision": 1,
            "sha256": "0" * 64,
            "title": "A title of some length " * 5,
            "site_schedule_id": number // 2 % 2 + 1,
            "deleted": False,
            "changed_at": START + timedelta(seconds=number),
            "change_seq": number,
        }
        for number in range(1, NUMBER + 1)
        for origin, kind in [(("r", "s")[number // 2 % 2], ("dc", "mods")[number % 2])]
    ]
    with harvester.engine.begin() as connection:
        connection.execute(insert(DOCUMENTS), documents)
        sets = [{"catalogue_document_id": number, "set_spec": "a:b"} for number in range(1, NUMBER + 1)]
        connection.execute(insert(CatalogueSet), sets)
        if connection.dialect.name == "postgresql":
            connection.execute(text("ANALYZE"))
        if connection.dialect.name == "mysql":
            connection.execute(text("ANALYZE TABLE catalogue_document, catalogue_set"))
    return harvester


@contextmanager
def plans(engine: Engine) -> Iterator[list[str]]:
    """The plans of the statements about documents that are executed meanwhile."""
    found: list[str] = []
    command = "EXPLAIN QUERY PLAN" if engine.dialect.name == "sqlite" else "EXPLAIN"

    def explain(connection: Connection, _cursor: object, statement: str, values: object, *_: object) -> None:
        if statement.startswith("SELECT catalogue_document."):
            rows = connection.exec_driver_sql(f"{command} {statement}", values).mappings()  # type: ignore[arg-type]
            # MariaDB also names the indices that it has not taken.
            taken = [[str(row[name]) for name in row if name != "possible_keys"] for row in rows]
            found.append("\n".join(map(" ".join, taken)))

    event.listen(engine, "before_cursor_execute", explain)
    yield found
    event.remove(engine, "before_cursor_execute", explain)


@pytest.mark.parametrize(
    ("selection", "index"),
    [
        (SHOWN, "changed"),
        (replace(SHOWN, since=START), "changed"),
        (replace(SHOWN, document_types=("urn:mods",), one_of="format"), "type"),
        (replace(SHOWN, document_types=("urn:dc", "urn:mods"), one_of="format"), "type"),
        (replace(SHOWN, origin="r"), "origin"),
        (replace(SHOWN, origin="r", set_spec="a"), "origin"),
        (replace(SHOWN, site_id=1), "site"),
    ],
)
@pytest.mark.parametrize("after", [None, Position(START + timedelta(seconds=NUMBER // 2), NUMBER // 2)])
def test_a_page_is_read_in_the_order_of_an_index(
    filled: Harvester, selection: Selection, index: str, after: Position | None
) -> None:
    with plans(filled.engine) as found, readers(filled.engine)() as session:
        assert len(list_entries(session, selection, 20, after)) == 20
    # A list of formats also reads the former ones.
    former = [plan for plan in found if "catalogue_former_format" in plan]
    assert len(former) == len(selection.document_types)
    assert len(found) == max(1, 2 * len(former))
    for plan in found:
        if plan in former:
            continue
        # PostgreSQL takes the index of all documents, if every second one is in the list.
        assert any(f"ix_catalogue_document_{each}" in plan for each in (index, "changed")), plan
        assert "ix_catalogue_document_item" in plan
        assert not [word for word in ("Sort", "filesort", "TEMP B-TREE", "SCAN catalogue_document") if word in plan], (
            plan
        )


def test_a_page_of_a_small_set_reads_its_documents_alone(filled: Harvester) -> None:
    with filled.engine.begin() as connection:
        connection.execute(text("UPDATE catalogue_set SET set_spec = 'c' WHERE catalogue_document_id < 21"))
    with plans(filled.engine) as found, readers(filled.engine)() as session:
        page = list_entries(session, replace(SHOWN, origin="r", set_spec="c", one_of=None), 20)
    assert len(page) == 10
    assert "ix_catalogue_set_spec" in found[0]
    assert "ix_catalogue_document_origin" not in found[0]
