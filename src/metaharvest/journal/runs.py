"""Runs as rows: opening one, closing dead runs, the status that follows from the site runs, the report, closing."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, exists, func, or_, select, update
from sqlalchemy.orm import Session

from metaharvest.config.report_context import ReportContext
from metaharvest.database.batches import batches
from metaharvest.database.models import (
    IS_FULL,
    IS_HARVEST,
    IS_REAL,
    HarvestDetailLog,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
)
from metaharvest.jobs.policy import RUN_ENDED
from metaharvest.journal import live, taken_requests, totals
from metaharvest.journal.log_rows import NO_SITE, LogRow, Stamp, write_log
from metaharvest.journal.outcomes import is_lost
from metaharvest.journal.site_runs import NOT_MADE, not_reported, report_queued
from metaharvest.journal.totals import keep_totals_of_run
from metaharvest.model import HARVESTED, RunStatus, SiteRunKind, SiteRunStatus
from metaharvest.model.values import frozen
from metaharvest.text import some_of

if TYPE_CHECKING:
    from metaharvest.mail.message import Report


@frozen
class OpenedRun:
    """A run that was opened: its number; the unfinished sites, by number, with the kind of their site run; and the
    number of reports of dead runs that could not be made.
    """

    run_id: int
    unfinished: Mapping[int, SiteRunKind]
    reports_not_made: int


def open_run(session: Session, context: ReportContext, today: date, *, distributed: bool = False) -> OpenedRun:
    """Open a run, log HarvesterStartup and close dead runs. `distributed`: workers harvest its sites."""
    now = context.now
    dead = session.scalars(select(HarvestRun).where(HarvestRun.status == RunStatus.RUNNING)).all()
    run = HarvestRun(
        harvest_date=today,
        started_at=now,
        status=RunStatus.RUNNING.value,
        host=socket.gethostname(),
        pid=os.getpid(),
        heartbeat_at=now,
        distributed=distributed,
    )
    session.add(run)
    session.flush()
    stamp = Stamp(run.run_id, today, now)
    live.forget(session)
    write_log(session, [(LogRow("HarvesterStartup", "The run began."), NO_SITE)], stamp)
    closed = [LogRow("RunInterrupted", _close_dead(session, old)) for old in dead]
    write_log(session, [(row, NO_SITE) for row in closed], stamp)
    taken_requests.give_back(session, [old.run_id for old in dead], stamp)
    session.flush()
    for old in dead:
        keep_totals_of_run(session, old.run_id)
    not_made = sum(not _report(session, old.run_id, context, stamp) for old in dead)
    return OpenedRun(run.run_id, unfinished_sites(session), not_made)


def unfinished_sites(session: Session) -> dict[int, SiteRunKind]:
    """The kind of the interrupted site run of each site that has one, by number."""
    left = select(HarvestSiteRun.site_schedule_id, HarvestSiteRun.kind).where(
        HarvestSiteRun.status == SiteRunStatus.INTERRUPTED.value
    )
    return {site_id: SiteRunKind(kind) for site_id, kind in session.execute(left)}


_RUN_INTERRUPTED = "The run was interrupted; the next run takes it up."
SLICE_ENDED = "A worker ended its slice of this site; the next slice goes on with it."


def interrupt(
    session: Session,
    run_id: int,
    now: datetime,
    site_ids: Collection[int] | None = None,
    why: str = _RUN_INTERRUPTED,
) -> list[str]:
    """Leave the open site runs of a run, or of these sites in it, to be taken up again; return the sites' names.

    If it is the whole run, site runs that waited for a slice get this reason, too.
    Their totals are the outcomes in the log so far. Documents without rows are counted when the site run is closed.
    """
    its = [HarvestSiteRun.run_id == run_id, HarvestSiteRun.status == SiteRunStatus.RUNNING.value]
    if site_ids is not None:
        its.append(HarvestSiteRun.site_schedule_id.in_(site_ids))
    else:
        waits = (HarvestSiteRun.run_id == run_id, HarvestSiteRun.status == SiteRunStatus.INTERRUPTED.value)
        session.execute(update(HarvestSiteRun).where(*waits).values(failure_reason=why))
    left = session.scalars(select(HarvestSiteRun).where(*its)).all()
    counted: dict[int, totals.Totals] = {}
    for some in batches([site_run.site_run_id for site_run in left]):
        counted |= totals.count(session, {site_run_id: {} for site_run_id in some})
    for site_run in left:
        so_far = counted[site_run.site_run_id]
        for column, number in so_far.columns(sum(so_far.outcomes.values())).items():
            setattr(site_run, column, number)
        # The last sign of life of a dead run may be older than the site run.
        site_run.status, site_run.ended_at = SiteRunStatus.INTERRUPTED.value, max(now, site_run.started_at)
        site_run.failure_reason = why
        if site_run.rehearsal:
            site_run.status = SiteRunStatus.FAILED.value
            site_run.failure_reason = "The run was interrupted; the next run begins the rehearsal again."
    return [site_run.site_name for site_run in left]


def ended_site_runs(session: Session, run_id: int, site_ids: Collection[int]) -> dict[int, HarvestSiteRun]:
    """The site runs of these sites that have ended in this run, by number."""
    its = (
        HarvestSiteRun.run_id == run_id,
        HarvestSiteRun.site_schedule_id.in_(site_ids),
        HarvestSiteRun.status.not_in((SiteRunStatus.RUNNING.value, SiteRunStatus.INTERRUPTED.value)),
    )
    return {each.site_run_id: each for each in session.scalars(select(HarvestSiteRun).where(*its))}


def notes_of(session: Session, run_id: int, code: str) -> Sequence[str | None]:
    """The messages of the rows with this operation code in the log of a run."""
    its = (HarvestLog.run_id == run_id, HarvestLog.harvest_operation_code == code)
    return session.scalars(select(HarvestLog.message).where(*its)).all()


def was_whole(session: Session, run_id: int) -> bool:
    """True if no target stopped answering the workers of this run, and no site run is left open."""
    is_away = (HarvestLog.run_id == run_id, HarvestLog.harvest_operation_code == "TargetError")
    away = select(HarvestLog.harvest_log_id).where(*is_away)
    is_open = (SiteRunStatus.RUNNING.value, SiteRunStatus.INTERRUPTED.value)
    left = select(HarvestSiteRun.site_run_id).where(HarvestSiteRun.run_id == run_id, HarvestSiteRun.status.in_(is_open))
    return session.scalar(away.limit(1)) is None and session.scalar(left.limit(1)) is None


def number_of_reports_not_made(session: Session, run_id: int) -> int:
    """The number of reports that could not be made in this run, by all of its processes."""
    its = (HarvestLog.run_id == run_id, HarvestLog.harvest_operation_code == "SiteError")
    not_made = select(func.count()).select_from(HarvestLog).where(*its, HarvestLog.message.startswith(NOT_MADE))
    return session.scalar(not_made) or 0


def report_run(session: Session, context: ReportContext, stamp: Stamp, is_stopped: bool) -> bool:
    """Queue the composite report; site runs that are still open wait for the next run. False if it was not made.

    `is_stopped`: see `run_status`.
    """
    interrupt(session, stamp.run_id, stamp.now)
    session.flush()
    context = replace(context, run_status=run_status(session, stamp.run_id, is_whole=True, is_stopped=is_stopped))
    is_made = _report(session, stamp.run_id, context, stamp)

    def due() -> Report | None:
        from metaharvest.reports.compose import digest

        return digest(session, stamp.run_id, context)

    return _queued(session, stamp.run_id, stamp, due) and is_made


def run_status(session: Session, run_id: int, is_whole: bool, is_stopped: bool) -> RunStatus:
    """The status of a run: failed if no site could be harvested at all, succeeded if each one succeeded.

    A run that was cut short has not done all of its work. `is_stopped`: a signal, or a person, cut it short. A site
    that a person stopped does not count.
    """
    if is_stopped:
        return RunStatus.INTERRUPTED
    its = (HarvestSiteRun.run_id == run_id, HarvestSiteRun.status != SiteRunStatus.STOPPED.value)
    statuses = session.scalars(select(HarvestSiteRun.status).where(*its)).all()
    if all(status == SiteRunStatus.SUCCEEDED for status in statuses):
        return RunStatus.SUCCEEDED if is_whole else RunStatus.WITH_ERRORS
    return RunStatus.WITH_ERRORS if any(status in HARVESTED for status in statuses) else RunStatus.FAILED


def close_run(session: Session, run_id: int, status: RunStatus, now: datetime) -> None:
    """Write the end of the run; from then on it may write nothing more."""
    session.execute(update(HarvestRun).where(HarvestRun.run_id == run_id).values(status=status.value, ended_at=now))
    keep_totals_of_run(session, run_id)


def finished_before(session: Session, run_id: int, today: date) -> dict[int, SiteRunStatus]:
    """The sites that were finished today by the dead runs right before this one, and the status of each."""
    statement = (
        select(HarvestSiteRun.site_schedule_id, HarvestSiteRun.status)
        .join(HarvestRun)
        .where(*_in_dead_runs_before(run_id, today), HarvestSiteRun.status != SiteRunStatus.INTERRUPTED.value, IS_REAL)
        .order_by(HarvestSiteRun.site_run_id)
    )
    return {site_id: SiteRunStatus(status) for site_id, status in session.execute(statement)}


def unread_lists(
    session: Session, run_id: int, today: date, site_ids: Collection[int], no_list: Collection[str]
) -> list[str]:
    """The names of these sites whose list did not come to its end in this run, or today in the dead runs before it.

    A site whose list failed by one of the rules `no_list` has none that could come to its end.
    """
    dead = session.scalars(select(HarvestRun.run_id).where(*_in_dead_runs_before(run_id, today)))
    its = (HarvestSiteRun.site_schedule_id.in_(site_ids), IS_FULL)
    in_them = HarvestSiteRun.run_id.in_([run_id, *dead])
    site_runs = select(HarvestSiteRun).where(in_them, *its).order_by(HarvestSiteRun.site_run_id)
    last = {each.site_schedule_id: each for each in session.scalars(site_runs)}
    unread = {each.site_run_id: each.site_name for each in last.values() if each.status not in HARVESTED}
    without = (
        select(HarvestLog.site_run_id)
        .join(HarvestDetailLog, HarvestDetailLog.harvest_log_id == HarvestLog.harvest_log_id)
        .where(HarvestLog.site_run_id.in_(unread), HarvestDetailLog.rule.in_(no_list))
    )
    have_none = set(session.scalars(without)) if unread else set()
    return [name for site_run_id, name in unread.items() if site_run_id not in have_none]


def _in_dead_runs_before(run_id: int, today: date) -> tuple[ColumnElement[bool], ...]:
    """In the dead runs of today right before this one.

    A run that a signal stopped has closed itself: it is not dead, although both are `interrupted`.
    """
    closed_itself = exists().where(
        HarvestLog.run_id == HarvestRun.run_id, HarvestLog.harvest_operation_code == "HarvesterShutdown"
    )
    last_whole = select(func.max(HarvestRun.run_id)).where(
        HarvestRun.run_id < run_id, or_(HarvestRun.status != RunStatus.INTERRUPTED.value, closed_itself), IS_HARVEST
    )
    return (
        HarvestRun.run_id < run_id,
        HarvestRun.run_id > func.coalesce(last_whole.scalar_subquery(), 0),
        HarvestRun.harvest_date == today,
    )


def _close_dead(session: Session, run: HarvestRun) -> str:
    """Close a run that never ended, as of its last sign of life; its site runs wait to be resumed.

    Its jobs are cancelled. Returns its findings.
    """
    run.status, run.ended_at = RunStatus.INTERRUPTED.value, run.heartbeat_at
    left = interrupt(session, run.run_id, run.heartbeat_at)
    if run.distributed:
        from metaharvest.jobs import making  # its tables take time, and other runs need none of them

        making.cancel_ready(session, RUN_ENDED, run.run_id)
    sites = f" It left {some_of(left)} unfinished." if left else ""
    began = f"{run.started_at:%Y-%m-%d %H:%M} UTC on {run.host} (process {run.pid})"
    return f"The run {run.run_id}, begun {began}, never ended.{sites}"


def _report(session: Session, run_id: int, context: ReportContext, stamp: Stamp) -> bool:
    """Queue the composite report of a run, if the administrators want it; False if it could not be made."""

    def wanted() -> Report | None:
        from metaharvest.reports.compose import admin_report

        report = admin_report(session, run_id, context)
        return None if context.settings.reports.admin_notify == "attention" and report.tone == "good" else report

    return _queued(session, run_id, stamp, wanted)


def _queued(session: Session, run_id: int, stamp: Stamp, make: Callable[[], Report | None]) -> bool:
    """Queue the report that is made, unless it is there already; False if it could not be made, which is logged."""
    try:
        from metaharvest.mail.outbox import queue

        with session.begin_nested():
            report = make()
            if report and queue(session, report, run_id, None, stamp.now) is not None:
                write_log(session, [(report_queued(report), NO_SITE)], stamp)
        return True
    except Exception as error:
        if is_lost(error):
            raise
        write_log(session, [(not_reported(error), NO_SITE)], stamp)
        return False
