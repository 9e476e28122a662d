"""Reads and writes rows of the ledger, harvest_document. `entries.py` decides their values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date

from sqlalchemy import Case, Connection, and_, bindparam, case, delete, func, insert, or_, select, update
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.models import Base, HarvestDocument, SiteCheckpoint
from metaharvest.database.rows import insert_rows
from metaharvest.ledger.entries import DELETED, DELETION_WAITS, VALUES, LedgerEntry, Values, entry_values, of_outcome
from metaharvest.ledger.retries import sites_to_retry
from metaharvest.model import DocumentState, FetchedDocument, ListedDocument, Outcome, OutcomeKind, SiteRun

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_CHECKPOINTS = Base.metadata.tables[SiteCheckpoint.__tablename__]

Columns = dict[str, object]

Rows = tuple[list[Columns], list[Columns]]
"""New and changed rows, for write_ledger. A changed row has its `harvest_document_id`."""

Settled = tuple[Outcome, LedgerEntry | None]
"""The outcome of a document that the target has already, and its entry."""

ENTRY = _LEDGER.c["harvest_document_id", "document_id", "revision", *VALUES, "pending_sha256"]
"""The columns of a LedgerEntry."""

_OF_SITE = (
    select(*ENTRY)
    .where(_LEDGER.c.site_schedule_id == bindparam("site"))
    .order_by(_LEDGER.c.document_id, _LEDGER.c.revision)
)

_AFTER = _LEDGER.c.document_id > bindparam("after")

_UPTO = _LEDGER.c.document_id <= bindparam("upto")

_FIRST = _OF_SITE.limit(bindparam("number"))

_BETWEEN = {
    (False, False): _FIRST,
    (True, False): _FIRST.where(_AFTER),
    (False, True): _FIRST.where(_UPTO),
    (True, True): _FIRST.where(_AFTER, _UPTO),
}

_THESE = _OF_SITE.where(_LEDGER.c.document_id.in_(bindparam("documents", expanding=True)))

_CHANGED = update(_LEDGER).where(_LEDGER.c.harvest_document_id == bindparam("entry"))
_PLACE = {"harvest_document_id": "entry"}

_NUMBERS = (
    select(HarvestDocument.site_schedule_id, func.count())
    .where(HarvestDocument.site_schedule_id.in_(bindparam("sites", expanding=True)))
    .group_by(HarvestDocument.site_schedule_id)
)

_COPIED_AT_ONCE = 1000

_BEFORE_CHECKPOINT = -1
"""The `sweep_id` of a new record until its sweep is kept. If the list breaks off before, the record may be missing."""


def entries_between(
    session: Session, site_id: int, after: str | None, upto: str | None, number: int
) -> list[LedgerEntry]:
    """The site's first `number` entries with document ids above `after` and up to `upto`; None: no limit on that side.

    They are sorted by document id and revision.
    """
    statement = _BETWEEN[after is not None, upto is not None]
    values = {"site": site_id, "number": number, "after": after, "upto": upto}
    given = {name: value for name, value in values.items() if value is not None}
    return [LedgerEntry(*row) for row in session.connection().execute(statement, given).all()]


def entries_of(session: Session, site_id: int, document_ids: Sequence[str]) -> Iterator[LedgerEntry]:
    """The site's entries of these documents, sorted by document id and revision."""
    for row in session.connection().execute(_THESE, {"site": site_id, "documents": document_ids}):
        yield LedgerEntry(*row)


def titles_of(session: Session, site_id: int, document_ids: Sequence[str]) -> Mapping[tuple[str, int], str]:
    """The titles of these documents of a site, by document id and revision; those without a title are left out."""
    these = (_LEDGER.c.site_schedule_id == site_id, _LEDGER.c.document_id.in_(document_ids))
    query = select(_LEDGER.c.document_id, _LEDGER.c.revision, _LEDGER.c.title).where(*these)
    return {(row[0], row[1]): row[2] for row in session.execute(query) if row[2]}


def numbers_of_entries(session: Session, site_ids: Collection[int]) -> dict[int, int]:
    """The number of entries of each of these sites; sites without any are left out."""
    return {row[0]: row[1] for row in session.execute(_NUMBERS, {"sites": list(site_ids)})}


def ledger_key(site_run: SiteRun, document: ListedDocument) -> Columns:
    """The columns of a new row that name the document, its URL, and that no sweep has kept its record yet."""
    return {
        "site_schedule_id": site_run.site.site_id,
        "document_id": document.document_id,
        "revision": document.revision,
        "document_url": document.url,
        "document_type": document.document_type,
        "listing": None if document.origin is None else _BEFORE_CHECKPOINT,
    }


