"""One transfer over a libcurl handle: it keeps every limit while it runs, and notes every observation.

`client.py` makes requests, follows redirects and explains failures. A server can cause no exception here.

libcurl's multi interface runs the handles under the event loop: many transfers at a time, none of which needs a thread.
libcurl reports the sockets that it waits for, and the time of its next call. Its sockets have a selector of their own,
which the event loop watches as one: libcurl is then called for all sockets that are ready, one after the other.
"""

from __future__ import annotations

import asyncio
import hashlib
import socket
import time
import zlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from typing import Any

import pycurl

from metaharvest.config.settings import HttpSettings
from metaharvest.fetch.exchange import Exchange, StopReason
from metaharvest.fetch.limits import MemoryBudget
from metaharvest.fetch.url import is_allowed
from metaharvest.text import whole_number

ERROR_PAGE_BYTES = 65_536
"""The number of bytes that are read of an answer that is not a document: enough for the title of an error page."""

_QUICK_EXIT = 322
"""CURLOPT_QUICK_EXIT, which pycurl does not name: do not wait for a name that is still being resolved."""

_SUPPRESS_CONNECT_HEADERS = 265
"""CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl does not name: a proxy's answer to CONNECT is not the server's."""

IDLE_CONNECTIONS = 128
"""The number of connections that stay open for the next request, over all hosts."""

_LOOK_SECONDS = 0.2
"""The interval of the search for servers that have been silent for too long."""

Result = tuple[int, str]
"""libcurl's result code (0: none) and its words."""

_NO_CODINGS = frozenset({"", "identity", "none", "utf-8", "utf8"})
"""Values of Content-Encoding that leave the body as it is.

Servers that give a charset, or none: https://github.com/code4craft/webmagic/issues/796,
https://github.com/curl/curl/issues/3315
"""
_PIECE = 262_144
_MOST_MEMBERS = 2_000
_MEMBER_BYTES = 1_000
"""The limit of members of a gzip stream, and one more for each of these bytes; programs give each 64 KB or more."""


