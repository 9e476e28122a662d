"""Sites whose last harvest failed as a whole: since when, in how many nights, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date

from sqlalchemy import ScalarSelect, func, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.batches import batches
from metaharvest.database.models import IS_REAL, HarvestRun, HarvestSiteRun, HarvestSiteSchedule
from metaharvest.ledger.entries import nights
from metaharvest.model import HARVESTED, NOT_HARVESTED, SiteRunKind, SiteRunStatus
from metaharvest.sites.registry import read_sites
from metaharvest.text import counted

_EARLIER, _GOOD = aliased(HarvestSiteRun), aliased(HarvestSiteRun)


@dataclass(frozen=True, slots=True)
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


def failed_sites(session: Session, today: date, site_ids: Iterable[int]) -> dict[int, FailedSite]:
    """The registered sites with these ids whose last harvest failed as a whole, by their ids."""
    row, site = HarvestSiteRun, HarvestSiteSchedule
    is_harvest = (IS_REAL, row.kind != SiteRunKind.RETRY.value, row.status != SiteRunStatus.RUNNING.value)
    of_site = select(row.site_run_id).where(row.site_schedule_id == site.site_schedule_id, *is_harvest)
    last = of_site.order_by(row.site_run_id.desc()).limit(1).correlate(site).scalar_subquery()
    found: dict[int, FailedSite] = {}
    for some in batches(list(site_ids)):
        numbers = session.scalars(select(last).where(site.site_schedule_id.in_(some)))
        found |= {each.site_id: each for each in _failed(session, numbers, today)}
    return found


def named_failed_sites(session: Session, today: date, name: str | None = None) -> list[FailedSite]:
    """The enabled sites, or the site of this name, whose last harvest failed as a whole, each with its present name."""
    sites = [site for site in read_sites(session) if site.enabled and (not name or site.name == name)]
    names = {site.site_id: site.name for site in sites}
    return [replace(each, site=names[each.site_id]) for each in failed_sites(session, today, names).values()]


def failed_site_runs(session: Session, site_run_ids: Iterable[int], today: date) -> Mapping[int, FailedSite]:
    """The given site runs that failed as a whole, by their ids."""
    return {each.site_run_id: each for some in batches(list(site_run_ids)) for each in _failed(session, some, today)}


def _failed(session: Session, site_run_ids: Iterable[int], today: date) -> Iterator[FailedSite]:
    row = HarvestSiteRun
    query = select(
        row.site_name, row.site_schedule_id, row.site_run_id, row.status, row.failure_reason, _since()
    ).where(row.site_run_id.in_(list(site_run_ids)), row.status.in_(NOT_HARVESTED))
    for site, site_id, site_run_id, status, reason, since in session.execute(query):
        first = since or today
        yield FailedSite(site, site_id, site_run_id, status, reason or "", first, nights(first, max(today, first)))


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
