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


def ask(
    settings: Settings,
    site: Site,
    call: Callable[[Site, Fetcher, TimeBudget], Awaitable[Answer]],
    seconds: float = 0,
) -> Answer:
    """Return the result of `call` about the source repository of this site, under the network policy of the settings.

    `call` has this time, or the time of the settings for a site if that is shorter: a source repository can always have
    more to say.

    Raises SettingsError if the settings name something unusable, and the errors of `call`.
    """
    harvester = settings.harvester
    administrator = next(iter(harvester.administrators), None)
    limits = [limit for limit in (seconds, harvester.site_deadline) if limit]
    deadlines = Deadlines(StopSignal()).after_questions(min(limits, default=0))

    async def asked() -> Answer:
        async with Fetcher(settings.network_policy(), name=harvester.name, administrator=administrator) as fetcher:
            return await call(site, fetcher, deadlines)

    return asyncio.run(asked())
