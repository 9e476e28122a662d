"""Starts Python programs fast: a server process imports metaharvest once, and each program is a fork of the server.

All processes of one run of the tests have one server. For each of them it forks a server with a channel of its own.

    process = ForkedPopen([sys.executable, "-m", "metaharvest", "run"], stdout=PIPE, text=True)

A ForkedPopen behaves as the subprocess.Popen of the same command: `pid` is the process of the program itself, signals
reach it, and it ends as an interpreter ends. Only the start of Python and the imports are not done again, and objects
that the program still uses at its end are not deleted one by one. Tests of these use subprocess. A fork has more memory
than an interpreter, as it has all modules.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, AnyStr

from support.waiting import wait_until

_TESTS = str(Path(__file__).parents[1])
_sending = threading.Lock()
_NUMBER = struct.Struct("i")
_ENDED = struct.Struct("id")
"""An exit code, and processor seconds."""
_READ_BY_PYTHON = ("PYTHON", "LC_", "LANG")
"""Prefixes of environment variables that an interpreter reads at its start."""
_DONE_HERE = "PYTHONUNBUFFERED"
_ALSO_IMPORTED = (
    "pymysql",
    "psycopg",
    "sqlalchemy.dialects.mysql.pymysql",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "uvicorn.loops.asyncio",
    "uvicorn.protocols.http.h11_impl",
    "xmlschema",
)


class ForkedPopen(subprocess.Popen[AnyStr]):
    """A subprocess.Popen for `[sys.executable, "-m", MODULE, ...]`, with stdin, stdout, stderr, cwd, env and
    start_new_session. Where `env` changes what the interpreter reads, the program starts as with subprocess.Popen.
    SIGINT interrupts a fork also where the tests ignore that signal.

    `processor`: the processor seconds of a fork that has ended, and of the processes that it waited for.
    """

    processor = 0.0
    _status: socket.socket | None = None

    def _execute_child(self, args: Any, *options: Any) -> None:
        executable, preexec, _, pass_fds, cwd, env, _, _, shell, *pipes = options[:15]
        assert not any([executable, preexec, pass_fds, shell]), "use subprocess.Popen"
        if not _is_same_interpreter(env):
            super()._execute_child(args, *options)  # type: ignore[misc]
            return
        assert [str(each) for each in args[:2]] == [sys.executable, "-m"]
        request = {
            "module": args[2],
            "arguments": [str(each) for each in args[3:]],
            "folder": str(Path(cwd or "").absolute()),
            "environment": dict(os.environ if env is None else env),
            "umask": _umask(),
            "new_session": options[-2],
        }
        files: list[int] = [each if each != -1 else number for number, each in enumerate(pipes[0:1] + pipes[3:6:2])]
        self._status, there = socket.socketpair()
        with there, _sending:
            _send(_server(), request, [*files, there.fileno()])
        (self.pid,) = self._next(_NUMBER)
        assert self.pid > 1
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]

    def _internal_poll(self, *arguments: Any, **options: Any) -> int | None:
        if self._status is None:
            found: int | None = super()._internal_poll(*arguments, **options)  # type: ignore[misc]
            return found
        return self._returned_within(0)

    def _wait(self, timeout: float | None) -> int:
        if self._status is None:
            code: int = super()._wait(timeout)  # type: ignore[misc]
            return code
        ended = self._returned_within(timeout)
        if ended is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        return ended

    def _returned_within(self, seconds: float | None) -> int | None:
        assert self._status is not None
        if self.returncode is None:
            select.select([self._status], [], [], seconds)  # without the lock: another thread may kill it meanwhile
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None and select.select([self._status], [], [], 0)[0]:
                self.returncode, self.processor = self._next(_ENDED)
                # The server answers by closing the channel: the process is gone then.
                self._status.shutdown(socket.SHUT_WR)
                self._status.recv(1)
                self._status.close()
            return self.returncode

    def _next(self, kind: struct.Struct) -> tuple[Any, ...]:
        assert self._status is not None
        return kind.unpack(self._status.recv(kind.size, socket.MSG_WAITALL))


def _python_path(environment: Any) -> list[str]:
    return [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each]


def _is_same_interpreter(env: Any) -> bool:
    """True if an interpreter with these environment variables would be as this one."""

    def read_by_python(variables: Any) -> dict[str, str]:
        return {
            name: value
            for name, value in variables.items()
            if name.startswith(_READ_BY_PYTHON) and name not in (_DONE_HERE, "PYTHONPATH")
        }

    given = os.environ if env is None else env
    # A folder that only the program looks into may have a sitecustomize.py.
    folders = _python_path(given)
    return set(folders) <= set(sys.path) and read_by_python(given) == read_by_python(os.environ)


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


@cache
def _server() -> socket.socket:
    """The channel to the server of this process, which ends when the channel is closed."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"process-{os.getpid()}")
    address = Path(tempfile.gettempdir(), f"metaharvest-{run}.socket")
    channel = wait_until(lambda: _connected(address), seconds=60)
    assert channel
    return channel


def _connected(address: Path) -> socket.socket | None:
    """A channel to the server at this address. If there is none, start one."""
    channel = socket.socket(socket.AF_UNIX)
    try:
        channel.connect(str(address))
    except (FileNotFoundError, ConnectionRefusedError):
        channel.close()
        _start(address)
        return None
    return channel


