"""The change feed: the documents of the catalogue in the order in which their last changes were committed.

A reader keeps the number of the last change that it has seen, and asks for those after it. It misses none: a writer
takes its numbers from a row that stays locked until it commits. A document that changes again moves to the end.

A reader may also go by time: a change is committed less than COMMIT_LAG after the time that it has. A transaction that
takes longer gives its changes a new time immediately before it commits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Row, bindparam, event, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, SessionTransaction

from metaharvest.catalogue.current import (
    COUNTER,
    DOCUMENTS,
    FORMER,
    IS_CURRENT,
    ORIGIN_OF_CURRENT,
    ORIGINS,
    REVISIONS,
    SITE_OF_CURRENT,
    SITES,
    TOMBSTONES,
)
from metaharvest.catalogue.selection import NOTHING_HIDDEN, Hidden, is_gone, published
from metaharvest.database.clock import database_now
from metaharvest.fetch.url import without_login
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen

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


_CHANGES = (
    select(
        *DOCUMENTS.c["change_seq", "changed_at", "document_id", "revision", "item_identifier", "origin"],
        *DOCUMENTS.c["document_type", "title", "sha256"],
        SITES.c.name.label("site"),
        *REVISIONS.c["document_revision_id", "size", "source_url"],
        *ORIGINS.c["base_url", "datestamp", "sets"],
        TOMBSTONES.c.datestamp.label("deletion_datestamp"),
    )
    .select_from(DOCUMENTS)
    .outerjoin(SITES, SITE_OF_CURRENT)
    .outerjoin(REVISIONS, IS_CURRENT)
    .outerjoin(ORIGINS, ORIGIN_OF_CURRENT)
    .outerjoin(TOMBSTONES, TOMBSTONES.c.document_id == DOCUMENTS.c.document_id)
    .order_by(DOCUMENTS.c.change_seq)
)


@frozen
class ChangedDocument:
    """A document after its last change: see CatalogueDocument. `revision_id` is the key of its bytes.

    `size` is in bytes. `site` is the name of the registered site, `url` the source of the document. `base_url` is the
    address of its source repository, `datestamp` and `sets` are its own there. A deleted document has no title, bytes,
    source and sets. Unknown values are None.
    """

    change_seq: int
    changed_at: datetime
    is_deleted: bool
    document_id: str
    revision: int
    item_identifier: str
    origin: str | None
    document_type: str
    title: str | None
    site: str | None
    sets: tuple[str, ...]
    datestamp: str | None
    base_url: str | None
    url: str | None
    sha256: str | None
    size: int | None
    revision_id: int | None


@frozen
class TakenNumbers:
    """Numbers of changes: the first one, and the time of all of them. They were taken at `moment` (time.monotonic)."""

    first: int
    at: datetime
    moment: float


def last_change(session: Session) -> int:
    """The number of the last committed change; 0 if there is none."""
    return session.scalar(select(COUNTER.c.change_seq)) or 0


def number_of_changes(session: Session, after_seq: int, hidden: Hidden = NOTHING_HIDDEN) -> int:
    """The number of documents whose last change has a higher number than `after_seq`."""
    later = (DOCUMENTS.c.change_seq > after_seq, *published(DOCUMENTS, hidden))
    return session.scalar(select(func.count()).select_from(DOCUMENTS).where(*later)) or 0


def changed_documents(session: Session, after_seq: int, limit: int, hidden: Hidden) -> Sequence[ChangedDocument]:
    """The next documents after this number of a change, in commit order, at most `limit`; deleted ones, too."""
    later = (DOCUMENTS.c.change_seq > after_seq, *published(DOCUMENTS, hidden))
    query = _CHANGES.add_columns(is_gone(DOCUMENTS, hidden).label("deleted")).where(*later).limit(limit)
    return [_document(row) for row in session.execute(query)]


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
        row = {"counter_id": 1, "change_seq": 0, "changed_at": datetime(1970, 1, 1, tzinfo=UTC)}
        with suppress(IntegrityError), session.begin_nested():  # another writer may insert it at the same moment
            session.execute(insert(COUNTER), row)
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


def move_other_formats(session: Session, numbers: Collection[int]) -> None:
    """Note a change of the other formats of these records: one of them may take the place of a document."""
    this = DOCUMENTS.alias("this")
    is_same = (this.c.item_identifier == DOCUMENTS.c.item_identifier) & (this.c.origin == DOCUMENTS.c.origin)
    others = select(DOCUMENTS.c.catalogue_document_id).join(this, is_same)
    found = session.scalars(others.where(this.c.catalogue_document_id.in_(numbers)))
    if left := sorted(set(found).difference(numbers)):
        move(session, left)


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


def _document(row: Row[*tuple[Any, ...]]) -> ChangedDocument:
    is_deleted = bool(row.deleted)
    return record_of(
        ChangedDocument,
        row,
        is_deleted=is_deleted,
        title=None if is_deleted else row.title or None,
        sets=() if is_deleted or row.sets is None else tuple(json.loads(row.sets)),
        datestamp=(row.deletion_datestamp if is_deleted else row.datestamp) or None,
        base_url=without_login(row.base_url) if row.base_url else None,
        url=None if is_deleted or not row.source_url else without_login(row.source_url),
        sha256=None if is_deleted else row.sha256,
        size=None if is_deleted else row.size,
        revision_id=None if is_deleted else row.document_revision_id,
    )
