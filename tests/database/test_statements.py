"""Documents in the order of scope, number and revision: in statements, mails, tables and lists."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from sqlalchemy import literal, select, union_all

from metaharvest.database.statements import by_document, place_of
from support.databases import TestDatabase, open_sqlite_file
from support.harvester import Harvester, publish
from support.http_server import HttpServer
from support.mails import text_of

IN_ORDER = ["a.2", "a.10", "a.100", "b", "b.1", "b.20", "b.20c"]


def test_a_database_has_the_order_of_python(database: TestDatabase, tmp_path: Path) -> None:
    mixed = [*IN_ORDER[1::2], *IN_ORDER[::2]]
    assert sorted(mixed, key=place_of) == IN_ORDER
    names = union_all(*(select(literal(name).label("name")) for name in mixed)).subquery()
    engine = database.engine or open_sqlite_file(tmp_path / "empty.db")
    with engine.connect() as connection:
        found = connection.scalars(select(names.c.name).order_by(*by_document(names.c.name))).all()
    engine.dispose()
    assert [name for name in found if "." in name] == [name for name in IN_ORDER if "." in name]


def test_mails_tables_and_lists_have_document_2_before_document_10(harvester: Harvester, server: HttpServer) -> None:
    docids = ["a.2.1", "a.9.1", "a.10.1", "a.100.1"]
    gone = [(f"a.{number}.1", server.url("/gone.xml")) for number in (30, 4)]
    harvester.add_site("alder", publish(server, *reversed(docids), also=gone))
    harvester.run("2026-11-25")
    [mail] = [each for each in harvester.mails() if each["To"] == "alder@example.org"]
    text = text_of(mail)
    places = [text.index(docid) for docid in (*docids, "a.4.1", "a.30.1")]
    assert sorted(places[:4]) == places[:4]
    assert places[4] < places[5]
    [table] = [part.get_content() for part in mail.iter_attachments() if part.get_content_type() == "text/csv"]
    named = [row["docid"] for row in csv.DictReader(str(table).lstrip("\ufeff").splitlines())]
    expected = ["a.2.1", "a.4.1", "a.9.1", "a.10.1", "a.30.1", "a.100.1"]
    assert named == expected
    assert [each["docid"] for each in json.loads(harvester("documents", "--json").out)] == expected
    shown = harvester("documents", "--failing").out
    assert shown.index("a.4.1") < shown.index("a.30.1")
