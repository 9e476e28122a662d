"""Runs whose sites workers harvest: their reports, totals and log are the same as of a run on one machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import make_url, text
from sqlalchemy.exc import DBAPIError

from metaharvest.database.engine import open_url, run_lock, writers
from metaharvest.errors import DatabaseError
from metaharvest.jobs import claims, making
from metaharvest.jobs.making import NewJob
from metaharvest.jobs.workers import WorkerProcess, note
from metaharvest.journal import taken_requests
from metaharvest.journal.log_rows import Stamp
from metaharvest.journal.workers_journal import WorkersJournal
from metaharvest.reports import compose
from metaharvest.services import job_kinds, worker_loop
from metaharvest.services.job_kinds import JobContext, Kind
from metaharvest.services.worker_loop import WorkerLoop, process_named
from support.databases import TestDatabase, on_one_database
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer
from support.mails import text_of
from support.metacat_server import Metacat
from support.waiting import wait_until
from support.workers import tick, wait_until_closed, workers

BROKER = '[workers]\nbroker = "amqp://guest@127.0.0.1:1/"\n'


def with_workers(harvester: Harvester, slice_seconds: float = 600) -> None:
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f"{settings}{BROKER}slice = {slice_seconds}\n", encoding="utf-8")


def slow_site(harvester: Harvester, server: HttpServer, name: str, number: int, seconds: float) -> list[str]:
    """A site whose documents take this time each; their docids."""
    docids = [f"{name}.{each}.1" for each in range(1, number + 1)]

    def slow(asking: Asking) -> None:
        time.sleep(seconds)
        asking.answer(eml(asking.path.removeprefix("/").removesuffix(".xml")))

    for docid in docids:
        server.route(f"/{docid}.xml", slow)
    server.serve(f"/{name}.xml", harvest_list([(docid, server.url(f"/{docid}.xml")) for docid in docids]))
    harvester.add_site(name, server.url(f"/{name}.xml"))
    return docids


def operations(harvester: Harvester, run_id: int) -> Counter[str]:
    return Counter(harvester.operations(run_id))


def mails_to(harvester: Harvester, address: str) -> list[str]:
    return [mail["Subject"] for mail in harvester.mails() if mail["To"] == address]


def test_workers_harvest_as_a_run_on_one_machine_does(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    for name in ("alder", "basalt", "cedar"):
        broken = [(f"{name}.2.1", server.url(f"/{name}.2.1.xml"))]
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml", also=broken))
        server.serve(f"/{name}.2.1.xml", b"<broken")
    tick(harvester)
    with workers(harvester, 2):
        wait_until_closed(harvester)
    assert harvester.rows("SELECT status FROM harvest_run") == [("with-errors",)]
    # Reports of a run that has ended wait for no other job.
    assert set(harvester.rows("SELECT priority FROM job WHERE kind IN ('close_run', 'deliver')")) == {(400,)}
    assert len(harvester.held()) == 3
    sites = harvester.rows("SELECT site_name, status, listed, inserted, invalid FROM harvest_site_run ORDER BY 1")
    assert sites == [(name, "with-errors", 2, 1, 1) for name in ("alder", "basalt", "cedar")]
    [subject] = mails_to(harvester, "steward@example.org")
    assert "3 sites" in subject
    assert [len(mails_to(harvester, f"{name}@example.org")) for name in ("alder", "basalt", "cedar")] == [1, 1, 1]

    # A run alone, of which everything is new again, logs the same.
    for table in ("harvest_document", "document_revision", "catalogue_document"):
        harvester.rows(f"DELETE FROM {table}")
    harvester.run("2026-12-20", "--force")
    assert operations(harvester, 2) == operations(harvester, 1)


@on_one_database
def test_a_run_of_workers_after_a_dead_run_succeeds(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester.rows(
        "INSERT INTO harvest_run (harvest_date, started_at, status, host, pid, heartbeat_at, distributed) "
        "VALUES ('2026-11-20', '2026-11-20 03:00:00', 'running', 'machine', 1, '2026-11-20 03:00:00', 0)"
    )
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester, 2)
    assert harvester.rows("SELECT status FROM harvest_run ORDER BY run_id") == [("interrupted",), ("succeeded",)]


@on_one_database
def test_a_run_alone_and_workers_exclude_each_other(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester.rows(
        "INSERT INTO harvest_run (harvest_date, started_at, status, host, pid, heartbeat_at, distributed) "
        "VALUES ('2026-11-20', '2026-11-20 03:00:00', 'running', 'machine', 1, '2026-11-20 03:00:00', 0)"
    )
    with run_lock(harvester.engine):
        said = harvester("coordinate")
    assert said.code == 75
    assert "Another run is under way" in said.err
    harvester.rows("DELETE FROM harvest_run")

    tick(harvester)
    said = harvester("run")
    assert (said.code, harvester.held()) == (75, {})
    assert "Workers harvest the sites of run 2" in said.err
    assert "`metaharvest jobs`" in said.err
    with workers(harvester):
        wait_until_closed(harvester, 2)
    assert harvester("run").code == 0


@on_one_database
def test_without_a_broker_a_run_alone_takes_up_what_workers_left(harvester: Harvester, server: HttpServer) -> None:
    settings = harvester.config.read_text(encoding="utf-8")
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    tick(harvester)
    harvester.rows("UPDATE job SET state = 'taken', worker = 'one', lease_until = '2999-01-01 00:00:00'")
    harvester.config.write_text(settings, encoding="utf-8")
    assert harvester("run").code == 75
    harvester.rows("UPDATE job SET lease_until = '2020-01-01 00:00:00'")
    assert "The next run takes up what it left." in " ".join(harvester("doctor").out.split())
    assert harvester("run").code == 0
    assert list(harvester.held()) == ["alder.1.1"]
    assert harvester.rows("SELECT status FROM harvest_run ORDER BY run_id") == [("interrupted",), ("succeeded",)]


@on_one_database
def test_jobs_of_a_closed_run_do_not_cancel_the_jobs_of_the_next_one(harvester: Harvester, server: HttpServer) -> None:
    settings = harvester.config.read_text(encoding="utf-8")
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1", path="/alder.xml"))
    tick(harvester)
    harvester.config.write_text(settings, encoding="utf-8")
    assert harvester("run").code == 0
    assert harvester.rows("SELECT state FROM job") == [("cancelled",)]

    # A job that was ready all the same is claimed together with a job of the run under way.
    harvester.rows("UPDATE job SET state = 'ready', open_key = 'old', host = '', ended_at = NULL, priority = 999")
    with_workers(harvester)
    harvester("sites", "harvest", "alder")
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester, 3)
    its = "SELECT run_id, state FROM job WHERE kind = 'harvest_site' ORDER BY job_id"
    assert harvester.rows(its) == [(1, "cancelled"), (3, "done")]


@on_one_database
def test_a_request_for_a_stopped_site_does_not_delay_the_next_slice(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    tick(harvester)
    with writers(harvester.engine).begin() as session:
        [claim] = claims.claim(session, "one", ["harvest_site"])
    harvester("sites", "harvest", "alder")
    with writers(harvester.engine).begin() as session:
        assert worker_loop._time_to_take_requests(session, claim)
    harvester("runs", "stop", "--site", "alder")
    tick(harvester)
    with writers(harvester.engine).begin() as session:
        assert not worker_loop._time_to_take_requests(session, claim)


@on_one_database
def test_a_run_that_no_worker_writes_is_stopped_by_the_coordinator(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    tick(harvester)
    harvester.rows("UPDATE harvest_run SET heartbeat_at = '2026-01-01 00:00:00'")
    assert "The coordinator takes it within a minute." in harvester("runs", "stop").out
    tick(harvester)
    assert harvester.rows("SELECT state FROM harvest_request") == [("taken",)]


def test_a_long_site_is_harvested_in_slices_that_each_end_at_a_checkpoint(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester, slice_seconds=1)
    docids = slow_site(harvester, server, "alder", 40, 0.3)
    tick(harvester)
    with workers(harvester, 2):
        wait_until_closed(harvester)
    [(slices, state)] = harvester.rows("SELECT slices, state FROM job WHERE kind = 'harvest_site'")
    assert slices >= 1
    assert state == "done"
    assert sorted(harvester.held()) == sorted(docids)
    assert harvester.rows("SELECT status, listed, inserted, deferred FROM harvest_site_run") == [
        ("succeeded", 40, 40, 0)
    ]
    outcomes = harvester.rows("SELECT outcome, count(*) FROM harvest_log WHERE outcome IS NOT NULL GROUP BY outcome")
    assert outcomes == [("inserted", 40)]
    asked = Counter(request.path for request in server.requests)
    assert all(asked[f"/{docid}.xml"] == 1 for docid in docids)
    assert len(mails_to(harvester, "alder@example.org")) == 1
    assert harvester.rows("SELECT status FROM harvest_run") == [("succeeded",)]


def test_another_worker_goes_on_where_a_dead_one_was(harvester: Harvester, server: HttpServer) -> None:
    """The worker is dead for the database: another one has its job, while it still harvests."""
    with_workers(harvester)
    docids = slow_site(harvester, server, "alder", 30, 0.2)
    tick(harvester)
    with workers(harvester, 2):
        wait_until(lambda: len(harvester.held()) >= 5)
        harvester.rows("UPDATE job SET lease_until = '2020-01-01 00:00:00', fence = fence + 1 WHERE state = 'taken'")
        wait_until_closed(harvester)
    assert sorted(harvester.held()) == sorted(docids)
    outcomes = harvester.rows("SELECT document_id, count(*) FROM harvest_log WHERE outcome IS NOT NULL GROUP BY 1")
    assert dict(outcomes) == {docid.rpartition(".")[0]: 1 for docid in docids}
    assert harvester.rows("SELECT status, listed, inserted FROM harvest_site_run") == [("succeeded", 30, 30)]
    assert len(mails_to(harvester, "alder@example.org")) == 1


@on_one_database
def test_a_worker_that_makes_jobs_for_others_wakes_them(harvester: Harvester, server: HttpServer) -> None:
    """Otherwise they would look for jobs up to ten seconds later. The end of the run is a job for itself."""
    with_workers(harvester)
    for name in ("alder", "birch"):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml"))
    opened, woken = harvester.opened(), list[str]()
    loop = WorkerLoop(opened, process_named("one"), lambda: woken.append("all"))
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        wait_until_closed(harvester)
    finally:
        loop.end()
        thread.join()
        opened.close()
    assert woken == ["all"]


@on_one_database
def test_a_worker_that_died_is_silent_and_the_next_one_of_its_name_has_none_of_its_jobs(harvester: Harvester) -> None:
    with_workers(harvester)
    now = datetime.now(UTC)
    began, seen, lease = (f"{now - timedelta(seconds=each):%Y-%m-%d %H:%M:%S}" for each in (300, 40, -20))
    harvester.rows(
        "INSERT INTO worker (name, host, pid, version, began_at, seen_at, is_ending, jobs) "
        "VALUES ('alder-1', 'alder', 7, '1', ?, ?, FALSE, 1)",
        began,
        seen,
    )
    harvester.rows(
        "INSERT INTO job (kind, subject, work, host, priority, state, not_before, worker, lease_until, made_at) "
        "VALUES ('harvest_site', 'birch', '{}', '', 0, 'taken', ?, 'alder-1', ?, ?)",
        began,
        lease,
        began,
    )
    said = harvester("workers")
    assert "silent" in said.out
    assert " ".join(said.err.split()) == (
        f"alder-1 was last seen at {seen[11:]} (UTC), and may have died: look at process 7 on alder. A minute after "
        "that time, the next free worker goes on with 1 job."
    )
    assert "No worker is there." in harvester("doctor").out
    with writers(harvester.engine).begin() as session:
        note(session, WorkerProcess("alder-1", "alder", 8, "1"), [])
    [worker] = json.loads(harvester("workers", "--json").out)
    assert (worker["pid"], worker["jobs"], worker["subject"]) == (8, 0, None)
    assert (" idle " in harvester("workers").out, harvester("workers").err) == (True, "")


@on_one_database
def test_a_worker_with_the_machine_and_number_of_a_dead_one_begins_now(harvester: Harvester) -> None:
    """In a container each process may have the number 1."""
    with_workers(harvester)
    dead, before = process_named("worker-1"), datetime.now(UTC) - timedelta(minutes=5)
    with writers(harvester.engine).begin() as session:
        note(session, dead, [])
    harvester.rows("UPDATE worker SET began_at = ?", f"{before:%Y-%m-%d %H:%M:%S}")
    with workers(harvester, 1):
        wait_until(
            lambda: [w for w in json.loads(harvester("workers", "--json").out) if w["began_at"] > before.isoformat()]
        )


@on_one_database
def test_a_site_with_which_five_workers_died_is_given_up_and_reported_and_others_are_on_time(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester)
    for name in ("alder", "basalt"):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml"))
    tick(harvester)
    lapsed = "state = 'taken', attempts = 5, lease_until = '2020-01-01 00:00:00', host_key = NULL"
    harvester.rows(f"UPDATE job SET {lapsed} WHERE subject = 'alder'")
    with workers(harvester):
        wait_until_closed(harvester)
    assert harvester.rows("SELECT subject, state FROM job WHERE kind = 'harvest_site' ORDER BY job_id") == [
        ("alder", "failed"),
        ("basalt", "done"),
    ]
    ended = "SELECT job_event.sentence FROM job_event JOIN job USING (job_id) WHERE step = 'assessed' AND subject = "
    assert (harvester.rows(f"{ended}'alder'"), harvester.rows(f"{ended}'basalt'")) == ([("failed",)], [("done",)])
    sites = harvester.rows("SELECT site_name, status FROM harvest_site_run ORDER BY 1")
    assert sites == [("alder", "failed"), ("basalt", "succeeded")]
    [mail] = [each for each in harvester.mails() if each["To"] == "steward@example.org"]
    assert "Workers began the harvest of this site 5 times, and did not come to its end." in " ".join(
        text_of(mail).split()
    )


REFUSING = {
    "sqlite": (
        "CREATE TRIGGER refusing BEFORE INSERT ON harvest_site_run WHEN NEW.site_name = 'alder' "
        "BEGIN SELECT abs(-9223372036854775808); END",
    ),
    "postgresql": (
        "CREATE FUNCTION refuse() RETURNS trigger AS $$ BEGIN IF NEW.site_name = 'alder' THEN "
        "RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$ LANGUAGE plpgsql",
        "CREATE TRIGGER refusing BEFORE INSERT ON harvest_site_run FOR EACH ROW EXECUTE FUNCTION refuse()",
    ),
    "mariadb": (
        "CREATE TRIGGER refusing BEFORE INSERT ON harvest_site_run FOR EACH ROW "
        "IF NEW.site_name = 'alder' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused'; END IF",
    ),
}
ENDING = (
    "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger AS $$ BEGIN IF NEW.site_name = 'alder' THEN "
    "PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW; END $$ LANGUAGE plpgsql"
)


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_an_outage_of_the_database_costs_no_attempt(
    harvester: Harvester,
    server: HttpServer,
    database: TestDatabase,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(worker_loop, "_POLL_SECONDS", 0.2)
    monkeypatch.setattr(worker_loop, "pause_after", lambda attempts: timedelta())
    with_workers(harvester)
    docids = [f"{name}.{number}.1" for name in ("alder", "basalt") for number in range(1, 5)]
    is_away = threading.Event()

    def slow(asking: Asking) -> None:
        if not asking.path.endswith((".1.1.xml", ".2.1.xml")):
            is_away.wait(30)
        asking.answer(eml(asking.path.removeprefix("/").removesuffix(".xml")))

    for name, host in (("alder", "127.0.0.1"), ("basalt", "localhost")):
        own = [docid for docid in docids if docid.startswith(name)]
        for docid in own:
            server.route(f"/{docid}.xml", slow)
        server.serve(f"/{name}.xml", harvest_list([(each, server.url(f"/{each}.xml", host=host)) for each in own]))
        harvester.add_site(name, server.url(f"/{name}.xml", host=host))
    tick(harvester)
    url = make_url(database.url)
    home = open_url(url.set(database="postgres"))
    with workers(harvester), home.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        wait_until(lambda: len(harvester.held()) >= 4)
        harvester.engine.dispose()
        connection.execute(text(f"ALTER DATABASE {url.database} ALLOW_CONNECTIONS false"))
        its = {"name": url.database}
        connection.execute(text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"), its)
        is_away.set()
        wait_until(lambda: "The worker waits for the database" in caplog.text)
        connection.execute(text(f"ALTER DATABASE {url.database} ALLOW_CONNECTIONS true"))
        harvester.rows("DELETE FROM host_lease")  # the worker that lost it would wait for it
        wait_until_closed(harvester)
    home.dispose()
    assert sorted(harvester.held()) == sorted(docids)
    found = harvester.rows("SELECT attempts, fence FROM job WHERE kind = 'harvest_site'")
    assert [attempts for attempts, _ in found] == [1, 1]
    assert all(claims >= 2 for _, claims in found)


@pytest.fixture
def refusing(harvester: Harvester, database: TestDatabase) -> Iterator[None]:
    """The database refuses the site run of alder, for a reason that never passes."""
    for statement in REFUSING[database.kind]:
        harvester.rows(statement)
    yield
    with suppress(DBAPIError):
        harvester.rows("DROP TRIGGER refusing" + (" ON harvest_site_run" if database.kind == "postgresql" else ""))
    if database.kind == "postgresql":
        harvester.rows("DROP FUNCTION refuse")


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.usefixtures("refusing")
def test_a_job_whose_statement_ends_the_connection_each_time_fails_and_others_are_done(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_loop, "pause_after", lambda attempts: timedelta())
    harvester.rows(ENDING)
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1", path="/alder.xml"))
    publish(server, "basalt.1.1", path="/basalt.xml")
    harvester.add_site("basalt", server.url("/basalt.xml", host="localhost"))
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    ended = harvester.rows("SELECT subject, state FROM job WHERE kind = 'harvest_site' ORDER BY subject")
    assert ended == [("alder", "failed"), ("basalt", "done")]


@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
@pytest.mark.usefixtures("refusing")
def test_a_site_that_is_given_up_while_the_database_is_away_has_its_finding_later(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_loop, "pause_after", lambda attempts: timedelta())
    harvester.rows("CREATE SEQUENCE tries")
    harvester.rows(ENDING.replace("'alder'", "'alder' AND nextval('tries') = 1"))
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    tick(harvester)
    harvester.rows("UPDATE job SET state = 'taken', attempts = 5, lease_until = '2020-01-01 00:00:00'")
    with workers(harvester):
        wait_until_closed(harvester)
    assert harvester.rows("SELECT state FROM job WHERE kind = 'harvest_site'") == [("failed",)]
    assert "harvest.workers-lost" in [rule for _, _, rule in harvester.findings(1)]
    harvester.rows("DROP SEQUENCE tries CASCADE")


@pytest.mark.usefixtures("refusing")
def test_a_job_that_the_database_refuses_each_time_fails_and_is_reported_and_others_are_done(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(worker_loop, "pause_after", lambda attempts: timedelta())
    with_workers(harvester)
    for name in ("alder", "basalt"):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml"))
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    assert harvester.rows("SELECT subject, state FROM job WHERE kind = 'harvest_site' ORDER BY job_id") == [
        ("alder", "failed"),
        ("basalt", "done"),
    ]
    assert harvester.rows("SELECT status FROM harvest_run") == [("with-errors",)]
    [mail] = [each for each in harvester.mails() if each["To"] == "steward@example.org"]
    assert "The harvest of alder failed 5 times: The database " in " ".join(text_of(mail).split())
    assert "(alder) was interrupted: The database " in caplog.text
    assert "1 job failed in the last day" in " ".join(harvester("doctor").out.split())


@on_one_database
def test_a_site_that_a_person_asks_for_comes_before_the_sites_that_wait(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester)
    for number in range(8):
        slow_site(harvester, server, f"site{number}", 2, 0.1)
    harvester.add_site("alder", publish(server, "alder.1.1"), datenextharvest="2999-12-24")
    tick(harvester)
    assert harvester("sites", "harvest", "alder").code == 0
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    assert server.requests[0].path == "/list.xml"
    assert harvester.rows("SELECT state, sentence FROM harvest_request") == [("done", "Run 1 harvested it: succeeded.")]


@on_one_database
def test_a_site_that_a_person_asks_for_begins_after_one_slice_of_the_pipeline(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, is_asked = threading.Event(), threading.Event()

    def perform(context: JobContext, collected: object) -> bool:
        has_begun.set()
        return is_asked.wait(60)

    monkeypatch.setitem(job_kinds._BUILT_IN, "pipeline", Kind(lambda context: None, perform))
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    with writers(harvester.engine).begin() as session:
        making.make(session, [NewJob("pipeline", f"part {part}", priority=5) for part in range(3)])
    with workers(harvester):
        assert has_begun.wait(60)
        tick(harvester)
        is_asked.set()
        wait_until_closed(harvester)
    steps = harvester.rows("SELECT kind FROM job_event JOIN job USING (job_id) WHERE step = 'collected' ORDER BY at")
    assert steps[:2] == [("pipeline",), ("harvest_site",)]
    assert steps.count(("pipeline",)) == 3


@on_one_database
def test_a_person_stops_a_distributed_run_and_the_next_one_goes_on(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_loop, "_BEAT_SECONDS", 0.2)
    with_workers(harvester)
    docids = slow_site(harvester, server, "alder", 80, 0.2)
    tick(harvester)
    with workers(harvester):
        wait_until(lambda: len(harvester.held()) >= 2)
        assert harvester("runs", "stop").code == 0
        tick(harvester)
        wait_until_closed(harvester)
    assert harvester.rows("SELECT status FROM harvest_run") == [("interrupted",)]
    # The rest of its documents is deferred, as by a run alone.
    assert harvester.rows("SELECT status FROM harvest_site_run WHERE site_name = 'alder'") == [("with-errors",)]
    # A run alone says the same, also if all of its sites had begun.
    sql = "SELECT message FROM harvest_log WHERE harvest_operation_code = 'RunInterrupted'"
    [(message,)] = harvester.rows(sql)
    assert "not begun" not in message
    [subject] = mails_to(harvester, "steward@example.org")
    assert "the run was interrupted; " in subject
    held = len(harvester.held())
    assert held < len(docids)
    run = harvester.run("2026-12-24")
    assert run["status"] == "succeeded"
    assert sorted(harvester.held()) == sorted(docids)
    outcomes = harvester.rows("SELECT count(*) FROM harvest_log WHERE outcome = 'inserted'")
    assert outcomes == [(len(docids),)]


def slice_that_ends_early(harvester: Harvester, server: HttpServer) -> tuple[list[str], int]:
    """A site of 40 documents whose first slice ends after some of them: their names, and the number of these."""
    docids, gate = gated_site(harvester, server, "alder", 40)
    tick(harvester)
    with workers(harvester) as [loop]:
        wait_until(lambda: len(harvester.held()) == 1)
        loop.end()
        gate.set()
    return docids, len(harvester.held())


@on_one_database
def test_the_totals_of_a_stopped_run_count_a_site_that_waits_for_its_next_slice(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester)
    docids, stored = slice_that_ends_early(harvester, server)
    harvester("runs", "stop")
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    assert 0 < stored < len(docids)
    assert harvester.rows("SELECT status, inserted FROM harvest_site_run") == [("interrupted", stored)]
    [subject] = mails_to(harvester, "steward@example.org")
    assert f"1 interrupted; {stored} new" in subject
    assert harvester.run("2026-12-24")["status"] == "succeeded"
    assert harvester.rows("SELECT status, listed, inserted FROM harvest_site_run") == [("succeeded", 40, 40)]


@pytest.mark.parametrize(
    ("command", "reports"), [(("sites", "disable", "alder"), 1), (("sites", "remove", "alder", "--yes"), 0)]
)
def test_a_site_that_is_switched_off_or_removed_between_two_slices_is_stopped(
    harvester: Harvester, server: HttpServer, command: tuple[str, ...], reports: int
) -> None:
    with_workers(harvester)
    docids, stored = slice_that_ends_early(harvester, server)
    assert 0 < stored < len(docids)
    assert harvester(*command).code == 0
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    why = "The site was switched off or removed before the end of its harvest."
    ended = harvester.rows("SELECT status, inserted, failure_reason FROM harvest_site_run")
    assert ended == [("stopped", stored, why)]
    assert harvester.rows("SELECT status FROM harvest_run") == [("succeeded",)]
    mails = [text_of(mail) for mail in harvester.mails()]
    assert sum("The harvest of your site was stopped." in text for text in mails) == reports
    assert all("takes it up" not in text and "goes on with it" not in text for text in mails)


def gated_site(harvester: Harvester, server: HttpServer, name: str, number: int) -> tuple[list[str], threading.Event]:
    """A site whose documents wait for an event, but the first one; their docids, and the event."""
    docids, gate = slow_site(harvester, server, name, number, 0), threading.Event()

    def wait(asking: Asking) -> None:
        gate.wait(60)
        asking.answer(eml(asking.path.removeprefix("/").removesuffix(".xml")))

    for docid in docids[1:]:
        server.route(f"/{docid}.xml", wait)
    return docids, gate


@on_one_database
def test_the_deadline_of_a_site_counts_its_own_time_and_not_the_time_of_its_job(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester)
    alder, basalt = (
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml")) for name in ("alder", "basalt")
    )
    tick(harvester)
    work = {"sites": [[alder, "scheduled"], [basalt, "scheduled"]], "everything": [], "ended": []}
    harvester.rows("DELETE FROM job WHERE subject = 'basalt'")
    harvester.rows("UPDATE job SET seconds = 40000, work = ?", json.dumps({**work, "seconds": [[alder, 21600]]}))
    with workers(harvester):
        wait_until_closed(harvester)
    assert list(harvester.held()) == ["basalt.1.1"]
    assert [rule for _, _, rule in harvester.findings(1)] == ["harvest.site-deadline"]


@on_one_database
def test_a_slice_leaves_the_time_that_its_site_has_used_to_the_next_one(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester)
    _, gate = gated_site(harvester, server, "alder", 40)
    tick(harvester)
    with workers(harvester) as [loop]:
        wait_until(lambda: len(harvester.held()) == 1)
        loop.end()
        gate.set()
    [(work,)] = harvester.rows("SELECT work FROM job")
    [[site_id, seconds]] = json.loads(work)["seconds"]
    assert (site_id, 0 < seconds < 60) == (1, True)
    reason = "SELECT failure_reason FROM harvest_site_run"
    assert harvester.rows(reason) == [("A worker ended its slice of this site; the next slice goes on with it.",)]
    harvester("runs", "stop")
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    assert harvester.rows(reason) == [("The run was interrupted; the next run takes it up.",)]


@on_one_database
def test_a_report_that_could_not_be_made_counts_in_the_result_of_the_run(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no report")

    monkeypatch.setattr(compose, "site_reports", fail)
    with_workers(harvester)
    metrics = harvester.folder / "metrics.prom"
    with harvester.config.open("a", encoding="utf-8") as settings:
        settings.write(f'[monitoring]\nmetrics_file = "{metrics}"\n')
    harvester.add_site("alder", publish(server, "alder.1.1"))
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    assert "metaharvest_last_attempt_exit_code 4" in metrics.read_text(encoding="utf-8")


@on_one_database
def test_requests_for_a_site_that_a_worker_has_are_done_after_its_slice(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has the job all the time, even if its lease passes: it renews the lease."""
    monkeypatch.setattr(worker_loop, "_REFILL_SECONDS", 0.05)
    monkeypatch.setattr(worker_loop, "_BEAT_SECONDS", 0.5)
    with_workers(harvester)
    _, gate = gated_site(harvester, server, "alder", 4)
    tick(harvester)
    with workers(harvester):
        wait_until(lambda: len(server.requests) > 2)
        harvester.rows("UPDATE job SET lease_until = '2020-01-01 00:00:00'")
        wait_until(lambda: harvester.rows("SELECT 1 FROM job WHERE lease_until > '2020-01-02'"))
        assert harvester.rows("SELECT fence, attempts FROM job") == [(1, 1)]
        assert "Workers take it within a minute" in harvester("sites", "harvest", "alder", "--everything").out
        assert harvester("workers").out.splitlines()[1].split()[-3:] == ["harvest_site", "1", "alder"]
        tick(harvester)
        assert harvester.rows("SELECT state FROM harvest_request") == [("waiting",)]
        gate.set()
        wait_until(lambda: harvester.rows("SELECT 1 FROM job WHERE state = 'done'"))
        tick(harvester)
        wait_until(lambda: harvester.rows("SELECT 1 FROM harvest_request WHERE state = 'done'"), seconds=120)
    [(sentence,)] = harvester.rows("SELECT sentence FROM harvest_request")
    assert sentence.endswith("harvested it: succeeded.")
    assert len(server.asked("/alder.xml")) == 2


