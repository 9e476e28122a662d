"""The one client for whatever sites serve, harvest lists and documents alike: the whole network policy.

What it keeps to, from the settings' section [http]: a User-Agent and a From header that say who asks; time-outs for
connecting and reading, and a deadline for the entire exchange with all its redirects; a size limit before and after
decompression; http and https only; few redirects; certificates checked; addresses that are not public refused unless
allowed, judged by the address actually connected to; so many connections per host, over all threads and sites; and a
host that wants to be left alone (Retry-After) is.
A file: URL never gets here but from the schedule or a list, and is local_files.py's affair: no redirect leads to one.
Cookies, `~/.netrc` and the environment's proxy settings are not used. With a proxy in the settings it is the proxy that
resolves names and connects, so only addresses that are written in a URL can be judged here; the rest is for the proxy
to refuse.

`web_address` reads URLs, `connections` keeps count of the connections, `http_exchange` speaks to libcurl,
`fetch_findings` puts failures into words. FetchError is all that comes out of what a server can do.
"""

from __future__ import annotations

import io
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from urllib.parse import quote

from metaharvest import __version__
from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError
from metaharvest.fetch import local_files
from metaharvest.fetch import sentences as fetch_findings
from metaharvest.fetch.connections import Connections
from metaharvest.fetch.curl import Exchange, Expected, Limits, Policy
from metaharvest.fetch.health import Hosts
from metaharvest.fetch.sentences import Circumstances
from metaharvest.fetch.url import BadUrl, UnsupportedScheme, WebAddress, is_allowed, literal_address, parse_url, shown
from metaharvest.model import Finding, ListVersion, Network, Verdict
from metaharvest.text import shown_url

_ACCEPT = "application/xml, text/xml;q=0.9, */*;q=0.5"


@dataclass(frozen=True, slots=True)
class Response:
    """A whole, successful answer. `url` is where it came from in the end, without credentials.

    `size` (bytes) and `sha256` (hexadecimal) are those of the document after decompression, `seconds` is the time that
    the server took for the whole exchange. `verdict`: on the expected document, where it was checked on the way.
    """

    url: str
    status: int
    size: int
    sha256: str
    seconds: float
    etag: str | None
    last_modified: str | None
    verdict: Verdict | None = None


