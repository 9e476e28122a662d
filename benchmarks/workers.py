"""Workers: slow sites with 1, 2, 4 and 8 of them, quick sites beside a run alone, and claims of 100,000 jobs.

The workers have no broker: they look for jobs by themselves. The documents go into PostgreSQL.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import make_url, text

from benchmarks import databases
from benchmarks.corpus import SiteFolder
from benchmarks.installation import NIGHT, Installation
from benchmarks.nights import scaled, served, slow_network
from benchmarks.table import Line
from metaharvest.database.engine import open_url, upgrade, writers
from metaharvest.jobs import claims, making
from metaharvest.jobs.claims import Used
from metaharvest.jobs.making import NewJob
from metaharvest.model.jobs import JobState

_DATABASE = "PostgreSQL"
_SETTINGS = '[workers]\nbroker = "amqp://127.0.0.1:1/"\n'
_SLOW_SITES, _SLOW_DOCUMENTS, _LATENCY = 256, 8, 5.0
_QUICK_SITES, _QUICK_DOCUMENTS = 40, 250
_JOBS, _AT_ONCE, _THREADS = 100_000, 50, 4
_POLL_SECONDS = 0.2


def workers(scratch: Path, scale: float) -> Iterator[Line]:
    """The time of a run with workers, and the number of claims in a second."""
    yield from _slow(scratch, scale)
    yield from _quick(scratch, scale)
    yield from _claimed(scale)


def _slow(scratch: Path, scale: float) -> Iterator[Line]:
    half: float | None = None
    with slow_network(scratch, scaled(_SLOW_SITES, scale), _SLOW_DOCUMENTS, _LATENCY) as sites:
        for number in (1, 2, 4, 8):
            seconds = _run_of_workers(scratch, sites, number)
            name = f"{len(sites)} slow sites, {number} workers"
            if half is None:
                yield Line(name, seconds)
            else:
                yield Line(name, seconds, "s", "half as many workers", half, 1 / 1.9, goal_is_ratio=True)
            half = seconds


def _quick(scratch: Path, scale: float) -> Iterator[Line]:
    with served(scratch, _QUICK_SITES, scaled(_QUICK_DOCUMENTS, scale)) as sites:
        with _installed(scratch, sites) as installation:
            alone = installation.run(NIGHT).wall
        yield Line("quick sites, a run alone", alone)
        for number in (1, 2):
            seconds = _run_of_workers(scratch, sites, number)
            yield Line(f"quick sites, {number} workers", seconds, "s", "alone", alone, 1.1, goal_is_ratio=True)


def _run_of_workers(scratch: Path, sites: Sequence[SiteFolder], number: int) -> float:
    """The seconds from the beginning of a run to its end, with workers that are there already."""
    with _installed(scratch, sites) as installation, ExitStack() as stack:
        for each in range(number):
            process = stack.enter_context(installation.start("worker", "--name", f"worker-{each}"))
            stack.callback(process.terminate)
        _wait(installation, f"SELECT 1 FROM worker HAVING count(*) = {number}")
        began = time.monotonic()
        with installation.start("coordinate") as coordinator:
            coordinator.wait()
        _wait(installation, "SELECT 1 FROM harvest_run WHERE status <> 'running'")
        return time.monotonic() - began


def _wait(installation: Installation, query: str) -> None:
    """Wait until this finds a row."""
    while True:
        with installation.engine.connect() as connection:
            if connection.execute(text(query)).first() is not None:
                return
        time.sleep(_POLL_SECONDS)


@contextmanager
def _installed(scratch: Path, sites: Sequence[SiteFolder]) -> Iterator[Installation]:
    with databases.server_database(_DATABASE) as url:
        installation = Installation(scratch / f"workers-{time.monotonic_ns()}", url, more=_SETTINGS)
        try:
            installation.register(sites)
            with installation.engine.begin() as connection:
                connection.execute(text("UPDATE harvest_site_schedule SET datenextharvest = '2020-01-01'"))
            yield installation
        finally:
            installation.close()


def _claimed(scale: float) -> Iterator[Line]:
    number = scaled(_JOBS, scale)
    with databases.server_database(_DATABASE) as url:
        engine = open_url(make_url(url))
        upgrade(engine)
        with writers(engine).begin() as session:
            making.make(session, [NewJob("harvest_site", f"key {each}", host=f"host {each}") for each in range(number)])

        def work(name: str, jobs: int) -> None:
            for _ in range(jobs // _AT_ONCE):
                with writers(engine).begin() as session:
                    for claim in claims.claim(session, name, ["harvest_site"], _AT_ONCE):
                        claims.end(session, claim, Used(), JobState.DONE)

        first: float | None = None
        for tenth in range(10):
            began = time.monotonic()
            with ThreadPoolExecutor(_THREADS) as threads:
                list(threads.map(work, "abcd", [number // 10 // _THREADS] * _THREADS))
            each = (time.monotonic() - began) / (number / 10) * 1e6
            if tenth in (0, 9):
                name = f"claim and end of a job, {'first' if tenth == 0 else 'last'} tenth of {number:,}"
                yield Line(name, each, "µs", "the first tenth" if first else "", first, 1000)
            first = first or each
        engine.dispose()