@on_one_database
def test_the_next_slice_of_a_site_does_what_a_person_asked_for(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_loop, "_POLL_SECONDS", 0.1)
    with_workers(harvester, slice_seconds=1)
    docids = slow_site(harvester, server, "alder", 40, 0.3)
    tick(harvester)
    with workers(harvester):
        wait_until(lambda: len(server.requests) > 2)
        harvester("sites", "harvest", "alder", "--everything")
        wait_until_closed(harvester)
    assert harvester.rows("SELECT sentence FROM harvest_request") == [("Run 1 harvested it: succeeded.",)]
    assert harvester.rows("SELECT count(*) FROM job WHERE kind = 'harvest_site'") == [(1,)]
    assert sorted(harvester.held()) == sorted(docids)


@on_one_database
def test_a_run_takes_requests_until_it_is_time_for_the_next_one(harvester: Harvester) -> None:
    with_workers(harvester)
    harvester.config.write_text(f"{harvester.config.read_text(encoding='utf-8')}run_at = 22:00:00\n", encoding="utf-8")
    for name, day in (("alder", "2026-12-20"), ("basalt", "2999-12-24"), ("cedar", "2999-12-24")):
        harvester.add_site(name, f"https://{name}.example.org/list.xml", datenextharvest=day)

    def jobs_at(day: int, hour: int) -> list[tuple[str, str]]:
        tick(harvester, datetime(2026, 12, day, hour, 30, tzinfo=UTC))
        return harvester.rows("SELECT subject, state FROM job WHERE kind = 'harvest_site' ORDER BY job_id")

    assert jobs_at(20, 22) == [("alder", "ready")]
    harvester("sites", "harvest", "basalt")
    assert jobs_at(21, 0) == [("alder", "ready"), ("basalt", "ready")]
    assert jobs_at(21, 22) == [("alder", "cancelled"), ("basalt", "cancelled")]
    # A run of requests alone goes on, too.
    harvester.rows("DELETE FROM job")
    harvester.rows("UPDATE harvest_run SET status = 'succeeded', due_sites_of = '2026-12-21'")
    harvester("sites", "harvest", "cedar")
    assert jobs_at(21, 23) == [("cedar", "ready")]
    assert jobs_at(22, 0) == [("cedar", "ready")]
    assert set(jobs_at(22, 22)) == {("cedar", "cancelled")}


