"""Withholds the documents of sites that are not public, and publishes them again.

A document that was published before counts as changed: harvesters learn that it is gone, or back. Readers leave out the
documents of a site as soon as its flag says so; the rows of its documents follow, some in each transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import ColumnElement, bindparam, delete, exists, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.change_feed import move, move_other_formats, take_numbers
from metaharvest.catalogue.current import DOCUMENTS, SITES, WITHHELD
from metaharvest.catalogue.selection import Position, later_than
from metaharvest.database.rows import insert_rows

_NUMBER = DOCUMENTS.c.catalogue_document_id
_IS_WITHHELD: ColumnElement[bool] = exists().where(WITHHELD.c.catalogue_document_id == _NUMBER)
_IS_PUBLIC: ColumnElement[bool] = SITES.c.public.is_(True)
"""A site with any other value, which a person stored with SQL, is not public."""

_FLAGS = select(SITES.c.site_schedule_id, _IS_PUBLIC).where(
    SITES.c.site_schedule_id.in_(bindparam("sites", expanding=True))
)

_HIDDEN_SITES = (
    select(DOCUMENTS.c.site_schedule_id)
    .where(DOCUMENTS.c.site_schedule_id.in_(bindparam("sites", expanding=True)), _IS_WITHHELD)
    .distinct()
)
_WITHHELD_AMONG = select(WITHHELD.c.catalogue_document_id).where(
    WITHHELD.c.catalogue_document_id.in_(bindparam("documents", expanding=True))
)


def sites_to_align(session: Session) -> Collection[int]:
    """The registered sites with documents that are not withheld or published as the flag of the site says."""
    site = SITES.c.site_schedule_id
    shown = exists().where(site == DOCUMENTS.c.site_schedule_id, ~_IS_WITHHELD)
    to_withhold = session.scalars(select(site).where(SITES.c.public.is_not(True), shown))
    withheld = select(DOCUMENTS.c.site_schedule_id).join(WITHHELD, WITHHELD.c.catalogue_document_id == _NUMBER)
    to_publish = session.scalars(select(site).where(_IS_PUBLIC, site.in_(withheld)))
    return {*to_withhold, *to_publish}


def align(session: Session, site_id: int, after: Position | None, most: int, *, retract: bool) -> Position | None:
    """Withhold or publish the next documents of a registered site; returns the position of the last one.

    None: all are as the flag of the site says. `retract`: the documents were published until now.
    """
    # An upload under way has read the flag under this lock; its documents are seen after its commit.
    take_numbers(session, 0)
    flag = session.scalar(select(_IS_PUBLIC).where(SITES.c.site_schedule_id == site_id))
    if flag is None:
        return None
    is_wrong = _IS_WITHHELD if flag else ~_IS_WITHHELD
    order = DOCUMENTS.c["changed_at", "catalogue_document_id"]
    query = select(*order).where(
        DOCUMENTS.c.site_schedule_id == site_id, is_wrong, *([] if after is None else later_than(after))
    )
    rows = session.execute(query.order_by(*order).limit(most)).all()
    if not rows:
        return None
    numbers = [row.catalogue_document_id for row in rows]
    if flag:
        _remove(session, numbers)
    else:
        _insert(session, dict.fromkeys(numbers, retract))
    if flag or retract:
        move(session, numbers)
        move_other_formats(session, numbers)
    return Position(*rows[-1])


def settle(session: Session, sites: Mapping[int, int], first_new: int | None = None) -> None:
    """Withhold or publish documents that were uploaded or transferred, by number, as their sites are.

    Documents from `first_new` on were never published. The caller holds the lock of the counter.
    """
    private = _private(session, set(sites.values()))
    known = [number for number in sites if first_new is None or number < first_new]
    withheld = set(session.scalars(_WITHHELD_AMONG, {"documents": known}) if known else ())
    back = [number for number in withheld if sites[number] not in private]
    if back:
        _remove(session, back)
    gone = [number for number, site in sites.items() if site in private and number not in withheld]
    retracted = {number: first_new is None or number < first_new for number in gone}
    if gone:
        _insert(session, retracted)
    if changed := [*back, *(number for number in gone if retracted[number])]:
        move_other_formats(session, changed)


def _private(session: Session, sites: Collection[int]) -> Collection[int]:
    """The sites among these that are not public; for a removed site, its documents decide."""
    rows = session.connection().execute(_FLAGS, {"sites": list(sites)}).all()
    removed = set(sites) - {row[0] for row in rows}
    hidden = session.scalars(_HIDDEN_SITES, {"sites": list(removed)}) if removed else ()
    return {*(row[0] for row in rows if not row[1]), *hidden}


def _remove(session: Session, numbers: Collection[int]) -> None:
    session.execute(delete(WITHHELD).where(WITHHELD.c.catalogue_document_id.in_(numbers)))


def _insert(session: Session, retracted: Mapping[int, bool]) -> None:
    rows = [{"catalogue_document_id": number, "retracted": each} for number, each in retracted.items()]
    insert_rows(session.connection(), WITHHELD, rows)
