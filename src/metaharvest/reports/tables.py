"""The tables attached to reports, and those that `--csv` of commands prints: RFC 4180, UTF-8 with the mark for Excel.

Read from the journal in bounded memory; a caller that does not read a table to its end closes it, as a database may
keep the rest for it. A row for every finding; a document without findings has one row. No cell can start a formula.
"""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, cast

from sqlalchemy import ColumnElement, DateTime, Row, and_, func, literal, or_, select, true, type_coerce
from sqlalchemy.orm import Session

from metaharvest.config.settings import ReportsSettings
from metaharvest.database.models import (
    DocumentTransfer,
    HarvestDetailLog,
    HarvestDocument,
    HarvestLog,
    HarvestOperation,
    HarvestSiteRun,
)
from metaharvest.database.operations import OPERATIONS
from metaharvest.database.statements import by_document
from metaharvest.mail.message import Attachment
from metaharvest.model import OutcomeKind
from metaharvest.reports.findings import ITS_ENTRY
from metaharvest.reports.phrasing import docid_of, without_commands
from metaharvest.rules import RULES
from metaharvest.text import one_line, shown_url

DOCUMENT_COLUMNS = (
    "docid", "document_id", "revision", "outcome", "repository_revision", "url", "bytes", "seconds", "failing_since",
    "attempts", "level", "rule", "line", "column", "xpath", "message", "excerpt", "remedy", "title",
)  # fmt: skip
LOG_COLUMNS = (
    "log_id", "logged_at_utc", "harvest_date", "site", "site_run", "operation", "operation_level", "status", "docid",
    "outcome", "repository_revision", "url", "bytes", "seconds", "log_message", "level", "rule", "line", "column",
    "xpath", "message", "excerpt", "remedy", "run_id", "site_run_id", "site_id",
)  # fmt: skip

_log, _detail = HarvestLog, HarvestDetailLog
_LOG = (_log.harvest_log_id, _log.document_id, _log.revision, _log.document_url,
        _log.outcome, _log.target_revision, _log.size, _log.seconds)  # fmt: skip
_DETAIL = (_detail.detail_log_id, _detail.document_id, _detail.revision, _detail.document_url)
_FINDING = (_detail.level, _detail.rule, _detail.line_number, _detail.column_number,
            _detail.xpath, _detail.error_message, _detail.excerpt, _detail.remedy)  # fmt: skip
"""Columns, in this order, not model objects: to make an object for each row would take most of the time."""

_EVERY_FINDING = true()

_Row = Row[*tuple[Any, ...]]
_RULE = DOCUMENT_COLUMNS.index("rule")
_FORMULA_STARTS = tuple("=+-@\t\r＝＋－＠")
_NOT_FIRST = frozenset({" ", *_FORMULA_STARTS})
"""The characters with which no cell begins."""

_WHOLE = {int, type(None)}
_SECONDS = {float, type(None)}
_TEXTS = {str, type(None)}
_GZIP = 31
"""The `wbits` of zlib for the largest window and a gzip header."""

_ROWS_AT_ONCE = 500

_MAX_CELL = 32_000
_LEAST_OF_A_ROW = len("2026-11-24 03:00:00") + len("2026-11-24") + len(LOG_COLUMNS) - 1 + len("\r\n")
"""Bytes of a row of the log that has no text at all: its time, its day, the commas, and its end."""

_LEAST_OF_A_DOCUMENT = len(DOCUMENT_COLUMNS) - 1 + len("\r\n")
_IS_IN_TABLE = _log.outcome != OutcomeKind.UNCHANGED.value
"""True for the log row of a document with an outcome that is not merely unchanged."""


