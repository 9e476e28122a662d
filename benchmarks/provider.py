"""The benchmark of the OAI-PMH provider: beside another one, over a long list, and while a run writes."""

from __future__ import annotations

import http.client
import importlib.util
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from benchmarks.databases import SQLITE, NoServer, server_database
from benchmarks.installation import NIGHT, Cost, Installation
from benchmarks.provider_catalogue import BLOCK, fill
from benchmarks.repositories import serving, wait_for
from benchmarks.servers import free_port
from benchmarks.table import Line

COMPARED = 20_000
RECORDS = 1_000_000
PAGE = 200
HARVESTERS = 32
BEFORE, WRITTEN = 5_000, 20_000
"""Records of the catalogue that harvesters read, before the run and by it."""

_TOKEN = re.compile(rb"<resumptionToken[^>]*>([^<]+)</resumptionToken>")
_IDENTIFIER = re.compile(rb"<header[^>]*>\s*<identifier>([^<]+)<")
_DATE = re.compile(rb"<responseDate>([^<]+)</responseDate>")
_AGAIN = 0.5
"""Seconds after which a harvester that was refused comes again."""


def provider(scratch: Path, scale: float) -> Iterator[Line]:
    """The provider as `metaharvest serve` starts it, read over HTTP on loopback."""
    yield from _beside_another(scratch, _blocks(COMPARED, scale))
    for kind in ("SQLite", "PostgreSQL"):
        try:
            with _database(kind) as url:
                yield from _long_list(scratch / f"long-{kind}", kind, url, _blocks(RECORDS, scale))
        except NoServer as error:
            print(f"Skipped: {error}.")
    yield from _while_a_run_writes(scratch / "busy", _blocks(BEFORE, scale), _blocks(WRITTEN, scale))


@dataclass
class Listed:
    """The lists that a harvester has read: seconds of each page, records, and answers that asked it to come again."""

    seconds: list[float] = field(default_factory=list)
    identifiers: set[bytes] = field(default_factory=set)
    records: int = 0
    refused: int = 0
    began: str = ""
    queries: list[str] = field(default_factory=list)


class _Harvester:
    """One client with one connection, from an address of its own."""

    def __init__(self, port: int, number: int = 1) -> None:
        # Linux has all of 127.0.0.0/8. One address may have half of the places for lists.
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", port, timeout=300, source_address=(f"127.0.0.{number}", 0)
        )

    def close(self) -> None:
        self._connection.close()

    def pages(self, listed: Listed, since: str = "") -> Iterator[int]:
        """Read a list of records, page by page; gives the number of the page."""
        query = f"metadataPrefix=oai_dc{f'&from={since}' if since else ''}"
        while query:
            listed.queries.append(query)
            body = self._page(f"/oai?verb=ListRecords&{query}", listed)
            found = _IDENTIFIER.findall(body)
            listed.records += len(found)
            listed.identifiers.update(found)
            if not listed.began and (date := _DATE.search(body)):
                listed.began = date[1].decode()
            token = _TOKEN.search(body)
            query = f"resumptionToken={quote(token[1])}" if token else ""
            yield len(listed.seconds)

    def seconds_of(self, query: str) -> float:
        """The time of the page of this request."""
        listed = Listed()
        self._page(f"/oai?verb=ListRecords&{query}", listed)
        return listed.seconds[0]

    def _page(self, path: str, listed: Listed) -> bytes:
        while True:
            began = time.perf_counter()
            self._connection.request("GET", path)
            answer = self._connection.getresponse()
            body = answer.read()
            if answer.status == 200:
                listed.seconds.append(time.perf_counter() - began)
                return body
            listed.refused += 1
            time.sleep(_AGAIN)


def _beside_another(scratch: Path, records: int) -> Iterator[Line]:
    """The time for a list, the least of three, in turn; the other provider reads the same database, or memory."""
    file = scratch / "compared" / "metaharvest.db"
    places = {"same database": str(file), "its records in memory": f"memory:{records}"}
    if importlib.util.find_spec("oaipmh") is None:
        print("Skipped: the package oaipmh is not installed (`pip install oaipmh`).")
        places = {}
    with (
        _filled(scratch / "compared", SQLITE, records) as installation,
        _served(installation) as (own, _),
        ExitStack() as others,
    ):
        ports = [own, *(others.enter_context(_other_served(place)) for place in places.values())]
        rounds = [[_seconds(port, records) / records * 1e6 for port in ports] for _ in range(3)]
    ours, *theirs = (min(each) for each in zip(*rounds, strict=True))
    for place, yardstick in list(zip(places, theirs, strict=True)) or [("", None)]:
        yield Line(
            f"list of {records:,} records, pages of {PAGE}",
            ours,
            unit="µs a record",
            beside=f"oaipmh, {place}" if place else "",
            yardstick=yardstick,
            goal=1 / 3 if place == "same database" else None,
            goal_is_ratio=True,
            note=f"{1e6 / ours:,.0f} records a second",
        )


