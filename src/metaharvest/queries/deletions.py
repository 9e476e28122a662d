"""The deletions of a site that wait until a person confirms them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.document_order import by_document
from metaharvest.database.models import HarvestDocument
from metaharvest.model import DocumentState
from metaharvest.sites.registry import find_site


@dataclass(frozen=True, slots=True)
class WaitingDeletions:
    """The number of deletions that wait at a site, and the first of these documents: document id and title."""

    number: int
    documents: tuple[tuple[str, str | None], ...]


def waiting_deletions(session: Session, site: str, limit: int) -> WaitingDeletions:
    """The deletions that wait at this site. Raises ScheduleError if there is no such site."""
    document = HarvestDocument
    site_id = find_site(session, site).site_id
    its = (document.state == DocumentState.TO_CONFIRM.value, document.site_schedule_id == site_id)
    number = session.scalar(select(func.count()).where(*its)) or 0
    first = select(document.document_id, document.title).where(*its)
    rows = session.execute(first.order_by(*by_document(document.document_id)).limit(limit))
    return WaitingDeletions(number, tuple((row[0], row[1]) for row in rows))
