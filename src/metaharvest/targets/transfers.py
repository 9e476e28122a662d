"""Documents that were transferred to another site, by an administrator or together with their records.

Each is a row of document_transfer, which stays for good.

A row of the log reports it too, and stays when other rows are purged. It has no site run and no outcome, as no harvest
did it; its site is the former owner. Before the first run there is no log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

from sqlalchemy import and_, bindparam, select
from sqlalchemy.orm import Session

from metaharvest.database.models import IS_HARVEST, Base, DocumentTransfer, HarvestLog, HarvestRun
from metaharvest.database.rows import insert_rows
from metaharvest.model.values import frozen

IS_TRANSFER = and_(HarvestLog.site_run_id.is_(None), HarvestLog.document_id.is_not(None), HarvestLog.revision.is_(None))
"""True if a row of the log reports a transfer; rows of other harvesters about a document have its revision."""

_LOG = Base.metadata.tables[HarvestLog.__tablename__]
_TRANSFERS = Base.metadata.tables[DocumentTransfer.__tablename__]
_TAKEN = (
    # One range: that is one statement for any number of documents, and the documents of a call lie close together.
    select(_TRANSFERS.c.document_id, _TRANSFERS.c.from_site_id, _TRANSFERS.c.transferred_on)
    .where(_TRANSFERS.c.document_id.between(bindparam("first"), bindparam("last")))
    .order_by(_TRANSFERS.c.transfer_id)
)
_LONGEST_NAME = 255


@frozen
class Taken:
    """A document, and its former registered site; None: it had none."""

    document_id: str
    site_id: int | None
    site: str | None


@frozen
class Receiving:
    """The receiving site, the person who transfers documents (may be empty), the day in the harvester's time zone."""

    site_id: int
    site: str
    by: str
    today: date
    now: datetime

    def sentence(self, taken: Taken) -> str:
        """The sentence of the log about it."""
        whose = "no registered site" if taken.site is None else f"the site '{taken.site}'"
        by = f" by {self.by}" if self.by else ""
        return f"{taken.document_id} was transferred from {whose} to the site '{self.site}'{by}."


def note(session: Session, taken: Sequence[Taken], to: Receiving) -> None:
    """Write the rows; the rows of the log belong to the newest run, if there is one."""
    if not taken:
        return
    newest = select(HarvestRun).where(IS_HARVEST).order_by(HarvestRun.run_id.desc()).limit(1)
    run = session.scalar(newest)
    run_id = run.run_id if run else None
    if run and not run.distributed:
        # A run that is under way commits nothing until the transfer has ended: it has read the owners of its documents.
        # Workers leave the row of their run alone: they read the owners again after they have locked the counter.
        session.refresh(run, with_for_update=True)
    rows = [
        {
            "document_id": each.document_id,
            "from_site_id": each.site_id,
            "from_site": each.site,
            "message": to.sentence(each),
        }
        for each in taken
    ]
    same = {"to_site_id": to.site_id, "to_site": to.site, "transferred_by": to.by[:_LONGEST_NAME], "run_id": run_id}
    when = {"transferred_on": to.today, "transferred_at": to.now}
    insert_rows(session.connection(), _TRANSFERS, rows, {**same, **when})
    if run_id is not None:
        logged = [
            {"document_id": row["document_id"], "site_schedule_id": row["from_site_id"], "message": row["message"]}
            for row in rows
        ]
        same = {"run_id": run_id, "status": 0, "harvest_operation_code": "UpdateDocSuccess"}
        insert_rows(session.connection(), _LOG, logged, {**same, "harvest_date": to.today, "logged_at": to.now})


def taken_from(session: Session, document_ids: Sequence[str]) -> Mapping[str, tuple[tuple[int, date], ...]]:
    """The transferred documents among these, each with its former sites.

    Each former site has the day since which the document belongs to its present site.
    """
    if not document_ids:
        return {}
    within = {"first": min(document_ids), "last": max(document_ids)}
    asked, former, since = set(document_ids), dict[str, dict[int, None]](), dict[str, date]()
    for document_id, site_id, day in session.connection().execute(_TAKEN, within):
        if document_id in asked:
            since[document_id] = day
            if site_id is not None:
                former.setdefault(document_id, {})[site_id] = None
    return {
        document_id: tuple((site_id, since[document_id]) for site_id in sites) for document_id, sites in former.items()
    }
