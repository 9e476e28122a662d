"""What the ledger says of the records of a repository, and how far its listing has come.

Runs write through the journal; what is written here is what people say: that deletions may be told to the target.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from sqlalchemy import and_, case, func, insert, or_, select, update
from sqlalchemy.orm import Session

from metaharvest.database.models import (
    Base,
    HarvestDocument,
    HarvestLog,
    HarvestSiteSchedule,
    SiteCheckpoint,
)
from metaharvest.model import ERROR_OUTCOMES, Checkpoint, Holding, ListedDocument, OutcomeKind, Site
from metaharvest.sites.ledger import ENTRY, GOOD, LedgerEntry

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_CHECKPOINTS = Base.metadata.tables[SiteCheckpoint.__tablename__]
_RECORD = _LEDGER.c["digest", "datestamp", "listing", "to_delete", "missing_since", "sha256"]
_IS_DELETED = _LEDGER.c.outcome == OutcomeKind.DELETED.value
_IS_TO_BE_CONFIRMED = (
    _LEDGER.c.to_delete,
    _LEDGER.c.outcome == OutcomeKind.DEFERRED.value,
    _LEDGER.c.next_attempt.is_not(None),
)
IS_HELD = or_(
    _LEDGER.c.to_delete,
    and_(_LEDGER.c.target_revision.is_not(None), _LEDGER.c.sha256.is_not(None), ~_IS_DELETED),
)
"""Whether the target has the document of a row, as far as the ledger knows. Of those that the target has from another
site, nothing was ever fetched."""

MISSING_SINCE = case((IS_HELD, _LEDGER.c.missing_since)).label("missing_since")
"""Since when a full list has not named the record of a document that the site has; NULL if it is not missing."""

_IS_LISTED = (
    _LEDGER.c.listing > 0,  # see BEFORE_SPLIT
    _LEDGER.c.missing_since.is_(None),
    ~_LEDGER.c.to_delete,
    func.coalesce(_LEDGER.c.outcome, "").not_in([OutcomeKind.DELETED.value, OutcomeKind.FILTERED.value]),
)
_AT_ONCE = 500
BEFORE_SPLIT = 0
"""The number in `listing` of all lists of a site before it was split: the next lists show which site has the record."""


TREATMENT, AGAIN, MOVED, FULL = "treatment", "again", "moved", "full"
"""What is kept beside the source's own words in a checkpoint: see ListingState."""

DEFAULT_MAX_LOSS = 10
"""The share of a site's documents, in percent, that may be deleted in one harvest without being confirmed."""

ALWAYS_DELETED = 20
"""So many deletions are never too many, but for a site that may lose none."""

_NOTHING_NEW = (*GOOD, OutcomeKind.ACCESS_ERROR, OutcomeKind.DEFERRED)
"""Outcomes after which the digest in the ledger is that of what the target has."""

MOST_FAILED = 100
"""So many records that failed for good are looked at again in each harvest, though their datestamp is as it was."""


@dataclass(frozen=True, slots=True)
class KnownRecord:
    """One row of the ledger about a record: see HarvestDocument."""

    entry: LedgerEntry
    digest: str | None
    datestamp: str | None
    listing: int | None
    to_delete: bool
    missing_since: date | None
    sha256: str | None = None

    @property
    def is_well(self) -> bool:
        """Whether what was received last is in the target, as far as the ledger knows."""
        return self.entry.outcome in GOOD and self.entry.pending_sha256 is None and not self.to_delete

    def sent_as(self, holding: Holding) -> str | None:
        """The digest of what a target holds that does not tell it, as far as the ledger knows what was sent last."""
        is_known = self.entry.outcome in _NOTHING_NEW and self.entry.pending_sha256 is None
        return self.sha256 if is_known and holding.revision == self.entry.target_revision else None


