"""If the database gives up a transaction of the journal because of another one, the journal makes it once more."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, date, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, event, text
from sqlalchemy.pool import Pool

from metaharvest.config.settings import load
from metaharvest.database.engine import open_database, run_lock
from metaharvest.errors import RunLost
from metaharvest.journal.journal import Journal
from metaharvest.journal.writer import GroupLimits
from metaharvest.targets.lookup import Targets
from support.databases import TestDatabase
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer
from support.waiting import wait_until

WAITING = {
    "mariadb": "SELECT count(*) FROM information_schema.innodb_trx JOIN information_schema.processlist "
    "ON id = trx_mysql_thread_id WHERE trx_state = 'LOCK WAIT' AND db = database()",
    "postgresql": "SELECT count(*) FROM pg_stat_activity "
    "WHERE wait_event_type = 'Lock' AND datname = current_database()",
}


def somebody_waits(harvester: Harvester, kind: str) -> None:
    """Comes back when another transaction waits for a lock."""
    for _ in range(60):
        with harvester.engine.connect() as connection:
            if connection.scalar(text(WAITING[kind])):
                return
        # InnoDB looks anew only where nobody has asked it for a tenth of a second.
        time.sleep(0.15)
    raise AssertionError("nobody waits")


@pytest.fixture
def scratch(harvester: Harvester, database: TestDatabase) -> Iterator[None]:
    """A table of nobody's; in PostgreSQL, a journal that is the one to give up in a deadlock."""
    harvester.rows("CREATE TABLE scratch (number INTEGER)")
    if database.kind == "postgresql":
        # The one that first looks whether it waits in a deadlock, and finds one, gives up: let that be the journal.
        name = harvester.rows("SELECT current_database()")[0][0]
        harvester.rows(f'ALTER DATABASE "{name}" SET deadlock_timeout = 3000')
        harvester.engine.dispose()  # it holds for connections that are made from now on
    yield
    harvester.rows("DROP TABLE scratch")
    if database.kind == "postgresql":
        harvester.rows(f'ALTER DATABASE "{name}" RESET deadlock_timeout')
        harvester.engine.dispose()


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_deadlock_costs_a_second_try_and_nothing_else(
    harvester: Harvester, server: HttpServer, database: TestDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    url = publish(server, "a.1.1", "a.2.1")
    server.serve("/a.1.1.xml", b"gone", status=404)
    harvester.add_site("site", url)
    harvester.run("2026-11-20")

    somebody: list[threading.Thread] = []
    locked = threading.Event()

    def in_the_way(connection: Connection) -> None:
        """Holds the row of the ledger that the journal needs, then wants the row of the run that the journal holds."""
        if database.kind == "postgresql":
            connection.execute(text("SET LOCAL deadlock_timeout = 100000"))
        for number in range(500):
            connection.execute(text("INSERT INTO scratch VALUES (:number)"), {"number": number})
        connection.execute(text("SELECT * FROM harvest_document WHERE document_id = 'a.1' FOR UPDATE"))
        locked.set()
        somebody_waits(harvester, database.kind)
        connection.execute(text("UPDATE harvest_run SET pid = pid WHERE run_id = 2"))

    def transaction() -> None:
        with harvester.engine.begin() as connection:
            in_the_way(connection)

    def route(asking: Asking) -> None:
        somebody.append(threading.Thread(target=transaction))
        somebody[0].start()
        assert locked.wait(20)
        asking.answer(eml("a.1.1"))

    server.route("/a.1.1.xml", route)
    run = harvester.run("2026-11-21")
    somebody[0].join()
    assert harvester.rows("SELECT count(*) FROM scratch") == [(500,)]
    assert "writes again what the database gave up" in caplog.text
    assert (run["status"], run["exit_code"]) == ("succeeded", 0)
    assert harvester.outcomes(2) == {"a.1.1": "inserted"}
    assert harvester.held() == {"a.1.1": eml("a.1.1"), "a.2.1": eml("a.2.1")}


SHORT_WAITS = {
    "mariadb": "SET SESSION innodb_lock_wait_timeout = 1, lock_wait_timeout = 1",
    "postgresql": "SET lock_timeout = '1s'",
}


@pytest.fixture
def short_waits(database: TestDatabase) -> Iterator[None]:
    """Whoever waits for a lock gives up after a second."""

    def shorten(connection: Any, *_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(SHORT_WAITS[database.kind])
        connection.commit()

    event.listen(Pool, "checkout", shorten)
    yield
    event.remove(Pool, "checkout", shorten)


WRITES_AGAIN = "writes again what the database gave up"


@contextmanager
def row_of_run_locked(harvester: Harvester, run: int) -> Iterator[None]:
    """Every transaction of the journal begins with this row."""
    with harvester.engine.begin() as connection:
        connection.execute(text(f"SELECT * FROM harvest_run WHERE run_id = {run} FOR UPDATE"))
        yield


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_lock_that_the_journal_waits_for_in_vain_costs_a_second_try_and_nothing_else(
    harvester: Harvester, server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    publish(server, "a.1.1", "a.2.1")
    changed = harvest_list((docid, server.url(f"/{docid}.xml")) for docid in ("a.1.1", "a.2.1"))
    somebody: list[threading.Thread] = []
    locked = threading.Event()

    def in_the_way() -> None:
        with row_of_run_locked(harvester, 2):
            locked.set()
            wait_until(lambda: WRITES_AGAIN in caplog.text)

    def route(asking: Asking) -> None:
        somebody.append(threading.Thread(target=in_the_way))
        somebody[0].start()
        assert locked.wait(20)
        asking.answer(changed)

    # What comes after the list is that the ledger is told of a.1.1, which is unchanged.
    server.route("/list.xml", route)
    run = harvester.run("2026-11-21")
    somebody[0].join()
    assert (run["status"], run["exit_code"]) == ("succeeded", 0)
    assert (run["sites"][0]["unchanged"], run["sites"][0]["inserted"]) == (1, 1)


@pytest.mark.usefixtures("short_waits")
@pytest.mark.parametrize("database", ["postgresql", "mariadb"], indirect=True)
def test_a_run_that_is_given_up_during_a_second_try_writes_nothing_more(
    harvester: Harvester, database: TestDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    settings = load(harvester.config)
    engine = open_database(settings)
    targets, today = Targets(settings, engine), date(2026, 11, 20)
    try:
        with (
            run_lock(engine) as lock,
            Journal(engine, settings, targets, lambda: datetime.now(UTC), today, lock, GroupLimits()) as journal,
            ThreadPoolExecutor(1) as thread,
        ):
            with row_of_run_locked(harvester, 1):
                written = thread.submit(journal.report_run)
                somebody_waits(harvester, database.kind)
                journal.abandon()
                wait_until(lambda: WRITES_AGAIN in caplog.text)
            with pytest.raises(RunLost):
                written.result()
    finally:
        engine.dispose()
    assert harvester.rows("SELECT * FROM report_outbox") == []
