"""One run at a time; what a killed run leaves is taken up by the next, nothing lost, nothing doubled."""

import threading
import time
from datetime import UTC, datetime

from metaharvest.database.engine import run_lock, writers
from metaharvest.database.models import HarvestRun
from support.databases import TestDatabase
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer


def wait_until(condition) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within 30 s")


def killed_run(harvester: Harvester, server: HttpServer, number: int) -> tuple[list[str], list[str]]:
    """A run over `number` documents killed with SIGKILL when some of them are in; the docids, and those that are in."""
    docids = [f"a.{n}.1" for n in range(1, number + 1)]
    held_back = threading.Event()
    for docid in docids:
        server.serve(f"/{docid}.xml", eml(docid))

    def last(asking: Asking) -> None:
        held_back.wait(30)
        asking.answer(eml(docids[-1]))

    server.route(f"/{docids[-1]}.xml", last)
    server.serve("/list.xml", harvest_list([(docid, server.url(f"/{docid}.xml")) for docid in docids]))
    harvester.add_site("site", server.url("/list.xml"))
    process = harvester.start("run", "--date", "2026-11-20")
    wait_until(lambda: len(harvester.held()) >= number // 2)
    process.kill()
    process.communicate()
    held_back.set()
    return docids, list(harvester.held())


def test_a_killed_run_is_resumed_and_ends_as_if_nothing_had_happened(harvester: Harvester, server: HttpServer) -> None:
    docids, held = killed_run(harvester, server, 150)
    assert 0 < len(held) < 150
    before = harvester.rows("SELECT status FROM harvest_run")
    assert before == [("running",)]

    run = harvester.run("2026-11-20")
    assert harvester.held() == {docid: eml(docid) for docid in docids}
    outcomes = harvester.rows("SELECT document_id, count(*) FROM harvest_log WHERE outcome IS NOT NULL GROUP BY 1")
    assert dict(outcomes) == {docid.rpartition(".")[0]: 1 for docid in docids}
    site = run["sites"][0]
    assert (site["listed"], site["inserted"], site["status"]) == (150, 150, "succeeded")
    assert harvester.rows("SELECT run_id, status FROM harvest_run") == [(1, "interrupted"), (2, "succeeded")]
    assert {"HarvesterStartup", "RunInterrupted"} <= set(harvester.operations(2))
    assert [s for s in harvester.subjects() if "] site: " in s] == [
        "[Test network] site: all well, 150 new (2026-11-20)"
    ]
    assert any("never ended" in m.get_body(("plain",)).get_content() for m in harvester.mails())


def test_a_resumed_site_run_counts_what_was_logged_before_though_the_list_names_it_no_longer(
    harvester: Harvester, server: HttpServer
) -> None:
    docids, held = killed_run(harvester, server, 120)
    rest = [docid for docid in docids if docid not in held]
    server.serve("/list.xml", harvest_list([(docid, server.url(f"/{docid}.xml")) for docid in rest]))
    site = harvester.run("2026-11-20")["sites"][0]
    assert (site["listed"], site["inserted"], site["status"]) == (120, 120, "succeeded")


def test_a_resumed_site_run_counts_duplicates_once(harvester: Harvester, server: HttpServer) -> None:
    docids, _ = killed_run(harvester, server, 110)
    first = docids[0]
    with writers(harvester.engine).begin() as session:
        session.connection().exec_driver_sql(
            "UPDATE harvest_log SET outcome = 'duplicate', harvest_operation_code = 'DocDuplicate' WHERE harvest_log_id"
            " = (SELECT min(harvest_log_id) FROM harvest_log WHERE outcome IS NOT NULL AND document_id <> 'a.1')"
        )
    duplicated = harvester.rows("SELECT document_id FROM harvest_log WHERE outcome = 'duplicate'")[0][0]
    entries = [(docid, server.url(f"/{docid}.xml")) for docid in docids]
    entries.append((f"{duplicated}.1", server.url(f"/{first}.xml")))
    server.serve("/list.xml", harvest_list(entries))
    site = harvester.run("2026-11-20")["sites"][0]
    assert (site["listed"], site["duplicate"], site["unchanged"]) == (111, 1, 1)
    assert site["status"] == "succeeded"


def test_a_second_run_exits_75_and_says_who_holds_the_lock(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    with writers(harvester.engine).begin() as session:
        at = datetime(2026, 11, 20, 3, 0, tzinfo=UTC)
        row = HarvestRun(
            harvest_date=at.date(), started_at=at, status="running", host="nightly", pid=4711, heartbeat_at=at
        )
        session.add(row)
    with run_lock(harvester.engine):
        said = harvester("run")
    assert said.code == 75
    assert "nightly" in said.err
    assert "4711" in said.err
    assert "2026-11-20 03:00" in said.err
    assert harvester.held() == {}


def test_a_run_that_was_taken_over_commits_nothing_more(harvester: Harvester, server: HttpServer) -> None:
    publish(server, "a.1.1")

    def take_over(asking: Asking) -> None:
        harvester.rows("UPDATE harvest_run SET status = 'interrupted'")
        asking.answer(eml("a.1.1"))

    server.route("/a.1.1.xml", take_over)
    harvester.add_site("site", server.url("/list.xml"))
    said = harvester("run", "--date", "2026-11-20")
    assert said.code != 0
    assert "another run has taken over" in said.err
    assert harvester.held() == {}


def test_a_database_of_another_age_is_refused_with_a_sentence(harvester: Harvester) -> None:
    for version, words in (("0000", "older than this program"), ("9999", "newer than this program")):
        harvester.rows("UPDATE alembic_version SET version_num = ?", version)
        said = harvester("run")
        assert (said.code, said.out) == (2, "")
        assert words in said.err


def test_without_a_database_run_says_how_to_make_one(harvester: Harvester, database: TestDatabase) -> None:
    harvester.engine.dispose()
    for file in harvester.folder.glob("metaharvest.db*"):
        file.unlink()
    if database.kind != "sqlite":
        harvester.rows("DROP TABLE alembic_version")
    said = harvester("run")
    assert said.code in (1, 2)
    assert "metaharvest init" in said.err
    assert "Traceback" not in said.err
