"""A scratch installation of metaharvest, run as cron runs it: a process of its own, whose time and memory are taken."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from sqlalchemy import MetaData, Table, create_engine, make_url, text

from benchmarks.corpus import SiteFolder
from benchmarks.databases import SQLITE
from benchmarks.states import THIS, State

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
{workers}[database]
url = "{url}"
password = "env:{password}"
[mail]
sender = "harvester@example.org"
[http]
allow_networks = ["127.0.0.0/8"]
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process and those it started took: seconds on the clock and of the processor, peak memory in MB.

    `output` is what it printed.
    """

    wall: float
    processor: float
    memory: float
    output: bytes = b""


class Installation:
    """One installation in a folder, with a database of its own. `workers` is the setting; None leaves the default.
    `more` is added to the settings file.

    The state of the program that is measured makes the tables. What the benchmarks write and read there, they do by
    SQL, with tables as they find them: another state may have others.
    """

    def __init__(
        self, folder: Path, url: str = SQLITE, workers: int | None = None, state: State = THIS, more: str = ""
    ) -> None:
        folder.mkdir()
        self._state = state
        self._config = folder / "metaharvest.toml"
        # A settings file holds no password.
        parts = make_url(url)
        os.environ[PASSWORD] = str(parts.password or "")
        bare = parts._replace(password=None)
        at_once = "" if workers is None else f"workers = {workers}\n"
        settings = SETTINGS.format(url=bare.render_as_string(), password=PASSWORD, workers=at_once)
        self._config.write_text(settings + more, encoding="utf-8")
        self.engine = create_engine(parts.set(database=str(folder / str(parts.database))) if url == SQLITE else parts)
        self._do("init")

    def close(self) -> None:
        self.engine.dispose()

    def register(self, sites: Sequence[SiteFolder]) -> None:
        """Register the sites, all due on the first night: the first by command, the others as copies of its row."""
        columns = [_columns(site) for site in sites]
        name, url, contact = columns[0].values()
        self._do("sites", "add", name, "--list-url", url, "--contact", contact, "--next", str(NIGHT))
        schedule = self.table("harvest_site_schedule")
        with self.engine.begin() as connection:
            first = connection.execute(schedule.select()).one()._asdict()
            copied = {column.name: first[column.name] for column in schedule.columns if not column.primary_key}
            if rows := [{**copied, **values} for values in columns[1:]]:
                connection.execute(schedule.insert(), rows)

    def register_repository(self, name: str, base_url: str) -> None:
        """Register an OAI-PMH repository, due on the first night."""
        contact = f"{name}@example.org"
        self._do("sites", "add", name, "--oai", base_url, "--contact", contact, "--next", str(NIGHT), "--unasked")

    def run(self, day: date, *options: str) -> Cost:
        """One `metaharvest run` on that day. Raises CalledProcessError if it does not end with 0."""
        return self.do("run", "--date", str(day), *_any_day(self._state), *options)

    def do(self, *arguments: str) -> Cost:
        """One command of the program. Raises CalledProcessError if it does not end with 0."""
        self.engine.dispose()
        return self._do(*arguments)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command of the program that goes on until it is ended; nothing that it prints is shown."""
        command, hidden = self._state.command("--config", str(self._config), *arguments), subprocess.DEVNULL
        return subprocess.Popen(command, env=self._state.environment, stdout=hidden, stderr=hidden)

    def table(self, name: str) -> Table:
        """A table as it is in the database."""
        return Table(name, MetaData(), autoload_with=self.engine)

    def site_numbers(self) -> dict[str, int]:
        """The registered sites' numbers by name."""
        with self.engine.connect() as connection:
            rows = connection.execute(text("SELECT name, site_schedule_id FROM harvest_site_schedule"))
            return {str(name): int(number) for name, number in rows}

    def number(self, statement: str) -> int:
        """The number that a SELECT gives."""
        with self.engine.connect() as connection:
            return int(connection.execute(text(statement)).scalar_one())

    def _do(self, *arguments: str) -> Cost:
        return cost_of(self._state.command("--config", str(self._config), *arguments), self._state.environment)


@cache
def _any_day(state: State) -> tuple[str, ...]:
    """The option of `run` for a day far from the clock; older states take any day without it."""
    helped = subprocess.run(state.command("run", "--help"), env=state.environment, capture_output=True, check=True)
    return ("--force-date",) if b"--force-date" in helped.stdout else ()


def _columns(site: SiteFolder) -> dict[str, str]:
    """The columns of the schedule in which one site differs from the next."""
    return {"name": site.name, "documentlisturl": site.list_url, "contact_email": f"{site.name}@example.org"}


def cost_of(command: Sequence[str], environment: Mapping[str, str] | None = None, exit_code: int = 0) -> Cost:
    """Run a command and take what it cost; what it prints is shown only if it ends with another exit code than this.

    The peak memory is read from /proc: ru_maxrss would begin with that of this process, from which the child is made.
    Processes that it leaves behind become this one's, so that what they took is known when they end.
    """
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment)
    ended = threading.Event()
    with ThreadPoolExecutor(1) as threads:
        peaks = threads.submit(_peaks, process.pid, ended)
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
    if process.returncode != exit_code:
        sys.stderr.write(said.decode(errors="replace"))
        raise subprocess.CalledProcessError(process.returncode, command)
    processor = usage.ru_utime + usage.ru_stime + _processor_of_orphans(peaks.result())
    return Cost(wall, processor, sum(peaks.result().values()) / 1024, said)


_SET_CHILD_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2)."""


def _peaks(pid: int, ended: threading.Event) -> dict[int, int]:
    """The highest resident memory of the process, and of all that it started, each at its own moment, in KB.

    Read until it has ended; what they share counts for each.
    """
    peaks: dict[int, int] = {pid: 0}
    looks = 0
    while not ended.wait(0.02):
        if looks % 10 == 0:
            peaks = {each: peaks.get(each, 0) for each in _with_descendants(peaks)}
        looks += 1
        for each, peak in peaks.items():
            try:
                lines = Path(f"/proc/{each}/status").read_text().splitlines()
            except OSError:
                continue
            peaks[each] = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))])
    return peaks


def _processor_of_orphans(pids: Iterable[int]) -> float:
    """The processor seconds of the processes among these whose parents did not wait for them."""
    seconds = 0.0
    for pid in pids:
        with suppress(ChildProcessError):
            usage = os.wait4(pid, 0)[2]
            seconds += usage.ru_utime + usage.ru_stime
    return seconds


def _with_descendants(known: Iterable[int]) -> set[int]:
    """These processes, and those that they started, and so on; a process stays known when its parent has ended."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = set(known)
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found
