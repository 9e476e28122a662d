"""Imports the log of a Metacat Harvester: its rows keep their dates, and belong to one run with the status `imported`.

Such a run is no harvest: decisions about due, overdue or owed sites ignore it. Its rows belong to no site run
and have no outcome, so that no report counts them. They are purged by their dates, like others.
"""

from __future__ import annotations

import os
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.models import HarvestDetailLog, HarvestLog, HarvestRun
from metaharvest.database.operations import OPERATIONS
from metaharvest.model import Level, RunStatus
from metaharvest.model.values import frozen
from metaharvest.takeover.metacat_rows import read_day
from metaharvest.takeover.metacat_tables import TableRow
from metaharvest.text import one_line, without_credentials

RULE = "harvest.imported"
"""The rule of the findings that the Metacat Harvester had logged."""

_PREFIX = "harvester."
_NAMED = 20
_ROWS_AT_ONCE = 1000
_LARGEST = 2**63 - 1

_Key = tuple[date, str, int, str]
"""Two log rows are the same if these are equal: date, operation, status, message."""


@dataclass(slots=True)
class ImportedLog:
    """The results for the log rows, which add up to `rows`; and for the detail rows, which add up to `details`.

    `too_old`: the next run would delete them. `without_site`: imported rows of a site that is not registered. `reasons`
    name some of the refused rows, each with the reason. `run_id`: the run that the rows belong to now.
    """

    rows: int = 0
    taken: int = 0
    present: int = 0
    too_old: int = 0
    refused: int = 0
    without_site: int = 0
    details: int = 0
    details_taken: int = 0
    details_left_out: int = 0
    run_id: int | None = None
    reasons: list[str] = field(default_factory=list)

    def refuse(self, row: TableRow, reason: str) -> None:
        """Count a refused row."""
        self.refused += 1
        if len(self.reasons) < _NAMED:
            self.reasons.append(f"{row.place}: {reason}")


@frozen
class LogImport:
    """The context of an import: our site numbers by their site numbers; rows from before `since` are not imported."""

    site_ids: Mapping[str, int]
    since: date
    today: date
    now: datetime
    zone: ZoneInfo


def import_log(
    session: Session, log: Iterable[TableRow], details: Iterable[TableRow], wanted: LogImport, *, dry_run: bool
) -> ImportedLog:
    """Write the rows that are not there yet, with their details about documents; nothing in a dry run."""
    counts = ImportedLog()
    known, taken = _imported_before(session), dict[str, dict[str, Any]]()
    for number, row in enumerate(log):
        counts.rows += 1
        values = _log_row(row, wanted, counts)
        if values is None:
            continue
        key = (values["harvest_date"], values["harvest_operation_code"], values["status"], values["message"])
        if known[key] > 0:
            known[key] -= 1
            counts.present += 1
            continue
        counts.taken += 1
        site = (row.values.get("site_schedule_id") or "0").strip()
        counts.without_site += values["site_schedule_id"] is None and site != "0"
        log_id = (row.values.get("harvest_log_id") or "").strip()
        taken[log_id if log_id and log_id not in taken else f"row {number}"] = values
    findings = _add_documents(details, taken, counts)
    if taken and not dry_run:
        _write(session, taken, findings, wanted, counts)
    return counts


def _imported_before(session: Session) -> Counter[_Key]:
    """The rows of earlier imports, with the number of each."""
    row = HarvestLog
    query = (
        select(row.harvest_date, row.harvest_operation_code, row.status, row.message)
        .join(HarvestRun, HarvestRun.run_id == row.run_id)
        .where(HarvestRun.status == RunStatus.IMPORTED.value)
    )
    return Counter((found[0], found[1], found[2], found[3]) for found in session.execute(query))