@dataclass(frozen=True, slots=True)
class ListingState:
    """How far the listing of a site has come: see SiteCheckpoint. All is 0 where nothing was listed yet.

    `treatment` is the digest of the Treatment by which all of its records were judged, those that a full list under way
    is still to name included; `again`: that list judges also the records that have not changed. So many records have
    `moved` in the list under way. `full`: a full list was asked for, and has not begun.
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
    checkpoint: dict[str, Any] | None = json.loads(row.checkpoint) if row.checkpoint else None
    state = ListingState(checkpoint, row.listing, row.site_run_id, row.unchanged, row.duplicate, row.confirmed)
    if checkpoint is None:
        return state
    state = replace(state, treatment=checkpoint.pop(TREATMENT, treatment), again=checkpoint.pop(AGAIN, False))
    return replace(state, moved=checkpoint.pop(MOVED, 0), full=checkpoint.pop(FULL, False))


@dataclass(frozen=True, slots=True)
class FullLists:
    """The time of a repository's last full list, by its own clock (empty: never), and its deletedRecord."""

    last: str = ""
    deleted_record: str = ""

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
        found[site_id] = FullLists(checkpoint.get("full_at") or "", identity.get("deleted_record") or "")
    return found


def known_records(session: Session, site_id: int, document_ids: Sequence[str]) -> dict[str, KnownRecord]:
    """What the ledger says of these records of a site, by document id."""
    query = select(*ENTRY, *_RECORD).where(
        _LEDGER.c.site_schedule_id == site_id, _LEDGER.c.document_id.in_(document_ids)
    )
    rows = session.connection().execute(query)
    known = (KnownRecord(LedgerEntry(*row[: len(ENTRY)]), *row[len(ENTRY) :]) for row in rows)
    return {each.entry.document_id: each for each in known}


def to_delete(session: Session, site_id: int, site_run_id: int) -> list[LedgerEntry]:
    """The records that their repository says are deleted, and of which the target has not been told yet.

    Those that were refused in this site run, before it was interrupted, are left to the next one.
    """
    refused = select(HarvestLog.document_id).where(
        HarvestLog.site_run_id == site_run_id,
        HarvestLog.document_id.is_not(None),
        HarvestLog.outcome == OutcomeKind.UPLOAD_ERROR.value,
    )
    query = select(*ENTRY).where(
        _LEDGER.c.site_schedule_id == site_id, _LEDGER.c.to_delete, _LEDGER.c.document_id.not_in(refused)
    )
    rows = session.connection().execute(query.order_by(_LEDGER.c.document_id))
    return [LedgerEntry(*row) for row in rows]


def waiting_before_split(session: Session, site: Site, document_ids: Sequence[str]) -> set[str]:
    """Those of these records whose deletions wait at the site that this one was split from: they are told there."""
    first = site.options.split_from
    if first is None or first == site.name or not document_ids:
        return set()
    query = select(_LEDGER.c.document_id).join(
        HarvestSiteSchedule, HarvestSiteSchedule.site_schedule_id == _LEDGER.c.site_schedule_id
    )
    query = query.where(HarvestSiteSchedule.name == first, _LEDGER.c.listing == BEFORE_SPLIT, _LEDGER.c.to_delete)
    found: set[str] = set()
    for begin in range(0, len(document_ids), _AT_ONCE):
        found |= {*session.scalars(query.where(_LEDGER.c.document_id.in_(document_ids[begin : begin + _AT_ONCE])))}
    return found


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
    return list(session.scalars(select(_LEDGER.c.document_id).where(*is_theirs, _LEDGER.c.missing_since.is_not(None))))


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


