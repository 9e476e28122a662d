"""An HTTP exchange with `requests` that ends at its deadline, whatever the server does.

A time-out of requests limits a single read: a server that drips its headers, or its response, keeps a thread for
hours. Here a timer shuts the exchange's connection down. That ends any read and any write, encrypted or not.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import threading
from contextvars import ContextVar
from typing import Any, Self

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool


class Deadline:
    """A context that ends the connections of this thread after this number of seconds; `passed`: it has ended them.

    A look-up of a host name is not ended: the system's resolver has a limit of its own.
    """

    def __init__(self, seconds: float) -> None:
        self.passed = False
        self._timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), self._end)
        self._timer.daemon = True
        self._connections: list[socket.socket] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._before = _under_way.set(self)
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        _under_way.reset(self._before)
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()

    def watch(self, file_number: int) -> None:
        """End this connection too."""
        # The duplicate stays valid, whatever urllib3 and TLS do with their own.
        connection = socket.socket(fileno=os.dup(file_number))
        with self._lock:
            self._connections.append(connection)
            if self.passed:
                _shut(connection)

    def _end(self) -> None:
        with self._lock:
            self.passed = True
            for connection in self._connections:
                _shut(connection)


_under_way: ContextVar[Deadline | None] = ContextVar("deadline", default=None)
"""The deadline of the exchange in this thread: urllib3 makes and chooses connections far below the caller."""


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _watch(connection: socket.socket) -> None:
    if deadline := _under_way.get():
        deadline.watch(connection.fileno())


class _Connection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        made = super()._new_conn()
        _watch(made)
        return made

    def request(self, *arguments: Any, **options: Any) -> None:
        """As in urllib3; a connection that was kept from an earlier exchange belongs to this one now."""
        if self.sock is not None:
            _watch(self.sock)
        super().request(*arguments, **options)


class _TlsConnection(_Connection, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class DeadlineAdapter(HTTPAdapter):
    """Sends for requests, from any number of threads, over connections that the thread's Deadline ends.

    `context` verifies certificates and has the client's own.
    """

    def __init__(self, context: ssl.SSLContext | None, connections: int) -> None:
        self._context = context
        super().__init__(pool_maxsize=connections)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        """Use the connections above."""
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """The same for connections that go through a proxy."""
        manager = super().proxy_manager_for(proxy, proxy_ssl_context=self._context, **options)
        manager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
        return manager

    def build_connection_pool_key_attributes(self, *arguments: Any, **options: Any) -> tuple[Any, Any]:
        """Only `context` verifies certificates."""
        host, _ = super().build_connection_pool_key_attributes(*arguments, **options)
        return host, {"cert_reqs": "CERT_REQUIRED", "ssl_context": self._context}

    def cert_verify(self, conn: Any, *_: Any) -> None:
        """Do nothing: requests would add authorities of its own."""