class Fetcher:
    """Fetches whole documents under the policy of `http`, from any number of threads; one per run.

    `name` is the harvester's name and `administrator` an email address, for the servers' logs. The authorities in
    `http.ca_file` (relative to the working directory) are trusted beside the system's. Raises SettingsError where that
    file cannot be used.

    Where `other_document_types` are given (see ValidationSettings) and there is more than one core, documents beyond
    the first few are fetched by processes of their own, and checked there.
    """

    def __init__(
        self,
        http: HttpSettings,
        *,
        name: str,
        administrator: str | None,
        other_document_types: Sequence[str] | None = None,
    ) -> None:
        self._http = http
        self._hosts = Hosts(http)
        self.user_agent = user_agent(name, http.contact_url)
        headers = [f"User-Agent: {self.user_agent}", f"Accept: {_ACCEPT}", "Accept-Encoding: gzip"]
        self._administrator = ""
        if administrator and administrator.isascii() and administrator.isprintable():
            self._administrator = administrator
            headers.append(f"From: {administrator}")
        policy = Policy(http.connect_timeout, http.read_timeout, http.proxy, tuple(headers))
        self._connections = Connections(http, policy, other_document_types)

    def fetch(
        self,
        url: str,
        *,
        allow_networks: Sequence[Network] = (),
        ca_file: Path | None = None,
        file_folder: Path | None = None,
        wait: bool = True,
        expected: Expected | None = None,
    ) -> tuple[Response, bytes]:
        """The document at `url`, held in memory. `allow_networks`: also these, beside http.allow_networks.

        `wait`: for a free connection, up to http.list_deadline; otherwise NoConnectionFree is raised at once.
        `ca_file`: these authorities are trusted too. `file_folder`: file: URLs may name what is below it.
        `expected`: the document that it should be, to be checked on the way where that is convenient.
        Raises FetchError; NotAsked also where its server could not be reached lately.
        """
        buffer = io.BytesIO()
        if local_files.is_file_url(url):
            return _copied(url, file_folder, buffer, self._http.max_document_bytes), buffer.getvalue()
        limits = Limits(self._http.document_deadline, self._http.max_document_bytes)
        patience = self._http.list_deadline if wait else None
        response = self._follow(
            url, buffer, limits, allow_networks, ca_file, patience, expected=expected, is_list=False
        )
        return response, buffer.getvalue()

    def fetch_to(
        self,
        url: str,
        file: BinaryIO,
        *,
        allow_networks: Sequence[Network] = (),
        ca_file: Path | None = None,
        file_folder: Path | None = None,
        known: ListVersion | None = None,
        seconds: float = inf,
    ) -> Response:
        """A list at `url`, written to `file` as it comes; what was written is of no use after an error.

        It may take `seconds`, and never longer than http.list_deadline.

        Where the server says that the list is still the version `known`, the response has the status 304 and `file`
        stays empty (RFC 9110, section 13). Raises FetchError, and OSError where `file` cannot be written.
        """
        if local_files.is_file_url(url):
            return _copied(url, file_folder, file, self._http.max_list_bytes)
        limits = Limits(min(seconds, self._http.list_deadline), self._http.max_list_bytes)
        conditions = _conditions(known)
        return self._follow(url, file, limits, allow_networks, ca_file, limits.deadline, conditions, is_list=True)

    def close(self) -> None:
        """Close all connections; exchanges under way end first."""
        self._connections.close()

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
        ca_file: Path | None,
        patience: float | None,
        conditions: tuple[str, ...] = (),
        expected: Expected | None = None,
        *,
        is_list: bool,
    ) -> Response:
        """Fetch `url` and follow its redirects.

        The waiting for a free connection, `patience` seconds at most, is not the server's time; None: no waiting.
        """
        networks = (*self._http.allow_networks, *allow)
        here, spent = _start(url), 0.0
        first_url = here.url
        for _ in range(self._http.max_redirects + 1):
            given = Circumstances(self._http, self.user_agent, first_url, limits.deadline, spent, self._administrator)
            left = Limits(limits.deadline - spent, limits.size)
            if left.deadline <= 0:
                raise FetchError(fetch_findings.out_of_time(here.url, given), transient=True, seconds=spent)
            exchange = Exchange(here, file, left, networks, conditions, expected)
            self._exchange(exchange, ca_file, given, patience, is_list)
            location = exchange.location
            if location is None:
                return self._response(exchange, given)
            spent += exchange.seconds
            here = _redirected(here, location, spent)
        raise FetchError(fetch_findings.too_many_redirects(here.url, given), seconds=spent)

    def _exchange(
        self, exchange: Exchange, ca_file: Path | None, given: Circumstances, patience: float | None, is_list: bool
    ) -> None:
        """A list is asked for wherever it is; a document not where its host cannot be reached."""
        address = exchange.address
        if self._http.proxy and (literal := literal_address(address.host)) and not is_allowed(literal, exchange.allow):
            raise FetchError(fetch_findings.address_not_public(address.url, literal, given), seconds=given.spent)
        self._require_willing(address, given.spent, is_list)
        with self._connections.lent(address, ca_file, given.spent, patience, is_list=is_list) as run:
            self._require_willing(address, given.spent, is_list)
            exchange.began = self._hosts.asked(address)
            run(exchange)
        if exchange.connected:
            self._hosts.reached(address)

    def _require_willing(self, address: WebAddress, spent: float, is_list: bool) -> None:
        self._hosts.require_awake(address, spent)
        if not is_list:
            self._hosts.require_reachable(address)

    def _response(self, exchange: Exchange, given: Circumstances) -> Response:
        error = None if exchange.is_unmodified else fetch_findings.failure(exchange, given)
        if error:
            if error.transient and not exchange.connected:
                self._hosts.not_reached(exchange.address, exchange.began)
                error.counted = True
            if error.retry_after:
                self._hosts.rest(exchange.address, error.retry_after)
            raise error
        return Response(
            url=exchange.address.url,
            status=exchange.status,
            size=exchange.size,
            sha256=exchange.sha256,
            seconds=given.spent + exchange.seconds,
            etag=exchange.headers.get("etag") or None,
            last_modified=exchange.headers.get("last-modified") or None,
            verdict=exchange.verdict,
        )


def _copied(url: str, folder: Path | None, to: BinaryIO, limit: int) -> Response:
    """A file of this machine, as if a server had sent it."""
    began = time.monotonic()
    size, sha256 = local_files.copy(url, folder, to, limit)
    return Response(shown_url(url), 200, size, sha256, time.monotonic() - began, None, None)


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
