"""The one client for everything that sites serve, harvest lists and documents alike: the whole network policy.

Its rules, from the settings' section [http]: a User-Agent and a From header that name the harvester; time-outs for
connecting and reading, and a deadline for the entire exchange with all its redirects; a size limit before and after
decompression; http and https only; few redirects; certificates checked; addresses that are not public refused unless
allowed, judged by the address actually connected to; a limit of connections per host, over all sites; and pauses for a
host that asks for one (Retry-After).

A file: URL gets here only from the schedule or a list, and is read by local_files.py: no redirect leads to one.
Cookies, `~/.netrc` and the environment's proxy settings are not used. With a proxy in the settings it is the proxy that
resolves names and connects, so only addresses that are written in a URL can be judged here; the proxy has to refuse the
others.

`url` reads URLs, `limits` counts requests and bytes, `health` remembers the behaviour of servers, `transfer` speaks to
libcurl, `stops` ends requests after a stop, `error_messages` puts failures into words. A server can cause no exception
but FetchError.
"""

from __future__ import annotations

import asyncio
import io
import time
import unicodedata
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import BinaryIO, Self
from urllib.parse import quote

from metaharvest import __version__
from metaharvest.config.settings import HttpSettings
from metaharvest.config.trust_store import BadAuthorities, configured_authorities, read_authorities, system_trust
from metaharvest.errors import FetchError, NotAsked
from metaharvest.fetch import error_messages, local_files
from metaharvest.fetch.error_messages import Circumstances
from metaharvest.fetch.exchange import Exchange, Limits, Query, StopReason, redirected, started
from metaharvest.fetch.health import HostHealth
from metaharvest.fetch.held_hosts import HeldHosts, HostLeases
from metaharvest.fetch.limits import FairLimiter, HostLimiter, MemoryBudget, WaitedTooLong, Waiting
from metaharvest.fetch.robots import Robots
from metaharvest.fetch.stops import Stops, ending_after
from metaharvest.fetch.transfer import CurlHandle, CurlMulti
from metaharvest.fetch.url import WebAddress, is_allowed, literal_address
from metaharvest.model import Finding, ListVersion, Reach
from metaharvest.model.actions import Remedy, todo
from metaharvest.model.values import frozen
from metaharvest.text import shown_url

_ACCEPT = "application/xml, text/xml;q=0.9, */*;q=0.5"


@frozen
class Response:
    """A whole, successful answer. `url` is the final URL, without credentials.

    `size` (bytes) and `sha256` (hexadecimal) belong to the document after decompression, `seconds` is the time that
    the server took for the whole exchange. `date` is the time of its clock, as it wrote it. `media_type` is the header
    Content-Type, `link` the header Link.
    """

    url: str
    status: int
    size: int
    sha256: str
    seconds: float
    etag: str | None
    last_modified: str | None
    date: str = ""
    media_type: str = ""
    link: str = ""


OnRedirect = Callable[[str], Awaitable[None]]
"""Is called with the address of each redirect before it is requested; what it raises ends the request."""


@frozen
class _Question:
    """A request, over all its redirects; `patience`: seconds to wait for a connection.

    `site_id`: the site of a requested document. `query`: the query of the address, also after a redirect. `is_aside`:
    the pause that its server asks for counts for this request only.
    """

    file: BinaryIO
    limits: Limits
    reach: Reach
    patience: float
    conditions: tuple[str, ...] = ()
    is_list: bool = False
    site_id: int = 0
    gives_way: bool = True
    query: Query | None = None
    is_aside: bool = False
    on_redirect: OnRedirect | None = None


