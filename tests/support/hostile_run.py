"""Measures what a hostile site costs a run: seconds, processor, memory, and how long a well-behaved site waits.

with GoodSite() as good:
    harvester.add_site("good", good.list_url)
    harvester.add_site("hostile", server.url("/hostile.xml"))
    cost = measured_run(harvester, good, "--date", "2026-11-20")
    assert (cost.peak_mb < 400, cost.gap < 5) == (True, True), cost
    assert good.is_harvested(harvester)
"""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from support.fork_server import ForkedPopen
from support.harvester import Harvester, any_day, eml, harvest_list
from support.http_server import Asking, HttpServer, Route

GZIP = {"Content-Encoding": "gzip"}


@dataclass(frozen=True)
class Cost:
    """The cost of a run: `processor` seconds of it and its workers, and `peak_mb` of the largest process.

    `gap`: the longest time, in seconds, that the well-behaved site's server waited for the next request; `busy`: the
    most processor seconds of the run itself between two such requests, which other programs do not change. `loop`: the
    processor seconds of its event loop from the first such request to the last.
    """

    code: int
    seconds: float
    processor: float
    peak_mb: int
    gap: float
    busy: float
    loop: float
    out: str
    err: str


class GoodSite:
    """A well-behaved site on an address of its own, which keeps a run busy for some seconds: each answer takes a while.

    With `documents` = 120 and `pause` = 0.1, four connections are busy for three seconds.
    """

    def __init__(self, documents: int = 120, pause: float = 0.1, *, host: str = "127.0.0.2") -> None:
        self.documents = documents
        self.pid = 0
        """The process of the run."""
        self._processor: list[float] = []
        self._loop: list[float] = []
        self.server = HttpServer(host=host)
        names = [f"good.{number}.1" for number in range(1, documents + 1)]
        for name in names:
            self.server.route(f"/{name}.xml", self._slowly(eml(name), pause))
        listed = harvest_list([(name, self.server.url(f"/{name}.xml")) for name in names])
        self.list_url = self.server.serve("/list.xml", listed)

    def gap(self) -> float:
        """The longest time between two requests, from the first to the last."""
        moments = sorted(request.at for request in self.server.requests)
        return max((after - before for before, after in pairwise(moments)), default=0.0)

    def busy(self) -> float:
        """The most processor seconds that the run took between two requests."""
        return max((after - before for before, after in pairwise(sorted(self._processor))), default=0.0)

    def loop(self) -> float:
        """The processor seconds of the event loop, which is in the run's main thread, from the first request on."""
        return max(self._loop, default=0.0) - min(self._loop, default=0.0)

    def is_harvested(self, harvester: Harvester) -> bool:
        """True if the target has all of its documents."""
        sql = "SELECT COUNT(*) FROM document_revision WHERE document_id LIKE 'good.%'"
        return harvester.rows(sql) == [(self.documents,)]

    def _slowly(self, body: bytes, pause: float) -> Route:
        def route(asking: Asking) -> None:
            self._processor.append(_processor_of(f"{self.pid}"))
            self._loop.append(_processor_of(f"{self.pid}/task/{self.pid}"))
            asking.pause(pause)
            asking.answer(body)

        return route

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.close()


def measured_run(harvester: Harvester, good: GoodSite, *arguments: str, seconds: float = 100) -> Cost:
    """`metaharvest run` in a process of its own, which is killed after `seconds`."""
    ran = any_day(("run", *arguments))
    command = [sys.executable, "-m", "metaharvest", "--config", str(harvester.config), *ran]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        began = time.monotonic()
        process = ForkedPopen(command, stdout=out, stderr=err, env={**os.environ, "PYTHONUNBUFFERED": "1"})
        good.pid = process.pid
        watch = _Watch(process.pid)
        killer = threading.Timer(seconds, process.kill)
        killer.start()
        code = process.wait()
        took = time.monotonic() - began
        killer.cancel()
        said = [_text(file) for file in (out, err)]
    return Cost(code, took, process.processor, watch.peak_mb(), good.gap(), good.busy(), good.loop(), *said)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def zipped(body: bytes) -> bytes:
    """A body as it is on the wire with the headers GZIP."""
    return gzip.compress(body, 9, mtime=0)


class _Watch:
    """Reads the peak memory of a process and of all that it starts, until it has ended."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def peak_mb(self) -> int:
        """The peak of the largest process."""
        self._thread.join()
        return self._peak // 1024

    def _look(self) -> None:
        while Path(f"/proc/{self._pid}").exists():
            for pid in (self._pid, *_descendants([self._pid])):
                with suppress(OSError):
                    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                    self._peak = max([self._peak, *(int(line.split()[1]) for line in lines if line[:5] == "VmHWM")])
            time.sleep(0.05)


def _descendants(pids: Iterable[int]) -> list[int]:
    found: list[int] = []
    for pid in pids:
        with suppress(OSError):
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
    return [*found, *(_descendants(found) if found else ())]


def _processor_of(task: str) -> float:
    """The processor seconds until now of a process, without its children, or of a thread: their place in /proc."""
    with suppress(OSError):
        fields = Path(f"/proc/{task}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0
