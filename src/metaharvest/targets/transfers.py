"""Documents that were given to another site, by an administrator or with their records, which had moved there.

Each is a row of document_transfer, which stays for good.

The log tells of it too, in a row that stays when others are purged: it has no site run and no outcome, as no harvest
did it, and its site is the one that the document was taken from. Before the first run there is no log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import and_, bindparam, select
from sqlalchemy.orm import Session

from metaharvest.database.models import IS_HARVEST, Base, DocumentTransfer, HarvestLog, HarvestRun
from metaharvest.database.rows import insert_rows

IS_TRANSFER = and_(HarvestLog.site_run_id.is_(None), HarvestLog.document_id.is_not(None), HarvestLog.revision.is_(None))
"""Whether a row of the log tells of a transfer; what another harvester logged of a document has its revision."""

_LOG = Base.metadata.tables[HarvestLog.__tablename__]
_TRANSFERS = Base.metadata.tables[DocumentTransfer.__tablename__]
_TAKEN = (
    # One range: that is one statement whatever the number, and the documents of a call lie close together.
    select(_TRANSFERS.c.document_id, _TRANSFERS.c.from_site_id, _TRANSFERS.c.transferred_on)
    .where(_TRANSFERS.c.document_id.between(bindparam("first"), bindparam("last")))
    .order_by(_TRANSFERS.c.transfer_id)
)
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Taken:
    """A document, and the registered site that it is taken from; None: it belonged to none."""

    document_id: str
    site_id: int | None
    site: str | None


@dataclass(frozen=True, slots=True)
class Receiving:
    """The site that documents are given to, by whom (may be empty), and when: the day in the harvester's time zone."""

    site_id: int
    site: str
    by: str
    today: date
    now: datetime

    def sentence(self, taken: Taken) -> str:
        """What the log says of it."""
        whose = "no registered site" if taken.site is None else f"the site '{taken.site}'"
        by = f" by {self.by}" if self.by else ""
        return f"{taken.document_id} was transferred from {whose} to the site '{self.site}'{by}."


def note(session: Session, taken: Sequence[Taken], to: Receiving) -> None:
    """Write the rows; those of the log as rows of the newest run, if there is one."""
    if not taken:
        return
    # With its row locked, a run that is under way commits nothing meanwhile: it numbers the rows of the log itself.
    newest = select(HarvestRun.run_id).where(IS_HARVEST).order_by(HarvestRun.run_id.desc()).limit(1)
    run_id = session.scalar(newest.with_for_update())
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
            {
                "document_id": row["document_id"],
                "site_schedule_id": row["from_site_id"],
                "message": row["message"],
            }
            for row in rows
        ]
        same = {"run_id": run_id, "status": 0, "harvest_operation_code": "UpdateDocSuccess"}
        insert_rows(session.connection(), _LOG, logged, {**same, "harvest_date": to.today, "logged_at": to.now})


def taken_from(session: Session, document_ids: Sequence[str]) -> Mapping[str, tuple[tuple[int, date], ...]]:
    """Those of these documents that were transferred, each with the sites that it was taken from.

    With each of these sites is the day since which the document belongs to the site that has it now.
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
