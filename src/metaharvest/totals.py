"""Site runs as rows: their totals, counted from the log, and the statuses that follow; what dead runs left."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from metaharvest.database.models import HarvestDetailLog, HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.records import OutcomeKind, RunStatus, SiteRunKind, SiteRunStatus


def close(session: Session, site_run_id: int, listed: int | None = None, unchanged: int = 0) -> SiteRunStatus:
    """Write the totals of a site run; its status. `listed` is None where no list could be read to its end.

    Every listed document has exactly one outcome, or the site run is incomplete. Documents that were put off need
    attention as errors do: nobody should read that all is well.
    """
    counted = _outcomes(session, site_run_id)
    counted[OutcomeKind.UNCHANGED] = unchanged
    listed = sum(counted.values()) if listed is None else listed
    session.execute(
        update(HarvestSiteRun)
        .where(HarvestSiteRun.site_run_id == site_run_id)
        .values(
            listed=listed,
            warnings=_warnings(session, site_run_id),
            **{kind.column: counted.get(kind, 0) for kind in OutcomeKind},
        )
    )
    if sum(counted.values()) != listed:
        return SiteRunStatus.INCOMPLETE
    if any(counted.get(kind) for kind in OutcomeKind if kind.is_error or kind is OutcomeKind.DEFERRED):
        return SiteRunStatus.WITH_ERRORS
    return SiteRunStatus.SUCCEEDED


def run_status(session: Session, run_id: int) -> RunStatus:
    """The status of a run: failed where no site could be harvested at all, succeeded where each one succeeded."""
    statuses = session.scalars(select(HarvestSiteRun.status).where(HarvestSiteRun.run_id == run_id)).all()
    if all(status == SiteRunStatus.SUCCEEDED for status in statuses):
        return RunStatus.SUCCEEDED
    harvested = (SiteRunStatus.SUCCEEDED, SiteRunStatus.WITH_ERRORS)
    return RunStatus.WITH_ERRORS if any(status in harvested for status in statuses) else RunStatus.FAILED


def close_dead(session: Session, run: HarvestRun, now: datetime) -> str:
    """Close a run that never ended; its site runs wait to be taken up. What there is to tell of it."""
    run.status, run.ended_at = RunStatus.INTERRUPTED.value, now
    left = session.scalars(
        select(HarvestSiteRun).where(
            HarvestSiteRun.run_id == run.run_id, HarvestSiteRun.status == SiteRunStatus.RUNNING.value
        )
    ).all()
    for site_run in left:
        site_run.status, site_run.ended_at = SiteRunStatus.INTERRUPTED.value, now
        site_run.failure_reason = "The run was interrupted; the next run takes it up."
    sites = f" It left {', '.join(site_run.site_name for site_run in left)} unfinished." if left else ""
    began = f"{run.started_at:%Y-%m-%d %H:%M} UTC on {run.host} (process {run.pid})"
    return f"The run {run.run_id}, begun {began}, never ended.{sites}"


def last_listing(session: Session, site_id: int) -> tuple[int, str | None] | None:
    """How many documents the site listed when its list was last harvested whole, and the URL of the list."""
    statement = (
        select(HarvestSiteRun.listed, HarvestSiteRun.list_url)
        .where(
            HarvestSiteRun.site_schedule_id == site_id,
            HarvestSiteRun.kind != SiteRunKind.RETRY.value,
            HarvestSiteRun.status.in_([SiteRunStatus.SUCCEEDED.value, SiteRunStatus.WITH_ERRORS.value]),
        )
        .order_by(HarvestSiteRun.site_run_id.desc())
        .limit(1)
    )
    row = session.execute(statement).first()
    return None if row is None else (row.listed, row.list_url)


def _outcomes(session: Session, site_run_id: int) -> dict[OutcomeKind, int]:
    statement = (
        select(HarvestLog.outcome, func.count())
        .where(HarvestLog.site_run_id == site_run_id, HarvestLog.outcome.is_not(None))
        .group_by(HarvestLog.outcome)
    )
    return {OutcomeKind(str(outcome)): number for outcome, number in session.execute(statement)}


def _warnings(session: Session, site_run_id: int) -> int:
    statement = (
        select(func.count())
        .select_from(HarvestDetailLog)
        .join(HarvestLog)
        .where(HarvestLog.site_run_id == site_run_id, HarvestDetailLog.level == "warning")
    )
    return session.scalar(statement) or 0
