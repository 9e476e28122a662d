"""A site's last harvests in order, with status, failed documents and duration; the sites that failed as a whole."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Row, ScalarSelect, and_, func, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import IS_FULL, IS_REAL, Base, HarvestRun, HarvestSiteRun
from metaharvest.database.statements import distinct_values, rows_with
from metaharvest.ledger.entries import nights
from metaharvest.model import HARVESTED, NOT_HARVESTED, SiteRunKind, SiteRunStatus
from metaharvest.model.mappings import record_of
from metaharvest.model.values import frozen
from metaharvest.queries.records import columns, failing
from metaharvest.sites.registry import read_sites
from metaharvest.text import counted

HARVESTS = 5
"""The number that is shown if there is little room."""

READ_A_LIST = (SiteRunStatus.SUCCEEDED.value, SiteRunStatus.WITH_ERRORS.value, SiteRunStatus.INCOMPLETE.value)

_SHOWN = "site_run_id run_id rehearsal status listed inserted updated unchanged warnings"

_QUERY = select(
    *columns(HarvestSiteRun, f"{_SHOWN} started_at ended_at"),
    HarvestRun.harvest_date,
    failing(HarvestSiteRun).label("failing"),
).join(HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id)
_THIS, _EARLIER, _GOOD = aliased(HarvestSiteRun), aliased(HarvestSiteRun), aliased(HarvestSiteRun)
_SITE_RUNS = Base.metadata.tables[HarvestSiteRun.__tablename__]


@frozen(kw_only=True)
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


@frozen(kw_only=True)
class SiteHarvest(Harvest):
    """A harvest in the list of a site. `is_retry`: of the failing documents only."""

    is_retry: bool


def harvests(session: Session, site_id: int, limit: int = HARVESTS, after: int | None = None) -> list[SiteHarvest]:
    """The last harvests of a site, the newest first, with rehearsals and retries.

    `after`: the site run before which the next page begins.
    """
    query = _QUERY.add_columns(HarvestSiteRun.kind).where(HarvestSiteRun.site_schedule_id == site_id)
    if after is not None:
        query = query.where(HarvestSiteRun.site_run_id < after)
    rows = session.execute(query.order_by(HarvestSiteRun.site_run_id.desc()).limit(limit))
    return [record_of(SiteHarvest, row, **_derived(row), is_retry=row.kind == SiteRunKind.RETRY.value) for row in rows]


def trends(session: Session, site_run_ids: Sequence[int], number: int = HARVESTS) -> dict[int, tuple[Harvest, ...]]:
    """By site run, the last harvests of its site up to this one, the oldest first. One query for 500 site runs."""
    this, earlier, full = _THIS, _EARLIER, HarvestSiteRun
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
    query = _QUERY.add_columns(this.site_run_id.label("this")).join(this, its_last).where(IS_FULL)
    found: dict[int, list[Harvest]] = {each: [] for each in site_run_ids}
    for row in rows_with(session, query.order_by(full.site_run_id), this.site_run_id, site_run_ids):
        found[row.this].append(_harvest(row))
    return {each: tuple(of_one) for each, of_one in found.items()}


def harvested_sites(session: Session) -> FromClause:
    """The numbers of all sites with a site run, as a table with the column `value`."""
    return distinct_values(session, _SITE_RUNS.c.site_schedule_id).subquery("harvested")


def newest_site_runs(
    session: Session, site_ids: Collection[int] | None = None, *conditions: ColumnElement[bool]
) -> dict[int, int]:
    """By site, the number of its newest site run for which the conditions are true, of these sites or of all."""
    row, sites = HarvestSiteRun, harvested_sites(session)
    its_own = select(row.site_run_id).where(row.site_schedule_id == sites.c.value, *conditions)
    newest = its_own.order_by(row.site_run_id.desc()).limit(1).correlate(sites).scalar_subquery()
    query = select(sites.c.value, newest)
    rows = session.execute(query) if site_ids is None else rows_with(session, query, sites.c.value, site_ids)
    return {site_id: number for site_id, number in rows if number is not None}


def last_real_harvests(session: Session, site_ids: Sequence[int]) -> dict[int, Harvest]:
    """By site, its last harvest that was no rehearsal."""
    newest = newest_site_runs(session, site_ids, IS_FULL, IS_REAL)
    query = _QUERY.add_columns(HarvestSiteRun.site_schedule_id)
    rows = rows_with(session, query, HarvestSiteRun.site_run_id, newest.values())
    return {row.site_schedule_id: _harvest(row) for row in rows}


def harvests_of(session: Session, site_run_ids: Collection[int]) -> dict[int, Harvest]:
    """These site runs, each as one of `harvests`, by their numbers."""
    rows = rows_with(session, _QUERY, HarvestSiteRun.site_run_id, sorted(site_run_ids))
    return {row.site_run_id: _harvest(row) for row in rows}


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
    return record_of(Harvest, row, **_derived(row))


def _derived(row: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    """The values of a Harvest that are no columns of _QUERY as they are."""
    listed = row.listed if row.listed or row.status in READ_A_LIST else None
    return {"listed": listed, "took_seconds": seconds_between(row.started_at, row.ended_at)}


@frozen
class FailedSite:
    """A site run that failed as a whole: its status and reason, and the day since which the site has failed."""

    site: str
    site_id: int
    site_run_id: int
    status: str
    failure_reason: str
    failed_since: date
    failed_nights: int

    @property
    def sentence(self) -> str:
        """The status, its first day, and the reason, in words."""
        nights = counted(self.failed_nights, "night")
        return f"{self.status} since {self.failed_since} ({nights}): {self.failure_reason or 'no reason was noted'}"


def failed_sites(session: Session, today: date, site_ids: Collection[int]) -> dict[int, FailedSite]:
    """The registered sites with these ids whose last harvest failed as a whole, by their ids."""
    is_ended = HarvestSiteRun.status != SiteRunStatus.RUNNING.value
    last = newest_site_runs(session, site_ids, IS_REAL, IS_FULL, is_ended)
    return {each.site_id: each for each in failed_site_runs(session, last.values(), today).values()}


def named_failed_sites(session: Session, today: date, name: str | None = None) -> list[FailedSite]:
    """The enabled sites, or the site of this name, whose last harvest failed as a whole, each with its present name."""
    sites = [site for site in read_sites(session) if site.enabled and (not name or site.name == name)]
    names = {site.site_id: site.name for site in sites}
    return [replace(each, site=names[each.site_id]) for each in failed_sites(session, today, names).values()]


def failed_site_runs(session: Session, site_run_ids: Iterable[int], today: date) -> Mapping[int, FailedSite]:
    """The given site runs that failed as a whole, by their ids."""
    names = "site_name site_schedule_id site_run_id status failure_reason"
    query = select(*columns(HarvestSiteRun, names), _since()).where(HarvestSiteRun.status.in_(NOT_HARVESTED))
    found: dict[int, FailedSite] = {}
    for site, site_id, site_run_id, status, reason, since in rows_with(
        session, query, HarvestSiteRun.site_run_id, site_run_ids
    ):
        first = since or today
        number = nights(first, max(today, first))
        found[site_run_id] = FailedSite(site, site_id, site_run_id, status, reason or "", first, number)
    return found


def _since() -> ScalarSelect[date]:
    """The day since which a site has failed: of its first failed site run after the last harvest that succeeded."""
    row, earlier, good = HarvestSiteRun, _EARLIER, _GOOD
    last_harvest = (
        select(good.site_run_id)
        .where(
            good.site_schedule_id == row.site_schedule_id,
            good.site_run_id < row.site_run_id,
            good.kind != SiteRunKind.RETRY.value,
            good.rehearsal.is_(False),
            good.status.in_(HARVESTED),
        )
        .order_by(good.site_run_id.desc())
        .limit(1)
        .correlate(row)
        .scalar_subquery()
    )
    return (
        select(func.min(HarvestRun.harvest_date))
        .join(earlier, earlier.run_id == HarvestRun.run_id)
        .where(
            earlier.site_schedule_id == row.site_schedule_id,
            earlier.site_run_id <= row.site_run_id,
            earlier.site_run_id > func.coalesce(last_harvest, 0),
            earlier.kind != SiteRunKind.RETRY.value,
            earlier.rehearsal.is_(False),
            earlier.status.in_(NOT_HARVESTED),
        )
        .correlate(row)
        .scalar_subquery()
    )
