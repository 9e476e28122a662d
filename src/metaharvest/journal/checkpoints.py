"""How far the listing of a repository has come, written beside the outcomes of the records that it has listed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import bindparam, func, insert, select, update
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestDocument, HarvestLog, SiteCheckpoint
from metaharvest.errors import NotWritten
from metaharvest.journal.ledger_rows import delete_entries, forget_missing, ledger_key
from metaharvest.model import Checkpoint, ListedDocument, OutcomeKind, SiteRun
from metaharvest.model.lengths import CHECKPOINT
from metaharvest.sites.ledger import LedgerEntry
from metaharvest.sites.records import (
    AGAIN,
    FULL,
    MOVED,
    TREATMENT,
    KnownRecord,
    keep_listing_state,
    listed_by,
    missing_at,
)

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_AT_ONCE = 500
_NAMED = (
    update(_LEDGER)
    .where(
        _LEDGER.c.site_schedule_id == bindparam("site"),
        _LEDGER.c.document_id.in_(bindparam("documents", expanding=True)),
    )
    .values(listing=bindparam("number"), missing_since=None)
)
_BY_ID = update(_LEDGER).where(_LEDGER.c.harvest_document_id == bindparam("this"))


@dataclass(frozen=True, slots=True)
class PageEnd:
    """What is to be kept with a page whose records have their outcomes.

    `checkpoint` is None in the middle of an answer, from where a listing cannot go on: then nothing is kept
    but `to_delete`, and which records came `older` than they are known, or after that `as_known`. `document_ids` are
    those that were named since the last checkpoint. So many records of this site run were `unchanged`, or named again
    (`duplicate`). `treatment`, `again` and `moved`: see ListingState.
    """

    checkpoint: Checkpoint | None
    listing: int
    document_ids: Sequence[str]
    to_delete: Sequence[tuple[ListedDocument, LedgerEntry | None]]
    older: Sequence[KnownRecord]
    as_known: Sequence[KnownRecord]
    unchanged: int
    duplicate: int
    treatment: str
    again: bool
    moved: int


def write_page_end(session: Session, site_run: SiteRun, end: PageEnd, today: date) -> None:
    """Keep this; the outcomes of the page are in the same transaction, or in one before it. Raises NotWritten.

    What the page lists is missing at no other site of the origin any more: they forget it.
    """
    for document, entry in end.to_delete:
        datestamp = document.origin.datestamp[:40] if document.origin else None
        told: dict[str, Any] = {"to_delete": True, "datestamp": datestamp}
        if entry is not None:
            told |= {"outcome": entry.outcome, "next_attempt": entry.next_attempt}
            session.execute(_BY_ID.values(told), {"this": entry.entry_id})
        else:
            values = {**ledger_key(site_run, document), "target_revision": document.revision, **told}
            session.execute(insert(_LEDGER).values(values))
    for known in end.older:
        session.execute(_BY_ID.values(_in_doubt(known, today)), {"this": known.entry.entry_id})
    for known in end.as_known:
        session.execute(_BY_ID.values(next_attempt=None), {"this": known.entry.entry_id})
    if end.checkpoint is None:
        return
    site_id = site_run.site.site_id
    for first in range(0, len(end.document_ids), _AT_ONCE):
        some = end.document_ids[first : first + _AT_ONCE]
        session.execute(_NAMED, {"site": site_id, "documents": some, "number": end.listing})
        if others := site_run.same_origin.others:
            lost = missing_at(session, others, some)
            forget_missing(session, others, list(listed_by(session, [site_id], lost)))
    checkpoint = json.dumps({**end.checkpoint, TREATMENT: end.treatment, AGAIN: end.again, MOVED: end.moved})
    if len(checkpoint) > CHECKPOINT:
        raise NotWritten(f"how far the list has come takes {len(checkpoint):,} characters, and may take {CHECKPOINT:,}")
    kept = {
        "checkpoint": checkpoint,
        "listing": end.listing,
        "site_run_id": site_run.site_run_id,
        "unchanged": end.unchanged,
        "duplicate": end.duplicate,
    }
    keep_listing_state(session, site_id, kept)


def _in_doubt(known: KnownRecord, today: date) -> Mapping[str, Any]:
    """What is kept of a record that came older than it is known: it is asked for by itself, even in a later night."""
    values: dict[str, Any] = {"next_attempt": today}
    if known.entry.pending_sha256 is not None:
        values |= {"to_delete": False, "outcome": None}  # it is to be asked for though that upload has arrived
    elif known.to_delete:
        # A record that is listed is not deleted: what its repository says when it is asked for it counts.
        values |= {"to_delete": False, "outcome": OutcomeKind.UNCHANGED.value}
    return values


def ask_for_all(session: Session, site_id: int) -> None:
    """Note that a full list is asked for, until the first part of one has come."""
    row = session.get(SiteCheckpoint, site_id)
    if row is not None and row.checkpoint:
        row.checkpoint = json.dumps({**json.loads(row.checkpoint), FULL: True})


def ask_for_others(session: Session, site_id: int) -> None:
    """Note that the site asks for other records from now on: which of those that are known are among them will show."""
    here = update(_LEDGER).where(_LEDGER.c.site_schedule_id == site_id)
    session.execute(here.values(listing=None, missing_since=None))
    session.execute(here.where(~_LEDGER.c.to_delete).values(next_attempt=None))


def mark_missing(session: Session, entry_ids: Sequence[int], today: date) -> None:
    """Note since when these rows are not named any more: what failed of them is not tried again."""
    rows = [{"this": entry_id} for entry_id in entry_ids]
    if rows:
        session.connection().execute(_BY_ID.values(missing_since=today, next_attempt=None), rows)


def forget(session: Session, entry_ids: Sequence[int]) -> None:
    """Delete these rows."""
    for first in range(0, len(entry_ids), _AT_ONCE):
        delete_entries(session, entry_ids[first : first + _AT_ONCE])


def number_logged(session: Session, site_run: SiteRun) -> int:
    """How many outcomes are logged in this site run."""
    query = select(func.count()).where(HarvestLog.site_run_id == site_run.site_run_id, HarvestLog.outcome.is_not(None))
    return session.scalar(query) or 0


def logged_documents(session: Session, site_run: SiteRun, document_ids: Sequence[str]) -> frozenset[str]:
    """Those of these documents whose outcomes are logged in this site run."""
    query = select(HarvestLog.document_id).where(
        HarvestLog.site_run_id == site_run.site_run_id,
        HarvestLog.document_id.in_(document_ids),
        HarvestLog.outcome.is_not(None),
    )
    return frozenset(str(each) for each in session.scalars(query))