class Fetcher:
    """Fetches whole documents under the policy of `http`; one per run, made and used within one event loop.

    `name` is the harvester's name and `administrator` an email address, for the servers' logs. At most `at_once`
    documents are under way at a time, lists not counted; no site takes more of these places than it leaves free. The
    authorities in `http.ca_file` (relative to the working directory) are trusted in addition to the system's. Raises
    SettingsError if that file cannot be used. `lists` are the turns of those who read the list of a repository, each by
    its base URL: one request at a time. `robots` knows what servers would rather not be asked for. With `leases`, other
    processes harvest at the same time: this one sends requests to a host while it holds its lease. `accept` is the
    header Accept, `health` comes from an earlier client of the run. `lowest_speed`: see CurlHandle.
    """

    def __init__(
        self,
        http: HttpSettings,
        *,
        name: str,
        administrator: str | None,
        at_once: int = 128,
        memory: MemoryBudget | None = None,
        leases: HostLeases | None = None,
        accept: str = _ACCEPT,
        lowest_speed: int = 0,
        health: HostHealth | None = None,
    ) -> None:
        self.http = self._http = http
        self._health = health or HostHealth(http)
        self._trust = _Trust(http.ca_file)
        self._waiting = Waiting()
        self._hosts = HostLimiter(http.connections_per_host, self._waiting)
        self._held = HeldHosts(leases, self._health, self._waiting) if leases else None
        self.lists = HostLimiter(1, self._waiting)
        self._again = asyncio.Lock()
        self._under_way = FairLimiter(at_once, self._waiting)
        self.memory = memory or MemoryBudget()
        self.user_agent = user_agent(name, http.contact_url)
        self.robots = Robots(self.fetch, http, "metaharvest")
        headers = [f"User-Agent: {self.user_agent}", f"Accept: {accept}"]
        self._administrator = ""
        if administrator and administrator.isascii() and administrator.isprintable():
            self._administrator = administrator
            headers.append(f"From: {administrator}")
        self._new_handle = partial(CurlHandle, http, headers, lowest_speed, self.memory)
        self._multi = CurlMulti()
        self._idle: dict[Path | None, list[CurlHandle]] = {}
        self._stops: Stops | None = None
        self._plain: set[str] = set()
        self._asked_plain: set[str] = set()

    async def fetch(
        self,
        url: str,
        *,
        reach: Reach = Reach(),  # noqa: B008 - it is frozen
        file_folder: Path | None = None,
        patience: float = inf,
        site_id: int = 0,
        query: Query | None = None,
        known: ListVersion | None = None,
        is_aside: bool = False,
        on_redirect: OnRedirect | None = None,
    ) -> tuple[Response, bytes]:
        """The document at `url`. While it arrives it counts in `memory`; from then on the caller has to count it.

        `reach`: networks in addition to http.allow_networks, and authorities that are trusted too.
        `file_folder`: file: URLs may name a file below it. `patience`: seconds to wait for a free connection, and for
        free memory, never longer than http.list_deadline. `site_id`: its site; sites take turns. `query`: the query of
        the request, also after a redirect. `is_aside`: Retry-After counts for this request only. `known`: if the server
        says that this is still the version, the response has the status 304, and no bytes come. `on_redirect`: see
        OnRedirect.

        Raises FetchError, and the errors of `on_redirect`; NotAsked if its server could not be reached lately, or if
        nothing came free in time.
        """
        limits = Limits(self._http.document_deadline, self._http.max_document_bytes)
        buffer = io.BytesIO()
        if local_files.is_file_url(url):
            return await asyncio.to_thread(_copied, url, file_folder, buffer, limits.size), buffer.getvalue()
        patience = min(patience, self._http.list_deadline)
        question = _Question(
            buffer,
            limits,
            reach,
            patience,
            _conditions(known),
            site_id=site_id,
            query=query,
            is_aside=is_aside,
            on_redirect=on_redirect,
        )
        try:
            return await self._follow(url, question), buffer.getvalue()
        except _GaveWay:
            # Requests that gave way come one after the other, so that no document is requested a third time.
            async with self._again:
                buffer = io.BytesIO()
                response = await self._follow(url, replace(question, file=buffer, gives_way=False))
                return response, buffer.getvalue()

    async def fetch_to(
        self,
        url: str,
        file: BinaryIO,
        *,
        reach: Reach = Reach(),  # noqa: B008 - it is frozen
        file_folder: Path | None = None,
        known: ListVersion | None = None,
        seconds: float = inf,
        query: Query | None = None,
    ) -> Response:
        """A list at `url`, written to `file` as it comes; what was written is of no use after an error.

        It may take `seconds`, and never longer than http.list_deadline. `reach`, `query`: see fetch().

        If the server says that the list is still the version `known`, the response has the status 304 and `file`
        stays empty (RFC 9110, section 13). Raises FetchError, and OSError if `file` cannot be written.
        """
        if local_files.is_file_url(url):
            return await asyncio.to_thread(_copied, url, file_folder, file, self._http.max_list_bytes)
        limits = Limits(min(seconds, self._http.list_deadline), self._http.max_list_bytes)
        question = _Question(file, limits, reach, limits.deadline, _conditions(known), is_list=True, query=query)
        return await self._follow(url, question)

    def until_stopped(self, stops: Stops) -> Fetcher:
        """The same client for one site: its requests end some seconds after the site is stopped, by RequestEnded."""
        its = copy(self)
        its._stops = stops
        its.robots = self.robots.until_stopped(stops)
        return its

    def end_waiting(self) -> None:
        """End all waiting for connections at the end of the run: callers that wait, or would have to, get NotAsked."""
        self._waiting.end()

    async def close(self) -> None:
        """Close all connections, and let other processes send requests to their hosts."""
        await self.robots.close()
        for handles in self._idle.values():
            for handle in handles:
                handle.close()
        self._multi.close()
        if self._held:
            await self._held.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _follow(self, url: str, question: _Question) -> Response:
        """Fetch `url` and follow its redirects. Waiting for a free connection is not the server's time.

        Some servers send gzip that is empty or damaged: then the request is repeated without compression. If that
        helps, all further answers of this host come without it. Seen at https://github.com/mikf/gallery-dl/issues/2267.
        """
        here, spent, start = started(url, question.query), 0.0, question.file.tell()
        first_url, limits = here.url, question.limits
        redirects, repeated = 0, ""
        while redirects <= self._http.max_redirects:
            given = Circumstances(
                self._http,
                self.user_agent,
                first_url,
                limits.deadline,
                spent,
                self._administrator,
                question.is_list,
                is_repository=question.query is not None,
            )
            left = Limits(limits.deadline - spent, limits.size)
            if left.deadline <= 0:
                raise FetchError(error_messages.out_of_time(here.url, given), transient=True, seconds=spent)
            is_reached = question.reach.server in (None, here.server)
            exchange = Exchange(
                here,
                question.file,
                left,
                (*self._http.allow_networks, *(question.reach.networks if is_reached else ())),
                question.conditions,
                in_memory=not question.is_list,
                site_id=question.site_id,
                gives_way=question.gives_way,
                form=question.query.arguments if question.query and question.query.post else "",
                plain=here.host == repeated or here.host in self._plain,
            )
            async with ending_after(self._stops, given.spent):
                await self._exchange(exchange, question, given)
            location = exchange.location
            if location is None and exchange.is_lost_in_coding and self._may_help(exchange):
                repeated = here.host
                question.file.seek(start)
                question.file.truncate()
                spent += exchange.seconds
                continue
            if location is None:
                response = self._response(exchange, question, given)
                if here.host == repeated and exchange.size:
                    self._plain.add(here.host)
                return response
            redirects, spent = redirects + 1, spent + exchange.seconds
            here = redirected(here, location, spent, question.query)
            if question.on_redirect:
                await question.on_redirect(here.url)
        sets_cookie = "set-cookie" in exchange.headers
        raise FetchError(error_messages.too_many_redirects(here.url, given, sets_cookie=sets_cookie), seconds=spent)

    def _may_help(self, exchange: Exchange) -> bool:
        """True if a request without compression may help.

        An empty answer that names no compression allows it once a run and host.
        """
        if exchange.headers.get("content-encoding"):
            return True
        is_first = exchange.address.host not in self._asked_plain
        self._asked_plain.add(exchange.address.host)
        return is_first

    async def _exchange(self, exchange: Exchange, question: _Question, given: Circumstances) -> None:
        """Perform the exchange when its host has a connection free. A list is requested even if its host was away."""
        address = exchange.address
        if self._http.proxy and (literal := literal_address(address.host)) and not is_allowed(literal, exchange.allow):
            raise FetchError(error_messages.address_not_public(address.url, literal, given), seconds=given.spent)
        self._require_willing(address, given.spent, question.is_list)
        host = address.host.rstrip(".")
        held: list[Callable[[], None]] = []  # each request has one: an ExitStack takes longer
        try:
            await self._acquire(address, host, question, given.spent, held)
            self._require_willing(address, given.spent, question.is_list)
            exchange.began = self._health.asked(address)
            held.append(partial(self._health.ended, address))
            async with self._held.while_held(host) if self._held else nullcontext():
                await self._transfer(exchange, question.reach.ca_file)
        except WaitedTooLong as error:
            raise NotAsked(error_messages.aborted(address), host, seconds=given.spent, retry_after=1.0) from error
        finally:
            for give_back in reversed(held):
                give_back()
        if exchange.connected:
            self._health.reached(address)
        if exchange.stop is StopReason.NO_MEMORY:
            raise _GaveWay

    async def _acquire(
        self, address: WebAddress, host: str, question: _Question, spent: float, held: list[Callable[[], None]]
    ) -> None:
        """Wait for a connection to the host, and, for a document, for its place among all and for memory.

        The functions in `held` give them back, the last one first. Raises NotAsked if they do not come free in time.
        The wait for a list goes on even if the run is about to end.
        """
        patience, to_the_end = question.patience, question.is_list
        try:
            await self._hosts.acquire(host, patience, to_the_end=to_the_end)
            held.append(partial(self._hosts.release, host))
            if self._held:
                # If robots.txt could not be requested, it would not be obeyed.
                longest = self._http.list_deadline if question.is_aside else patience
                await self._held.acquire(host, longest, to_the_end=to_the_end)
                held.append(partial(self._held.release, host))
        except WaitedTooLong as error:
            raise NotAsked(error_messages.busy(address, self._http, patience), host, seconds=spent) from error
        if question.is_list:
            return
        try:
            await self._under_way.acquire(question.site_id, patience)
            held.append(partial(self._under_way.release, question.site_id))
            if not self.memory.has_room(question.site_id):
                async with self._waiting.at_most(patience):
                    await self.memory.room(question.site_id)
        except WaitedTooLong as error:
            raise NotAsked(error_messages.overloaded(address, patience), "", seconds=spent) from error

    async def _transfer(self, exchange: Exchange, ca_file: Path | None) -> None:
        """Perform the exchange with a handle that is returned if it is still good: after an exception it may be bad."""
        idle = self._idle.setdefault(ca_file, [])
        handle = idle.pop() if idle else self._new_handle(self._trust.of(ca_file))
        try:
            handle.begin(exchange)
            handle.end(*await self._multi.perform(handle))
        except BaseException:
            handle.close()
            raise
        finally:
            if exchange.in_memory:
                self.memory.give_back(exchange.size, exchange.site_id)
        idle.append(handle)

    def _require_willing(self, address: WebAddress, spent: float, is_list: bool) -> None:
        self._health.require_awake(address, spent)
        if not is_list:
            self._health.require_reachable(address)

    def _response(self, exchange: Exchange, question: _Question, given: Circumstances) -> Response:
        is_unmodified = exchange.conditions and exchange.status == 304 and exchange.code == 0
        error = None if is_unmodified else error_messages.failure(exchange, given)
        if error:
            if error.counted:
                self._health.not_reached(exchange.address, exchange.began)
            if error.retry_after and not question.is_aside:
                self._health.rest(exchange.address, error.retry_after)
            raise error
        return Response(
            url=exchange.address.url,
            status=exchange.status,
            size=exchange.size,
            sha256=exchange.sha256,
            seconds=given.spent + exchange.seconds,
            etag=exchange.headers.get("etag") or None,
            last_modified=exchange.headers.get("last-modified") or None,
            date=exchange.headers.get("date", ""),
            media_type=exchange.headers.get("content-type", ""),
            link=exchange.headers.get("link", ""),
        )


