"""`metaharvest export`: sites, failing documents, problems, runs and deliveries as one file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.text import clean

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from metaharvest.reports.workbook import Sheet

_SITES = (
    "state", "groups", "source_kind", "list_url", "contacts", "every", "unit", "notify", "enabled",
    "last_harvest", "next_harvest", "last_status", "failing", "failing_since", "took_seconds",
)  # fmt: skip
_DOCUMENTS = (
    "site", "docid", "document_id", "revision", "title", "outcome", "url", "document_type", "failing_since", "nights",
    "attempts", "next_attempt", "run_id", "harvest_date",
)  # fmt: skip
_FINDING = ("level", "rule", "line", "column", "message", "remedy")
_RUNS = ("run_id", "harvest_date", "status", "started_at", "ended_at")
_TOTALS = ("sites", "listed", "inserted", "updated", "unchanged", "attention", "errors")
_REPORT = ("report_id", "created_at", "kind", "run_id", "subject")
_DELIVERY = ("recipient", "status", "attempts", "last_attempt_at", "first_sent_at", "last_error")
_MOST = 10_000
"""The number of newest runs, and of newest reports, that are written."""


@click.group("export")
def command() -> None:
    """Write sites, problems, runs and mail into one file.

    \b
    Example: metaharvest export workbook harvest.xlsx
    """


@command.command("workbook")
@click.argument("file", metavar="FILE.xlsx", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
def workbook(invocation: Invocation, file: Path) -> None:
    """Write a workbook for a spreadsheet program: sites, failing documents, problems, runs, deliveries, a sheet each.

    No text in it becomes a formula or a link. A file of this name is replaced. It has the newest 10,000 runs, and the
    newest 10,000 reports.

    \b
    Example: metaharvest export workbook harvest.xlsx
    """
    from metaharvest.reports.workbook import write_workbook

    today = invocation.harvester.today()
    with invocation.harvester.reading() as session:
        try:
            written = write_workbook(file, _sheets(session, today))
        except OSError as error:
            raise click.FileError(str(file), error.strerror) from error
    counts = ", ".join(f"{number:,} {name}" for name, number in written.items())
    click.echo(clean(f"Wrote {file}. Rows: {counts}."))


def _sheets(session: Session, today: date) -> Iterator[Sheet]:
    from metaharvest.queries.problems import RuleTotal, open_problems
    from metaharvest.queries.sites import registered_sites
    from metaharvest.reports.workbook import Sheet

    sites = registered_sites(session, today)
    yield Sheet("sites", ("name", *_SITES), ([site.site, *_values(site, _SITES)] for site in sites))
    yield Sheet("documents failing", (*_DOCUMENTS, *_FINDING), _documents(session, today))
    names = [each.name for each in fields(RuleTotal)]
    yield Sheet("problems", names, (_values(each, names) for each in open_problems(session)))
    yield Sheet("runs", (*_RUNS, *_TOTALS), _runs(session))
    yield Sheet("deliveries", (*_REPORT, *_DELIVERY), _deliveries(session))


def _documents(session: Session, today: date) -> Iterator[list[object]]:
    from metaharvest.queries.documents import DocumentFilter, document_rows

    for row in document_rows(session, DocumentFilter(failing=True), today):
        for finding in row.findings or [None]:
            yield [*_values(row, _DOCUMENTS), *_values(finding, _FINDING)]


def _runs(session: Session) -> Iterator[list[object]]:
    from metaharvest.queries.runs import newest_runs

    for record in newest_runs(session, _MOST):
        yield [*_values(record, _RUNS), *_values(record.totals, _TOTALS)]


def _deliveries(session: Session) -> Iterator[list[object]]:
    from metaharvest.queries.outbox import newest_reports

    for report in newest_reports(session, _MOST):
        for delivery in report.deliveries:
            yield [*_values(report, _REPORT), *_values(delivery, _DELIVERY)]


def _values(row: object, names: Sequence[str]) -> list[object]:
    """The values of these names; all None if there is no row."""
    return [None if row is None else getattr(row, name) for name in names]
