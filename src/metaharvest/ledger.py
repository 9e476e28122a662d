"""The ledger, harvest_document: what is known of every document that a site lists.

What a row becomes is decided here, purely; journal.py writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import HarvestDocument
from metaharvest.records import ListedDocument, Outcome, OutcomeKind

RETRY_NIGHTS = 7
"""For how many days a failure that may pass is tried again in every run; after that, with the site's schedule."""

Key = tuple[str, int]
Values = Mapping[str, object]

_GOOD = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One row of the ledger, as far as decisions need it."""

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


_COLUMNS = (
    HarvestDocument.harvest_document_id,
    HarvestDocument.document_id,
    HarvestDocument.revision,
    HarvestDocument.document_url,
    HarvestDocument.document_type,
    HarvestDocument.target_revision,
    HarvestDocument.outcome,
    HarvestDocument.failing_since,
    HarvestDocument.attempts,
    HarvestDocument.next_attempt,
    HarvestDocument.pending_sha256,
)


def entries_between(session: Session, site_id: int, after: str | None, upto: str | None) -> Iterator[LedgerEntry]:
    """The site's entries with a document id above `after` and up to `upto`, in order; None: no bound on that side."""
    statement: Any = select(*_COLUMNS).where(HarvestDocument.site_schedule_id == site_id)
    if after is not None:
        statement = statement.where(HarvestDocument.document_id > after)
    if upto is not None:
        statement = statement.where(HarvestDocument.document_id <= upto)
    statement = statement.order_by(HarvestDocument.document_id, HarvestDocument.revision)
    for row in session.execute(statement.execution_options(yield_per=1000)):
        yield LedgerEntry(*row)


def entries_of(session: Session, site_id: int, document_ids: Sequence[str]) -> Iterator[LedgerEntry]:
    """The site's entries of these documents."""
    statement: Any = select(*_COLUMNS).where(
        HarvestDocument.site_schedule_id == site_id, HarvestDocument.document_id.in_(document_ids)
    )
    for row in session.execute(statement):
        yield LedgerEntry(*row)


def first_entries(session: Session, site_id: int, after: str | None, number: int) -> list[LedgerEntry]:
    """The first entries of the site with a document id above `after`, by document id and revision, at most `number`."""
    statement: Any = select(*_COLUMNS).where(HarvestDocument.site_schedule_id == site_id)
    if after is not None:
        statement = statement.where(HarvestDocument.document_id > after)
    statement = statement.order_by(HarvestDocument.document_id, HarvestDocument.revision).limit(number)
    return [LedgerEntry(*row) for row in session.execute(statement)]


def number_of_entries(session: Session, site_id: int) -> int:
    """How many documents the ledger has of the site."""
    statement = select(func.count()).where(HarvestDocument.site_schedule_id == site_id)
    return session.scalar(statement) or 0


def to_retry(session: Session, site_id: int, today: date) -> Iterator[ListedDocument]:
    """The site's documents that failed in passing and are to be tried again now."""
    statement = (
        select(
            HarvestDocument.document_id,
            HarvestDocument.revision,
            HarvestDocument.document_type,
            HarvestDocument.document_url,
        )
        .where(HarvestDocument.site_schedule_id == site_id, *_waiting(today))
        .order_by(HarvestDocument.document_id, HarvestDocument.revision)
    )
    for row in session.execute(statement.execution_options(yield_per=1000)):
        yield ListedDocument(*row)


def sites_to_retry(session: Session, today: date) -> set[int]:
    """The sites that have documents to try again."""
    # Not DISTINCT: SQLite would walk through the whole ledger, in the order of the sites, to answer that.
    return set(session.scalars(select(HarvestDocument.site_schedule_id).where(*_waiting(today))))


def _waiting(today: date) -> tuple[ColumnElement[bool], ...]:
    """Rows to be tried again, but for revisions of which a higher one has gone in since: they would come too late."""
    later = aliased(HarvestDocument)
    superseded = exists().where(
        later.site_schedule_id == HarvestDocument.site_schedule_id,
        later.document_id == HarvestDocument.document_id,
        later.revision > HarvestDocument.revision,
        later.outcome.in_(_GOOD),
    )
    return HarvestDocument.next_attempt <= today, ~superseded


def entry_values(entry: LedgerEntry | None, outcome: Outcome, today: date) -> Values | None:
    """The columns to write for this outcome; None where the ledger says all of it already."""
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
    if entry is not None and outcome.sha256 is None and entry.pending_sha256 is None and _same(entry, values):
        return None
    if outcome.sha256 is not None:
        values["sha256"] = outcome.sha256
    if not outcome.unconfirmed:
        values.update(pending_run=None, pending_sha256=None)
    return values


def _failing(entry: LedgerEntry | None, outcome: Outcome, today: date) -> Values:
    since = (entry.failing_since if entry else None) or today
    deferred = outcome.kind is OutcomeKind.DEFERRED
    again = (deferred or outcome.passing) and (today - since).days < RETRY_NIGHTS
    return {
        "failing_since": since,
        "attempts": (entry.attempts if entry else 0) + (0 if deferred else 1),
        "next_attempt": today if again else None,
    }


def _target_revision(outcome: Outcome) -> int | None:
    if outcome.kind in (OutcomeKind.INSERTED, OutcomeKind.UPDATED):
        return outcome.document.revision
    return outcome.target_revision


def _same(entry: LedgerEntry, values: Values) -> bool:
    return (
        entry.url == values["document_url"]
        and entry.document_type == values["document_type"]
        and entry.target_revision == values["target_revision"]
        and entry.outcome == values["outcome"]
        and entry.failing_since == values["failing_since"]
        and entry.attempts == values["attempts"]
        and entry.next_attempt == values["next_attempt"]
    )
