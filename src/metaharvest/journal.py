"""The one writer: whatever happens in a run becomes rows here, in groups, and nowhere else.

Threads hand over values; the journal commits them a group at a time, a savepoint each, so that a bad row fails alone.
Every commit checks that the run is still the one that may write. Reports are made from these rows, in the transaction
that closes what they report on.
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

from sqlalchemy import Engine, delete, insert, select, update
from sqlalchemy.orm import Session

from metaharvest import journal_group, ledger, purge, reports, totals
from metaharvest.database.dialects import HeldLock
from metaharvest.database.engine import database_errors, readers, writers
from metaharvest.database.models import (
    HarvestDocument,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
)
from metaharvest.errors import RunLost
from metaharvest.journal_group import Entry
from metaharvest.log_rows import LogRow
from metaharvest.records import (
    FetchedDocument,
    Finding,
    ListedDocument,
    ListVersion,
    Outcome,
    RunStatus,
    Site,
    SiteRunKind,
    SiteRunStatus,
)
from metaharvest.register import BrokenSite, forget_list, set_dates
from metaharvest.settings import Settings
from metaharvest.targets import Target
from metaharvest.text import one_line, shown_url

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]

GROUP_DOCUMENTS = 250
GROUP_BYTES = 16_000_000
GROUP_SECONDS = 1.0
"""A group is committed when it has so many documents, or so many bytes of them, or is so old."""

_DELETED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class SiteRun:
    """One site's part of the run, as the journal knows it. `resumed`: an earlier run began it and logged some of it."""

    site_run_id: int
    site: Site
    kind: SiteRunKind
    resumed: bool = False


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
        self.today = today
        self._broken = False
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
            for old in dead:
                self._report(session, old.run_id)
            left = select(HarvestSiteRun.site_schedule_id, HarvestSiteRun.kind).where(
                HarvestSiteRun.status == SiteRunStatus.INTERRUPTED.value
            )
            return {site_id: SiteRunKind(kind) for site_id, kind in session.execute(left)}

    def close_run(self) -> RunStatus:
        """Log HarvesterShutdown, purge old rows and close the run; its status, which follows from its site runs."""
        with self._writing() as session:
            status = totals.run_status(session, self.run_id)
            self._log(session, LogRow("HarvesterShutdown", f"The run ended: {status}."))
        self._purge()
        with self._writing() as session:
            session.execute(
                update(HarvestRun)
                .where(HarvestRun.run_id == self.run_id)
                .values(status=status.value, ended_at=self._clock())
            )
        return status

    def report_run(self) -> None:
        """Queue the composite report to the administrators."""
        with self._writing() as session:
            self._report(session, self.run_id)

    def _purge(self) -> None:
        """Delete log rows, and reports that were delivered, older than the log period; a chunk a transaction."""
        limit = self.today - timedelta(days=self._settings.harvester.log_period_days)
        deleted = 0
        while True:
            with self._writing() as session:
                chunk = purge.log_rows(session, limit)
            deleted += chunk
            if chunk < purge.CHUNK:
                break
        with self._writing() as session:
            gone = purge.reports(session, limit)
            if deleted or gone:
                message = f"{deleted:,} log rows and {gone:,} delivered reports from before {limit} were deleted."
                self._log(session, LogRow("LogPurged", message))

    # -- a site's part of it

    def site_broken(self, site: BrokenSite, kind: SiteRunKind) -> None:
        """Note a row of the schedule that cannot be used: its site fails, alone."""
        now = self._clock()
        reason = " ".join(finding.message for finding in site.findings)
        with self._writing() as session:
            row = self._site_run_row(site.site_id, site.name, site.list_url, kind, now)
            row.status, row.ended_at, row.failure_reason = SiteRunStatus.FAILED.value, now, reason
            session.add(row)
            session.flush()
            self._log(
                session,
                LogRow("SiteError", f"The registration of {site.name} cannot be used.", site.findings),
                whose={"site_schedule_id": site.site_id, "site_run_id": row.site_run_id},
            )

    def open_site_run(self, site: Site, kind: SiteRunKind) -> SiteRun:
        """Open the site's part of the run, or take up the one that a dead run left."""
        now = self._clock()
        with self._writing() as session:
            left = session.scalars(
                select(HarvestSiteRun)
                .where(
                    HarvestSiteRun.site_schedule_id == site.site_id,
                    HarvestSiteRun.status == SiteRunStatus.INTERRUPTED,
                )
                .order_by(HarvestSiteRun.site_run_id.desc())
            ).first()
            if left is not None:
                left.run_id, left.kind, left.ended_at = self.run_id, kind.value, None
                left.status, left.failure_reason = SiteRunStatus.RUNNING.value, None
                left.site_name, left.list_url = site.name, shown_url(site.list_url)
                # Its log rows come along, so that a run's log is whole whichever way one asks for it.
                ours = HarvestLog.site_run_id == left.site_run_id
                session.execute(update(HarvestLog).where(ours).values(run_id=self.run_id))
                return SiteRun(left.site_run_id, site, kind, resumed=True)
            row = self._site_run_row(site.site_id, site.name, site.list_url, kind, now)
            session.add(row)
            session.flush()
            return SiteRun(row.site_run_id, site, kind)

    def list_read(self, site_run: SiteRun, listed: int, unchanged: bool) -> None:
        """Note that the list was fetched and is valid as a whole; `unchanged`: it is the one of the last harvest."""
        rows = [
            LogRow("GetHarvestListSuccess", f"The harvest list {shown_url(site_run.site.list_url)} was fetched."),
            LogRow("ValidateHarvestListSuccess", f"The harvest list is valid and names {listed:,} documents."),
        ]
        if unchanged:
            rows.append(LogRow("HarvestListUnchanged", "The harvest list is the one of the last harvest."))
        whose = journal_group.site_columns(site_run)
        with self._writing() as session:
            journal_group.write_log(session, [(row, whose) for row in rows], self._page())
            if not unchanged:
                # From here on the ledger follows the new list: until all of it is done, it mirrors neither.
                forget_list(session, site_run.site.site_id)

    def list_failed(self, site_run: SiteRun, code: str, findings: Sequence[Finding]) -> None:
        """Close a site run whose list could not be read: nothing is harvested, the site's dates stay."""
        reason = findings[0].message
        if len(findings) > 1:
            reason += f" There are {len(findings) - 1:,} more problems."
        with self._writing() as session:
            message = f"The harvest list {shown_url(site_run.site.list_url)} could not be read: {one_line(reason)}"
            self._log(session, LogRow(code, message, tuple(findings)), site_run)
            totals.close(session, site_run.site_run_id)
            self._close(session, site_run, SiteRunStatus.LIST_FAILED, reason=reason)

    def site_failed(self, site_run: SiteRun, error: Exception) -> None:
        """Close a site run that met a surprise: its traceback goes into the log, its outcomes so far stand."""
        finding = journal_group.surprise(error, "The harvester itself failed on this site")
        with self._writing() as session:
            self._log(session, LogRow("SiteError", finding.message, (finding,)), site_run)
            totals.close(session, site_run.site_run_id)
            self._close(session, site_run, SiteRunStatus.FAILED, reason=finding.message)

    def close_site_run(
        self, site_run: SiteRun, listed: int, unchanged: int, version: ListVersion | None = None
    ) -> None:
        """Close a site run: totals that balance, the next date, and the report that is owed to the contacts.

        `version` of the list is kept, now that its documents are safe, for the next harvest to ask about.
        """
        with self._writing() as session:
            if unchanged:
                self._log(session, LogRow("MetacatHasDoc", f"{unchanged:,} documents were there already."), site_run)
            status = totals.close(session, site_run.site_run_id, listed, unchanged)
            # An incomplete site run is no harvest: its site stays due, and its list is read again.
            next_date = site_run.site.next_harvest
            if status is not SiteRunStatus.INCOMPLETE and site_run.kind is not SiteRunKind.RETRY:
                next_date = set_dates(session, site_run.site, self.today, version)
            self._close(session, site_run, status, next_date=next_date)

    def deferred(self, site_run: SiteRun, findings: Sequence[Finding]) -> None:
        """Note why documents were put off: one row for all of them, whose own rows carry no finding."""
        with self._writing() as session:
            message = " ".join(finding.message for finding in findings)
            self._log(session, LogRow("DocDeferred", message, tuple(findings)), site_run)

    # -- documents

    def known_list(self, site: Site) -> ListVersion | None:
        """The version of the site's list that the ledger mirrors; None: the list is to be read."""
        if site.list_version is None:
            return None
        with database_errors(self._engine), self._readers() as session:
            last = totals.last_listing(session, site.site_id)
            mirrored = last == (ledger.number_of_entries(session, site.site_id), shown_url(site.list_url))
            return site.list_version if mirrored else None

    def known(
        self, site_run: SiteRun, documents: Sequence[ListedDocument], after: str | None, upto: str | None
    ) -> dict[ledger.Key, ledger.LedgerEntry]:
        """What the ledger knows of `documents`, which are all that the site lists in this range of document ids.

        What else the ledger has in this range is listed no longer, and is deleted.
        """
        listed = {(document.document_id, document.revision) for document in documents}
        known: dict[ledger.Key, ledger.LedgerEntry] = {}
        unlisted: list[int] = []
        with database_errors(self._engine), self._readers() as session:
            for entry in ledger.entries_between(session, site_run.site.site_id, after, upto):
                if (entry.document_id, entry.revision) in listed:
                    known[entry.document_id, entry.revision] = entry
                elif entry.pending_sha256 is None:
                    unlisted.append(entry.entry_id)
                if len(unlisted) >= _DELETED_AT_ONCE:
                    self._forget(unlisted)
                    unlisted = []
        self._forget(unlisted)
        return known

    def known_of(self, site_run: SiteRun, documents: Sequence[ListedDocument]) -> dict[ledger.Key, ledger.LedgerEntry]:
        """What the ledger knows of these documents of the site."""
        document_ids = list({document.document_id for document in documents})
        with database_errors(self._engine), self._readers() as session:
            entries = ledger.entries_of(session, site_run.site.site_id, document_ids)
            return {(entry.document_id, entry.revision): entry for entry in entries}

    def logged_between(self, site_run: SiteRun, after: str | None, upto: str | None) -> dict[ledger.Key, list[str]]:
        """The outcomes that an interrupted run has logged for this site run, of document ids in this range."""
        logged: dict[ledger.Key, list[str]] = {}
        if not site_run.resumed:
            return logged
        with database_errors(self._engine), self._readers() as session:
            for document_id, revision, outcome in _logged(session, site_run, after, upto):
                logged.setdefault((document_id, revision), []).append(outcome)
        return logged

    def number_known(self, site: Site) -> int:
        """How many documents the ledger has of the site."""
        with database_errors(self._engine), self._readers() as session:
            return ledger.number_of_entries(session, site.site_id)

    def listed_before(self, site: Site, after: str | None, number: int) -> list[ledger.LedgerEntry]:
        """What the site listed last, from the document id after `after` on: at most `number` entries, in order."""
        with database_errors(self._engine), self._readers() as session:
            return ledger.first_entries(session, site.site_id, after, number)

    def to_retry(self, site: Site) -> Iterator[ListedDocument]:
        """The site's documents that are to be tried again."""
        with database_errors(self._engine), self._readers() as session:
            yield from ledger.to_retry(session, site.site_id, self.today)

    def pend(self, site_run: SiteRun, fetched: FetchedDocument, target_revision: int | None) -> None:
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
        with self._writing() as session:
            if session.execute(update(HarvestDocument).where(*key).values(**pending)).rowcount == 0:  # type: ignore[attr-defined]
                row = {**journal_group.ledger_key(site_run, document), **pending}
                session.execute(insert(HarvestDocument).values(**row))

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
            if group:
                # Should this fail, nobody may close a site run whose outcomes it had: the next run takes them up.
                self._broken = True
                with self._transaction() as session:
                    journal_group.write(session, group, self._target, self._page())
                self._broken = False

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
            with self._writing() as session:
                journal_group.write_ledger(session, new, changed)

    # -- how it is written

    def _forget(self, entry_ids: Sequence[int]) -> None:
        if entry_ids:
            with self._writing() as session:
                session.execute(delete(HarvestDocument).where(HarvestDocument.harvest_document_id.in_(entry_ids)))

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """A transaction for the caller, after everything that was handed over before it."""
        with self._writer:
            self.flush()
            if self._broken:
                raise RunLost(
                    "What this run had to write could not be written; the next run goes on with what is left."
                )
            with self._transaction() as session:
                yield session

    @contextmanager
    def _transaction(self) -> Iterator[Session]:
        """A transaction that commits only if the run is still ours."""
        with database_errors(self._engine), self._sessions.begin() as session:
            still_ours = session.execute(
                update(HarvestRun)
                .where(HarvestRun.run_id == self.run_id, HarvestRun.status == RunStatus.RUNNING.value)
                .values(heartbeat_at=self._clock())
            )
            if still_ours.rowcount != 1 or not self._lock.still_held():  # type: ignore[attr-defined]
                raise RunLost(
                    "This run has lost its lock, or another run has taken over; the next run goes on with what is left."
                )
            yield session

    def _page(self) -> journal_group.Page:
        return journal_group.Page(self.run_id, self.today, self._clock())

    def _log(
        self, session: Session, row: LogRow, site_run: SiteRun | None = None, whose: journal_group.Columns | None = None
    ) -> None:
        """Write one row. `whose`: the site's columns, where there is no SiteRun to take them from."""
        nobody: journal_group.Columns = {"site_schedule_id": None, "site_run_id": None}
        columns = journal_group.site_columns(site_run) if site_run else whose or nobody
        journal_group.write_log(session, [(row, columns)], self._page())

    def _site_run_row(self, site_id: int, name: str, url: str, kind: SiteRunKind, now: datetime) -> HarvestSiteRun:
        return HarvestSiteRun(
            run_id=self.run_id,
            site_schedule_id=site_id,
            site_name=name,
            kind=kind.value,
            status=SiteRunStatus.RUNNING.value,
            started_at=now,
            list_url=shown_url(url),
        )

    def _close(
        self,
        session: Session,
        site_run: SiteRun,
        status: SiteRunStatus,
        *,
        reason: str | None = None,
        next_date: date | None = None,
    ) -> None:
        now = self._clock()
        session.execute(
            update(HarvestSiteRun)
            .where(HarvestSiteRun.site_run_id == site_run.site_run_id)
            .values(
                status=status.value,
                ended_at=now,
                failure_reason=reason,
                next_harvest=next_date or site_run.site.next_harvest,
            )
        )
        session.flush()
        try:
            with session.begin_nested():
                if reports.site_report_wanted(session, site_run.site_run_id):
                    report = reports.site_report(
                        session, site_run.site_run_id, self._settings, self._target.describe(), now
                    )
                    self._queue(session, report, site_run)
        except Exception as error:
            if journal_group.is_lost(error):
                raise
            self._not_reported(session, error, site_run)

    def _report(self, session: Session, run_id: int) -> None:
        """Queue the composite report of a run, unless it is there already."""
        try:
            with session.begin_nested():
                target = self._target.describe()
                report = reports.admin_report(session, run_id, self._settings, target, self._clock())
                self._queue(session, report, None, run_id)
        except Exception as error:
            if journal_group.is_lost(error):
                raise
            self._not_reported(session, error, None)

    def _not_reported(self, session: Session, error: Exception, site_run: SiteRun | None) -> None:
        """A report that cannot be made is our own mistake: it is logged, and nothing else is lost for it."""
        log.exception("A report could not be made", exc_info=error)
        self.reports_not_made += 1
        finding = journal_group.surprise(error, "A report could not be made")
        self._log(session, LogRow("SiteError", finding.message, (finding,)), site_run)

    def _queue(
        self, session: Session, report: reports.Report, site_run: SiteRun | None, run_id: int | None = None
    ) -> None:
        site_run_id = site_run.site_run_id if site_run else None
        if reports.queue(session, report, run_id or self.run_id, site_run_id, self._clock()) is None:
            return
        message = f"A report to {', '.join(report.recipients) or 'nobody'} was queued: {report.subject}"
        self._log(session, LogRow("ReportQueued", message), site_run)


def _logged(session: Session, site_run: SiteRun, after: str | None, upto: str | None) -> Iterator[tuple[str, int, str]]:
    statement = select(HarvestLog.document_id, HarvestLog.revision, HarvestLog.outcome).where(
        HarvestLog.site_run_id == site_run.site_run_id, HarvestLog.outcome.is_not(None)
    )
    if after is not None:
        statement = statement.where(HarvestLog.document_id > after)
    if upto is not None:
        statement = statement.where(HarvestLog.document_id <= upto)
    for document_id, revision, outcome in session.execute(statement):
        yield str(document_id), int(revision or 0), str(outcome)
