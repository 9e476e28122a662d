"""Harvests the sites of a run in parallel, in one event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from functools import partial
from math import inf

from metaharvest.config.settings import HttpSettings, Settings
from metaharvest.database.engine import database_errors, readers
from metaharvest.errors import DatabaseError, RunLost, ScheduleError
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.held_hosts import HostLeases
from metaharvest.fetch.limits import FairLimiter, FairPlace, MemoryBudget, Waiting
from metaharvest.harvest.checks.checker import Checker
from metaharvest.harvest.context import Chosen, Group, Progress, RunContext, by_origin, host_of
from metaharvest.harvest.deadlines import Deadlines
from metaharvest.harvest.event_loop import RunLoop
from metaharvest.harvest.live import LiveProgress, SiteStops, Watch
from metaharvest.harvest.origin_turns import OriginTurns
from metaharvest.harvest.setup import HarvestSetup
from metaharvest.harvest.site import NOT_OFFERED, harvest_site
from metaharvest.harvest.site_target import RunTargets
from metaharvest.harvest.tasks import held_for, in_background, in_thread, side_by_side
from metaharvest.journal.internal_errors import is_no_memory
from metaharvest.journal.journal import Journal
from metaharvest.journal.runs import unread_lists
from metaharvest.ledger.spot_check_rows import sites_to_look_at
from metaharvest.model import Finding, SameOrigin, Site, SiteRunKind
from metaharvest.model.values import frozen
from metaharvest.sites.rows import BrokenSite
from metaharvest.sites.same_source import sites_of_one_origin
from metaharvest.targets.base import Target
from metaharvest.targets.interruption import interrupted_by

log = logging.getLogger(__name__)

HarvestGroup = Callable[[Group], Coroutine[None, None, None]]

READING_THREADS = 8
"""Threads that read lists, the ledger and the target's holdings; fewer than the connections to the database."""


