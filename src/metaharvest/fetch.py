"""The one client for whatever sites serve, harvest lists and documents alike: the whole network policy.

What it keeps to, from the settings' section [http]: a User-Agent and a From header that say who asks; time-outs for
connecting and reading, and a deadline for the entire exchange with all its redirects; a size limit before and after
decompression; http and https only; few redirects; certificates checked; addresses that are not public refused unless
allowed, judged by the address actually connected to; and so many connections per host, over all threads and sites.
Cookies, `~/.netrc` and the environment's proxy settings are not used. With a proxy in the settings it is the proxy that
resolves names and connects, so only addresses that are written in a URL can be judged here; the rest is for the proxy
to refuse.

`web_address` reads URLs, `http_exchange` speaks to libcurl, `fetch_findings` puts failures into words; only this module
uses them. FetchError is all that comes out of what a server can do.
"""

from __future__ import annotations

import io
import ssl
import threading
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from urllib.parse import quote

import certifi

from metaharvest import __version__, fetch_findings
from metaharvest.errors import FetchError, SettingsError
from metaharvest.fetch_findings import Circumstances
from metaharvest.http_exchange import Exchange, Handle, Limits
from metaharvest.records import Finding, ListVersion, Network
from metaharvest.settings import HttpSettings
from metaharvest.text import shown_url
from metaharvest.web_address import BadUrl, UnsupportedScheme, WebAddress, is_allowed, literal_address, parse_url, shown

IDLE_HANDLES = 128
"""How many connections are kept open for the next request, over all hosts."""

_ACCEPT = "application/xml, text/xml;q=0.9, */*;q=0.5"
_SYSTEM_STORES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


@dataclass(frozen=True, slots=True)
class Response:
    """A whole, successful answer. `url` is where it came from in the end, without credentials.

    `size` (bytes) and `sha256` (hexadecimal) are those of the document after decompression, `seconds` is the time that
    the server took for the whole exchange.
    """

    url: str
    status: int
    size: int
    sha256: str
    seconds: float
    etag: str | None
    last_modified: str | None


class Fetcher:
    """Fetches whole documents under the policy of `http`, from any number of threads; one per run.

    `name` is the harvester's name and `administrator` an email address, for the servers' logs. The authorities in
    `http.ca_file` (relative to the working directory) are trusted beside the system's. Raises SettingsError where that
    file cannot be used.
    """

    def __init__(self, http: HttpSettings, *, name: str, administrator: str | None) -> None:
        self._http = http
        self.user_agent = user_agent(name, http.contact_url)
        headers = [f"User-Agent: {self.user_agent}", f"Accept: {_ACCEPT}", "Accept-Encoding: gzip"]
        if administrator and administrator.isascii() and administrator.isprintable():
            headers.append(f"From: {administrator}")
        trust = _authorities(system_trust(), http.ca_file) if http.ca_file else system_trust()
        self._pool = _Pool(lambda: Handle(http, headers, trust), http.connections_per_host, http.list_deadline)

    def fetch(self, url: str, *, allow_networks: Sequence[Network] = ()) -> tuple[Response, bytes]:
        """The document at `url`, held in memory. `allow_networks`: also these, beside http.allow_networks.

        Raises FetchError.
        """
        buffer = io.BytesIO()
        limits = Limits(self._http.document_deadline, self._http.max_document_bytes)
        return self._follow(url, buffer, limits, allow_networks), buffer.getvalue()

    def fetch_to(
        self,
        url: str,
        file: BinaryIO,
        *,
        allow_networks: Sequence[Network] = (),
        known: ListVersion | None = None,
    ) -> Response:
        """A list at `url`, written to `file` as it comes; what was written is of no use after an error.

        Where the server says that the list is still the version `known`, the response has the status 304 and `file`
        stays empty (RFC 9110, section 13). Raises FetchError, and OSError where `file` cannot be written.
        """
        limits = Limits(self._http.list_deadline, self._http.max_list_bytes)
        return self._follow(url, file, limits, allow_networks, _conditions(known))

    def close(self) -> None:
        """Close all connections; exchanges under way end first."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _follow(
        self,
        url: str,
        file: BinaryIO,
        limits: Limits,
        allow: Sequence[Network],
        conditions: tuple[str, ...] = (),
    ) -> Response:
        """Fetch `url` and follow its redirects; the waiting for a free connection is not the server's time."""
        networks = (*self._http.allow_networks, *allow)
        here, spent = _start(url), 0.0
        first_url = here.url
        for _ in range(self._http.max_redirects + 1):
            given = Circumstances(self._http, self.user_agent, first_url, limits.deadline, spent)
            left = Limits(limits.deadline - spent, limits.size)
            if left.deadline <= 0:
                raise FetchError(fetch_findings.out_of_time(here.url, given), passing=True, seconds=spent)
            exchange = self._exchange(Exchange(here, file, left, networks, conditions), given)
            location = exchange.location
            if location is None:
                return self._response(exchange, given)
            spent += exchange.seconds
            here = _redirected(here, location, spent)
        raise FetchError(fetch_findings.too_many_redirects(here.url, given), seconds=spent)

    def _exchange(self, exchange: Exchange, given: Circumstances) -> Exchange:
        address = exchange.address
        if self._http.proxy and (literal := literal_address(address.host)) and not is_allowed(literal, exchange.allow):
            raise FetchError(fetch_findings.address_not_public(address.url, literal, given), seconds=given.spent)
        with self._pool.handle(address, given.spent) as handle:
            handle.run(exchange)
        return exchange

    def _response(self, exchange: Exchange, given: Circumstances) -> Response:
        error = None if exchange.is_unmodified else fetch_findings.failure(exchange, given)
        if error:
            raise error
        return Response(
            url=exchange.address.url,
            status=exchange.status,
            size=exchange.size,
            sha256=exchange.digest.hexdigest(),
            seconds=given.spent + exchange.seconds,
            etag=exchange.headers.get("etag") or None,
            last_modified=exchange.headers.get("last-modified") or None,
        )


