"""A threaded HTTP/1.1 server on loopback that records what it is asked, and misbehaves where it is told to.

    with HttpServer(folder) as server:
        server.serve("/eml.xml", b"<eml/>", headers={"ETag": '"1"'})
        server.route("/slow.xml", dripped(b"HTTP/1.1 200 OK\\r\\n\\r\\n", b"<eml/>" * 100))
        ... server.url("/eml.xml") ... server.requests ...

A path is looked for among the routes, then in the folder, if there is one, unless `otherwise` is set. A route is called
with the `Asking` and writes whatever it likes to the connection; `answer()` writes a proper answer. The path of a route
may contain a query.
"""

from __future__ import annotations

import contextlib
import email.utils
import mimetypes
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came, at a moment of time.monotonic().

    Header names are lower case; `client` is the address and port of the connection.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    client: tuple[str, int]
    body: bytes = b""
    at: float = field(default_factory=time.monotonic)


class Asking(BaseHTTPRequestHandler):
    """One connection; what a route is called with."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536
    server: _Server

    @property
    def owner(self) -> HttpServer:
        return self.server.owner

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        if self.path == "/robots.txt" and self.path not in self.owner._routes:
            # Asked of every server: tests that are not about it see nothing of it.
            return self.answer(b"", 404)
        self.owner._record(Request(self.command, self.path, headers, self.client_address[:2], body))
        try:
            self.owner._route(self.path)(self)
            self.wfile.flush()
        except OSError:
            self.close_connection = True
        finally:
            self.owner._done()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_CONNECT = do_GET  # noqa: N815 - the names that http.server looks for

    def answer(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        """A proper answer; `headers` may say anything, also another Content-Length."""
        given = {"Content-Length": str(len(body)), "Content-Type": "application/xml", **(headers or {})}
        self.send_response(status)
        for name, value in given.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send(self, data: bytes) -> None:
        """Bytes onto the wire at once."""
        self.wfile.write(data)
        self.wfile.flush()

    def pause(self, seconds: float) -> None:
        """Wait; OSError when the server is closed meanwhile."""
        if self.owner._closing.wait(seconds):
            raise ConnectionAbortedError("the server is closing")

    def end(self) -> None:
        """Close this connection after the answer."""
        self.close_connection = True

    def reset(self) -> None:
        """Break the connection with a TCP reset."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True
        raise ConnectionAbortedError("reset on purpose")

    def date_time_string(self, timestamp: float | None = None) -> str:
        return email.utils.format_datetime(self.owner.clock(), usegmt=True) if self.owner.clock else ""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


Route = Callable[[Asking], None]


class HttpServer:
    """Serves the files of `folder` and the routes; `most_at_once` requests were under way, on `connections` in all.

    `clock` says when answers are sent (the header Date); None: nothing is said of it.
    """

    def __init__(
        self, folder: Path | None = None, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
    ) -> None:
        self.folder = folder
        self.requests: list[Request] = []
        self.connections = 0
        self.most_at_once = 0
        self.most_connections = 0
        self._at_once = 0
        self._routes: dict[str, Route] = {}
        self.otherwise: Route | None = None
        self.clock: Callable[[], datetime] | None = lambda: datetime.now(UTC)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._scheme = "https" if tls else "http"
        self._server = _Server((host, port), self, tls)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def open_connections(self) -> int:
        """How many connections are open now."""
        with self._lock:
            return len(self._server.open)

    def url(self, path: str = "/", *, host: str | None = None) -> str:
        """The URL of `path` here; `host` may carry credentials."""
        address = host or str(self._server.server_address[0])
        return f"{self._scheme}://{f'[{address}]' if ':' in address and host is None else address}:{self.port}{path}"

    def serve(self, path: str, body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> str:
        """Answer `path` with these bytes; gives the URL."""
        return self.route(path, lambda asking: asking.answer(body, status, headers))

    def redirect(self, path: str, location: str, *, status: int = 302) -> str:
        """Redirect `path`; gives the URL."""
        return self.serve(path, b"", status=status, headers={"Location": location})

    def route(self, path: str, route: Route) -> str:
        """Answer `path` with whatever `route` does; gives the URL."""
        self._routes[path] = route
        return self.url(path)

    def asked(self, path: str) -> list[Request]:
        """The requests for `path`."""
        return [request for request in self.requests if request.path == path]

    def close(self) -> None:
        """Stop serving; routes that wait are woken, connections closed."""
        self._closing.set()
        # Wakes the thread, which would otherwise look only now and then whether it is to end.
        with contextlib.suppress(OSError):
            self._server.socket.shutdown(socket.SHUT_RDWR)
        self._server.shutdown()
        self._thread.join()
        self._server.close_connections()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _record(self, request: Request) -> None:
        with self._lock:
            self.requests.append(request)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)

    def _done(self) -> None:
        with self._lock:
            self._at_once -= 1

    def _route(self, path: str) -> Route:
        plain = unquote(urlsplit(path).path)
        found = self._routes.get(path) or self._routes.get(plain) or self.otherwise
        return found or (lambda asking: _serve_file(asking, self.folder, plain))


