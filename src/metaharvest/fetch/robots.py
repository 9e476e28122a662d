"""Checks if a server's robots.txt forbids the harvester to request an address (RFC 9309); read once a run and server.

A robots.txt may give each of thousands of user agents thousands of rules. Only the groups that name the harvester
count; without one, the groups for all (`*`). Lines of other groups are left out before Protego reads the rest, so that
the cost is linear in its bytes.

Sites are registered by people who know each other: the report names forbidden addresses, and the rules are obeyed only
if the settings say so. A robots.txt that is missing, or cannot be read, forbids nothing.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from copy import copy
from urllib.parse import urlsplit

from protego import Protego

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, NotAsked
from metaharvest.fetch.health import server_of
from metaharvest.fetch.stops import Stops, ending_after
from metaharvest.model import Finding, Level, Reach
from metaharvest.model.values import frozen
from metaharvest.text import shown_url

log = logging.getLogger(__name__)

MOST_BYTES = 524_288
"""Bytes of a robots.txt that are read; RFC 9309 (2.5) asks for at least 500 KiB."""

MOST_RULES = 2_000
"""The most rules that count; well-known servers have some hundred for all user agents."""

LONGEST_RULE = 2_048
MOST_WILDCARDS = 10
"""The most `*` in a rule that counts: for each URL, Protego searches each part between two of them."""

_AGENT = ("user-agent", "useragent", "user agent")
_RULES = ("allow", "disallow")
_MISSPELT = ("dissallow", "dissalow", "disalow", "diasllow", "disallaw")
_TOKEN = re.compile(r"[a-z_-]*")

_PATIENCE = 30.0
_SCHEMES = ("http", "https")

Fetch = Callable[..., Awaitable[tuple[object, bytes]]]
"""The type of Fetcher.fetch."""


@frozen
class RobotsRules:
    """The rules of a robots.txt for the harvester; `left_out`: rules beyond the limits."""

    parsed: Protego
    left_out: int = 0

    def allow(self, url: str) -> bool:
        """True if the harvester may ask for this URL."""
        return self.parsed.can_fetch(url, "*")


def rules_for(product: str, content: bytes) -> RobotsRules:
    """The rules for the user agent `product`, in lower case."""
    ours: dict[str, None] = {}
    for_all: dict[str, None] = {}
    names_us = False
    groups: list[dict[str, None]] = []
    was_agent = False
    for field, value in _lines(content[:MOST_BYTES].decode("utf-8-sig", "replace")):
        if field == "user-agent":
            groups = groups if was_agent else []
            whose = value.lower()
            if _TOKEN.match(whose)[0] == product:  # type: ignore[index]
                names_us = True
                groups = [*(each for each in groups if each is not ours), ours]
            elif whose.startswith("*"):
                groups = [*(each for each in groups if each is not for_all), for_all]
        elif value:
            for group in groups:
                group[f"{field}: {value}"] = None
        was_agent = field == "user-agent"
    rules = ours if names_us else for_all
    bounded = [rule for rule in rules if len(rule) <= LONGEST_RULE and rule.count("*") <= MOST_WILDCARDS]
    kept = bounded[:MOST_RULES]
    return RobotsRules(Protego.parse("\n".join(("User-agent: *", *kept))), len(rules) - len(kept))


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Field and value of each rule and each user agent; the colon between them may be missing."""
    for line in text.splitlines():
        bare = line.partition("#")[0].strip()
        field, colon, value = bare.partition(":")
        if not colon or len(field) > 20:
            field, _, value = bare.partition(" ")
        field = field.strip().lower()
        if field in _AGENT:
            yield "user-agent", value.strip()
        elif field in _RULES or field in _MISSPELT:
            yield "allow" if field == "allow" else "disallow", value.strip()
        elif field == "crawl-delay":
            # It belongs to a group, and so ends the lines that name the user agents of the group.
            yield field, ""


class Robots:
    """The robots.txt of all servers of one run, fetched by `fetch`; `product` is their name for the harvester."""

    def __init__(self, fetch: Fetch, http: HttpSettings, product: str) -> None:
        self._fetch = fetch
        self._http = http
        self._product = product
        self._files: dict[str, asyncio.Future[RobotsRules | None]] = {}
        self._stops: Stops | None = None

    def until_stopped(self, stops: Stops) -> Robots:
        """The same for one site: forbids() ends some seconds after the site is stopped, by RequestEnded."""
        its = copy(self)
        its._stops = stops
        return its

    async def close(self) -> None:
        """End the requests under way."""
        under_way = [file for file in self._files.values() if not file.done()]
        for file in under_way:
            file.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

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
        known = self._files.get(host)
        if known is not None and known.done() and (read := known.result()) is not None:  # almost always
            return None if read.allow(url) else self._finding(url, host)
        while True:
            others = self._files.get(host)
            file = others or asyncio.ensure_future(self._read(scheme, host, reach))
            self._files.setdefault(host, file)
            async with ending_after(self._stops):  # other sites may wait for the same file
                rules = await asyncio.shield(file)
            if rules is None and others is not None:
                continue  # the other request was not allowed to read them: this one may be
            return None if rules is None or rules.allow(url) else self._finding(url, host)

    async def _read(self, scheme: str, host: str, reach: Reach) -> RobotsRules | None:
        """The rules; None: this request is not allowed to read them. A thread parses them, as this takes long."""
        try:
            address = f"{scheme}://{host}/robots.txt"
            _, content = await self._fetch(address, reach=reach, patience=_PATIENCE, is_aside=True)
        except FetchError as error:
            content = b""
            if error.findings[0].rule in ("http.address-not-public", "site.ca-file"):
                self._files.pop(host, None)
                return None
            if isinstance(error, NotAsked):
                self._files.pop(host, None)  # the next request reads them
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
