"""A database that refuses one statement, or is full: that costs a document or a site, never the run of all sites."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator

import pytest
from sqlalchemy import make_url

from metaharvest.harvest.limits import RunLimits
from metaharvest.journal.writer import GroupLimits
from support.databases import TestDatabase
from support.harvester import Harvester, eml, harvest_list, no_more_room, publish
from support.http_server import HttpServer
from support.mails import words_of
from support.tcp_proxy import TcpProxy

DAY = "2026-11-20"
NEXT_DAY = "2026-11-21"
MOST = 200_000
"""Bytes that the database accepts at once."""

on_mariadb = pytest.mark.parametrize("database", ["mariadb"], indirect=True)
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def long_document(docid: str, size: int) -> bytes:
    """A valid document with an abstract of this size, which hardly compresses."""
    text = base64.b64encode(random.Random(docid).randbytes(size * 3 // 4))
    return eml(docid).replace(b"<contact>", b"<abstract><para>" + text + b"</para></abstract><contact>", 1)


def publish_documents(server: HttpServer, path: str, documents: dict[str, bytes]) -> str:
    entries = [(docid, server.serve(f"/{docid}.xml", content)) for docid, content in documents.items()]
    return server.serve(path, harvest_list(entries))


@pytest.fixture
def closing(harvester: Harvester, database: TestDatabase) -> Iterator[None]:
    """Closes the database's connection at each statement that is too long, as MariaDB does."""
    url = make_url(database.url)
    port = url.port or (5432 if database.kind == "postgresql" else 3306)
    with TcpProxy(url.host or "127.0.0.1", port, most=MOST) as proxy:
        there = url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        harvester.config.write_text(harvester.config.read_text().replace(database.url, there))
        harvester.keeps_engine = False
        yield


@on_mariadb
@pytest.mark.usefixtures("closing")
def test_a_statement_at_which_the_server_closes_the_connection_costs_its_document(
    harvester: Harvester, server: HttpServer
) -> None:
    documents = {f"a.{number}.1": long_document(f"a.{number}.1", 1000) for number in range(1, 6)}
    documents["a.3.1"] = long_document("a.3.1", 400_000)
    harvester.add_site("large", publish_documents(server, "/large.xml", documents))
    harvester.add_site("small", publish(server, "b.1.1", path="/small.xml"))
    for day in (DAY, NEXT_DAY):
        run = harvester.run(day)
        assert run["status"] == "with-errors"
        assert set(harvester.held()) == {"a.1.1", "a.2.1", "a.4.1", "a.5.1", "b.1.1"}
    [(rule, message)] = harvester.rows(
        "SELECT rule, error_message FROM harvest_detail_log d JOIN harvest_log l ON l.harvest_log_id = d.harvest_log_id"
        " WHERE run_id = 1"
    )
    assert (rule, "The repository's database refused the document" in message) == ("target.not-stored", True)
    statuses = harvester.rows("SELECT site_name, status FROM harvest_site_run WHERE run_id = 1 ORDER BY site_name")
    assert statuses == [("large", "with-errors"), ("small", "succeeded")]
    assert {mail["To"] for mail in harvester.mails()} >= {"large@example.org", "small@example.org"}


@on_sqlite
@pytest.mark.parametrize("kilobytes", [2000, 4000])
def test_a_full_disk_costs_the_site_that_has_stored_most(
    harvester: Harvester, server: HttpServer, kilobytes: int
) -> None:
    harvester.limits = RunLimits(group=GroupLimits(notes=8))
    harvester.keeps_engine = False
    documents = {f"a.{number}.1": long_document(f"a.{number}.1", 150_000) for number in range(1, 61)}
    harvester.add_site("large", publish_documents(server, "/large.xml", documents))
    harvester.add_site("small", publish(server, "b.1.1", "b.2.1", path="/small.xml"))
    with no_more_room(harvester, kilobytes):
        run = harvester.run(DAY)
    assert (run["exit_code"], run["status"]) == (3, "with-errors")
    held = set(harvester.held())
    assert {"b.1.1", "b.2.1"} < held
    assert len(held) < 50
    assert harvester.rows("SELECT status FROM harvest_site_run WHERE site_name = 'small'") == [("succeeded",)]
    [large] = harvester.rows("SELECT status, listed, deferred FROM harvest_site_run WHERE site_name = 'large'")
    assert large == ("incomplete", 60, 62 - len(held))
    reports = [words_of(mail) for mail in harvester.mails()]
    assert sum("The database is full" in words for words in reports) >= 2  # the site's, and the administrator's
    run = harvester.run(NEXT_DAY)
    assert (run["exit_code"], run["status"]) == (0, "succeeded")
    assert set(harvester.held()) == {*documents, "b.1.1", "b.2.1"}


@on_sqlite
def test_a_page_of_records_that_cannot_be_noted_costs_its_site(harvester: Harvester, server: HttpServer) -> None:
    """The database refuses the checkpoint of one site; documents of other sites are still stored."""
    harvester.add_site("large", publish(server, "a.1.1", path="/large.xml"))
    harvester.add_site("small", publish(server, "b.1.1", path="/small.xml"))
    harvester.rows(
        "CREATE TRIGGER refuse BEFORE UPDATE ON harvest_site_run WHEN NEW.site_name = 'large' AND NEW.status ="
        " 'succeeded' BEGIN SELECT RAISE(ABORT, 'value too long'); END"
    )
    run = harvester.run(DAY)
    assert (run["exit_code"], run["status"]) == (3, "with-errors")
    assert harvester.rows("SELECT site_name, status FROM harvest_site_run ORDER BY site_name") == [
        ("large", "failed"),
        ("small", "succeeded"),
    ]
    rules = harvester.rows("SELECT rule FROM harvest_detail_log WHERE rule LIKE 'harvest.%'")
    assert rules == [("harvest.not-written",)]
