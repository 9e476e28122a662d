"""The one writer: whatever happens in a run becomes rows here, in groups, and nowhere else.

Threads hand over values; the journal commits them a group at a time, a savepoint each, so that a bad row fails alone.
Every commit checks that the run is still the one that may write. Reports are made from these rows, in the transaction
that closes what they report on.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import Engine, delete, exc, insert, select, update
from sqlalchemy.orm import Session

from metaharvest import due, ledger, purge, reports, totals
from metaharvest.database.engine import database_errors, writers
from metaharvest.database.models import (
    HarvestDetailLog,
    HarvestDocument,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
    HarvestSiteSchedule,
)
from metaharvest.errors import RunLost, TargetError
from metaharvest.log_rows import LogRow, outcome_rows
from metaharvest.records import (
    Action,
    FetchedDocument,
    Finding,
    ListedDocument,
    Outcome,
    OutcomeKind,
    RunStatus,
    Site,
    SiteRunKind,
    SiteRunStatus,
    Unit,
)
from metaharvest.register import BrokenSite
from metaharvest.settings import Settings
from metaharvest.targets import Target, Upload
from metaharvest.text import one_line, shown_url

Clock = Callable[[], datetime]

GROUP_DOCUMENTS = 100
GROUP_BYTES = 8_000_000
GROUP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class SiteRun:
    """One site's part of the run, as the journal knows it. `resumed`: an earlier run began it and logged some of it."""

    site_run_id: int
    site: Site
    kind: SiteRunKind
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class _Entry:
    site_run: SiteRun
    outcome: Outcome
    fetched: FetchedDocument | None
    known: ledger.LedgerEntry | None


