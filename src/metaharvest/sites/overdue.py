"""Sites that are overdue: they have been due for some time, runs took place, and none harvested them.

For the administrator's report and for `metaharvest doctor`. The doctor, and the monitor that
`metaharvest.monitoring.ping` calls, find out if no run takes place at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import TypeVar

from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.batches import batches
from metaharvest.database.models import IS_HARVEST, IS_REAL, HarvestRun, HarvestSiteRun, HarvestSiteSchedule
from metaharvest.model import HARVESTED, NOT_HARVESTED, Site, SiteRunKind
from metaharvest.model.values import frozen
from metaharvest.sites.due import due_since
from metaharvest.sites.registry import read_sites_due_before

GRACE = timedelta(days=1)
"""A site that is late by at most this number of days is not overdue: its list may have been away for a night."""

_BATCH = 1000
"""Sites for one statement: databases limit the number of parameters."""

_Value = TypeVar("_Value")
_EARLIER = aliased(HarvestSiteRun)


@frozen
class Overdue:
    """A site that has not been harvested since it was due; the last `failures` runs tried and could not."""

    name: str
    since: date
    failures: int

    @property
    def sentence(self) -> str:
        """The same in words, for people."""
        if not self.failures:
            return f"{self.name} has been due since {self.since}, and no run has harvested it."
        runs = "the last run" if self.failures == 1 else f"the last {self.failures:,} runs"
        return f"{self.name} has been due since {self.since}; {runs} that tried could not harvest it."


def overdue_sites(session: Session, today: date) -> list[Overdue]:
    """The enabled sites that are overdue, the one that has waited longest first."""
    limit = today - GRACE
    sites = [site for site in read_sites_due_before(session, limit) if isinstance(site, Site) and site.enabled]
    last_run = session.scalar(select(func.max(HarvestRun.harvest_date)).where(IS_HARVEST))
    if not sites or last_run is None:
        return []
    never = [site.site_id for site in sites if site.next_harvest is None and site.last_harvest is None]
    days = _first_tried(session, never) | {site.site_id: day for site in sites if (day := due_since(site))}
    late = {site_id: day for site_id, day in days.items() if day < limit and day < last_run}
    failures = _failures(session, list(late))
    found = [
        Overdue(site.name, late[site.site_id], failures.get(site.site_id, 0)) for site in sites if site.site_id in late
    ]
    return sorted(found, key=lambda site: (site.since, site.name.casefold()))


def _first_tried(session: Session, site_ids: Sequence[int]) -> dict[int, date]:
    """The day of the first run that tried each site: a site without a date in its row has been due since then."""
    query = (
        select(HarvestSiteRun.site_schedule_id, func.min(HarvestRun.harvest_date))
        .join(HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id)
        .where(HarvestSiteRun.site_schedule_id.in_(bindparam("sites", expanding=True)))
        .group_by(HarvestSiteRun.site_schedule_id)
    )
    return _by_site(session, query, site_ids)


def _failures(session: Session, site_ids: Sequence[int]) -> dict[int, int]:
    """The number of runs in a row, up to the last, that could not harvest each site, by site."""
    site, earlier, later = HarvestSiteSchedule, _EARLIER, HarvestSiteRun
    last_harvest = (
        select(earlier.site_run_id)
        .where(
            earlier.site_schedule_id == site.site_schedule_id,
            earlier.status.in_(HARVESTED),
            earlier.kind != SiteRunKind.RETRY.value,
            earlier.rehearsal.is_(False),
        )
        .order_by(earlier.site_run_id.desc())
        .limit(1)
        .correlate(site)
        .scalar_subquery()
    )
    # For each site by itself: PostgreSQL would join all failed site runs with many sites, and look for the last harvest
    # once for each of these.
    number = (
        select(func.count())
        .where(
            later.site_schedule_id == site.site_schedule_id,
            later.site_run_id > func.coalesce(last_harvest, 0),
            later.status.in_(NOT_HARVESTED),
            later.kind != SiteRunKind.RETRY.value,
            IS_REAL,
        )
        .correlate(site)
        .scalar_subquery()
    )
    query = select(site.site_schedule_id, number)
    return _by_site(session, query.where(site.site_schedule_id.in_(bindparam("sites", expanding=True))), site_ids)


def _by_site(session: Session, query: Select[int, _Value], site_ids: Sequence[int]) -> dict[int, _Value]:
    """The second column of `query` for these sites, by its first."""
    return {row[0]: row[1] for batch in batches(site_ids, _BATCH) for row in session.execute(query, {"sites": batch})}
