"""The journal of one run: it writes the events of the run as rows.

Values are handed over from the event loop; the writer's thread (`writer.py`) writes them. Reports are made from these
rows, in the transaction that closes the run or site run. `runs.py`, `site_runs.py` and `outcomes.py` describe the rows
of a run, a site run and an outcome.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Self, TypeVar

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from metaharvest.config.report_context import ReportContext
from metaharvest.config.settings import Settings
from metaharvest.database.engine import database_errors, writers
from metaharvest.database.locks import HeldLock
from metaharvest.errors import DatabaseError, DatabaseUnavailable, NotWritten, RunLost, TargetError
from metaharvest.journal import list_notes, live, outcomes, removal, runs, site_runs, taken_requests
from metaharvest.journal.internal_errors import internal_error
from metaharvest.journal.list_notes import ListNote, SpotCheck
from metaharvest.journal.log_rows import NO_SITE, LogRow, Stamp, whose, write_log
from metaharvest.journal.outcomes import OutcomeNote
from metaharvest.journal.site_runs import Closing, Opening
from metaharvest.journal.taken_requests import TakenRequests, TakenStops
from metaharvest.journal.writer import GroupLimits, Writer, by_lock
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.ledger.rows import Settled, delete_entries, note_pending, settled_rows, write_ledger
from metaharvest.model import (
    FetchedDocument,
    Finding,
    Level,
    OriginalColumns,
    RunStatus,
    Site,
    SiteRun,
    SiteRunKind,
    SiteRunStatus,
)
from metaharvest.model.actions import Remedy
from metaharvest.problems import follow
from metaharvest.requests import taking
from metaharvest.sites.clock_checks import REPAIR, is_steady, long_pause
from metaharvest.sites.rows import BrokenSite
from metaharvest.targets import owners
from metaharvest.targets.base import Target
from metaharvest.targets.lookup import Targets
from metaharvest.text import counted, one_line, shown_url

Clock = Callable[[], datetime]

log = logging.getLogger(__name__)

_LONGEST_BACKLOG = 2000
"""Limit of waiting outcomes: a caller that brings another one has to wait."""

_Value = TypeVar("_Value")

_FULL = Finding(
    "harvest.database-full",
    "The database is full. This site has stored most in this run, so its other documents were put off. The documents "
    "of other sites were stored.",
    "The administrator should make room where the database is; the next run goes on with it.",
)


class Journal:
    """The journal of one run, which is opened as it is made and closed by close_run(). A context manager.

    The methods that are coroutines are for the event loop, the others for the thread that begins and ends the run.
    Raises DatabaseError and RunLost, from every method: then this run can write nothing more.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        targets: Targets,
        clock: Clock,
        today: date,
        lock: HeldLock,
        limits: GroupLimits,
    ) -> None:
        context = ReportContext(settings, targets.name_all(), clock())
        with database_errors(engine), writers(engine).begin() as session:
            opened = runs.open_run(session, context, today)
        self._prepare(settings, targets, clock, today, opened.run_id)
        self.left_unfinished, self.reports_not_made = opened.unfinished, opened.reports_not_made
        self._writer = Writer(engine, by_lock(engine, lock, self.run_id, clock), self._write_notes, limits)

    def _prepare(self, settings: Settings, targets: Targets, clock: Clock, today: date, run_id: int) -> None:
        self._settings = settings
        self._named_targets = targets.name_all()
        self._clock = clock
        self._is_whole = True
        self._is_stopped = False
        self._open_sites: set[int] = set()
        self._is_stopped_by_person = False
        self.today = today
        self._is_by_the_clock = today == clock().astimezone(settings.harvester.zone).date()
        self.run_id = run_id
        self.reports_not_made = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    # -- the run

    def close_run(self) -> RunStatus:
        """Purge old rows, log HarvesterShutdown and close the run; its site runs decide about the returned status.

        One transaction writes the row HarvesterShutdown and the status: a run with this row is closed.
        """
        self._purge()

        def close(session: Session) -> RunStatus:
            status = runs.run_status(session, self.run_id, self._is_whole, self._is_stopped)
            self._log(session, LogRow("HarvesterShutdown", f"The run ended: {status}."))
            is_stopped = self._is_stopped_by_person
            taken_requests.end(session, self._stamp(), is_stopped=is_stopped, is_whole=self._is_whole)
            live.forget(session)
            runs.close_run(session, self.run_id, status, self._clock())
            return status

        return self._now(close)

    def take_requests(
        self, enabled: Mapping[int, str], named: Collection[int] | None, *, leaves_out: bool
    ) -> TakenRequests:
        """Take the requests of people: see `taken_requests.take`."""
        return self._now(
            lambda session: taken_requests.take(session, self._stamp(), enabled, named, leaves_out=leaves_out)
        )

    async def beat(self, progress: Sequence[live.SiteNumbers], stop: Callable[[TakenStops], None]) -> None:
        """Write the live numbers of sites that have changed; take the stops of people, and call `stop` with them.

        `stop` is called in another thread, before the commit: signals are set before people see the stop as taken.
        """

        def write(session: Session) -> None:
            # The stops come first: if the numbers cannot be written, the run stops all the same.
            stops = self._take_stops(session)
            self._is_stopped_by_person = self._is_stopped_by_person or stops.whole_run
            stop(stops)
            live.write(session, self.run_id, progress, self._clock())

        await self._soon(write)

    def _take_stops(self, session: Session) -> TakenStops:
        return taken_requests.take_stops(session, self._stamp())

    def cut_short(self, why: Finding, not_begun: Sequence[str]) -> str:
        """Note the reason why the run ends early, and the sites that were not begun; return the findings about it."""
        message = why.message
        if not_begun:
            were = counted(len(not_begun), "site was", "sites were")
            message += f" {were} not begun, and left to the next run: {one_line(', '.join(not_begun), 500)}."
        self._is_stopped = self._is_stopped or why.rule == "harvest.stopped"
        self.not_whole([message])
        return message

    def not_whole(self, messages: Sequence[str]) -> None:
        """Note why the run did not do all of its work, a row for each reason."""
        self._is_whole = False

        def note(session: Session) -> None:
            # A worker may have died after these rows, while it closed the run.
            noted = set(runs.notes_of(session, self.run_id, "RunInterrupted"))
            rows = [(LogRow("RunInterrupted", each), NO_SITE) for each in messages if each not in noted]
            write_log(session, rows, self._stamp())

        self._now(note)

    async def target_away(self, target: Target, findings: Sequence[Finding]) -> None:
        """Note that a target stopped answering, so that documents were put off for the rest of the run."""
        said = " ".join(finding.message for finding in findings)
        remedy = findings[0].remedy or "What was not sent was put off to the next run."
        message = f"{target.describe()} stopped answering: {said} {remedy}"
        row = LogRow("TargetError", f"{message[:1].upper()}{message[1:]}", tuple(findings))
        self._is_whole = False
        await self._soon(lambda session: self._log(session, row))

    def report_run(self) -> None:
        """Queue the composite report to the administrators; site runs that are still open wait for the next run."""
        context = self._report_context()
        if not self._now(lambda session: runs.report_run(session, context, self._stamp(), self._is_stopped)):
            self.reports_not_made += 1

    def require_ours(self) -> None:
        """Raise RunLost if another run may write now, instead of this one."""
        self._now(lambda session: None)

    def require_writable(self) -> None:
        """Raise DatabaseError or RunLost if it is already known that this run can no longer write."""
        self._writer.require_writable()

    def abandon(self) -> None:
        """Stop writing: the next run resumes the work that is under way; it is not deferred."""
        self._writer.abandon()

    def no_room_for(self, site_id: int) -> Finding | None:
        """The reason why this run stores nothing more of this site: the database is full, by this site most of all."""
        return _FULL if site_id in self._writer.without_room else None

    def on_stored(self, call: Callable[[int], None]) -> None:
        """Register `call`: the writer's thread calls it with the bytes of the documents of each commit."""
        self._writer.stored = call

    def _purge(self) -> None:
        """Delete log rows and delivered reports that are older than the log period, a chunk in each transaction.

        Nothing is deleted for a day that was given with `--date`, nor where the clock may be wrong.
        """
        if not self._is_by_the_clock or not self._now(self._may_purge):
            return
        limit = self.today - timedelta(days=self._settings.harvester.log_period_days)
        rows = self._purged(removal.purge_log_rows, limit, removal.CHUNK)
        gone = self._purged(removal.purge_reports, limit, removal.REPORTS)
        self._now(lambda session: follow.purge(session, limit))
        self._now(lambda session: taking.purge(session, limit))
        if rows or gone:
            message = (
                f"{counted(rows, 'log row')} and {counted(gone, 'delivered report')} from before {limit} were deleted."
            )
            self._now(lambda session: self._log(session, LogRow("LogPurged", message)))

    def _may_purge(self, session: Session) -> bool:
        """True if runs took place for a month without a long pause; a pause just before this run is logged."""
        if why := long_pause(session, self.run_id, self.today):
            remedy = Remedy("Compare the harvester's clock with the time. If it was wrong: {}", REPAIR)
            finding = Finding("harvest.clock", why, remedy, Level.WARNING)
            self._log(session, LogRow("LogNotPurged", why, (finding,)))
            return False
        return is_steady(session, self.run_id, self.today)

    def _purged(self, delete_chunk: Callable[[Session, date], int], limit: date, chunk: int) -> int:
        deleted = 0
        while True:
            number = self._now(lambda session: delete_chunk(session, limit))
            deleted += number
            if number < chunk:
                return deleted

    # -- a site's part of it

    async def site_broken(self, site: BrokenSite, kind: SiteRunKind) -> None:
        """Note a row of the schedule that cannot be used: only its site fails."""
        reason = " ".join(finding.message for finding in site.findings)
        row = LogRow("SiteError", f"The registration of {site.name} cannot be used.", site.findings)
        await self._soon(lambda session: site_runs.fail(session, site, kind, reason, row, self._stamp()))

    async def site_met_internal_error(self, site: Site | BrokenSite, kind: SiteRunKind, error: Exception) -> None:
        """Note an unexpected error before the site run was open, or while it was closed; the next run closes it then.

        Even if the note fails, the run does not count as succeeded.
        """
        finding = internal_error(error, "The harvester itself failed on this site")
        row = LogRow("SiteError", finding.message, (finding,))
        self._is_whole = False
        try:
            await self._soon(lambda session: site_runs.note_error(session, site, kind, row, self._stamp()))
        except (DatabaseError, RunLost):
            raise
        except Exception:
            log.exception("What happened to %s could not be noted", site.name)

    async def open_site_run(
        self, site: Site, kind: SiteRunKind, original_columns: Callable[[str], OriginalColumns]
    ) -> SiteRun:
        """Open the site run, or resume the one that a dead run left."""
        site_run = await asyncio.wrap_future(self._writer.request(self._open, Opening(site, kind, original_columns)))
        self._open_sites.add(site_run.site_run_id)
        return site_run

    def list_read(self, note: ListNote) -> None:
        """Note that a list was fetched and is valid as a whole; committed with the next rows, and before them."""
        self._writer.hand_over(note)

    async def list_failed(self, site_run: SiteRun, code: str, findings: Sequence[Finding]) -> None:
        """Close a site run whose list could not be read: nothing is harvested, the site's dates stay."""
        reason = findings[0].message
        if more := len(findings) - 1:
            reason += f" There {'is' if more == 1 else 'are'} {counted(more, 'more problem')}."
        what = "repository" if site_run.site.options.oai else "harvest list"
        message = f"The {what} {shown_url(site_run.site.list_url)} could not be read: {one_line(reason)}"
        row = LogRow(code, message, tuple(findings))
        await self._end(Closing(site_run, (row,), status=SiteRunStatus.LIST_FAILED, reason=reason))

    async def target_refused(self, site_run: SiteRun, findings: Sequence[Finding]) -> None:
        """Close a site run as failed, because its target or one of its files cannot be used: the site's dates stay."""
        row = LogRow("SiteError", findings[0].message, tuple(findings))
        await self._end(Closing(site_run, (row,), status=SiteRunStatus.FAILED, reason=findings[0].message))

    async def site_failed(self, site_run: SiteRun, error: Exception) -> None:
        """Close a site run that met an unexpected error: its traceback is logged, its outcomes so far stay."""
        await self.target_refused(site_run, [internal_error(error, "The harvester itself failed on this site")])

    async def site_stopped(
        self, site_run: SiteRun, listed: int | None = None, unchanged: int = 0, duplicates: int = 0
    ) -> None:
        """Close a site run that was stopped before its list was read to the end: the site stays due."""
        why = "The harvest of this site was stopped; the next run goes on with it."
        row, status = LogRow("DocDeferred", why), SiteRunStatus.STOPPED
        await self._end(Closing(site_run, (row,), listed, unchanged, duplicates, status=status, reason=why))

    async def broken_off(self, site_run: SiteRun, listed: int, unchanged: int, duplicates: int, row: LogRow) -> None:
        """Close a site run with an incomplete list: the outcomes of its documents stay, and so do the site's dates."""
        status, reason = SiteRunStatus.INCOMPLETE, row.message
        await self._end(Closing(site_run, (row,), listed, unchanged, duplicates, status=status, reason=reason))

    async def close_site_run(self, closing: Closing) -> None:
        """Close a site run: totals that balance, the next date, and the report that is owed to the contacts."""
        await self._end(closing)

    async def deferred(self, site_run: SiteRun, findings: Sequence[Finding]) -> None:
        """Note the reason why documents were deferred: one row for all of them; their own rows carry no finding.

        A full database is noted when the site run is closed: only then it is known for all its documents.
        """
        findings = [finding for finding in findings if finding.rule != _FULL.rule]
        if not findings:
            return
        row = LogRow("DocDeferred", " ".join(finding.message for finding in findings), tuple(findings))
        await self.write(site_run, lambda session: [row])

    # -- documents

    async def forget(self, site_run: SiteRun, entry_ids: Sequence[int], rows: Sequence[LogRow]) -> None:
        """Log these rows, and delete entries of the ledger that are no longer listed."""

        def forget(session: Session) -> Sequence[LogRow]:
            delete_entries(session, entry_ids)
            return rows

        await self.write(site_run, forget)

    async def mark_pending(
        self,
        site_run: SiteRun,
        fetched: FetchedDocument,
        target_revision: int | None,
        known: LedgerEntry | None = None,
    ) -> None:
        """Commit a note that this upload is about to be sent, so that its result can be found out after a crash.

        `known`: the document's entry in the ledger. Raises TargetError, and notes nothing, if another site has the
        document, or is sending it.
        """

        def mark(session: Session) -> str | None:
            ours = (site_run.site.site_id, *site_run.same_origin.others)
            self._wait_for_senders(session, fetched.document.document_id, site_run.site.site_id)
            if other := owners.other_sender(session, fetched.document.document_id, ours):
                return other
            note_pending(session, site_run, self.run_id, fetched, target_revision, known)
            return None

        if other_site := await self._soon(mark):
            raise TargetError(owners.other_site_owns(fetched.document, other_site))

    def _wait_for_senders(self, session: Session, document_id: str, site_id: int) -> None:
        """Do nothing: no other process sends documents for this run."""

    async def record(self, note: OutcomeNote) -> None:
        """Hand over the outcome of a document. A document to be stored goes into the target in the same transaction.

        It does not wait for the commit; it waits only if very many outcomes are not yet written.
        """
        self._writer.hand_over(note)
        if self._writer.backlog > _LONGEST_BACKLOG:
            await self._soon(lambda session: None)

    async def set_unchanged(self, site_run: SiteRun, settled: Sequence[Settled]) -> None:
        """Update the ledger for documents that the target has already."""
        rows = settled_rows(site_run, settled, self.today)
        if any(rows):
            await self._soon(lambda session: write_ledger(session, *rows))

    async def write_spot_checks(self, site_run: SiteRun, seen: Sequence[SpotCheck]) -> None:
        """Note the spot checks of documents that are listed unchanged, and the documents that have changed."""
        await self._soon(lambda session: list_notes.write_spot_checks(session, site_run, seen, self._stamp()))

    # -- how it is written

    async def write(self, site_run: SiteRun, write: Callable[[Session], Iterable[LogRow]]) -> None:
        """Call `write` in a transaction after everything that was handed over before; log the rows that it returns."""

        def call(session: Session) -> None:
            write_log(session, [(row, whose(site_run)) for row in write(session)], self._stamp())

        await self._soon(call)

    def _now(self, write: Callable[[Session], _Value]) -> _Value:
        """What `write` returns, in a transaction after everything that was handed over before it."""
        try:
            return self._writer.request(_write_each, write, hurry=True).result()
        except NotWritten as error:
            raise DatabaseUnavailable(f"The database refused what the run was to write: {error}.") from error

    async def _soon(self, write: Callable[[Session], _Value]) -> _Value:
        """The same, for the event loop. While several sites are under way, their requests share a transaction."""
        is_alone = len(self._open_sites) == 1
        return await asyncio.wrap_future(self._writer.request(_write_each, write, hurry=is_alone))

    def _report_context(self) -> ReportContext:
        return ReportContext(self._settings, self._named_targets, self._clock())

    def _stamp(self) -> Stamp:
        return Stamp(self.run_id, self.today, self._clock())

    def _log(self, session: Session, row: LogRow) -> None:
        write_log(session, [(row, NO_SITE)], self._stamp())

    def _write_notes(self, session: Session, notes: Sequence[OutcomeNote | ListNote]) -> None:
        stamp = self._stamp()
        list_notes.write(session, [note for note in notes if isinstance(note, ListNote)], stamp)
        if ended := [note for note in notes if isinstance(note, OutcomeNote)]:
            outcomes.write(session, ended, stamp)

    def _open(self, session: Session, openings: Sequence[Opening]) -> Sequence[SiteRun]:
        return site_runs.open_all(session, openings, self._stamp())

    async def _end(self, closing: Closing) -> None:
        self._open_sites.discard(closing.site_run.site_run_id)
        if not await asyncio.wrap_future(self._writer.request(self._close, closing)):
            self.reports_not_made += 1

    def _close(self, session: Session, closings: Sequence[Closing]) -> Sequence[bool]:
        closings = [self._with_no_room(closing) for closing in closings]
        return site_runs.close_all(session, closings, self._stamp(), self._report_context())

    def _with_no_room(self, closing: Closing) -> Closing:
        """The same as incomplete, with the reason, where the database had no room for its documents."""
        if (why := self.no_room_for(closing.site_run.site.site_id)) is None:
            return closing
        rows = (*closing.rows, LogRow("DocDeferred", why.message, (why,)))
        if closing.status is not None:
            return replace(closing, rows=rows)
        return replace(closing, rows=rows, status=SiteRunStatus.INCOMPLETE, reason=why.message)


def _write_each(session: Session, writes: Sequence[Callable[[Session], _Value]]) -> Sequence[_Value]:
    return [write(session) for write in writes]