def _start(address: Path) -> None:
    """Start a server at this address, unless another process has just begun to."""
    with socket.socket(socket.AF_UNIX) as listening:
        try:
            listening.bind(str(address))
        except OSError:
            return
        listening.listen()
        subprocess.Popen(
            [sys.executable, "-m", "support.fork_server", str(listening.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[listening.fileno()],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([_TESTS, *_python_path(os.environ)])},
        ).returncode = 0  # It ends with the last process that it serves: nobody waits for it.


def _send(channel: socket.socket, request: dict[str, Any], files: list[int]) -> None:
    content = json.dumps(request).encode()
    socket.send_fds(channel, [_NUMBER.pack(len(content))], files)
    channel.sendall(content)


def _receive(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next request and its files. Raises EOFError if the tests have ended."""
    size, files, _, _ = socket.recv_fds(channel, _NUMBER.size, 4)
    if not size:
        raise EOFError
    return json.loads(channel.recv(_NUMBER.unpack(size)[0], socket.MSG_WAITALL)), files


def _import_everything() -> None:
    import metaharvest

    for module in pkgutil.walk_packages(metaharvest.__path__, "metaharvest."):
        if not module.name.endswith("__main__") and module.name != "metaharvest.workers.beat":
            importlib.import_module(module.name)
    for name in _ALSO_IMPORTED:
        importlib.import_module(name)
    from sqlalchemy.orm import configure_mappers

    from support.compiled_schemas import compile_before, share_compiled_schemas

    configure_mappers()
    compile_before()
    share_compiled_schemas()
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()


def _accept(listening: socket.socket) -> socket.socket:
    """Fork for each process of the tests; only the forks return, with their channel. Raises EOFError after the last."""
    address = Path(listening.getsockname())
    listening.settimeout(1)
    while True:
        with suppress(TimeoutError):
            channel, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                return channel
            channel.close()
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            if not address.exists():
                raise EOFError from None
            # A process that found the address a moment ago is still served.
            address.unlink()


def _serve(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for each request, and report the exit code of each fork; only the forks return, with their request."""
    signal.signal(signal.SIGCHLD, lambda *_: None)
    waking, woken = socket.socketpair()
    waking.setblocking(False)
    woken.setblocking(False)
    signal.set_wakeup_fd(waking.fileno())
    running: dict[int, int] = {}
    ended: dict[int, int] = {}
    while True:
        waited_for: list[socket.socket | int] = [channel, woken, *ended]
        ready, _, _ = select.select(waited_for, [], [])
        for status in [each for each in ended if each in ready]:
            # The test knows the exit code: until then the process stays a zombie, which signals may be sent to.
            os.waitpid(ended.pop(status), 0)
            os.close(status)
        if woken in ready:
            woken.recv(1024)
            ended |= _report_ended(running)
        if channel in ready:
            request, files = _receive(channel)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                for status in (*running.values(), *ended):
                    os.close(status)
                for each in (channel, waking, woken):
                    each.close()
                return request, files
            for file in files[:3]:
                os.close(file)
            running[pid] = files[3]


def _report_ended(running: dict[int, int]) -> dict[int, int]:
    """Report the exit codes of processes that have ended since; these processes by their channels."""
    ended = {}
    for pid, status in list(running.items()):
        if found := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
            with suppress(BrokenPipeError):  # The test has given up this process.
                os.write(status, _ENDED.pack(code, _processor_seconds(pid)))
            ended[status] = pid
            del running[pid]
    return ended


def _processor_seconds(pid: int) -> float:
    """The processor seconds of a process, and of the children that it waited for: see proc(5), stat."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _become(request: dict[str, Any], files: list[int]) -> None:
    """Make this process like a new interpreter of the command: files, folder, environment, signals."""
    status = files[3]
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    for file in files[:3]:
        if file > 2:
            os.close(file)
    if request["new_session"]:
        os.setsid()
    os.umask(request["umask"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    given = _python_path(os.environ)
    sys.path[:] = [request["folder"], *given, *(each for each in sys.path[1:] if each not in (_TESTS, *given))]
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    time.tzset()
    tempfile.tempdir = None
    unbuffered = bool(os.environ.get(_DONE_HERE))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before = getattr(sys, name)
        raw = os.fdopen(number, "wb" if number else "rb", 0 if unbuffered and number else -1, closefd=False)
        stream = io.TextIOWrapper(
            raw,
            before.encoding,
            before.errors,
            line_buffering=number == 2 or raw.isatty(),
            write_through=unbuffered and number > 0,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.write(status, _NUMBER.pack(os.getpid()))
    os.close(status)


def _end(code: object) -> None:
    """End as Py_FinalizeEx() does, except that all modules stay: to delete them takes 0.1 s of processor time."""
    if isinstance(code, int) and 0 <= code < 256:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        gc.collect()
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    sys.exit(code)  # type: ignore[arg-type]


def main() -> None:
    """The server; in its forks, the servers of one process each; and in their forks, the programs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        _import_everything()
        try:
            with _accept(listening) as channel:
                request, files = _serve(channel)
        except EOFError:
            return
    _become(request, files)
    sys.argv = [request["module"], *request["arguments"]]
    code: object = 0
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code or 0
    _end(code)


if __name__ == "__main__":
    main()
