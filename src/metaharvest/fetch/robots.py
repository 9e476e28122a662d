"""Checks if a server's robots.txt forbids the harvester to request an address (RFC 9309); read once a run and server.

Sites are registered by people who know each other: the report names forbidden addresses, and the rules are obeyed only
if the settings say so. A robots.txt that is missing, or cannot be read, forbids nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import urlsplit

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError
from metaharvest.fetch.health import server_of
from metaharvest.fetch.robots_rules import MOST_RULES, RobotsRules, rules_for
from metaharvest.model import Finding, Level, Reach
from metaharvest.text import shown_url

log = logging.getLogger(__name__)

_PATIENCE = 30.0
_SCHEMES = ("http", "https")

Fetch = Callable[..., Awaitable[tuple[object, bytes]]]
"""The type of Fetcher.fetch."""


class Robots:
    """The robots.txt of all servers of one run, fetched by `fetch`; `product` is their name for the harvester."""

    def __init__(self, fetch: Fetch, http: HttpSettings, product: str) -> None:
        self._fetch = fetch
        self._http = http
        self._product = product
        self._files: dict[str, asyncio.Future[RobotsRules | None]] = {}

    def known(self) -> dict[str, RobotsRules]:
        """The rules that were read, by the name of the server."""
        return {
            host: rules
            for host, file in self._files.items()
            if file.done()
            and not file.cancelled()
            and file.exception() is None
            and (rules := file.result()) is not None
        }

    def know(self, rules: Mapping[str, RobotsRules]) -> None:
        """Go on with the rules that an earlier client of the run has read. In the event loop."""
        for host, its in rules.items():
            self._files[host] = asyncio.get_running_loop().create_future()
            self._files[host].set_result(its)

    @property
    def is_binding(self) -> bool:
        """True if forbidden addresses are not requested."""
        return self._http.obey_robots

    async def forbids(self, url: str, reach: Reach) -> Finding | None:
        """The finding if `url` should not be requested; an error if the settings make it binding. None: it may be."""
        scheme = url.partition(":")[0]
        if scheme not in _SCHEMES and (scheme := urlsplit(url).scheme) not in _SCHEMES:
            return None
        host = server_of(url)

        async def fetch() -> bytes:
            address = f"{scheme}://{host}/robots.txt"
            _, content = await self._fetch(address, reach=reach, patience=_PATIENCE, is_aside=True)
            return content

        while True:
            others = self._files.get(host)
            file = others or asyncio.ensure_future(self._read(host, fetch))
            self._files.setdefault(host, file)
            rules = await asyncio.shield(file)
            if rules is None and others is not None:
                continue  # the other request was not allowed to read them: this one may be
            return None if rules is None or rules.allow(url) else self._finding(url, host)

    async def _read(self, host: str, fetch: Callable[[], Awaitable[bytes]]) -> RobotsRules | None:
        """The rules; None: this request is not allowed to read them. A thread reads them, as this takes long."""
        try:
            content = await fetch()
        except FetchError as error:
            content = b""
            if error.findings[0].rule == "http.address-not-public":
                self._files.pop(host, None)
                return None
        rules = await asyncio.to_thread(rules_for, self._product, content)
        if rules.left_out:
            text = "%d rules in the robots.txt of %s are not kept to: %d are read, none with very many `*`"
            log.warning(text, rules.left_out, host, MOST_RULES)
        return rules

    def _finding(self, url: str, host: str) -> Finding:
        message = f"The robots.txt of {host} does not allow the harvester to ask for {shown_url(url)}."
        if self.is_binding:
            message += " It was not asked for: the harvester's settings make that binding."
        remedy = (
            f'Ask whoever runs the web server to allow it there: "User-agent: {self._product}", then "Allow: /". '
            "Lines for all others do not count for the harvester where there are lines that name it."
        )
        return Finding("http.robots", message, remedy, Level.ERROR if self.is_binding else Level.WARNING)
