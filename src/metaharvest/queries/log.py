"""The log, row by row, each with the findings that belong to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestLog, HarvestOperation, HarvestSiteRun
from metaharvest.model import LOG_LEVELS
from metaharvest.queries import runs
from metaharvest.queries.records import record_of

_ROWS_AT_ONCE = 500
"""Log rows whose findings one statement asks for."""

_LARGEST_REVISION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which rows of the log are asked for: `level` and graver ones, the last `limit`; None: whatever it is.

    `document` is a document id, or a docid. Without a run, a site run, a site or a document: the newest run.
    """

    run_id: int | None = None
    site_run_id: int | None = None
    site: str | None = None
    document: str | None = None
    level: str = "info"
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class LogFinding:
    """One finding of a log row: the columns of its detail row, under their names."""

    document_id: str | None
    level: str
    rule: str
    error_message: str
    remedy: str | None
    line_number: int | None
    column_number: int | None
    xpath: str | None
    excerpt: str | None


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One row of the log: its columns, the level of its operation (empty if unknown), its site, its findings."""

    harvest_log_id: int
    logged_at: datetime
    harvest_date: date
    level: str
    status: int
    operation: str
    message: str
    run_id: int | None
    site_run_id: int | None
    site: str | None
    document_id: str | None
    revision: int | None
    document_url: str | None
    outcome: str | None
    target_revision: int | None
    seconds: float | None
    size: int | None
    findings: tuple[LogFinding, ...]


def log_scope(session: Session, wanted: LogFilter) -> tuple[int | None, int | None]:
    """The run, or the site run, that the filter names, if it does. Raises MetaharvestError for unknown ones."""
    if wanted.site_run_id is not None:
        runs.require_site_run(session, wanted.site_run_id)
        return None, wanted.site_run_id
    if wanted.run_id is not None:
        runs.require_run(session, wanted.run_id)
    if wanted.site is None:
        return wanted.run_id, None
    if wanted.run_id is None:
        return None, runs.newest_site_run_id(session, wanted.site)
    return None, runs.site_run_id_of(session, wanted.run_id, wanted.site)


def log_entries(session: Session, wanted: LogFilter) -> list[LogEntry]:
    """The rows in the order in which they were written; with a limit, the last ones. Raises MetaharvestError."""
    conditions = _conditions(session, wanted)
    if conditions is None:
        return []
    statement = (
        select(HarvestLog, HarvestOperation.level, HarvestSiteRun.site_name)
        .outerjoin(HarvestOperation, HarvestOperation.harvest_operation_code == HarvestLog.harvest_operation_code)
        .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == HarvestLog.site_run_id)
        .where(*conditions)
        .order_by(HarvestLog.harvest_log_id.desc())
        .limit(wanted.limit)
    )
    rows = session.execute(statement).all()[::-1]
    findings = _findings(session, [row[0].harvest_log_id for row in rows])
    return [
        record_of(
            LogEntry,
            row,
            operation=row.harvest_operation_code,
            level=level or "",
            site=site,
            findings=tuple(findings.get(row.harvest_log_id, ())),
        )
        for row, level, site in rows
    ]


def _conditions(session: Session, wanted: LogFilter) -> list[ColumnElement[bool]] | None:
    """What the rows have to meet; None if there has been no run yet."""
    run_id, site_run_id = log_scope(session, wanted)
    levels = LOG_LEVELS[: LOG_LEVELS.index(wanted.level) + 1]
    conditions = [or_(HarvestOperation.level.in_(levels), _has_finding(HarvestDetailLog.level.in_(levels)))]
    if site_run_id is not None:
        conditions.append(HarvestLog.site_run_id == site_run_id)
    elif run_id is not None:
        conditions.append(HarvestLog.run_id == run_id)
    elif wanted.document is None:
        newest = runs.newest_run_id(session)
        if newest is None:
            return None
        conditions.append(HarvestLog.run_id == newest)
    if wanted.document is not None:
        conditions.append(_is_about(wanted.document))
    return conditions


def _is_about(name: str) -> ColumnElement[bool]:
    """Whether a row, or one of its findings, is about this document: a document id, or a docid."""
    head, _, tail = name.rpartition(".")
    about = or_(HarvestLog.document_id == name, _has_finding(HarvestDetailLog.document_id == name))
    if not head or not tail.isdecimal() or not tail.isascii() or int(tail) > _LARGEST_REVISION:
        return about
    return or_(about, and_(HarvestLog.document_id == head, HarvestLog.revision == int(tail)))


def _has_finding(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return HarvestLog.harvest_log_id.in_(select(HarvestDetailLog.harvest_log_id).where(condition))


def _findings(session: Session, log_ids: Sequence[int]) -> dict[int, list[LogFinding]]:
    """The findings of these rows, by the row's number."""
    found: dict[int, list[LogFinding]] = {}
    for start in range(0, len(log_ids), _ROWS_AT_ONCE):
        statement = (
            select(HarvestDetailLog)
            .where(HarvestDetailLog.harvest_log_id.in_(log_ids[start : start + _ROWS_AT_ONCE]))
            .order_by(HarvestDetailLog.detail_log_id)
        )
        for detail in session.scalars(statement):
            found.setdefault(detail.harvest_log_id, []).append(record_of(LogFinding, detail))
    return found
