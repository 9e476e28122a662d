"""Fetches single documents for a list, under the network policy of the harvest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from metaharvest.config.settings import Settings
from metaharvest.errors import FetchError
from metaharvest.fetch.client import Fetcher
from metaharvest.model import ListedDocument, Network, Site, SiteOptions
from metaharvest.sources.harvest_list.source import HarvestListSource


def fetch_documents(urls: Iterable[str], settings: Settings, networks: Sequence[Network]) -> list[bytes | FetchError]:
    """The bytes of the documents at these URLs, or the error for each that could not be fetched.

    `networks` are allowed beside the networks of the settings.
    """
    site = Site(0, "", "", (), options=SiteOptions(allow_networks=tuple(networks)))
    return asyncio.run(_fetch(list(urls), settings, site))


async def _fetch(urls: list[str], settings: Settings, site: Site) -> list[bytes | FetchError]:
    administrator = next(iter(settings.harvester.administrators), None)
    async with Fetcher(settings.http, name=settings.harvester.name, administrator=administrator) as fetcher:
        source = HarvestListSource(site, fetcher)
        return [await _fetch_one(url, source) for url in urls]


async def _fetch_one(url: str, source: HarvestListSource) -> bytes | FetchError:
    try:
        return (await source.fetch(ListedDocument("", 0, "", url))).content
    except FetchError as error:
        return error
