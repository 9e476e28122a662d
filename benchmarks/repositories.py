"""The benchmark of OAI-PMH: the client alone beside others on the same pages; memory for one large answer."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks.installation import NIGHT, Cost, Installation, cost_of
from benchmarks.oai_clients import CLIENTS, MODULES
from benchmarks.servers import free_port
from benchmarks.states import THIS, State
from benchmarks.table import Line

RECORDS = 20_000
PAGES = (100, 1_000)
TIMES = 5
LARGE = 140_000
"""Records of one answer of more than 200 MB."""
OTHERS = ("scythe", "sickle")
REAL_RATE = 520
"""Records a second: the quickest of the real repositories that were measured."""


def repositories(scratch: Path, scale: float) -> Iterator[Line]:
    """Each client lists the same pages, in turn; the least processor time of several counts."""
    number = scaled(RECORDS, scale)
    names = [name for name in CLIENTS if importlib.util.find_spec(MODULES[name])]
    for page in PAGES:
        with serving(number, page) as url:
            rounds = [{name: _took(name, url, number) for name in names} for _ in range(TIMES)]
            whole = [first_harvest(scratch, url, number) for _ in range(2)]
        took = {name: min(each[name] for each in rounds) for name in names}
        for ours, what in (("metaharvest", "client alone"), ("with-digests", "client with the digests of a harvest")):
            for other in [name for name in names if name in OTHERS] or [""]:
                yield Line(
                    f"{what}, pages of {page:,}",
                    took[ours] / number * 1e6,
                    unit="µs a record",
                    beside=other,
                    yardstick=took[other] / number * 1e6 if other else None,
                    goal=1 / 1.5 if other == "scythe" and ours == "metaharvest" else None,
                    goal_is_ratio=True,
                    note=f"{number / took[ours]:,.0f} records a second of processor time",
                )
        sickle = took.get("sickle")
        yield Line(
            f"whole program, pages of {page:,}",
            min(cost.processor for cost in whole) / number * 1e6,
            unit="µs a record",
            beside="sickle alone" if sickle else "",
            yardstick=sickle / number * 1e6 if sickle else None,
            goal=1 if sickle else None,
            goal_is_ratio=True,
            note=f"{number / min(cost.wall for cost in whole):,.0f} records a second on the clock, start included",
        )
    with serving(number, PAGES[0], REAL_RATE) as url:
        alone = cost_of(_command("sickle", url), dict(os.environ)).wall if sickle else None
        took_all = first_harvest(scratch, url, number).wall
    yield Line(
        f"whole program, a repository of {REAL_RATE} records a second",
        took_all,
        beside="sickle alone" if alone else "",
        yardstick=alone,
        goal=1 if alone else None,
        goal_is_ratio=True,
        note=f"{number / took_all:,.0f} records a second on the clock, start and reports included",
    )
    large = scaled(LARGE, scale)
    for damaged, what in ((False, "one answer"), (True, "one answer that is not well-formed,")):
        with serving(large, large, damaged=damaged) as url:
            cost = cost_of(_command("with-digests", url), dict(os.environ))
        yield Line(f"memory for {what} of {large:,} records", cost.memory, unit="MB", goal=300)


def scaled(records: int, scale: float) -> int:
    """The number of records at this scale, at least one page of the largest."""
    return max(max(PAGES), round(records * scale))


class Harvests:
    """The harvests of one repository, a night each, in a database of its own."""

    def __init__(self, folder: Path, url: str, records: int, state: State = THIS) -> None:
        self._installation = Installation(folder, state=state)
        self._records = records
        self._night = NIGHT
        self._installation.register_repository("pages", url)

    def close(self) -> None:
        self._installation.close()

    def run(self, *options: str) -> Cost:
        """The next night. Raises ValueError if it lost a record, or stored one twice."""
        cost = self._installation.run(self._night, *options)
        self._night += timedelta(days=1)
        stored = self._installation.number("SELECT COUNT(*) FROM document_revision")
        if stored != self._records:
            raise ValueError(f"{stored} of {self._records} records were stored")
        return cost


def first_harvest(scratch: Path, url: str, records: int, state: State = THIS) -> Cost:
    """What the first harvest of these records costs: stored, logged and reported."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    with closing(Harvests(folder / "first", url, records, state)) as harvests:
        cost = harvests.run()
    shutil.rmtree(folder)
    return cost


@contextmanager
def serving(records: int, page: int, rate: int = 0, *, damaged: bool = False) -> Iterator[str]:
    """The base URL of a repository in a process of its own; `rate`, `damaged`: see benchmarks.oai_pages."""
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.oai_pages", *map(str, (port, records, page, rate, int(damaged)))]
    process = subprocess.Popen(command)
    try:
        wait_for(port)
        yield f"http://127.0.0.1:{port}/oai"
    finally:
        process.terminate()
        process.wait()


def wait_for(port: int) -> None:
    for _ in range(1200):
        with socket.socket() as connection:
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("the pages were not made within two minutes")


def _command(name: str, url: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.oai_clients", name, url]


def _took(name: str, url: str, records: int) -> float:
    """Seconds of the processor. Raises ValueError if not every record came."""
    told = json.loads(subprocess.run(_command(name, url), capture_output=True, check=True).stdout)
    if told["records"] != records:
        raise ValueError(f"{name}: {told['records']} of {records} records came")
    return float(told["processor"])
