"""The one writer: whatever happens in a run becomes rows here, in groups, and nowhere else.

Threads hand over values; the journal commits them a group at a time, and what many sites want to have written at the
same moment in one transaction; what fails in a group is tried again alone. Every commit checks that the run is still
the one that may write. Reports are made from these rows, in the transaction that closes what they report on.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TypeVar

from sqlalchemy import Engine, bindparam, delete, insert, select, update
from sqlalchemy.orm import Session

from metaharvest import reports
from metaharvest.config.settings import Settings
from metaharvest.database.dialects import HeldLock, is_locked_out
from metaharvest.database.engine import database_errors, readers, writers
from metaharvest.database.models import (
    HarvestDocument,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
)
from metaharvest.errors import DatabaseError, RunLost
from metaharvest.journal import outcomes as journal_group
from metaharvest.journal import purge, totals
from metaharvest.journal import site_runs as journal_sites
from metaharvest.journal.log_rows import LogRow
from metaharvest.journal.outcomes import Entry
from metaharvest.journal.site_runs import Closing, Opening, SiteRun
from metaharvest.journal.together import Together
from metaharvest.model import (
    FetchedDocument,
    Finding,
    ListedDocument,
    ListVersion,
    Outcome,
    OutcomeKind,
    RunStatus,
    Site,
    SiteRunKind,
    SiteRunStatus,
)
from metaharvest.sites import ledger
from metaharvest.sites.registry import BrokenSite, forget_lists
from metaharvest.targets.base import Target
from metaharvest.text import one_line, shown_url

__all__ = ["GROUP_SECONDS", "Clock", "Journal", "SiteRun"]

Clock = Callable[[], datetime]

Logged = tuple[OutcomeKind, int | None]
"""An outcome as it was logged, with the revision that the target held then."""

log = logging.getLogger(__name__)

GROUP_DOCUMENTS = 250
GROUP_BYTES = 16_000_000
GROUP_SECONDS = 1.0
"""A group is committed when it has so many documents, or so many bytes of them, or is so old."""

_DELETED_AT_ONCE = 500
_FURTHER_TRIES = 3
_Written = TypeVar("_Written")


@dataclass(frozen=True, slots=True)
class _ListRead:
    """What is to be noted of a list that was read; nobody waits for it."""

    site_run: SiteRun
    rows: tuple[LogRow, ...]
    unchanged: bool


class Journal:
    """The journal of one run. Its methods may be called from any thread; they write one after the other."""

    def __init__(
        self, engine: Engine, settings: Settings, target: Target, clock: Clock, today: date, lock: HeldLock
    ) -> None:
        self._engine = engine
        self._lock = lock
        self._sessions = writers(engine)
        self._readers = readers(engine)
        self._settings = settings
        self._target = target
        self._clock = clock
        self._writer = threading.RLock()
        self._handover = threading.Lock()
        self._group: list[Entry] = []
        self._group_bytes = 0
        self._group_since = time.monotonic()
        self._together = Together(self._writer, self._write)
        self._lists_read: list[_ListRead] = []
        self.today = today
        self._failure: DatabaseError | RunLost | None = None
        self._abandoned = False
        self._is_whole = True
        self.run_id = 0
        self.reports_not_made = 0

    # -- the run

    def open_run(self) -> dict[int, SiteRunKind]:
        """Open the run and log HarvesterStartup; close what dead runs left; the sites that they left unfinished."""
        now = self._clock()
        with self._writer, database_errors(self._engine), self._sessions.begin() as session:
            dead = session.scalars(select(HarvestRun).where(HarvestRun.status == RunStatus.RUNNING)).all()
            run = HarvestRun(
                harvest_date=self.today,
                started_at=now,
                status=RunStatus.RUNNING.value,
                host=socket.gethostname(),
                pid=os.getpid(),
                heartbeat_at=now,
            )
            session.add(run)
            session.flush()
            self.run_id = run.run_id
            self._log(session, LogRow("HarvesterStartup", "The run began."))
            for old in dead:
                self._log(session, LogRow("RunInterrupted", totals.close_dead(session, old, now)))
            session.flush()
            self.reports_not_made += sum(not self._report(session, old.run_id) for old in dead)
            left = select(HarvestSiteRun.site_schedule_id, HarvestSiteRun.kind).where(
                HarvestSiteRun.status == SiteRunStatus.INTERRUPTED.value
            )
            return {site_id: SiteRunKind(kind) for site_id, kind in session.execute(left)}

    def close_run(self) -> RunStatus:
        """Log HarvesterShutdown, purge old rows and close the run; its status, which follows from its site runs."""

        def shut_down(session: Session) -> RunStatus:
            status = totals.run_status(session, self.run_id, self._is_whole)
            self._log(session, LogRow("HarvesterShutdown", f"The run ended: {status}."))
            return status

        status = self._write(shut_down)
        self._purge()
        closed = update(HarvestRun).where(HarvestRun.run_id == self.run_id)
        self._write(lambda session: session.execute(closed.values(status=status.value, ended_at=self._clock())))
        return status

    def cut_short(self, why: Finding, not_begun: Sequence[str]) -> str:
        """Note what ended the run before its time, and the sites that were not begun; what to tell of it."""
        message = why.message
        if not_begun:
            were = "1 site was" if len(not_begun) == 1 else f"{len(not_begun):,} sites were"
            message += f" {were} not begun, and left to the next run: {one_line(', '.join(not_begun), 500)}."
        self._is_whole = False
        self._write(lambda session: self._log(session, LogRow("RunInterrupted", message)))
        return message

    def report_run(self) -> None:
        """Queue the composite report to the administrators; what a surprise left open waits for the next run."""

        def report(session: Session) -> bool:
            totals.interrupt(session, self.run_id, self._clock())
            session.flush()
            return self._report(session, self.run_id)

        if not self._write(report):
            self.reports_not_made += 1

    def _purge(self) -> None:
        """Delete log rows, and reports that were delivered, older than the log period; a chunk a transaction."""
        limit = self.today - timedelta(days=self._settings.harvester.log_period_days)
        rows = self._purged(purge.log_rows, limit, purge.CHUNK)
        gone = self._purged(purge.reports, limit, purge.REPORTS)
        if rows or gone:
            message = f"{rows:,} log rows and {gone:,} delivered reports from before {limit} were deleted."
            self._write(lambda session: self._log(session, LogRow("LogPurged", message)))

    def _purged(self, delete_chunk: Callable[[Session, date], int], limit: date, chunk: int) -> int:
        deleted = 0
        while True:
            number = self._write(lambda session: delete_chunk(session, limit))
            deleted += number
            if number < chunk:
                return deleted

    # -- a site's part of it

    def site_broken(self, site: BrokenSite, kind: SiteRunKind) -> None:
        """Note a row of the schedule that cannot be used: its site fails, alone."""
        reason = " ".join(finding.message for finding in site.findings)
        row = LogRow("SiteError", f"The registration of {site.name} cannot be used.", site.findings)

        def failed(session: Session) -> None:
            site_run_id = self._failed_site_run(session, site, kind, reason)
            self._log(session, row, whose={"site_schedule_id": site.site_id, "site_run_id": site_run_id})

        self._write(failed)

    def site_met_unexpected_error(self, site: Site | BrokenSite, kind: SiteRunKind, error: Exception) -> None:
        """Note a surprise beside a site run: before it was open, or as it was to be closed, which the next run does.

        Where even that cannot be noted, the run is still not taken for one that succeeded.
        """
        finding = journal_group.unexpected_error(error, "The harvester itself failed on this site")
        row = LogRow("SiteError", finding.message, (finding,))
        ours = (HarvestSiteRun.run_id == self.run_id, HarvestSiteRun.site_schedule_id == site.site_id)
        is_open = HarvestSiteRun.status == SiteRunStatus.RUNNING.value

        def surprised(session: Session) -> None:
            site_run_id = session.scalar(select(HarvestSiteRun.site_run_id).where(*ours, is_open))
            if site_run_id is None:
                site_run_id = self._failed_site_run(session, site, kind, finding.message)
            self._log(session, row, whose={"site_schedule_id": site.site_id, "site_run_id": site_run_id})

        self._is_whole = False
        try:
            self._write(surprised)
        except (DatabaseError, RunLost):
            raise
        except Exception:
            log.exception("What happened to %s could not be noted", site.name)

    def _failed_site_run(self, session: Session, site: Site | BrokenSite, kind: SiteRunKind, reason: str) -> int:
        now = self._clock()
        row = HarvestSiteRun(
            run_id=self.run_id,
            site_schedule_id=site.site_id,
            site_name=site.name,
            kind=kind.value,
            status=SiteRunStatus.FAILED.value,
            started_at=now,
            ended_at=now,
            failure_reason=reason,
            list_url=shown_url(site.list_url),
        )
        session.add(row)
        session.flush()
        return row.site_run_id

    def open_site_run(self, site: Site, kind: SiteRunKind) -> SiteRun:
        """Open the site's part of the run, or take up the one that a dead run left."""
        return self._together.write(self._open, Opening(site, kind))

    def list_read(self, site_run: SiteRun, listed: int, unchanged: bool) -> None:
        """Note that the list was fetched and is valid as a whole; `unchanged`: it is the one of the last harvest.

        This waits for no commit: it goes in with, and before, whatever is written next.
        """
        rows = [
            LogRow("GetHarvestListSuccess", f"The harvest list {shown_url(site_run.site.list_url)} was fetched."),
            LogRow("ValidateHarvestListSuccess", f"The harvest list is valid and names {listed:,} documents."),
        ]
        if unchanged:
            rows.append(LogRow("HarvestListUnchanged", "The harvest list is the one of the last harvest."))
        with self._handover:
            self._lists_read.append(_ListRead(site_run, tuple(rows), unchanged))

    def list_failed(self, site_run: SiteRun, code: str, findings: Sequence[Finding]) -> None:
        """Close a site run whose list could not be read: nothing is harvested, the site's dates stay."""
        reason = findings[0].message
        if len(findings) > 1:
            reason += f" There are {len(findings) - 1:,} more problems."
        message = f"The harvest list {shown_url(site_run.site.list_url)} could not be read: {one_line(reason)}"
        row = LogRow(code, message, tuple(findings))
        self._end(Closing(site_run, (row,), status=SiteRunStatus.LIST_FAILED, reason=reason))

    def site_failed(self, site_run: SiteRun, error: Exception) -> None:
        """Close a site run that met a surprise: its traceback goes into the log, its outcomes so far stand."""
        finding = journal_group.unexpected_error(error, "The harvester itself failed on this site")
        row = LogRow("SiteError", finding.message, (finding,))
        self._end(Closing(site_run, (row,), status=SiteRunStatus.FAILED, reason=finding.message))

    def close_site_run(
        self, site_run: SiteRun, listed: int, unchanged: int, version: ListVersion | None = None
    ) -> None:
        """Close a site run: totals that balance, the next date, and the report that is owed to the contacts.

        `version` of the list is kept, now that its documents are safe, for the next harvest to ask about.
        """
        row = LogRow("MetacatHasDoc", f"{unchanged:,} document{' was' if unchanged == 1 else 's were'} there already.")
        self._end(Closing(site_run, (row,) if unchanged else (), listed, unchanged, version))

    def deferred(self, site_run: SiteRun, findings: Sequence[Finding]) -> None:
        """Note why documents were put off: one row for all of them, whose own rows carry no finding."""
        row = LogRow("DocDeferred", " ".join(finding.message for finding in findings), tuple(findings))
        self._write(lambda session: self._log(session, row, site_run))

    # -- documents

    def known(
        self, site_run: SiteRun, documents: Sequence[ListedDocument], after: str | None, upto: str | None
    ) -> dict[ledger.Key, ledger.LedgerEntry]:
        """What the ledger knows of `documents`, which are all that the site lists in this range of document ids.

        What else the ledger has in this range is listed no longer, and is deleted; the log names those of which nobody
        knows whether they arrived.
        """
        listed = {(document.document_id, document.revision) for document in documents}
        known: dict[ledger.Key, ledger.LedgerEntry] = {}
        unlisted: list[ledger.LedgerEntry] = []
        with database_errors(self._engine), self._readers() as session:
            for entry in ledger.entries_between(session, site_run.site.site_id, after, upto):
                if (entry.document_id, entry.revision) in listed:
                    known[entry.document_id, entry.revision] = entry
                else:
                    unlisted.append(entry)
                if len(unlisted) >= _DELETED_AT_ONCE:
                    self._forget(site_run, unlisted)
                    unlisted = []
        self._forget(site_run, unlisted)
        return known

    def known_of(self, site_run: SiteRun, documents: Sequence[ListedDocument]) -> dict[ledger.Key, ledger.LedgerEntry]:
        """What the ledger knows of these documents of the site."""
        document_ids = list({document.document_id for document in documents})
        with database_errors(self._engine), self._readers() as session:
            entries = ledger.entries_of(session, site_run.site.site_id, document_ids)
            return {(entry.document_id, entry.revision): entry for entry in entries}

    def logged_between(self, site_run: SiteRun, after: str | None, upto: str | None) -> dict[ledger.Key, list[Logged]]:
        """The outcomes that an interrupted run has logged for this site run, of document ids in this range."""
        logged: dict[ledger.Key, list[Logged]] = {}
        if not site_run.resumed:
            return logged
        with database_errors(self._engine), self._readers() as session:
            for key, outcome in _logged(session, site_run, after, upto):
                logged.setdefault(key, []).append(outcome)
        return logged

    def listed_before(self, site: Site, after: str | None, number: int) -> list[ledger.LedgerEntry]:
        """What the site listed last, from the document id after `after` on: at most `number` entries, in order."""
        with database_errors(self._engine), self._readers() as session:
            return ledger.first_entries(session, site.site_id, after, number)

    def to_retry(self, site: Site) -> Iterator[ListedDocument]:
        """The site's documents that are to be tried again."""
        with database_errors(self._engine), self._readers() as session:
            yield from ledger.to_retry(session, site.site_id, self.today)

    def mark_pending(self, site_run: SiteRun, fetched: FetchedDocument, target_revision: int | None) -> None:
        """Commit that this upload is about to be sent, so that a crash does not leave its fate unknown for ever."""
        document = fetched.document
        key = (
            HarvestDocument.site_schedule_id == site_run.site.site_id,
            HarvestDocument.document_id == document.document_id,
            HarvestDocument.revision == document.revision,
        )
        pending = {
            "pending_run": self.run_id,
            "pending_sha256": fetched.sha256,
            "target_revision": target_revision,
        }

        def note(session: Session) -> None:
            if session.execute(update(HarvestDocument).where(*key).values(**pending)).rowcount == 0:  # type: ignore[attr-defined]
                row = {**journal_group.ledger_key(site_run, document), **pending}
                session.execute(insert(HarvestDocument).values(**row))

        self._write(note)

    def record(
        self,
        site_run: SiteRun,
        outcome: Outcome,
        fetched: FetchedDocument | None,
        known: ledger.LedgerEntry | None,
    ) -> None:
        """Hand over how a document ended. With `fetched`, its bytes go into the target in the same transaction."""
        with self._handover:
            if not self._group:
                self._group_since = time.monotonic()
            self._group.append(Entry(site_run, outcome, fetched, known))
            self._group_bytes += len(fetched.content) if fetched else 0
            full = len(self._group) >= GROUP_DOCUMENTS or self._group_bytes >= GROUP_BYTES
        if full:
            self.flush()
        else:
            self.flush_if_old()

    def flush_if_old(self) -> None:
        """Commit the group where it has waited long enough."""
        with self._handover:
            old = bool(self._group) and time.monotonic() - self._group_since >= GROUP_SECONDS
        if old:
            self.flush()

    def flush(self) -> None:
        """Commit the group, in a transaction of its own: what is logged does not depend on what comes after it."""
        with self._writer:
            with self._handover:
                group, self._group, self._group_bytes = self._group, [], 0
            if not group:
                return
            try:
                self._in_tries(lambda session: journal_group.write(session, group, self._target, self._page()))
            except BaseException:
                # Whoever tries once more what comes after it has to write this first.
                with self._handover:
                    self._group[:0] = group
                raise

    def require_ours(self) -> None:
        """Raises RunLost where this run is no longer the one that may write."""
        self._write(lambda session: None)

    def abandon(self) -> None:
        """Write nothing more, whatever ended the run: what is under way is the next run's to take up, not put off."""
        self._abandoned = True

    def set_unchanged(self, site_run: SiteRun, outcomes: Sequence[tuple[Outcome, ledger.LedgerEntry | None]]) -> None:
        """Bring the ledger up to date for documents that the target has already."""
        new: list[journal_group.Columns] = []
        changed: list[journal_group.Columns] = []
        for outcome, known in outcomes:
            values = ledger.entry_values(known, outcome, self.today)
            if values is None:
                continue
            if known is None:
                new.append({**journal_group.ledger_key(site_run, outcome.document), **values})
            else:
                changed.append({"harvest_document_id": known.entry_id, **values})
        if new or changed:
            self._write(lambda session: journal_group.write_ledger(session, new, changed))

    # -- how it is written

    def _write(self, write: Callable[[Session], _Written]) -> _Written:
        """What `write` answers, in a transaction after everything that was handed over before it."""
        with self._writer:
            self.flush()
            return self._in_tries(write)

    def _in_tries(self, write: Callable[[Session], _Written]) -> _Written:
        """Make a transaction; again, a few times, where the database gave it up for the sake of somebody else's.

        So `write` may be called more than once.
        """
        for _ in range(_FURTHER_TRIES):
            try:
                with self._transaction() as session:
                    return write(session)
            except DatabaseError as error:
                if self._failure is not error or not is_locked_out(error):
                    raise
                log.warning("The journal writes again what the database gave up: %s", error)
                self._failure = None
        with self._transaction() as session:
            return write(session)

    def _forget(self, site_run: SiteRun, entries: Sequence[ledger.LedgerEntry]) -> None:
        if not entries:
            return

        def forget(session: Session) -> None:
            for entry in entries:
                if entry.pending_sha256 is not None:
                    it = ListedDocument(entry.document_id, entry.revision, entry.document_type, entry.url)
                    message = f"It is not known whether {it.docid} arrived, and it is listed no longer."
                    self._log(session, LogRow("UploadUnconfirmed", message, (), it), site_run)
            entry_ids = [entry.entry_id for entry in entries]
            session.execute(delete(HarvestDocument).where(HarvestDocument.harvest_document_id.in_(entry_ids)))

        self._write(forget)

    @contextmanager
    def _transaction(self) -> Iterator[Session]:
        """A transaction that commits only if the run is still ours.

        Once one has failed, none follows: nobody may close a site run some of whose outcomes were lost with it, nor put
        off what only the database kept from being done. The next run takes all of it up.
        """
        if self._failure is not None:
            raise type(self._failure)(str(self._failure)) from self._failure
        if self._abandoned:
            raise RunLost("This run was ended; the next run goes on with what is left.")
        with self._handover:
            lists_read, self._lists_read = self._lists_read, []
        try:
            with database_errors(self._engine), self._sessions.begin() as session:
                still_ours = session.execute(_STILL_OURS, {"run": self.run_id, "now": self._clock()})
                if still_ours.rowcount != 1 or not self._lock.still_held():  # type: ignore[attr-defined]
                    raise RunLost(
                        "This run has lost its lock, or another run has taken over; "
                        "the next run goes on with what is left."
                    )
                self._note_lists(session, lists_read)
                yield session
        except BaseException as error:
            if isinstance(error, DatabaseError | RunLost):
                self._failure = error
            with self._handover:
                self._lists_read[:0] = lists_read
            raise

    def _note_lists(self, session: Session, lists_read: Sequence[_ListRead]) -> None:
        if not lists_read:
            return
        rows = [(row, journal_group.site_columns(each.site_run)) for each in lists_read for row in each.rows]
        journal_group.write_log(session, rows, self._page())
        # From here on the ledger follows the new list: until all of it is done, it mirrors neither.
        changed = [each.site_run.site.site_id for each in lists_read if not each.unchanged]
        if changed:
            forget_lists(session, changed)

    def _page(self) -> journal_group.Page:
        return journal_group.Page(self.run_id, self.today, self._clock())

    def _log(
        self, session: Session, row: LogRow, site_run: SiteRun | None = None, whose: journal_group.Columns | None = None
    ) -> None:
        """Write one row. `whose`: the site's columns, where there is no SiteRun to take them from."""
        nobody: journal_group.Columns = {"site_schedule_id": None, "site_run_id": None}
        columns = journal_group.site_columns(site_run) if site_run else whose or nobody
        journal_group.write_log(session, [(row, columns)], self._page())

    def _open(self, session: Session, openings: Sequence[Opening]) -> Sequence[SiteRun]:
        return journal_sites.open_all(session, openings, self._page())

    def _end(self, closing: Closing) -> None:
        if not self._together.write(self._close, closing):
            with self._handover:
                self.reports_not_made += 1

    def _close(self, session: Session, closings: Sequence[Closing]) -> Sequence[bool]:
        return journal_sites.close_all(session, closings, self._page(), self._settings, self._target.describe())

    def _report(self, session: Session, run_id: int) -> bool:
        """Queue the composite report of a run, unless it is there already; False where it could not be made."""
        try:
            with session.begin_nested():
                target = self._target.describe()
                report = reports.admin_report(session, run_id, self._settings, target, self._clock())
                if reports.queue(session, report, run_id, None, self._clock()) is not None:
                    self._log(session, journal_sites.report_queued(report))
            return True
        except Exception as error:
            if journal_group.is_lost(error):
                raise
            self._log(session, journal_sites.not_reported(error))
            return False


_STILL_OURS = (
    update(HarvestRun)
    .where(HarvestRun.run_id == bindparam("run"), HarvestRun.status == RunStatus.RUNNING.value)
    .values(heartbeat_at=bindparam("now"))
    .execution_options(synchronize_session=False)
)


def _logged(
    session: Session, site_run: SiteRun, after: str | None, upto: str | None
) -> Iterator[tuple[ledger.Key, Logged]]:
    statement = select(
        HarvestLog.document_id, HarvestLog.revision, HarvestLog.outcome, HarvestLog.target_revision
    ).where(HarvestLog.site_run_id == site_run.site_run_id, HarvestLog.outcome.is_not(None))
    if after is not None:
        statement = statement.where(HarvestLog.document_id > after)
    if upto is not None:
        statement = statement.where(HarvestLog.document_id <= upto)
    for document_id, revision, outcome, target_revision in session.execute(statement):
        yield (str(document_id), int(revision or 0)), (OutcomeKind(str(outcome)), target_revision)
