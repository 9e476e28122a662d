"""A site's last harvests in order: the status of each, the number of failed documents, the duration."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Row, and_, func, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.batches import batches
from metaharvest.database.models import IS_REAL, HarvestRun, HarvestSiteRun
from metaharvest.model import ERROR_OUTCOMES, OutcomeKind, SiteRunKind, SiteRunStatus
from metaharvest.queries.records import columns

HARVESTS = 5
"""The number that is shown if there is little room."""

READ_A_LIST = (SiteRunStatus.SUCCEEDED.value, SiteRunStatus.WITH_ERRORS.value, SiteRunStatus.INCOMPLETE.value)

_FAILING = tuple(kind.column for kind in OutcomeKind if kind in ERROR_OUTCOMES or kind is OutcomeKind.DEFERRED)
_SHOWN = "site_run_id run_id rehearsal status listed inserted updated unchanged warnings"
_HARVEST = f"{_SHOWN} started_at ended_at {' '.join(_FAILING)}"

_QUERY = select(*columns(HarvestSiteRun, _HARVEST), HarvestRun.harvest_date).join(
    HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id
)
_IS_FULL = HarvestSiteRun.kind != SiteRunKind.RETRY.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvest:
    """One harvest of a site; `listed` is None if no list was read.

    `failing` is the number of documents that were not accepted, or were put off.
    """

    site_run_id: int
    run_id: int
    rehearsal: bool
    status: str
    listed: int | None
    inserted: int
    updated: int
    unchanged: int
    warnings: int
    harvest_date: date
    failing: int
    took_seconds: float | None


def harvests(session: Session, site_id: int, limit: int = HARVESTS, after: int | None = None) -> list[Harvest]:
    """The last harvests of a site, the oldest first; tries of single documents are none.

    Rehearsals are among them, and marked. `after`: the site run before which the next page ends.
    """
    query = _QUERY.where(HarvestSiteRun.site_schedule_id == site_id, _IS_FULL)
    if after is not None:
        query = query.where(HarvestSiteRun.site_run_id < after)
    rows = session.execute(query.order_by(HarvestSiteRun.site_run_id.desc()).limit(limit)).all()
    return [_harvest(row) for row in reversed(rows)]


def trends(session: Session, site_run_ids: Sequence[int], number: int = HARVESTS) -> dict[int, tuple[Harvest, ...]]:
    """By site run, the last harvests of its site up to this one, the oldest first. One query for 500 site runs."""
    this, earlier, full = aliased(HarvestSiteRun), aliased(HarvestSiteRun), HarvestSiteRun
    oldest = (
        select(earlier.site_run_id)
        .where(
            earlier.site_schedule_id == this.site_schedule_id,
            earlier.site_run_id <= this.site_run_id,
            earlier.kind != SiteRunKind.RETRY.value,
        )
        .order_by(earlier.site_run_id.desc())
        .limit(1)
        .offset(number - 1)
        .scalar_subquery()
    )
    its_last = and_(
        full.site_schedule_id == this.site_schedule_id,
        full.site_run_id <= this.site_run_id,
        full.site_run_id >= func.coalesce(oldest, 0),
    )
    query = _QUERY.add_columns(this.site_run_id.label("this")).join(this, its_last).where(_IS_FULL)
    found: dict[int, list[Harvest]] = {each: [] for each in site_run_ids}
    for batch in batches(site_run_ids):
        some = this.site_run_id.in_(batch)
        for row in session.execute(query.where(some).order_by(full.site_run_id)):
            found[row.this].append(_harvest(row))
    return {each: tuple(of_one) for each, of_one in found.items()}


def newest_site_runs(session: Session, site_ids: Collection[int] | None = None) -> dict[int, int]:
    """By site, the number of its newest site run, of these sites or of all."""
    row = HarvestSiteRun
    newest = select(row.site_schedule_id, func.max(row.site_run_id)).group_by(row.site_schedule_id)
    if site_ids is not None:
        newest = newest.where(row.site_schedule_id.in_(site_ids))
    return {row[0]: row[1] for row in session.execute(newest)}


def last_real_harvests(session: Session, site_ids: Sequence[int]) -> dict[int, Harvest]:
    """By site, its last harvest that was no rehearsal."""
    row, found = HarvestSiteRun, dict[int, Harvest]()
    for batch in batches(site_ids):
        these = row.site_schedule_id.in_(batch)
        newest = select(func.max(row.site_run_id)).where(these, _IS_FULL, IS_REAL).group_by(row.site_schedule_id)
        query = _QUERY.add_columns(row.site_schedule_id).where(row.site_run_id.in_(newest))
        found |= {each.site_schedule_id: _harvest(each) for each in session.execute(query)}
    return found


def harvest(session: Session, site_run_id: int) -> Harvest:
    """One site run that is there, as one of `harvests`."""
    return _harvest(session.execute(_QUERY.where(HarvestSiteRun.site_run_id == site_run_id)).one())


def failing(site_run: Any) -> int:
    """The number of documents of a site run that were not accepted, or were put off."""
    return sum(getattr(site_run, column) for column in _FAILING)


def seconds_between(began: datetime, ended: datetime | None) -> float | None:
    """The duration; None if it has not ended."""
    return None if ended is None else round((ended - began).total_seconds(), 3)


def in_words(trend: Iterable[Harvest]) -> str:
    """The number of failed documents, harvest by harvest: `12 12 3`; `-` for a harvest that listed none.

    The number of a rehearsal is in brackets.
    """

    def number(each: Harvest) -> str:
        words = str(each.failing) if each.listed else "-"
        return f"({words})" if each.rehearsal else words

    return " ".join(map(number, trend))


def status_in_words(status: str, rehearsal: bool) -> str:
    """The status of a harvest, with a word about a rehearsal."""
    return f"{status}, rehearsal" if rehearsal else status


def _harvest(row: Row[*tuple[Any, ...]]) -> Harvest:
    known = {name: getattr(row, name) for name in _SHOWN.split()}
    read = row.listed or row.status in READ_A_LIST
    return Harvest(
        **{**known, "listed": row.listed if read else None},
        harvest_date=row.harvest_date,
        failing=failing(row),
        took_seconds=seconds_between(row.started_at, row.ended_at),
    )
