"""How far the sweep of a source repository has come, kept beside the outcomes of the records that it has listed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestDocument, SiteCheckpoint
from metaharvest.errors import NotWritten
from metaharvest.ledger.entries import LedgerEntry
from metaharvest.ledger.records import KnownRecord, listed_by, missing_at
from metaharvest.ledger.rows import becoming, forget_missing, ledger_key
from metaharvest.ledger.states import DELETION_WAITS, after_listing, after_older
from metaharvest.model import Checkpoint, DocumentState, ListedDocument, OutcomeKind, SiteRun
from metaharvest.model.lengths import CHECKPOINT

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_AT_ONCE = 500


_CHECKPOINTS = Base.metadata.tables[SiteCheckpoint.__tablename__]

_NAMED = (
    update(_LEDGER)
    .where(
        _LEDGER.c.site_schedule_id == bindparam("site"),
        _LEDGER.c.document_id.in_(bindparam("documents", expanding=True)),
    )
    .values(listing=bindparam("number"), missing_since=None, state=becoming(after_listing))
)

_BY_ID = update(_LEDGER).where(_LEDGER.c.harvest_document_id == bindparam("this"))

_OF_SWEEP = ("full", "todo", "token", "received", "announced")
"""The parts of a sweep under way that stand in columns, and not in the checkpoint of the source."""


@dataclass(frozen=True, slots=True)
class ListingState:
    """How far the sweep of a site has come: see SiteCheckpoint. All is 0 before its first list.

    `treatment` is the digest of the Treatment by which all of its records were checked, or will be by the list under
    way. `again`: that list also checks the records that have not changed. The list under way has `moved` records.
    `full`: a person wants a full list, which has not begun.
    """

    checkpoint: Checkpoint | None = None
    listing: int = 0
    site_run_id: int | None = None
    unchanged: int = 0
    duplicate: int = 0
    confirmed: int = 0
    treatment: str = ""
    again: bool = False
    moved: int = 0
    full: bool = False


def listing_state(session: Session, site_id: int, treatment: str = "") -> ListingState:
    """How far the listing of this site has come. `treatment` is taken for that of a list from before it was kept."""
    row = session.get(SiteCheckpoint, site_id)
    if row is None:
        return ListingState()
    state = ListingState(_checkpoint_in(row), row.listing, row.site_run_id, row.unchanged, row.duplicate, row.confirmed)
    if state.checkpoint is None:
        return state
    treatment = treatment if row.treatment is None else row.treatment
    return replace(state, treatment=treatment, again=row.rechecks, moved=row.moved, full=row.full_wanted)


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


@dataclass(frozen=True, slots=True)
class FullLists:
    """The time of a repository's last full list, by its own clock (empty: never), and its deletedRecord.

    `has_holes`: some records could not be had in the last list.
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
        told: dict[str, Any] = {"to_delete": True, "datestamp": datestamp, "missing_since": None}
        told |= {"state": DocumentState.TO_DELETE.value}
        if entry is not None:
            told |= {"outcome": entry.outcome, "next_attempt": entry.next_attempt, "state": entry.state}
            session.execute(_BY_ID.values(told), {"this": entry.entry_id})
        else:
            values = {**ledger_key(site_run, document), "target_revision": document.revision, **told}
            session.execute(insert(_LEDGER).values(values))
    for known in end.older:
        session.execute(_BY_ID.values(_in_doubt(known, today)), {"this": known.entry.entry_id})
    for known in end.as_known:
        settled = {"next_attempt": None, "state": DocumentState.DELETED.value}
        session.execute(_BY_ID.values(settled), {"this": known.entry.entry_id})
    if end.checkpoint is None:
        return
    site_id = site_run.site.site_id
    for first in range(0, len(end.document_ids), _AT_ONCE):
        some = end.document_ids[first : first + _AT_ONCE]
        session.execute(_NAMED, {"site": site_id, "documents": some, "number": end.listing})
        if others := site_run.same_origin.others:
            lost = missing_at(session, others, some)
            forget_missing(session, others, list(listed_by(session, [site_id], lost)))
    kept = {
        **_columns_of(end.checkpoint),
        "treatment": end.treatment,
        "rechecks": end.again,
        "moved": end.moved,
        "full_wanted": False,
        "listing": end.listing,
        "site_run_id": site_run.site_run_id,
        "unchanged": end.unchanged,
        "duplicate": end.duplicate,
    }
    keep_listing_state(session, site_id, kept)


def _in_doubt(known: KnownRecord, today: date) -> Mapping[str, Any]:
    """What is kept of a record that came older than it is known: it is asked for by itself, even in a later night."""
    entry = known.entry
    state = after_older(entry.state, entry.outcome, is_pending=entry.pending_sha256 is not None)
    values: dict[str, Any] = {"next_attempt": today, "missing_since": None, "state": state.value}
    if state is DocumentState.PENDING_OLDER:
        values |= {"to_delete": False, "outcome": None}  # it is to be asked for though that upload has arrived
    elif entry.state in DELETION_WAITS:
        # A record that is listed is not deleted: what its repository says when it is asked for it counts.
        values |= {"to_delete": False, "outcome": OutcomeKind.UNCHANGED.value}
    return values


def ask_for_all(session: Session, site_id: int) -> None:
    """Note that a full list is asked for, until the first part of one has come."""
    row = session.get(SiteCheckpoint, site_id)
    if row is not None and row.checkpoint:
        row.full_wanted = True


def keep_listing_state(session: Session, site_id: int, values: Mapping[str, Any]) -> None:
    """Write these columns of the site's row, which may not be there yet."""
    here = _CHECKPOINTS.c.site_schedule_id == site_id
    if session.scalar(select(_CHECKPOINTS.c.site_schedule_id).where(here)) is None:
        session.execute(insert(_CHECKPOINTS).values(site_schedule_id=site_id, **values))
    else:
        session.execute(update(_CHECKPOINTS).where(here).values(**values))
