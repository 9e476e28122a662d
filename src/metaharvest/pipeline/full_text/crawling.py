"""The requests for pages and files, under the network policy: robots.txt is obeyed, also after a redirect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from metaharvest.config.settings import HttpSettings, Settings
from metaharvest.database.host_leases import HostLeases
from metaharvest.errors import FetchError
from metaharvest.fetch.backoff import Attempts
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.health import HostHealth, ServerHealth
from metaharvest.fetch.robots import RobotsRules
from metaharvest.model import ListVersion, Reach
from metaharvest.model.values import frozen
from metaharvest.pipeline.full_text.landing import is_login_address
from metaharvest.pipeline.full_text.walk import Answer, Reason, Refusal, refusal_of
from metaharvest.text import shown_url

_ACCEPT = "application/pdf, text/html;q=0.9, application/xhtml+xml;q=0.9, application/xml;q=0.8, */*;q=0.5"
_SECONDS = 600.0
"""The time that one request may take, with its redirects: a file of 100 MB over a slow line."""

_LOWEST_SPEED = 1_000
"""Bytes a second: a file of 600 KB takes ten minutes. A server that is slower holds up the other documents."""


@frozen
class Unmodified:
    """The file is still the version that is known."""


class Refused(Exception):
    """A redirect leads where no file is."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class Servers:
    """The behaviour of servers, kept for a run: failures in a row, and the robots.txt of each."""

    def __init__(self, settings: Settings) -> None:
        policy = settings.network_policy()
        changes = {
            "obey_robots": True,
            "max_document_bytes": settings.pipeline.largest_file,
            "document_deadline": max(policy.document_deadline, _SECONDS),
        }
        self.http = policy.model_copy(update=changes)
        self.hosts = HostHealth(self.http)
        self.answers = ServerHealth(self.http)
        self.robots: Mapping[str, RobotsRules] = {}


def fetcher_for(settings: Settings, servers: Servers, leases: HostLeases | None) -> Fetcher:
    """The client for files. Raises SettingsError."""
    return Fetcher(
        servers.http,
        name=settings.harvester.name,
        administrator=next(iter(settings.harvester.administrators), None),
        at_once=settings.harvester.workers,
        leases=leases,
        accept=_ACCEPT,
        lowest_speed=_LOWEST_SPEED,
        health=servers.hosts,
    )


class Crawler:
    """Requests addresses with a client for one search. A failure that may pass is tried again, as the settings say.

    A server that fails several times in a row gets no more requests in this run. The last answer counts in the memory
    of the client until the next request, or `drop()`. `stops` is true when nothing new may begin.
    """

    def __init__(self, fetcher: Fetcher, servers: Servers, stops: Callable[[], bool]) -> None:
        self.stops = stops
        self._fetcher = fetcher
        self._servers = servers.answers
        self._http: HttpSettings = fetcher.http
        self._bytes = 0

    def drop(self) -> None:
        """The last answer is of no more use."""
        self._fetcher.memory.give_back(self._bytes)
        self._bytes = 0

    async def get(self, url: str, reach: Reach, known: ListVersion | None = None) -> Answer | Refusal | Unmodified:
        """The answer of the server of `url`, or why there is none. `known`: see Fetcher.fetch."""
        self.drop()
        attempts = Attempts(self._http, self._http.document_deadline)
        while True:
            try:
                self._servers.require_well(url)
                answer = await self._get_once(url, reach, known)
                self._servers.answered(url)
                return answer
            except Refused as error:
                return error.refusal
            except FetchError as error:
                self._servers.failed_with(url, error)
                failure, wait = attempts.after(error)
            if wait is None or self.stops():
                return refusal_of(failure)
            await asyncio.sleep(wait)

    async def _get_once(self, url: str, reach: Reach, known: ListVersion | None) -> Answer | Unmodified:
        """Raises FetchError and Refused."""
        seen = {url}

        async def redirected(address: str) -> None:
            if address in seen:
                raise Refused(Refusal(Reason.LOOP, f"{shown_url(url)} is redirected in a circle."))
            if is_login_address(address):
                raise Refused(
                    Refusal(Reason.LOGIN, f"{shown_url(url)} is redirected to a login, {shown_url(address)}.")
                )
            seen.add(address)
            await self._require_allowed(address, reach)

        await self._require_allowed(url, reach)
        response, content = await self._fetcher.fetch(url, reach=reach, known=known, on_redirect=redirected)
        if response.status == 304:
            return Unmodified()
        self._bytes = len(content)
        self._fetcher.memory.take(self._bytes)
        return Answer(
            response.url,
            content,
            response.sha256,
            response.media_type,
            response.link,
            response.etag,
            response.last_modified,
        )

    async def _require_allowed(self, url: str, reach: Reach) -> None:
        """Raises Refused if the robots.txt of the server forbids the address."""
        finding = await self._fetcher.robots.forbids(url, reach)
        if finding is not None:
            message = f"The robots.txt of its server does not let programs ask for {shown_url(url)}."
            raise Refused(Refusal(Reason.BLOCKED, message))