def most_unconfirmed(max_loss: int | None, held: int) -> int:
    """So many of its documents a site may lose at once without that being confirmed: a share, or a few; none for 0."""
    if max_loss == 0:
        return 0
    return max(ALWAYS_DELETED, held * (DEFAULT_MAX_LOSS if max_loss is None else max_loss) // 100)


def number_named(session: Session, site_id: int) -> int:
    """How many of these documents the lists so far have named to the end: those that are not missing."""
    is_named = (IS_HELD, _LEDGER.c.listing > 0, _LEDGER.c.missing_since.is_(None))
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
            _LEDGER.c.pending_sha256.is_(None),
            ~_IS_DELETED,
            ~_LEDGER.c.to_delete,
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


def failing(session: Session, site_id: int, site_run_id: int) -> Iterator[ListedDocument]:
    """The records that are not in the target as they should be, and have no outcome in this site run.

    All those that were put off, or failed for a while, or that a list has named as they were before. Of those that
    failed for good, which may have been mended without a new datestamp, a few: those that were tried least often. None
    of those that are missing.
    """
    columns = _LEDGER.c["document_id", "revision", "document_type", "document_url"]
    ended = select(HarvestLog.document_id).where(
        HarvestLog.site_run_id == site_run_id, HarvestLog.document_id.is_not(None), HarvestLog.outcome.is_not(None)
    )
    is_asked_for = _LEDGER.c.listing.is_not(None)
    is_here = _LEDGER.c.site_schedule_id == site_id
    is_there = and_(~_LEDGER.c.to_delete, or_(_LEDGER.c.missing_since.is_(None), _LEDGER.c.pending_sha256.is_not(None)))
    here = (is_here, is_asked_for, _LEDGER.c.document_id.not_in(ended), is_there)
    is_error = _LEDGER.c.outcome.in_([kind.value for kind in ERROR_OUTCOMES])
    is_late = or_(_LEDGER.c.outcome == OutcomeKind.DEFERRED.value, _LEDGER.c.pending_sha256.is_not(None))
    owed = or_(is_late, _LEDGER.c.next_attempt.is_not(None))
    for row in session.connection().execute(select(*columns).where(*here, owed).order_by(_LEDGER.c.document_id)):
        yield ListedDocument(*row)
    few = select(*columns).where(*here, is_error, ~owed)
    few = few.order_by(_LEDGER.c.attempts, _LEDGER.c.document_id).limit(MOST_FAILED)
    for row in session.connection().execute(few):
        yield ListedDocument(*row)


def confirm_deletions(session: Session, site_id: int) -> int:
    """Let the next harvest delete the documents that were put off, however many; how many there are."""
    number = deletions_to_confirm(session, site_id)
    if number:
        keep_listing_state(session, site_id, {"confirmed": number})
    return number


def deletions_to_confirm(session: Session, site_id: int) -> int:
    """How many documents were put off as too many of the site are deleted, confirmed or not, and wait still.

    Those that wait for something else, as the list of a set or the target, are not among them.
    """
    here = _LEDGER.c.site_schedule_id == site_id
    return session.scalar(select(func.count()).where(here, *_IS_TO_BE_CONFIRMED)) or 0


def deletions_unconfirmed(session: Session) -> dict[int, int]:
    """The number of deletions that wait for a confirmation, by site. Sites without any are left out."""
    rows = (
        select(_LEDGER.c.site_schedule_id, func.count(), func.coalesce(func.max(_CHECKPOINTS.c.confirmed), 0))
        .outerjoin(_CHECKPOINTS, _CHECKPOINTS.c.site_schedule_id == _LEDGER.c.site_schedule_id)
        .where(*_IS_TO_BE_CONFIRMED)
        .group_by(_LEDGER.c.site_schedule_id)
    )
    return {
        site_id: put_off - confirmed for site_id, put_off, confirmed in session.execute(rows) if put_off > confirmed
    }


def keep_listing_state(session: Session, site_id: int, values: Mapping[str, Any]) -> None:
    """Write these columns of the site's row, which may not be there yet."""
    here = _CHECKPOINTS.c.site_schedule_id == site_id
    if session.scalar(select(_CHECKPOINTS.c.site_schedule_id).where(here)) is None:
        session.execute(insert(_CHECKPOINTS).values(site_schedule_id=site_id, **values))
    else:
        session.execute(update(_CHECKPOINTS).where(here).values(**values))
