"""Workers: slow sites with 1, 2, 4 and 8 of them, quick sites beside a run alone, and claims of 100,000 jobs.

RabbitMQ wakes the workers. The documents go into PostgreSQL.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from amqp.exceptions import AMQPError
from sqlalchemy import make_url, text

from benchmarks import databases
from benchmarks.corpus import SiteFolder
from benchmarks.installation import NIGHT, Installation
from benchmarks.nights import CONNECTIONS, scaled, served, slow_network
from benchmarks.table import Line
from metaharvest.database.engine import open_url, upgrade, writers
from metaharvest.jobs import claims, making
from metaharvest.jobs.claims import Used
from metaharvest.jobs.making import NewJob
from metaharvest.model.jobs import JobState
from metaharvest.monitoring.broker import try_broker

_DATABASE = "PostgreSQL"
_BROKER, _DEFAULT_BROKER = "METAHARVEST_TEST_RABBITMQ_URL", "amqp://guest:guest@127.0.0.1/"
_SLOW_SITES, _SLOW_DOCUMENTS, _LATENCY, _SLOW_AT_ONCE = 64, 16, 10.0, 8
_SLOW_SECONDS = (2 + _SLOW_DOCUMENTS / CONNECTIONS) * _LATENCY
"""The time that the servers alone take for a slow site: robots.txt, the list, then four documents at a time."""

_QUICK_SITES, _QUICK_DOCUMENTS, _QUICK_AT_ONCE = 40, 250, 32
_JOBS, _AT_ONCE, _THREADS = 100_000, 50, 4
_POLL_SECONDS = 0.2
_ENDED = (
    "FROM harvest_run WHERE NOT EXISTS (SELECT 1 FROM harvest_run WHERE status = 'running') "
    "AND NOT EXISTS (SELECT 1 FROM job WHERE open_key IS NOT NULL)"
)
_CONNECTS_WITHIN = 5.0
"""The time in which a worker connects to the broker after it has begun."""


@dataclass(frozen=True, slots=True)
class _Night:
    """The seconds of the run, from its opening to its close; of the `whole` night, with the delivery of reports; and of
    the `harvests`, from the first claim to the last end.
    """

    run: float
    whole: float
    harvests: float


def workers(scratch: Path, scale: float) -> Iterator[Line]:
    """The time of a run with workers, and the number of claims in a second."""
    yield from _slow(scratch, scale)
    yield from _quick(scratch, scale)
    yield from _claimed(scale)


def _slow(scratch: Path, scale: float) -> Iterator[Line]:
    half: float | None = None
    with slow_network(scratch, scaled(_SLOW_SITES, scale), _SLOW_DOCUMENTS, _LATENCY) as sites:
        for number in (1, 2, 4, 8):
            night = _night_of_workers(scratch, sites, number, _SLOW_AT_ONCE)
            name = f"{len(sites)} slow sites, {number} workers"
            waits = math.ceil(len(sites) / number / _SLOW_AT_ONCE) * _SLOW_SECONDS
            note = f"servers {waits:.0f} s, harvests {night.harvests:.1f} s"
            if half is None:
                yield Line(name, night.run, note=note)
            else:
                yield Line(name, night.run, "s", "half as many workers", half, 1 / 1.9, goal_is_ratio=True, note=note)
            half = night.run


def _quick(scratch: Path, scale: float) -> Iterator[Line]:
    with served(scratch, _QUICK_SITES, scaled(_QUICK_DOCUMENTS, scale)) as sites:
        with _installed(scratch, sites, _QUICK_AT_ONCE, due="2020-01-01") as installation:
            installation.run(NIGHT)
            with installation.engine.connect() as connection:
                duration = text("SELECT ended_at - started_at FROM harvest_run")
                alone = connection.execute(duration).scalar_one().total_seconds()
        yield Line("quick sites, a run alone", alone)
        for number in (1, 2):
            seconds = _night_of_workers(scratch, sites, number, _QUICK_AT_ONCE).whole
            yield Line(f"quick sites, {number} workers", seconds, "s", "alone", alone, 1.1, goal_is_ratio=True)


def _night_of_workers(scratch: Path, sites: Sequence[SiteFolder], number: int, jobs: int) -> _Night:
    """A night with workers that are there already, with this number of jobs at a time each.

    The first worker opens a run without sites at its start. The run that is measured is the second one.
    """
    with _installed(scratch, sites, jobs, due="2100-01-01") as installation, ExitStack() as stack:
        for each in range(number):
            process = stack.enter_context(installation.start("worker", "--name", f"worker-{each}"))
            stack.callback(process.terminate)
        _wait(installation, f"SELECT 1 FROM worker HAVING count(*) = {number}")
        _wait(installation, f"SELECT 1 {_ENDED} HAVING max(run_id) = 1")
        time.sleep(_CONNECTS_WITHIN)
        with installation.engine.begin() as connection:
            connection.execute(text("UPDATE harvest_site_schedule SET datenextharvest = '2020-01-01'"))
            connection.execute(text("UPDATE harvest_run SET due_sites_of = NULL"))
        with installation.start("coordinate") as coordinator:
            coordinator.wait()
        _wait(installation, f"SELECT 1 {_ENDED} HAVING max(run_id) = 2")
        with installation.engine.connect() as connection:
            opened, closed = connection.execute(
                text("SELECT started_at, ended_at FROM harvest_run WHERE run_id = 2")
            ).one()
            first, last, delivered = connection.execute(
                text(
                    "SELECT min(began_at) FILTER (WHERE kind = 'harvest_site'), "
                    "max(ended_at) FILTER (WHERE kind = 'harvest_site'), max(ended_at) FROM job"
                )
            ).one()
        whole = max(closed, delivered) - opened
        return _Night((closed - opened).total_seconds(), whole.total_seconds(), (last - first).total_seconds())


def _wait(installation: Installation, query: str) -> None:
    """Wait until this finds a row."""
    while True:
        with installation.engine.connect() as connection:
            if connection.execute(text(query)).first() is not None:
                return
        time.sleep(_POLL_SECONDS)


@contextmanager
def _installed(scratch: Path, sites: Sequence[SiteFolder], jobs: int, due: str) -> Iterator[Installation]:
    broker = os.environ.get(_BROKER, _DEFAULT_BROKER)
    try:
        try_broker(broker)
    except (AMQPError, OSError) as error:
        raise databases.NoServer(f"RabbitMQ does not answer; set {_BROKER} to the URL of a server for tests") from error
    with databases.server_database(_DATABASE) as url:
        settings = f'[workers]\nbroker = "{broker}"\njobs = {jobs}\n'
        installation = Installation(scratch / f"workers-{time.monotonic_ns()}", url, more=settings)
        try:
            installation.register(sites)
            with installation.engine.begin() as connection:
                connection.execute(text(f"UPDATE harvest_site_schedule SET datenextharvest = '{due}'"))
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
