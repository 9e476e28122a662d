"""A run as people and machines are shown it: read from the same rows as the reports."""

from __future__ import annotations

from typing import Any

import click
from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.cli.app import print_table
from metaharvest.database.models import Base, HarvestDetailLog, HarvestLog, HarvestRun, HarvestSiteRun
from metaharvest.model import OutcomeKind, RunStatus, SiteRunStatus
from metaharvest.text import one_line

_FAILED = (SiteRunStatus.LIST_FAILED, SiteRunStatus.FAILED, SiteRunStatus.INCOMPLETE, SiteRunStatus.INTERRUPTED)
_SHORT = {
    OutcomeKind.INSERTED: "new",
    OutcomeKind.UPDATED: "updated",
    OutcomeKind.UNCHANGED: "there",
    OutcomeKind.STALE: "stale",
    OutcomeKind.DUPLICATE: "duplicate",
    OutcomeKind.DEFERRED: "deferred",
    OutcomeKind.ACCESS_ERROR: "no access",
    OutcomeKind.INVALID: "invalid",
    OutcomeKind.UPLOAD_ERROR: "refused",
}


def run_as_json(session: Session, run_id: int) -> dict[str, Any]:
    """A run with its site runs, every column by its name."""
    run = session.get_one(HarvestRun, run_id)
    return {**_columns(run), "sites": [_columns(site_run) for site_run in site_runs(session, run_id)]}


def site_runs(session: Session, run_id: int) -> list[HarvestSiteRun]:
    """The site runs of a run, in the order in which they were begun."""
    statement = select(HarvestSiteRun).where(HarvestSiteRun.run_id == run_id).order_by(HarvestSiteRun.site_run_id)
    return list(session.scalars(statement))


def print_run(session: Session, run_id: int) -> None:
    """The run as a table of its sites, and a sentence for each that failed as a whole."""
    run, sites = session.get_one(HarvestRun, run_id), site_runs(session, run_id)
    if not sites:
        told = "no site was due" if run.status == RunStatus.SUCCEEDED else f"{run.status}; no site was harvested"
        click.echo(f"Run {run.run_id} ({run.harvest_date}): {told}.")
        return
    click.echo(f"Run {run.run_id} ({run.harvest_date}): {run.status}.")
    shown = [kind for kind in OutcomeKind if any(getattr(site, kind.column) for site in sites)]
    print_table(
        ["site", "status", "listed", *(_SHORT[kind] for kind in shown), "warnings", "next harvest"],
        [
            [
                site.site_name,
                site.status,
                site.listed,
                *(getattr(site, kind.column) or "" for kind in shown),
                site.warnings or "",
                site.next_harvest,
            ]
            for site in sites
        ],
    )
    for site in sites:
        if site.failure_reason:
            named = f"{site.site_name}: "
            click.echo(one_line(named + site.failure_reason.removeprefix(named), 2000))


def failed_as_a_whole(session: Session, run_id: int) -> bool:
    """Whether a site, or the whole run, failed: what cron's exit code tells."""
    run = session.get_one(HarvestRun, run_id)
    return run.status == RunStatus.FAILED or any(site.status in _FAILED for site in site_runs(session, run_id))


def has_document_errors(session: Session, run_id: int) -> bool:
    """Whether documents had errors, or were put off."""
    return any(site.status == SiteRunStatus.WITH_ERRORS for site in site_runs(session, run_id))


def findings_as_json(session: Session, run_id: int) -> list[dict[str, Any]]:
    """Every finding of a run, every column of its detail row by its name, in the order of the log."""
    statement = (
        select(HarvestDetailLog)
        .join(HarvestLog)
        .where(HarvestLog.run_id == run_id)
        .order_by(HarvestDetailLog.detail_log_id)
    )
    return [_columns(row) for row in session.scalars(statement)]


def _columns(row: Base) -> dict[str, Any]:
    return {column.name: getattr(row, column.name) for column in row.__table__.columns}