def write_ledger(session: Session, new: Sequence[Columns], changed: Sequence[Columns]) -> None:
    """Insert and update ledger rows. Rows with the same columns go into one statement."""
    for rows in _alike(new):
        insert_rows(session.connection(), _LEDGER, rows)
    for rows in _alike(changed):
        # The caller's rows stay as they are: after a deadlock they are written again.
        named = [{_PLACE.get(name, name): value for name, value in row.items()} for row in rows]
        session.connection().execute(_CHANGED, named)


def settled_rows(site_run: SiteRun, settled: Sequence[Settled], today: date) -> Rows:
    """The rows of documents that the target has already."""
    new: list[Columns] = []
    changed: list[Columns] = []
    for outcome, known in settled:
        values = entry_values(known, outcome, today)
        if values is None:
            continue
        if known is None:
            new.append({**ledger_key(site_run, outcome.document), **values})
        else:
            changed.append({"harvest_document_id": known.entry_id, **values})
    return new, changed


def delete_entries(session: Session, entry_ids: Sequence[int]) -> None:
    """Delete these rows."""
    for batch in batches(entry_ids):
        some = _LEDGER.c.harvest_document_id.in_(batch)
        session.execute(delete(_LEDGER).where(some))


def forget_missing(session: Session, site_ids: Collection[int], document_ids: Sequence[str]) -> None:
    """Delete the rows of these sites about records among these that are missing there."""
    is_theirs = (_LEDGER.c.site_schedule_id.in_(site_ids), _LEDGER.c.document_id.in_(document_ids))
    session.execute(delete(_LEDGER).where(*is_theirs, _LEDGER.c.state == DocumentState.MISSING.value))


def update_by_key(session: Session, site_run: SiteRun, document: ListedDocument, values: Values) -> bool:
    """Update the row of this document and revision; False if there is none."""
    key = (
        _LEDGER.c.site_schedule_id == site_run.site.site_id,
        _LEDGER.c.document_id == document.document_id,
        _LEDGER.c.revision == document.revision,
    )
    return bool(session.execute(update(_LEDGER).where(*key).values(**values)).rowcount)  # type: ignore[attr-defined]


def note_unsent(session: Session, site_run: SiteRun, outcome: Outcome) -> None:
    """Note that nothing is pending, after a document ended as a pending upload, and was not sent."""
    here = (_LEDGER.c.site_schedule_id == site_run.site.site_id, _LEDGER.c.document_id == outcome.document.document_id)
    is_unsent = (_LEDGER.c.state == DocumentState.PENDING.value, _LEDGER.c.pending_sha256.is_(None))
    session.execute(update(_LEDGER).where(*here, *is_unsent).values(state=of_outcome(outcome.kind).value))


def note_pending(
    session: Session,
    site_run: SiteRun,
    run_id: int,
    fetched: FetchedDocument,
    target_revision: int | None,
    known: LedgerEntry | None,
) -> None:
    """Note that this upload is about to be sent. `known`: the row of the document in the ledger."""
    document = fetched.document
    pending: Columns = {"pending_run": run_id, "pending_sha256": fetched.sha256, "target_revision": target_revision}
    pending |= {"state": DocumentState.PENDING.value}
    if document.origin is not None:
        pending |= {"revision": document.revision, "digest": document.origin.digest or None}
        pending |= {"to_delete": False, "missing_since": None}  # it is listed live
    if known is not None and known.needs_refetch:
        # The record was requested, and this is the answer. If it does not arrive, it is retried like any other.
        pending |= {"outcome": OutcomeKind.DEFERRED.value}
    if known is not None and document.origin is not None:
        this = update(_LEDGER).where(_LEDGER.c.harvest_document_id == known.entry_id)
        is_noted = bool(session.execute(this.values(**pending)).rowcount)  # type: ignore[attr-defined]
    else:
        is_noted = update_by_key(session, site_run, document, pending)
    if not is_noted:
        session.execute(insert(_LEDGER).values({**ledger_key(site_run, document), **pending}))


def note_withdrawal(session: Session, document_id: str, site_ids: Collection[int], *, erase: bool) -> None:
    """Note that this document is no longer in the target, and not tried again. `erase`: no title.

    A record that the source repository deleted stays deleted; a deletion that waited needs no further work.
    """
    is_deleted = _LEDGER.c.state.in_({DELETED, *DELETION_WAITS})
    gone = {
        "outcome": case((is_deleted, OutcomeKind.DELETED.value), else_=OutcomeKind.FILTERED.value),
        "target_revision": None,
        "failing_since": None,
        "next_attempt": None,
        "attempts": 0,
        "pending_run": None,
        "pending_sha256": None,
        "to_delete": False,
        "state": case((is_deleted, DELETED.value), else_=DocumentState.LEFT_OUT.value),
        **({"title": None} if erase else {}),
    }
    here = update(_LEDGER).where(_LEDGER.c.document_id == document_id, _LEDGER.c.site_schedule_id.in_(site_ids))
    session.execute(here.values(**gone))


