"""A list of any length: bounded memory, and nothing harvested where it is wrong at its very end."""

import contextlib
import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metaharvest.harvest.limits import RunLimits
from metaharvest.journal.writer import GroupLimits
from support.catalogue import fill_catalogue
from support.harvester import TYPE, Harvester, eml, harvest_list
from support.http_server import Asking, HttpServer
from support.waiting import wait_until

NUMBER = 100_000
MEASURED = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "metaharvest", *sys.argv[1:]], capture_output=True, text=True)
sys.stderr.write(done.stderr)
print(done.stdout)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.fixture
def long_list(harvester: Harvester, server: HttpServer, tmp_path: Path) -> Path:
    """A list of documents that the target has already, but for the last, which is served."""
    with harvester.engine.begin() as connection:
        connection.exec_driver_sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
            "INSERT INTO document_revision "
            "(document_id, revision, document_type, size, sha256, source_url, inserted_at,"
            " content) SELECT 'a.' || i, 1, ?, 4, 'x', 'x', '2026-01-01 00:00:00', x'00' FROM n",
            (NUMBER, TYPE),
        )
        fill_catalogue(connection)
    path = tmp_path / "served" / "list.xml"
    path.parent.mkdir()
    with path.open("w", encoding="utf-8") as file:
        file.write('<h:harvestList xmlns:h="eml://ecoinformatics.org/harvestList">\n')
        for number in range(1, NUMBER + 1):
            file.write(
                f"<document><docid><scope>a</scope><identifier>{number}</identifier><revision>1</revision></docid>"
                f"<documentType>{TYPE}</documentType><documentURL>{server.url('/a.xml')}</documentURL></document>\n"
            )
        file.write("</h:harvestList>\n")
    server.folder = path.parent
    harvester.config.write_text(harvester.config.read_text().replace("list_deadline = 8", "list_deadline = 60"))
    harvester.add_site("long", server.url("/list.xml"))
    return path


def measured_run(harvester: Harvester) -> tuple[dict[str, Any], int]:
    """A run in a process of its own: what it printed, and its peak memory in KB."""
    command = [sys.executable, "-c", MEASURED, "--config", str(harvester.config), "run", "--json", "--force"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    printed, _, peak = said.rstrip().rpartition("\n")
    return json.loads(printed), int(peak) // (1024 if sys.platform == "darwin" else 1)


@pytest.mark.long
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_long_list_of_unchanged_documents_takes_bounded_memory(harvester: Harvester, long_list: Path) -> None:
    for _ in range(2):
        run, peak = measured_run(harvester)
        assert [(site["listed"], site["unchanged"], site["status"]) for site in run["sites"]] == [
            (NUMBER, NUMBER, "succeeded")
        ]
        assert peak < 200_000
    assert harvester.rows("SELECT count(*) FROM harvest_document") == [(NUMBER,)]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_long_list_that_breaks_off_after_its_last_entry_but_one_harvests_nothing(
    harvester: Harvester, long_list: Path
) -> None:
    harvester.lose()
    whole = long_list.read_bytes()
    long_list.write_bytes(whole[: whole.rindex(b"<document>")])
    run, _ = measured_run(harvester)
    assert run["sites"][0]["status"] == "list-failed"
    assert f"{NUMBER - 1:,} whole entries" in run["sites"][0]["failure_reason"]
    assert harvester.held() == {}
    assert harvester.rows("SELECT datelastharvest FROM harvest_site_schedule") == [(None,)]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_documents_that_wait_to_be_written_are_bounded_by_their_bytes(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another process has the database locked, no more is fetched than there is room for."""
    monkeypatch.setenv("METAHARVEST_HTTP__CONNECTIONS_PER_HOST", "16")
    monkeypatch.setenv("METAHARVEST_HARVESTER__WORKERS", "8")
    harvester.limits = RunLimits(memory=3_000, group=GroupLimits(size=1_000))
    fetched_meanwhile = []
    locked = threading.Event()

    def list_of(site: int) -> Callable[[Asking], None]:
        entries = [(f"a{site}.{n}.1", server.serve(f"/{site}-{n}.xml", eml(f"a{site}.{n}.1"))) for n in range(10)]

        def route(asking: Asking) -> None:
            locked.wait(20)
            asking.answer(harvest_list(entries))

        return route

    for site in range(12):
        harvester.add_site(f"site{site}", server.route(f"/{site}.xml", list_of(site)))

    def lock_for_a_while() -> None:
        wait_until(lambda: len(server.requests) >= 12)
        with contextlib.closing(sqlite3.connect(harvester.folder / "metaharvest.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            locked.set()
            wait_until(lambda: len(server.requests) > 12)
            time.sleep(1.5)
            fetched_meanwhile.append(len(server.requests) - 12)
            other.execute("ROLLBACK")

    locker = threading.Thread(target=lock_for_a_while)
    locker.start()
    run = harvester.run("2026-11-20")
    locker.join()
    assert run["status"] == "succeeded"
    assert len(harvester.held()) == 120
    # Nine of these documents fill the room, a group takes three, and eight are under way when it is full. What a site
    # has unchecked beyond a quarter of the room does not count for the others: four documents at most.
    assert 0 < fetched_meanwhile[0] <= 24
