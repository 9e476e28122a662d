"""Starts the processes that fetch and check documents (helper.py), and speaks with them.

Python runs one thread of a process at a time, and more than half of what a document costs is Python: with helpers, the
process of the run has little else to do than to decide and to write. Which host is asked for what, and when, stays its
affair.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import cast

from metaharvest.errors import FetchError
from metaharvest.helper import SEEN, Answer, Setup, Task
from metaharvest.http_exchange import Exchange
from metaharvest.records import Finding

log = logging.getLogger(__name__)

_PROGRAM = "from metaharvest.helper import main; main()"
_PATIENCE = 60
"""Seconds in which a helper has to be up."""


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
        self.are_gone = False
        try:
            for _ in range(number):
                self._helpers.append(_Helper(setup))
        except NoHelper:
            self.close()
            raise

    def run(
        self, exchanges: Sequence[Exchange], ca_file: Path | None, trust: Path | bytes, *, is_list: bool = False
    ) -> Sequence[Exchange]:
        """Do `exchanges` with one host, one after the other, and note in each what happened; those that were done.

        The documents that they expect are checked. After one that is no acceptable document there is no other.
        `trust` has the authorities by which certificates are judged, with those of `ca_file`. Raises FetchError, worth
        another try, where the helper ended meanwhile, and what writing to its file raised.
        """
        helper = self._helper(exchanges[0].address.host)
        return helper.run(exchanges, str(ca_file or ""), trust, is_list)

    def close(self) -> None:
        """End them; what they are doing is not finished."""
        with self._mutex:
            for helper in self._helpers:
                helper.close()

    def _helper(self, host: str) -> _Helper:
        """The one for this host, so that no more connections to it stay open than may be used; one that ended is
        replaced."""
        with self._mutex:
            place = hash(host) % len(self._helpers)
            if self._helpers[place].is_lost:
                log.warning("A process that fetches and checks documents ended, and is started again")
                self._helpers[place].close()
                try:
                    self._helpers[place] = _Helper(self._setup)
                except NoHelper as error:
                    log.warning("It could not be: %s", error)
                    self.are_gone = True
            return self._helpers[place]


class _Helper:
    """One process, and the connections to it that nobody uses. Raises NoHelper where it does not come up."""

    def __init__(self, setup: Setup) -> None:
        self.is_lost = False
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        self._trusted: set[str] = set()
        self._mutex = threading.Lock()
        self._control, theirs = Pipe()
        with theirs:
            self._process = _started(theirs)
        try:
            self._control.send(setup)
            if not self._control.poll(_PATIENCE):
                raise TimeoutError(f"it was not ready after {_PATIENCE} seconds")
            self._control.recv()
        except (EOFError, OSError) as error:
            self.close()
            raise NoHelper(str(error) or "it ended at once") from error

    def run(self, exchanges: Sequence[Exchange], name: str, trust: Path | bytes, is_list: bool) -> Sequence[Exchange]:
        """See Helpers.run; authorities with a name that the process knows are not sent again."""
        told = None if name in self._trusted else trust
        tasks = tuple(Task.of(exchange, (name, told), is_streamed=is_list) for exchange in exchanges)
        connection = self._connection()
        try:
            with self._required():
                connection.send(tasks)
            while isinstance(heard := self._heard(connection), bytes):
                exchanges[0].file.write(heard)
        except BaseException:
            # Nobody wants what is under way.
            connection.close()
            raise
        self._trusted.add(name)
        self._idle.put(connection)
        if isinstance(heard, Exception):
            raise heard
        for answer, exchange in zip(heard, exchanges, strict=False):
            for field, value in zip(SEEN, answer.seen, strict=True):
                setattr(exchange, field, value)
            exchange.file.write(answer.content)
        return exchanges[: len(heard)]

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self.is_lost = True
        self._process.kill()
        self._process.wait()
        self._control.close()
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()

    def _connection(self) -> Connection:
        try:
            return self._idle.get_nowait()
        except Empty:
            ours, theirs = Pipe()
            with theirs, self._mutex, self._required():
                send_handle(self._control, theirs.fileno(), self._process.pid)
            return ours

    def _heard(self, connection: Connection) -> bytes | list[Answer] | Exception:
        with self._required():
            return cast("bytes | list[Answer] | Exception", connection.recv())

    @contextmanager
    def _required(self) -> Iterator[None]:
        """For what fails only where the process has ended. Raises FetchError then, which is worth another try."""
        try:
            yield
        except (EOFError, OSError) as error:
            self.is_lost = True
            lost = FetchError(_LOST, passing=True, seconds=0.0)
            # Not a failure of the web server.
            lost.counted = True
            raise lost from error


def _started(control: Connection) -> subprocess.Popen[bytes]:
    """Nothing is imported from the working directory (-P), and Ctrl-C in a terminal is the run's affair alone."""
    command = [sys.executable, "-P", "-c", _PROGRAM]
    try:
        return subprocess.Popen(command, stdin=control.fileno(), stdout=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        raise NoHelper(str(error)) from error


_LOST = Finding(
    "harvest.helper-lost",
    "The harvester's own process that fetched and checked this document ended before it was done.",
    "It is tried again by itself. If this is told every night, the administrator should see whether the machine has "
    "enough memory, and report the document to the developers of metaharvest.",
)
