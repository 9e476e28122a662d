"""The records of source repositories in the ledger: the records that a site has, and those that its list leaves out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date

from sqlalchemy import ColumnElement, and_, bindparam, case, func, or_, select, update
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.models import Base, HarvestDocument
from metaharvest.ledger.entries import (
    DELETION_WAITS,
    GONE,
    GOOD,
    LISTED,
    MAY_BE_MISSING,
    LedgerEntry,
    after_other_options,
)
from metaharvest.ledger.rows import ENTRY, becoming
from metaharvest.model import DocumentState, Holding, OutcomeKind
from metaharvest.model.values import frozen

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]

_RECORD = _LEDGER.c["digest", "datestamp", "listing", "sha256"]
_KNOWN = select(*ENTRY, *_RECORD).where(
    _LEDGER.c.site_schedule_id == bindparam("site"), _LEDGER.c.document_id.in_(bindparam("documents", expanding=True))
)
IS_MISSING = _LEDGER.c.state == DocumentState.MISSING.value
"""True if full lists do not name the record of a row."""

HAS_COPY = or_(
    _LEDGER.c.state.in_(DELETION_WAITS),
    and_(_LEDGER.c.target_revision.is_not(None), _LEDGER.c.sha256.is_not(None), _LEDGER.c.state.not_in(GONE)),
)
"""True if the target has the document of a row from this site, as far as the ledger knows: the row has a copy."""

MISSING_SINCE = case((IS_MISSING, _LEDGER.c.missing_since)).label("missing_since")
"""The day since which full lists do not name the record of a document that the site has; NULL: it is not missing."""

_IS_LISTED = (_LEDGER.c.listing > 0, _LEDGER.c.state.in_(LISTED))  # see BEFORE_SPLIT
_MAY_BE_WELL = (DocumentState.HELD, DocumentState.OLDER, DocumentState.MISSING)

BEFORE_SPLIT = 0
"""The `sweep_id` of all sweeps of a site before it was split: the next lists show which site has the record."""

_NOTHING_NEW = (*GOOD, OutcomeKind.ACCESS_ERROR, OutcomeKind.DEFERRED)
"""Outcomes that leave the target as it was: the digest in the ledger is still the digest of its content."""


@frozen
class KnownRecord:
    """One row of the ledger about a record: see HarvestDocument. The sweep `sweep_id` named it last."""

    entry: LedgerEntry
    digest: str | None
    datestamp: str | None
    sweep_id: int | None
    sha256: str | None = None

    @property
    def is_well(self) -> bool:
        """True if the target has the content that was received last, as far as the ledger knows."""
        return self.entry.state in _MAY_BE_WELL and self.entry.outcome in GOOD

    @property
    def is_said_to_be_deleted(self) -> bool:
        """True if the source repository deleted the record. The target may still have the document."""
        return self.entry.is_deleted or self.entry.state in DELETION_WAITS

    def sent_as(self, holding: Holding) -> str | None:
        """The digest of the document that was sent last, if the target holds that revision; None if it is not known."""
        is_known = self.entry.outcome in _NOTHING_NEW and self.entry.pending_sha256 is None
        return self.sha256 if is_known and holding.revision == self.entry.target_revision else None


def known_records(session: Session, site_id: int, document_ids: Sequence[str]) -> dict[str, KnownRecord]:
    """The rows of these records of a site, by document id."""
    rows = session.connection().execute(_KNOWN, {"site": site_id, "documents": document_ids}).all()
    known = (KnownRecord(LedgerEntry(*row[: len(ENTRY)]), *row[len(ENTRY) :]) for row in rows)
    return {each.entry.document_id: each for each in known}


def listed_by(session: Session, site_ids: Collection[int], document_ids: Sequence[str]) -> dict[str, set[int]]:
    """The sites among these that list a record live, as far as the ledger knows, by document id.

    A site does not list a record that its filters leave out.
    """
    return _sites_with(session, site_ids, document_ids, *_IS_LISTED)


def missing_at(session: Session, site_ids: Collection[int], document_ids: Sequence[str]) -> list[str]:
    """The records among these that are missing at one of these sites."""
    return list(_sites_with(session, site_ids, document_ids, IS_MISSING))


def known_at(session: Session, site_ids: Collection[int], document_ids: Sequence[str]) -> Collection[str]:
    """The records among these that the ledger has for one of these sites."""
    return _sites_with(session, site_ids, document_ids)


def _sites_with(
    session: Session, site_ids: Collection[int], document_ids: Sequence[str], *conditions: ColumnElement[bool]
) -> dict[str, set[int]]:
    """The sites among these that have such a row about a document, by document id."""
    found: dict[str, set[int]] = {}
    query = select(_LEDGER.c.document_id, _LEDGER.c.site_schedule_id)
    query = query.where(_LEDGER.c.site_schedule_id.in_(site_ids), *conditions)
    for batch in batches(document_ids):
        some = _LEDGER.c.document_id.in_(batch)
        for document_id, site_id in session.connection().execute(query.where(some)):
            found.setdefault(document_id, set()).add(site_id)
    return found


@frozen
class Brought:
    """The revision that the target holds, as another site of the origin has brought it.

    `digest` is of the record as it was received, `sha256` of the document that the target received. None: unknown.
    """

    digest: str | None
    sha256: str | None


def brought(session: Session, site_ids: Collection[int], holdings: Mapping[str, Holding]) -> dict[str, Brought]:
    """The documents among these that one of these sites has brought, as far as the ledger knows, by document id."""
    if not site_ids or not holdings:
        return {}
    columns = _LEDGER.c["document_id", "target_revision", "outcome", "digest", "sha256"]
    query = select(*columns).where(
        _LEDGER.c.site_schedule_id.in_(site_ids),
        _LEDGER.c.document_id.in_(list(holdings)),
        _LEDGER.c.outcome.in_([kind.value for kind in _NOTHING_NEW]),
        _LEDGER.c.sha256.is_not(None),
        _LEDGER.c.pending_sha256.is_(None),
    )
    found: dict[str, Brought] = {}
    for document_id, revision, outcome, digest, sha256 in session.connection().execute(query):
        if document_id in holdings and holdings[document_id].revision == revision:
            is_of_digest = outcome in GOOD
            if is_of_digest or document_id not in found:
                found[document_id] = Brought(digest if is_of_digest else None, sha256)
    return found


def held_by(session: Session, site_id: int, limit: int | None = None) -> Iterator[tuple[str, int]]:
    """The listed documents that this site brought, with their revisions: the last ones first, `limit` at most.

    The target has them, as far as the ledger knows. Documents that were noted as lost are left out.
    """
    columns = _LEDGER.c["document_id", "target_revision"]
    is_held = (_LEDGER.c.state == DocumentState.HELD.value, _LEDGER.c.target_revision.is_not(None))
    query = select(*columns).where(_LEDGER.c.site_schedule_id == site_id, _LEDGER.c.listing > 0, *is_held)
    query = query.where(_LEDGER.c.looked_at.is_not(None)).order_by(_LEDGER.c.looked_at.desc()).limit(limit)
    for row in session.connection().execute(query.execution_options(yield_per=500)):
        yield row[0], row[1]


def lacking(brought: Mapping[str, int], held: Mapping[str, Holding]) -> list[str]:
    """The documents among these that a target with these holdings does not have. Pure."""

    def is_held(document_id: str, revision: int) -> bool:
        holding = held.get(document_id)
        return holding is not None and (holding.revision >= revision or holding.withdrawn is not None)

    return [document_id for document_id, revision in brought.items() if not is_held(document_id, revision)]


def note_lost(session: Session, site_id: int, document_ids: Sequence[str]) -> None:
    """Note that the target has lost these documents: once, as the source repository may no longer list them."""
    these = (_LEDGER.c.site_schedule_id == site_id, _LEDGER.c.document_id.in_(document_ids))
    session.execute(update(_LEDGER).where(*these).values(looked_at=None))


def number_of_copies(session: Session, site_id: int) -> int:
    """The number of the site's documents that the target has, as far as the ledger knows."""
    return _number(session, site_id, HAS_COPY, func.coalesce(_LEDGER.c.listing, 1) != BEFORE_SPLIT)