def documents_csv(
    session: Session, site_run_id: int, *, unchanged: bool = False, for_contacts: bool = False
) -> Generator[str, None, None]:
    """The documents of a site run that are not merely unchanged, and findings about the list, as chunks of text.

    The header is first. With `unchanged` also the documents that are unchanged today in the ledger. `for_contacts`:
    findings are in the words for the site's contacts.
    """
    rows = _document_rows(session, site_run_id)
    yield from _chunks(DOCUMENT_COLUMNS, _by_column(map(_for_contacts, rows) if for_contacts else rows))
    if unchanged:
        yield from _chunks((), _by_column(_unchanged_rows(session, site_run_id)))


def log_csv(session: Session, run_id: int) -> Generator[str, None, None]:
    """The whole log of a run as chunks of text, header first, in the order in which it was written."""
    # The primary key gives the rows in their order. `+ 0` hides the index of runs: after it, all rows would be sorted.
    # For the lowest number without `+ 0`, PostgreSQL reads all rows before this run.
    number = _log.harvest_log_id + 0
    first, last = session.execute(select(func.min(number), func.max(number)).where(_log.run_id == run_id)).one()
    of_run = (_log.harvest_log_id.between(first, last), _log.run_id + 0 == run_id)
    yield from _chunks(LOG_COLUMNS, _log_parts(session, of_run))


def least_log_size(session: Session, run_id: int) -> int:
    """The least length of log_csv() in bytes, without white space that it folds; the database is quick here."""
    texts = (func.substr(_log.message, 1, _MAX_CELL), _log.document_url, _log.document_id, _log.harvest_operation_code)
    return _least_size(session, _LEAST_OF_A_ROW, texts, _log.run_id == run_id)


def least_documents_size(session: Session, site_run_id: int) -> int:
    """The least length of documents_csv() in bytes: to sort the rows of 100,000 documents takes 40 MB of memory."""
    texts = (_log.document_id, _log.document_id, _log.document_url, _log.outcome)  # the docid has the document id, too
    return _least_size(session, _LEAST_OF_A_DOCUMENT, texts, _log.site_run_id == site_run_id, _IS_IN_TABLE)


def _least_size(session: Session, of_a_row: int, texts: Iterable[Any], *rows: ColumnElement[bool]) -> int:
    """The length of these texts in all rows of the log that meet `rows`, with `of_a_row` more bytes for each row."""
    lengths = (func.coalesce(func.length(text), 0) for text in texts)
    return int(session.scalar(select(func.sum(sum(lengths, literal(of_a_row)))).where(*rows)) or 0)


def selected_log_csv(
    session: Session,
    rows: Sequence[ColumnElement[bool]],
    findings: ColumnElement[bool],
    transfers: Sequence[ColumnElement[bool]],
) -> Generator[str, None, None]:
    """The rows of the log that meet `rows`, with their findings that meet `findings`, as chunks of text.

    Before them come transfers of documents that the log has no row of, if they meet `transfers`.
    """
    before = _by_column(_transfer_rows(session, transfers))
    yield from _chunks(LOG_COLUMNS, chain(before, _log_parts(session, rows, findings)))


def table_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Generator[str, None, None]:
    """Any table as chunks of text, header first."""
    yield from _chunks(columns, _by_column(iter(rows)))


def attachment_of(
    chunks: Generator[str, None, None], file_name: str, settings: ReportsSettings, at_least: int
) -> tuple[Attachment | None, int]:
    """The table as an attachment, gzipped if it is long, None if it is too long; and its number of rows.

    A table that is too long is not read to its end: then the number counts the rows that were read. With too many bytes
    `at_least`, no row is read.
    """
    if at_least > settings.drop_csv_over:
        return None, 0
    parts: list[bytes] = []
    size = lines = 0
    compressor, compressed = zlib.compressobj(wbits=_GZIP), list[Future[bytes]]()
    # A long table is compressed in a thread while its next rows are read: zlib releases the interpreter's lock.
    with closing(chunks), ThreadPoolExecutor(1, thread_name_prefix="table") as thread:
        for chunk in chunks:
            parts.append(chunk.encode("utf-8", "replace"))
            size += len(parts[-1])
            lines += chunk.count("\r\n")
            if size > settings.drop_csv_over:
                return None, lines - 1
            if size > settings.gzip_csv_over:
                compressed += [thread.submit(compressor.compress, part) for part in parts]
                parts.clear()
    if not compressed:
        return Attachment(file_name, b"".join(parts)), lines - 1
    content = b"".join(part.result() for part in compressed) + compressor.flush()
    return Attachment(f"{file_name}.gz", content, gzipped=True), lines - 1