class Journal:
    """The journal of one run. Its methods may be called from any thread; they write one after the other."""

    def __init__(self, engine: Engine, settings: Settings, target: Target, clock: Clock, today: date) -> None:
        self._engine = engine
        self._sessions = writers(engine)
        self._settings = settings
        self._target = target
        self._clock = clock
        self._mutex = threading.RLock()
        self._group: list[_Entry] = []
        self._group_bytes = 0
        self._group_since = time.monotonic()
        self.today = today
        self.run_id = 0

    # -- the run

    def open_run(self) -> set[int]:
        """Open the run and log HarvesterStartup; close what dead runs left; the sites that they left unfinished."""
        now = self._clock()
        with self._mutex, database_errors(self._engine), self._sessions.begin() as session:
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
                self._close_dead(session, old, now)
            session.flush()
            return set(
                session.scalars(
                    select(HarvestSiteRun.site_schedule_id).where(
                        HarvestSiteRun.status == SiteRunStatus.INTERRUPTED.value
                    )
                )
            )

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
            report = reports.admin_report(session, self.run_id, self._settings, self._target.describe(), self._clock())
            self._queue(session, report, None)

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

    def site_broken(self, site: BrokenSite) -> None:
        """Note a row of the schedule that cannot be used: its site fails, alone."""
        now = self._clock()
        reason = " ".join(finding.message for finding in site.findings)
        with self._writing() as session:
            row = self._site_run_row(site.site_id, site.name, site.list_url, SiteRunKind.SCHEDULED, now)
            row.status, row.ended_at, row.failure_reason = SiteRunStatus.FAILED.value, now, reason
            session.add(row)
            session.flush()
            self._log(
                session,
                LogRow("SiteError", f"The registration of {site.name} cannot be used.", site.findings),
                columns={"site_schedule_id": site.site_id, "site_run_id": row.site_run_id},
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
                left.status, left.failure_reason, left.site_name = SiteRunStatus.RUNNING.value, None, site.name
                return SiteRun(left.site_run_id, site, kind, resumed=True)
            row = self._site_run_row(site.site_id, site.name, site.list_url, kind, now)
            session.add(row)
            session.flush()
            return SiteRun(row.site_run_id, site, kind)

    def list_read(self, site_run: SiteRun, listed: int) -> None:
        """Note that the list was fetched and is valid as a whole."""
        with self._writing() as session:
            for code, message in (
                ("GetHarvestListSuccess", f"The harvest list {shown_url(site_run.site.list_url)} was fetched."),
                ("ValidateHarvestListSuccess", f"The harvest list is valid and names {listed:,} documents."),
            ):
                self._log(session, LogRow(code, message), site_run)

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

    def site_failed(self, site_run: SiteRun, error: BaseException) -> None:
        """Close a site run that met a surprise: its traceback goes into the log, its outcomes so far stand."""
        reason = f"{type(error).__name__}: {one_line(str(error))}"
        details = "".join(traceback.format_exception(error))
        finding = Finding(
            "harvest.surprise",
            f"The harvester itself failed on this site: {reason}",
            "The administrator should report this to the developers of metaharvest, with the traceback in the log.",
            excerpt=details[-4000:],
        )
        with self._writing() as session:
            self._log(session, LogRow("SiteError", finding.message, (finding,)), site_run)
            totals.close(session, site_run.site_run_id)
            self._close(session, site_run, SiteRunStatus.FAILED, reason=finding.message)

    def close_site_run(self, site_run: SiteRun, listed: int, unchanged: int) -> None:
        """Close a site run: totals that balance, the next date, and the report that is owed to the contacts."""
        with self._writing() as session:
            if unchanged:
                self._log(session, LogRow("MetacatHasDoc", f"{unchanged:,} documents were there already."), site_run)
            status = totals.close(session, site_run.site_run_id, listed, unchanged)
            next_date = self._advance(session, site_run)
            self._close(session, site_run, status, next_date=next_date)

    def deferred(self, site_run: SiteRun, findings: Sequence[Finding]) -> None:
        """Note why documents were put off: one row for all of them, whose own rows carry no finding."""
        with self._writing() as session:
            message = " ".join(finding.message for finding in findings)
            self._log(session, LogRow("DocDeferred", message, tuple(findings)), site_run)

    # -- documents

    def known_between(
        self, site_run: SiteRun, after: str | None, upto: str | None
    ) -> tuple[dict[ledger.Key, ledger.LedgerEntry], dict[ledger.Key, list[str]]]:
        """What is known of the site's documents in this range of ids: the ledger, and the outcomes of this site run."""
        with self._mutex, database_errors(self._engine), self._sessions() as session:
            known = ledger.entries_between(session, site_run.site.site_id, after, upto)
            logged: dict[ledger.Key, list[str]] = {}
            if site_run.resumed:
                for document_id, revision, outcome in _logged(session, site_run, after, upto):
                    logged.setdefault((document_id, revision), []).append(outcome)
            return known, logged

    def to_retry(self, site: Site) -> Iterator[ListedDocument]:
        """The site's documents that are to be tried again."""
        with database_errors(self._engine), self._sessions() as session:
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
                session.execute(insert(HarvestDocument).values(**_ledger_key(site_run, document), **pending))

    def record(
        self,
        site_run: SiteRun,
        outcome: Outcome,
        fetched: FetchedDocument | None,
        known: ledger.LedgerEntry | None,
    ) -> None:
        """Hand over how a document ended. With `fetched`, its bytes go into the target in the same transaction."""
        with self._mutex:
            if not self._group:
                self._group_since = time.monotonic()
            self._group.append(_Entry(site_run, outcome, fetched, known))
            self._group_bytes += len(fetched.content) if fetched else 0
            if len(self._group) >= GROUP_DOCUMENTS or self._group_bytes >= GROUP_BYTES:
                self.flush()
            else:
                self.flush_if_old()

    def flush_if_old(self) -> None:
        """Commit the group where it has waited long enough."""
        with self._mutex:
            if self._group and time.monotonic() - self._group_since >= GROUP_SECONDS:
                self.flush()

    def flush(self) -> None:
        """Commit the group, in a transaction of its own: what is logged does not depend on what comes after it."""
        with self._mutex:
            if not self._group:
                return
            group, self._group, self._group_bytes = self._group, [], 0
            with self._transaction() as session:
                for entry in group:
                    self._write_outcome(session, entry)

    def set_unchanged(
        self,
        site_run: SiteRun,
        outcomes: Sequence[tuple[Outcome, ledger.LedgerEntry | None]],
        unlisted: Sequence[ledger.LedgerEntry],
    ) -> None:
        """Bring the ledger up to date for documents that the target has already, and drop those listed no longer."""
        inserts, updates = [], []
        for outcome, known in outcomes:
            values = ledger.entry_values(known, outcome, self.today)
            if values is None:
                continue
            if known is None:
                inserts.append({**_ledger_key(site_run, outcome.document), **values})
            else:
                updates.append({"harvest_document_id": known.entry_id, **values})
        if not inserts and not updates and not unlisted:
            return
        with self._writing() as session:
            if inserts:
                session.execute(insert(HarvestDocument), inserts)
            if updates:
                session.execute(update(HarvestDocument), updates)
            for entry in unlisted:
                session.execute(delete(HarvestDocument).where(HarvestDocument.harvest_document_id == entry.entry_id))

    # -- how it is written

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        """A transaction for the caller, after everything that was handed over before it."""
        with self._mutex:
            self.flush()
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
            if still_ours.rowcount != 1:  # type: ignore[attr-defined]
                raise RunLost("Another run has taken over; what this one had not committed yet is left to it.")
            yield session

    def _write_outcome(self, session: Session, entry: _Entry) -> None:
        try:
            with session.begin_nested():
                self._store(session, entry)
        except TargetError as error:
            self._write_outcome(session, _refused(entry, *error.findings))
        except (exc.IntegrityError, exc.DataError, exc.StatementError) as error:
            if entry.fetched is None or getattr(error, "connection_invalidated", False):
                raise
            if isinstance(error, exc.OperationalError | exc.InterfaceError | exc.InternalError):
                raise
            reason = one_line(str(getattr(error, "orig", None) or error))
            self._write_outcome(session, _refused(entry, _not_stored(reason)))

    def _store(self, session: Session, entry: _Entry) -> None:
        outcome = entry.outcome
        if entry.fetched is not None and outcome.kind in (OutcomeKind.INSERTED, OutcomeKind.UPDATED):
            upload = Upload(entry.fetched, entry.site_run.site.site_id, self._clock())
            action = self._target.upload(upload, session)
            kind = OutcomeKind.INSERTED if action is Action.INSERT else OutcomeKind.UPDATED
            outcome = Outcome(
                outcome.document,
                kind,
                outcome.target_revision,
                outcome.findings,
                outcome.seconds,
                outcome.size,
                outcome.sha256,
            )
        for row in outcome_rows(outcome):
            self._log(session, row, entry.site_run)
        self._write_ledger(session, entry.site_run, outcome, entry.known)

    def _write_ledger(
        self, session: Session, site_run: SiteRun, outcome: Outcome, known: ledger.LedgerEntry | None
    ) -> None:
        if outcome.kind is OutcomeKind.DUPLICATE:
            return
        values = ledger.entry_values(known, outcome, self.today)
        if values is None:
            return
        key = _ledger_key(site_run, outcome.document)
        changed = session.execute(
            update(HarvestDocument)
            .where(
                HarvestDocument.site_schedule_id == key["site_schedule_id"],
                HarvestDocument.document_id == key["document_id"],
                HarvestDocument.revision == key["revision"],
            )
            .values(**values)
        )
        if changed.rowcount == 0:  # type: ignore[attr-defined]
            session.execute(insert(HarvestDocument).values(**{**key, **values}))

    def _log(
        self,
        session: Session,
        row: LogRow,
        site_run: SiteRun | None = None,
        columns: Mapping[str, object] | None = None,
    ) -> None:
        """Write a row and its detail rows. `columns`: the site's, where there is no SiteRun to take them from."""
        values = {
            "harvest_date": self.today,
            "logged_at": self._clock(),
            "run_id": self.run_id,
            **row.columns(),
            **(columns or {}),
        }
        if site_run is not None:
            values.update(site_schedule_id=site_run.site.site_id, site_run_id=site_run.site_run_id)
        log = HarvestLog(**values)
        session.add(log)
        session.flush()
        if row.findings:
            session.execute(insert(HarvestDetailLog), row.details(log.harvest_log_id))

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

    def _close_dead(self, session: Session, old: HarvestRun, now: datetime) -> None:
        old.status, old.ended_at = RunStatus.INTERRUPTED.value, now
        left = session.scalars(
            select(HarvestSiteRun).where(
                HarvestSiteRun.run_id == old.run_id, HarvestSiteRun.status == SiteRunStatus.RUNNING.value
            )
        ).all()
        for site_run in left:
            site_run.status, site_run.ended_at = SiteRunStatus.INTERRUPTED.value, now
            site_run.failure_reason = "The run was interrupted; the next run takes it up."
        sites = f" It left {', '.join(site_run.site_name for site_run in left)} unfinished." if left else ""
        began = f"{old.started_at:%Y-%m-%d %H:%M} UTC on {old.host} (process {old.pid})"
        self._log(session, LogRow("RunInterrupted", f"The run {old.run_id}, begun {began}, never ended.{sites}"))

    def _advance(self, session: Session, site_run: SiteRun) -> date | None:
        """Set the site's dates, unless this was a retry; the next date."""
        site = site_run.site
        if site_run.kind is SiteRunKind.RETRY:
            return site.next_harvest
        next_date = due.next_harvest(site, self.today)
        session.execute(
            update(HarvestSiteSchedule)
            .where(HarvestSiteSchedule.site_schedule_id == site.site_id)
            .values(
                datelastharvest=self.today,
                datenextharvest=next_date,
                day_of_month=(due.set_day(site) or self.today.day) if site.unit is Unit.MONTHS else None,
            )
        )
        return next_date

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
        if reports.site_report_wanted(session, site_run.site_run_id):
            report = reports.site_report(session, site_run.site_run_id, self._settings, self._target.describe(), now)
            self._queue(session, report, site_run)

    def _queue(self, session: Session, report: reports.Report, site_run: SiteRun | None) -> None:
        site_run_id = site_run.site_run_id if site_run else None
        if reports.queue(session, report, self.run_id, site_run_id, self._clock()) is None:
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


def _ledger_key(site_run: SiteRun, document: ListedDocument) -> dict[str, object]:
    return {
        "site_schedule_id": site_run.site.site_id,
        "document_id": document.document_id,
        "revision": document.revision,
        "document_url": document.url,
        "document_type": document.document_type,
    }


def _refused(entry: _Entry, *findings: Finding) -> _Entry:
    return _Entry(entry.site_run, entry.outcome.as_error(OutcomeKind.UPLOAD_ERROR, *findings), None, entry.known)


def _not_stored(reason: str) -> Finding:
    return Finding(
        "target.not-stored",
        f"The repository's database refused the document: {reason}",
        "The administrator should look into this; the document itself passed every check.",
    )