class _Trust:
    """The authorities that are trusted: the system's, those in the settings' file, and for one site those in its own.

    Raises SettingsError if the settings' file cannot be used.
    """

    def __init__(self, ca_file: Path | None) -> None:
        self._trusted: dict[Path | None, Path | bytes] = {None: system_trust()}
        if ca_file is not None:
            self._trusted[None] = system_trust().read_bytes() + b"\n" + configured_authorities(ca_file)

    def of(self, ca_file: Path | None) -> Path | bytes:
        """The authorities for a site with this file. Raises NotAsked if it cannot be used: the server did not fail."""
        if ca_file not in self._trusted:
            all_sites = self._trusted[None]
            try:
                own = read_authorities(ca_file) if ca_file else b""
            except BadAuthorities as error:
                message = f"The certificate authorities that are set for this site cannot be used: {error}."
                check = todo("installation.check")
                remedy = Remedy("The harvester's administrator has to see to it: {} names the file.", check)
                raise NotAsked(Finding("site.ca-file", message, remedy), "", seconds=0.0) from error
            known = all_sites.read_bytes() if isinstance(all_sites, Path) else all_sites
            self._trusted[ca_file] = known + b"\n" + own
        return self._trusted[ca_file]


class _GaveWay(Exception):
    """An exchange was aborted because other documents take all the memory; it begins again when there is room."""


def _copied(url: str, folder: Path | None, to: BinaryIO, limit: int) -> Response:
    """A copy of a file of this machine, in the form of a server's response."""
    began = time.monotonic()
    size, sha256 = local_files.copy(url, folder, to, limit)
    return Response(shown_url(url), 200, size, sha256, time.monotonic() - began, None, None)


def _conditions(known: ListVersion | None) -> tuple[str, ...]:
    """The request headers that ask for a list or document only if it is no longer the known version."""
    named = (("If-None-Match", known.etag), ("If-Modified-Since", known.last_modified)) if known else ()
    return tuple(f"{name}: {value}" for name, value in named if value and value.isascii() and value.isprintable())


def user_agent(name: str, contact_url: str) -> str:
    """`metaharvest/VERSION (NAME; +CONTACT_URL)`, ASCII on one line for any name of the harvester."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = " ".join("".join(c if c.isprintable() and c not in "()\\;" else " " for c in plain).split())
    contact = quote("".join(contact_url.split()), safe="!#$%&'*+,/:;=?@[]~")
    about = "; ".join(part for part in (plain, f"+{contact}" if contact else "") if part)
    return f"metaharvest/{__version__} ({about})" if about else f"metaharvest/{__version__}"
