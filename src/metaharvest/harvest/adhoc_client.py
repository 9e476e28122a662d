"""Asks a source repository outside of a run: before its registration, or for a person's question."""

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
    """Return the result of `call` about the source repository of this site, under the network policy of the settings.

    Raises SettingsError if the settings name something unusable, and the errors of `call`.
    """
    harvester = settings.harvester
    administrator = next(iter(harvester.administrators), None)

    async def asked() -> Answer:
        async with Fetcher(settings.network_policy(), name=harvester.name, administrator=administrator) as fetcher:
            return await call(site, fetcher, Deadlines(StopSignal()))

    return asyncio.run(asked())
