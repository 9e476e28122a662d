"""Starts the processes that fetch and check documents (helper.py), and speaks with them.

Python runs one thread of a process at a time, and more than half of what a document costs is Python: with helpers, the
process of the run has little else to do than to decide and to write. Which host is asked for what, and when, stays its
affair.
"""

from __future__ import annotations

import logging
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import cast

from metaharvest.errors import FetchError
from metaharvest.fetch.curl import Exchange
from metaharvest.fetch.helper import SEEN, Answer, Connection, Setup, Task
from metaharvest.model import Finding

log = logging.getLogger(__name__)

_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from metaharvest.fetch.helper import main; main()"
_PATIENCE = 60
"""Seconds in which a helper has to be up."""

_CHECK_SECONDS = 600
"""Seconds for checking a document, and for waiting for that, after which a helper is given up."""


class NoHelper(Exception):
    """A process could not be started; the message says why."""


class Helpers:
    """So many helpers, from any thread. Raises NoHelper where one does not come up.

    They `are_gone` where one ended and could not be started again.
    """

    def __init__(self, setup: Setup, number: int) -> None:
        self._setup = setup
        self._mutex = threading.Lock()
        self._helpers: list[_Helper] = []
        self._places: dict[str, int] = {}
        self.are_gone = False
        try:
            for _ in range(number):
                self._helpers.append(_Helper())
            for helper in self._helpers:
                helper.begin(setup)
        except NoHelper:
            self.close()
            raise

    def run(self, exchange: Exchange, ca_file: Path | None, trust: Path | bytes) -> None:
        """Do `exchange`, check the document that it expects, and note in it what happened.

        `trust` has the authorities by which certificates are judged, with those of `ca_file`. Raises FetchError, worth
        another try, where the helper ended meanwhile.
        """
        self._helper(exchange.address.host.rstrip(".")).run(exchange, str(ca_file or ""), trust)

    def close(self) -> None:
        """End them; what they are doing is not finished."""
        with self._mutex:
            for helper in self._helpers:
                helper.close()

    def _helper(self, host: str) -> _Helper:
        """The one for this host, so that no more connections to it stay open than may be used; one that ended is
        replaced."""
        with self._mutex:
            place = self._places.setdefault(host, len(self._places) % len(self._helpers))
            if self._helpers[place].is_lost:
                log.warning("A process that fetches and checks documents ended, and is started again")
                self._helpers[place].close()
                try:
                    self._helpers[place] = _Helper()
                    self._helpers[place].begin(self._setup)
                except NoHelper as error:
                    log.warning("It could not be: %s", error)
                    self.are_gone = True
            return self._helpers[place]


class _Helper:
    """One process, and the connections to it that nobody uses. Raises NoHelper where it cannot be started."""

    def __init__(self) -> None:
        self.is_lost = False
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        self._trusted: set[str] = set()
        self._mutex = threading.Lock()
        self._control, self._process = _started()

    def begin(self, setup: Setup) -> None:
        """Tell it what it has to know, and wait until it is ready. Raises NoHelper where it does not come up."""
        try:
            _limit(self._control, _PATIENCE)
            self._control.send(setup)
            self._control.receive()
        except BlockingIOError as error:
            self.close()
            raise NoHelper(f"it was not ready after {_PATIENCE} seconds") from error
        except (EOFError, OSError) as error:
            self.close()
            raise NoHelper(str(error) or "it ended at once") from error

    def run(self, exchange: Exchange, name: str, trust: Path | bytes) -> None:
        """See Helpers.run; authorities with a name that the process knows are not sent again."""
        task = Task.of(exchange, (name, None if name in self._trusted else trust))
        with self._required():
            connection = self._connection(exchange.limits.deadline)
            try:
                connection.send(task)
                answer = cast("Answer | Exception", connection.receive())
            except BaseException:
                # Nobody wants what is under way.
                connection.close()
                raise
        self._trusted.add(name)
        self._idle.put(connection)
        if isinstance(answer, Exception):
            raise answer
        for field, value in zip(SEEN, answer.seen, strict=True):
            setattr(exchange, field, value)
        exchange.file.write(answer.content)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self.is_lost = True
        self._process.kill()
        self._process.wait()
        self._control.close()
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()

    def _connection(self, deadline: float) -> Connection:
        """One that nobody uses; reading from it fails where the process does not answer long after the deadline."""
        with suppress(Empty):
            return self._idle.get_nowait()
        ours, theirs = socket.socketpair()
        with theirs, self._mutex:
            socket.send_fds(self._control.end, [b"+"], [theirs.fileno()])
        connection = Connection(ours)
        _limit(connection, deadline + _CHECK_SECONDS)
        return connection

    @contextmanager
    def _required(self) -> Iterator[None]:
        """For what fails where the process has ended, or does not answer. Raises FetchError then, worth another try."""
        try:
            yield
        except (EOFError, OSError) as error:
            self.is_lost = True
            lost = FetchError(_LOST, transient=True, seconds=0.0)
            # Not a failure of the web server.
            lost.counted = True
            raise lost from error


def _limit(connection: Connection, seconds: float) -> None:
    """Have reading fail, with BlockingIOError, where nothing comes for so long."""
    connection.end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(seconds), 0))


def _started() -> tuple[Connection, subprocess.Popen[bytes]]:
    """A process, and the connection to it. It imports what this one would; Ctrl-C in a terminal is not its affair.

    Raises NoHelper.
    """
    if not sys.executable:
        raise NoHelper("it is not known where Python is")
    command = [sys.executable, "-P", "-c", _PROGRAM, *sys.path]
    try:
        ours, theirs = socket.socketpair()
    except OSError as error:
        raise NoHelper(str(error)) from error
    with theirs:
        try:
            process = subprocess.Popen(
                command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            ours.close()
            raise NoHelper(str(error)) from error
    return Connection(ours), process


_LOST = Finding(
    "harvest.helper-lost",
    "The harvester's own process that fetched and checked this document ended, or hung, before it was done.",
    "It is tried again by itself. If this is told every night, the administrator should see whether the machine has "
    "enough memory, and report the document to the developers of metaharvest.",
)
