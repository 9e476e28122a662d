"""Workers, coordinator and broker are killed with SIGKILL again and again; the run ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.databases import Servers, TestDatabase
from support.fork_server import ForkedPopen
from support.harvester import Harvester, eml, harvest_list
from support.http_server import Asking, HttpServer
from support.rabbitmq import RabbitNode

HOSTS, SITES, DOCUMENTS, WORKERS = 6, 18, 8, 4
SECONDS = 0.1
"""The time that each document takes."""


@pytest.fixture(params=["postgresql", "mariadb"])
def database(request: pytest.FixtureRequest, servers: Servers) -> TestDatabase:
    return servers.test_database(request.param)


@pytest.fixture
def broker() -> Iterator[RabbitNode]:
    node = RabbitNode()
    yield node
    node.close()


class Workers:
    """Worker processes, each in a process group of its own, as `metaharvest worker` starts them."""

    def __init__(self, harvester: Harvester, folder: Path) -> None:
        self._config = harvester.config
        self._output = folder / "output"
        self._processes = [self._start(number) for number in range(WORKERS)]
        self.kills = 0

    def kill(self, number: int) -> None:
        """Kill this worker with its children, and start it again."""
        _kill(self._processes[number])
        self.kills += 1
        self._processes[number] = self._start(number)

    def end(self) -> list[int]:
        """Let all of them end; their exit codes."""
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        return [process.wait(60) for process in self._processes]

    def close(self) -> None:
        """Kill those that a failed test has left: they would work on the database of the next test."""
        for process in self._processes:
            if process.poll() is None:
                _kill(process)

    def output(self) -> str:
        return self._output.read_text(encoding="utf-8")

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        with self._output.open("ab") as output:
            return start(self._config, output.fileno(), "worker", "--name", f"worker-{number}")


def start(config: Path, output: int, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "metaharvest", "--config", str(config), *arguments]
    return ForkedPopen(command, stdout=output, stderr=output, start_new_session=True)


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.long
def test_nothing_is_lost_or_doubled_however_often_workers_coordinator_and_broker_are_killed(
    harvester: Harvester, broker: RabbitNode, kills: int, chance: random.Random, tmp_path: Path
) -> None:
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f'{settings}[workers]\nbroker = "{broker.url}"\nslice = 2\n', encoding="utf-8")
    with ExitStack() as stack:
        servers = [stack.enter_context(HttpServer(host=f"127.0.0.{number}")) for number in range(2, HOSTS + 2)]
        docids = publish_sites(harvester, servers)
        workers = Workers(harvester, tmp_path)
        stack.callback(workers.close)
        coordinate(harvester, tmp_path, chance)
        broker_kills = 1 + kills // 20
        while not is_closed(harvester):
            if workers.kills < kills:
                workers.kill(chance.randrange(WORKERS))
            if broker_kills and chance.random() < 0.3:
                broker.kill()
                broker.start()
                broker_kills -= 1
            coordinate(harvester, tmp_path, chance)
            time.sleep(chance.uniform(0, 2))
        codes = workers.end()
    print(f"{workers.kills} kills of workers")
    assert set(codes) == {0}, workers.output()
    assert "Traceback" not in workers.output()
    assert sorted(harvester.held()) == sorted(docids)
    outcomes = harvester.rows("SELECT document_id, count(*) FROM harvest_log WHERE outcome IS NOT NULL GROUP BY 1")
    assert dict(outcomes) == {docid.rpartition(".")[0]: 1 for docid in docids}
    totals = harvester.rows("SELECT site_name, status, listed, inserted FROM harvest_site_run")
    assert Counter(row[1:] for row in totals) == {("succeeded", DOCUMENTS, DOCUMENTS): SITES}
    assert harvester.rows("SELECT status FROM harvest_run") == [("succeeded",)]
    mails = Counter(str(mail["To"]) for mail in harvester.mails())
    assert mails == Counter([*(f"site{number}@example.org" for number in range(SITES)), "steward@example.org"])
    assert all(server.most_at_once <= 4 for server in servers)


def publish_sites(harvester: Harvester, servers: list[HttpServer]) -> list[str]:
    """Register sites on several hosts, whose documents take some time each; all docids."""

    def slow(asking: Asking) -> None:
        time.sleep(SECONDS)
        asking.answer(eml(asking.path.removeprefix("/").removesuffix(".xml")))

    published = []
    for number in range(SITES):
        server = servers[number % len(servers)]
        docids = [f"site{number}.{each}.1" for each in range(1, DOCUMENTS + 1)]
        for docid in docids:
            server.route(f"/{docid}.xml", slow)
        entries = [(docid, server.url(f"/{docid}.xml")) for docid in docids]
        harvester.add_site(f"site{number}", server.serve(f"/{number}.xml", harvest_list(entries)))
        published += docids
    return published


def coordinate(harvester: Harvester, folder: Path, chance: random.Random) -> None:
    """A tick of the coordinator, which is killed now and then."""
    with (folder / "coordinator").open("ab") as output:
        process = start(harvester.config, output.fileno(), "coordinate")
        if chance.random() < 0.3:
            time.sleep(chance.uniform(0, 2))
            _kill(process)
        else:
            process.wait()


def is_closed(harvester: Harvester) -> bool:
    closed = harvester.rows("SELECT 1 FROM harvest_run WHERE status <> 'running'")
    return bool(closed) and not harvester.rows("SELECT 1 FROM job WHERE open_key IS NOT NULL")
