"""The console beside a night: the time of its pages while a run writes, and the time of the run while pages are open.

`python -m benchmarks.console_night URL` adds sites to the database of `benchmarks.large_installation`, and harvests new
documents from them, night after night, in turn without and with an open console: a browser asks for the live numbers
each two seconds, as the page Tonight does, and another opens one page a second. It prints each night, the median and
the longest time of a page, and the ratio of the nights with the console to the nights without it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


def nights(engine: Engine, url: str, scratch: Path, size: tuple[int, int, int]) -> Iterator[tuple[Cost, list[float]]]:
    """The cost of each night, and the seconds of the pages that were open meanwhile; none in each first of two."""
    number, sites, documents = size
    port, addresses = free_port(), hosts(sites)
    settings = scratch / "run.toml"
    settings.write_text(_SETTINGS.format(url=url), encoding="utf-8")
    with nginx(scratch / "root", addresses, port, scratch), served(engine, url, scratch) as console:
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
            found: list[float] = []
            try:
                with _opened(console, found if night % 2 else None):
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
def _opened(console: Console, found: list[float] | None) -> Iterator[None]:
    """Two browsers that open pages meanwhile, and note their seconds; none without a list for them."""
    ended = threading.Event()

    def browse(paths: Sequence[str], pause: float) -> None:
        for path in cycle(paths):
            if ended.is_set():
                return
            began = time.perf_counter()
            console.get(path)
            if found is not None:
                found.append(time.perf_counter() - began)
            ended.wait(pause)

    browsers = [
        threading.Thread(target=browse, args=(("/console/jobs/live",), _LIVE_SECONDS)),
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
    pages: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for cost, found in nights(engine, given.url, Path(folder), size):
            (beside if found else without).append(cost)
            pages += found
            opened = f", {len(found)} pages" if found else ""
            print(f"{cost.wall:7.1f} s, processor {cost.processor:6.1f} s{opened}", flush=True)
    engine.dispose()
    print(f"pages: median {median(pages) * 1000:.0f} ms, longest {max(pages) * 1000:.0f} ms")
    for name in ("wall", "processor"):
        ratio = median(getattr(each, name) for each in beside) / median(getattr(each, name) for each in without)
        print(f"{name} time of a night with the console to one without: {ratio:.3f}")


if __name__ == "__main__":
    main()
