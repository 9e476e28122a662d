"""The pages of the console on a large installation, the API and the public pages, over HTTP on loopback.

`python -m benchmarks.console URL` opens each GET page of the access table several times, as an operator, then the same
pages with filters, each GET operation of the API, and the public pages. It prints the median of the wall time, and the
mean of the processor time that the web server takes, and the database server for it, if it is on this machine.
`benchmarks.large_installation` makes the database.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar
from pathlib import Path
from statistics import median
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

from sqlalchemy import Engine, func, make_url, select, text
from sqlalchemy.orm import Session

from metaharvest.database.engine import open_url
from metaharvest.database.models import HarvestRun, HarvestSiteRun, ReportOutbox
from metaharvest.web.api.call import ROOT
from metaharvest.web.api.operations import OPERATIONS
from metaharvest.web.console.access import PAGES

_ADDRESS = "operator@example.org"
_GOAL = 200
"""Milliseconds."""
_TICKS = os.sysconf("SC_CLK_TCK")
_DOWNLOAD = re.compile(r"\.csv|\.xlsx|/export")
"""Whole tables: they are as long as they are, and opened on request only."""
_NOT_OPENED = ("token", "file", "action", "number", "user", "key", "session")
"""Parts of paths that name nothing in the database, or something that the measurement would spend."""
_QUERIES = {
    "/console/runs/{run}/changes.csv": "?other=990",
    "/console/runs/{run}/documents.csv": "?site_run={site_run}",
    "/console/sites/{site}/changes": "?run={run}&run=990",
}
"""Pages that need arguments."""
_WITH_FILTERS = (
    "/console/documents?q=Frogs",
    "/console/documents?q=Frogs+of+plot+993+at+the+station+9",
    "/console/documents?q=no+such+title",
    "/console/documents?q=net-3.7.2",
    "/console/documents?q=no+such+title&outcome=invalid",
    "/console/documents?failing=yes",
    "/console/documents?missing=yes",
    "/console/documents?outcome=invalid",
    "/console/documents?outcome=updated",
    "/console/documents?rule=http.status",
    "/console/documents?site=site-4",
    "/console/documents?site=site-4&failing=yes",
    "/console/documents?site=site-4&q=Frogs",
    "/console/documents/net-3.77777",
    "/console/documents/no-such-document",
    "/console/documents/repo4.oai%3Arepo4.example.org%3A11",
    "/console/log?site=site-4",
    "/console/log?document=net-3.7",
    "/console/log?document=no-such-document",
    "/console/log?rule=http.status",
    "/console/log?rule=list.ampersand",
    "/console/log?level=error",
    "/console/log?since=2026-11-01&until=2026-11-20",
    "/console/log?site=site-4&since=2026-01-01",
    "/console/outbox?state=undelivered",
    "/console/outbox?state=refused",
    "/console/outbox?site=site-4",
    "/console/outbox?recipient=data%40site-4.example.org",
    "/console/outbox?document=net-3.7",
    "/console/problems/http.status?site=site-4",
    "/console/runs?after=500",
    "/console/runs/{run}?order=failing",
    "/console/runs/{run}/changes?other=500",
    "/console/sites?failing=yes&order=failing",
    "/console/sites?text=site-77",
    "/console/year?from=2025-03-05&to=2026-02-11",
    "/console/year?from=2024-01-01&to=2024-12-31",
    "/console/year?from=2024-02-26&to=2026-11-20",
)
"""Pages whose filters ask for other queries."""
_API_WITH_FILTERS = (
    "/documents?failing=true",
    "/documents?failing=true&nights=10",
    "/documents?rule=http.status",
    "/documents?rule=eml.unit-undefined",
    "/documents?site=site-4",
    "/figures?since=2025-03-05&until=2026-02-11",
    "/figures?per=month",
    "/figures?per=site",
    "/log?rule=http.status",
    "/log?document=net-3.7",
    "/problems?site=site-4",
    "/runs?limit=50",
    "/sites?failing=true",
)
_PUBLIC = (
    "/",
    "/status",
    "/documents/net-3.7",
    "/xml/net-3.7",
    "/sitemap.xml",
    "/resourcesync/resourcelist.xml",
    "/resourcesync/changelist.xml",
    "/oai?verb=Identify",
    "/oai?verb=ListSets",
    "/oai?verb=ListIdentifiers&metadataPrefix=oai_dc",
)


@dataclass(frozen=True, slots=True)
class Opened:
    """A page that was opened: its status, its bytes, and its times in milliseconds."""

    path: str
    status: int
    size: int
    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Console:
    """A console that is served by a process of its own, and a browser that is signed in."""

    url: str
    process: int
    engine: Engine
    browser: OpenerDirector
    key: str

    def open(self, path: str, times: int) -> Opened:
        """Open a page once to warm it up, then several times."""
        self.get(path)
        walls, cpus, status, content = [], [], 0, b""
        for _ in range(times):
            used, began = self.processor_seconds(), time.perf_counter()
            status, content = self.get(path)
            walls.append((time.perf_counter() - began) * 1000)
            cpus.append((self.processor_seconds() - used) * 1000)
        return Opened(path, status, len(content), median(walls), sum(cpus) / times)

    def get(self, path: str) -> tuple[int, bytes]:
        """The status and the content of a page."""
        try:
            request = Request(self.url + path)
            if path.startswith(ROOT):
                request.add_header("Authorization", f"Bearer {self.key}")
            with self.browser.open(request, timeout=120) as answer:
                return answer.status, answer.read()
        except HTTPError as error:
            return error.code, error.read()

    def processor_seconds(self) -> float:
        """The processor seconds of the web server up to now, and of the processes of its database server."""
        ticks = 0
        for process in (self.process, *_backends(self.engine)):
            with suppress(OSError):
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
        return ticks / _TICKS


def _backends(engine: Engine) -> list[int]:
    """The processes in which PostgreSQL works for this database, for others than this engine."""
    if engine.dialect.name != "postgresql":
        return []
    ours = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
    with engine.connect() as connection:
        return list(connection.scalars(text(ours)))


def paths(engine: Engine) -> tuple[list[str], list[str]]:
    """The paths to open, each with values of the large installation; and those that are left out."""
    with Session(engine) as session:
        run = session.scalar(select(func.max(HarvestRun.run_id)))
        of_site = select(HarvestSiteRun.site_run_id).where(HarvestSiteRun.site_schedule_id == 4)
        site_run = session.scalar(of_site.order_by(HarvestSiteRun.site_run_id.desc()).limit(1))
        report = session.scalar(select(func.max(ReportOutbox.report_id)).where(ReportOutbox.site_run_id.in_(of_site)))
    values = {
        "site": "site-4",
        "run": run,
        "site_run": site_run,
        "report": report,
        "rule": "http.status",
        "document": "net-3.7",
    }
    of_console = [page.path + _QUERIES.get(page.path, "") for page in PAGES if page.method == "GET"]
    of_api = [ROOT + each.path for each in OPERATIONS if each.method == "GET"]
    every = [*of_console, *_WITH_FILTERS, *of_api, *(ROOT + each for each in _API_WITH_FILTERS), *_PUBLIC]
    found: list[str] = []
    left_out: list[str] = []
    for path in every:
        names = re.findall(r"{(\w+)(?::\w+)?}", path)
        known = all(name in values and name not in _NOT_OPENED for name in names)
        filled = re.sub(r"{(\w+)(?::\w+)?}", lambda part: quote(str(values.get(part[1]))), path)
        (found if known else left_out).append(filled if known else path)
    return found, left_out


@contextmanager
def served(engine: Engine, url: str, folder: Path) -> Iterator[Console]:
    """The console of the database at this URL, in a process of its own, with an operator who is signed in."""
    settings = folder / "metaharvest.toml"
    settings.write_text(f'[database]\nurl = "{url}"\n')
    command = [sys.executable, "-m", "metaharvest", "--config", str(settings)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    subprocess.run([*command, "users", "add", _ADDRESS, "--role", "operator"], capture_output=True, check=False)
    link = subprocess.run([*command, "users", "link", _ADDRESS], capture_output=True, text=True, check=True).stdout
    name = f"console-{time.time_ns()}"
    add_key = [*command, "keys", "add", name, "--role", "operator"]
    key = subprocess.run(add_key, capture_output=True, text=True, check=True).stdout.strip()
    with subprocess.Popen([*command, "serve", "--port", str(port)], stdout=subprocess.DEVNULL) as process:
        try:
            yield Console(address, process.pid, engine, _signed_in(address, link), key)
        finally:
            process.terminate()


def _signed_in(address: str, link: str) -> OpenerDirector:
    """A browser that has used this link, as soon as the web server answers."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    [path] = re.findall(r"/console/link/[\w-]+", link)[:1]
    for _ in range(600):
        with suppress(URLError):
            page = browser.open(address + path).read().decode()
            break
        time.sleep(0.1)
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page))
    browser.open(Request(address + path, urlencode(fields).encode(), {"Origin": address})).read()
    return browser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the pages of the console on the database at the URL of the command line."""
    parser = argparse.ArgumentParser(description="Open each page of the console on a large installation.")
    parser.add_argument("url")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--only", default="", help="Only paths with this part.")
    parser.add_argument("--downloads", action="store_true", help="Whole tables, too.")
    given = parser.parse_args(arguments)
    engine = open_url(make_url(given.url))
    found, left_out = paths(engine)
    with tempfile.TemporaryDirectory() as folder, served(engine, given.url, Path(folder)) as console:
        print(f"{'wall ms':>8} {'cpu ms':>8} {'bytes':>10}  page")
        for path in found:
            if given.only in path and (given.downloads or not _DOWNLOAD.search(path)):
                each = console.open(path, given.times)
                late = "  SLOW" if min(each.wall, each.cpu) > _GOAL else ""
                status = "" if each.status == 200 else f"  ({each.status})"
                print(f"{each.wall:8.0f} {each.cpu:8.0f} {each.size:10,}  {path}{status}{late}", flush=True)
    engine.dispose()
    print("left out:", ", ".join(left_out))


if __name__ == "__main__":
    main()