def _chunks(columns: Sequence[str], parts: Iterable[Sequence[Sequence[object]]]) -> Generator[str, None, None]:
    """The table as text, a chunk for each part. A part is a list of columns."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    if columns:
        buffer.write("\ufeff")
        writer.writerow(columns)
    for part in parts:
        writer.writerows(zip(*map(_cells, part), strict=True))
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue()


def _by_column(rows: Iterator[Sequence[object]]) -> Iterator[Sequence[Sequence[object]]]:
    """The rows as parts of a table, _ROWS_AT_ONCE rows each."""
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        yield list(zip(*some, strict=True))


def _cells(column: Sequence[object]) -> Sequence[object]:
    """Part of a column as cells. Most are numbers or plain texts, which need not be looked at one by one."""
    kinds = set(map(type, column))
    if kinds <= _WHOLE or (kinds <= _TEXTS and _are_plain(cast("Sequence[str | None]", column))):
        return column
    if kinds <= _SECONDS:
        return [None if value is None else f"{value:.3f}" for value in column]
    return [*map(_cell, column)]


def _are_plain(column: Sequence[str | None]) -> bool:
    """True if these texts can be cells as they are; false if in doubt."""
    texts = set(filter(None, column))
    together = "|".join(texts)
    if "  " in together or not together.isprintable() or not _NOT_FIRST.isdisjoint(map(itemgetter(0), texts)):
        return False
    if "@" in together and "://" in together:  # a login in a URL
        return False
    return " " not in map(itemgetter(-1), texts) and max(map(len, texts), default=0) <= _MAX_CELL


def _cell(value: object) -> object:
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return f"{value:.3f}"
    text = one_line(str(value), _MAX_CELL)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text


def _document_rows(session: Session, site_run_id: int) -> Iterator[Sequence[object]]:
    log, detail, ledger = _log, _detail, HarvestDocument
    condition = or_(_IS_IN_TABLE, detail.detail_log_id.is_not(None))
    query = (
        select(*_LOG, *_DETAIL, *_FINDING, ledger.failing_since, ledger.attempts, ledger.title)
        .select_from(log)
        .outerjoin(detail, detail.harvest_log_id == log.harvest_log_id)
        .outerjoin(ledger, ITS_ENTRY)
        .where(log.site_run_id == site_run_id, condition)
        .order_by(*by_document(log.document_id), log.revision, log.harvest_log_id, detail.detail_log_id)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    session.flush()
    with session.connection().execute(query) as result:
        for _, rows in groupby(result, key=itemgetter(1, 2)):
            first, *more = rows
            if more:
                yield from _rows_of_document([first, *more])
            else:
                yield _document_row(first, first)


def _rows_of_document(rows: Sequence[_Row]) -> Iterator[Sequence[object]]:
    """A warning on a log row without an outcome is shown with the outcome that another row of its document has."""
    ended = next((row for row in rows if row.outcome and row.outcome != OutcomeKind.DUPLICATE.value), None)
    borrowed = any(row.detail_log_id is not None and not row.outcome for row in rows)
    for row in rows:
        if not (borrowed and row is ended and row.detail_log_id is None):
            yield _document_row(row if row.outcome else ended or row, row)


def _document_row(owner: _Row, row: _Row) -> tuple[object, ...]:
    """The columns of _LOG (from `owner`), _DETAIL and _FINDING, and three of the ledger, in the order of the table."""
    failing = row[20:22] if row[20] else (None, None)
    return (*_document_cells(owner[:8], row[8:12]), *failing, *row[12:20], row[22])


def _for_contacts(row: Sequence[object]) -> Sequence[object]:
    """A row in the words for a site's contacts; our own mistakes without their place and message."""
    if row[_RULE] is None:
        return row
    *document, level, name, line, column, xpath, message, excerpt, remedy, title = row
    rule = RULES.get(str(name))
    if rule is None or not rule.for_contact:
        return (*row[:-2], without_commands(str(remedy)) if remedy else None, title)
    if rule.is_ours:
        return (*document, level, name, None, None, None, f"{rule.title}.", None, rule.for_contact, title)
    return (*document, level, name, line, column, xpath, message, excerpt, rule.for_contact, title)


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
        .order_by(*by_document(ledger.document_id), ledger.revision)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    for row in session.scalars(query):
        known = (row.document_id, row.revision, row.outcome, row.target_revision, shown_url(row.document_url))
        yield (docid_of(row.document_id, row.revision), *known, *(None,) * 12, row.title)