def _conditions(known: ListVersion | None) -> tuple[str, ...]:
    """The request headers that ask for a list only if it is no longer the known version."""
    named = (("If-None-Match", known.etag), ("If-Modified-Since", known.last_modified)) if known else ()
    return tuple(f"{name}: {value}" for name, value in named if value and value.isascii() and value.isprintable())


def user_agent(name: str, contact_url: str) -> str:
    """`metaharvest/VERSION (NAME; +CONTACT_URL)`, ASCII on one line whatever the harvester is called."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = " ".join("".join(c if c.isprintable() and c not in "()\\;" else " " for c in plain).split())
    contact = quote("".join(contact_url.split()), safe="!#$%&'*+,/:;=?@[]~")
    about = "; ".join(part for part in (plain, f"+{contact}" if contact else "") if part)
    return f"metaharvest/{__version__} ({about})" if about else f"metaharvest/{__version__}"


def system_trust() -> Path:
    """The operating system's certificate authorities; Mozilla's, from certifi, on a machine that has none.

    libcurl has one path built in, that of the system where it was compiled.
    """
    default = ssl.get_default_verify_paths()
    for candidate in (*_SYSTEM_STORES, default.openssl_cafile):
        if Path(candidate).is_file():
            return Path(candidate)
    return Path(certifi.where())


def _authorities(trust: Path, own: Path) -> bytes:
    """The system's certificate authorities and those of `own`. Raises SettingsError where `own` has none."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(own)
        return trust.read_bytes() + b"\n" + own.read_bytes()
    except OSError as error:
        problem = "it holds no certificates in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        raise SettingsError(
            f"The certificate authorities in {own} ([http] ca_file) cannot be used: {problem}."
        ) from error


class _Pool:
    """Lends handles: at most so many per host at once, and of those not in use the last few stay connected."""

    def __init__(self, make: Callable[[], Handle], per_host: int, patience: float) -> None:
        self._make = make
        self._per_host = per_host
        self._patience = patience
        self._lock = threading.Lock()
        self._hosts: dict[str, _Host] = {}
        self._idle: list[tuple[str, Handle]] = []
        self._closed = False

    @contextmanager
    def handle(self, address: WebAddress, spent: float) -> Iterator[Handle]:
        """A handle for `address`, waited for while the host has all that it may have. Raises FetchError in the end."""
        name = address.host.rstrip(".")
        with self._lock:
            host = self._hosts.setdefault(name, _Host(threading.BoundedSemaphore(self._per_host)))
            host.users += 1
        try:
            if not host.slots.acquire(timeout=self._patience):
                raise FetchError(self._busy(address), passing=True, seconds=spent)
            try:
                yield from self._lend(name)
            finally:
                host.slots.release()
        finally:
            with self._lock:
                host.users -= 1
                if not host.users:
                    del self._hosts[name]

    def close(self) -> None:
        """Close the idle connections now, and those in use when they come back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for _, handle in idle:
            handle.close()

    def _lend(self, name: str) -> Iterator[Handle]:
        """A handle that comes back if it is still good: any exception means that it may not be."""
        handle = self._take(name)
        try:
            yield handle
        except BaseException:
            handle.close()
            raise
        if surplus := self._put_back(name, handle):
            surplus.close()

    def _take(self, name: str) -> Handle:
        with self._lock:
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index][0] == name:
                    return self._idle.pop(index)[1]
        return self._make()

    def _put_back(self, name: str, handle: Handle) -> Handle | None:
        with self._lock:
            if self._closed:
                return handle
            self._idle.append((name, handle))
            return self._idle.pop(0)[1] if len(self._idle) > IDLE_HANDLES else None

    def _busy(self, address: WebAddress) -> Finding:
        return Finding(
            "http.busy",
            f"{shown_url(address.url)} was not fetched: all {self._per_host} connections that the harvester allows "
            f"itself to {address.host} were in use for {self._patience:g} seconds.",
            "The server answers very slowly. The harvester tries again by itself.",
        )


@dataclass(slots=True)
class _Host:
    """The connections that one host may still get; `users` holds it in the pool."""

    slots: threading.BoundedSemaphore
    users: int = 0


def _start(url: str) -> WebAddress:
    try:
        return parse_url(url)
    except BadUrl as error:
        raise _refusal(error, shown(url), 0.0) from error


def _redirected(here: WebAddress, location: str, spent: float) -> WebAddress:
    try:
        return here.following(location)
    except BadUrl as error:
        raise _refusal(error, f"{shown_url(here.url)} redirects to {shown(location)}, which", spent) from error


def _refusal(error: BadUrl, subject: str, spent: float) -> FetchError:
    """What to say of a URL that cannot be asked for; `subject` begins the sentence."""
    if isinstance(error, UnsupportedScheme):
        message = f"{subject} cannot be harvested: only http and https are, not '{error}'."
        remedy = "Put the document on a web server and give its http:// or https:// URL."
        return FetchError(Finding("http.scheme", message, remedy), seconds=spent)
    message = f"{subject} is not a URL that can be fetched: {error}."
    remedy = "Write it like https://example.org/metadata/eml.xml."
    return FetchError(Finding("http.bad-url", message, remedy), seconds=spent)
