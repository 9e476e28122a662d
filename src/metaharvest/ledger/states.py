"""The state of a document that follows each event. Pure. `DocumentState` in model/kinds.py has the meanings.

An event is an outcome, a page of a list, the end of a full list, or other options of the site. `outcome` is the last
outcome of the document, as the ledger has it.
"""

from __future__ import annotations

from collections.abc import Mapping

from metaharvest.model import DocumentState, Outcome, OutcomeKind

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
"""The site lists the document live, and it is or may come into the target."""

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