class _Body:
    """A document on its way into its file: decompressed, counted, hashed.

    Decompressed here and not by libcurl, which takes a gzip stream that breaks off for a whole one.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._digest = hashlib.sha256()
        coding = exchange.headers.get("content-encoding", "").lower()
        self._known = coding in _NO_CODINGS or coding in ("gzip", "x-gzip")
        self._inflate = zlib.decompressobj(wbits=31) if coding in ("gzip", "x-gzip") else None
        self._members = 1

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    @property
    def is_whole(self) -> bool:
        """False if the compressed stream has not reached its end."""
        return self._inflate is None or self._inflate.eof

    def add(self, data: bytes) -> StopReason | None:
        """Take the next bytes; return the reason to stop, if there is one."""
        if not self._known:
            return StopReason.ENCODING
        if self._exchange.wire > self._exchange.limits.size:
            return StopReason.TOO_LARGE
        if self._inflate is None:
            return self._keep(data)
        try:
            return self._add_compressed(data)
        except zlib.error:
            return StopReason.ENCODING

    def _add_compressed(self, data: bytes) -> StopReason | None:
        """A file may have several gzip members in a row; bytes after the last that are no member are padding."""
        more = False
        while data or more:
            if self._inflate is None or self._inflate.eof:
                if not data.startswith(b"\x1f"):
                    return None
                self._members += 1
                if self._members > _MOST_MEMBERS + self._exchange.size // _MEMBER_BYTES:
                    return StopReason.ENCODING
                self._inflate = zlib.decompressobj(wbits=31)
            piece = self._inflate.decompress(data, _PIECE)
            if stop := self._keep(piece):
                return stop
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            more = len(piece) == _PIECE and not self._inflate.eof
        return None

    def _keep(self, piece: bytes) -> StopReason | None:
        exchange = self._exchange
        exchange.size += len(piece)
        if exchange.size > exchange.limits.size:
            return StopReason.TOO_LARGE
        self._digest.update(piece)
        exchange.file.write(piece)
        return None


class CurlHandle:
    """A libcurl handle for one exchange at a time: `begin()`, then `CurlMulti` performs it, then `end()`.

    Certificates, also of an https proxy, are judged by the authorities in `trust`: a PEM file, or the content of one.
    `headers` are lines of each request's head. An answer that comes with fewer bytes a second than `lowest_speed`,
    after the read time-out, is ended; 0: none is. `memory` counts arriving bytes.
    """

    def __init__(
        self, http: HttpSettings, headers: Sequence[str], lowest_speed: int, memory: MemoryBudget, trust: Path | bytes
    ) -> None:
        self.curl = pycurl.Curl()
        self._memory = memory
        self._read_timeout = http.read_timeout
        self._lowest_speed = lowest_speed
        self._headers = headers
        self._proxied = bool(http.proxy)
        self._exchange: Exchange | None = None
        self._began = 0.0
        self._heard: float | None = None
        self._lines: list[bytes] = []
        self._body: _Body | None = None
        self._raised: BaseException | None = None
        self._sockets: list[socket.socket] = []
        # The options of one exchange stay set for the next ones that need the same: most do.
        self._lines_sent: tuple[str, ...] | None = None
        self._milliseconds = 0
        self._has_credentials = False
        self._has_form = False
        self._set_policy(http)
        if isinstance(trust, bytes):
            self.curl.setopt(pycurl.CAINFO_BLOB, trust)
            if http.proxy.lower().startswith("https:"):
                self.curl.setopt(pycurl.PROXY_CAINFO_BLOB, trust)
        else:
            self.curl.setopt(pycurl.CAINFO, str(trust))
            self.curl.setopt(pycurl.PROXY_CAINFO, str(trust))

    def close(self) -> None:
        """Free the handle, also in the middle of an exchange; its connections belong to the multi handle."""
        self.curl.close()
        self._forget()

    def begin(self, exchange: Exchange) -> None:
        """Make `curl` ready for `exchange`."""
        self._exchange, self._heard, self._body, self._raised = exchange, None, None, None
        self._ask_for(exchange)
        self._began = time.monotonic()

    def end(self, code: int, words: str) -> None:
        """Note in the exchange libcurl's result, 0 for none. Raises the error of writing to its file."""
        exchange = self._exchange
        assert exchange is not None
        exchange.code, exchange.words = code, words
        exchange.seconds = time.monotonic() - self._began
        self._note(exchange)
        self._forget()
        if self._raised is not None:
            raise self._raised

    def stop_for_silence(self) -> bool:
        """True if the server has been silent longer than the read time-out allows, or is slower than the policy allows.

        Then the exchange says so. Connecting has a time-out of its own.
        """
        if self._heard is None or self._exchange is None:
            return False
        now = time.monotonic()
        if now - self._heard > self._read_timeout:
            self._exchange.stop = StopReason.READ_TIMEOUT
        elif (spent := now - self._began) > self._read_timeout and self._exchange.wire < spent * self._lowest_speed:
            self._exchange.stop = StopReason.TOO_SLOW
        else:
            return False
        return True

    def _ask_for(self, exchange: Exchange) -> None:
        curl, address = self.curl, exchange.address
        curl.setopt(pycurl.URL, address.url)
        coding = "Accept-Encoding: identity" if exchange.plain else "Accept-Encoding: gzip"
        lines = (coding, *exchange.conditions)
        if lines != self._lines_sent:
            curl.setopt(pycurl.HTTPHEADER, [*self._headers, *lines])
            self._lines_sent = lines
        if exchange.form:
            curl.setopt(pycurl.POSTFIELDS, exchange.form)
        elif self._has_form:
            curl.setopt(pycurl.HTTPGET, 1)
        self._has_form = bool(exchange.form)
        milliseconds = _milliseconds(exchange.limits.deadline)
        if milliseconds != self._milliseconds:
            curl.setopt(pycurl.TIMEOUT_MS, milliseconds)
            self._milliseconds = milliseconds
        if address.username is not None:
            curl.setopt(pycurl.USERNAME, address.username.encode())
            curl.setopt(pycurl.PASSWORD, address.password.encode())
        elif self._has_credentials:
            curl.unsetopt(pycurl.USERPWD)
        self._has_credentials = address.username is not None

    def _forget(self) -> None:
        """Keep nothing of an exchange while idle. Of sockets pycurl uses duplicates and leaves the originals to us."""
        self._exchange = self._body = None
        self._lines.clear()
        while self._sockets:
            self._sockets.pop().close()

    def _note(self, exchange: Exchange) -> None:
        self._read_head(exchange)
        exchange.complete = exchange.code == 0 and (self._body is None or self._body.is_whole)
        exchange.sha256 = self._body.sha256 if self._body else ""
        exchange.resolved = self.curl.getinfo(pycurl.NAMELOOKUP_TIME) > 0
        exchange.tunnel_status = self.curl.getinfo(pycurl.HTTP_CONNECTCODE)
        exchange.proxy_error = self.curl.getinfo(pycurl.PROXY_ERROR)
        exchange.connected = self._heard is not None
        exchange.os_error = self.curl.getinfo(pycurl.OS_ERRNO)
        exchange.verify_result = self.curl.getinfo(pycurl.SSL_VERIFYRESULT)

    def _set_policy(self, http: HttpSettings) -> None:
        curl = self.curl
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(_QUICK_EXIT, 1)
        curl.setopt(pycurl.BUFFERSIZE, 131_072)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, _milliseconds(http.connect_timeout))
        curl.setopt(pycurl.HTTPAUTH, pycurl.HTTPAUTH_BASIC)
        curl.setopt(pycurl.NETRC, pycurl.NETRC_IGNORED)
        curl.setopt(pycurl.PROXY, http.proxy.encode())
        curl.setopt(pycurl.NOPROXY, "")
        curl.setopt(_SUPPRESS_CONNECT_HEADERS, 1)
        curl.setopt(pycurl.SSL_VERIFYPEER, 1)
        curl.setopt(pycurl.SSL_VERIFYHOST, 2)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_header)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._on_socket)
        curl.setopt(pycurl.PREREQFUNCTION, self._on_request)

    def _on_socket(self, _purpose: int, there: Any) -> Any:
        """Open a socket to an address that the policy allows; libcurl asks for every address that it would try."""
        exchange = self._exchange
        assert exchange is not None
        try:
            if not self._proxied and not is_allowed(there.addr[0], exchange.allow):
                exchange.refused_address = there.addr[0]
                return pycurl.SOCKET_BAD
            self._sockets.append(socket.socket(there.family, there.socktype, there.protocol))
            exchange.opened = True
            return self._sockets[-1]
        except OSError:
            return pycurl.SOCKET_BAD
        except BaseException as error:  # noqa: BLE001 - raised again by end(), libcurl cannot carry it
            self._raised = error
            return pycurl.SOCKET_BAD

    def _on_request(self, address: str, *_ports: object) -> int:
        """Before each request, also on a connection that was opened under another allow list."""
        exchange = self._exchange
        assert exchange is not None
        self._heard = time.monotonic()
        if self._proxied or is_allowed(address, exchange.allow):
            return pycurl.PREREQFUNC_OK
        exchange.refused_address, exchange.stop = address, StopReason.ADDRESS
        return pycurl.PREREQFUNC_ABORT

    def _on_header(self, line: bytes) -> int | None:
        """One line of the head, or of lines after the body; they are read all at once, when the empty one comes."""
        try:
            self._heard = time.monotonic()
            self._lines.append(line)
            return None if line.strip() else self._head_ended()
        except BaseException as error:  # noqa: BLE001 - raised again by end()
            self._raised = error
            return -1

    def _on_body(self, data: bytes) -> int | None:
        try:
            return self._received(data)
        except BaseException as error:  # noqa: BLE001 - raised again by end()
            self._raised = error
            return -1

    def _head_ended(self) -> int | None:
        exchange = self._exchange
        assert exchange is not None
        self._read_head(exchange)
        if self._body is None and exchange.is_document and exchange.announced > exchange.limits.size:
            exchange.stop = StopReason.TOO_LARGE
            return -1
        return None

    def _read_head(self, exchange: Exchange) -> None:
        """Read the received lines; lines after a body do not count."""
        lines, self._lines = self._lines, []
        if not lines or self._body is not None or exchange.page:
            return
        exchange.headed = not lines[-1].strip()
        for line in lines:
            if line.startswith(b"HTTP/"):
                status, _, exchange.reason = _text(line).partition(" ")[2].partition(" ")
                exchange.status = whole_number(status, 999) or 0
                exchange.headers = {}
                continue
            name, value = _header(line)
            # A server may send several of these: together they are one list (RFC 8288, section 3).
            if name == "link" and (before := exchange.headers.get(name)):
                value = f"{before}, {value}"
            if name:
                exchange.headers[name] = value

    def _received(self, data: bytes) -> int | None:
        exchange = self._exchange
        assert exchange is not None
        self._heard = time.monotonic()
        exchange.wire += len(data)
        if not exchange.is_document:
            exchange.page += data
            exchange.stop = StopReason.ERROR_PAGE_READ if len(exchange.page) > ERROR_PAGE_BYTES else None
        else:
            self._body = self._body or _Body(exchange)
            before = exchange.size
            exchange.stop = self._body.add(data)
            if exchange.in_memory:
                self._memory.take(exchange.size - before, exchange.site_id)
                must_give_way = exchange.gives_way and self._memory.must_give_way(exchange.size)
                if exchange.stop is None and must_give_way:
                    exchange.stop = StopReason.NO_MEMORY
        return None if exchange.stop is None else -1


