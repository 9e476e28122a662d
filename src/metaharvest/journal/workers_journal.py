"""The journal of a worker: it writes parts of a run that other workers write at the same time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import date

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.jobs import claims
from metaharvest.jobs.claims import Claim, HeldClaims
from metaharvest.journal import live, runs, site_runs, taken_requests
from metaharvest.journal.journal import Clock, Journal
from metaharvest.journal.outcomes import OutcomeNote
from metaharvest.journal.site_runs import Closing
from metaharvest.journal.taken_requests import TakenStops
from metaharvest.journal.writer import GroupLimits, MayWrite, Writer
from metaharvest.model import Finding, OutcomeKind, RunStatus, SiteRun
from metaharvest.model.values import frozen
from metaharvest.targets import owners
from metaharvest.targets.lookup import Targets


@frozen
class RunOfWorkers:
    """A run whose sites workers harvest: its number, and its day."""

    run_id: int
    today: date


class WorkersJournal(Journal):
    """Writes as long as the worker has all the jobs that it holds.

    A site that the end of a slice cut short keeps its site run open. `is_over` says whether the slice of a site is
    over, so that its documents were put off for the next slice only.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        targets: Targets,
        clock: Clock,
        run: RunOfWorkers,
        held: HeldClaims,
        is_over: Callable[[int], bool] = lambda site_id: False,
        limits: GroupLimits = GroupLimits(),  # noqa: B008 - it is frozen
    ) -> None:
        self._prepare(settings, targets, clock, run.today, run.run_id)
        self._is_by_the_clock = True  # also if it ends after midnight: workers have no --date
        self._is_over = is_over
        self._cut_short: set[int] = set()
        self._writer = Writer(engine, by_leases(held), self._write_notes, limits)

    async def begin_slice(self, site_ids: Collection[int]) -> None:
        """Leave the site runs open that a worker before left when it died, and forget the sites' live numbers."""

        def begin(session: Session) -> None:
            runs.interrupt(session, self.run_id, self._clock(), site_ids, runs.SLICE_ENDED)
            live.forget(session, site_ids)

        await self._soon(begin)

    async def end_slice(self, site_ids: Collection[int]) -> None:
        """Leave the site runs open that the end of the slice cut short, for the next slice."""
        await self._soon(
            lambda session: runs.interrupt(session, self.run_id, self._clock(), site_ids, runs.SLICE_ENDED)
        )

    async def stop_left(self, site_ids: Collection[int]) -> None:
        """Close the open site runs of sites that are no longer harvested."""
        await self._soon(lambda session: site_runs.stop_left(session, site_ids, self._stamp(), self._report_context()))

    async def keep_work(self, claim: Claim, work: str) -> None:
        """Keep the work that is left of a job, for its next slice."""
        await self._soon(lambda session: claims.keep_work(session, claim, work))

    def _take_stops(self, session: Session) -> TakenStops:
        """Take the stops of people. Returns the stops that all workers have taken."""
        super()._take_stops(session)
        return taken_requests.taken_stops(session, self.run_id)

    def _wait_for_senders(self, session: Session, document_id: str, site_id: int) -> None:
        """Wait for another worker that is about to send the same new document for another site."""
        owners.wait_for_senders(session, document_id, site_id)

    async def record(self, note: OutcomeNote) -> None:
        """Hand over the outcome of a document."""
        if note.outcome.kind is OutcomeKind.DEFERRED:
            self._cut_short.add(note.site_run.site_run_id)
        await super().record(note)

    async def deferred(self, site_run: SiteRun, findings: Sequence[Finding]) -> None:
        """Note the reason why documents were deferred, unless they only wait for the next slice."""
        self._cut_short.add(site_run.site_run_id)
        if not self._is_over(site_run.site.site_id):
            await super().deferred(site_run, findings)

    def close_run(self) -> RunStatus:
        """Purge old rows, log HarvesterShutdown and close the run; its status, which follows from its site runs."""

        def read(session: Session) -> tuple[bool, bool]:
            stopped = taken_requests.taken_stops(session, self.run_id).whole_run
            return stopped, runs.was_whole(session, self.run_id)

        self._is_stopped_by_person, was_whole = self._now(read)
        self._is_whole = self._is_whole and was_whole
        self._is_stopped = self._is_stopped_by_person
        return super().close_run()

    async def _end(self, closing: Closing) -> None:
        site_run = closing.site_run
        is_cut_short = closing.status is not None or site_run.site_run_id in self._cut_short
        self._cut_short.discard(site_run.site_run_id)
        if is_cut_short and self._is_over(site_run.site.site_id):
            self._open_sites.discard(site_run.site_run_id)
            return
        await super()._end(closing)


def by_leases(held: HeldClaims) -> MayWrite:
    """The right of a worker: it still has all jobs that it holds. Each commit renews their leases.

    The row of the run is left alone: all workers would wait for it.
    """

    def may_write(session: Session) -> bool:
        lost = claims.renew(session, held.all())
        # A job that ends at this moment is no longer held, and nothing more is written for it.
        return not any(held.has(claim) for claim in lost)

    return may_write
