"""Documents whose spot check is due, although their site lists them without a change.

A document is fetched once for each revision. If its site changes it later and forgets to raise the revision, no list
shows that. So a few documents a night are compared with the content of the target.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from typing import Any

from sqlalchemy import Row, Select, exists, or_, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDocument, HarvestSiteSchedule, SiteProblem
from metaharvest.ledger.rows import Columns, write_ledger
from metaharvest.model import DocumentState, ListedDocument, ListVersion
from metaharvest.model.values import frozen

CHANGED = "list.changed-content"
"""The rule of a document with other bytes than the target has under the same revision."""

LOOK_AFTER = timedelta(days=30)
"""The time from one spot check of a document to the next, unless it was found changed."""

_LEDGER, _PROBLEM = HarvestDocument, SiteProblem


@frozen
class DueCheck:
    """A document whose spot check is due: the entry of the ledger, and the version that the target has.

    `sha256` of the version is empty if the ledger does not know it. `was_changed`: it had other bytes the last time.
    """

    entry_id: int
    document: ListedDocument
    version: ListVersion
    was_changed: bool


def sites_to_look_at(session: Session, today: date, site_ids: Collection[int] | None = None) -> set[int]:
    """The registered sites, all or among `site_ids`, that may have documents whose spot check is due.

    Each site takes two look-ups in an index.
    """
    site = HarvestSiteSchedule.site_schedule_id
    due = exists().where(_LEDGER.site_schedule_id == site, _LEDGER.looked_at <= today - LOOK_AFTER)
    changed = exists().where(_PROBLEM.site_schedule_id == site, _PROBLEM.state == "open", _PROBLEM.rule == CHANGED)
    query = select(site).where(or_(due, changed))
    return set(session.scalars(query if site_ids is None else query.where(site.in_(site_ids))))


def due_looks(session: Session, site_id: int, today: date, number: int) -> list[DueCheck]:
    """The site's documents whose spot check is due: `number` changed and `number` others at most, the oldest first.

    Only revisions that the target has can be compared.
    """
    changed = (
        _of_site(site_id)
        .where(_LEDGER.looked_at < today)
        .join(
            _PROBLEM,
            (_PROBLEM.site_schedule_id == _LEDGER.site_schedule_id) & (_PROBLEM.document_id == _LEDGER.document_id),
        )
        .where(_PROBLEM.rule == CHANGED, _PROBLEM.state == "open")
    )
    due = _of_site(site_id).where(_LEDGER.looked_at <= today - LOOK_AFTER)
    found: dict[int, DueCheck] = {}
    for query, was_changed in ((changed, True), (due, False)):
        for row in session.execute(query.order_by(_LEDGER.looked_at).limit(number)):
            found.setdefault(row.harvest_document_id, _due(row, was_changed))
    return list(found.values())


def _of_site(site_id: int) -> Select[*tuple[Any, ...]]:
    return select(
        _LEDGER.harvest_document_id,
        _LEDGER.document_id,
        _LEDGER.revision,
        _LEDGER.document_type,
        _LEDGER.document_url,
        _LEDGER.sha256,
        _LEDGER.etag,
        _LEDGER.last_modified,
    ).where(
        _LEDGER.site_schedule_id == site_id,
        _LEDGER.state == DocumentState.HELD.value,
        _LEDGER.target_revision == _LEDGER.revision,
    )


def _due(row: Row[Any], was_changed: bool) -> DueCheck:
    document = ListedDocument(row.document_id, row.revision, row.document_type, row.document_url)
    return DueCheck(
        row.harvest_document_id, document, ListVersion(row.etag, row.last_modified, row.sha256 or ""), was_changed
    )


def note_looks(session: Session, looks: Sequence[tuple[DueCheck, ListVersion]], today: date) -> None:
    """Note that these documents were checked, and the version that their server names for the bytes in the target."""
    rows: list[Columns] = [
        {
            "harvest_document_id": due.entry_id,
            "looked_at": today,
            "etag": version.etag,
            "last_modified": version.last_modified,
        }
        for due, version in looks
    ]
    write_ledger(session, (), rows)
