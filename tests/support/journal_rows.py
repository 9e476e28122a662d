"""Fills a journal by hand, so that reports can be tested without a harvest."""

from __future__ import annotations

import sqlite3
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, make_url
from sqlalchemy.orm import Session

from metaharvest.config.target_settings import NamedTarget, NamedTargets
from metaharvest.database.engine import create_tables, open_url, upgrade
from metaharvest.database.models import (
    Base,
    HarvestDetailLog,
    HarvestDocument,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
    HarvestSiteSchedule,
)
from metaharvest.database.operations import OPERATIONS
from metaharvest.journal.log_rows import fingerprint
from metaharvest.ledger.entries import of_outcome
from metaharvest.model import DocumentState, Finding, OutcomeKind

Row = TypeVar("Row", bound=Base)

TODAY = date(2026, 11, 20)
NAMED = NamedTargets(NamedTarget("the embedded repository"))
NOW = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)

OPERATION_OF = {
    OutcomeKind.INSERTED: "InsertDocSuccess",
    OutcomeKind.UPDATED: "UpdateDocSuccess",
    OutcomeKind.STALE: "DocStale",
    OutcomeKind.DUPLICATE: "DocDuplicate",
    OutcomeKind.DEFERRED: "DocDeferred",
    OutcomeKind.ACCESS_ERROR: "GetDocError",
    OutcomeKind.INVALID: "ValidateDocError",
    OutcomeKind.UPLOAD_ERROR: "InsertDocError",
}


def new_database(url: str = "") -> Engine:
    """An engine for an empty database with all tables: that at the URL, or one in memory."""
    if url:
        engine = open_url(make_url(url))
        upgrade(engine)
        return engine
    engine = create_engine("sqlite://")
    with engine.connect() as connection:
        _sqlite(connection).deserialize(_empty_tables())
    return engine


@cache
def _empty_tables() -> bytes:
    engine = create_engine("sqlite://")
    create_tables(engine)
    with engine.connect() as connection:
        return _sqlite(connection).serialize()


def _sqlite(connection: Connection) -> sqlite3.Connection:
    found = connection.connection.driver_connection
    assert isinstance(found, sqlite3.Connection)
    return found