@frozen
class Dispatcher:
    """Harvests sites for one run; `http` is the network policy.

    `full`: the sites whose source repositories list all of their records. `leases`: other processes ask the same hosts.
    """

    setup: HarvestSetup
    http: HttpSettings
    journal: Journal
    progress: Progress
    deadlines: Deadlines
    full: frozenset[int] = frozenset()
    leases: HostLeases | None = None
    site_stops: SiteStops = field(default_factory=SiteStops)
    noted_away: list[Target] = field(default_factory=list)

    def harvest(
        self, chosen: Sequence[Chosen], sites: Collection[Site | BrokenSite], to_retry: Collection[int]
    ) -> list[str]:
        """Harvest these of the registered sites. Returns the names of the sites that had no time to begin.

        Raises DatabaseError or RunLost, which end the run for all sites, and SettingsError.
        """
        not_begun: list[list[str]] = []

        async def harvest() -> None:
            async with self._context(sites, to_retry, {site.name: site.site_id for site, _ in chosen}) as ctx:
                origins = sites_of_one_origin(sites, self.setup.settings.target_of)
                enabled = frozenset(site.site_id for site in sites if site.enabled)
                not_begun.append(await self._harvest_all(chosen, origins, enabled, ctx))

        try:
            with asyncio.Runner(loop_factory=RunLoop) as runner:
                runner.run(harvest())
        except RuntimeError as error:
            # To end its own threads, the event loop starts one: that fails if there is no memory for it.
            if not (not_begun and is_no_memory(error)):
                raise
            log.warning("The event loop could not end its threads: %s", error)
        return not_begun[0]

    def serve(self, lead: Callable[[HarvestGroup], Coroutine[None, None, None]]) -> None:
        """Run `lead`, which harvests groups of sites by the function that it gets, side by side.

        Raises what `lead` raises.
        """

        async def serve() -> None:
            async with self._context((), (), {}) as ctx:
                try:
                    await lead(partial(self._harvest_group, ctx))
                except BaseException:
                    self.journal.abandon()
                    raise
                finally:
                    self.journal.on_stored(lambda size: None)

        with asyncio.Runner(loop_factory=RunLoop) as runner:
            runner.run(serve())

    @asynccontextmanager
    async def _context(
        self, sites: Collection[Site | BrokenSite], to_retry: Collection[int], chosen: Mapping[str, int]
    ) -> AsyncIterator[RunContext]:
        """The context of all sites that are harvested in it: client, checks, targets; people can watch and stop them.

        `chosen` are the numbers of the first sites by name.
        """
        settings, limits, harvester = self.setup.settings, self.setup.limits, self.setup.settings.harvester
        administrator = next(iter(harvester.administrators), None)
        with RunTargets(self.setup.targets, readers(self.setup.engine)) as targets:
            async with (
                Fetcher(
                    self.http,
                    name=harvester.name,
                    administrator=administrator,
                    at_once=harvester.workers,
                    memory=MemoryBudget(limits.memory),
                    leases=self.leases,
                ) as fetcher,
                Checker(
                    settings.validation,
                    limits.check,
                    partial(_make_reports_ready, settings),
                ) as checker,
            ):
                loop = asyncio.get_running_loop()
                loop.set_default_executor(ThreadPoolExecutor(READING_THREADS, thread_name_prefix="reading"))

                def stored(size: int) -> None:
                    with suppress(RuntimeError):  # the event loop has ended: the count is not needed any more
                        loop.call_soon_threadsafe(fetcher.memory.give_back, size)

                self.journal.on_stored(stored)
                progress = LiveProgress(self.progress, chosen, self.setup.clock)
                ctx = RunContext(
                    settings,
                    self.setup.engine,
                    self.journal,
                    targets,
                    fetcher,
                    checker,
                    progress,
                    self.setup.clock,
                    {site.site_id: site.name for site in sites},
                    to_retry,
                    self.deadlines,
                    limits.batch,
                    await in_thread(self._to_look_at),
                )
                watch = Watch(self.journal, progress, self.deadlines.stop, self.site_stops, limits.watch_seconds)
                with self.deadlines.stop.calling(fetcher.end_waiting):
                    async with in_background(watch.keep()):
                        yield ctx
                await self._note_targets_away(targets)

    async def _note_targets_away(self, targets: RunTargets) -> None:
        """Note each target that stopped answering, once."""
        for target, findings in targets.given_up:
            if target not in self.noted_away:
                self.noted_away.append(target)
                await self.journal.target_away(target, findings)

    async def _harvest_group(self, ctx: RunContext, group: Group) -> None:
        """Harvest the sites of one origin, in turns."""
        assert isinstance(ctx.progress, LiveProgress)
        ctx.progress.add({site.name: site.site_id for site, _ in group.chosen})
        ctx = replace(
            ctx,
            site_names={site.site_id: site.name for site in group.sites},
            to_retry=group.to_retry,
            to_look_at=await in_thread(partial(self._to_look_at, [site.site_id for site, _ in group.chosen])),
            used_seconds=group.used_seconds,
        )
        origins = sites_of_one_origin(group.sites, self.setup.settings.target_of)
        enabled = frozenset(site.site_id for site in group.sites if site.enabled)
        turns = await self._turns(group.chosen, origins, enabled)
        async with side_by_side() as tasks:
            for site, kind in group.chosen:
                its = replace(ctx, full=site.site_id in group.full)
                tasks.create_task(self._in_turn(site, kind, its, turns, origins, enabled))
        await self._note_targets_away(ctx.targets)

    async def _turns(
        self, chosen: Sequence[Chosen], origins: Mapping[int, frozenset[int]], enabled: frozenset[int]
    ) -> OriginTurns:
        """The turns of these sites of one origin.

        Lists of this origin that failed before an interruption count as unread.
        """
        to_list = {site.site_id for site, kind in chosen if kind is not SiteRunKind.RETRY}
        others = (origins.get(chosen[0][0].site_id, frozenset()) & enabled) - to_list

        def unread() -> list[str]:
            with database_errors(self.setup.engine), readers(self.setup.engine)() as session:
                return unread_lists(session, self.journal.run_id, self.journal.today, others, NOT_OFFERED)

        return OriginTurns(len(chosen), await in_thread(unread) if others else ())

    async def _in_turn(
        self,
        site: Site | BrokenSite,
        kind: SiteRunKind,
        ctx: RunContext,
        turns: OriginTurns,
        origins: Mapping[int, frozenset[int]],
        enabled: frozenset[int],
    ) -> bool:
        """Harvest the site when it is its turn among the sites of its origin; False if there is no time to begin."""
        has_list = kind is not SiteRunKind.RETRY
        async with turns.turn(site.name if has_list else "") as turn:
            if self.site_stops.of(site.site_id).is_set():
                ctx.progress.site_ended(site.name)
            elif ctx.deadlines.stop_reason():
                return False
            else:
                others = origins.get(site.site_id, frozenset()) - {site.site_id}
                same_origin = SameOrigin(others, others & enabled)
                await self._harvest_one(site, kind, replace(ctx, same_origin=same_origin, turn=turn))
        return True

    def _to_look_at(self, site_ids: Collection[int] | None = None) -> Collection[int]:
        """The sites with due spot checks: all, or only the ones among `site_ids`."""
        if not self.setup.settings.harvester.look_again:
            return ()
        with database_errors(self.setup.engine), readers(self.setup.engine)() as session:
            return sites_to_look_at(session, self.journal.today, site_ids)

    async def _harvest_all(
        self, chosen: Sequence[Chosen], origins: Mapping[int, frozenset[int]], enabled: frozenset[int], ctx: RunContext
    ) -> list[str]:
        """Harvest the sites in parallel, but the sites of one origin in turns. The first RunLost ends all.

        The sites of one host never hold all places: a hanging host does not block the others.
        """
        at_once = FairLimiter(self.setup.limits.sites_at_once, Waiting())
        with_slow_ones = FairLimiter(4 * self.setup.limits.sites_at_once, Waiting())
        not_begun: list[str] = []

        async def harvest(site: Site | BrokenSite, kind: SiteRunKind, turns: OriginTurns) -> None:
            if not await self._in_turn(site, kind, ctx, turns, origins, enabled):
                not_begun.append(site.name)

        async def harvest_origin(sites: Sequence[Chosen]) -> None:
            host, turns = host_of(sites[0][0]), await self._turns(sites, origins, enabled)
            async with (
                held_for(FairPlace(with_slow_ones, host), inf),
                held_for(FairPlace(at_once, host), self.setup.limits.site_seconds),
                side_by_side() as tasks,
            ):
                for site, kind in sites:
                    tasks.create_task(harvest(site, kind, turns))

        try:
            async with side_by_side() as tasks:
                for sites in by_origin(chosen, origins):
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
        finally:
            ctx.progress.site_ended(site.name)

    async def _harvest_or_retry(self, site: Site, kind: SiteRunKind, ctx: RunContext) -> None:
        seconds = self.setup.settings.harvester.site_deadline
        deadlines = ctx.deadlines.after_site(seconds, ctx.used_seconds.get(site.site_id, 0.0))
        given_up = partial(ctx.journal.no_room_for, site.site_id)
        site_stop = self.site_stops.of(site.site_id)
        deadlines = replace(deadlines, given_up=given_up, site_stop=site_stop)
        ctx = replace(ctx, deadlines=deadlines, full=ctx.full or site.site_id in self.full)
        ctx.progress.site_began(site.name)
        site = self.setup.settings.applied_to(site)
        if self.setup.goes_nowhere(site.name):
            if kind is SiteRunKind.RETRY:
                return  # failed documents are retried once there is a target
            site, ctx = site.for_rehearsal(), replace(ctx, same_origin=ctx.same_origin.for_rehearsal())
        try:
            source = self.setup.source(site, ctx.fetcher.until_stopped(ctx.deadlines))
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
        ctx.used_seconds[site.site_id] = deadlines.used_by_site(seconds)


def _make_reports_ready(settings: Settings) -> None:
    from metaharvest.reports.render import make_ready

    make_ready(settings)
