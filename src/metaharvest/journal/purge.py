"""Deletes rows that are older than the log period."""

from __future__ import annotations

from datetime import date

from sqlalchemy import delete, exists, select
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.models import (
    HarvestDetailLog,
    HarvestLog,
    HarvestRun,
    HarvestSiteRun,
    ReportDelivery,
    ReportOutbox,
)
from metaharvest.model import SiteRunStatus
from metaharvest.targets.transfers import IS_TRANSFER

CHUNK = 10_000
"""The number of log rows deleted in one transaction."""

REPORTS = 500
"""The number of reports deleted in one transaction; each has a whole message."""


def log_rows(session: Session, limit: date) -> int:
    """Delete up to CHUNK log rows from before `limit`, with their detail rows; return the number.

    Rows that an interrupted site run needs to be resumed stay, and so do transfers of documents from site to site.
    """
    unfinished = exists().where(
        HarvestSiteRun.site_run_id == HarvestLog.site_run_id, HarvestSiteRun.status == SiteRunStatus.INTERRUPTED.value
    )
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


def reports(session: Session, limit: date) -> int:
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
