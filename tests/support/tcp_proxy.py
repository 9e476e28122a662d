"""A TCP proxy on loopback that can be cut: what a database server's restart, or a cable pulled out, is to a run."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self


class TcpProxy:
    """Passes everything on to `host`:`port`. `cut()` ends all connections and refuses new ones, until `mend()`.

    If `loses_answer` is true for the first bytes of a connection, its answers are not passed on. A connection on which
    the client sends more than `most` bytes at once, without an answer, is closed, as MariaDB does.
    """

    def __init__(
        self, host: str, port: int, loses_answer: Callable[[bytes], bool] | None = None, most: int | None = None
    ) -> None:
        self._most = most
        self._there = (host, port)
        self._loses_answer = loses_answer
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._is_cut = False
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            for each in self._open:
                _shut(each)

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        _shut(self._listener)
        self._accepting.join()
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                thread = threading.Thread(target=self._serve, args=(here,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, here: socket.socket) -> None:
        with here, socket.create_connection(self._there) as there:
            with self._lock:
                if self._is_cut:
                    return
                self._open |= {here, there}
            # A database server speaks first: only where it matters is the client waited for.
            first = _received(here) if self._loses_answer else b""
            lost = self._loses_answer is not None and self._loses_answer(first)
            sent = _Sent(self._most)
            back = threading.Thread(target=_pass_on, args=(there, here, sent.answered, lost), daemon=True)
            back.start()
            _pass_on(here, there, sent.may_send, first=first)
            back.join()
            with self._lock:
                self._open -= {here, there}


def _received(source: socket.socket) -> bytes:
    with contextlib.suppress(OSError):
        return source.recv(65_536)
    return b""


class _Sent:
    """The number of bytes that a client has sent since the last answer."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._size = 0

    def may_send(self, size: int) -> bool:
        self._size += size
        return self._most is None or self._size <= self._most

    def answered(self, _size: int) -> bool:
        self._size = 0
        return True


def _pass_on(
    source: socket.socket,
    sink: socket.socket,
    may_pass: Callable[[int], bool],
    lost: bool = False,
    first: bytes = b"",
) -> None:
    with contextlib.suppress(OSError):
        sink.sendall(first)
        while (data := source.recv(65_536)) and may_pass(len(data)):
            if not lost:
                sink.sendall(data)
    _shut(source)
    _shut(sink)


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