def number_named(session: Session, site_id: int) -> int:
    """The number of the site's documents that the target has, and that the lists still name."""
    return _number(session, site_id, HAS_COPY, _LEDGER.c.listing > 0, ~IS_MISSING)


def number_listed(session: Session, site_id: int, sweep_id: int) -> int:
    """The number of records that this sweep has named."""
    return _number(session, site_id, _LEDGER.c.listing == sweep_id)


def number_live(session: Session, site_id: int) -> int:
    """The number of records that the site lists live. Records that its filters leave out do not count."""
    return _number(session, site_id, *_IS_LISTED)


def _number(session: Session, site_id: int, *conditions: ColumnElement[bool]) -> int:
    here = _LEDGER.c.site_schedule_id == site_id
    return session.scalar(select(func.count()).where(here, *conditions)) or 0


@frozen
class Unnamed:
    """A row whose record a full sweep did not name. `has_copy`: the target has the document."""

    entry_id: int
    document_id: str
    has_copy: bool
    missing_since: date | None


def unnamed(session: Session, site_id: int, sweep_id: int) -> Iterator[Unnamed]:
    """The records that a full sweep did not name, without deleted ones and uploads without a result.

    Records that only lists with another format, other sets or dates have named are not among them.
    """
    is_unnamed = (_LEDGER.c.listing.not_in([sweep_id, BEFORE_SPLIT]), _LEDGER.c.state.in_(MAY_BE_MISSING))
    return _rows(session, _LEDGER.c.site_schedule_id == site_id, *is_unnamed)


