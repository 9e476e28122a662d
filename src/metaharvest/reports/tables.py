"""The tables that travel with reports and that `log --csv` prints: RFC 4180, UTF-8 with a mark that Excel understands.

Read from the journal row by row, in bounded memory. A row for every finding; a document without findings has one row.
No cell can start a formula.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, cast

from sqlalchemy import and_, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import (
    HarvestDetailLog,
    HarvestDocument,
    HarvestLog,
    HarvestOperation,
    HarvestSiteRun,
)
from metaharvest.records import OutcomeKind
from metaharvest.reports.message import Attachment
from metaharvest.settings import ReportsSettings
from metaharvest.text import one_line, shown_url

DOCUMENT_COLUMNS = (
    "docid", "document_id", "revision", "outcome", "repository_revision", "url", "bytes", "seconds", "failing_since",
    "attempts", "level", "rule", "line", "column", "xpath", "message", "excerpt", "remedy",
)  # fmt: skip
LOG_COLUMNS = (
    "log_id", "logged_at_utc", "harvest_date", "site", "site_run", "operation", "operation_level", "status", "docid",
    "outcome", "repository_revision", "url", "bytes", "seconds", "log_message", "level", "rule", "line", "column",
    "xpath", "message", "excerpt", "remedy",
)  # fmt: skip

_LOG = (
    HarvestLog.harvest_log_id,
    HarvestLog.document_id,
    HarvestLog.revision,
    HarvestLog.document_url,
    HarvestLog.outcome,
    HarvestLog.target_revision,
    HarvestLog.size,
    HarvestLog.seconds,
)
_DETAIL = (
    HarvestDetailLog.detail_log_id,
    HarvestDetailLog.document_id,
    HarvestDetailLog.revision,
    HarvestDetailLog.document_url,
)
_FINDING = (
    HarvestDetailLog.level,
    HarvestDetailLog.rule,
    HarvestDetailLog.line_number,
    HarvestDetailLog.column_number,
    HarvestDetailLog.xpath,
    HarvestDetailLog.error_message,
    HarvestDetailLog.excerpt,
    HarvestDetailLog.remedy,
)
"""Columns alone, in this order: an object for each of a great many rows would take most of the time."""

_FORMULA_STARTS = tuple("=+-@\t\r＝＋－＠")
_ROWS_AT_ONCE = 500
_MAX_CELL = 32_000


def documents_csv(session: Session, site_run_id: int, *, unchanged: bool = False) -> Iterator[str]:
    """The documents of a site run as chunks of text, header first.

    Every document that is not merely unchanged, and the findings about the list itself; with `unchanged` also those
    that the ledger knows as unchanged today.
    """
    rows = _document_rows(session, site_run_id)
    yield from _chunks(DOCUMENT_COLUMNS, rows)
    if unchanged:
        yield from _chunks((), _unchanged_rows(session, site_run_id))


def log_csv(session: Session, run_id: int) -> Iterator[str]:
    """The whole log of a run as chunks of text, header first, in the order in which it was written."""
    yield from _chunks(LOG_COLUMNS, _log_rows(session, run_id))


def attachment_of(chunks: Iterable[str], file_name: str, settings: ReportsSettings) -> tuple[Attachment | None, int]:
    """The table as an attachment, gzipped where it is long, None where it is too long; and its number of rows.

    A table that is too long is not read to its end: its number of rows is then one of those that were read.
    """
    content = bytearray()
    lines = 0
    for chunk in chunks:
        content += chunk.encode("utf-8", "replace")
        lines += chunk.count("\r\n")
        if len(content) > settings.drop_csv_over:
            return None, lines - 1
    if len(content) <= settings.gzip_csv_over:
        return Attachment(file_name, bytes(content)), lines - 1
    return Attachment(f"{file_name}.gz", gzip.compress(content, mtime=0), gzipped=True), lines - 1


def docid_of(document_id: str | None, revision: int | None) -> str:
    """Document id and revision as people write them; what there is of them."""
    if not document_id:
        return ""
    return document_id if revision is None else f"{document_id}.{revision}"


def _chunks(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    if columns:
        buffer.write("\ufeff")
        writer.writerow(columns)
    for number, row in enumerate(rows, start=1):
        writer.writerow(map(_cell, row))
        if number % _ROWS_AT_ONCE == 0:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def _cell(value: object) -> object:
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return f"{value:.3f}"
    text = one_line(str(value), _MAX_CELL)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _document_rows(session: Session, site_run_id: int) -> Iterator[Sequence[object]]:
    log, detail, ledger = HarvestLog, HarvestDetailLog, HarvestDocument
    same_document = and_(
        ledger.site_schedule_id == log.site_schedule_id,
        ledger.document_id == log.document_id,
        ledger.revision == log.revision,
    )
    told = or_(log.outcome != OutcomeKind.UNCHANGED.value, detail.detail_log_id.is_not(None))
    query = (
        select(*_LOG, *_DETAIL, *_FINDING, ledger.failing_since, ledger.attempts)
        .select_from(log)
        .outerjoin(detail, detail.harvest_log_id == log.harvest_log_id)
        .outerjoin(ledger, same_document)
        .where(log.site_run_id == site_run_id, told)
        .order_by(log.document_id, log.revision, log.harvest_log_id, detail.detail_log_id)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    for _, rows in groupby(session.execute(query), key=lambda row: (row[1], row[2])):
        yield from _rows_of_document([_Joined.of(row) for row in rows])


class _Joined(NamedTuple):
    """A log row with one of its findings, or none: the columns of _LOG, _DETAIL, _FINDING, and two of the ledger."""

    log: Sequence[Any]
    detail: Sequence[Any]
    finding: Sequence[Any]
    failing: Sequence[Any]

    @classmethod
    def of(cls, row: Sequence[Any]) -> _Joined:
        return cls(row[:8], row[8:12], row[12:20], row[20:])

    @property
    def log_id(self) -> int:
        return int(self.log[0])

    @property
    def outcome(self) -> str | None:
        return cast("str | None", self.log[4])

    @property
    def is_bare(self) -> bool:
        """Whether the log row has no finding."""
        return self.detail[0] is None


def _rows_of_document(rows: Sequence[_Joined]) -> Iterator[Sequence[object]]:
    """A warning may hang on a log row without an outcome: it goes with the row that has it, of the same document."""
    ended = next((row for row in rows if row.outcome and row.outcome != OutcomeKind.DUPLICATE.value), None)
    with_details = {row.log_id for row in rows if not row.is_bare}
    borrowed = any(not row.is_bare and not row.outcome for row in rows)
    for row in rows:
        owner = row if row.outcome else ended or row
        if row.is_bare and borrowed and ended and row.log_id == ended.log_id and owner.log_id not in with_details:
            continue
        failing = row.failing if row.failing[0] else (None, None)
        yield (*_document_cells(owner.log, row.detail), *failing, *row.finding)


def _document_cells(log: Sequence[Any], detail: Sequence[Any]) -> tuple[object, ...]:
    _, document_id, revision, url, outcome, target_revision, size, seconds = log
    if document_id is None:
        _, document_id, revision, url = detail
    docid = docid_of(document_id, revision)
    return docid, document_id, revision, outcome, target_revision, shown_url(url or ""), size, seconds


def _unchanged_rows(session: Session, site_run_id: int) -> Iterator[Sequence[object]]:
    ledger = HarvestDocument
    query = (
        select(ledger)
        .join(HarvestSiteRun, HarvestSiteRun.site_schedule_id == ledger.site_schedule_id)
        .where(HarvestSiteRun.site_run_id == site_run_id, ledger.outcome == OutcomeKind.UNCHANGED.value)
        .order_by(ledger.document_id, ledger.revision)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    for row in session.scalars(query):
        yield (
            docid_of(row.document_id, row.revision),
            row.document_id,
            row.revision,
            row.outcome,
            row.target_revision,
            shown_url(row.document_url),
            *(None,) * 12,
        )


def _log_rows(session: Session, run_id: int) -> Iterator[Sequence[object]]:
    log, detail = HarvestLog, HarvestDetailLog
    query = (
        select(
            *_LOG,
            *_DETAIL,
            *_FINDING,
            log.logged_at,
            log.harvest_date,
            HarvestSiteRun.site_name,
            log.site_run_id,
            log.harvest_operation_code,
            HarvestOperation.level,
            log.status,
            log.message,
        )
        .select_from(log)
        .outerjoin(detail, detail.harvest_log_id == log.harvest_log_id)
        .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == log.site_run_id)
        .outerjoin(HarvestOperation, HarvestOperation.harvest_operation_code == log.harvest_operation_code)
        .where(log.run_id == run_id)
        .order_by(log.harvest_log_id, detail.detail_log_id)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    rows: Iterable[Any] = session.execute(query)
    for row in rows:
        at, *site_and_operation, message = row[20:]
        cells = _document_cells(row[:8], row[8:12])
        written = at.replace(tzinfo=None).isoformat(sep=" ", timespec="seconds")
        yield (row[0], written, *site_and_operation, cells[0], *cells[3:], message, *row[12:20])
