"""Asks a repository outside of a run: what it is, before it is registered, or what a person wants to know of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from metaharvest.config.settings import Settings
from metaharvest.fetch.client import Fetcher
from metaharvest.harvest.deadlines import Deadlines, StopSignal
from metaharvest.model import Site
from metaharvest.sources.base import TimeBudget

Answer = TypeVar("Answer")


def ask(settings: Settings, site: Site, call: Callable[[Site, Fetcher, TimeBudget], Awaitable[Answer]]) -> Answer:
    """What `call` returns about the repository of this site, which it asks under the network policy of the settings.

    Raises SettingsError for what the settings name and cannot be used, and what `call` raises.
    """
    harvester = settings.harvester
    administrator = next(iter(harvester.administrators), None)

    async def asked() -> Answer:
        async with Fetcher(settings.network_policy(), name=harvester.name, administrator=administrator) as fetcher:
            return await call(site, fetcher, Deadlines(StopSignal()))

    return asyncio.run(asked())
