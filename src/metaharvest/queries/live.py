"""The run under way, with live numbers by site; and the next run, with its sites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from statistics import median
from zoneinfo import ZoneInfo

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import IS_FULL, IS_REAL, HarvestRun, HarvestSiteRun, SiteProgress
from metaharvest.database.statements import rows_with
from metaharvest.model import HARVESTED, RunStatus, Site
from metaharvest.model.mappings import record_of
from metaharvest.model.requests import LivePhase, RequestKind, RequestState
from metaharvest.model.values import frozen
from metaharvest.queries.records import columns
from metaharvest.queries.requests import daemon, open_requests
from metaharvest.queries.trends import newest_site_runs
from metaharvest.sites.due import is_due
from metaharvest.sites.registry import read_sites
from metaharvest.text import counted

_SILENT_AFTER = timedelta(minutes=2)
_RUNS_COMPARED = 5
_HARVESTED_RUNS = (RunStatus.SUCCEEDED.value, RunStatus.WITH_ERRORS.value)
_ORDER = (
    LivePhase.CLOSING, LivePhase.STORING, LivePhase.CHECKING, LivePhase.FETCHING, LivePhase.LISTING, LivePhase.WAITING,
    LivePhase.ENDED,
)  # fmt: skip


@frozen(kw_only=True)
class LiveSite:
    """A site in the run under way: its phase, the numbers of documents listed, done, and failed.

    `seconds` since it began. `seconds_left` is an estimate: from the rate, or from the seconds of its last harvest;
    None if nothing is known, or if it takes longer than its last harvest. `stops`: a person has stopped it.
    """

    site_id: int
    site: str
    phase: str
    listed: int
    done: int
    errors: int
    began_at: datetime | None
    seconds: float
    documents_per_second: float | None
    seconds_left: float | None
    stops: bool = False

    @property
    def so_far(self) -> str:
        """The number of documents done, in words."""
        return _so_far(self.done, self.listed)


@frozen(kw_only=True)
class LiveRun:
    """The run under way. `is_silent`: it has not written for 2 minutes; its process may have ended.

    `seconds_left` is an estimate from the last runs. `sites` that are under way come first, then waiting ones, then
    ended ones; there is none in the first seconds of a run. `stops`: it finishes the work under way, and ends.
    """

    run_id: int
    harvest_date: date
    started_at: datetime
    heartbeat_at: datetime
    host: str
    pid: int
    seconds: float
    is_silent: bool
    stops: bool
    sites: tuple[LiveSite, ...]
    listed: int
    done: int
    errors: int
    documents_per_second: float | None
    seconds_left: float | None

    @property
    def so_far(self) -> str:
        """The number of documents done, in words."""
        return _so_far(self.done, self.listed)

    def under_way(self, site_id: int) -> LiveSite | None:
        """The site, if its harvest has begun and has not ended; otherwise None."""
        idle = (LivePhase.WAITING, LivePhase.ENDED)
        return next((each for each in self.sites if each.site_id == site_id and each.phase not in idle), None)

    def number(self, *phases: LivePhase) -> int:
        """The number of sites in these phases."""
        return sum(site.phase in phases for site in self.sites)


@frozen(kw_only=True)
class UpcomingRun:
    """The next run of the due sites: its moment and time zone, if the daemon is there; otherwise None.

    `sites` are the due sites, `left_out` the sites that a person left out, `requested` the sites that a
    person asked for.
    """

    at: datetime | None
    zone: str | None
    sites: tuple[str, ...]
    left_out: tuple[str, ...]
    requested: tuple[str, ...]

    @property
    def when(self) -> str:
        """The moment, in words."""
        return "at the next run" if self.at is None else f"at {self.at:%Y-%m-%d %H:%M} {self.zone}"


def running_run_id(session: Session) -> int | None:
    """The number of the run under way; None if there is none."""
    running = HarvestRun.status == RunStatus.RUNNING.value
    return session.scalar(select(func.max(HarvestRun.run_id)).where(running))


def writing_run_id(session: Session, now: datetime) -> int | None:
    """The number of the run under way; None if there is none, or if its process may have ended."""
    run_id = running_run_id(session)
    run = None if run_id is None else session.get(HarvestRun, run_id)
    return None if run is None or now - run.heartbeat_at > _SILENT_AFTER else run.run_id


def live_run(session: Session, now: datetime) -> LiveRun | None:
    """The run under way; None if there is none."""
    run_id = running_run_id(session)
    run = None if run_id is None else session.get(HarvestRun, run_id)
    if run is None:
        return None
    rows = session.scalars(select(SiteProgress).where(SiteProgress.run_id == run.run_id)).all()
    stopping = (each for each in open_requests(session) if each.kind == RequestKind.STOP)
    stops = {each.site_id for each in stopping if each.run_id == run.run_id}
    last = last_seconds(session, [row.site_schedule_id for row in rows])
    sites = sorted(
        (_live_site(row, last, row.site_schedule_id in stops, now) for row in rows),
        key=lambda site: (_ORDER.index(LivePhase(site.phase)), site.site.lower()),
    )
    seconds = _since(run.started_at, now)
    done = sum(site.done for site in sites)
    return record_of(
        LiveRun,
        run,
        seconds=seconds,
        is_silent=now - run.heartbeat_at > _SILENT_AFTER,
        stops=None in stops,
        sites=tuple(sites),
        listed=sum(site.listed for site in sites),
        done=done,
        errors=sum(site.errors for site in sites),
        documents_per_second=_rate(done, seconds),
        seconds_left=_left_of_run(session, sites, seconds),
    )


def upcoming_run(session: Session, now: datetime, today: date) -> UpcomingRun:
    """The next run, as far as it is known."""
    waiting = [each for each in open_requests(session) if each.state == RequestState.WAITING]
    skipped = {each.site_id for each in waiting if each.kind == RequestKind.SKIP}
    asked = {each.site_id for each in waiting if each.kind == RequestKind.HARVEST}
    there = daemon(session, now)
    at = there.next_run_at.astimezone(ZoneInfo(there.zone)) if there and there.next_run_at else None
    day = today if at is None else max(today, at.date())
    known = [site for site in read_sites(session) if site.enabled]
    due = [site for site in known if not isinstance(site, Site) or is_due(site, day)]
    return UpcomingRun(
        at=at,
        zone=there.zone if there else None,
        sites=tuple(site.name for site in due if site.site_id not in skipped),
        left_out=tuple(site.name for site in known if site.site_id in skipped),
        requested=tuple(site.name for site in known if site.site_id in asked),
    )


def last_seconds(session: Session, site_ids: Sequence[int]) -> dict[int, float]:
    """The seconds of the last harvest of each of these sites that came to its end; retries do not count."""
    newest = newest_site_runs(session, site_ids, HarvestSiteRun.status.in_(HARVESTED), IS_FULL, IS_REAL)
    query = select(*columns(HarvestSiteRun, "site_schedule_id started_at ended_at"))
    rows = rows_with(session, query, HarvestSiteRun.site_run_id, newest.values())
    return {site_id: _since(began, ended) for site_id, began, ended in rows if ended is not None}


def _live_site(row: SiteProgress, last: Mapping[int, float], stops: bool, now: datetime) -> LiveSite:
    seconds = _since(row.began_at, now) if row.began_at else 0.0
    rate = _rate(row.done, seconds)
    left: float | None = None
    if row.phase == LivePhase.ENDED.value:
        rate, left = None, 0.0
    elif rate and row.listed > row.done:
        left = (row.listed - row.done) / rate
    elif row.site_schedule_id in last:
        left = _later(last[row.site_schedule_id] - seconds)
    return record_of(
        LiveSite,
        row,
        site_id=row.site_schedule_id,
        site=row.site_name,
        seconds=seconds,
        documents_per_second=rate,
        seconds_left=left,
        stops=stops,
    )


def _left_of_run(session: Session, sites: Sequence[LiveSite], seconds: float) -> float | None:
    """The seconds that the run still takes: from its slowest site, or from the last runs.

    None if the last runs were shorter, and nothing is known about one of its sites.
    """
    ended = (HarvestRun.ended_at.is_not(None), HarvestRun.status.in_(_HARVESTED_RUNS))
    last = select(HarvestRun.started_at, HarvestRun.ended_at).where(*ended).order_by(HarvestRun.run_id.desc())
    took = [_since(began, end) for began, end in session.execute(last.limit(_RUNS_COMPARED)) if end is not None]
    known = [site.seconds_left for site in sites if site.seconds_left is not None]
    if took and (left := _later(median(took) - seconds)) is not None:
        return max([left, *known])
    return _later(max(known, default=0.0)) if len(known) == len(sites) else None


def _so_far(done: int, listed: int) -> str:
    return f"{done:,} of {counted(listed, 'document')}" if listed else "no document is listed yet"


def _later(seconds: float) -> float | None:
    """An estimate; None if its moment is over."""
    return seconds if seconds > 0 else None


def _rate(done: int, seconds: float) -> float | None:
    return round(done / seconds, 3) if done and seconds >= 1 else None


def _since(began: datetime, now: datetime) -> float:
    return max(0.0, (now - began).total_seconds())
