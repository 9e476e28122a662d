"""A site over a year: documents, failures and seconds by week, for charts; its missing records by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import IS_HARVEST, IS_REAL, HarvestDocument, HarvestRun, HarvestSiteRun
from metaharvest.model import NOT_HARVESTED, DocumentState, SiteRunKind
from metaharvest.model.mappings import record_of
from metaharvest.queries.records import columns, docid
from metaharvest.queries.trends import READ_A_LIST, failing, seconds_between
from metaharvest.text import shown_url

_SITE_RUN = "listed inserted updated deleted status started_at ended_at deferred access_error invalid upload_error"
_MISSING = "document_id revision title document_url missing_since"


@dataclass(frozen=True, slots=True)
class SitePeriod:
    """The harvests of a site from `first_day` to `last_day`, both included; retries and rehearsals do not count.

    `listed` and `failing` are numbers of documents after the last harvest of the period that read a list; None: there
    was no such harvest. `inserted` to `failed_harvests`, and `took_seconds`, are sums.
    """

    first_day: date
    last_day: date
    harvests: int
    failed_harvests: int
    listed: int | None
    failing: int | None
    inserted: int
    updated: int
    deleted: int
    took_seconds: float


def site_year(session: Session, site_id: int, first_day: date, last_day: date) -> list[SitePeriod]:
    """The weeks from `first_day` on; the last one ends on `last_day`.

    Weeks without a harvest are among them, so that a chart has no hole.
    """
    query = (
        select(HarvestRun.harvest_date, *columns(HarvestSiteRun, _SITE_RUN))
        .join(HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id)
        .where(
            HarvestSiteRun.site_schedule_id == site_id,
            HarvestSiteRun.kind != SiteRunKind.RETRY.value,
            IS_REAL,
            IS_HARVEST,
            HarvestRun.harvest_date >= first_day,
            HarvestRun.harvest_date <= last_day,
        )
        .order_by(HarvestSiteRun.site_run_id)
    )
    by_week: dict[int, list[Any]] = {}
    for row in session.execute(query):
        by_week.setdefault((last_day - row.harvest_date).days // 7, []).append(row)
    number = (last_day - first_day).days // 7 + 1
    ends = ((back, last_day - timedelta(weeks=back)) for back in reversed(range(number)))
    return [_period(max(first_day, end - timedelta(days=6)), end, by_week.get(back, ())) for back, end in ends]


def _period(first_day: date, last_day: date, rows: Iterable[Any]) -> SitePeriod:
    rows = list(rows)
    read = [row for row in rows if row.listed or row.status in READ_A_LIST]
    return SitePeriod(
        first_day,
        last_day,
        len(rows),
        sum(row.status in NOT_HARVESTED for row in rows),
        read[-1].listed if read else None,
        failing(read[-1]) if read else None,
        sum(row.inserted for row in rows),
        sum(row.updated for row in rows),
        sum(row.deleted for row in rows),
        round(sum(seconds_between(row.started_at, row.ended_at) or 0.0 for row in rows), 3),
    )


@dataclass(frozen=True, slots=True)
class MissingRecord:
    """A document of a site that full lists of its source repository do not name any more."""

    entry_id: int
    docid: str | None
    document_id: str
    title: str | None
    url: str
    missing_since: date | None


def missing_records(session: Session, site_id: int, limit: int = 100, after: int | None = None) -> list[MissingRecord]:
    """The missing records of a site in the order in which they came; `after`: the `entry_id` of a page's last one."""
    ledger = HarvestDocument
    conditions = [ledger.site_schedule_id == site_id, ledger.state == DocumentState.MISSING.value]
    if after is not None:
        conditions.append(ledger.harvest_document_id > after)
    query = select(ledger.harvest_document_id, *columns(ledger, _MISSING)).where(*conditions)
    rows: Sequence[Any] = session.execute(query.order_by(ledger.harvest_document_id).limit(limit)).all()
    return [
        record_of(
            MissingRecord,
            row,
            entry_id=row.harvest_document_id,
            docid=docid(row.document_id, row.revision),
            url=shown_url(row.document_url),
        )
        for row in rows
    ]
