"""One request and its answer over libcurl, with every limit kept while it runs and everything noted that was seen.

`fetch.py` decides what is asked for, follows redirects and tells what a failure means; nothing here raises for what a
server does. A `Handle` keeps at most one connection open for the next request to the same host.
"""

from __future__ import annotations

import hashlib
import socket
import time
import zlib
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any, BinaryIO

import pycurl

from metaharvest.fetch.url import WebAddress, is_allowed
from metaharvest.model import Level, ListedDocument, Network, Verdict

ERROR_PAGE_BYTES = 65_536
"""How much is read of an answer that is not a document: enough for the title of an error page."""

IDLE_CONNECTIONS = 128
"""How many connections a process keeps open for the next request, over all hosts."""

_PIECE = 262_144


class Stop(Enum):
    """Why an exchange was broken off from our side."""

    ADDRESS = auto()
    READ_TIMEOUT = auto()
    TOO_LARGE = auto()
    ENCODING = auto()
    ERROR_PAGE_READ = auto()


@dataclass(frozen=True, slots=True)
class Policy:
    """What holds for every exchange of a run: seconds to wait, the proxy's URL or "", lines of each request's head."""

    connect_timeout: float
    read_timeout: float
    proxy: str
    headers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one exchange may cost: seconds for the whole of it, bytes before and after decompression."""

    deadline: float
    size: int


@dataclass(frozen=True, slots=True)
class Expected:
    """The document that an answer should be; `package_id_mismatch`: how grave a packageId that is not its docid is."""

    document: ListedDocument
    package_id_mismatch: Level


@dataclass(slots=True)
class Exchange:
    """What is asked of one address, and all that was seen of the answer.

    `conditions` are request headers that let the server answer 304, "not modified". Where a document is `expected`,
    whoever fetches it may check it at once: then there is a `verdict`.
    `code` and `words` are libcurl's result (0: none, also where the headers break off: `headed` is False then), `wire`
    counts the body as sent, `size` as decompressed, `sha256` is of that; `began` is of time.monotonic.
    """

    address: WebAddress
    file: BinaryIO
    limits: Limits
    allow: tuple[Network, ...]
    conditions: tuple[str, ...] = ()
    expected: Expected | None = None
    began: float = 0.0
    status: int = 0
    reason: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    headed: bool = False
    wire: int = 0
    size: int = 0
    sha256: str = ""
    page: bytearray = field(default_factory=bytearray)
    complete: bool = False
    seconds: float = 0.0
    code: int = 0
    words: str = ""
    verify_result: int = 0
    os_error: int = 0
    resolved: bool = False
    connected: bool = False
    opened: bool = False
    refused_address: str = ""
    stop: Stop | None = None
    verdict: Verdict | None = None

    @property
    def is_document(self) -> bool:
        """True where the body is what was asked for, so that it goes into the file."""
        return 200 <= self.status < 300 and self.status != 206

    @property
    def is_unmodified(self) -> bool:
        """True where the server says, being asked, that nothing has changed."""
        return bool(self.conditions) and self.status == 304 and self.code == 0

    @property
    def announced(self) -> int:
        """The bytes that Content-Length promises; 0 where it says nothing."""
        length = self.headers.get("content-length", "")
        return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0

    @property
    def location(self) -> str | None:
        """Where the server redirects to, if it does."""
        return self.headers.get("location") if self.status in (301, 302, 303, 307, 308) else None


class Handle:
    """A libcurl handle with its connection, for one exchange at a time, from any thread.

    Certificates are judged by the authorities in `trust`: a PEM file, or what is in one. Whoever runs an exchange by
    begin() and end(), rather than run(), may look after the read time-out (`is_silent`) without libcurl's asking.
    """

    def __init__(self, policy: Policy, trust: Path | bytes) -> None:
        self.curl = pycurl.Curl()
        self._read_timeout = policy.read_timeout
        self._headers = policy.headers
        self._proxied = bool(policy.proxy)
        self._exchange: Exchange | None = None
        self._began = 0.0
        self._heard: float | None = None
        self._lines: list[bytes] = []
        self._body: _Body | None = None
        self._raised: BaseException | None = None
        self._sockets: list[socket.socket] = []
        # What is set for one exchange stays set for those that need the same: most do.
        self._conditions: tuple[str, ...] | None = None
        self._milliseconds = 0
        self._has_credentials = False
        self._set_policy(policy)
        if isinstance(trust, bytes):
            self.curl.setopt(pycurl.CAINFO_BLOB, trust)
        else:
            self.curl.setopt(pycurl.CAINFO, str(trust))

    def close(self) -> None:
        """Close the connection."""
        self.curl.close()

    def run(self, exchange: Exchange) -> None:
        """Do `exchange` and note in it what happened. Raises only what writing to its file raised, or an interrupt."""
        self.begin(exchange)
        code, words = 0, ""
        try:
            self.curl.perform()
        except pycurl.error as error:
            code, words = int(error.args[0]), str(error.args[-1])
        finally:
            self.end(code, words)

    def begin(self, exchange: Exchange) -> None:
        """Have `curl` ready for `exchange`."""
        self._exchange, self._heard, self._body, self._raised = exchange, None, None, None
        self._ask_for(exchange)
        self._began = time.monotonic()

    def end(self, code: int, words: str) -> None:
        """Note in the exchange how it ended: libcurl's result, 0 for none. Raises what writing to its file raised."""
        exchange = self._exchange
        assert exchange is not None
        exchange.code, exchange.words = code, words
        exchange.seconds = time.monotonic() - self._began
        self._note(exchange)
        self._forget()
        if self._raised is not None:
            raise self._raised

    @property
    def is_silent(self) -> bool:
        """Whether the server has taken too long to say anything more; noted in the exchange."""
        if self._heard is None or time.monotonic() - self._heard <= self._read_timeout:
            return False
        if self._exchange is not None:
            self._exchange.stop = Stop.READ_TIMEOUT
        return True

    def _ask_for(self, exchange: Exchange) -> None:
        curl, address = self.curl, exchange.address
        curl.setopt(pycurl.URL, address.url)
        if exchange.conditions != self._conditions:
            curl.setopt(pycurl.HTTPHEADER, [*self._headers, *exchange.conditions])
            self._conditions = exchange.conditions
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
        """Hold nothing of an exchange while idle. Of sockets pycurl uses duplicates and leaves the originals to us."""
        self._exchange = self._body = None
        self._lines.clear()
        while self._sockets:
            self._sockets.pop().close()

    def _note(self, exchange: Exchange) -> None:
        self._read_head(exchange)
        exchange.complete = exchange.code == 0 and (self._body is None or self._body.is_whole)
        exchange.sha256 = self._body.sha256 if self._body else ""
        exchange.resolved = self.curl.getinfo(pycurl.NAMELOOKUP_TIME) > 0
        exchange.connected = self._heard is not None
        exchange.os_error = self.curl.getinfo(pycurl.OS_ERRNO)
        exchange.verify_result = self.curl.getinfo(pycurl.SSL_VERIFYRESULT)

    def _set_policy(self, policy: Policy) -> None:
        curl = self.curl
        curl.setopt(pycurl.NOSIGNAL, 1)
        curl.setopt(pycurl.BUFFERSIZE, 131_072)
        curl.setopt(pycurl.FOLLOWLOCATION, 0)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        curl.setopt(pycurl.MAXCONNECTS, 1)
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, _milliseconds(policy.connect_timeout))
        curl.setopt(pycurl.HTTPAUTH, pycurl.HTTPAUTH_BASIC)
        curl.setopt(pycurl.NETRC, pycurl.NETRC_IGNORED)
        curl.setopt(pycurl.PROXY, policy.proxy.encode())
        curl.setopt(pycurl.NOPROXY, "")
        curl.setopt(pycurl.SSL_VERIFYPEER, 1)
        curl.setopt(pycurl.SSL_VERIFYHOST, 2)
        curl.setopt(pycurl.HEADERFUNCTION, self._on_header)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._on_socket)
        curl.setopt(pycurl.PREREQFUNCTION, self._on_request)
        curl.setopt(pycurl.XFERINFOFUNCTION, self._on_progress)
        curl.setopt(pycurl.NOPROGRESS, 0)

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
        """Before each request, also on a connection that was opened for somebody with another allow list."""
        exchange = self._exchange
        assert exchange is not None
        self._heard = time.monotonic()
        if self._proxied or is_allowed(address, exchange.allow):
            return pycurl.PREREQFUNC_OK
        exchange.refused_address, exchange.stop = address, Stop.ADDRESS
        return pycurl.PREREQFUNC_ABORT

    def _on_header(self, line: bytes) -> int | None:
        """One line of the head, or of what may follow the body; they are read when the empty one comes, all at once."""
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

    def _on_progress(self, *_counts: object) -> int:
        """At least once a second, whatever the server does: for the read time-out, and for Ctrl-C to get through."""
        try:
            return int(self.is_silent)
        except BaseException as error:  # noqa: BLE001 - raised again by end()
            self._raised = error
            return 1

    def _head_ended(self) -> int | None:
        exchange = self._exchange
        assert exchange is not None
        self._read_head(exchange)
        if self._body is None and exchange.is_document and exchange.announced > exchange.limits.size:
            exchange.stop = Stop.TOO_LARGE
            return -1
        return None

    def _read_head(self, exchange: Exchange) -> None:
        """Read the lines that came; what follows a body does not count."""
        lines, self._lines = self._lines, []
        if not lines or self._body is not None or exchange.page:
            return
        exchange.headed = not lines[-1].strip()
        for line in lines:
            text = _text(line)
            if line.startswith(b"HTTP/"):
                status, _, exchange.reason = text.partition(" ")[2].partition(" ")
                exchange.status = int(status) if status.isascii() and status.isdigit() else 0
                exchange.headers = {}
                continue
            name, colon, value = text.partition(":")
            if colon:
                exchange.headers[name.rstrip().lower()] = value.lstrip()

    def _received(self, data: bytes) -> int | None:
        exchange = self._exchange
        assert exchange is not None
        self._heard = time.monotonic()
        exchange.wire += len(data)
        if not exchange.is_document:
            exchange.page += data
            exchange.stop = Stop.ERROR_PAGE_READ if len(exchange.page) > ERROR_PAGE_BYTES else None
        else:
            self._body = self._body or _Body(exchange)
            exchange.stop = self._body.add(data)
        return None if exchange.stop is None else -1


