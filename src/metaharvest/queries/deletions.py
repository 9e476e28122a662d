"""The deletions of a site that wait until a person confirms them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDocument
from metaharvest.database.statements import by_document
from metaharvest.ledger.deletions import deletions_to_confirm, only_records
from metaharvest.ledger.sweeps import confirmed_deletions
from metaharvest.model import DocumentState
from metaharvest.sites.registry import find_site
from metaharvest.text import counted


@dataclass(frozen=True, slots=True)
class WaitingDeletions:
    """The `number` of deletions of a site that no person has confirmed, and the number `confirmed`.

    `documents`: the first documents of both, with their titles.
    """

    number: int
    confirmed: int
    documents: tuple[tuple[str, str | None], ...]

    @property
    def confirmed_sentence(self) -> str:
        """The number that was confirmed, in a sentence; empty if there is none."""
        if not self.confirmed:
            return ""
        return f"{counted(self.confirmed, 'deletion is', 'deletions are')} confirmed for the next harvest."


def waiting_deletions(session: Session, site: str, limit: int) -> WaitingDeletions:
    """The deletions that wait at this site. Raises ScheduleError if there is no such site."""
    document = HarvestDocument
    found = find_site(session, site)
    site_id = found.site_id
    total = 0 if only_records(found) else deletions_to_confirm(session, site_id)
    confirmed = min(confirmed_deletions(session, site_id), total)
    its = (document.state == DocumentState.TO_CONFIRM.value, document.site_schedule_id == site_id)
    first = select(document.document_id, document.title).where(*its)
    rows = session.execute(first.order_by(*by_document(document.document_id)).limit(limit))
    return WaitingDeletions(total - confirmed, confirmed, tuple((row[0], row[1]) for row in rows))
