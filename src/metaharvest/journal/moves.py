"""Documents that go with their records from one site of a repository to another: what is written then.

They are transferred as an administrator would do it. What the ledger says of them is asked again as it is written: the
other site may be harvested at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import update
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestDocument
from metaharvest.journal.log_rows import LogRow
from metaharvest.model import ERROR_OUTCOMES, Finding, Level
from metaharvest.reports.findings import MOVED
from metaharvest.sites import records
from metaharvest.targets.base import Target
from metaharvest.targets.handover import give, to_be_taken
from metaharvest.targets.transfers import Receiving, Taken

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_HAS_FAILED = _LEDGER.c.outcome.in_([kind.value for kind in ERROR_OUTCOMES])


@dataclass(frozen=True, slots=True)
class Move:
    """A move within a target; `site_names` are those of all registered sites, by number."""

    target: Target
    to: Receiving
    site_names: Mapping[int, str]


def take_over(
    session: Session, move: Move, max_loss: Mapping[int, int | None], document_ids: Sequence[str]
) -> list[Taken]:
    """Give the site those of these documents that belong to one of the other sites, which has lost the record.

    `max_loss` has the other sites: see sites.records.gone_from.
    """
    gone = records.gone_from(session, max_loss, document_ids)
    found = to_be_taken(session, move.target, list(gone), move.to.site_id, move.site_names)
    return _given(session, move, [each for each in found if each.site_id in gone[each.document_id]])


def hand_over(session: Session, move: Move, former: int, document_ids: Sequence[str]) -> list[str]:
    """Give the site those of these documents of the former one whose records it lists; those that are its own then."""
    listed = records.listed_by(session, [move.to.site_id], document_ids)
    found = to_be_taken(session, move.target, list(listed), move.to.site_id, move.site_names)
    _given(session, move, [each for each in found if each.site_id in (None, former)])
    others = {each.document_id for each in found if each.site_id not in (None, former)}
    return [document_id for document_id in listed if document_id not in others]


def _given(session: Session, move: Move, taken: list[Taken]) -> list[Taken]:
    give(session, move.target, taken, move.to)
    # It was refused as long as the document belonged to the other site.
    ids = [each.document_id for each in taken]
    theirs = (_LEDGER.c.site_schedule_id == move.to.site_id, _LEDGER.c.document_id.in_(ids), _HAS_FAILED)
    session.execute(update(_LEDGER).where(*theirs).values(next_attempt=move.to.today))
    return taken


def told(taken: Sequence[Taken]) -> list[LogRow]:
    """The row that tells the site of what it has taken over; none if that is nothing."""
    if not taken:
        return []
    names = ", ".join(dict.fromkeys(f"'{each.site}'" for each in taken))
    records = "1 record" if len(taken) == 1 else f"{len(taken):,} records"
    message = f"{records} moved to this site from {names}, where the repository lists them no longer. "
    message += "The documents belong to this site from now on."
    remedy = "Nothing is to be done if they were to move; otherwise the administrator gives the documents back."
    return [LogRow("ListRecordsWarning", message, (Finding(MOVED, message, remedy, Level.WARNING),))]
