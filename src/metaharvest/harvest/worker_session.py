"""A worker's part of a run: the sites of one origin, in slices that end at a checkpoint.

What a slice has committed stays. Its open site runs wait for the next slice, as after a crash.
"""

from __future__ import annotations

import json
import threading
import time
from collections import ChainMap
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from metaharvest.database.engine import database_errors, readers
from metaharvest.database.host_leases import HostLeases
from metaharvest.database.models import HarvestSiteRun
from metaharvest.harvest.context import Chosen, Group, Progress
from metaharvest.harvest.deadlines import Deadlines, StopSignal
from metaharvest.harvest.live import SiteStops
from metaharvest.harvest.run import afresh
from metaharvest.harvest.setup import HarvestSetup
from metaharvest.harvest.tasks import in_thread
from metaharvest.jobs.claims import Claim, HeldClaims
from metaharvest.jobs.policy import MOST_ATTEMPTS
from metaharvest.journal import runs, taken_requests
from metaharvest.journal.workers_journal import RunOfWorkers, WorkersJournal
from metaharvest.ledger import retries
from metaharvest.model import Finding, Site, SiteRunKind, SiteRunStatus
from metaharvest.model.values import frozen
from metaharvest.sites.registry import read_sites, read_sites_of
from metaharvest.sites.rows import BrokenSite

if TYPE_CHECKING:
    from metaharvest.harvest.dispatcher import HarvestGroup

_SITES_SECONDS = 10.0
"""The time after which a worker reads all sites again. To read 10,000 takes 50 ms of the processor."""

WORKERS_LOST = Finding(
    "harvest.workers-lost",
    f"Workers began the harvest of this site {MOST_ATTEMPTS} times, and did not come to its end.",
    "The administrator should read the output of the workers, and see whether their machines have enough memory.",
)


class SliceEnd:
    """The end of a slice: after a time of work, or as soon as the worker or its run is to end.

    Each site has a signal of its own, which a person may set, too: `is_over` says that it was the end of the slice.
    """

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._signals: list[StopSignal] = []
        self._seconds = seconds
        self._timer: threading.Timer | None = None

    def signal(self) -> StopSignal:
        """A signal that lets a harvest begin nothing new, as soon as the slice ends."""
        made = StopSignal()
        self._signals.append(made)
        if self.is_over:
            made.set()
        return made

    def end(self) -> None:
        """End the slice at its next checkpoint."""
        self.is_over = True
        for each in list(self._signals):
            each.set()

    def work_begins(self) -> None:
        """Begin to count the time: a list that takes long to read comes first, or no slice would get beyond it."""
        if self._timer is None:
            self._timer = threading.Timer(self._seconds, self.end)
            self._timer.daemon = True
            self._timer.start()

    def cancel(self) -> None:
        """Stop counting."""
        if self._timer is not None:
            self._timer.cancel()


@frozen
class SiteWork:
    """The work of a job, as its row has it: sites with the kind of their site run, and sites to harvest afresh.

    `ended` are the site runs of these sites that had ended in the run before the job was made. `seconds`: the part of
    its deadline that a site has used in earlier slices.
    """

    sites: Mapping[int, SiteRunKind]
    everything: frozenset[int] = frozenset()
    ended: frozenset[int] = frozenset()
    seconds: Mapping[int, float] = field(default_factory=dict)

    def text(self) -> str:
        """The work as text, for the row."""
        return json.dumps(
            {
                "sites": [[site_id, kind.value] for site_id, kind in self.sites.items()],
                "everything": sorted(self.everything),
                "ended": sorted(self.ended),
                "seconds": [[site_id, round(seconds, 3)] for site_id, seconds in self.seconds.items()],
            }
        )

    def with_more(self, more: SiteWork) -> SiteWork:
        """This work and more of it, for one job. A harvest of a list tries failing documents again, too."""
        sites = dict(self.sites)
        for site_id, kind in more.sites.items():
            if kind is not SiteRunKind.RETRY or site_id not in sites:
                sites[site_id] = kind
        seconds = {**more.seconds, **self.seconds}
        return SiteWork(sites, self.everything | more.everything, self.ended | more.ended, seconds)

    @classmethod
    def read(cls, text: str) -> SiteWork:
        """The work in this text."""
        found = json.loads(text)
        sites = {int(site_id): SiteRunKind(kind) for site_id, kind in found["sites"]}
        seconds = dict(found.get("seconds", ()))  # earlier versions stored none
        return cls(sites, frozenset(found["everything"]), frozenset(found["ended"]), seconds)


