"""Documents that an administrator has given to another site: a row of the log each, which stays when others are purged.

The row has no site run and no outcome, as no harvest did it. Its site is the one that the document was taken from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime

from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import IS_HARVEST, HarvestLog, HarvestRun

IS_TRANSFER = and_(HarvestLog.site_run_id.is_(None), HarvestLog.document_id.is_not(None), HarvestLog.revision.is_(None))
"""Whether a row of the log tells of a transfer; what another harvester logged of a document has its revision."""


def note(session: Session, document_id: str, taken_from: int | None, message: str, today: date, now: datetime) -> None:
    """Write the row, as one of the newest run; before the first run there is no log."""
    run_id = session.scalar(select(func.max(HarvestRun.run_id)).where(IS_HARVEST))
    if run_id is not None:
        row = {"run_id": run_id, "harvest_date": today, "logged_at": now, "status": 0, "message": message}
        code = "UpdateDocSuccess"
        session.add(
            HarvestLog(**row, harvest_operation_code=code, site_schedule_id=taken_from, document_id=document_id)
        )


def taken_from(session: Session, document_ids: Sequence[str]) -> Mapping[str, tuple[tuple[int, date], ...]]:
    """Those of these documents that were transferred, each with the sites that it was taken from, and the days."""
    asked, found = set(document_ids), dict[str, tuple[tuple[int, date], ...]]()
    # All that there ever were are few: fewer than the documents that are asked for.
    query = (
        select(HarvestLog.document_id, HarvestLog.site_schedule_id, HarvestLog.harvest_date)
        .where(IS_TRANSFER, HarvestLog.site_schedule_id.is_not(None))
        .order_by(HarvestLog.harvest_log_id)
    )
    for document_id, site_id, day in session.execute(query):
        if document_id in asked:
            found[str(document_id)] = (*found.get(str(document_id), ()), (int(site_id or 0), day))
    return found
