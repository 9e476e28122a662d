"""The records of source repositories in the ledger: which ones a site has, and which ones its list leaves out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from sqlalchemy import ColumnElement, and_, bindparam, case, func, or_, select, update
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestDocument
from metaharvest.ledger.entries import GOOD, LedgerEntry
from metaharvest.ledger.rows import ENTRY, becoming
from metaharvest.ledger.states import DELETION_WAITS, GONE, LISTED, MAY_BE_MISSING, after_other_options
from metaharvest.model import DocumentState, Holding, OutcomeKind

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]

_RECORD = _LEDGER.c["digest", "datestamp", "listing", "sha256"]
_IS_MISSING = _LEDGER.c.state == DocumentState.MISSING.value
IS_HELD = or_(
    _LEDGER.c.state.in_(DELETION_WAITS),
    and_(_LEDGER.c.target_revision.is_not(None), _LEDGER.c.sha256.is_not(None), _LEDGER.c.state.not_in(GONE)),
)
"""Whether the target has the document of a row, as far as the ledger knows. Of those that the target has from another
site, nothing was ever fetched."""

MISSING_SINCE = case((_IS_MISSING, _LEDGER.c.missing_since)).label("missing_since")
"""Since when a full list has not named the record of a document that the site has; NULL if it is not missing."""

_IS_LISTED = (_LEDGER.c.listing > 0, _LEDGER.c.state.in_(LISTED))  # see BEFORE_SPLIT
_MAY_BE_WELL = (DocumentState.HELD, DocumentState.OLDER, DocumentState.MISSING)
_AT_ONCE = 500

BEFORE_SPLIT = 0
"""The number in `listing` of all lists of a site before it was split: the next lists show which site has the record."""

_NOTHING_NEW = (*GOOD, OutcomeKind.ACCESS_ERROR, OutcomeKind.DEFERRED)
"""Outcomes after which the digest in the ledger is that of what the target has."""


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """One row of the ledger about a record: see HarvestDocument."""

    entry: LedgerEntry
    digest: str | None
    datestamp: str | None
    listing: int | None
    sha256: str | None = None

    @property
    def is_well(self) -> bool:
        """True if the target has what was received last, as far as the ledger knows."""
        return self.entry.state in _MAY_BE_WELL and self.entry.outcome in GOOD

    @property
    def is_said_to_be_deleted(self) -> bool:
        """True if the source repository deleted the record, whether the target has deleted the document or not."""
        return self.entry.is_deleted or self.entry.state in DELETION_WAITS

    def sent_as(self, holding: Holding) -> str | None:
        """The digest of what a target holds that does not tell it, as far as the ledger knows what was sent last."""
        is_known = self.entry.outcome in _NOTHING_NEW and self.entry.pending_sha256 is None
        return self.sha256 if is_known and holding.revision == self.entry.target_revision else None


def known_records(session: Session, site_id: int, document_ids: Sequence[str]) -> dict[str, KnownRecord]:
    """What the ledger says of these records of a site, by document id."""
    query = select(*ENTRY, *_RECORD).where(
        _LEDGER.c.site_schedule_id == site_id, _LEDGER.c.document_id.in_(document_ids)
    )
    rows = session.connection().execute(query)
    known = (KnownRecord(LedgerEntry(*row[: len(ENTRY)]), *row[len(ENTRY) :]) for row in rows)
    return {each.entry.document_id: each for each in known}


def listed_by(session: Session, site_ids: Collection[int], document_ids: Sequence[str]) -> dict[str, set[int]]:
    """Those of these records that the lists of these sites have, as far as the ledger knows: which sites, for each.

    What the filters of a site leave out is nothing that it has.
    """
    found: dict[str, set[int]] = {}
    query = select(_LEDGER.c.document_id, _LEDGER.c.site_schedule_id).where(
        _LEDGER.c.site_schedule_id.in_(site_ids), *_IS_LISTED
    )
    for first in range(0, len(document_ids), _AT_ONCE):
        some = _LEDGER.c.document_id.in_(document_ids[first : first + _AT_ONCE])
        for document_id, site_id in session.connection().execute(query.where(some)):
            found.setdefault(document_id, set()).add(site_id)
    return found


def missing_at(session: Session, site_ids: Collection[int], document_ids: Sequence[str]) -> list[str]:
    """Those of these records that are missing at one of these sites."""
    is_theirs = (_LEDGER.c.site_schedule_id.in_(site_ids), _LEDGER.c.document_id.in_(document_ids))
    return list(session.scalars(select(_LEDGER.c.document_id).where(*is_theirs, _IS_MISSING)))


@dataclass(frozen=True, slots=True)
class Brought:
    """What another site of the origin has brought in as the revision that the target holds.

    `digest` is that of the record as it was received, `sha256` that of what the target was given. None: not known.
    """

    digest: str | None
    sha256: str | None


def brought(session: Session, site_ids: Collection[int], held: Mapping[str, Holding]) -> dict[str, Brought]:
    """What these sites have brought of the documents that the target holds, as far as the ledger knows."""
    if not site_ids or not held:
        return {}
    columns = _LEDGER.c["document_id", "target_revision", "outcome", "digest", "sha256"]
    query = select(*columns).where(
        _LEDGER.c.site_schedule_id.in_(site_ids),
        _LEDGER.c.document_id.in_(list(held)),
        _LEDGER.c.outcome.in_([kind.value for kind in _NOTHING_NEW]),
        _LEDGER.c.sha256.is_not(None),
        _LEDGER.c.pending_sha256.is_(None),
    )
    found: dict[str, Brought] = {}
    for document_id, revision, outcome, digest, sha256 in session.connection().execute(query):
        if document_id in held and held[document_id].revision == revision:
            is_of_digest = outcome in GOOD
            if is_of_digest or document_id not in found:
                found[document_id] = Brought(digest if is_of_digest else None, sha256)
    return found


def number_held(session: Session, site_id: int) -> int:
    """How many documents of the site the target has, as far as the ledger knows."""
    is_own = func.coalesce(_LEDGER.c.listing, 1) != BEFORE_SPLIT
    return session.scalar(select(func.count()).where(_LEDGER.c.site_schedule_id == site_id, IS_HELD, is_own)) or 0


def number_named(session: Session, site_id: int) -> int:
    """How many of these documents the lists so far have named to the end: those that are not missing."""
    is_named = (IS_HELD, _LEDGER.c.listing > 0, ~_IS_MISSING)
    return session.scalar(select(func.count()).where(_LEDGER.c.site_schedule_id == site_id, *is_named)) or 0


@dataclass(frozen=True, slots=True)
class Unnamed:
    """A row whose record a complete listing did not name. `is_held`: the target has the document."""

    entry_id: int
    document_id: str
    is_held: bool
    missing_since: date | None


def unnamed(session: Session, site_id: int, listing: int) -> Iterator[Unnamed]:
    """The records that a complete listing did not name, but for deleted ones, and uploads of which nothing is known.

    Those that only lists with another format, other sets or dates have named are not asked for, and not among them.
    """
    query = (
        select(*_LEDGER.c["harvest_document_id", "document_id"], IS_HELD, _LEDGER.c.missing_since)
        .where(
            _LEDGER.c.site_schedule_id == site_id,
            _LEDGER.c.listing.not_in([listing, BEFORE_SPLIT]),
            _LEDGER.c.state.in_(MAY_BE_MISSING),
        )
        .order_by(_LEDGER.c.document_id)
    )
    for row in session.connection().execute(query):
        yield Unnamed(row[0], row[1], bool(row[2]), row[3])


def number_listed(session: Session, site_id: int, listing: int) -> int:
    """How many records this listing has named."""
    here = (_LEDGER.c.site_schedule_id == site_id, _LEDGER.c.listing == listing)
    return session.scalar(select(func.count()).where(*here)) or 0


def number_live(session: Session, site_id: int) -> int:
    """The number of records in the ledger that are neither deleted nor missing."""
    here = _LEDGER.c.site_schedule_id == site_id
    return session.scalar(select(func.count()).where(here, *_IS_LISTED)) or 0


def mark_missing(session: Session, entry_ids: Sequence[int], today: date) -> None:
    """Note since when these rows are not named any more: what failed of them is not tried again."""
    rows = [{"this": entry_id} for entry_id in entry_ids]
    statement = update(_LEDGER).where(_LEDGER.c.harvest_document_id == bindparam("this"))
    statement = statement.values(missing_since=today, next_attempt=None, state=DocumentState.MISSING.value)
    if rows:
        session.connection().execute(statement, rows)


def ask_for_others(session: Session, site_id: int) -> None:
    """Note that the site asks for other records from now on: which of those that are known are among them will show."""
    here = update(_LEDGER).where(_LEDGER.c.site_schedule_id == site_id)
    session.execute(here.values(listing=None, missing_since=None, state=becoming(after_other_options)))
    session.execute(here.where(_LEDGER.c.state.not_in(DELETION_WAITS)).values(next_attempt=None))


def before_split(session: Session, site_id: int) -> list[Unnamed]:
    """Rows of this site from before it was split, but for deletions that wait, and pending uploads."""
    query = select(*_LEDGER.c["harvest_document_id", "document_id"], IS_HELD, _LEDGER.c.missing_since)
    rows = session.connection().execute(query.where(*_is_before_split(site_id)).order_by(_LEDGER.c.document_id))
    return [Unnamed(row[0], row[1], bool(row[2]), row[3]) for row in rows]


def end_split(session: Session, site_id: int, listing: int | None) -> None:
    """Give these rows the number of a later list; None: no list asks for them."""
    session.execute(update(_LEDGER).where(*_is_before_split(site_id)).values(listing=listing))


def _is_before_split(site_id: int) -> tuple[ColumnElement[bool], ...]:
    return (
        _LEDGER.c.site_schedule_id == site_id,
        _LEDGER.c.listing == BEFORE_SPLIT,
        _LEDGER.c.state.not_in([*DELETION_WAITS, DocumentState.PENDING, DocumentState.PENDING_OLDER]),
    )


def known_at(session: Session, site_ids: Collection[int], document_ids: Sequence[str]) -> dict[str, int]:
    """Those of these documents that the ledger has of these sites: one of these sites for each."""
    found: dict[str, int] = {}
    columns = _LEDGER.c["document_id", "site_schedule_id"]
    for first in range(0, len(document_ids), _AT_ONCE):
        some = _LEDGER.c.document_id.in_(document_ids[first : first + _AT_ONCE])
        query = select(*columns).where(_LEDGER.c.site_schedule_id.in_(site_ids), some)
        found |= {row[0]: row[1] for row in session.connection().execute(query)}
    return found
