"""Writes a group of outcomes at once: documents into the target, log rows, detail rows, the ledger.

A group goes in with a handful of statements, in one savepoint. Where the database or the target refuses something in
it, the group is written again one by one, so that a bad row fails alone.
"""

from __future__ import annotations

import errno
import logging
import sqlite3
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING

from sqlalchemy import exc, update
from sqlalchemy.orm import Session

from metaharvest.config.secret_references import masked
from metaharvest.database.dialects import next_numbers
from metaharvest.database.models import Base, HarvestDetailLog, HarvestDocument, HarvestLog
from metaharvest.database.rows import insert_rows
from metaharvest.errors import TargetError
from metaharvest.journal.log_rows import LogRow, outcome_rows
from metaharvest.model import Action, FetchedDocument, Finding, ListedDocument, Outcome, OutcomeKind
from metaharvest.sites import ledger
from metaharvest.targets.base import Target, Upload
from metaharvest.text import one_line

if TYPE_CHECKING:
    from metaharvest.journal.site_runs import SiteRun

log = logging.getLogger(__name__)

_LOG = Base.metadata.tables[HarvestLog.__tablename__]
_DETAILS = Base.metadata.tables[HarvestDetailLog.__tablename__]
_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]

Columns = dict[str, object]


@dataclass(frozen=True, slots=True)
class Entry:
    """An outcome handed over to the journal; `fetched`: to be put into the target with it."""

    site_run: SiteRun
    outcome: Outcome
    fetched: FetchedDocument | None
    known: ledger.LedgerEntry | None

    def refused(self, *findings: Finding) -> Entry:
        """The same, ended as an upload error."""
        return replace(self, outcome=self.outcome.as_error(OutcomeKind.UPLOAD_ERROR, *findings), fetched=None)

    def unwritable(self, reason: str) -> Entry:
        """The same as an upload error; without anything that may be the cause, where that is not written either."""
        if self.fetched is not None:
            return self.refused(_not_stored(reason))
        bare = Outcome(self.outcome.document, OutcomeKind.UPLOAD_ERROR, transient=self.outcome.transient)
        first_time = self.outcome.kind is not OutcomeKind.UPLOAD_ERROR
        return replace(self, outcome=replace(bare, findings=(_not_stored(reason),) if first_time else ()))


@dataclass(frozen=True, slots=True)
class Page:
    """Which run writes, on which day, at what time."""

    run_id: int
    today: date
    now: datetime


def write(session: Session, entries: Sequence[Entry], target: Target, page: Page) -> None:
    """Write the group. Raises what the database raises where it fails as a whole (away, full, read-only)."""
    try:
        with session.begin_nested():
            _write_all(session, entries, target, page)
    except Exception as error:
        if is_lost(error):
            raise
        for entry in entries:
            _write_one(session, entry, target, page)


def write_log(session: Session, rows: Sequence[tuple[LogRow, Columns]], page: Page) -> None:
    """Write log rows, each with the columns that say whose it is, and their detail rows, in this order."""
    if not rows:
        return
    when: Columns = {"run_id": page.run_id, "harvest_date": page.today, "logged_at": page.now}
    ids = next_numbers(session, HarvestLog.harvest_log_id, len(rows))
    values = [{"harvest_log_id": key, **whose, **row.columns()} for key, (row, whose) in zip(ids, rows, strict=True)]
    insert_rows(session.connection(), _LOG, values, when)
    details = [detail for key, (row, _) in zip(ids, rows, strict=True) for detail in row.details(key)]
    if details:
        insert_rows(session.connection(), _DETAILS, details)


def site_columns(site_run: SiteRun) -> Columns:
    """Whose a log row is, where it is a site's."""
    return {"site_schedule_id": site_run.site.site_id, "site_run_id": site_run.site_run_id}


def ledger_key(site_run: SiteRun, document: ListedDocument) -> Columns:
    """The columns that name a document in the ledger, and say where it is."""
    return {
        "site_schedule_id": site_run.site.site_id,
        "document_id": document.document_id,
        "revision": document.revision,
        "document_url": document.url,
        "document_type": document.document_type,
    }


def _write_all(session: Session, entries: Sequence[Entry], target: Target, page: Page) -> None:
    outcomes = _stored(session, entries, target, page)
    write_log(
        session,
        [
            (row, site_columns(entry.site_run))
            for entry, outcome in zip(entries, outcomes, strict=True)
            for row in outcome_rows(outcome)
        ],
        page,
    )
    _write_ledger(session, entries, outcomes, page)


