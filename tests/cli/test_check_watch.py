"""`metaharvest check --watch`: what it tells when files change, and how it ends."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.checking import LOOPBACK, broken, check, local_list, put
from support.fork_server import ForkedPopen
from support.harvester import eml, publish
from support.http_server import HttpServer


class Watching:
    """A process that watches; what it prints, line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[str] = queue.Queue()
        assert process.stdout is not None
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self._lines.put(line.rstrip("\n"))

    def until(self, word: str) -> list[str]:
        """The lines up to the one with this word in it."""
        lines: list[str] = []
        deadline = time.monotonic() + 60
        while not lines or word not in lines[-1]:
            lines.append(self._lines.get(timeout=max(0.1, deadline - time.monotonic())))
        return lines

    def ended(self, number: int) -> tuple[int, str]:
        """The exit code after this signal, and what was printed last."""
        self.process.send_signal(number)
        code = self.process.wait(timeout=30)
        self.reader.join(timeout=30)
        return code, "" if self._lines.empty() else self._lines.get()


@contextmanager
def watching(folder: Path, *arguments: str) -> Iterator[Watching]:
    """`metaharvest check --watch` in this folder, with a folder of its own for temporary files."""
    (folder / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONUNBUFFERED": "1"}
    environment |= {"XDG_CONFIG_HOME": str(folder / "no-settings")}
    process = ForkedPopen(
        [sys.executable, "-m", "metaharvest", "check", "--watch", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        watched = Watching(process)
        try:
            yield watched
        finally:
            process.kill()
            watched.reader.join(timeout=30)


INTERRUPTED = """
import sys
from sqlalchemy.engine.default import DefaultDialect
from metaharvest.cli import main

def interrupted(*_):
    raise KeyboardInterrupt

DefaultDialect.do_close = interrupted
main(sys.argv[1:])
"""


def test_an_interruption_at_the_worst_moment_is_told_in_a_word(tmp_path: Path) -> None:
    put(tmp_path, {"a.1.1.xml": eml("a.1.1")})
    command = [sys.executable, "-c", INTERRUPTED, "check", "--watch", "a.1.1.xml"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (130, "Stopped.\n")


def test_only_what_has_changed_is_told(tmp_path: Path) -> None:
    put(tmp_path, {"list.xml": local_list("a.1.1"), "eml/a.1.1.xml": eml("a.1.1"), "more/b.xml": broken("b.1.1")})
    with watching(tmp_path, "list.xml", "more") as watched:
        first = watched.until("Watching for changes; Ctrl-C ends it.")
        assert "more/b.xml:6:5  error  schema.unexpected-element" in first
        assert "Together 2 documents: 1 would be added and 1 is not valid." in first

        put(tmp_path, {"eml/a.1.1.xml": broken("a.1.1")})
        told = watched.until("Errors: ")
        assert told[0].endswith("eml/a.1.1.xml")
        assert told[1] == "eml/a.1.1.xml:6:5  error  schema.unexpected-element  a.1.1"
        assert told[-1] == "2 documents: 2 are not valid. Errors: 2, warnings: 0."
        assert not any("more/b.xml" in line for line in told)

        # As an editor does it that puts another file in the place of the old one.
        put(tmp_path, {"more/b.xml~": eml("b.1.1")})
        (tmp_path / "more" / "b.xml~").replace(tmp_path / "more" / "b.xml")
        told = watched.until("Errors: ")
        assert told[1].startswith("Gone: more/b.xml schema.unexpected-element contat is not known")
        assert told[-1] == "2 documents: 1 would be added and 1 is not valid. Errors: 1, warnings: 0."

        put(tmp_path, {"more/deep/c.xml": broken("c.1.1")})
        assert "more/deep/c.xml:6:5  error  schema.unexpected-element" in watched.until("Errors: ")

        (tmp_path / "list.xml").rename(tmp_path / "moved")
        watched.until("There is no file or folder named list.xml.")
        (tmp_path / "moved").rename(tmp_path / "list.xml")
        assert (
            watched.until("Errors: ")[-1]
            == "3 documents: 1 would be added and 2 are not valid. Errors: 2, warnings: 0."
        )
        assert watched.ended(signal.SIGINT) == (0, "Stopped.")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_what_is_still_there_is_not_told_as_gone(tmp_path: Path) -> None:
    """Though the other document with its packageId, by which the two have numbers, cannot be read any more."""
    put(tmp_path, {"wt/bad.xml": broken("a.1.1"), "wt/bad2.xml": broken("a.1.1")})
    with watching(tmp_path, "wt") as watched:
        assert "\n    wt/bad2.xml:6:5\n" in "\n".join(watched.until("Watching"))
        put(tmp_path, {"wt/bad.xml": b"<eml"})
        told = watched.until("Errors: ")
        assert told[1].startswith("wt/bad.xml:1")
        assert not any("bad2.xml" in line and "schema." in line for line in told)
        assert watched.ended(signal.SIGINT) == (0, "Stopped.")


def test_what_is_on_web_servers_is_fetched_once(tmp_path: Path, server: HttpServer) -> None:
    put(tmp_path, {"eml/a.xml": eml("a.1.1")})
    url = publish(server, "b.1.1")
    server.serve("/b.1.1.xml", broken("b.1.1"))
    with watching(tmp_path, "eml", url, "--sarif", "found.sarif", *LOOPBACK) as watched:
        watched.until("Watching")
        put(tmp_path, {"eml/a.xml": broken("a.1.1")})
        assert watched.until("Errors: ")[-1] == "2 documents: 2 are not valid. Errors: 2, warnings: 0."
        assert '"eml/a.xml"' in (tmp_path / "found.sarif").read_text()
        assert watched.ended(signal.SIGTERM) == (0, "Stopped.")
    assert sorted(request.path for request in server.requests) == ["/b.1.1.xml", "/list.xml"]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_there_must_be_something_to_watch(tmp_path: Path, server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for arguments, said in ((["none.xml"], "no file or folder"), ([publish(server, "a.1.1"), *LOOPBACK], "to watch")):
        told = check("--watch", *arguments)
        assert (told.code, told.out) == (2, "")
        assert said in " ".join(told.err.split())