@on_one_database
def test_a_due_harvest_follows_the_retry_that_a_worker_has(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f"{settings}run_at = 23:59:59\n", encoding="utf-8")
    site_id = harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester("sites", "harvest", "alder")
    tick(harvester)
    work = json.dumps({"sites": [[site_id, "retry"]], "everything": [], "ended": []})
    harvester.rows("UPDATE job SET state = 'taken', lease_until = '2999-01-01 00:00:00', work = ?", work)
    harvester.config.write_text(settings, encoding="utf-8")
    tick(harvester)
    assert harvester.rows("SELECT subject, state FROM job ORDER BY job_id") == [("alder", "taken"), ("alder", "ready")]
    harvester.rows("UPDATE job SET state = 'ready', lease_until = NULL")
    with workers(harvester):
        wait_until_closed(harvester)
    assert harvester.rows("SELECT kind FROM harvest_site_run ORDER BY site_run_id") == [("retry",), ("scheduled",)]
    assert list(harvester.held()) == ["alder.1.1"]


@on_one_database
def test_a_request_between_two_slices_repeats_no_list_of_a_site_that_is_done(
    harvester: Harvester, server: HttpServer
) -> None:
    """Both sites have one job; the slice before has ended the harvest of the first one."""
    with_workers(harvester)
    broken = [("alder.2.1", server.url("/alder.2.1.xml"))]
    server.serve("/alder.2.1.xml", b"<broken")
    alder = harvester.add_site("alder", publish(server, "alder.1.1", path="/alder.xml", also=broken))
    basalt = harvester.add_site("basalt", publish(server, "basalt.1.1", path="/basalt.xml"))
    tick(harvester)
    [(key,)] = harvester.rows("SELECT open_key FROM job WHERE subject = 'alder'")
    harvester.rows("UPDATE job SET not_before = '2999-01-01 00:00:00' WHERE subject = 'basalt'")
    with workers(harvester):
        wait_until(lambda: harvester.rows("SELECT 1 FROM job WHERE subject = 'alder' AND state = 'done'"))
    work = {"sites": [[alder, "scheduled"], [basalt, "scheduled"]], "everything": [], "ended": []}
    harvester.rows("UPDATE job SET open_key = ?, work = ? WHERE subject = 'basalt'", key, json.dumps(work))
    harvester("sites", "harvest", "alder", "--failing")
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    assert [len(server.asked(f"/{path}.xml")) for path in ("alder", "alder.2.1", "basalt")] == [1, 2, 1]
    assert harvester.rows("SELECT state FROM harvest_request") == [("done",)]


