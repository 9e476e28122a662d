"""Workers in threads of the test, without a broker: they look for jobs by themselves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from metaharvest.services.worker_loop import WorkerLoop, process_named
from support.harvester import Harvester
from support.waiting import wait_until


@contextmanager
def workers(harvester: Harvester, number: int = 1) -> Iterator[list[WorkerLoop]]:
    """This number of workers, each with connections of its own; they end as the context ends."""
    opened = [harvester.opened() for _ in range(number)]
    loops = [WorkerLoop(each, process_named(f"worker-{at}")) for at, each in enumerate(opened, 1)]
    threads = [threading.Thread(target=loop.run) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield loops
    finally:
        for loop in loops:
            loop.end()
        for thread in threads:
            thread.join()
        for each in opened:
            each.close()


def tick(harvester: Harvester, at: datetime | None = None) -> None:
    """What `metaharvest coordinate` does, now or at another moment, without the message to the workers."""
    from metaharvest.services import jobs

    opened = harvester.opened(**({"clock": lambda: at} if at else {}))
    try:
        jobs.coordinate(opened)
    finally:
        opened.close()


def wait_until_closed(harvester: Harvester, run_id: int = 1) -> None:
    """Wait until this run is closed, and all its jobs are done."""
    wait_until(
        lambda: (
            harvester.rows("SELECT 1 FROM harvest_run WHERE run_id = ? AND status <> 'running'", run_id)
            and not harvester.rows("SELECT 1 FROM job WHERE open_key IS NOT NULL")
        ),
        seconds=120,
    )
