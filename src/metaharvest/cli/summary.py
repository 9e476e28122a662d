"""A run as people are shown it, after `run` and in `runs show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from metaharvest.cli.printing import print_line, print_table
from metaharvest.model import OutcomeKind, RunStatus

if TYPE_CHECKING:
    from metaharvest.queries.runs import RunRecord

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
"""Headings of columns."""


def print_run(record: RunRecord) -> None:
    """The run as a table of its sites, and a sentence for each that failed as a whole."""
    status, headline = record.run["status"], f"Run {record.run['run_id']} ({record.run['harvest_date']})"
    if not record.sites:
        told = "no site was due" if status == RunStatus.SUCCEEDED else f"{status}; no site was harvested"
        click.echo(f"{headline}: {told}.")
        return
    click.echo(f"{headline}: {status}.")
    shown = [kind for kind in OutcomeKind if any(site[kind.column] for site in record.sites)]
    print_table(
        ["site", "status", "listed", *(_SHORT[kind] for kind in shown), "warnings", "next harvest"],
        [
            [
                site["site_name"],
                site["status"],
                site["listed"],
                *(site[kind.column] or "" for kind in shown),
                site["warnings"] or "",
                site["next_harvest"],
            ]
            for site in record.sites
        ],
    )
    for site in record.sites:
        if site["failure_reason"]:
            named = f"{site['site_name']}: "
            print_line(named + site["failure_reason"].removeprefix(named))