def _write_one(session: Session, entry: Entry, target: Target, page: Page) -> None:
    """Write one outcome; where that is refused, the same as an upload error; where even that is, nothing of it.

    A document without any row leaves its site run incomplete, which everybody is told of.
    """
    try:
        with session.begin_nested():
            _write_all(session, [entry], target, page)
    except TargetError as error:
        _write_one(session, entry.refused(*error.findings), target, page)
    except Exception as error:
        if is_lost(error):
            raise
        log.exception("The outcome of %s could not be written", entry.outcome.document.docid)
        if entry.outcome.kind is not OutcomeKind.UPLOAD_ERROR or entry.outcome.findings:
            reason = one_line(masked(str(getattr(error, "orig", None) or error)))
            _write_one(session, entry.unwritable(reason), target, page)


def is_lost(error: Exception) -> bool:
    """Whether the database is away, full or read-only, rather than unwilling to take one row."""
    return isinstance(error, exc.OperationalError | exc.InterfaceError | exc.InternalError)


def _stored(session: Session, entries: Sequence[Entry], target: Target, page: Page) -> list[Outcome]:
    """The outcomes, after what was fetched has been put into the target: inserted or updated, as it turned out."""
    with_bytes = [entry for entry in entries if entry.fetched is not None]
    uploads = [Upload(entry.fetched, entry.site_run.site.site_id, page.now) for entry in with_bytes if entry.fetched]
    actions = iter(target.upload(uploads, session) if uploads else [])
    return [
        entry.outcome if entry.fetched is None else replace(entry.outcome, kind=_KINDS[next(actions)])
        for entry in entries
    ]


_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
_KINDS = {Action.INSERT: OutcomeKind.INSERTED, Action.UPDATE: OutcomeKind.UPDATED}


def _write_ledger(session: Session, entries: Sequence[Entry], outcomes: Sequence[Outcome], page: Page) -> None:
    changes = [
        (entry, values)
        for entry, outcome in zip(entries, outcomes, strict=True)
        if outcome.kind is not OutcomeKind.DUPLICATE
        and (values := ledger.entry_values(entry.known, outcome, page.today)) is not None
    ]
    new: list[Columns] = []
    changed: list[Columns] = []
    for entry, values in changes:
        if entry.known is not None:
            changed.append({"harvest_document_id": entry.known.entry_id, **values})
        elif not _update_by_key(session, entry, values):
            new.append({**ledger_key(entry.site_run, entry.outcome.document), **values})
    write_ledger(session, new, changed)


def write_ledger(session: Session, new: Sequence[Columns], changed: Sequence[Columns]) -> None:
    """Insert and update ledger rows, those with the same columns in one statement."""
    for rows in _alike(new):
        insert_rows(session.connection(), _LEDGER, rows)
    for rows in _alike(changed):
        session.execute(update(HarvestDocument), rows)


def _alike(rows: Sequence[Columns]) -> Iterator[list[Columns]]:
    """The rows, those with the same columns together."""
    groups: dict[frozenset[str], list[Columns]] = {}
    for row in rows:
        groups.setdefault(frozenset(row), []).append(row)
    yield from groups.values()


def _update_by_key(session: Session, entry: Entry, values: ledger.Values) -> bool:
    """Update a row that was not there when the outcome was decided: the one that says an upload is pending."""
    if entry.fetched is not None or (entry.outcome.sha256 is None and not entry.outcome.unconfirmed):
        return False
    document = entry.outcome.document
    changed = session.execute(
        update(HarvestDocument)
        .where(
            HarvestDocument.site_schedule_id == entry.site_run.site.site_id,
            HarvestDocument.document_id == document.document_id,
            HarvestDocument.revision == document.revision,
        )
        .values(**values)
    )
    return bool(changed.rowcount)  # type: ignore[attr-defined]


def is_no_room(error: Exception) -> bool:
    """Whether a temporary file could not be written: the disk is full, or closed for writing."""
    return isinstance(error, sqlite3.OperationalError) or (isinstance(error, OSError) and error.errno in _NO_ROOM)


def unexpected_error(error: Exception, what: str) -> Finding:
    """What happened that metaharvest did not expect, with its traceback for the developers; or that room is wanting."""
    if is_no_room(error):
        reason = one_line(getattr(error, "strerror", None) or str(error))
        return Finding(
            "harvest.no-room",
            f"{what}: there is no room for its temporary files ({reason}).",
            f"The administrator should make room in {tempfile.gettempdir()}, or have TMPDIR name another folder. The "
            "next run tries again.",
        )
    return Finding(
        "harvest.surprise",
        f"{what}: {type(error).__name__}: {one_line(masked(str(error)))}",
        "The administrator should report this to the developers of metaharvest, with the traceback in the log.",
        excerpt=masked("".join(traceback.format_exception(error)))[-4000:],
    )


def _not_stored(reason: str) -> Finding:
    return Finding(
        "target.not-stored",
        f"The repository's database refused the document: {reason}",
        "The administrator should look into this; the document itself passed every check.",
    )