def note_put_back(session: Session, document_id: str, site_ids: Collection[int], today: date) -> None:
    """Note that the withdrawal of this document was taken back: the next run tries it again.

    A record that the source repository deleted stays deleted.
    """
    this = (_LEDGER.c.document_id == document_id, _LEDGER.c.site_schedule_id.in_(site_ids))
    again = {"outcome": OutcomeKind.DEFERRED.value, "next_attempt": today, "state": DocumentState.DEFERRED.value}
    session.execute(update(_LEDGER).where(*this, _LEDGER.c.state != DELETED.value).values(**again))


def sites_with_deletion(session: Session, document_id: str, site_ids: Collection[int]) -> set[int]:
    """The sites among these whose source repositories deleted the record of this document."""
    this = (_LEDGER.c.document_id == document_id, _LEDGER.c.site_schedule_id.in_(site_ids))
    return set(session.scalars(select(_LEDGER.c.site_schedule_id).where(*this, _LEDGER.c.state == DELETED.value)))


def try_failing_again(session: Session, site_ids: Collection[int], today: date) -> set[int]:
    """Let all failing documents of these sites be tried again today; return the sites that have some to try again."""
    failing = (
        _LEDGER.c.site_schedule_id.in_(site_ids),
        _LEDGER.c.failing_since.is_not(None),
        _LEDGER.c.state.not_in(DELETION_WAITS),
    )
    session.execute(update(_LEDGER).where(*failing).values(next_attempt=today))
    return sites_to_retry(session, today, site_ids)


def forget_sites(session: Session, site_ids: Collection[int]) -> None:
    """Delete all rows about the documents of these sites, and the progress of their lists."""
    for table in (_LEDGER, _CHECKPOINTS) if site_ids else ():
        session.execute(delete(table).where(table.c.site_schedule_id.in_(site_ids)))


def becoming(change: Callable[[str, str | None], DocumentState]) -> Case[str]:
    """The state of each row after this change, which is a function of the state and of the last outcome."""
    outcomes = {each.value: _LEDGER.c.outcome == each.value for each in OutcomeKind}
    changes = [
        (and_(_LEDGER.c.state == state.value, is_so), after.value)
        for state in DocumentState
        for outcome, is_so in outcomes.items()
        if (after := change(state, outcome)) is not state
    ]
    return case(*changes, else_=_LEDGER.c.state)


def move_dates(session: Session, after: date, today: date) -> int:
    """Move dates after `after` to today. Returns the highest number of rows in which one date was moved."""
    moved = 0
    for name in ("failing_since", "next_attempt", "looked_at", "missing_since"):
        statement = update(_LEDGER).where(_LEDGER.c[name] > after).values({name: today})
        moved = max(moved, session.connection().execute(statement).rowcount)
    return moved


def copy_rows(
    session: Session, connection: Connection, *, with_records: bool, site_ids: Collection[int] | None = None
) -> None:
    """Copy the rows of documents that failed into another database. `with_records`: the rows of records as well.

    `site_ids`: only the rows of these sites.
    """
    which = [_LEDGER.c.next_attempt.is_not(None), _LEDGER.c.failing_since.is_not(None)]
    if with_records:
        which.append(_LEDGER.c.datestamp.is_not(None))
    query, standings = select(_LEDGER).where(or_(*which)), select(_CHECKPOINTS)
    if site_ids is not None:
        query = query.where(_LEDGER.c.site_schedule_id.in_(site_ids))
        standings = standings.where(_CHECKPOINTS.c.site_schedule_id.in_(site_ids))
    rows = session.execute(query.execution_options(yield_per=_COPIED_AT_ONCE)).mappings()
    for chunk in rows.partitions(_COPIED_AT_ONCE):
        connection.execute(insert(_LEDGER), [dict(row) for row in chunk])
    if with_records and (standing := [dict(row) for row in session.execute(standings).mappings()]):
        connection.execute(insert(_CHECKPOINTS), standing)


def _alike(rows: Sequence[Columns]) -> Iterator[list[Columns]]:
    """The rows in groups with the same columns."""
    groups: dict[frozenset[str], list[Columns]] = {}
    for row in rows:
        groups.setdefault(frozenset(row), []).append(row)
    yield from groups.values()
