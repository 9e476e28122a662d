"""The state of a document that follows each event. Pure. `DocumentState` in model/kinds.py has the meanings.

An event is an outcome, a page of a list, the end of a full list, or other options of the site. `outcome` is the last
outcome of the document, as the ledger has it.
"""

from __future__ import annotations

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

_AFTER = {
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
    return _AFTER.get(OutcomeKind(outcome), FAILED) if outcome else FAILED


def after_outcome(state: str | None, outcome: Outcome) -> DocumentState:
    """The state after an outcome; `state` is None if the ledger did not have the document.

    A deletion that was not made waits. Lists request no document without an origin: such an outcome of a pending upload
    does not answer the question about the older version.
    """
    if outcome.document.origin is None and state is not None:
        if state in DELETION_WAITS and outcome.kind is not OutcomeKind.DELETED:
            return TO_CONFIRM if outcome.kind is OutcomeKind.DEFERRED and not outcome.with_site else TO_DELETE
        if state == PENDING_OLDER and outcome.unconfirmed:
            return PENDING_OLDER
        if state == PENDING_OLDER and of_outcome(outcome.kind) is HELD:
            return OLDER
    return PENDING if outcome.unconfirmed else of_outcome(outcome.kind)


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