def before_split(session: Session, site_id: int) -> list[Unnamed]:
    """Rows of this site from before it was split, without deletions that wait, and pending uploads."""
    return list(_rows(session, *_is_before_split(site_id)))


def _rows(session: Session, *conditions: ColumnElement[bool]) -> Iterator[Unnamed]:
    query = select(*_LEDGER.c["harvest_document_id", "document_id"], HAS_COPY, _LEDGER.c.missing_since)
    for row in session.connection().execute(query.where(*conditions).order_by(_LEDGER.c.document_id)):
        yield Unnamed(row[0], row[1], bool(row[2]), row[3])


@frozen
class MarkedMissing:
    """The number of records that are marked as missing; before that, the lists `named` this number of the `copies`."""

    number: int
    named: int
    copies: int


def mark_missing(session: Session, site_id: int, missing: Sequence[Unnamed], today: date) -> MarkedMissing:
    """Note since when no list names these records. Returns the numbers before the change.

    Records among them that failed are not tried again.
    """
    new = [each.entry_id for each in missing if each.missing_since is None]
    marked = MarkedMissing(len(new), number_named(session, site_id), number_of_copies(session, site_id))
    statement = update(_LEDGER).where(_LEDGER.c.harvest_document_id == bindparam("this"))
    statement = statement.values(missing_since=today, next_attempt=None, state=DocumentState.MISSING.value)
    if new:
        session.connection().execute(statement, [{"this": entry_id} for entry_id in new])
    return marked


def note_other_request(session: Session, site_id: int) -> None:
    """Note that the site requests other records from now on. The next list shows which known records are among them."""
    here = update(_LEDGER).where(_LEDGER.c.site_schedule_id == site_id)
    session.execute(here.values(listing=None, missing_since=None, state=becoming(after_other_options)))
    session.execute(here.where(_LEDGER.c.state.not_in(DELETION_WAITS)).values(next_attempt=None))


def end_split(session: Session, site_id: int, sweep_id: int | None) -> None:
    """Give these rows the number of a later sweep; None: no list requests them."""
    session.execute(update(_LEDGER).where(*_is_before_split(site_id)).values(listing=sweep_id))


def _is_before_split(site_id: int) -> tuple[ColumnElement[bool], ...]:
    return (
        _LEDGER.c.site_schedule_id == site_id,
        _LEDGER.c.listing == BEFORE_SPLIT,
        _LEDGER.c.state.not_in([*DELETION_WAITS, DocumentState.PENDING, DocumentState.PENDING_OLDER]),
    )
