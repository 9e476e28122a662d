"""The values of one request and its answer: the address, over redirects, the limits, and all observations.

`transfer.py` fills an Exchange in while libcurl runs; `error_messages.py` explains a failed one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import BinaryIO
from urllib.parse import urlsplit

from metaharvest.errors import FetchError
from metaharvest.fetch.url import BadUrl, UnsupportedScheme, WebAddress, parse_url, shown
from metaharvest.model import Finding, Network
from metaharvest.model.values import frozen
from metaharvest.text import shown_url


class StopReason(Enum):
    """The reason why our side aborted an exchange."""

    ADDRESS = auto()
    READ_TIMEOUT = auto()
    TOO_SLOW = auto()
    TOO_LARGE = auto()
    ENCODING = auto()
    ERROR_PAGE_READ = auto()
    NO_MEMORY = auto()


@frozen
class Limits:
    """The limits of one exchange: seconds for the whole of it, bytes before and after decompression."""

    deadline: float
    size: int


@frozen
class Query:
    """The query of a URL: URL-encoded arguments, which are part of the URL, or `post`: sent as a form."""

    arguments: str
    post: bool = False


def started(url: str, query: Query | None) -> WebAddress:
    """The address that `url` names, with the query, if there is one. Raises FetchError."""
    try:
        here = parse_url(url)
    except BadUrl as error:
        raise _refusal(error, shown(url), 0.0) from error
    if query is None or query.post:
        return here
    return replace(here, url=f"{here.url}{'&' if urlsplit(here.url).query else '?'}{query.arguments}")


def redirected(here: WebAddress, location: str, spent: float, query: Query | None) -> WebAddress:
    """The address of a redirect to `location`, with the same query, also if `location` lacks it. Raises FetchError."""
    try:
        there = here.following(location)
    except BadUrl as error:
        subject = f"{shown_url(here.url)} redirects to {shown(location)}, which"
        remedy = "Correct the redirect on the web server: it must lead to an http:// or https:// URL."
        if str(error) == "file":
            remedy += " A file: URL names a file of the computer that opens it, so that others cannot follow it."
        raise _refusal(error, subject, spent, remedy) from error
    if query is None or query.post or urlsplit(there.url).query:
        return there
    return replace(there, url=f"{there.url}?{query.arguments}")


@dataclass(slots=True)
class Exchange:
    """One request to one address, and everything known about the answer.

    `conditions` are request headers that let the server answer 304, "not modified". `code` and `words` are libcurl's
    result (0: none, also if the headers break off: `headed` is False then). `wire` counts the body as sent, `size` as
    decompressed, `sha256` is its digest. `began` is of time.monotonic. `in_memory`: arriving bytes count in the memory
    budget, for the site `site_id`; `gives_way`: it may be aborted if others take too much of the budget. `form`: the
    body of a POST; empty: GET. `plain`: ask for an answer without compression. `tunnel_status`: the proxy's answer to
    CONNECT, 0 without one. `proxy_error`: libcurl's CURLPX_ number for a SOCKS proxy, 0 without an error.
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
    tunnel_status: int = 0
    proxy_error: int = 0
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
    def is_lost_in_coding(self) -> bool:
        """True if nothing came where compression was allowed, or the body cannot be decompressed to its end.

        Some servers that fail to compress send an empty body without a Content-Encoding.
        """
        if self.plain or not self.is_document or self.status == 204:
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


def _refusal(error: BadUrl, subject: str, spent: float, remedy: str = "") -> FetchError:
    """The finding about a URL that cannot be requested; `subject` begins the sentence."""
    if isinstance(error, UnsupportedScheme):
        message = f"{subject} cannot be harvested: only http and https are, not '{error}'."
        remedy = remedy or "Put the document on a web server and give its http:// or https:// URL."
        return FetchError(Finding("http.scheme", message, remedy), seconds=spent)
    message = f"{subject} is not a URL that can be fetched: {error}."
    remedy = remedy or "Write it like https://example.org/metadata/eml.xml."
    return FetchError(Finding("http.bad-url", message, remedy), seconds=spent)
