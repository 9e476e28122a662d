"""The progress of the sweep of a source repository, kept beside the outcomes of the records that it has listed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import date
from typing import Any

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.models import Base, HarvestDocument, SiteCheckpoint
from metaharvest.errors import NotWritten
from metaharvest.ledger.entries import DELETION_WAITS, LedgerEntry, after_listing, after_older
from metaharvest.ledger.records import IS_MISSING, listed_by, missing_at
from metaharvest.ledger.rows import Columns, becoming, forget_missing, ledger_key
from metaharvest.model import Checkpoint, DocumentState, ListedDocument, OutcomeKind, SiteRun
from metaharvest.model.lengths import CHECKPOINT
from metaharvest.model.values import frozen

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]


_CHECKPOINTS = Base.metadata.tables[SiteCheckpoint.__tablename__]

_OF_SITE = update(_CHECKPOINTS).where(_CHECKPOINTS.c.site_schedule_id == bindparam("site"))
"""Updates the columns that are given as parameters."""

_THESE = update(_LEDGER).where(
    _LEDGER.c.site_schedule_id == bindparam("site"),
    _LEDGER.c.document_id.in_(bindparam("documents", expanding=True)),
)
_NAMED = _THESE.values(listing=bindparam("sweep_id"), missing_since=None)
"""Without the state: SQLite writes the entry in an index again for each column that is set, changed or not."""

_FOUND = _THESE.where(IS_MISSING).values(state=becoming(after_listing))
_ANY_MISSING = select(_LEDGER.c.state).where(_LEDGER.c.site_schedule_id == bindparam("site"), IS_MISSING).limit(1)

_OF_SWEEP = ("full", "todo", "token", "received", "announced")
"""The parts of a sweep under way that are kept in columns, and not in the checkpoint of the source."""


@frozen
class Progress:
    """The progress of a site's sweep: a row of SiteCheckpoint. All is empty before the first sweep of the site."""

    checkpoint: Checkpoint | None = None
    """The checkpoint of the source."""
    sweep_id: int = 0
    """The number of the sweep, among all sweeps of the site. The columns `listing` have it."""
    site_run_id: int | None = None
    """The site run that the last page came in."""
    unchanged: int = 0
    """The number of unchanged records that this site run has accounted for."""
    duplicate: int = 0
    """The number of duplicates that this site run has accounted for."""
    treatment: str = ""
    """The digest of the ProcessingPolicy by which all records are checked, or were checked."""
    rechecks: bool = False
    """True if the sweep also checks the records that have not changed."""
    moved: int = 0
    """The number of records that came earlier in the sweep with another datestamp."""
    full_wanted: bool = False
    """True if a full sweep is wanted, and has not begun: a person asks for it, or the target lacks documents."""


def progress_of(session: Session, site_id: int, treatment: str) -> Progress:
    """The progress of the site's sweep. `treatment` is for sweeps that were stored without one."""
    row = session.get(SiteCheckpoint, site_id)
    if row is None:
        return Progress()
    checkpoint = _checkpoint_in(row)
    progress = Progress(checkpoint, row.listing, row.site_run_id, row.unchanged, row.duplicate)
    if checkpoint is None:
        return progress
    treatment = treatment if row.treatment is None else row.treatment
    return replace(progress, treatment=treatment, rechecks=row.rechecks, moved=row.moved, full_wanted=row.full_wanted)


def confirmed_deletions(session: Session, site_id: int) -> int:
    """The number of deletions that a person has confirmed."""
    row = session.get(SiteCheckpoint, site_id)
    return row.confirmed if row else 0


def _checkpoint_in(row: SiteCheckpoint) -> dict[str, Any] | None:
    """The checkpoint as its source wrote it."""
    if not row.checkpoint:
        return None
    checkpoint: dict[str, Any] = json.loads(row.checkpoint)
    if row.kind is not None:
        sweep = {"full": row.kind == "full", "todo": json.loads(row.windows or "[]"), "token": row.token or ""}
        sweep |= {"received": row.received or 0, "announced": row.announced}
        checkpoint["sweep"] = {**checkpoint["sweep"], **sweep}
    return checkpoint


