"""An entry of the ledger (harvest_document): its state, and its values after each event. Pure.

An event is an outcome, a page of a list, the end of a full list, or other options of the site. `outcome` is the last
outcome of the document, as the ledger has it. `DocumentState` in model/kinds.py has the meanings of the states.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from operator import attrgetter

from metaharvest.model import DocumentState, Outcome, OutcomeKind, RecordOrigin
from metaharvest.model.values import frozen

RETRY_NIGHTS = 7
"""Days for which every run retries a transient failure, and a document that was put off as its web server fails.
Afterwards, the document is retried only with the site's schedule.
"""

Key = tuple[str, int]

Values = Mapping[str, object]

GOOD = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED)


HELD = DocumentState.HELD
LEFT_OUT = DocumentState.LEFT_OUT
FAILED = DocumentState.FAILED
DEFERRED = DocumentState.DEFERRED
PENDING = DocumentState.PENDING
PENDING_OLDER = DocumentState.PENDING_OLDER
OLDER = DocumentState.OLDER
REAPPEARED = DocumentState.REAPPEARED
TO_DELETE = DocumentState.TO_DELETE
TO_CONFIRM = DocumentState.TO_CONFIRM
DELETED = DocumentState.DELETED
MISSING = DocumentState.MISSING

TO_ASK_FOR = frozenset({OLDER, PENDING_OLDER, REAPPEARED})
"""A list showed an older version: the record is fetched individually."""

DELETION_WAITS = frozenset({TO_DELETE, TO_CONFIRM})
"""The source repository deleted the record, and the target has not deleted the document yet."""

GONE = frozenset({DELETED, REAPPEARED})
"""The source repository deleted the record, and no deletion waits."""

LISTED = frozenset({HELD, FAILED, DEFERRED, PENDING, PENDING_OLDER, OLDER})
"""The site lists the document live, and the target has it, or may get it."""

MAY_BE_MISSING = frozenset({HELD, LEFT_OUT, FAILED, DEFERRED, OLDER, MISSING})
"""If a full list does not name such a record: with a copy it becomes missing, without one its row is deleted."""

OWED = frozenset({DEFERRED, PENDING, *TO_ASK_FOR})
"""The states of records that each harvest of their site fetches individually."""

_AFTER: Mapping[str | None, DocumentState] = {
    OutcomeKind.INSERTED: HELD,
    OutcomeKind.UPDATED: HELD,
    OutcomeKind.UNCHANGED: HELD,
    OutcomeKind.DELETED: DELETED,
    OutcomeKind.FILTERED: LEFT_OUT,
    OutcomeKind.STALE: LEFT_OUT,
    OutcomeKind.DEFERRED: DEFERRED,
}


@frozen
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
    state: str
    pending_sha256: str | None

    @property
    def needs_refetch(self) -> bool:
        """True if a list showed an older version, so that the record must be fetched individually.

        If an upload of it is pending, the target is asked first.
        """
        return self.state in TO_ASK_FOR

    @property
    def is_deleted(self) -> bool:
        """True if the record was deleted, and no deletion waits."""
        return self.state in GONE

    @property
    def is_to_be_confirmed(self) -> bool:
        """True if a deletion waits until a person confirms it."""
        return self.state == DocumentState.TO_CONFIRM


VALUES = (
    "document_url", "document_type", "target_revision", "outcome", "failing_since", "attempts", "next_attempt", "state",
)  # fmt: skip
"""The columns to which every outcome gives a value, in the order of `LedgerEntry` and `entry_values`."""

_values_of = attrgetter("url", *VALUES[1:])


def nights(since: date, today: date) -> int:
    """The number of nights since something began to fail, the first one and nights without a harvest included."""
    return max((today - since).days + 1, 1)


def entry_values(entry: LedgerEntry | None, outcome: Outcome, today: date) -> Values | None:
    """The columns to write for this outcome of a document with this `entry`; None if no column changes."""
    document = outcome.document
    values: dict[str, object] = {
        "document_url": document.url,
        "document_type": document.document_type,
        "target_revision": _target_revision(outcome),
        "outcome": outcome.kind.value,
        "failing_since": None,
        "attempts": 0,
        "next_attempt": None,
        "state": after_outcome(entry.state if entry else None, outcome).value,
    }
    if outcome.kind.is_error or outcome.kind is OutcomeKind.DEFERRED:
        values.update(_failing(entry, outcome, today))
    if document.origin is not None:
        values |= _of_record(document.revision, document.origin)
    elif outcome.kind is OutcomeKind.DELETED:
        values["to_delete"] = False
    elif entry and entry.revision != document.revision:
        values["revision"] = document.revision  # the next one, if a list showed an older version of a record
    elif entry and outcome.sha256 is None and entry.pending_sha256 is None and _values_of(entry) == (*values.values(),):
        return None
    # The entry of a record describes the content of the target: content that was not accepted does not count.
    if outcome.sha256 is not None and (outcome.kind in GOOD or not is_listed_record(outcome)):
        values.update(sha256=outcome.sha256, etag=outcome.etag, last_modified=outcome.last_modified)
    if outcome.sha256 is not None or entry is None:
        values["looked_at"] = today
    if outcome.title:
        values["title"] = outcome.title
    if not outcome.unconfirmed:
        values.update(pending_run=None, pending_sha256=None)
    if entry and entry.state == DocumentState.PENDING_OLDER and not is_listed_record(outcome):
        values |= _still_to_refetch(entry, outcome, today)
    return values


def _of_record(revision: int, origin: RecordOrigin) -> Values:
    """The values of a record's only row, with the revision that we gave it last."""
    return {
        "revision": revision,
        "digest": origin.digest or None,
        "datestamp": origin.datestamp[:40],
        "to_delete": False,
        "missing_since": None,
    }


