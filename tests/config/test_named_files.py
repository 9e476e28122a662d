"""What settings, options and rows name may be no file: a pipe is not waited for, a device not read without end."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.cli import in_database, initialize, process, tell
from support.harvester import Said, said

NO_FILE = "not a file, but a folder, a device or a pipe"


@contextmanager
def something(kind: str, path: Path) -> Iterator[None]:
    """What is no file of a sane size, at `path`."""
    listener = socket.socket(socket.AF_UNIX)
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "socket":
            listener.bind(str(path))
        case "huge":
            with path.open("wb") as file:
                file.truncate(20_000_000_000)
    with listener:
        yield


def told(kind: str, *arguments: str) -> Said:
    """What a command says; in a process of its own where, if it read all of that, there would be no end of memory."""
    if kind not in ("device", "huge"):
        return said(*arguments)
    done = process(Path(), *arguments)
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with a site; the working directory too, as the name of a socket must be short."""
    monkeypatch.chdir(tmp_path)
    initialize(tmp_path)
    tell(tmp_path, "sites", "add", "alder", "--list-url", "http://127.0.0.1:9/list.xml", "--contact", "a@example.org")
    return tmp_path


PLACES = {
    "secret": '[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = 9\nusername = "me"\npassword = "file:it"\n',
    "monitor": '[monitoring]\nping_url = "file:it"\n',
    "authorities": '[http]\nca_file = "it"\n',
    "authorities for mail": (
        '[mail]\nbackend = "smtp"\nhost = "127.0.0.1"\nport = 9\nsecurity = "tls"\nca_file = "it"\n'
    ),
    "log folder": '[reports]\nadmin = "log-file"\nlog_folder = "it"\n',
    "mail folder": '[mail]\nfolder = "it"\n',
}


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_a_pipe_in_the_place_of_what_settings_name_is_told_by_the_doctor(folder: Path, place: str) -> None:
    (folder / "metaharvest.toml").write_text(PLACES[place])
    with something("pipe", Path("it")):
        done = told("pipe", "doctor")
    assert done.code == 1
    [problem, *_] = [line for line in done.out.splitlines() if line.startswith("PROBLEM")]
    assert str(folder / "it") in problem
    assert "not a file" in problem or "is not a folder" in problem or "cannot be written" in problem


def test_a_file_that_is_not_there_is_told(folder: Path) -> None:
    assert "No such file" in told("nothing", "sites", "edit", "alder", "--ca-file", "it.pem").err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "socket", "huge"])
def test_what_is_no_file_of_a_sane_size_is_told_and_not_read(folder: Path, kind: str) -> None:
    what = "it has more than" if kind == "huge" else NO_FILE
    with something(kind, Path("it.pem")):
        sites = told(kind, "sites", "edit", "alder", "--ca-file", "it.pem")
        assert (sites.code, what in sites.err) == (2, True)
        (folder / "metaharvest.toml").write_text('[http]\nca_file = "it.pem"\n')
        run = told(kind, "run")
        assert (run.code, what in run.err, "Traceback" in run.err) == (2, True, False)


def test_a_site_whose_authorities_are_a_pipe_fails_alone(folder: Path) -> None:
    in_database(folder, "UPDATE harvest_site_schedule SET options = ?", '{"ca_file": "it.pem"}')
    with something("pipe", Path("it.pem")):
        run = told("pipe", "run")
        assert (run.code, run.err) == (3, "")
        assert "not a file" in told("pipe", "log", "--site", "alder").out


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_settings_file_or_a_list_that_is_no_file_is_told(folder: Path, kind: str) -> None:
    with something(kind, Path("it")):
        settings = told(kind, "--config", "it", "sites", "list")
        assert (settings.code, NO_FILE in settings.err) == (2, True)
        if kind == "device":  # a pipe is read: somebody may write what is to be checked into it
            check = told(kind, "check", "it")
            assert (check.code, "Traceback" in check.err) == (2, False)
            assert "is not a file" in " ".join(check.err.split())


@pytest.mark.slow
def test_templates_that_are_pipes_or_devices_are_not_opened(folder: Path) -> None:
    (folder / "metaharvest.toml").write_text('[reports]\ntemplates = "own"\n')
    (folder / "own" / "email" / "site_report").mkdir(parents=True)
    with something("pipe", folder / "own/email/site_report/subject.txt"):
        assert told("pipe", "doctor").code in (0, 1)
    assert told("pipe", "run").err == ""
