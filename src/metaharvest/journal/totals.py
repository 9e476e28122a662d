"""Site runs as rows: their totals, counted from the log, and the statuses that follow; what dead runs left."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import Base, HarvestDetailLog, HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.model import OutcomeKind, RunStatus, SiteRunKind, SiteRunStatus


@dataclass(frozen=True, slots=True)
class Totals:
    """What the log says of a site run: its documents by outcome, and its warnings."""

    outcomes: Mapping[OutcomeKind, int]
    warnings: int

    def columns(self, listed: int) -> dict[str, object]:
        """The columns of harvest_site_run that say so."""
        counts = {kind.column: self.outcomes.get(kind, 0) for kind in OutcomeKind}
        return {"listed": listed, "warnings": self.warnings, **counts}

    def status(self, listed: int) -> SiteRunStatus:
        """The status of a site run with these totals.

        Every listed document has exactly one outcome, or the site run is incomplete. Documents that were put off need
        attention as errors do: nobody should read that all is well.
        """
        if sum(self.outcomes.values()) != listed:
            return SiteRunStatus.INCOMPLETE
        if any(self.outcomes.get(kind) for kind in OutcomeKind if kind.is_error or kind is OutcomeKind.DEFERRED):
            return SiteRunStatus.WITH_ERRORS
        return SiteRunStatus.SUCCEEDED


def count(session: Session, unchanged: Mapping[int, int]) -> dict[int, Totals]:
    """The totals of site runs, by number, counted from the log; `unchanged` documents have no rows there."""
    site_runs = {"site_runs": list(unchanged)}
    outcomes: dict[int, dict[OutcomeKind, int]] = {site_run_id: {} for site_run_id in unchanged}
    for site_run_id, outcome, number in session.execute(_OUTCOMES, site_runs):
        outcomes[site_run_id][OutcomeKind(outcome)] = number
    warnings = {row[0]: row[1] for row in session.execute(_WARNINGS, site_runs)}
    return {
        site_run_id: Totals({**outcomes[site_run_id], OutcomeKind.UNCHANGED: number}, warnings.get(site_run_id, 0))
        for site_run_id, number in unchanged.items()
    }


def run_status(session: Session, run_id: int, is_whole: bool) -> RunStatus:
    """The status of a run: failed where no site could be harvested at all, succeeded where each one succeeded.

    One that is not whole, as it was cut short, say, has not done all that it should have.
    """
    statuses = session.scalars(select(HarvestSiteRun.status).where(HarvestSiteRun.run_id == run_id)).all()
    if all(status == SiteRunStatus.SUCCEEDED for status in statuses):
        return RunStatus.SUCCEEDED if is_whole else RunStatus.WITH_ERRORS
    harvested = (SiteRunStatus.SUCCEEDED, SiteRunStatus.WITH_ERRORS)
    return RunStatus.WITH_ERRORS if any(status in harvested for status in statuses) else RunStatus.FAILED


def close_dead(session: Session, run: HarvestRun, now: datetime) -> str:
    """Close a run that never ended; its site runs wait to be taken up. What there is to tell of it."""
    run.status, run.ended_at = RunStatus.INTERRUPTED.value, now
    left = interrupt(session, run.run_id, now)
    sites = f" It left {', '.join(left)} unfinished." if left else ""
    began = f"{run.started_at:%Y-%m-%d %H:%M} UTC on {run.host} (process {run.pid})"
    return f"The run {run.run_id}, begun {began}, never ended.{sites}"


def interrupt(session: Session, run_id: int, now: datetime) -> list[str]:
    """Let those site runs of a run that are still open wait for the next run to take them up; the sites' names."""
    left = session.scalars(
        select(HarvestSiteRun).where(
            HarvestSiteRun.run_id == run_id, HarvestSiteRun.status == SiteRunStatus.RUNNING.value
        )
    ).all()
    for site_run in left:
        site_run.status, site_run.ended_at = SiteRunStatus.INTERRUPTED.value, now
        site_run.failure_reason = "The run was interrupted; the next run takes it up."
    return [site_run.site_name for site_run in left]


def finished_before(session: Session, run_id: int, today: date) -> dict[int, SiteRunStatus]:
    """The sites that were finished today by the interrupted runs right before this one, and how each ended."""
    last_whole = select(func.max(HarvestRun.run_id)).where(
        HarvestRun.run_id < run_id, HarvestRun.status != RunStatus.INTERRUPTED.value
    )
    statement = (
        select(HarvestSiteRun.site_schedule_id, HarvestSiteRun.status)
        .join(HarvestRun)
        .where(
            HarvestRun.run_id < run_id,
            HarvestRun.run_id > func.coalesce(last_whole.scalar_subquery(), 0),
            HarvestRun.harvest_date == today,
            HarvestSiteRun.status != SiteRunStatus.INTERRUPTED.value,
        )
        .order_by(HarvestSiteRun.site_run_id)
    )
    return {site_id: SiteRunStatus(status) for site_id, status in session.execute(statement)}


def last_listings(session: Session, site_ids: Collection[int]) -> dict[int, tuple[int, str | None]]:
    """How many documents each site listed when its list was last harvested whole, and the URL of the list."""
    rows = session.execute(_LAST_LISTINGS, {"sites": list(site_ids)})
    return {site_id: (listed, list_url) for site_id, listed, list_url in rows}


_LOG = Base.metadata.tables[HarvestLog.__tablename__]
_DETAILS = Base.metadata.tables[HarvestDetailLog.__tablename__]
_SITE_RUNS = Base.metadata.tables[HarvestSiteRun.__tablename__]
_THESE = _LOG.c.site_run_id.in_(bindparam("site_runs", expanding=True))
_OUTCOMES = (
    select(_LOG.c.site_run_id, _LOG.c.outcome, func.count())
    .where(_THESE, _LOG.c.outcome.is_not(None))
    .group_by(_LOG.c.site_run_id, _LOG.c.outcome)
)
_WARNINGS = (
    select(_LOG.c.site_run_id, func.count())
    .join(_DETAILS, _DETAILS.c.harvest_log_id == _LOG.c.harvest_log_id)
    .where(_THESE, _DETAILS.c.level == "warning")
    .group_by(_LOG.c.site_run_id)
)
_LAST_LISTINGS = select(_SITE_RUNS.c.site_schedule_id, _SITE_RUNS.c.listed, _SITE_RUNS.c.list_url).where(
    _SITE_RUNS.c.site_run_id.in_(
        select(func.max(_SITE_RUNS.c.site_run_id))
        .where(
            _SITE_RUNS.c.site_schedule_id.in_(bindparam("sites", expanding=True)),
            _SITE_RUNS.c.kind != SiteRunKind.RETRY.value,
            _SITE_RUNS.c.status.in_([SiteRunStatus.SUCCEEDED.value, SiteRunStatus.WITH_ERRORS.value]),
        )
        .group_by(_SITE_RUNS.c.site_schedule_id)
    )
)
