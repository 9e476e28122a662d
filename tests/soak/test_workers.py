"""Workers, coordinator, broker and database are killed again and again; the run ends as if nothing had happened.

With 20 kills and more the workers are on machines of their own (network namespaces), and the database is a server that
the test starts itself: it dies, too, and the network of machines is cut.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from metaharvest.services.exit_codes import ExitCode
from support.databases import Servers, TestDatabase
from support.fork_server import ForkedPopen
from support.harvester import Harvester, eml, harvest_list
from support.http_server import Asking, HttpServer
from support.machines import NETWORK, Machines
from support.oai_server import Asked, OaiServer
from support.own_servers import OwnServer
from support.rabbitmq import RabbitNode

DOCUMENTS, WORKERS = 8, 6
SECONDS, WHOLE_SECONDS = 0.1, 1.0
"""The time that each document takes, and each page of records; with many kills, the run must last."""
CUT_SECONDS = 75
"""The time without a network after which other workers have the jobs of a machine."""
MANY = 20
"""The number of kills from which on everything may die."""


@dataclass
class Fleet:
    """The machines of the workers, and the servers that the test may kill."""

    machines: Machines
    broker: RabbitNode
    own: OwnServer | None
    database: TestDatabase
    sites: int
    seconds: float
    hosts: list[HttpServer] = field(default_factory=list)


@pytest.fixture(params=["postgresql", "mariadb"])
def fleet(request: pytest.FixtureRequest, servers: Servers, kills: int) -> Iterator[Fleet]:
    """Two sites for a kill, and one host for 14 sites; the servers have an address of their own."""
    sites = max(18, 2 * kills)
    hosts = -(-sites // 14) if kills >= MANY else 6
    with ExitStack() as stack:
        if kills < MANY:
            machines = Machines(0, 0)
            stack.callback(machines.close)
            own, database, address = None, servers.test_database(request.param), "127.0.0.1"
        else:
            machines = stack.enter_context(Machines(WORKERS, hosts + 1))
            address = machines.address(hosts)
            own = OwnServer(request.param, address)
            stack.callback(own.close)
            database = own.database()
            assert database.engine is not None
            stack.callback(database.engine.dispose)
        broker = RabbitNode(address)
        stack.callback(broker.close)
        fleet = Fleet(machines, broker, own, database, sites, SECONDS if kills < MANY else WHOLE_SECONDS)
        for host in range(hosts):
            fleet.hosts.append(stack.enter_context(HttpServer(host=machines.address(host))))
        yield fleet


@pytest.fixture
def database(fleet: Fleet) -> TestDatabase:
    return fleet.database


class Workers:
    """Worker processes, each in a process group of its own, as `metaharvest worker` starts them."""

    def __init__(self, harvester: Harvester, folder: Path, machines: Machines) -> None:
        self._config = harvester.config
        self._machines = machines
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
        return [process.wait(120) for process in self._processes]

    def close(self) -> None:
        """Kill those that a failed test has left: they would work on the database of the next test."""
        for process in self._processes:
            if process.poll() is None:
                _kill(process)

    def output(self) -> str:
        return self._output.read_text(encoding="utf-8")

    def supervise(self) -> None:
        """Start workers again whose database was away at their start: no other ends by itself."""
        for number, process in enumerate(self._processes):
            if process.poll() is not None:
                assert process.returncode == ExitCode.DATABASE, (process.returncode, self.output())
                self._processes[number] = self._start(number)

    def _start(self, number: int) -> subprocess.Popen[bytes]:
        with self._output.open("ab") as output:
            module = self._machines.module(number, "metaharvest")
            return start(module, self._config, output.fileno(), "worker", "--name", f"worker-{number}")


def start(module: list[str], config: Path, output: int, *arguments: str) -> subprocess.Popen[bytes]:
    command = [*module, "--config", str(config), *arguments]
    return ForkedPopen(command, stdout=output, stderr=output, start_new_session=True)


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.long
def test_nothing_is_lost_or_doubled_whatever_dies(
    harvester: Harvester, fleet: Fleet, kills: int, chance: random.Random, tmp_path: Path
) -> None:
    use_workers(harvester, fleet.broker.url, 2)
    docids = publish_sites(harvester, fleet)
    with ExitStack() as stack:
        workers = Workers(harvester, tmp_path, fleet.machines)
        stack.callback(workers.close)
        coordinate(harvester, tmp_path)
        left = Counter(accidents(harvester, fleet, workers, chance, tmp_path, kills))
        number = left.total()
        for accident in chance.sample([*left.elements()], number):
            if is_closed(harvester):
                break
            time.sleep(chance.uniform(0, 1))
            accident()
            left[accident] -= 1
            workers.supervise()
            coordinate(harvester, tmp_path)
        while not is_closed(harvester):
            workers.supervise()
            coordinate(harvester, tmp_path)
            time.sleep(1)
        codes = workers.end()
    print(f"{workers.kills} kills of workers")
    assert set(codes) == {0}, workers.output()
    assert "Traceback" not in workers.output(), workers.output()
    assert sorted(harvester.held()) == sorted(docids)
    outcomes = harvester.rows("SELECT document_id, count(*) FROM harvest_log WHERE outcome IS NOT NULL GROUP BY 1")
    assert dict(outcomes) == {docid.rpartition(".")[0]: 1 for docid in docids}
    totals = harvester.rows("SELECT site_name, status, listed, inserted FROM harvest_site_run")
    assert Counter(row[1:] for row in totals) == {("succeeded", DOCUMENTS, DOCUMENTS): fleet.sites}
    assert harvester.rows("SELECT status FROM harvest_run") == [("succeeded",)]
    mails = Counter(str(mail["To"]) for mail in harvester.mails())
    assert mails == Counter([*(f"site{number}@example.org" for number in range(fleet.sites)), "steward@example.org"])
    assert all(server.most_at_once <= 4 for server in fleet.hosts)
    # How long a run of few sites lasts is up to the machine: it may end before some of its accidents.
    assert left.total() < number if kills < MANY else not left.total(), f"{left.total()} of {number} did not happen"


def accidents(
    harvester: Harvester, fleet: Fleet, workers: Workers, chance: random.Random, folder: Path, kills: int
) -> dict[Callable[[], None], int]:
    """What happens to the fleet, and how often."""

    def kill_worker() -> None:
        workers.kill(chance.randrange(WORKERS))

    def restart_broker() -> None:
        fleet.broker.kill()
        fleet.broker.start()

    def restart_database() -> None:
        assert fleet.own is not None
        assert harvester.engine is not None
        fleet.own.kill()
        time.sleep(chance.uniform(0, 5))
        fleet.own.start()
        harvester.engine.dispose()

    def cut_network() -> None:
        machine = chance.randrange(WORKERS)
        fleet.machines.cut(machine)
        time.sleep(chance.choice([CUT_SECONDS / 5, CUT_SECONDS]))
        fleet.machines.join(machine)

    kill_coordinator = partial(coordinate, harvester, folder, chance)
    if kills < MANY:
        return {kill_worker: kills, kill_coordinator: 1, restart_broker: 1}
    some = 1 + kills // 40
    return {
        kill_worker: kills,
        kill_coordinator: kills // 20,
        restart_broker: some,
        restart_database: some,
        cut_network: some if fleet.machines.is_real else 0,
    }


def use_workers(harvester: Harvester, broker: str, slice_seconds: float) -> None:
    settings = harvester.config.read_text(encoding="utf-8").replace('"127.0.0.0/8"', f'"127.0.0.0/8", "{NETWORK}"')
    section = f'[workers]\nbroker = "{broker}"\nslice = {slice_seconds}\n'
    harvester.config.write_text(settings + section, encoding="utf-8")


def publish_sites(harvester: Harvester, fleet: Fleet) -> list[str]:
    """Register the sites, each fifth of them a source repository; their documents take some time each. All docids."""
    published = []
    for number in range(fleet.sites):
        server = fleet.hosts[number % len(fleet.hosts)]
        if number % 5:
            published += publish_list(harvester, server, f"site{number}", DOCUMENTS, fleet.seconds)
        else:
            published += publish_repository(harvester, server, f"site{number}", DOCUMENTS, fleet.seconds)
    return published


def publish_list(harvester: Harvester, server: HttpServer, name: str, documents: int, seconds: float) -> list[str]:
    """A site with a harvest list."""
    docids = [f"{name}.{each}.1" for each in range(1, documents + 1)]

    def slow(asking: Asking) -> None:
        time.sleep(seconds)
        asking.answer(eml(asking.path.removeprefix("/").removesuffix(".xml")))

    for docid in docids:
        server.route(f"/{docid}.xml", slow)
    entries = [(docid, server.url(f"/{docid}.xml")) for docid in docids]
    harvester.add_site(name, server.serve(f"/{name}.xml", harvest_list(entries)))
    return docids


def publish_repository(
    harvester: Harvester, server: HttpServer, name: str, documents: int, seconds: float, page: int = 2
) -> list[str]:
    """A site with records of a source repository; each page takes some time."""
    repository = OaiServer(documents, page=page, http=server, path=f"/{name}/oai")
    repository.now = datetime.now(UTC)

    def slow(body: bytes, _asked: Asked) -> bytes:
        time.sleep(seconds)
        return body

    repository.tamper = slow
    options = f'{{"oai": {{"origin": "{name}"}}}}'
    harvester.add_site(name, repository.base_url, source_kind="oai-pmh", options=options)
    return [f"{name}/oai_dc/oai:test:{each}.1" for each in range(1, documents + 1)]


def coordinate(harvester: Harvester, folder: Path, chance: random.Random | None = None) -> None:
    """A tick of the coordinator, which is killed if there is a `chance`."""
    with (folder / "coordinator").open("ab") as output:
        process = start([sys.executable, "-m", "metaharvest"], harvester.config, output.fileno(), "coordinate")
        if chance is not None:
            time.sleep(chance.uniform(0, 1))
            _kill(process)
        else:
            process.wait()


def is_closed(harvester: Harvester) -> bool:
    closed = harvester.rows("SELECT 1 FROM harvest_run WHERE status <> 'running'")
    return bool(closed) and not harvester.rows("SELECT 1 FROM job WHERE open_key IS NOT NULL")