class JournalRows:
    """Writes rows as the journal would; every method returns the row."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def _add(self, row: Row) -> Row:
        self.session.add(row)
        self.session.flush()
        return row

    def site(self, name: str, contact: str | None = "data@alder.example.org", **columns: Any) -> HarvestSiteSchedule:
        url = columns.pop("documentlisturl", f"https://{name}.example.org/harvestList.xml")
        columns.setdefault("datenextharvest", TODAY + timedelta(days=1))
        return self._add(HarvestSiteSchedule(name=name, contact_email=contact, documentlisturl=url, **columns))

    def run(self, day: date = TODAY, started: datetime = NOW, status: str = "running") -> HarvestRun:
        return self._add(
            HarvestRun(
                harvest_date=day,
                started_at=started,
                status=status,
                host="harvest.example.org",
                pid=4711,
                heartbeat_at=started,
            )
        )

    def site_run(
        self,
        run: HarvestRun,
        site: HarvestSiteSchedule,
        status: str = "succeeded",
        kind: str = "scheduled",
        **columns: Any,
    ) -> HarvestSiteRun:
        columns.setdefault("ended_at", run.started_at + timedelta(seconds=200))
        columns.setdefault("next_harvest", run.harvest_date + timedelta(days=1))
        row = HarvestSiteRun(
            run_id=run.run_id,
            site_schedule_id=site.site_schedule_id,
            site_name=site.name,
            kind=kind,
            status=status,
            started_at=run.started_at,
            list_url=site.documentlisturl,
            listed=0,
            warnings=0,
            **{outcome.column: 0 for outcome in OutcomeKind},
        )
        for name, value in columns.items():
            setattr(row, name, value)
        return self._add(row)

    def log(
        self,
        run: HarvestRun,
        code: str,
        message: str = "",
        site_run: HarvestSiteRun | None = None,
        findings: tuple[Finding, ...] = (),
        **columns: Any,
    ) -> HarvestLog:
        if site_run is not None:
            columns.setdefault("site_schedule_id", site_run.site_schedule_id)
        row = self._add(
            HarvestLog(
                harvest_date=run.harvest_date,
                logged_at=run.started_at,
                status=1 if OPERATIONS[code][0] == "error" else 0,
                message=message or OPERATIONS[code][1],
                harvest_operation_code=code,
                site_run_id=site_run.site_run_id if site_run else None,
                run_id=run.run_id,
                **columns,
            )
        )
        for finding in findings:
            self._finding(row, finding)
        return row

    def _finding(self, row: HarvestLog, finding: Finding) -> None:
        self._add(
            HarvestDetailLog(
                harvest_log_id=row.harvest_log_id,
                level=finding.level.value,
                document_id=row.document_id or finding.docid or None,
                revision=row.revision,
                document_url=row.document_url,
                error_message=finding.message,
                rule=finding.rule,
                line_number=finding.line,
                column_number=finding.column,
                xpath=finding.xpath or None,
                excerpt=finding.excerpt or None,
                remedy=finding.remedy or None,
                fingerprint=fingerprint(finding, row.document_id or ""),
            )
        )

    def document(
        self,
        run: HarvestRun,
        site_run: HarvestSiteRun,
        document_id: str,
        revision: int,
        outcome: OutcomeKind,
        *findings: Finding,
        warnings: tuple[Finding, ...] = (),
        url: str = "",
        **columns: Any,
    ) -> HarvestLog:
        """One document that is not merely unchanged, counted in the site run."""
        url = url or f"https://data.example.org/eml/{document_id}.{revision}.xml"
        where: dict[str, Any] = {"document_id": document_id, "revision": revision, "document_url": url}
        if warnings:
            self.log(run, "ValidateDocWarning", site_run=site_run, findings=warnings, **where)
            site_run.warnings += len(warnings)
        row = self.log(
            run, OPERATION_OF[outcome], site_run=site_run, findings=findings, outcome=outcome.value, **where, **columns
        )
        self._count(site_run, outcome, 1)
        return row

    def unchanged(self, run: HarvestRun, site_run: HarvestSiteRun, *documents: tuple[str, int, int | None]) -> None:
        """Unchanged documents (id, revision, the target's): a log row with their number, names in the ledger."""
        for document_id, revision, held in documents:
            self.ledger(site_run, document_id, revision, OutcomeKind.UNCHANGED, target_revision=held)
        self.log(run, "MetacatHasDoc", f"{len(documents)} documents were there already.", site_run)
        self._count(site_run, OutcomeKind.UNCHANGED, len(documents))

    def ledger(
        self, site_run: HarvestSiteRun, document_id: str, revision: int, outcome: OutcomeKind, **columns: Any
    ) -> HarvestDocument:
        state = of_outcome(outcome.value)
        if columns.get("to_delete"):
            is_for_person = outcome is OutcomeKind.DEFERRED and columns.get("next_attempt") is not None
            state = DocumentState.TO_CONFIRM if is_for_person else DocumentState.TO_DELETE
        return self._add(
            HarvestDocument(
                site_schedule_id=site_run.site_schedule_id,
                document_id=document_id,
                revision=revision,
                document_url=f"https://data.example.org/eml/{document_id}.{revision}.xml",
                document_type="https://eml.ecoinformatics.org/eml-2.2.0",
                outcome=outcome.value,
                **{"state": state.value, **columns},
            )
        )

    def _count(self, site_run: HarvestSiteRun, outcome: OutcomeKind, number: int) -> None:
        setattr(site_run, outcome.column, getattr(site_run, outcome.column) + number)
        site_run.listed += number
        if outcome.is_error:
            site_run.status = "with-errors"
        self.session.flush()