def _columns_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The columns that keep the checkpoint of a source. Raises NotWritten if it is too long."""
    sweep = checkpoint.get("sweep")
    columns: dict[str, Any] = dict.fromkeys(("kind", "windows", "token", "received", "announced"))
    if isinstance(sweep, Mapping) and sweep.keys() >= {*_OF_SWEEP}:
        columns |= {name: sweep[name] for name in ("token", "received", "announced")}
        columns |= {"kind": "full" if sweep["full"] else "changes", "windows": json.dumps(sweep["todo"])}
        rest = {name: value for name, value in sweep.items() if name not in _OF_SWEEP}
        checkpoint = {**checkpoint, "sweep": rest}
    columns["checkpoint"] = json.dumps(checkpoint)
    length = sum(len(each) for each in columns.values() if isinstance(each, str))
    if length > CHECKPOINT:
        raise NotWritten(f"how far the list has come takes {length:,} characters, and may take {CHECKPOINT:,}")
    return columns


@frozen
class FullLists:
    """The time of a source repository's last full list, by its own clock (empty: never), and its deletedRecord.

    `has_holes`: the identifiers of some windows of the last list could not be listed.
    """

    last: str = ""
    deleted_record: str = ""
    has_holes: bool = False

    @property
    def is_the_only_way(self) -> bool:
        """True if lists of changes do not name all deleted records."""
        return self.deleted_record in ("no", "transient")


def full_lists(session: Session, site_ids: Sequence[int] | None = None) -> dict[int, FullLists]:
    """The full lists of these sites, or of all, by site number. A site without a list yet is left out."""
    query = select(_CHECKPOINTS.c.site_schedule_id, _CHECKPOINTS.c.checkpoint)
    if site_ids is not None:
        query = query.where(_CHECKPOINTS.c.site_schedule_id.in_(site_ids))
    found = {}
    for site_id, text in session.connection().execute(query):
        checkpoint = json.loads(text) if text else {}
        identity = checkpoint.get("identity") or {}
        last, deleted = checkpoint.get("full_at") or "", identity.get("deleted_record") or ""
        found[site_id] = FullLists(last, deleted, bool(checkpoint.get("holes")))
    return found


def row_to_delete(site_run: SiteRun, document: ListedDocument, entry: LedgerEntry | None) -> Columns:
    """The row of a record that a list reports as deleted: it is deleted in the target after the sweep."""
    datestamp = document.origin.datestamp[:40] if document.origin else None
    values: Columns = {"to_delete": True, "datestamp": datestamp, "missing_since": None}
    if entry is None:
        values |= {"state": DocumentState.TO_DELETE.value, "target_revision": document.revision, "attempts": 0}
        return {**ledger_key(site_run, document), **values}
    values |= {"outcome": entry.outcome, "next_attempt": entry.next_attempt, "state": entry.state}
    return {"harvest_document_id": entry.entry_id, **values}


def keep_progress(session: Session, site_run: SiteRun, progress: Progress, document_ids: Iterable[str]) -> None:
    """Keep the progress after the pages that named these documents. Raises NotWritten.

    Their outcomes are in the same transaction, or in one before it. If such a document is missing at another site of
    the origin, the row of that site is deleted.
    """
    site_id, connection = site_run.site.site_id, session.connection()
    some_missing = connection.execute(_ANY_MISSING, {"site": site_id}).first() is not None
    for some in batches(document_ids):
        connection.execute(_NAMED, {"site": site_id, "documents": some, "sweep_id": progress.sweep_id})
        if some_missing:
            connection.execute(_FOUND, {"site": site_id, "documents": some})
        if others := site_run.same_origin.others:
            lost = missing_at(session, others, some)
            forget_missing(session, others, list(listed_by(session, [site_id], lost)))
    kept = {each.name: getattr(progress, each.name) for each in fields(progress)} | {
        "site_run_id": site_run.site_run_id
    }
    kept["listing"] = kept.pop("sweep_id")
    keep_columns(session, site_id, {**kept, **_columns_of(progress.checkpoint or {})})


def row_to_refetch(entry: LedgerEntry, today: date) -> Columns:
    """The row of a record of which the list showed an older version: it is fetched individually, even later."""
    state = after_older(entry.state, entry.outcome, is_pending=entry.pending_sha256 is not None)
    values: Columns = {"next_attempt": today, "missing_since": None, "state": state.value}
    if state is DocumentState.PENDING_OLDER:
        values |= {"to_delete": False, "outcome": None}  # it must be fetched although that upload has arrived
    elif entry.state in DELETION_WAITS:
        # A listed record is not deleted: the answer of its source repository to GetRecord counts.
        values |= {"to_delete": False, "outcome": OutcomeKind.UNCHANGED.value}
    return {"harvest_document_id": entry.entry_id, **values}


def row_deleted_again(entry: LedgerEntry) -> Columns:
    """The row of a deleted record of which an earlier page showed an older version, and a later one the deletion."""
    return {"harvest_document_id": entry.entry_id, "next_attempt": None, "state": DocumentState.DELETED.value}


def note_full_wanted(session: Session, site_id: int, *, resumed: bool) -> None:
    """Note that a full list is wanted, until its first part has come; not if a resumed site run has one under way."""
    row = session.get(SiteCheckpoint, site_id)
    if row is not None and row.checkpoint and not (resumed and row.kind == "full"):
        row.full_wanted = True


def keep_columns(session: Session, site_id: int, values: Mapping[str, Any]) -> None:
    """Write these columns of the site's row, which may not exist yet."""
    connection = session.connection()
    if not connection.execute(_OF_SITE, {"site": site_id, **values}).rowcount:
        connection.execute(insert(_CHECKPOINTS).values(site_schedule_id=site_id, **values))
