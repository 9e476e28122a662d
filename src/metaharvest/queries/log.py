"""The log, row by row, each with the findings that belong to it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, func, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestLog, HarvestOperation, HarvestSiteRun
from metaharvest.model import LOG_LEVELS
from metaharvest.queries import runs
from metaharvest.queries.records import LARGEST_ID, Record, columns, records_under
from metaharvest.queries.sites import known_names

_FINDING = "document_id level rule error_message remedy line_number column_number xpath excerpt"


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


def log_scope(session: Session, wanted: LogFilter) -> tuple[int | None, int | None]:
    """The run, or the site run, that the filter names, if it does. Raises MetaharvestError for unknown ones.

    A run that holds the log of another harvester has no site runs: of it a site has rows.
    """
    if wanted.site_run_id is not None:
        runs.require_site_run(session, wanted.site_run_id)
        return None, wanted.site_run_id
    if wanted.run_id is not None:
        runs.run_record(session, wanted.run_id)
    if wanted.site is None or runs.is_imported(session, wanted.run_id):
        return wanted.run_id, None
    if wanted.run_id is None:
        return None, runs.newest_site_run_id(session, wanted.site)
    return None, runs.site_run_id_of(session, wanted.run_id, wanted.site)


def log_entries(session: Session, wanted: LogFilter) -> list[Record]:
    """The rows in the order in which they were written; with a limit, the last ones. Raises MetaharvestError.

    Each has the level of its operation (empty if unknown), the name of its site and its `findings`, which are rows too.
    """
    conditions = _conditions(session, wanted)
    if conditions is None:
        return []
    statement = (
        select(
            *columns(HarvestLog, "harvest_log_id logged_at harvest_date"),
            func.coalesce(HarvestOperation.level, "").label("level"),
            HarvestLog.status,
            HarvestLog.harvest_operation_code.label("operation"),
            *columns(HarvestLog, "message run_id site_run_id site_schedule_id"),
            HarvestSiteRun.site_name.label("site"),
            *columns(HarvestLog, "document_id revision document_url outcome target_revision seconds size"),
        )
        .outerjoin(HarvestOperation, HarvestOperation.harvest_operation_code == HarvestLog.harvest_operation_code)
        .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == HarvestLog.site_run_id)
        .where(*conditions)
        .order_by(HarvestLog.harvest_log_id.desc())
        .limit(wanted.limit)
    )
    rows = session.execute(statement).mappings().all()[::-1]
    log_ids = [row["harvest_log_id"] for row in rows]
    findings = records_under(session, HarvestDetailLog.harvest_log_id, log_ids, _FINDING)
    sites = _sites_of_imported(session, {row["run_id"] for row in rows})
    return [
        {
            **{name: value for name, value in row.items() if name != "site_schedule_id"},
            "site": row["site"] or sites.get((row["run_id"], row["site_schedule_id"])),
            "findings": findings[row["harvest_log_id"]],
        }
        for row in rows
    ]


def _sites_of_imported(session: Session, run_ids: set[int]) -> dict[tuple[int, int], str]:
    """The names of the sites whose rows those of these runs hold that hold the log of another harvester."""
    imported = [run_id for run_id in run_ids if runs.is_imported(session, run_id)]
    names = known_names(session) if imported else {}
    return {(run_id, site_id): name for run_id in imported for site_id, name in names.items()}


def _conditions(session: Session, wanted: LogFilter) -> list[ColumnElement[bool]] | None:
    """What the rows have to meet; None if there has been no run yet."""
    run_id, site_run_id = log_scope(session, wanted)
    levels = LOG_LEVELS[: LOG_LEVELS.index(wanted.level) + 1]
    conditions = [or_(HarvestOperation.level.in_(levels), _has_finding(HarvestDetailLog.level.in_(levels)))]
    if site_run_id is not None:
        conditions.append(HarvestLog.site_run_id == site_run_id)
    elif run_id is not None:
        conditions.append(HarvestLog.run_id == run_id)
        if wanted.site is not None:
            conditions.append(HarvestLog.site_schedule_id == runs.site_number(session, wanted.site))
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
    if not head or not tail.isdecimal() or not tail.isascii() or int(tail) > LARGEST_ID:
        return about
    return or_(about, and_(HarvestLog.document_id == head, HarvestLog.revision == int(tail)))


def _has_finding(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    return HarvestLog.harvest_log_id.in_(select(HarvestDetailLog.harvest_log_id).where(condition))
