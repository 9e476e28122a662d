"""No reader of the change feed ever misses a change, also if several write at a time."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from metaharvest.catalogue import change_feed
from metaharvest.catalogue.change_feed import changed_documents, last_stamp
from metaharvest.catalogue.selection import Hidden
from metaharvest.database.engine import readers, writers
from metaharvest.database.models import HarvestRun
from metaharvest.targets.embedded import EmbeddedTarget
from support.catalogue import upload
from support.harvester import Harvester, publish
from support.http_server import HttpServer

servers_only = pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)


def seen(harvester: Harvester, after: int = 0, limit: int = 100) -> list[tuple[int, str]]:
    with readers(harvester.engine)() as session:
        return [(each.change_seq, each.document_id) for each in changed_documents(session, after, limit, Hidden())]


def store(harvester: Harvester, session: Session, docid: str) -> None:
    EmbeddedTarget(readers(harvester.engine)).upload([upload(docid)], session)


def test_changes_come_in_order_some_at_a_time(harvester: Harvester) -> None:
    with readers(harvester.engine)() as session:
        assert last_stamp(session) is None
    for docid in ("a.1.1", "a.2.1", "a.1.2"):
        with writers(harvester.engine).begin() as session:
            store(harvester, session, docid)
    assert seen(harvester) == [(2, "a.2"), (3, "a.1")]
    assert seen(harvester, limit=1) == [(2, "a.2")]
    assert seen(harvester, after=2) == [(3, "a.1")]
    assert seen(harvester, after=3) == []


def test_what_is_rolled_back_has_no_number(harvester: Harvester) -> None:
    with writers(harvester.engine)() as session:
        store(harvester, session, "a.1.1")
        session.rollback()
    with writers(harvester.engine).begin() as session:
        store(harvester, session, "a.2.1")
    assert seen(harvester) == [(1, "a.2")]


@servers_only
@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
def test_a_change_that_is_committed_later_has_a_higher_number(harvester: Harvester, is_first: bool) -> None:
    """The second writer waits for the first one to commit: a reader in between sees neither, or the first."""
    if not is_first:
        with writers(harvester.engine).begin() as session:
            store(harvester, session, "a.0.1")
    before = len(seen(harvester))
    waits, done = threading.Event(), threading.Event()

    def write() -> None:
        with writers(harvester.engine).begin() as session:
            waits.set()
            store(harvester, session, "a.2.1")
        done.set()

    with writers(harvester.engine).begin() as first:
        store(harvester, first, "a.1.1")
        second = threading.Thread(target=write)
        second.start()
        assert waits.wait(10)
        assert not done.wait(0.5)
        assert len(seen(harvester)) == before
    second.join(30)
    assert seen(harvester)[before:] == [(before + 1, "a.1"), (before + 2, "a.2")]


@servers_only
def test_a_reader_beside_many_writers_sees_every_change_once(harvester: Harvester) -> None:
    def write(writer: int) -> None:
        for number in range(20):
            with writers(harvester.engine).begin() as session:
                store(harvester, session, f"w{writer}.{number}.1")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    with writers(harvester.engine).begin() as session:
        store(harvester, session, "a.0.1")
    for thread in threads:
        thread.start()
    found: list[tuple[int, str]] = []
    while any(thread.is_alive() for thread in threads):
        found += seen(harvester, after=found[-1][0] if found else 0, limit=7)
    for thread in threads:
        thread.join()
    while more := seen(harvester, after=found[-1][0] if found else 0):
        found += more
    assert [number for number, _ in found] == list(range(1, 62))
    assert len({document_id for _, document_id in found}) == 61


@servers_only
@pytest.mark.slow
def test_a_transfer_and_a_run_wait_for_one_another_in_no_circle(harvester: Harvester, server: HttpServer) -> None:
    """A run locks its row, and then the counter. So does a transfer, whose log row refers to the run."""
    harvester.add_site("elm", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    harvester.add_site("oak", "https://oak.example.org/list.xml")
    said: list[int] = []
    transfer = threading.Thread(target=lambda: said.append(harvester("target", "transfer", "a.1", "oak").code))
    with writers(harvester.engine).begin() as session:
        session.execute(update(HarvestRun).values(host="another"))
        transfer.start()
        transfer.join(2)
        store(harvester, session, "b.1.1")
    transfer.join(30)
    assert said == [0]
    assert sorted(document_id for _, document_id in seen(harvester)) == ["a.1", "b.1"]


def test_a_transaction_that_takes_long_gives_its_changes_the_time_of_its_commit(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that goes by time has seen none of it, and asks from a time before the commit."""
    with writers(harvester.engine).begin() as session:
        store(harvester, session, "a.0.1")
    [before] = times(harvester)
    monkeypatch.setattr(change_feed, "_LONGEST_WRITE", timedelta(0))
    with writers(harvester.engine).begin() as session:
        store(harvester, session, "a.1.1")
        store(harvester, session, "a.2.1")
        time.sleep(2.1)
        assert times(harvester) == [before]
        end = datetime.now(UTC).replace(microsecond=0)
    first, *later = times(harvester)
    assert first == before
    assert len(later) == 2
    assert min(later) >= end
    with readers(harvester.engine)() as session:
        assert last_stamp(session) == max(later)


def test_numbers_that_were_rolled_back_give_no_document_a_new_time(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    with writers(harvester.engine)() as session:
        store(harvester, session, "a.1.1")
        session.rollback()
        with writers(harvester.engine).begin() as another:
            store(harvester, another, "a.2.1")
        before = times(harvester)
        monkeypatch.setattr(change_feed, "_LONGEST_WRITE", timedelta(-1))
        session.execute(select(1))
        session.commit()
    assert times(harvester) == before


def times(harvester: Harvester) -> list[datetime]:
    with readers(harvester.engine)() as session:
        return [each.changed_at for each in changed_documents(session, 0, 100, Hidden())]