class _Body:
    """A document on its way into the file: decompressed, counted, hashed.

    Decompressed here and not by libcurl, which takes a gzip stream that breaks off for a whole one.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._digest = hashlib.sha256()
        coding = exchange.headers.get("content-encoding", "").lower()
        self._known = coding in ("", "identity", "gzip", "x-gzip")
        self._inflate = zlib.decompressobj(wbits=31) if coding in ("gzip", "x-gzip") else None

    @property
    def sha256(self) -> str:
        """Of what came so far, in hexadecimal."""
        return self._digest.hexdigest()

    @property
    def is_whole(self) -> bool:
        """False where the compressed stream has not reached its end."""
        return self._inflate is None or self._inflate.eof

    def add(self, data: bytes) -> Stop | None:
        """Take what came; the reason to stop, if there is one."""
        if not self._known:
            return Stop.ENCODING
        if self._exchange.wire > self._exchange.limits.size:
            return Stop.TOO_LARGE
        if self._inflate is None:
            return self._keep(data)
        try:
            return self._add_compressed(data)
        except zlib.error:
            return Stop.ENCODING

    def _add_compressed(self, data: bytes) -> Stop | None:
        """A file may be several gzip members one after the other; what follows the last and is none is padding."""
        more = False
        while data or more:
            if self._inflate is None or self._inflate.eof:
                if not data.startswith(b"\x1f"):
                    return None
                self._inflate = zlib.decompressobj(wbits=31)
            piece = self._inflate.decompress(data, _PIECE)
            if stop := self._keep(piece):
                return stop
            data = self._inflate.unused_data if self._inflate.eof else self._inflate.unconsumed_tail
            more = len(piece) == _PIECE and not self._inflate.eof
        return None

    def _keep(self, piece: bytes) -> Stop | None:
        exchange = self._exchange
        exchange.size += len(piece)
        if exchange.size > exchange.limits.size:
            return Stop.TOO_LARGE
        self._digest.update(piece)
        exchange.file.write(piece)
        return None


def _milliseconds(seconds: float) -> int:
    """As libcurl takes them: 0 would mean no limit, and more than 24 days is more than it can count."""
    return min(max(1, int(seconds * 1000)), 2**31 - 1)


def _text(data: bytes) -> str:
    """A header as text: UTF-8, where it is not ASCII, more often than the Latin-1 of the standard."""
    try:
        return data.decode("utf-8").strip()
    except UnicodeDecodeError:
        return data.decode("latin-1").strip()
