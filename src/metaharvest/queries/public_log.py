"""The public harvest log: the state of each site that is not hidden, without reasons and names of people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from metaharvest.catalogue.selection import Hidden
from metaharvest.database.batches import batches
from metaharvest.database.models import IS_REAL, CatalogueDocument, HarvestRun, HarvestSiteRun, HarvestSiteSchedule
from metaharvest.model import HARVESTED, NOT_HARVESTED, SiteRunKind
from metaharvest.queries.public_sites import public_sites
from metaharvest.queries.trends import harvested_sites


class Standing(StrEnum):
    """How a site stands, in words."""

    WELL = "well"
    FAILING = "failing"
    NEW = "not harvested yet"
    OFF = "switched off"


@dataclass(frozen=True, slots=True)
class PublicStatus:
    """How a site stands `since` the first of its harvests in a row that ended like the last one.

    `last_harvest` is the day of the last harvest that did not fail as a whole. `documents` is the number of its
    documents in the catalogue. `since` goes back as far as the log does.
    """

    site: str
    standing: Standing
    since: date | None
    last_harvest: date | None
    documents: int


def public_log(session: Session, hidden: Hidden, numbers: Mapping[int, int] | None = None) -> Sequence[PublicStatus]:
    """The sites in the order of their names, without those that are hidden or whose origin is.

    `numbers` are the numbers of documents from `documents_by_site`; None: they are counted.
    """
    ends = _ends(session)
    if numbers is None:
        numbers = documents_by_site(session)
    found = []
    for site in public_sites(session, hidden):
        end = ends.get(site.site_id)
        standing = Standing.NEW if end is None else Standing.WELL if end.is_good else Standing.FAILING
        found.append(
            PublicStatus(
                site.name,
                standing if site.enabled else Standing.OFF,
                end.since if end is not None and site.enabled else None,
                end.last_good if end is not None else None,
                numbers.get(site.site_id, 0),
            )
        )
    return found


def documents_by_site(session: Session) -> Mapping[int, int]:
    """By site, the number of its documents in the catalogue. This query takes most of the time of the page."""
    site = CatalogueDocument.site_schedule_id
    query = select(site, func.count()).where(CatalogueDocument.deleted.is_(False), site.is_not(None)).group_by(site)
    return {each[0]: each[1] for each in session.execute(query) if each[0] is not None}


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a site's log: its last harvests in a row that ended alike."""

    is_good: bool
    since: date
    last_good: date | None


def _ends(session: Session) -> Mapping[int, _End]:
    """By site, the end of its log: since the first harvest after the last one that ended in the other way."""
    good, bad = _newest(session)
    registered = set(session.scalars(select(HarvestSiteSchedule.site_schedule_id)))
    harvested = registered & (good.keys() | bad.keys())
    last = {site: max(good.get(site, 0), bad.get(site, 0)) for site in harvested}
    before = {site: min(good.get(site, 0), bad.get(site, 0)) for site in last}
    first = _first_after(session, [number for number in before.values() if number])
    first |= _first(session, [site for site, number in before.items() if not number])
    days = _days(session, [*first.values(), *good.values()])
    return {
        site: _End(number == good.get(site), days[first[site]], days[good[site]] if site in good else None)
        for site, number in last.items()
    }


_BEFORE = aliased(HarvestSiteRun)
_IS_HARVEST = (IS_REAL, HarvestSiteRun.kind != SiteRunKind.RETRY.value)
_IS_ENDED_HARVEST = (
    *_IS_HARVEST,
    HarvestSiteRun.status.in_([*HARVESTED, *NOT_HARVESTED]),
)


def _newest(session: Session) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """By site, its newest harvest that ended well, and its newest one that failed as a whole.

    Each status of a site is one look into an index.
    """
    row, sites = HarvestSiteRun, harvested_sites(session)
    # A list of statuses beside the one would lead SQLite past the index.
    its_own = select(row.site_run_id).where(row.site_schedule_id == sites.c.value, *_IS_HARVEST)
    newest_first = its_own.order_by(row.site_run_id.desc()).limit(1).correlate(sites)
    statuses = (*HARVESTED, *NOT_HARVESTED)
    of_each = (newest_first.where(row.status == status).scalar_subquery() for status in statuses)
    found: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for site, *numbers in session.execute(select(sites.c.value, *of_each)):
        for of_kind, some in zip(found, (numbers[: len(HARVESTED)], numbers[len(HARVESTED) :]), strict=True):
            if known := [number for number in some if number is not None]:
                of_kind[site] = max(known)
    return found


def _first_after(session: Session, site_run_ids: Sequence[int]) -> dict[int, int]:
    """By site, the first harvest after the one among these site runs."""
    row, before = HarvestSiteRun, _BEFORE
    following = select(row.site_run_id).where(
        row.site_schedule_id == before.site_schedule_id, row.site_run_id > before.site_run_id, *_IS_ENDED_HARVEST
    )
    first = following.order_by(row.site_run_id).limit(1).correlate(before).scalar_subquery()
    query = select(before.site_schedule_id, first)
    return {
        site: number
        for some in batches(site_run_ids)
        for site, number in session.execute(query.where(before.site_run_id.in_(some)))
        if number is not None
    }


def _first(session: Session, site_ids: Sequence[int]) -> dict[int, int]:
    """By site, the first harvest of all."""
    row, site = HarvestSiteRun, HarvestSiteSchedule.site_schedule_id
    own = select(row.site_run_id).where(row.site_schedule_id == site, *_IS_ENDED_HARVEST)
    first = own.order_by(row.site_run_id).limit(1).correlate(HarvestSiteSchedule).scalar_subquery()
    return {
        each: number
        for some in batches(site_ids)
        for each, number in session.execute(select(site, first).where(site.in_(some)))
        if number is not None
    }


def _days(session: Session, site_run_ids: Sequence[int]) -> Mapping[int, date]:
    """The days of these site runs, by their numbers."""
    query = select(HarvestSiteRun.site_run_id, HarvestRun.harvest_date)
    query = query.join(HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id)
    return {
        number: day
        for some in batches(site_run_ids)
        for number, day in session.execute(query.where(HarvestSiteRun.site_run_id.in_(some)))
    }
