"""Harvests the sites of a run in parallel, in one event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from urllib.parse import urlsplit

from sqlalchemy import Engine

from metaharvest import reports
from metaharvest.config.settings import HttpSettings, Settings
from metaharvest.database.engine import database_errors, readers
from metaharvest.errors import DatabaseError, RunLost, ScheduleError, SettingsError
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.limits import FairLimiter, FairPlace, Waiting
from metaharvest.fetch.memory import MemoryBudget
from metaharvest.harvest.checks.checker import Checker
from metaharvest.harvest.context import Progress, RunContext
from metaharvest.harvest.deadlines import Deadlines
from metaharvest.harvest.limits import RunLimits
from metaharvest.harvest.origin_turns import OriginTurns
from metaharvest.harvest.site import harvest_site
from metaharvest.harvest.site_target import RunTargets
from metaharvest.harvest.tasks import held_for, in_thread, side_by_side
from metaharvest.journal.internal_errors import is_no_memory
from metaharvest.journal.journal import Clock, Journal
from metaharvest.ledger.spot_check_rows import sites_to_look_at
from metaharvest.model import Finding, SameOrigin, Site, SiteRunKind
from metaharvest.sites.origin_names import sites_of_one_origin
from metaharvest.sites.rows import BrokenSite
from metaharvest.sources.lookup import SourceFor
from metaharvest.targets.interruption import interrupted_by
from metaharvest.targets.lookup import Targets
from metaharvest.targets.nothing import NoTarget

log = logging.getLogger(__name__)

Chosen = tuple[Site | BrokenSite, SiteRunKind]
"""A site to harvest, or to report as broken, and why."""

READING_THREADS = 8
"""Threads that read lists, the ledger and the target's holdings; fewer than the connections to the database."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Harvests sites for one run; `http` is the network policy."""

    settings: Settings
    http: HttpSettings
    engine: Engine
    journal: Journal
    targets: Targets
    source: SourceFor
    progress: Progress
    clock: Clock
    deadlines: Deadlines
    limits: RunLimits
    full: bool = False

    def harvest(
        self, chosen: Sequence[Chosen], sites: Collection[Site | BrokenSite], to_retry: Collection[int]
    ) -> list[str]:
        """Harvest these of the registered sites. Returns the names of the sites that had no time to begin.

        Raises DatabaseError or RunLost, which end the run for all sites, and SettingsError.
        """
        not_begun: list[list[str]] = []

        async def harvest() -> None:
            not_begun.append(await self._harvest(chosen, sites, to_retry))

        try:
            asyncio.run(harvest())
        except RuntimeError as error:
            # To end its own threads, the event loop starts one: that fails if there is no memory for it.
            if not (not_begun and is_no_memory(error)):
                raise
            log.warning("The event loop could not end its threads: %s", error)
        return not_begun[0]

    async def _harvest(
        self, chosen: Sequence[Chosen], sites: Collection[Site | BrokenSite], to_retry: Collection[int]
    ) -> list[str]:
        harvester = self.settings.harvester
        administrator = next(iter(harvester.administrators), None)
        with RunTargets(self.targets, readers(self.engine)) as targets:
            async with (
                Fetcher(
                    self.http,
                    name=harvester.name,
                    administrator=administrator,
                    at_once=harvester.workers,
                    memory=MemoryBudget(self.limits.memory),
                ) as fetcher,
                Checker(
                    self.settings.validation, self.limits.check, partial(reports.make_ready, self.settings)
                ) as checker,
            ):
                loop = asyncio.get_running_loop()
                loop.set_default_executor(ThreadPoolExecutor(READING_THREADS, thread_name_prefix="reading"))

                def stored(size: int) -> None:
                    with suppress(RuntimeError):  # the event loop has ended: the count is not needed any more
                        loop.call_soon_threadsafe(fetcher.memory.give_back, size)

                self.journal.on_stored(stored)
                ctx = RunContext(
                    self.settings,
                    self.engine,
                    self.journal,
                    targets,
                    fetcher,
                    checker,
                    self.progress,
                    self.clock,
                    {site.site_id: site.name for site in sites},
                    to_retry,
                    self.deadlines,
                    self.limits.batch,
                    await in_thread(self._to_look_at),
                    self.full,
                )
                with self.deadlines.stop.calling(fetcher.end_waiting):
                    origins = sites_of_one_origin(sites, self.settings.target_of)
                    enabled = frozenset(site.site_id for site in sites if site.enabled)
                    not_begun = await self._harvest_all(chosen, origins, enabled, ctx)
                for target, findings in targets.given_up:
                    await self.journal.target_away(target, findings)
                return not_begun

    def _to_look_at(self) -> Collection[int]:
        """The sites with due spot checks: one question for all sites, as few have any."""
        if not self.settings.harvester.look_again:
            return ()
        with database_errors(self.engine), readers(self.engine)() as session:
            return sites_to_look_at(session, self.journal.today)

    async def _harvest_all(
        self, chosen: Sequence[Chosen], origins: Mapping[int, frozenset[int]], enabled: frozenset[int], ctx: RunContext
    ) -> list[str]:
        """Harvest the sites in parallel, but the sites of one origin in turns. The first RunLost ends all.

        The sites of one host never hold all places: a hanging host does not block the others.
        """
        at_once = FairLimiter(self.limits.sites_at_once, Waiting())
        with_slow_ones = FairLimiter(4 * self.limits.sites_at_once, Waiting())
        not_begun: list[str] = []

        async def harvest(site: Site | BrokenSite, kind: SiteRunKind, turns: OriginTurns) -> None:
            has_list = kind is not SiteRunKind.RETRY
            async with turns.turn(site.name if has_list else "") as turn:
                if ctx.deadlines.stop_reason():
                    not_begun.append(site.name)
                else:
                    others = origins.get(site.site_id, frozenset()) - {site.site_id}
                    same_origin = SameOrigin(others, others & enabled)
                    await self._harvest_one(site, kind, replace(ctx, same_origin=same_origin, turn=turn))

        async def harvest_origin(sites: Sequence[Chosen]) -> None:
            host, turns = _host_of(sites[0][0]), OriginTurns(len(sites))
            async with (
                held_for(FairPlace(with_slow_ones, host), inf),
                held_for(FairPlace(at_once, host), self.limits.site_seconds),
                side_by_side() as tasks,
            ):
                for site, kind in sites:
                    tasks.create_task(harvest(site, kind, turns))

        try:
            async with side_by_side() as tasks:
                for sites in _by_origin(chosen, origins):
                    tasks.create_task(harvest_origin(sites))
        except BaseException:
            self.journal.abandon()
            raise
        finally:
            self.journal.on_stored(lambda size: None)
        return not_begun

    async def _harvest_one(self, site: Site | BrokenSite, kind: SiteRunKind, ctx: RunContext) -> None:
        """Harvest this site, by its own deadline.

        An unexpected error costs this site alone: the next run goes on with its open documents.
        """
        try:
            if isinstance(site, BrokenSite):
                await ctx.journal.site_broken(site, kind)
            else:
                await self._harvest_or_retry(site, kind, ctx)
        except (DatabaseError, RunLost):
            raise
        except Exception as error:
            log.exception("The harvest of %s failed", site.name)
            await ctx.journal.site_met_internal_error(site, kind, error)

    def _goes_nowhere(self, site: Site) -> bool:
        """True if the site has no target: then its part of the run is a rehearsal."""
        with suppress(SettingsError):  # it is reported where the target is opened
            return isinstance(self.targets.of(site.name), NoTarget)
        return False

    async def _harvest_or_retry(self, site: Site, kind: SiteRunKind, ctx: RunContext) -> None:
        deadlines = ctx.deadlines.after_site(self.settings.harvester.site_deadline)
        given_up = partial(ctx.journal.no_room_for, site.site_id)
        ctx = replace(ctx, deadlines=replace(deadlines, given_up=given_up))
        ctx.progress.site_began(site.name)
        site = self.settings.applied_to(site)
        if self._goes_nowhere(site):
            if kind is SiteRunKind.RETRY:
                return  # failed documents are retried once there is a target
            site, ctx = site.for_rehearsal(), replace(ctx, same_origin=ctx.same_origin.for_rehearsal())
        try:
            source = self.source(site, ctx.fetcher)
        except ScheduleError as error:
            finding = Finding("site.row", str(error))
            await ctx.journal.site_broken(
                BrokenSite(site.registered_id, site.name, site.list_url, site.enabled, (finding,), site.contacts), kind
            )
            return
        with interrupted_by(ctx.deadlines.stop_reason):
            list_was_read = await harvest_site(site, kind, source, ctx)
            if not list_was_read and site.site_id in ctx.to_retry and not ctx.deadlines.stop_reason():
                # Documents that failed transiently are retried, even if the list could not be read.
                await harvest_site(site, SiteRunKind.RETRY, source, ctx)
        ctx.progress.site_ended(site.name)


def _by_origin(chosen: Sequence[Chosen], origins: Mapping[int, frozenset[int]]) -> Iterable[list[Chosen]]:
    """The sites of each origin together, in the order of the first of each."""
    groups: dict[frozenset[int], list[Chosen]] = {}
    for site, kind in chosen:
        groups.setdefault(origins.get(site.site_id, frozenset({site.site_id})), []).append((site, kind))
    return groups.values()


def _host_of(site: Site | BrokenSite) -> str:
    """The host of a site's list; without one, a name of the site's own."""
    try:
        host = None if isinstance(site, BrokenSite) else urlsplit(site.list_url).hostname
    except ValueError:
        host = None
    return host.rstrip(".") if host else f"site {site.site_id}"
