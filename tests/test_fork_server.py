"""A forked program behaves as the same program that is started with subprocess."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.fork_server import ForkedPopen

PROGRAM = """\
import json, os, signal, sys, tempfile, time
import atexit, multiprocessing, threading

def double(number):
    print("in a worker", flush=True)

if __name__ == "__main__":
    atexit.register(print, "the end")
    mask = os.umask(0)
    print(json.dumps({
        "arguments": sys.argv[1:], "name": __name__, "module": __spec__.name, "folder": os.getcwd(),
        "first path": sys.path[0], "variables": dict(os.environ), "temporary": tempfile.gettempdir(),
        "files": sorted(int(each) for each in os.listdir("/proc/self/fd") if int(each) > 2)[:-1],
        "session": os.getsid(0) == os.getpid(), "group": os.getpgid(0) in (os.getpid(), os.getpgid(os.getppid())),
        "mask": mask, "time zone": time.tzname, "text": [sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors],
        "child": repr(signal.getsignal(signal.SIGCHLD)),
        "terminal": sys.stdin.isatty(), "input": sys.stdin.read(), "threads": threading.active_count(),
    }))
    sys.stderr.write("words")
    if sys.argv[1:] == ["wait"]:
        sys.stdout.flush()
        time.sleep(60)
    if sys.argv[1:] == ["worker"]:
        worker = multiprocessing.get_context("spawn").Process(target=double, args=(2,))
        worker.start()
        worker.join()
    sys.exit(sys.argv[1] if sys.argv[1:] == ["a sentence"] else len(sys.argv))
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    (tmp_path / "shown.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return [sys.executable, "-m", "shown"]


def ended(kind: type[subprocess.Popen[str]], command: list[str], **options: Any) -> dict[str, Any]:
    pipe = subprocess.PIPE
    with kind(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **options) as process:
        out, err = process.communicate("some input", timeout=30)
    report, _, rest = out.partition("\n")
    return {**json.loads(report), "rest": rest, "code": process.returncode, "errors": err}


@pytest.mark.parametrize(
    ("arguments", "variables", "options"),
    [
        ([], {}, {}),
        (["a", "--b=c d"], {}, {"cwd": "/", "start_new_session": True}),
        (["a sentence"], {"A": "ä", "TMPDIR": "/", "TZ": "Asia/Tokyo"}, {}),
        (["worker"], {"PYTHONUNBUFFERED": "1"}, {}),
        ([], {"PYTHONIOENCODING": "latin-1"}, {}),
    ],
    ids=["plain", "folder", "variables", "worker", "encoding"],
)
def test_a_program_finds_the_same_world_and_ends_in_the_same_way(
    program: list[str], arguments: list[str], variables: dict[str, str], options: dict[str, Any]
) -> None:
    options["env"] = {**os.environ, **variables}
    command = [*program, *arguments]
    assert ended(ForkedPopen, command, **options) == ended(subprocess.Popen, command, **options)


def test_signals_reach_the_program(program: list[str]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with ForkedPopen([*program, "wait"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            process.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.01)
            assert process.poll() is None
            os.kill(process.pid, number)
            assert process.wait(30) == -number


def test_a_session_of_its_own_is_there_at_once(program: list[str]) -> None:
    with ForkedPopen(program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL


def test_a_sitecustomize_is_read(program: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("print('it was read')")
    monkeypatch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
    with ForkedPopen(program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.communicate()[0].startswith("it was read")


def test_a_program_that_has_ended_takes_signals_until_its_exit_code_is_read(program: list[str]) -> None:
    process = ForkedPopen(program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    process.stdout.read()
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait(30) in (1, -signal.SIGKILL)
    process.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_programs_run_side_by_side(program: list[str]) -> None:
    long = ForkedPopen([*program, "wait"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    code = ended(ForkedPopen, program)["code"]
    assert (code, long.poll()) == (1, None)
    long.kill()
    long.communicate()
    assert long.returncode == -signal.SIGKILL


def test_output_may_go_into_a_file(program: list[str], tmp_path: Path) -> None:
    with (tmp_path / "output").open("wb") as output:
        process = ForkedPopen(program, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    assert process.wait(30) == 1
    assert b"words" in (tmp_path / "output").read_bytes()