def _log_parts(
    session: Session, which: Sequence[ColumnElement[bool]], findings: ColumnElement[bool] = _EVERY_FINDING
) -> Iterator[Sequence[Sequence[object]]]:
    log, detail = _log, _detail
    query = (
        select(*_LOG, *_DETAIL, *_FINDING, type_coerce(log.logged_at, DateTime()), log.harvest_date)
        .add_columns(HarvestSiteRun.site_name, log.site_run_id, log.harvest_operation_code)
        .add_columns(HarvestOperation.level, log.status, log.message, log.run_id, log.site_schedule_id)
        .select_from(log)
        .outerjoin(detail, and_(detail.harvest_log_id == log.harvest_log_id, findings))
        .outerjoin(HarvestSiteRun, HarvestSiteRun.site_run_id == log.site_run_id)
        .outerjoin(HarvestOperation, HarvestOperation.harvest_operation_code == log.harvest_operation_code)
        .where(*which)
        .order_by(log.harvest_log_id, detail.detail_log_id)
        .execution_options(yield_per=_ROWS_AT_ONCE)
    )
    session.flush()
    with session.connection().execute(query) as result:
        yield from map(_log_part, result.partitions())


def _log_part(rows: Sequence[_Row]) -> Sequence[Sequence[object]]:
    """Rows of the log's query as columns of its table."""
    columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
    numbers, times, days, *site_and_operation, messages, runs, sites = columns[0], *columns[20:]
    logs, details = zip(*columns[:8], strict=True), zip(*columns[8:12], strict=True)
    docids, _, _, *documents = zip(*map(_document_cells, logs, details), strict=True)
    # Rows that were written together have the same time.
    as_text = {at: _time(at) for at in set(times)}
    written, dates = [as_text[at] for at in times], [*map(str, days)]
    about = (*site_and_operation, docids, *documents, messages, *columns[12:20])
    return (numbers, written, dates, *about, runs, site_and_operation[1], sites)


def _transfer_rows(session: Session, which: Sequence[ColumnElement[bool]]) -> Iterator[Sequence[object]]:
    """Transfers as rows of the log: in the same columns, most of them empty."""
    for transfer in session.scalars(
        select(DocumentTransfer).where(*which).order_by(DocumentTransfer.transfer_id)
    ).all():
        known = {
            "logged_at_utc": _time(transfer.transferred_at.replace(tzinfo=None)),
            "harvest_date": transfer.transferred_on.isoformat(),
            "operation": "UpdateDocSuccess",
            "operation_level": OPERATIONS["UpdateDocSuccess"][0],
            "status": 0,
            "docid": transfer.document_id,
            "log_message": transfer.message,
            "site_id": transfer.from_site_id,
        }
        yield [known.get(column) for column in LOG_COLUMNS]


def _time(moment: datetime) -> str:
    """A timestamp, without its zone, as a cell."""
    return moment.isoformat(sep=" ", timespec="seconds")
