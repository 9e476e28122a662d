"""The change feed: the documents of the catalogue in the order in which their last changes were committed.

A reader keeps the number of the last change that it has seen, and asks for those after it. It misses none: a writer
takes its numbers from a row that stays locked until it commits. A document that changes again moves to the end.

A reader may also go by time: a change is committed less than COMMIT_LAG after the time that it has. A transaction that
takes longer gives its changes a new time immediately before it commits.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, event, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, SessionTransaction

from metaharvest.catalogue.current import COUNTER, DOCUMENTS, FORMER
from metaharvest.database.clock import database_now

COMMIT_LAG = timedelta(seconds=10)
"""The longest time from the time of a change to the end of its commit. Half of it is for the commit itself."""

THIS_DOCUMENT = update(DOCUMENTS).where(DOCUMENTS.c.catalogue_document_id == bindparam("this"))

_LONGEST_WRITE = COMMIT_LAG / 2
_KEY_OF_NUMBERS = "metaharvest.catalogue.numbers"
"""The key in Session.info for the numbers that the present transaction took."""

_ROW = COUNTER.c.counter_id == 1
_TAKE = update(COUNTER).where(_ROW).values(change_seq=COUNTER.c.change_seq + bindparam("number"))
_TAKEN = select(COUNTER.c.change_seq, COUNTER.c.changed_at).where(_ROW)
_STAMP = update(COUNTER).where(_ROW).values(changed_at=bindparam("now"))
_STAMP_AGAIN = update(DOCUMENTS).where(DOCUMENTS.c.change_seq >= bindparam("first")).values(changed_at=bindparam("now"))
_STAMP_FORMER_AGAIN = (
    update(FORMER)
    .where(
        FORMER.c.changed_at >= bindparam("taken_at"),
        FORMER.c.catalogue_document_id.in_(
            select(DOCUMENTS.c.catalogue_document_id).where(DOCUMENTS.c.change_seq >= bindparam("first"))
        ),
    )
    .values(changed_at=bindparam("now"))
)


@dataclass(frozen=True, slots=True)
class TakenNumbers:
    """Numbers of changes: the first one, and the time of all of them. They were taken at `moment` (time.monotonic)."""

    first: int
    at: datetime
    moment: float


def last_stamp(session: Session) -> datetime | None:
    """The time of the last committed change; None if there is none.

    The list of changes before this time is complete. Each change that is committed later has this time or a later one:
    a reader whose next list begins at this time misses no change.
    """
    row = session.connection().execute(_TAKEN).first()
    return None if row is None else row[1]


def take_numbers(session: Session, number: int) -> TakenNumbers:
    """Lock the counter until the transaction ends, and take the numbers of the next `number` changes."""
    connection = session.connection()
    if not connection.execute(_TAKE, {"number": number}).rowcount:
        _begin_counting(session)
        connection.execute(_TAKE, {"number": number})
    last, before = connection.execute(_TAKEN).one()
    # The clock of the database is read under the lock, and may have been set back.
    now = database_now(session).replace(microsecond=0)
    if now > before:
        connection.execute(_STAMP, {"now": now})
    taken = TakenNumbers(last - number + 1, max(now, before), time.monotonic())
    if _numbers_of(session) is None:
        session.info[_KEY_OF_NUMBERS] = (session.get_transaction(), taken)
    return taken


def move(session: Session, numbers: Sequence[int], **values: Any) -> None:
    """Set these values of the documents with these numbers, and give each the next number of the change feed."""
    taken = take_numbers(session, len(numbers))
    same = {"changed_at": taken.at, **values}
    rows = [{"this": number, "change_seq": seq, **same} for seq, number in enumerate(numbers, taken.first)]
    session.connection().execute(THIS_DOCUMENT, rows)


def _numbers_of(session: Session) -> TakenNumbers | None:
    """The first numbers that the session took in its present transaction; None if it took none."""
    kept: tuple[SessionTransaction | None, TakenNumbers | None] = session.info.get(_KEY_OF_NUMBERS, (None, None))
    transaction, numbers = kept
    return numbers if transaction is session.get_transaction() else None


@event.listens_for(Session, "before_commit")
def _stamp_again(session: Session) -> None:
    """Give the changes of a transaction that took long the present time. The counter is still locked."""
    taken = _numbers_of(session)
    if taken is None or session.in_nested_transaction():
        return
    took = time.monotonic() - taken.moment
    if took > _LONGEST_WRITE.total_seconds() and (now := database_now(session).replace(microsecond=0)) > taken.at:
        session.connection().execute(_STAMP, {"now": now})
        again = {"first": taken.first, "now": now}
        session.connection().execute(_STAMP_AGAIN, again)
        session.connection().execute(_STAMP_FORMER_AGAIN, {"taken_at": taken.at, **again})


def repair_times(session: Session, limit: datetime, now: datetime) -> int:
    """Set times after `limit`, which a wrong clock left, to `now`; returns the number of documents.

    Without the repair, all later changes get such a time.
    """
    second = now.replace(microsecond=0)
    session.execute(update(COUNTER).where(COUNTER.c.changed_at > limit).values(changed_at=second))
    session.execute(update(FORMER).where(FORMER.c.changed_at > limit).values(changed_at=second))
    wrong = update(DOCUMENTS).where(DOCUMENTS.c.changed_at > limit)
    return session.connection().execute(wrong.values(changed_at=second)).rowcount


def _begin_counting(session: Session) -> None:
    """Insert the row of the counter; another writer may insert it at the same moment."""
    row = {"counter_id": 1, "change_seq": 0, "changed_at": datetime(1970, 1, 1, tzinfo=UTC)}
    with suppress(IntegrityError), session.begin_nested():
        session.execute(insert(COUNTER), row)
