"""A site's last harvests one after another: how each ended, how many documents failed, how long it took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDocument, HarvestRun, HarvestSiteRun
from metaharvest.model import ERROR_OUTCOMES, OutcomeKind, SiteRunKind
from metaharvest.queries.records import Record, columns

HARVESTS = 5
"""How many are shown where there is little room."""

_FAILING = tuple(kind.column for kind in OutcomeKind if kind in ERROR_OUTCOMES or kind is OutcomeKind.DEFERRED)
_SHOWN = "site_run_id run_id status listed inserted updated unchanged warnings"
_HARVEST = f"{_SHOWN} started_at ended_at {' '.join(_FAILING)}"

_QUERY = select(*columns(HarvestSiteRun, _HARVEST), HarvestRun.harvest_date).join(
    HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id
)


def harvests(session: Session, site_id: int, number: int = HARVESTS, upto: int | None = None) -> list[Record]:
    """The last harvests of a site, the oldest first, up to the site run `upto`; tries of single documents are none."""
    query = (
        _QUERY.where(HarvestSiteRun.site_schedule_id == site_id, HarvestSiteRun.kind != SiteRunKind.RETRY.value)
        .order_by(HarvestSiteRun.site_run_id.desc())
        .limit(number)
    )
    if upto is not None:
        query = query.where(HarvestSiteRun.site_run_id <= upto)
    return [_harvest(dict(row)) for row in session.execute(query).mappings()][::-1]


def harvest(session: Session, site_run_id: int) -> Record:
    """One site run that is there, as one of `harvests`."""
    query = _QUERY.where(HarvestSiteRun.site_run_id == site_run_id)
    return _harvest(dict(session.execute(query).mappings().one()))


def numbers_failing(session: Session, site_ids: Sequence[int] | None = None) -> dict[int, tuple[int, date]]:
    """How many documents are failing, and since when the first of them has been, by site; of sites without: nothing."""
    query = select(HarvestDocument.site_schedule_id, func.count(), func.min(HarvestDocument.failing_since)).where(
        HarvestDocument.failing_since.is_not(None)
    )
    if site_ids is not None:
        query = query.where(HarvestDocument.site_schedule_id.in_(site_ids))
    rows = session.execute(query.group_by(HarvestDocument.site_schedule_id))
    return {site_id: (number, since) for site_id, number, since in rows if since is not None}


def failing(site_run: Record) -> int:
    """How many documents of a site run could not be taken in, or were put off."""
    return sum(site_run[column] for column in _FAILING)


def seconds_between(began: datetime, ended: datetime | None) -> float | None:
    """How long that took; None if it has not ended."""
    return None if ended is None else round((ended - began).total_seconds(), 3)


def in_words(trend: Iterable[Record]) -> str:
    """How many documents failed, harvest by harvest: `12 12 3`; of a harvest that came to no documents, `-`."""
    return " ".join(str(each["failing"]) if each["listed"] else "-" for each in trend)


def _harvest(row: Record) -> Record:
    return {
        **{name: row[name] for name in _SHOWN.split()},
        "harvest_date": row["harvest_date"],
        "failing": failing(row),
        "took_seconds": seconds_between(row["started_at"], row["ended_at"]),
    }
