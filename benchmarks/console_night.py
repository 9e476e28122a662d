"""The console beside a night: the time of its pages while a run writes, and the time of the run while pages are open.

`python -m benchmarks.console_night URL` adds sites to the database of `benchmarks.large_installation`, and harvests new
documents from them, night after night, in turn without and with an open console: a browser asks for the live numbers
each two seconds, as the page Tonight does, and another opens one page a second. It prints each night, the median time
of a page, the longest times with their pages and moments, and the ratio of the nights with the console to the nights
without it. Before the first night each page is opened alone: the time beside a night is compared with that time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from statistics import median

from sqlalchemy import Engine, delete, make_url
from sqlalchemy.orm import Session

from benchmarks.console import Console, served
from benchmarks.corpus import SiteFolder, write_documents, write_list
from benchmarks.installation import Cost, cost_of
from benchmarks.servers import free_port, hosts, nginx
from metaharvest.database.engine import open_url
from metaharvest.database.models import HarvestSiteSchedule

_LIVE_SECONDS, _PAGE_SECONDS = 2, 1
_LIVE = "/console/jobs/live"
_TIMES_ALONE = 5
_LONGEST_SHOWN = 8
_SETTINGS = """\
[harvester]
administrators = ["steward@example.org"]
[database]
url = "{url}"
[mail]
sender = "harvester@example.org"
[http]
allow_networks = ["127.0.0.0/8"]
"""
_PAGES = (
    "/console/tonight",
    "/console/jobs",
    "/console/sites",
    "/console/sites/site-4",
    "/console/documents?failing=yes",
    "/console/documents/net-3.7",
    "/console/problems",
    "/console/runs",
    "/console/log",
    "/console/outbox",
)


@dataclass(frozen=True, slots=True)
class Visited:
    """A page that was opened beside a night: its milliseconds, those of the server's processor, and its moment.

    `alone`: its milliseconds without a night. The moment is in seconds since the night began. The processor time
    includes a page of the other browser.
    """

    path: str
    wall: float
    cpu: float
    alone: float
    moment: float


def nights(engine: Engine, url: str, scratch: Path, size: tuple[int, int, int]) -> Iterator[tuple[Cost, list[Visited]]]:
    """The cost of each night, and the pages that were open meanwhile; none in each first of two."""
    number, sites, documents = size
    port, addresses = free_port(), hosts(sites)
    settings = scratch / "run.toml"
    settings.write_text(_SETTINGS.format(url=url), encoding="utf-8")
    with nginx(scratch / "root", addresses, port, scratch), served(engine, url, scratch) as console:
        alone = {path: console.open(path, _TIMES_ALONE).wall for path in (_LIVE, *_PAGES)}
        for night in range(2 * number):
            begin = f"night-{time.time_ns()}"
            names = [f"{begin}-{at}" for at in range(sites)]
            folders = [
                SiteFolder(name, scratch / "root" / name, f"http://{address}:{port}/{name}", documents)
                for name, address in zip(names, addresses, strict=True)
            ]
            for folder in folders:
                write_documents(folder)
                write_list(folder)
            _register(engine, folders)
            wanted = [word for name in names for word in ("--site", name)]
            command = [sys.executable, "-m", "metaharvest", "--config", str(settings), "run", *wanted]
            found: list[Visited] = []
            try:
                with _opened(console, alone, found if night % 2 else None):
                    cost = cost_of(command)
            finally:
                with Session(engine) as session, session.begin():
                    session.execute(delete(HarvestSiteSchedule).where(HarvestSiteSchedule.name.in_(names)))
            yield cost, found


def _register(engine: Engine, folders: Sequence[SiteFolder]) -> None:
    with Session(engine) as session, session.begin():
        session.add_all(
            HarvestSiteSchedule(name=each.name, documentlisturl=each.list_url, contact_email="data@example.org")
            for each in folders
        )


@contextmanager
def _opened(console: Console, alone: Mapping[str, float], found: list[Visited] | None) -> Iterator[None]:
    """Two browsers that open pages meanwhile, and note them; none without a list for them."""
    ended, night_began = threading.Event(), time.perf_counter()

    def browse(paths: Sequence[str], pause: float) -> None:
        for path in cycle(paths):
            if ended.is_set():
                return
            used, began = console.processor_seconds(), time.perf_counter()
            console.get(path)
            if found is not None:
                wall, cpu = time.perf_counter() - began, console.processor_seconds() - used
                found.append(Visited(path, wall * 1000, cpu * 1000, alone[path], began - night_began))
            ended.wait(pause)

    browsers = [
        threading.Thread(target=browse, args=((_LIVE,), _LIVE_SECONDS)),
        threading.Thread(target=browse, args=(_PAGES, _PAGE_SECONDS)),
    ]
    for each in browsers if found is not None else ():
        each.start()
    try:
        yield
    finally:
        ended.set()
        for each in browsers if found is not None else ():
            each.join()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure nights beside the console on the database at the URL of the command line."""
    parser = argparse.ArgumentParser(description="Harvest beside an open console on a large installation.")
    parser.add_argument("url")
    parser.add_argument("--nights", type=int, default=3, help="Pairs of nights.")
    parser.add_argument("--sites", type=int, default=10)
    parser.add_argument("--documents", type=int, default=500, help="New documents of each site in each night.")
    given = parser.parse_args(arguments)
    engine = open_url(make_url(given.url))
    size = (given.nights, given.sites, given.documents)
    without: list[Cost] = []
    beside: list[Cost] = []
    pages: list[Visited] = []
    with tempfile.TemporaryDirectory() as folder:
        for cost, found in nights(engine, given.url, Path(folder), size):
            (beside if found else without).append(cost)
            pages += found
            opened = f", {len(found)} pages" if found else ""
            print(f"{cost.wall:7.1f} s, processor {cost.processor:6.1f} s{opened}", flush=True)
    engine.dispose()
    pages.sort(key=lambda page: page.wall, reverse=True)
    print(f"pages: median {median(page.wall for page in pages):.0f} ms; the longest:")
    print(f"{'ms':>8} {'cpu ms':>8} {'alone':>8} {'second':>8}  page")
    for page in pages[:_LONGEST_SHOWN]:
        print(f"{page.wall:8.0f} {page.cpu:8.0f} {page.alone:8.0f} {page.moment:8.1f}  {page.path}")
    ratio = median(page.wall / page.alone for page in pages)
    print(f"time of a page beside a night to the time alone: {ratio:.2f}")
    for name in ("wall", "processor"):
        ratio = median(getattr(each, name) for each in beside) / median(getattr(each, name) for each in without)
        print(f"{name} time of a night with the console to one without: {ratio:.3f}")


if __name__ == "__main__":
    main()
