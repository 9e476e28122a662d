"""Deletes a run on request, with its site runs, its log and its reports; and rows older than the log period."""

from __future__ import annotations

from datetime import date

from sqlalchemy import ColumnElement, and_, delete, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from metaharvest.database.batches import batches
from metaharvest.database.models import (
    HarvestDetailLog,
    HarvestDocument,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
    HarvestSiteSchedule,
    ReportDelivery,
    ReportOutbox,
    SiteCheckpoint,
    SiteProblem,
    SiteProgress,
    SiteTotals,
)
from metaharvest.errors import RequestError
from metaharvest.journal.totals import is_whole_list, keep_totals
from metaharvest.model import RunStatus, SiteRunStatus
from metaharvest.model.values import frozen
from metaharvest.queries.site_totals import Span, totals_of_sites
from metaharvest.targets.transfers import IS_TRANSFER
from metaharvest.text import counted

_IS_OF_REGISTERED_SITE = HarvestSiteRun.site_schedule_id.in_(select(HarvestSiteSchedule.site_schedule_id))
_GOES_ON = and_(HarvestSiteRun.status == SiteRunStatus.INTERRUPTED.value, _IS_OF_REGISTERED_SITE)
"""True for an interrupted site run that the next run resumes: its site is still registered."""


@frozen
class RemovedRun:
    """A deleted run: its day, and the numbers of deleted rows."""

    run_id: int
    harvest_date: date
    site_runs: int
    log_rows: int
    reports: int

    @property
    def sentence(self) -> str:
        """The deletion in words."""
        rows = ((self.site_runs, "site run"), (self.log_rows, "log row"), (self.reports, "report"))
        return f"Deleted run {self.run_id} of {self.harvest_date}: {', '.join(counted(*each) for each in rows)}."


def remove_run(session: Session, run_id: int) -> RemovedRun:
    """Delete a run that exists. Raises RequestError if later harvests need it."""
    run = session.get_one(HarvestRun, run_id)
    if why := why_it_stays(session, run_id):
        raise RequestError(f"Run {run_id} cannot be deleted: {why}.")
    sizes = _sizes(session, run)
    its_logs = select(HarvestLog.harvest_log_id).where(HarvestLog.run_id == run_id)
    its_reports = select(ReportOutbox.report_id).where(ReportOutbox.run_id == run_id)
    session.execute(delete(ReportDelivery).where(ReportDelivery.report_id.in_(its_reports)))
    reports = _deleted(session, ReportOutbox.run_id == run_id, ReportOutbox)
    session.execute(delete(HarvestDetailLog).where(HarvestDetailLog.harvest_log_id.in_(its_logs)))
    log_rows = _deleted(session, HarvestLog.run_id == run_id, HarvestLog)
    site_runs = _deleted(session, HarvestSiteRun.run_id == run_id, HarvestSiteRun)
    session.execute(delete(SiteProgress).where(SiteProgress.run_id == run_id))
    day = run.harvest_date
    session.delete(run)
    keep_totals(session, [day])
    for site_id, size in sizes.items():
        its = (SiteTotals.first_day == Span.of(day).first, SiteTotals.site_schedule_id == site_id)
        session.execute(update(SiteTotals).where(*its, SiteTotals.bytes < size).values(bytes=size))
    return RemovedRun(run_id, day, site_runs, log_rows, reports)


def _sizes(session: Session, run: HarvestRun) -> dict[int, int]:
    """The kept bytes of each site in the span of a run, without this run.

    They cannot be added up again, as old log rows are purged.
    """
    kept = select(SiteTotals.site_schedule_id, SiteTotals.bytes).where(
        SiteTotals.first_day == Span.of(run.harvest_date).first
    )
    own = {row.site_schedule_id: row.bytes for row in session.execute(totals_of_sites([run.run_id]))}
    return {row.site_schedule_id: row.bytes - own.get(row.site_schedule_id, 0) for row in session.execute(kept)}


