"""A scratch installation of metaharvest, run as cron runs it: a process of its own, whose time and memory are taken."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from sqlalchemy import make_url, text

from benchmarks.corpus import SiteFolder
from metaharvest.config.settings import load
from metaharvest.database.engine import open_database, readers, upgrade, writers
from metaharvest.sites.registry import add_site, read_sites

NIGHT = date(2030, 1, 1)
"""The day that the first run of each benchmark takes for today."""

PASSWORD = "METAHARVEST_BENCHMARK_PASSWORD"
"""The variable that the password of a database server is put into."""

LONGEST = 3600
"""Seconds after which a run is stopped, whatever it does."""

SETTINGS = """\
[harvester]
name = "Benchmark"
administrators = ["steward@example.org"]
workers = {workers}
[database]
url = "{url}"
password = "env:{password}"
[mail]
sender = "harvester@example.org"
[http]
allow_networks = ["127.0.0.0/8"]
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process took: seconds on the clock and of the processor (user, system), peak memory in MB."""

    wall: float
    user: float
    system: float
    memory: float


class Installation:
    """One installation in a folder, with a database of its own."""

    def __init__(self, folder: Path, url: str = "sqlite:///metaharvest.db", workers: int = 8) -> None:
        folder.mkdir()
        self.config = folder / "metaharvest.toml"
        # A settings file holds no password.
        parts = make_url(url)
        os.environ[PASSWORD] = str(parts.password or "")
        bare = parts._replace(password=None).render_as_string()
        self.config.write_text(SETTINGS.format(url=bare, password=PASSWORD, workers=workers), encoding="utf-8")
        self.engine = open_database(load(self.config, {}))
        upgrade(self.engine)

    def close(self) -> None:
        self.engine.dispose()

    def register(self, sites: Sequence[SiteFolder]) -> None:
        """Register the sites, all due on the first night."""
        with writers(self.engine).begin() as session:
            for site in sites:
                add_site(
                    session,
                    {
                        "name": site.name,
                        "documentlisturl": site.list_url,
                        "contact_email": f"{site.name}@example.org",
                        "datenextharvest": NIGHT,
                    },
                )

    def run(self, day: date, wrapper: Sequence[str] = ()) -> Cost:
        """One `metaharvest run` on that day. Raises CalledProcessError where it does not end with 0."""
        program = [sys.executable, "-m", "metaharvest"]
        self.engine.dispose()
        return cost_of([*wrapper, *program, "--config", str(self.config), "run", "--date", str(day)])

    def site_numbers(self) -> dict[str, int]:
        """The registered sites' numbers by name."""
        with readers(self.engine)() as session:
            return {site.name: site.site_id for site in read_sites(session)}

    def number(self, statement: str) -> int:
        """The number that a SELECT gives."""
        with readers(self.engine)() as session:
            return int(session.execute(text(statement)).scalar_one())


def cost_of(command: Sequence[str]) -> Cost:
    """Run a command and take what it cost; what it prints is shown only where it fails.

    The peak memory is read from /proc: ru_maxrss would begin with that of this process, from which the child is made.
    """
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    ended = threading.Event()
    with ThreadPoolExecutor(2) as threads:
        peak = threads.submit(_peak_memory, process.pid, ended)
        watchdog = threading.Timer(LONGEST, process.kill)
        watchdog.start()
        said = process.stdout.read() if process.stdout else b""
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        watchdog.cancel()
        ended.set()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.stdout:
        process.stdout.close()
    if process.returncode:
        sys.stderr.write(said.decode(errors="replace"))
        raise subprocess.CalledProcessError(process.returncode, command)
    return Cost(wall, usage.ru_utime, usage.ru_stime, peak.result())


def _peak_memory(pid: int, ended: threading.Event) -> float:
    """The highest resident memory of the process and of those it started, each at its own moment, added up, in MB.

    Read until it has ended; what they share counts for each.
    """
    peaks: dict[int, int] = {pid: 0}
    looks = 0
    while not ended.wait(0.02):
        if looks % 10 == 0:
            peaks.update({each: 0 for each in _children(pid) if each not in peaks})
        looks += 1
        for each, peak in peaks.items():
            try:
                lines = Path(f"/proc/{each}/status").read_text().splitlines()
            except OSError:
                continue
            peaks[each] = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))])
    return sum(peaks.values()) / 1024


def _children(pid: int) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                yield int(stat.parent.name)
        except OSError:
            continue