def _log_row(row: TableRow, wanted: LogImport, counts: ImportedLog) -> dict[str, Any] | None:
    """The row in our columns; None if it is refused or too old, which is counted."""
    text = {name: (value or "").strip() for name, value in row.values.items()}
    moment = text.get("harvest_date", "")
    day = read_day(moment)
    code = text.get("harvest_operation_code", "")
    code = code[len(_PREFIX) :] if code.startswith(_PREFIX) else code
    if row.problem:
        counts.refuse(row, f"{row.problem}.")
    elif day is None:
        counts.refuse(row, f"HARVEST_DATE is '{one_line(moment, 40)}', which is not a date.")
    elif code not in OPERATIONS:
        counts.refuse(row, f"there is no operation '{one_line(code, 60)}'.")
    elif day < wanted.since:
        counts.too_old += 1
    else:
        return {
            "harvest_date": day,
            "logged_at": _moment(moment, day, wanted.zone),
            "status": 0 if text.get("status", "0") in ("", "0") else 1,
            "message": _shown(row.values.get("message")),
            "harvest_operation_code": code,
            "site_schedule_id": wanted.site_ids.get(text.get("site_schedule_id", "")),
        }
    return None


def _moment(text: str, day: date, zone: ZoneInfo) -> datetime:
    """The time of a log row, as precise as the row has it."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = datetime.combine(day, time())
    aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    try:
        return aware.astimezone(UTC)
    except OverflowError:
        return moment.replace(tzinfo=UTC)


def _add_documents(
    details: Iterable[TableRow], taken: Mapping[str, dict[str, Any]], counts: ImportedLog
) -> dict[str, list[dict[str, Any]]]:
    """Put into each log row the document that it is about; return the findings by the number of the log row."""
    findings: dict[str, list[dict[str, Any]]] = {}
    for row in details:
        counts.details += 1
        log_id = (row.values.get("harvest_log_id") or "").strip()
        log = taken.get(log_id)
        if row.problem or log is None:
            counts.details_left_out += 1
            continue
        counts.details_taken += 1
        document = _document(row.values)
        if document["document_id"] and "document_id" not in log:
            log |= {name: document[name] for name in ("document_id", "revision", "document_url")}
        message = _shown(row.values.get("error_message"))
        if message and message.lower() != "null":
            level = OPERATIONS[log["harvest_operation_code"]][0]
            is_error = level == Level.ERROR or log["status"]
            finding = {**document, "level": Level.ERROR.value if is_error else Level.WARNING.value, "rule": RULE}
            findings.setdefault(log_id, []).append({**finding, "error_message": message})
    return findings


def _document(values: Mapping[str, str | None]) -> dict[str, Any]:
    """The document of a detail row, in our columns; None if the row names none."""
    scope = _shown(values.get("scope"))
    identifier, revision = (_number(values.get(name)) for name in ("identifier", "revision"))
    document_id = f"{scope}.{identifier}"
    named = bool(scope) and None not in (identifier, revision) and document_id.isascii() and document_id.isprintable()
    return {
        "scope": scope or None,
        "identifier": identifier,
        "revision": revision,
        "document_id": document_id if named and len(document_id) <= 800 else None,
        "document_url": _shown(values.get("document_url")) or None,
        "document_type": _shown(values.get("document_type")) or None,
    }


def _number(text: str | None) -> int | None:
    try:
        number = int((text or "").strip())
    except ValueError:
        return None
    return number if 0 <= number <= _LARGEST else None


def _shown(text: str | None) -> str:
    """A text as it may be stored: without credentials in URLs, and without what PostgreSQL cannot hold."""
    return without_credentials((text or "").replace("\0", "\ufffd")).strip()


def _write(
    session: Session,
    taken: Mapping[str, dict[str, Any]],
    findings: Mapping[str, list[dict[str, Any]]],
    wanted: LogImport,
    counts: ImportedLog,
) -> None:
    run = HarvestRun(
        harvest_date=wanted.today,
        started_at=wanted.now,
        ended_at=wanted.now,
        heartbeat_at=wanted.now,
        status=RunStatus.IMPORTED.value,
        host=socket.gethostname(),
        pid=os.getpid(),
    )
    session.add(run)
    session.flush()
    counts.run_id = run.run_id
    items = sorted(taken.items(), key=lambda item: _number(item[0]) or 0)
    for some in batches(items, _ROWS_AT_ONCE):
        written = [(log_id, HarvestLog(run_id=run.run_id, **values)) for log_id, values in some]
        session.add_all([row for _, row in written])
        session.flush()
        session.add_all(
            HarvestDetailLog(harvest_log_id=row.harvest_log_id, **finding)
            for log_id, row in written
            for finding in findings.get(log_id, ())
        )
        session.flush()
        session.expunge_all()
