"""A process that fetches and checks documents for a run: while it holds its Python interpreter, the run has its own.

It is started by helpers.py and does what it is told over connections, one thing at a time over each. All exchanges
with web servers are one thread's, which libcurl tells when there is something to read or to write; that thread also
checks the documents that are quickly checked, as most are, and others check the rest. It decides nothing, and ends when
whoever started it does. Signals are not its affair: the run tells it when to stop.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import socket
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache, partial
from operator import attrgetter
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any, NamedTuple, cast

import pycurl

from metaharvest.fetch.curl import IDLE_CONNECTIONS, Exchange, Expected, Handle, Limits, Policy
from metaharvest.fetch.url import WebAddress
from metaharvest.model import Level, ListedDocument, Network, Verdict
from metaharvest.validation import Validator

CONTROL = 0
"""The file descriptor of the connection over which the others come."""

SEEN = tuple(
    each.name
    for each in fields(Exchange)
    if each.name not in ("address", "file", "limits", "allow", "conditions", "expected", "began")
)
"""What an exchange has noted once it was run."""

_LOOK_SECONDS = 0.2
"""How often one looks which servers are silent."""


class Connection:
    """An end of a socket over which values go; what is received is trusted.

    Each goes in one piece: to wake who waits for it takes longer than to send it.
    """

    def __init__(self, end: socket.socket) -> None:
        self.end = end

    def fileno(self) -> int:
        """The file descriptor, for a selector."""
        return self.end.fileno()

    def send(self, value: object) -> None:
        """Raises OSError where nobody is there to take it."""
        pickled = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        self.end.sendall(len(pickled).to_bytes(_LENGTH) + pickled)

    def receive(self) -> Any:
        """Wait for a value. Raises EOFError where the other end was closed, and OSError."""
        received = self._some()
        while len(received) < _LENGTH:
            received += self._some()
        length = int.from_bytes(received[:_LENGTH])
        if len(received) == _LENGTH + length:
            return pickle.loads(memoryview(received)[_LENGTH:])
        pieces = bytearray(received)
        while len(pieces) < _LENGTH + length:
            pieces += self._some()
        return pickle.loads(memoryview(pieces)[_LENGTH:])

    def close(self) -> None:
        """Close this end; the other one notices."""
        self.end.close()

    def _some(self) -> bytes:
        if not (received := self.end.recv(_PIECE)):
            raise EOFError
        return received


_LENGTH = 8
_PIECE = 131_072


@dataclass(frozen=True, slots=True)
class Setup:
    """What a helper has to know from the start."""

    policy: Policy
    other_document_types: tuple[str, ...]


class Task(NamedTuple):
    """An exchange, in plain tuples, which travel several times as fast as the objects.

    `trust` names the authorities by which certificates are judged, and comes with them until they are known.
    """

    trust: tuple[str, Path | bytes | None]
    address: tuple[Any, ...]
    limits: tuple[float, int]
    allow: bytes
    expected: tuple[tuple[Any, ...], str] | None

    @classmethod
    def of(cls, exchange: Exchange, trust: tuple[str, Path | bytes | None]) -> Task:
        """What is asked of this exchange."""
        expected = exchange.expected
        return cls(
            trust,
            _ADDRESS(exchange.address),
            (exchange.limits.deadline, exchange.limits.size),
            _packed(exchange.allow),
            (_DOCUMENT(expected.document), expected.package_id_mismatch.value) if expected else None,
        )

    def exchange(self, body: io.BytesIO) -> Exchange:
        """The exchange, to be run."""
        expected = Expected(ListedDocument(*self.expected[0]), Level(self.expected[1])) if self.expected else None
        return Exchange(WebAddress(*self.address), body, Limits(*self.limits), _unpacked(self.allow), expected=expected)


class Answer(NamedTuple):
    """The body that came, and what was seen of the exchange: the values of SEEN, in that order."""

    content: bytes
    seen: tuple[Any, ...]


_ADDRESS = attrgetter(*(each.name for each in fields(WebAddress)))
_DOCUMENT = attrgetter(*(each.name for each in fields(ListedDocument)))


@lru_cache
def _packed(networks: tuple[Network, ...]) -> bytes:
    return pickle.dumps(networks)


@lru_cache
def _unpacked(packed: bytes) -> tuple[Network, ...]:
    return cast("tuple[Network, ...]", pickle.loads(packed))


class _UnderWay(NamedTuple):
    """An exchange that has begun, and over which connection it was asked for."""

    connection: Connection
    handle: Handle
    trust: str
    exchange: Exchange
    body: io.BytesIO


Check = Callable[[bytes, ListedDocument, Level], Verdict | None]


class _Bench:
    """All that the process does, in one thread but for documents whose check may take long."""

    def __init__(self, setup: Setup, control: Connection) -> None:
        self._policy = setup.policy
        self._control = control
        self._quick = Validator(setup, at_once=1)
        self._thorough = Validator(setup)
        self._checkers = ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="check")
        self._trusted: dict[str, Path | bytes] = {}
        self._idle: dict[str, list[Handle]] = {}
        self._under_way: dict[pycurl.Curl, _UnderWay] = {}
        self._due: float | None = None
        self._selector = DefaultSelector()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, IDLE_CONNECTIONS)
        # One exchange at a time over each connection, also by HTTP/2, as connections are counted.
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_NOTHING)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    def serve(self) -> None:
        """Go on until the process that started this one is gone."""
        self._selector.register(self._control, EVENT_READ, self._new_connection)
        look = time.monotonic()
        while True:
            now = time.monotonic()
            if self._due is not None and self._due <= now:
                self._due = None
                self._act(pycurl.SOCKET_TIMEOUT, 0)
            if look <= now:
                look = now + _LOOK_SECONDS
                self._look_who_is_silent()
            next_time = look if self._due is None else min(look, self._due)
            for key, events in self._selector.select(max(0.0, next_time - time.monotonic())):
                if key.fd in self._selector.get_map():
                    key.data(events)

    def _new_connection(self, _events: int) -> None:
        try:
            _, [number], *_ = socket.recv_fds(self._control.end, 1, 1)
        except (ValueError, OSError):
            # Whatever is under way, nobody waits for it any more.
            os._exit(0)
        connection = Connection(socket.socket(fileno=number))
        self._selector.register(connection, EVENT_READ, partial(self._receive, connection))

    def _receive(self, connection: Connection, _events: int) -> None:
        try:
            task = connection.receive()
        except (EOFError, OSError):
            self._forget(connection)
            return
        try:
            self._begin(task, connection)
        except Exception as error:  # noqa: BLE001 - raised by whoever waits for the answer
            _send(connection, _portable(error))

    def _forget(self, connection: Connection) -> None:
        """Nobody waits at the other end any more."""
        self._selector.unregister(connection)
        connection.close()
        for curl, under_way in list(self._under_way.items()):
            if under_way.connection is connection:
                del self._under_way[curl]
                self._multi.remove_handle(curl)
                under_way.handle.close()

    def _begin(self, task: Task, connection: Connection) -> None:
        name, trust = task.trust
        if trust is not None:
            self._trusted[name] = trust
        idle = self._idle.setdefault(name, [])
        handle = idle.pop() if idle else self._new_handle(self._trusted[name])
        exchange = task.exchange(body := io.BytesIO())
        handle.begin(exchange)
        self._under_way[handle.curl] = _UnderWay(connection, handle, name, exchange, body)
        self._multi.add_handle(handle.curl)

    def _new_handle(self, trust: Path | bytes) -> Handle:
        handle = Handle(self._policy, trust)
        handle.curl.setopt(pycurl.NOPROGRESS, 1)
        return handle

    def _on_socket(self, event: int, number: int, _multi: object, _data: object) -> None:
        """libcurl says what it waits for."""
        if event == pycurl.POLL_REMOVE:
            if number in self._selector.get_map():
                self._selector.unregister(number)
            return
        events = (EVENT_READ if event & pycurl.POLL_IN else 0) | (EVENT_WRITE if event & pycurl.POLL_OUT else 0)
        if number in self._selector.get_map():
            self._selector.modify(number, events, partial(self._ready, number))
        else:
            self._selector.register(number, events, partial(self._ready, number))

    def _on_timer(self, milliseconds: int) -> None:
        self._due = None if milliseconds < 0 else time.monotonic() + milliseconds / 1000

    def _ready(self, number: int, events: int) -> None:
        reading = pycurl.CSELECT_IN if events & EVENT_READ else 0
        self._act(number, reading | (pycurl.CSELECT_OUT if events & EVENT_WRITE else 0))

    def _act(self, number: int, events: int) -> None:
        self._multi.socket_action(number, events)
        waiting = 1
        while waiting:
            waiting, done, failed = self._multi.info_read()
            for curl in done:
                self._ended(curl, 0, "")
            for curl, code, words in failed:
                self._ended(curl, code, words)

    def _look_who_is_silent(self) -> None:
        for curl, under_way in list(self._under_way.items()):
            if under_way.handle.is_silent:
                self._ended(curl, pycurl.E_ABORTED_BY_CALLBACK, "")

    def _ended(self, curl: pycurl.Curl, code: int, words: str) -> None:
        under_way = self._under_way.pop(curl)
        try:
            self._multi.remove_handle(curl)
            under_way.handle.end(code, words)
        except Exception as error:  # noqa: BLE001 - raised by whoever waits for the answer
            under_way.handle.close()
            _send(under_way.connection, _portable(error))
            return
        self._idle[under_way.trust].append(under_way.handle)
        self._check(self._quick.check_quickly, under_way, under_way.body.getvalue())

    def _check(self, check: Check, under_way: _UnderWay, content: bytes) -> None:
        """Have what came checked, if it came whole, by `check` or what is more thorough, and send it all."""
        exchange, expected = under_way.exchange, under_way.exchange.expected
        try:
            if expected and content and exchange.complete:
                exchange.verdict = check(content, expected.document, expected.package_id_mismatch)
                if exchange.verdict is None:
                    self._checkers.submit(self._check, self._thorough.check, under_way, content)
                    return
        except Exception as error:  # noqa: BLE001 - raised by whoever waits for the answer
            _send(under_way.connection, _portable(error))
        else:
            _send(under_way.connection, _answer(exchange, content))


def _answer(exchange: Exchange, content: bytes) -> Answer:
    return Answer(content, tuple(getattr(exchange, name) for name in SEEN))


def _send(connection: Connection, answer: Answer | Exception) -> None:
    """Where nobody is there to take it, the reading from there finds that out."""
    with suppress(OSError):
        connection.send(answer)


def _portable(error: Exception) -> Exception:
    """A surprise as any process can read it, with its traceback."""
    portable = RuntimeError(f"{type(error).__name__}: {error}")
    portable.add_note("".join(traceback.format_exception(error)))
    return portable


def main() -> None:
    """Serve every connection that comes over CONTROL, until that is closed: as it is when the run's process ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    control = Connection(socket.socket(fileno=CONTROL))
    try:
        setup = control.receive()
    except (EOFError, OSError):
        return
    bench = _Bench(setup, control)
    with suppress(OSError):
        control.send(None)
    bench.serve()
