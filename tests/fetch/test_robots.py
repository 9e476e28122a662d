"""Requests that share a robots.txt, of which some may not read it."""

from __future__ import annotations

import asyncio
from ipaddress import ip_network

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, NotAsked
from metaharvest.fetch.robots import Robots
from metaharvest.model import Finding, Reach

URL = "http://10.0.0.1/private/a.xml"
INSIDE = Reach(networks=(ip_network("10.0.0.0/8"),))


async def fetch(_url: str, *, reach: Reach, **_: object) -> tuple[object, bytes]:
    await asyncio.sleep(0)
    if not reach.networks:
        raise FetchError(Finding("http.address-not-public", "10.0.0.1 is not public.", "Allow it."))
    return None, b"User-agent: *\nDisallow: /private"


def test_a_request_that_may_read_the_rules_does_not_use_the_answer_to_one_that_may_not() -> None:
    async def asked() -> list[str | None]:
        robots = Robots(fetch, HttpSettings(), "metaharvest")
        found = await asyncio.gather(robots.forbids(URL, Reach()), robots.forbids(URL, INSIDE))
        assert robots.known()
        return [each.rule if each else None for each in found]

    assert asyncio.run(asked()) == [None, "http.robots"]


def test_rules_that_were_not_asked_for_are_asked_for_by_the_next_request() -> None:
    asked: list[str] = []

    async def busy_once(url: str, *, reach: Reach, **_: object) -> tuple[object, bytes]:
        asked.append(url)
        if len(asked) == 1:
            raise NotAsked(Finding("http.busy", "All connections were in use.", "Wait."), "10.0.0.1", seconds=0.0)
        return None, b"User-agent: *\nDisallow: /private"

    async def found() -> list[str | None]:
        robots = Robots(busy_once, HttpSettings(), "metaharvest")
        return [each.rule if each else None for each in [await robots.forbids(URL, INSIDE) for _ in range(2)]]

    assert asyncio.run(found()) == [None, "http.robots"]