class CurlMulti:
    """Performs transfers for the event loop in which it was made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._under_way: dict[pycurl.Curl, tuple[CurlHandle, asyncio.Future[Result]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None
        self._look: asyncio.TimerHandle | None = None
        self._sockets: set[int] = set()
        self._selector = DefaultSelector()
        self._loop.add_reader(self._selector, self._ready)
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, IDLE_CONNECTIONS)
        # One exchange at a time over each connection, also by HTTP/2, as connections are counted.
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_NOTHING)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    async def perform(self, handle: CurlHandle) -> Result:
        """Perform the exchange that `handle` was prepared for. Cancelling it ends the transfer."""
        result: asyncio.Future[Result] = self._loop.create_future()
        self._under_way[handle.curl] = handle, result
        if self._look is None:
            self._look = self._loop.call_later(_LOOK_SECONDS, self._look_who_is_silent)
        self._multi.add_handle(handle.curl)
        try:
            return await result
        finally:
            del self._under_way[handle.curl]
            self._multi.remove_handle(handle.curl)

    def close(self) -> None:
        """Close all connections."""
        for call in (self._timer, self._soon, self._look):
            if call:
                call.cancel()
        self._multi.close()
        self._loop.remove_reader(self._selector)
        self._selector.close()

    def _look_who_is_silent(self) -> None:
        """End the transfers of servers that have been silent for longer than the read time-out."""
        try:
            for handle, result in self._under_way.values():
                if not result.done() and handle.stop_for_silence():
                    result.set_result((pycurl.E_ABORTED_BY_CALLBACK, ""))
        finally:  # also without memory: otherwise no later look would come
            is_idle = not self._under_way
            self._look = None if is_idle else self._loop.call_later(_LOOK_SECONDS, self._look_who_is_silent)

    def _on_socket(self, event: int, socket: int, _multi: object, _data: object) -> None:
        """libcurl waits for another event of this socket than before."""
        if event == pycurl.POLL_REMOVE:
            if socket in self._sockets:
                self._sockets.remove(socket)
                self._selector.unregister(socket)
            return
        events = (EVENT_READ if event & pycurl.POLL_IN else 0) | (EVENT_WRITE if event & pycurl.POLL_OUT else 0)
        if socket in self._sockets:
            self._selector.modify(socket, events)
        else:
            self._sockets.add(socket)
            self._selector.register(socket, events)

    def _on_timer(self, milliseconds: int) -> None:
        """libcurl wants to be called after this number of milliseconds. It accepts earlier calls."""
        if milliseconds == 0:
            self._soon = self._soon or self._loop.call_soon(self._time_is_up)
        elif milliseconds > 0:
            at = self._loop.time() + milliseconds / 1000
            if self._timer is None or self._timer.when() > at:
                if self._timer:
                    self._timer.cancel()
                self._timer = self._loop.call_at(at, self._time_is_up)

    def _time_is_up(self) -> None:
        self._soon = None
        if self._timer and self._timer.when() <= self._loop.time():
            self._timer = None
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._finish_those_done()

    def _ready(self) -> None:
        for key, events in self._selector.select(0):
            reading = pycurl.CSELECT_IN if events & EVENT_READ else 0
            self._multi.socket_action(key.fd, reading | (pycurl.CSELECT_OUT if events & EVENT_WRITE else 0))
        self._finish_those_done()

    def _finish_those_done(self) -> None:
        waiting = 1
        while waiting:
            waiting, done, failed = self._multi.info_read()
            for curl in done:
                self._finish(curl, 0, "")
            for curl, code, words in failed:
                self._finish(curl, code, words)

    def _finish(self, curl: pycurl.Curl, code: int, words: str) -> None:
        if curl in self._under_way:
            _, result = self._under_way[curl]
            if not result.done():
                result.set_result((code, words))


def _milliseconds(seconds: float) -> int:
    """In libcurl's form: 0 would mean no limit, and more than 24 days is more than it can count."""
    return min(max(1, int(seconds * 1000)), 2**31 - 1)


@lru_cache(maxsize=64)  # a server repeats most lines in each answer
def _header(line: bytes) -> tuple[str, str]:
    """The name of a header in small letters, and its value; two empty texts for another line."""
    name, colon, value = _text(line).partition(":")
    return (name.rstrip().lower(), value.lstrip()) if colon else ("", "")


def _text(data: bytes) -> str:
    """A header as text: UTF-8, if it is not ASCII, more often than the Latin-1 of the standard."""
    try:
        return data.decode("utf-8").strip()
    except UnicodeDecodeError:
        return data.decode("latin-1").strip()
