"""The ledger, harvest_document: what is known of each document that a site lists.

Reads entries, and decides what an outcome makes of an entry. Nothing is written here: the journal writes and deletes
entries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from operator import attrgetter

from sqlalchemy import ColumnElement, Integer, bindparam, exists, func, literal_column, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import Base, HarvestDocument
from metaharvest.model import ERROR_OUTCOMES, ListedDocument, Outcome, OutcomeKind, RecordOrigin

RETRY_NIGHTS = 7
"""For so many days a transient failure is tried again in every run, and so is what is put off because its web server
fails; after that, only with the site's schedule."""

Key = tuple[str, int]
Values = Mapping[str, object]

_FAILING = frozenset({*ERROR_OUTCOMES, OutcomeKind.DEFERRED})

GOOD = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One row of the ledger: the columns that decisions need."""

    entry_id: int
    document_id: str
    revision: int
    url: str
    document_type: str
    target_revision: int | None
    outcome: str | None
    failing_since: date | None
    attempts: int
    next_attempt: date | None
    pending_sha256: str | None

    @property
    def is_in_doubt(self) -> bool:
        """Whether a list has named the record as it was before, so that it is to be asked for by itself.

        Where an upload of it is pending, it is looked up before that.
        """
        return self.next_attempt is not None and self.outcome not in _FAILING

    @property
    def is_to_be_confirmed(self) -> bool:
        """Of a deletion that waits to be told: whether that is for somebody to confirm it."""
        return self.outcome == OutcomeKind.DEFERRED and self.next_attempt is not None


_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_VALUES = ("document_url", "document_type", "target_revision", "outcome", "failing_since", "attempts", "next_attempt")
"""The columns that every outcome gives a value, in the order of `LedgerEntry` and `entry_values`."""

ENTRY = _LEDGER.c["harvest_document_id", "document_id", "revision", *_VALUES, "pending_sha256"]
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

_values_of = attrgetter("url", *_VALUES[1:])
_NUMBERS = (
    select(HarvestDocument.site_schedule_id, func.count())
    .where(HarvestDocument.site_schedule_id.in_(bindparam("sites", expanding=True)))
    .group_by(HarvestDocument.site_schedule_id)
)


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


def numbers_of_entries(session: Session, site_ids: Collection[int]) -> dict[int, int]:
    """How many entries each of these sites has, by site; sites without any are left out."""
    return {row[0]: row[1] for row in session.execute(_NUMBERS, {"sites": list(site_ids)})}


def numbers_failing(session: Session, site_ids: Sequence[int] | None = None) -> dict[int, tuple[int, date]]:
    """How many documents are failing, and since when the first of them has been, by site; of sites without: nothing.

    Failing is what could not be taken in, or was put off.
    """
    site_id = HarvestDocument.site_schedule_id
    # Of all sites, not by an index: SQLite would look up each row by itself, which takes thirty times as long.
    by = site_id + literal_column("0", Integer) if site_ids is None else site_id
    query = select(by, func.count(), func.min(HarvestDocument.failing_since)).group_by(by)
    if site_ids is not None:
        query = query.where(site_id.in_(site_ids))
    rows = session.execute(query.where(HarvestDocument.failing_since.is_not(None)))
    return {site_id: (number, since) for site_id, number, since in rows if since is not None}


def number_put_off(session: Session, site_id: int) -> int:
    """How many of the failing documents of a site were put off the last time."""
    ours = (HarvestDocument.site_schedule_id == site_id, HarvestDocument.failing_since.is_not(None))
    put_off = HarvestDocument.outcome == OutcomeKind.DEFERRED.value
    return session.scalar(select(func.count()).select_from(HarvestDocument).where(*ours, put_off)) or 0


def nights(since: date, today: date) -> int:
    """For how many nights something has been failing, the first one counted, whether its site was harvested or not."""
    return max((today - since).days + 1, 1)


def to_retry(session: Session, site_id: int, today: date) -> Iterator[ListedDocument]:
    """The site's documents that are to be tried again today, sorted by document id and revision."""
    statement = (
        select(*_LEDGER.c["document_id", "revision", "document_type", "document_url"])
        .where(HarvestDocument.site_schedule_id == site_id, *_waiting(today))
        .order_by(HarvestDocument.document_id, HarvestDocument.revision)
    )
    for row in session.execute(statement.execution_options(yield_per=1000)):
        yield ListedDocument(*row)


