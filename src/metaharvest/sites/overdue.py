"""The watch that the harvester keeps on itself: sites that runs do not bring up to date, mail that does not leave.

Read from the tables for the administrator's report and for `metaharvest doctor`. That no run comes at all is noticed
by the doctor, and by the monitor that `ping.py` calls: nobody else is there to notice it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session, aliased

from metaharvest.database.models import HarvestRun, HarvestSiteRun, ReportDelivery, ReportOutbox
from metaharvest.model import Site, SiteRunKind, SiteRunStatus
from metaharvest.sites.due import due_since
from metaharvest.sites.registry import read_sites_due_before

GRACE = timedelta(days=1)
"""A site may be late by so much: its list was away for a night."""

PATIENCE = timedelta(days=2)
"""Mail may wait for so long: a mail server was away over a night or two."""

_SITES_AT_ONCE = 1000
"""Sites that one statement asks about: it takes only so many parameters."""

_HARVESTED = (SiteRunStatus.SUCCEEDED.value, SiteRunStatus.WITH_ERRORS.value)
_NOT_HARVESTED = (SiteRunStatus.LIST_FAILED.value, SiteRunStatus.FAILED.value, SiteRunStatus.INCOMPLETE.value)


@dataclass(frozen=True, slots=True)
class Overdue:
    """A site that is not harvested since it was due, though runs came; `failures` of them in a row tried."""

    name: str
    since: date
    failures: int

    @property
    def sentence(self) -> str:
        """For people."""
        if not self.failures:
            return f"{self.name} has been due since {self.since}, and no run has harvested it."
        runs = "the last run" if self.failures == 1 else f"the last {self.failures:,} runs"
        return f"{self.name} has been due since {self.since}; {runs} that tried could not harvest it."


@dataclass(frozen=True, slots=True)
class StuckMail:
    """How many deliveries wait too long, and since when the first of them does."""

    deliveries: int
    since: datetime


def overdue_sites(session: Session, today: date) -> list[Overdue]:
    """The sites that are switched on and overdue, those that have waited longest first."""
    limit = today - GRACE
    sites = [site for site in read_sites_due_before(session, limit) if isinstance(site, Site) and site.enabled]
    last_run = session.scalar(select(func.max(HarvestRun.harvest_date)))
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


def stuck_mail(session: Session, now: datetime) -> StuckMail | None:
    """What has waited in the outbox for longer than it should, if anything."""
    query = (
        select(func.count(ReportDelivery.delivery_id), func.min(ReportOutbox.created_at))
        .join(ReportOutbox, ReportOutbox.report_id == ReportDelivery.report_id)
        .where(ReportDelivery.status == "queued", ReportOutbox.created_at < now - PATIENCE)
    )
    number, since = session.execute(query).one()
    return StuckMail(number, since) if number else None


def _first_tried(session: Session, site_ids: Sequence[int]) -> dict[int, date]:
    """The day of the first run that tried each site: it has been due since then, where its row names no day."""
    query = (
        select(HarvestSiteRun.site_schedule_id, func.min(HarvestRun.harvest_date))
        .join(HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id)
        .where(HarvestSiteRun.site_schedule_id.in_(bindparam("sites", expanding=True)))
        .group_by(HarvestSiteRun.site_schedule_id)
    )
    return {row[0]: row[1] for some in _some(site_ids) for row in session.execute(query, {"sites": some})}


def _failures(session: Session, site_ids: Sequence[int]) -> dict[int, int]:
    """How many runs in a row, up to now, could not harvest each site."""
    earlier = aliased(HarvestSiteRun)
    last_harvest = (
        select(func.coalesce(func.max(earlier.site_run_id), 0))
        .where(
            earlier.site_schedule_id == HarvestSiteRun.site_schedule_id,
            earlier.status.in_(_HARVESTED),
            earlier.kind != SiteRunKind.RETRY.value,
        )
        .scalar_subquery()
    )
    query = (
        select(HarvestSiteRun.site_schedule_id, func.count())
        .where(
            HarvestSiteRun.site_schedule_id.in_(bindparam("sites", expanding=True)),
            HarvestSiteRun.status.in_(_NOT_HARVESTED),
            HarvestSiteRun.kind != SiteRunKind.RETRY.value,
            HarvestSiteRun.site_run_id > last_harvest,
        )
        .group_by(HarvestSiteRun.site_schedule_id)
    )
    return {row[0]: row[1] for some in _some(site_ids) for row in session.execute(query, {"sites": some})}


def _some(site_ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(site_ids), _SITES_AT_ONCE):
        yield site_ids[start : start + _SITES_AT_ONCE]