class Slices:
    """The slices under way in a worker, by site. The time of a slice counts from its first document on."""

    def __init__(self) -> None:
        self._ends: dict[int, SliceEnd] = {}
        self._names: dict[str, SliceEnd] = {}

    def begin(self, sites: Sequence[Site | BrokenSite], slice_end: SliceEnd, *, has_end: bool) -> None:
        """Begin a slice of these sites; without `has_end` it does not end by time."""
        for site in sites:
            self._ends[site.site_id] = slice_end
            if has_end:
                self._names[site.name] = slice_end

    def end(self, sites: Sequence[Site | BrokenSite]) -> None:
        """End the slice of these sites."""
        for site in sites:
            self._ends.pop(site.site_id, None)
            self._names.pop(site.name, None)

    def is_over(self, site_id: int) -> bool:
        """True if the slice of this site is over."""
        slice_end = self._ends.get(site_id)
        return slice_end is not None and slice_end.is_over

    def work_begins(self, name: str) -> None:
        """The first document of a site has its outcome."""
        if slice_end := self._names.get(name):
            slice_end.work_begins()


class _SliceProgress(Progress):
    def __init__(self, slices: Slices) -> None:
        self._slices = slices

    def documents_ended(self, name: str, number: int) -> None:
        """`number` more documents have their outcome."""
        if number:
            self._slices.work_begins(name)


class KnownSites:
    """All registered sites. A job needs the names and the origins of the others, which change seldom."""

    def __init__(self) -> None:
        self._sites: dict[int, Site | BrokenSite] = {}
        self._until = 0.0

    def read(self, session: Session, own: Collection[int]) -> dict[int, Site | BrokenSite]:
        """All sites by number: its `own` ones as they are now, the others at most ten seconds old."""
        if time.monotonic() >= self._until:
            self._sites = {site.site_id: site for site in read_sites(session)}
            self._until = time.monotonic() + _SITES_SECONDS
        others = {site_id: site for site_id, site in self._sites.items() if site_id not in own}
        return others | read_sites_of(session, own)


HarvestJob = Callable[[Claim, SliceEnd], Coroutine[None, None, bool]]