def why_it_stays(session: Session, run_id: int) -> str:
    """The reason why a run must stay, as the rest of a sentence; empty if it may go."""
    run = session.get_one(HarvestRun, run_id)
    ours = select(HarvestSiteRun.site_run_id).where(HarvestSiteRun.run_id == run_id)
    later = aliased(HarvestSiteRun)
    is_of_site = later.site_schedule_id == HarvestSiteRun.site_schedule_id
    is_later = (is_of_site, later.site_run_id > HarvestSiteRun.site_run_id)
    has_last_list = and_(*is_whole_list(HarvestSiteRun), ~exists().where(*is_later, *is_whole_list(later)))
    is_newest = or_(~exists().where(*is_later), has_last_list)
    waiting = select(ReportDelivery.report_id).where(ReportDelivery.status == "queued")
    details = select(HarvestDetailLog.detail_log_id).join(HarvestLog).where(HarvestLog.run_id == run_id)
    problem = or_(SiteProblem.detail_log_id.in_(details), SiteProblem.first_site_run.in_(ours))
    its_sites = HarvestSiteRun.run_id == run_id
    if run.status == RunStatus.RUNNING.value:
        return "it is under way"
    if session.scalar(select(func.max(HarvestRun.run_id))) == run_id:
        return "it is the newest run"
    reasons = {
        "the next run goes on with a site of it": its_sites & _GOES_ON,
        "it has the last harvest of a site": its_sites & is_newest & _IS_OF_REGISTERED_SITE,
        "a report of it waits to be delivered": (ReportOutbox.run_id == run_id) & ReportOutbox.report_id.in_(waiting),
        "its log has transfers of documents": (HarvestLog.run_id == run_id) & IS_TRANSFER,
        "an upload of it is pending": HarvestDocument.pending_run == run_id,
        "the list of a repository goes on from it": SiteCheckpoint.site_run_id.in_(ours),
        "an open problem was found in it": (SiteProblem.state == "open") & problem,
    }
    return next((why for why, its in reasons.items() if session.execute(select(1).where(its).limit(1)).first()), "")


def _deleted(session: Session, condition: ColumnElement[bool], table: type) -> int:
    return int(session.execute(delete(table).where(condition)).rowcount)  # type: ignore[attr-defined]


# -- rows older than the log period

CHUNK = 10_000
"""The number of log rows deleted in one transaction."""

REPORTS = 500
"""The number of reports deleted in one transaction; each has a whole message."""


def purge_log_rows(session: Session, limit: date) -> int:
    """Delete up to CHUNK log rows from before `limit`, with their detail rows; return the number.

    Rows that an interrupted site run needs to be resumed stay, and so do transfers of documents from site to site.
    """
    unfinished = exists().where(HarvestSiteRun.site_run_id == HarvestLog.site_run_id, _GOES_ON)
    old = session.scalars(
        select(HarvestLog.harvest_log_id)
        .where(HarvestLog.harvest_date < limit, ~unfinished, ~IS_TRANSFER)
        .order_by(HarvestLog.harvest_date)
        .limit(CHUNK)
    ).all()
    for ids in batches(old):
        session.execute(delete(HarvestDetailLog).where(HarvestDetailLog.harvest_log_id.in_(ids)))
        session.execute(delete(HarvestLog).where(HarvestLog.harvest_log_id.in_(ids)))
    return len(old)


def purge_reports(session: Session, limit: date) -> int:
    """Delete up to REPORTS reports of runs from before `limit`, unless a recipient waits; return the number."""
    waiting = select(ReportDelivery.report_id).where(ReportDelivery.status == "queued")
    old = session.scalars(
        select(ReportOutbox.report_id)
        .join(HarvestRun, HarvestRun.run_id == ReportOutbox.run_id)
        .where(HarvestRun.harvest_date < limit, ReportOutbox.report_id.not_in(waiting))
        .order_by(ReportOutbox.report_id)
        .limit(REPORTS)
    ).all()
    if old:
        session.execute(delete(ReportDelivery).where(ReportDelivery.report_id.in_(old)))
        session.execute(delete(ReportOutbox).where(ReportOutbox.report_id.in_(old)))
    return len(old)