def _still_to_refetch(entry: LedgerEntry, outcome: Outcome, today: date) -> Values:
    """The values of a record that must be fetched, after its pending upload was looked up, or could not be."""
    if outcome.unconfirmed:
        return {"outcome": entry.outcome, "next_attempt": today}
    return {"next_attempt": today} if outcome.kind in GOOD else {}


def _failing(entry: LedgerEntry | None, outcome: Outcome, today: date) -> Values:
    # An earlier run for a day in the future may have written that day.
    since = min((entry.failing_since if entry else None) or today, today)
    attempts = entry.attempts if entry else 0
    if outcome.kind is OutcomeKind.DEFERRED:
        again = _put_off_since(entry, today) if outcome.transient else today
        if entry and ends_waiting(entry.state, outcome) and not (outcome.transient or outcome.needs_confirmation):
            again = None  # the next harvest of the site carries it out
    else:
        attempts += 1
        again = today if outcome.transient and (today - since).days < RETRY_NIGHTS else None
    return {"failing_since": since, "attempts": attempts, "next_attempt": again}


def _put_off_since(entry: LedgerEntry | None, today: date) -> date | None:
    """The day since which a document has been put off because of its web server; None after RETRY_NIGHTS days.

    Failures before that do not count: their cause may be gone by now.
    """
    if entry is None or entry.outcome != OutcomeKind.DEFERRED:
        return today
    since = entry.next_attempt
    return since if since is not None and (today - since).days < RETRY_NIGHTS else None


def _target_revision(outcome: Outcome) -> int | None:
    if outcome.kind in (OutcomeKind.INSERTED, OutcomeKind.UPDATED):
        return outcome.document.revision
    return outcome.target_revision


# -- the state after an event


def of_outcome(outcome: str | None) -> DocumentState:
    """The state of a document with this outcome, if nothing else is known."""
    return _AFTER.get(outcome, FAILED)


def after_outcome(state: str | None, outcome: Outcome) -> DocumentState:
    """The state after an outcome; `state` is None if the ledger did not have the document."""
    if ends_waiting(state, outcome):
        return _after_waiting(outcome)
    if state == PENDING_OLDER and not is_listed_record(outcome):
        return _after_lookup(outcome)
    return PENDING if outcome.unconfirmed else of_outcome(outcome.kind)


def is_listed_record(outcome: Outcome) -> bool:
    """True if a list brought the record with its content.

    Deletions that waited, records that are retried, and documents of harvest lists have no origin when they begin.
    """
    return outcome.document.origin is not None


def ends_waiting(state: str | None, outcome: Outcome) -> bool:
    """True if this is the outcome of a deletion that waited, whether it was made or not."""
    return state is not None and state in DELETION_WAITS and not is_listed_record(outcome)


def _after_waiting(outcome: Outcome) -> DocumentState:
    """The state after a deletion that waited: if it was not made, it waits again."""
    if outcome.kind is OutcomeKind.DELETED:
        return DELETED
    is_put_off = outcome.kind is OutcomeKind.DEFERRED and outcome.needs_confirmation
    return TO_CONFIRM if is_put_off else TO_DELETE


def _after_lookup(outcome: Outcome) -> DocumentState:
    """The state after the target was asked about a pending upload of a record in `pending-older`.

    If the upload has arrived, the older version of the list is next: the record is fetched individually.
    """
    if outcome.unconfirmed:
        return PENDING_OLDER
    after = of_outcome(outcome.kind)
    return OLDER if after is HELD else after


def after_deletion(state: str | None, *, is_known: bool) -> DocumentState:
    """The state after a list reported the deletion of a document that the target has.

    `is_known`: an earlier list reported this very deletion. It had been put off then.
    """
    if state is not None and state in DELETION_WAITS:
        return DocumentState(state)
    return TO_CONFIRM if state is not None and state in TO_ASK_FOR and is_known else TO_DELETE


def after_older(state: str, outcome: str | None, *, is_pending: bool) -> DocumentState:
    """The state after a list showed an older version than the known one. A failed document is retried in any case.

    `is_pending`: an upload is pending, even for a document whose deletion waits.
    """
    if is_pending:
        return PENDING_OLDER
    if state in GONE:
        return REAPPEARED
    listed = after_listing(state, outcome)
    return listed if listed in (FAILED, DEFERRED) else OLDER


def after_listing(state: str, outcome: str | None) -> DocumentState:
    """The state after a list named the document: it is not missing."""
    return of_outcome(outcome) if state == MISSING else DocumentState(state)


def after_other_options(state: str, outcome: str | None) -> DocumentState:
    """The state after the site began to request other records: nothing is missing, and nothing must be fetched."""
    if state == PENDING_OLDER:
        return PENDING
    return of_outcome(outcome) if state in (MISSING, OLDER, REAPPEARED) else DocumentState(state)