@on_one_database
def test_a_site_run_knows_nothing_of_the_documents_of_the_site_run_before(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker has another site all the time, and so the same checks. A finding about a format comes once."""
    monkeypatch.setattr(worker_loop, "_REFILL_SECONDS", 0.05)
    with_workers(harvester)
    for revision in (1, 2):
        server.serve(f"/alder.1.{revision}.xml", f"<a xmlns='urn:a'>{revision}</a>".encode())

    def list_revision(revision: int) -> bytes:
        return harvest_list([(f"alder.1.{revision}", server.url(f"/alder.1.{revision}.xml"))])

    server.serve("/alder.xml", list_revision(1))
    options = json.dumps({"validation": "very-strict"})
    harvester.add_site("alder", server.url("/alder.xml", host="localhost"), options=options)
    _, gate = gated_site(harvester, server, "basalt", 4)
    tick(harvester)
    with workers(harvester):
        wait_until(lambda: harvester.rows("SELECT 1 FROM job WHERE subject = 'alder' AND state = 'done'"))
        server.serve("/alder.xml", list_revision(2))
        harvester("sites", "harvest", "alder")
        tick(harvester)
        wait_until(lambda: len(harvester.rows("SELECT 1 FROM job WHERE subject = 'alder' AND state = 'done'")) == 2)
        gate.set()
        wait_until_closed(harvester)
    assert [rule for _, _, rule in harvester.findings(1)] == ["validation.no-schema"] * 2


@on_one_database
def test_a_request_after_a_stop_waits_for_the_next_run(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    docids, gate = gated_site(harvester, server, "alder", 20)
    tick(harvester)
    with workers(harvester):
        wait_until(lambda: len(server.requests) > 2)
        harvester("runs", "stop")
        harvester("sites", "harvest", "alder")
        tick(harvester)
        assert harvester.rows("SELECT state FROM harvest_request WHERE kind = 'harvest'") == [("waiting",)]
        gate.set()
        wait_until(lambda: harvester.rows("SELECT 1 FROM harvest_request WHERE sentence LIKE 'Run 2 %'"), seconds=120)
        wait_until_closed(harvester, 2)
    assert sorted(harvester.held()) == sorted(docids)
    assert harvester.rows("SELECT status FROM harvest_run ORDER BY run_id") == [("interrupted",), ("succeeded",)]


@on_one_database
@pytest.mark.parametrize("step", ["report_run", "close_run"])
def test_a_worker_that_dies_while_it_closes_a_run_repeats_nothing(
    harvester: Harvester, server: HttpServer, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_loop, "pause_after", lambda attempts: timedelta())
    with_workers(harvester)
    metrics = harvester.folder / "metrics.prom"
    with harvester.config.open("a", encoding="utf-8") as settings:
        settings.write(f'[monitoring]\nmetrics_file = "{metrics}"\n')
    harvester.add_site("alder", publish(server, "alder.1.1"))
    tick(harvester)
    harvester("runs", "stop")
    tick(harvester)
    assert "The run was stopped before its end." in harvester("jobs", "show", "1").out
    done = getattr(WorkersJournal, step)

    def die_after(journal: WorkersJournal) -> None:
        monkeypatch.setattr(WorkersJournal, step, done)
        done(journal)
        raise DatabaseError("The worker dies here.")

    monkeypatch.setattr(WorkersJournal, step, die_after)
    with workers(harvester):
        wait_until_closed(harvester)
    assert getattr(WorkersJournal, step) is done
    assert harvester.operations(1).count("RunInterrupted") == 1
    assert harvester.operations(1).count("HarvesterShutdown") == 1
    assert len(mails_to(harvester, "steward@example.org")) == 1
    assert "metaharvest_" in metrics.read_text(encoding="utf-8")


@on_one_database
def test_a_job_is_shown_gets_another_priority_and_is_cancelled(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    tick(harvester)
    [job] = json.loads(harvester("jobs", "--json").out)
    assert (job["kind"], job["subject"], job["state"], job["run_id"]) == ("harvest_site", "alder", "ready", 1)
    assert harvester("jobs", "show", "1").out.splitlines()[1].startswith("priority 10; 0 earlier slices; 0 attempts;")
    assert harvester("jobs", "priority", "1", "300").out == "Job 1 (alder): ready, priority 300.\n"
    assert harvester("jobs", "retry", "1").code == 0
    assert harvester("jobs", "cancel", "1").out == "Job 1 (alder): cancelled, priority 300.\n"
    assert harvester("jobs", "cancel", "1").code == 2
    assert "There is no job with the number 9: `metaharvest jobs` lists the jobs." in harvester("jobs", "show", "9").err
    actions = [action for (action,) in harvester.rows("SELECT action FROM audit_entry ORDER BY 1")]
    assert actions == ["jobs.cancel", "jobs.priority", "jobs.retry"]
    with workers(harvester) as [_]:
        wait_until_closed(harvester)
        # A worker notes itself beside its work.
        wait_until(lambda: "idle" in harvester("workers").out)
    assert harvester("workers").out == "No worker is there. `metaharvest worker` starts one.\n"
    # The site stays due.
    assert [each["site"] for each in harvester.run("2026-12-24")["sites"]] == ["alder"]


@on_one_database
@pytest.mark.parametrize("command", ["coordinate", "worker"])
def test_without_a_broker_there_are_no_workers(harvester: Harvester, command: str) -> None:
    said = harvester(command)
    assert said.code == 2
    assert "broker of [workers] is not set" in said.err


@on_one_database
def test_celery_beat_without_a_broker_ends_with_a_sentence(harvester: Harvester) -> None:
    command = [sys.executable, "-m", "celery", "--app", "metaharvest.workers.beat", "beat"]
    environment = {**os.environ, "METAHARVEST_FILE": str(harvester.config)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("broker of [workers] is not set.")
    assert len(done.stderr.splitlines()) == 1


@on_one_database
def test_a_coordinator_whose_broker_is_away_makes_the_jobs_all_the_same(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    said = harvester("coordinate")
    assert said.code == 0, said.err
    assert "The broker at 127.0.0.1 ([workers] broker) cannot be reached" in said.err
    assert harvester.rows("SELECT subject FROM job") == [("alder",)]
    assert harvester("coordinate").code == 0
    assert len(harvester.rows("SELECT 1 FROM job")) == 1


@on_one_database
def test_coordinators_at_once_open_one_run(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    together = [harvester.start("coordinate") for _ in range(3)]
    codes = [process.wait() for process in together]
    for process in together:
        process.communicate()
    assert codes == [0, 0, 0]
    assert harvester.rows("SELECT run_id FROM harvest_run") == [(1,)]
    assert harvester.rows("SELECT subject FROM job") == [("alder",)]
    # A coordinator whose clock is behind does not end a run that another one has opened for the next day.
    harvester.rows("UPDATE harvest_run SET harvest_date = '2999-01-01', due_sites_of = NULL")
    tick(harvester)
    assert harvester.rows("SELECT state FROM job") == [("ready",)]


def two_sites_with_one_document(harvester: Harvester, server: HttpServer) -> None:
    """Two sites list the same document, and both get it at the same moment."""
    ready = threading.Barrier(2)

    def both(asking: Asking) -> None:
        with suppress(threading.BrokenBarrierError):
            ready.wait(20)
        asking.answer(eml("shared.1.1"))

    server.route("/shared.xml", both)
    for name, host in (("alder", "127.0.0.1"), ("basalt", "localhost")):
        url = server.url("/shared.xml").replace("127.0.0.1", host)
        server.serve(f"/{name}.xml", harvest_list([("shared.1.1", url)]))
        harvester.add_site(name, server.url(f"/{name}.xml").replace("127.0.0.1", host))


def test_two_sites_that_list_one_document_at_the_same_time_lose_nothing(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester)
    two_sites_with_one_document(harvester, server)
    tick(harvester)
    with workers(harvester, 2):
        wait_until_closed(harvester)
    assert list(harvester.held()) == ["shared.1.1"]
    outcomes = [outcome for (outcome,) in harvester.rows("SELECT outcome FROM harvest_log WHERE outcome IS NOT NULL")]
    assert len(outcomes) == 2
    assert outcomes.count("inserted") == 1


def test_of_two_sites_one_alone_sends_a_document_to_a_target_outside_of_the_database(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester)
    with harvester.config.open("a") as file:
        file.write(f'[target]\nkind = "folder"\nfolder = "{harvester.folder / "documents"}"\n')
    two_sites_with_one_document(harvester, server)
    tick(harvester)
    with workers(harvester, 2):
        wait_until_closed(harvester)
    outcomes = [outcome for (outcome,) in harvester.rows("SELECT outcome FROM harvest_log WHERE outcome IS NOT NULL")]
    assert sorted(outcomes) == ["inserted", "upload-error"]
    assert harvester.rows("SELECT DISTINCT rule FROM harvest_detail_log") == [("target.other-site",)]


@on_one_database
def test_a_site_whose_target_cannot_be_used_fails_alone(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    settings = harvester.config.read_text(encoding="utf-8")
    own = '[sites.alder.target]\nkind = "dataone"\nurl = "http://127.0.0.1:1/"\ntoken = "env:NO_SUCH_VARIABLE"\n'
    harvester.config.write_text(f"{settings}{own}", encoding="utf-8")
    for name in ("alder", "basalt"):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml"))
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    sites = harvester.rows("SELECT site_name, status FROM harvest_site_run ORDER BY 1")
    assert sites == [("alder", "failed"), ("basalt", "succeeded")]
    assert harvester.rows("SELECT state FROM job WHERE kind = 'harvest_site'") == [("done",), ("done",)]


@on_one_database
def test_a_worker_uses_a_password_that_was_renewed_between_two_runs(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    password, users = harvester.folder / "password", {"harvester": "old"}
    password.write_text("old")
    password.chmod(0o600)
    with Metacat(users) as metacat:
        with harvester.config.open("a") as settings:
            settings.write(f'[target]\nkind = "metacat"\nurl = "{metacat.url}"\nusername = "harvester"\n')
            settings.write(f'password = "file:{password}"\n')
        harvester.add_site("alder", publish(server, "alder.1.1"))
        with workers(harvester):
            tick(harvester)
            wait_until_closed(harvester)
            users["harvester"] = "new"
            password.write_text("new")
            publish(server, "alder.1.1", "alder.2.1")
            harvester("sites", "harvest", "alder")
            tick(harvester)
            wait_until_closed(harvester, 2)
        assert sorted(metacat.held) == ["alder.1.1", "alder.2.1"]
    assert harvester.rows("SELECT status FROM harvest_run") == [("succeeded",), ("succeeded",)]


@on_one_database
def test_a_request_while_a_run_is_being_closed_waits_for_the_next_run(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    tick(harvester)
    harvester("jobs", "cancel", "1")
    tick(harvester)
    assert harvester.rows("SELECT kind, state FROM job ORDER BY job_id") == [
        ("harvest_site", "cancelled"),
        ("close_run", "ready"),
    ]
    harvester("sites", "harvest", "alder")
    tick(harvester)
    assert harvester.rows("SELECT state FROM harvest_request") == [("waiting",)]
    with workers(harvester):
        wait_until(lambda: harvester.rows("SELECT 1 FROM harvest_request WHERE state = 'done'"), seconds=120)
    assert harvester.rows("SELECT sentence FROM harvest_request") == [("Run 2 harvested it: succeeded.",)]
    assert list(harvester.held()) == ["alder.1.1"]


@on_one_database
def test_a_run_that_ends_after_midnight_deletes_old_log_rows(harvester: Harvester, server: HttpServer) -> None:
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    today = datetime.now(UTC).date()
    for days in range(60, 1, -1):
        day = str(today - timedelta(days=days))
        harvester.rows(
            "INSERT INTO harvest_run (harvest_date, started_at, status, host, pid, heartbeat_at, distributed) "
            "VALUES (?, '2026-01-01', 'succeeded', 'machine', 1, '2026-01-01', 0)",
            day,
        )
    harvester.rows(
        "INSERT INTO harvest_log (status, message, harvest_operation_code, run_id, harvest_date, logged_at) "
        "VALUES (0, 'old', 'HarvesterStartup', 1, '2020-01-01', '2020-01-01')"
    )
    tick(harvester)
    [(run_id,)] = harvester.rows("SELECT run_id FROM harvest_run WHERE status = 'running'")
    harvester.rows("UPDATE harvest_run SET harvest_date = ? WHERE run_id = ?", str(today - timedelta(days=1)), run_id)
    with workers(harvester):
        wait_until_closed(harvester, run_id)
    assert harvester.rows("SELECT message FROM harvest_log WHERE message = 'old'") == []
    assert "LogPurged" in harvester.operations(run_id)


@on_one_database
def test_a_stopped_run_names_the_sites_whose_jobs_workers_ended_at_once(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_loop, "_BEAT_SECONDS", 0.2)
    with_workers(harvester)
    slow_site(harvester, server, "alder", 40, 0.2)
    for name in ("basalt", "cedar"):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml"))
    harvester("sites", "disable", "cedar")
    tick(harvester)
    with workers(harvester):
        wait_until(lambda: len(harvester.held()) >= 2)
        assert harvester("runs", "stop").code == 0
        wait_until(lambda: harvester.rows("SELECT 1 FROM job WHERE subject = 'basalt' AND state = 'done'"))
        tick(harvester)
        wait_until_closed(harvester)
    sql = "SELECT message FROM harvest_log WHERE harvest_operation_code = 'RunInterrupted'"
    [(message,)] = harvester.rows(sql)
    assert message.endswith(" 1 site was not begun, and left to the next run: basalt.")


@on_one_database
def test_a_request_that_the_stop_of_its_run_took_back_is_not_said_to_be_done(
    harvester: Harvester, server: HttpServer
) -> None:
    """The run had harvested the site before a person asked for it."""
    with_workers(harvester)
    for name in ("alder", "basalt"):
        harvester.add_site(name, publish(server, f"{name}.1.1", path=f"/{name}.xml"))
    tick(harvester)
    harvester.rows("UPDATE job SET not_before = '2999-01-01 00:00:00' WHERE subject = 'basalt'")
    with workers(harvester):
        wait_until(lambda: harvester.rows("SELECT 1 FROM job WHERE subject = 'alder' AND state = 'done'"))
    harvester("sites", "harvest", "alder", "--everything")
    tick(harvester)
    harvester("sites", "harvest", "alder", "--everything")  # it is the same request
    assert harvester("runs", "stop").code == 0
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    ends = harvester.rows("SELECT state, sentence FROM harvest_request WHERE kind = 'harvest'")
    assert ends == [("cancelled", "A person stopped it in run 1.")]
    sql = "SELECT message FROM harvest_log WHERE harvest_operation_code = 'RunInterrupted'"
    [(message,)] = harvester.rows(sql)
    assert message.endswith(" 2 sites were not begun, and left to the next run: basalt, alder.")


@on_one_database
def test_a_due_harvest_waits_for_the_request_that_a_worker_has_also_if_the_host_is_another(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester)
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f"{settings}run_at = 23:59:59\n", encoding="utf-8")
    harvester.add_site("alder", publish(server, "alder.1.1"))
    harvester("sites", "harvest", "alder")
    tick(harvester)
    harvester.rows("UPDATE job SET state = 'taken', lease_until = '2999-01-01 00:00:00', host_key = host")
    assert harvester("sites", "edit", "alder", "--list-url", "http://localhost:1/list.xml").code == 0
    harvester.config.write_text(settings, encoding="utf-8")
    tick(harvester)
    assert harvester.rows("SELECT state, host FROM job ORDER BY job_id") == [
        ("taken", "127.0.0.1"),
        ("ready", "127.0.0.1"),
    ]


@on_one_database
def test_workers_harvest_due_sites_once_the_dates_of_a_wrong_clock_are_repaired(
    harvester: Harvester, server: HttpServer
) -> None:
    with_workers(harvester)
    harvester.add_site("alder", publish(server, "alder.1.1"))
    tick(harvester)
    with workers(harvester):
        wait_until_closed(harvester)
    harvester.rows("UPDATE harvest_run SET harvest_date = '2999-01-01', due_sites_of = '2999-01-01'")
    harvester.rows("UPDATE harvest_site_schedule SET datelastharvest = '2999-01-01', datenextharvest = '2999-01-02'")
    harvester.rows("UPDATE job SET ended_at = '2999-01-01 00:00:00'")
    assert " jobs" in harvester("database", "repair-dates").out
    assert harvester.rows("SELECT max(ended_at) < '2998-01-01' FROM job") == [(1,)]
    tick(harvester)
    assert harvester.rows("SELECT subject FROM job WHERE kind = 'harvest_site'") == [("alder",), ("alder",)]


def test_a_stop_that_two_processes_take_at_one_moment_is_in_the_log_once(harvester: Harvester) -> None:
    with_workers(harvester)
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    tick(harvester)
    assert harvester("runs", "stop").code == 0
    now = datetime.now(UTC)
    stamp, taken = Stamp(1, now.date(), now), []

    def take_too() -> None:
        with writers(harvester.engine).begin() as session:
            taken.append(taken_requests.take_stops(session, stamp).whole_run)

    other = threading.Thread(target=take_too)
    with writers(harvester.engine).begin() as session:
        assert taken_requests.take_stops(session, stamp).whole_run
        other.start()
        time.sleep(0.5)
    other.join()
    assert taken == [False]
    assert operations(harvester, 1)["RequestTaken"] == 1
    assert harvester.rows("SELECT state, attempts FROM harvest_request") == [("taken", 1)]
