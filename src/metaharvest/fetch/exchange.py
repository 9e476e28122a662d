"""The values of one request and its answer: the request, its limits, and all observations.

`transfer.py` fills an Exchange in while libcurl runs; `error_messages.py` explains a failed one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import BinaryIO

from metaharvest.fetch.url import WebAddress
from metaharvest.model import Network

_NO_CONTENT = 204


class StopReason(Enum):
    """The reason why our side aborted an exchange."""

    ADDRESS = auto()
    READ_TIMEOUT = auto()
    TOO_SLOW = auto()
    TOO_LARGE = auto()
    ENCODING = auto()
    ERROR_PAGE_READ = auto()
    NO_MEMORY = auto()


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of every exchange of a run: seconds to wait, the proxy's URL or "", lines of each request's head.

    An answer that comes with fewer bytes a second than `lowest_speed`, after `read_timeout`, is ended; 0: none is.
    """

    connect_timeout: float
    read_timeout: float
    proxy: str
    headers: tuple[str, ...]
    lowest_speed: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one exchange: seconds for the whole of it, bytes before and after decompression."""

    deadline: float
    size: int


@dataclass(frozen=True, slots=True)
class Query:
    """The query of a URL: URL-encoded arguments, which are part of the URL, or `post`: sent as a form."""

    arguments: str
    post: bool = False

    @property
    def form(self) -> str:
        """The body of the request; empty if it has none."""
        return self.arguments if self.post else ""


@dataclass(slots=True)
class Exchange:
    """One request to one address, and everything known about the answer.

    `conditions` are request headers that let the server answer 304, "not modified". `code` and `words` are libcurl's
    result (0: none, also if the headers break off: `headed` is False then). `wire` counts the body as sent, `size` as
    decompressed, `sha256` is its digest. `began` is of time.monotonic. `in_memory`: arriving bytes count in the memory
    budget, for the site `site_id`; `gives_way`: it may be aborted if others take too much of the budget. `form`: the
    body of a POST; empty: GET. `plain`: ask for an answer without compression.
    """

    address: WebAddress
    file: BinaryIO
    limits: Limits
    allow: tuple[Network, ...]
    conditions: tuple[str, ...] = ()
    in_memory: bool = True
    site_id: int = 0
    gives_way: bool = True
    form: str = ""
    plain: bool = False
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
    stop: StopReason | None = None

    @property
    def is_document(self) -> bool:
        """True if the body is the requested document, so that it goes into the file."""
        return 200 <= self.status < 300 and self.status != 206

    @property
    def is_unmodified(self) -> bool:
        """True if the server answered a conditional request with "not modified"."""
        return bool(self.conditions) and self.status == 304 and self.code == 0

    @property
    def is_lost_in_coding(self) -> bool:
        """True if nothing came where compression was allowed, or the body cannot be decompressed to its end.

        Some servers that fail to compress send an empty body without a Content-Encoding.
        """
        if self.plain or not self.is_document or self.status == _NO_CONTENT:
            return False
        return self.stop is StopReason.ENCODING or (self.code == 0 and not (self.complete and self.size))

    @property
    def announced(self) -> int:
        """The length in bytes from Content-Length; 0 if it has none."""
        length = self.headers.get("content-length", "")
        return int(length) if length.isascii() and length.isdigit() and len(length) < 20 else 0

    @property
    def location(self) -> str | None:
        """The address of the server's redirect, if any."""
        return self.headers.get("location") if self.status in (301, 302, 303, 307, 308) else None