@frozen
class WorkerSession:
    """The harvest of many jobs of one run by a worker: they share a client, checks and a journal, as in a run alone."""

    setup: HarvestSetup
    run: RunOfWorkers
    held: HeldClaims
    stop: StopSignal = field(default_factory=StopSignal)
    slices: Slices = field(default_factory=Slices)
    site_stops: SiteStops = field(default_factory=SiteStops)
    known_sites: KnownSites = field(default_factory=KnownSites)

    def work(self, lead: Callable[[HarvestJob], Coroutine[None, None, None]]) -> None:
        """Work until `lead` ends, which harvests jobs by the function that it gets.

        Raises DatabaseError, RunLost, SettingsError.
        """
        # Imported here: the end of a run needs neither a client nor a validator.
        from metaharvest.harvest.dispatcher import Dispatcher

        its = self.setup
        with WorkersJournal(
            its.engine,
            its.settings,
            its.targets,
            its.clock,
            self.run,
            self.held,
            self.slices.is_over,
            its.limits.group,
        ) as journal:
            dispatcher = Dispatcher(
                its,
                its.settings.network_policy(),
                journal,
                _SliceProgress(self.slices),
                Deadlines(self.stop),
                site_stops=self.site_stops,
                leases=HostLeases(its.engine),
            )

            async def with_groups(harvest_group: HarvestGroup) -> None:
                await lead(partial(self._harvest_job, journal, harvest_group))

            dispatcher.serve(with_groups)

    async def _harvest_job(
        self, journal: WorkersJournal, harvest_group: HarvestGroup, claim: Claim, slice_end: SliceEnd
    ) -> bool:
        """Harvest the sites of a job for one slice; False if sites are left for another one."""
        work = SiteWork.read(claim.work)
        await journal.begin_slice(work.sites)
        sites, to_retry, left = await self._read(journal, work)
        if not left:
            return True
        if claim.attempts > MOST_ATTEMPTS:
            await self._give_up(journal, left)
            return True
        its_sites = [site for site, _ in left]
        for site in its_sites:
            self.site_stops.share(site.site_id, slice_end.signal())
        self.slices.begin(its_sites, slice_end, has_end=not self._is_rehearsal(its_sites))
        try:
            used = ChainMap[int, float]({}, dict(work.seconds))
            await harvest_group(Group(left, sites, to_retry, work.everything, used))
            slice_end.cancel()
            if not slice_end.is_over:
                return True
            await journal.end_slice(work.sites)
            left = (await self._read(journal, work))[2]
            seconds = {site.site_id: used[site.site_id] for site, _ in left if site.site_id in used}
            # From the first slice of a source repository on, its checkpoint says whether a full list is wanted.
            began = {site.site_id for site in its_sites if isinstance(site, Site) and site.options.oai}
            everything = work.everything - began.intersection(used.maps[0])
            await journal.keep_work(claim, replace(work, seconds=seconds, everything=everything).text())
            return not left
        finally:
            slice_end.cancel()
            self.slices.end(its_sites)

    async def _give_up(self, journal: WorkersJournal, left: Sequence[Chosen]) -> None:
        """Close the site runs of a job that is not tried again, with the reason."""
        for site, kind in left:
            if isinstance(site, BrokenSite):
                await journal.site_broken(site, kind)
            else:
                site_run = await journal.open_site_run(site, kind, lambda document_id: (None, None))
                await journal.target_refused(site_run, [WORKERS_LOST])

    def _is_rehearsal(self, sites: Sequence[Site | BrokenSite]) -> bool:
        """True if the sites have no target. A rehearsal has no checkpoint: its slice has no end by time.

        The sites of one origin go to one target, or none.
        """
        return any(self.setup.goes_nowhere(site.name) for site in sites)

    async def _read(
        self, journal: WorkersJournal, work: SiteWork
    ) -> tuple[list[Site | BrokenSite], Collection[int], Sequence[Chosen]]:
        """All sites; of the job, the sites with documents to try again, and the sites that are left to harvest.

        The open site runs of sites that were switched off or removed are closed.
        """
        sites, to_retry, kinds = await in_thread(partial(self._rows, work))
        left = [
            (sites[site_id], kind) for site_id, kind in kinds.items() if site_id in sites and sites[site_id].enabled
        ]
        if len(left) < len(kinds):
            await journal.stop_left(kinds.keys() - {site.site_id for site, _ in left})
        left = [(afresh(site) if site.site_id in work.everything else site, kind) for site, kind in left]
        return list(sites.values()), to_retry, left

    def _rows(self, work: SiteWork) -> tuple[dict[int, Site | BrokenSite], Collection[int], dict[int, SiteRunKind]]:
        """All sites; of the job, the sites with documents to try again, and the sites that no slice has finished."""
        with database_errors(self.setup.engine), readers(self.setup.engine)() as session:
            sites = self.known_sites.read(session, work.sites)
            to_retry = retries.sites_to_retry(session, self.run.today, work.sites)
            ended = runs.ended_site_runs(session, self.run.run_id, work.sites)
            stopped = taken_requests.taken_stops(session, self.run.run_id)
        statuses = last_ended(work, ended)
        kinds = {} if stopped.whole_run else left_to_do(work.sites, statuses, to_retry, stopped.sites)
        return sites, to_retry, kinds


def last_ended(work: SiteWork, ended: Mapping[int, HarvestSiteRun]) -> dict[int, tuple[SiteRunStatus, SiteRunKind]]:
    """The last ended site run of each site that counts for this work. The retry of another job does not."""
    found: dict[int, tuple[SiteRunStatus, SiteRunKind]] = {}
    for site_run_id, each in sorted(ended.items()):
        site_id, kind = each.site_schedule_id, SiteRunKind(each.kind)
        is_of_other_job = kind is SiteRunKind.RETRY and work.sites[site_id] is not SiteRunKind.RETRY
        if site_run_id not in work.ended and not (is_of_other_job and site_id not in found):
            found[site_id] = (SiteRunStatus(each.status), kind)
    return found


def left_to_do(
    sites: Mapping[int, SiteRunKind],
    ended: Mapping[int, tuple[SiteRunStatus, SiteRunKind]],
    to_retry: Collection[int],
    stopped: Collection[int] = (),
) -> dict[int, SiteRunKind]:
    """The sites of a job that no slice has finished, and why they are harvested. Pure.

    `ended`: the last ended site run of a site in this run. A site whose list could not be read still has documents to
    retry.
    """
    left = {}
    for site_id, kind in sites.items():
        if site_id in stopped:
            continue
        if site_id not in ended:
            left[site_id] = kind
        elif ended[site_id][0] is SiteRunStatus.LIST_FAILED and site_id in to_retry:
            left[site_id] = SiteRunKind.RETRY
    return left