def sites_to_retry(session: Session, today: date) -> set[int]:
    """The sites that have documents to try again today."""
    # Not DISTINCT: SQLite would then read the whole ledger in the order of the sites.
    return set(session.scalars(select(HarvestDocument.site_schedule_id).where(*_waiting(today))))


def _waiting(today: date) -> tuple[ColumnElement[bool], ...]:
    """Rows that are due for another try, except revisions that are too late: a higher one is in the target by now."""
    later = aliased(HarvestDocument)
    superseded = exists().where(
        later.site_schedule_id == HarvestDocument.site_schedule_id,
        later.document_id == HarvestDocument.document_id,
        later.revision > HarvestDocument.revision,
        later.outcome.in_(GOOD),
    )
    return HarvestDocument.next_attempt <= today, ~HarvestDocument.to_delete, ~superseded


def entry_values(entry: LedgerEntry | None, outcome: Outcome, today: date) -> Values | None:
    """The columns to write for this outcome of a document, whose entry is `entry`; None if nothing differs from it."""
    document = outcome.document
    values: dict[str, object] = {
        "document_url": document.url,
        "document_type": document.document_type,
        "target_revision": _target_revision(outcome),
        "outcome": outcome.kind.value,
        "failing_since": None,
        "attempts": 0,
        "next_attempt": None,
    }
    if outcome.kind.is_error or outcome.kind is OutcomeKind.DEFERRED:
        values.update(_failing(entry, outcome, today))
    if document.origin is not None:
        values |= _of_record(document.revision, document.origin)
    elif outcome.kind is OutcomeKind.DELETED:
        values["to_delete"] = False
    elif entry and entry.revision != document.revision:
        values["revision"] = document.revision  # the next one, of a record that a list has named as it was before
    elif entry and outcome.sha256 is None and entry.pending_sha256 is None and _values_of(entry) == (*values.values(),):
        return None
    # Of a record, it tells what the target has: what was not taken is not that.
    if outcome.sha256 is not None and (document.origin is None or outcome.kind in GOOD):
        values.update(sha256=outcome.sha256, etag=outcome.etag, last_modified=outcome.last_modified)
    if outcome.sha256 is not None or entry is None:
        values["looked_at"] = today
    if outcome.title:
        values["title"] = outcome.title
    if not outcome.unconfirmed:
        values.update(pending_run=None, pending_sha256=None)
    if entry and entry.is_in_doubt and entry.pending_sha256 is not None and document.origin is None:
        values |= _still_in_doubt(entry, outcome, today)
    return values


def _of_record(revision: int, origin: RecordOrigin) -> Values:
    """What the ledger keeps of a record: it has one row, with the revision that we gave it last."""
    return {
        "revision": revision,
        "digest": origin.digest or None,
        "datestamp": origin.datestamp[:40],
        "to_delete": False,
        "missing_since": None,
    }


def _still_in_doubt(entry: LedgerEntry, outcome: Outcome, today: date) -> Values:
    """What stays of a record that is to be asked for, now that its pending upload was looked up, or could not be."""
    if outcome.unconfirmed:
        return {"outcome": entry.outcome, "next_attempt": today}
    return {"next_attempt": today} if outcome.kind in GOOD else {}


def _failing(entry: LedgerEntry | None, outcome: Outcome, today: date) -> Values:
    # A run for a day that is still to come may have written that day.
    since = min((entry.failing_since if entry else None) or today, today)
    attempts = entry.attempts if entry else 0
    if outcome.kind is OutcomeKind.DEFERRED:
        again = _put_off_since(entry, today) if outcome.transient else None if outcome.with_site else today
    else:
        attempts += 1
        again = today if outcome.transient and (today - since).days < RETRY_NIGHTS else None
    return {"failing_since": since, "attempts": attempts, "next_attempt": again}


def _put_off_since(entry: LedgerEntry | None, today: date) -> date | None:
    """The day since which a document has been put off because of its web server; None after RETRY_NIGHTS days.

    Only the time for which it has been put off counts, not failures before that: their cause may be gone by now.
    """
    if entry is None or entry.outcome != OutcomeKind.DEFERRED:
        return today
    since = entry.next_attempt
    return since if since is not None and (today - since).days < RETRY_NIGHTS else None


def _target_revision(outcome: Outcome) -> int | None:
    if outcome.kind in (OutcomeKind.INSERTED, OutcomeKind.UPDATED):
        return outcome.document.revision
    return outcome.target_revision