def _long_list(folder: Path, kind: str, url: str, records: int) -> Iterator[Line]:
    """A whole list; the median time of forty pages at its start, in its middle, at its end, in turn; memory."""
    with _filled(folder, url, records) as installation, _served(installation) as (port, process):
        listed, memory = Listed(), []
        with closing(_Harvester(port)) as harvester:
            for page in harvester.pages(listed):
                if page in (records // PAGE // 10, records // PAGE):
                    memory.append(_memory(process))
            _expect(listed.records, records)
            # The first page counts the list.
            queries, middle = listed.queries[1:-1], len(listed.queries) // 2
            places = (queries[:40], queries[middle : middle + 40], queries[-40:])
            # In turn, as the machine may be slower at some times.
            rounds = [[harvester.seconds_of(query) for query in each] for each in zip(*places, strict=False)]
    medians = (statistics.median(each) * 1000 for each in zip(*rounds, strict=True))
    typical = dict(zip(("start", "middle", "end"), medians, strict=True))
    yield Line(
        f"first page of {records:,} records, {kind}",
        listed.seconds[0] * 1000,
        unit="ms",
        beside="the next ones",
        yardstick=typical["start"],
        note=f"the whole list: {records / sum(listed.seconds):,.0f} records a second",
    )
    for name in ("middle", "end"):
        yield Line(
            f"page at the {name} of {records:,} records, {kind}",
            typical[name],
            unit="ms",
            beside="at the start",
            yardstick=typical["start"],
            goal=1.2,
            goal_is_ratio=True,
        )
    yield Line(
        f"memory at the end of {records:,} records, {kind}",
        memory[-1],
        unit="MB",
        beside="after a tenth",
        yardstick=memory[0],
        goal=1.05,
        goal_is_ratio=True,
    )


def _while_a_run_writes(folder: Path, before: int, written: int) -> Iterator[Line]:
    """Harvesters read everything, then what is new, again and again, until a run has ended; then once more."""
    with (
        serving(written, PAGE) as repository,
        _filled(folder, SQLITE, before) as installation,
        _served(installation) as (port, _),
        ThreadPoolExecutor(HARVESTERS + 1) as threads,
    ):
        installation.register_repository("new", repository)
        quiet = _together(threads, port, threads.submit(lambda: None))
        run = threads.submit(installation.run, NIGHT)
        busy = _together(threads, port, run)
        run.result()
        stored = installation.number("SELECT COUNT(*) FROM catalogue_document")
    for each in busy:
        _expect(len(each.identifiers), stored)
    _expect(stored, before + written)
    usual = statistics.median([seconds for each in quiet for seconds in each.seconds])
    longest = max(seconds for each in busy for seconds in each.seconds)
    typical = statistics.median([seconds for each in busy for seconds in each.seconds])
    yield Line(
        f"the longest page of {HARVESTERS} harvesters while a run writes {written:,} records",
        longest * 1000,
        unit="ms",
        beside="median without a run",
        yardstick=usual * 1000,
        goal=5,
        goal_is_ratio=True,
        note=f"median {typical * 1000:,.0f} ms; {sum(len(each.seconds) for each in busy):,} pages, "
        f"{sum(each.refused for each in busy):,} times refused; nothing lost",
    )


def _together(threads: ThreadPoolExecutor, port: int, until: Future[Cost] | Future[None]) -> Sequence[Listed]:
    """What each harvester has read: a whole list, changes until this has ended, and the changes after that."""

    def harvest(number: int) -> Listed:
        listed, since = Listed(), ""
        with closing(_Harvester(port, number)) as harvester:
            while True:
                is_last = until.done()
                listed.began = ""
                for _ in harvester.pages(listed, since):
                    pass
                since = listed.began
                if is_last:
                    return listed

    return [each.result() for each in [threads.submit(harvest, number + 1) for number in range(HARVESTERS)]]


@contextmanager
def _database(kind: str) -> Iterator[str]:
    if kind == "SQLite":
        yield SQLITE
        return
    with server_database(kind) as url:
        yield url


@contextmanager
def _filled(folder: Path, url: str, records: int) -> Iterator[Installation]:
    with closing(Installation(folder, url)) as installation:
        fill(installation.engine, records)
        yield installation


@contextmanager
def _served(installation: Installation) -> Iterator[tuple[int, int]]:
    """The port of the provider, and the number of its process."""
    port = free_port()
    process = installation.start("serve", "--public", "--port", str(port))
    with _ended(process, port):
        yield port, process.pid


@contextmanager
def _other_served(records: str) -> Iterator[int]:
    port = free_port()
    command = [sys.executable, "-m", "benchmarks.oaipmh_provider", str(port), records, str(PAGE)]
    with _ended(subprocess.Popen(command), port):
        yield port


@contextmanager
def _ended(process: subprocess.Popen[bytes], port: int) -> Iterator[None]:
    """A server that listens; it is ended at the end."""
    try:
        wait_for(port)
        yield
    finally:
        process.terminate()
        process.wait()


def _seconds(port: int, records: int) -> float:
    listed = Listed()
    with closing(_Harvester(port)) as harvester:
        for _ in harvester.pages(listed):
            pass
    _expect(listed.records, records)
    return sum(listed.seconds)


def _memory(process: int) -> float:
    """The resident memory of a process in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def _expect(found: int, expected: int) -> None:
    """Raises ValueError if the numbers of records differ."""
    if found != expected:
        raise ValueError(f"{found} instead of {expected} records were listed")


def _blocks(records: int, scale: float) -> int:
    """The number of records at this scale, in whole blocks."""
    return max(1, round(records * scale / BLOCK)) * BLOCK
