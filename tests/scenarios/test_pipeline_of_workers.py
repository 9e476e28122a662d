"""The pipeline as jobs of workers: two worker processes, killed at random moments, leave what one process leaves."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from functools import partial

import pytest

from metaharvest.demo.nights import register_library
from metaharvest.demo.samples import SampleNetwork
from scenarios.test_pipeline import ended_steps, start_again, tables
from support.databases import on_one_database
from support.harvester import Harvester
from support.waiting import wait_until

SETTINGS = '[workers]\nbroker = "amqp://guest@127.0.0.1:1/"\n[pipeline]\nenabled = true\n'
"""Nobody listens there: workers find jobs without messages."""


@pytest.fixture
def network() -> Iterator[SampleNetwork]:
    with SampleNetwork() as served:
        yield served


def found(library: Harvester) -> object:
    """What the index finds."""
    return json.loads(library("search", "--json").out)


@pytest.mark.slow
@pytest.mark.parametrize("database", ["postgresql"], indirect=True)
def test_two_workers_that_are_killed_leave_what_one_process_leaves(
    harvester: Harvester, network: SampleNetwork
) -> None:
    with harvester.opened() as opened:
        register_library(opened, network)
    assert harvester("run", "--force").code == 0
    assert harvester("pipeline", "run").code == 0
    wanted, searched = tables(harvester), found(harvester)
    start_again(harvester)
    with harvester.config.open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS)
    chance = random.Random(20261128)
    workers = {name: start(harvester, name) for name in ("alder", "birch")}
    try:
        for steps in (1, 9, 16):
            wait_until(partial(have_ended, harvester, steps), seconds=120)
            name = chance.choice(sorted(workers))
            kill(harvester, workers[name], name)
            workers[name] = start(harvester, name)
        wait_until(lambda: is_idle(harvester) and tables(harvester) == wanted, seconds=180)
    finally:
        for each in workers.values():
            each.terminate()
        said = [each.communicate(timeout=120)[1] for each in workers.values()]
    assert not any("Traceback" in each for each in said), said
    assert found(harvester) == searched
    assert harvester.rows("SELECT count(*) FROM job WHERE state = 'failed'") == [(0,)]


def start(harvester: Harvester, name: str) -> subprocess.Popen[str]:
    return harvester.start("worker", "--name", name)


def kill(harvester: Harvester, worker: subprocess.Popen[str], name: str) -> None:
    """Kill a worker, and let its leases lapse at once."""
    worker.kill()
    worker.communicate()
    harvester.rows("UPDATE job SET lease_until = '2020-01-01 00:00:00' WHERE state = 'taken' AND worker = ?", name)


def have_ended(harvester: Harvester, steps: int) -> bool:
    return ended_steps(harvester) >= steps


def is_idle(harvester: Harvester) -> bool:
    waits = harvester.rows("SELECT 1 FROM pipeline_step WHERE state = 'waiting'")
    return not waits and not harvester.rows("SELECT 1 FROM job WHERE open_key IS NOT NULL")


@on_one_database
def test_a_worker_without_the_libraries_of_the_pipeline_does_not_start(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metaharvest.monitoring.pipeline_checks._LIBRARIES", ("no_such_library",))
    with harvester.config.open("a", encoding="utf-8") as settings:
        settings.write(SETTINGS)
    ended = harvester("worker")
    assert ended.code == 2
    assert "pip install 'metaharvest[pipeline]'" in ended.err
