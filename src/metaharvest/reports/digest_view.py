"""The content of the administrators' digest: an overview of each site's weeks, and long-failing documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from sqlalchemy import and_, case, func, select
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings
from metaharvest.database.models import IS_FULL, IS_REAL, HarvestRun, HarvestSiteRun, HarvestSiteSchedule
from metaharvest.model import NOT_HARVESTED
from metaharvest.model.values import frozen
from metaharvest.reports.phrasing import Total, View
from metaharvest.reports.problem_history import FailingSite, failing_sites
from metaharvest.text import counted, one_line

WEEKS = 8
_ERRORS = HarvestSiteRun.access_error + HarvestSiteRun.invalid + HarvestSiteRun.upload_error
_BARS = "▁▂▃▄▅▆▇█"


@frozen
class Week:
    """A site's week: harvests, documents that went in, documents that failed in the worst harvest of the week.

    `broken` harvests failed as a whole. Tries of single documents are no harvests. `height` is the bar for documents
    that went in, 0 to 100 of the site's best week.
    """

    begins: str
    harvests: int
    broken: int
    went_in: int
    failed: int
    height: int


@frozen
class SiteTrend:
    """A site's weeks, the oldest first.

    `bars` draws the documents that went in, as text; a × is a week without any, in which a harvest failed as a whole.
    """

    name: str
    weeks: tuple[Week, ...]
    bars: str

    @property
    def last(self) -> Week:
        """The week that ends with the day of the digest."""
        return self.weeks[-1]


@frozen(kw_only=True)
class DigestView(View):
    """The content of the digest."""

    sites: tuple[SiteTrend, ...]
    failing: tuple[FailingSite, ...]
    more_failing: int


def digest_view(session: Session, today: date, settings: Settings) -> DigestView:
    """Read the digest of the weeks that end with `today`; it leaves out sites that are switched off."""
    begin = today - timedelta(weeks=WEEKS) + timedelta(days=1)
    site = HarvestSiteSchedule
    names = {row[0]: row[1] for row in session.execute(select(site.site_schedule_id, site.name).where(site.enabled))}
    query = (
        select(
            HarvestSiteRun.site_schedule_id,
            HarvestRun.harvest_date,
            func.sum(case((IS_FULL, 1), else_=0)),
            func.sum(case((and_(IS_FULL, HarvestSiteRun.status.in_(NOT_HARVESTED)), 1), else_=0)),
            func.sum(HarvestSiteRun.inserted + HarvestSiteRun.updated),
            func.max(case((IS_FULL, _ERRORS), else_=0)),
        )
        .join(HarvestRun, HarvestRun.run_id == HarvestSiteRun.run_id)
        .where(HarvestRun.harvest_date >= begin, HarvestRun.harvest_date <= today, IS_REAL)
        .group_by(HarvestSiteRun.site_schedule_id, HarvestRun.harvest_date)
    )
    days = defaultdict[tuple[int, int], list[_Day]](list)
    for site_id, day, *numbers in session.execute(query):
        days[site_id, (day - begin).days // 7].append(_Day(*(int(each or 0) for each in numbers)))
    sites = [
        _trend(one_line(name), begin, [days[site_id, number] for number in range(WEEKS)])
        for site_id, name in names.items()
    ]
    limit = settings.reports.lines_per_group
    failing, more = failing_sites(session, today, limit, also_new=True)
    last = [each.last for each in sites]
    went_in, harvests, broken = (
        sum(getattr(week, name) for week in last) for name in ("went_in", "harvests", "broken")
    )
    silent = sum(not week.harvests for week in last)
    number = len(failing) + more
    return DigestView(
        network=one_line(settings.harvester.name),
        date=today.isoformat(),
        story=f"the week: {went_in:,} new or updated, {counted(number, 'site')} failing" if sites else "no site yet",
        tone="doubtful" if failing else "good",
        sentence=f"{counted(len(sites), 'site')} had {counted(harvests, 'harvest')} in the last seven days"
        + (f"; {broken:,} of them failed" if broken else "")
        + (f"; {counted(silent, 'site')} had none." if silent else "."),
        totals=(Total("new or updated", went_in, "good" if went_in else "plain"), Total("failing", number, "plain")),
        sites=tuple(sorted(sites, key=lambda each: (-each.last.broken, -each.last.failed, each.name.casefold()))),
        failing=failing,
        more_failing=more,
        recipients=settings.harvester.administrators,
    )


class _Day(NamedTuple):
    """The numbers of a site on one day, as Week has them."""

    harvests: int
    broken: int
    went_in: int
    failed: int


def _trend(name: str, begin: date, days_of_weeks: Sequence[Sequence[_Day]]) -> SiteTrend:
    """The trend of a site, from its days with a harvest, week by week."""
    best = max(sum(day.went_in for day in days) for days in days_of_weeks)
    weeks = []
    for number, days in enumerate(days_of_weeks):
        went_in = sum(day.went_in for day in days)
        weeks.append(
            Week(
                (begin + timedelta(weeks=number)).isoformat(),
                sum(day.harvests for day in days),
                sum(day.broken for day in days),
                went_in,
                max((day.failed for day in days), default=0),
                round(100 * went_in / best) if best else 0,
            )
        )
    return SiteTrend(name, tuple(weeks), "".join(map(_bar, weeks)))


def _bar(week: Week) -> str:
    nothing = "×" if week.broken else "·"
    return _BARS[min(week.height * len(_BARS) // 100, len(_BARS) - 1)] if week.went_in else nothing
