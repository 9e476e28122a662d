"""What the administrators' digest says: each site's weeks at a glance, and what has been failing for how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.models import HarvestRun, HarvestSiteRun, HarvestSiteSchedule
from metaharvest.reports.over_nights import FailingSite, failing_sites
from metaharvest.reports.site_view import NO_TABLE, TableNote
from metaharvest.reports.words import Total, counted
from metaharvest.text import one_line

WEEKS = 8
_BAD = (HarvestSiteRun.access_error, HarvestSiteRun.invalid, HarvestSiteRun.upload_error)
_BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class Week:
    """A site's week: harvests, documents that went in, documents that failed in the worst harvest of the week.

    `height` is the bar for what went in, 0 to 100 of the site's best week.
    """

    begins: str
    harvests: int
    went_in: int
    failed: int
    height: int


@dataclass(frozen=True, slots=True)
class SiteTrend:
    """A site's weeks, the oldest first; `bars` draws what went in, as text."""

    name: str
    weeks: tuple[Week, ...]
    bars: str

    @property
    def last(self) -> Week:
        """The week that ends with the day of the digest."""
        return self.weeks[-1]


@dataclass(frozen=True, slots=True)
class DigestView:
    """The content of the digest."""

    network: str
    date: str
    story: str
    tone: str
    sentence: str
    totals: tuple[Total, ...]
    sites: tuple[SiteTrend, ...]
    failing: tuple[FailingSite, ...]
    more_failing: int
    recipients: tuple[str, ...]
    table: TableNote = NO_TABLE


def digest_view(session: Session, today: date, settings: Settings) -> DigestView:
    """Read the digest of the weeks that end with `today`."""
    begin = today - timedelta(weeks=WEEKS) + timedelta(days=1)
    rows = session.execute(select(HarvestSiteSchedule.site_schedule_id, HarvestSiteSchedule.name))
    names = {row[0]: row[1] for row in rows}
    failed = sum((func.max(column) for column in _BAD[1:]), func.max(_BAD[0]))
    query = (
        select(
            HarvestSiteRun.site_schedule_id,
            HarvestRun.harvest_date,
            func.count(),
            func.sum(HarvestSiteRun.inserted + HarvestSiteRun.updated),
            failed,
        )
        .join(HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id)
        .where(HarvestRun.harvest_date >= begin, HarvestRun.harvest_date <= today)
        .group_by(HarvestSiteRun.site_schedule_id, HarvestRun.harvest_date)
    )
    weeks: dict[int, list[tuple[int, int, int]]] = {site_id: [(0, 0, 0)] * WEEKS for site_id in names}
    for site_id, day, harvests, went_in, bad in session.execute(query):
        if site_id in weeks:
            number = (day - begin).days // 7
            before = weeks[site_id][number]
            weeks[site_id][number] = (
                before[0] + harvests,
                before[1] + int(went_in or 0),
                max(before[2], int(bad or 0)),
            )
    sites = [_trend(one_line(names[site_id]), begin, rows) for site_id, rows in weeks.items()]
    limit = settings.reports.lines_per_group
    failing, more = failing_sites(session, today + timedelta(days=1), limit)
    went_in, harvests = (sum(getattr(site.last, name) for site in sites) for name in ("went_in", "harvests"))
    silent = sum(not site.last.harvests for site in sites)
    number = len(failing) + more
    return DigestView(
        network=one_line(settings.harvester.name),
        date=today.isoformat(),
        story=f"the week: {went_in:,} new or updated, {counted(number, 'site')} failing" if sites else "no site yet",
        tone="doubtful" if failing else "good",
        sentence=f"{counted(len(sites), 'site')} had {counted(harvests, 'harvest')} in the last seven days"
        + (f"; {counted(silent, 'site')} had none." if silent else "."),
        totals=(Total("new or updated", went_in, "good" if went_in else "plain"), Total("failing", number, "plain")),
        sites=tuple(sorted(sites, key=lambda site: (-site.last.failed, site.name.casefold()))),
        failing=failing,
        more_failing=more,
        recipients=settings.harvester.administrators,
    )


def _trend(name: str, begin: date, rows: Sequence[tuple[int, int, int]]) -> SiteTrend:
    best = max(went_in for _, went_in, _ in rows)
    weeks = []
    for number, (harvests, went_in, failed) in enumerate(rows):
        height = round(100 * went_in / best) if best else 0
        weeks.append(Week((begin + timedelta(weeks=number)).isoformat(), harvests, went_in, failed, height))
    return SiteTrend(name, tuple(weeks), "".join(map(_bar, weeks)))


def _bar(week: Week) -> str:
    return _BARS[min(week.height * len(_BARS) // 100, len(_BARS) - 1)] if week.went_in else "·"