def _serve_file(asking: Asking, folder: Path | None, path: str) -> None:
    file = (folder / path.lstrip("/")).resolve() if folder else None
    if file is None or folder is None or not file.is_relative_to(folder.resolve()) or not file.is_file():
        asking.answer(b"<html><head><title>404 Not Found</title></head></html>", 404, {"Content-Type": "text/html"})
        return
    modified = email.utils.formatdate(file.stat().st_mtime, usegmt=True)
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    asking.answer(file.read_bytes(), 200, {"Content-Type": kind, "Last-Modified": modified})


def _was_closed(connection: socket.socket) -> bool:
    """Whether the other end has closed it, though its thread has not noticed yet."""
    try:
        return socket.socket.recv(connection, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], owner: HttpServer, tls: ssl.SSLContext | None) -> None:
        self.owner = owner
        self.tls = tls
        self.open: set[socket.socket] = set()
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, Asking)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self.owner._lock:
            self.open.add(request)
            self.owner.connections += 1
            still_open = sum(not _was_closed(each) for each in self.open)
            self.owner.most_connections = max(self.owner.most_connections, still_open)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.owner._lock:
                self.open.discard(request)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """TLS begins in the connection's own thread, so that a client that refuses our certificate stops nobody."""
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        with contextlib.suppress(OSError), self.tls.wrap_socket(request, server_side=True) as encrypted:
            with self.owner._lock:
                self.open.add(encrypted)
            try:
                super().finish_request(encrypted, client_address)
            finally:
                with self.owner._lock:
                    self.open.discard(encrypted)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are nothing to print."""

    def close_connections(self) -> None:
        with self.owner._lock:
            connections = list(self.open)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


# -- routes that misbehave


@dataclass(frozen=True, slots=True)
class Raw:
    """Sends these bytes as they are, one piece after the other with a pause after each, and closes the connection."""

    pieces: tuple[bytes, ...] = field(default=())
    pause: float = 0.0

    def __call__(self, asking: Asking) -> None:
        asking.end()
        for piece in self.pieces:
            asking.send(piece)
            if self.pause:
                asking.pause(self.pause)


def raw(*pieces: bytes, pause: float = 0.0) -> Route:
    """Exactly these bytes, then the end of the connection."""
    return Raw(pieces, pause)


def dripped(head: bytes, rest: bytes, *, pause: float = 0.1) -> Route:
    """`head` at once, `rest` byte by byte."""
    return Raw((head, *(bytes([byte]) for byte in rest)), pause)


def endless(head: bytes, piece: bytes, *, pause: float = 0.0) -> Route:
    """`head`, then `piece` for ever."""

    def route(asking: Asking) -> None:
        asking.end()
        asking.send(head)
        while True:
            asking.send(piece)
            asking.pause(pause)

    return route


def silent(head: bytes = b"") -> Route:
    """`head`, then nothing for a minute (or until the server closes)."""

    def route(asking: Asking) -> None:
        asking.end()
        asking.send(head)
        asking.pause(60)

    return route


def reset_after(head: bytes = b"") -> Route:
    """`head`, then a TCP reset."""

    def route(asking: Asking) -> None:
        asking.send(head)
        asking.reset()

    return route


def answering(body: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Route:
    """A proper answer."""
    return lambda asking: asking.answer(body, status, headers)


def in_turn(*routes: Route) -> Route:
    """The first request meets the first route, and so on; all that come later meet the last."""
    left, lock = list(routes), threading.Lock()

    def route(asking: Asking) -> None:
        with lock:
            this = left.pop(0) if len(left) > 1 else left[0]
        this(asking)

    return route
