"""`metaharvest runs`: the runs, and their results; `print_run` is also for other commands that make a run."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import ROWS, Invocation
from metaharvest.cli.json_keys import as_mapping
from metaharvest.cli.printing import print_fields, print_json, print_line, stamp
from metaharvest.cli.tables import Column, print_table, table_options, wide_option
from metaharvest.model import OutcomeKind, RunStatus

if TYPE_CHECKING:
    from datetime import date

    from sqlalchemy.orm import Session

    from metaharvest.queries.runs import RunRecord, SiteRunRecord

_RANKS = (8, 2, 6, 4, 5, 7, 9, 3)
"""The ranks of the columns with numbers, see Column: the highest are left out first."""

_NAMED = 10
"""The number of failing sites that are named below the list of runs."""

_COUNTS = ("listed", "inserted", "updated", "unchanged", "attention", "errors")


@click.group("runs", invoke_without_command=True)
@click.option("--limit", type=ROWS, default=20, show_default=True, metavar="N", help="The newest N.")
@table_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def command(context: click.Context, limit: int, as_json: bool) -> None:
    """List the runs, the newest first; `runs show` has the details of one."""
    if context.invoked_subcommand is None:
        _list(context.obj, limit, as_json)


@command.command("show")
@click.argument("run_id", type=click.IntRange(min=1))
@wide_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def show(invocation: Invocation, run_id: int, as_json: bool) -> None:
    """Show a run: its sites, their totals, the failures, the time of each, and the trend of each.

    `trend` is the number of failed documents in each of the site's last harvests, up to this one.
    """
    from metaharvest.queries.runs import run_record, with_trends

    with invocation.harvester.reading() as session:
        record = with_trends(session, run_record(session, run_id))
    if as_json:
        sites = [{**as_mapping(site), "trend": site.trend} for site in record.sites]
        print_json({**as_mapping(record), "sites": sites, "totals": record.totals})
        return
    print_run(record)
    if record.sites:
        click.echo()
        where = Column("where the time of its documents went", 4, wrap=True)
        print_table(["site", "failing", "trend", "took", where], [_trend_row(site) for site in record.sites])
    click.echo()
    print_fields(_fields(record))
    click.echo(f"\nWhat happened: metaharvest log --run {run_id}")


def _list(invocation: Invocation, limit: int, as_json: bool) -> None:
    from metaharvest.queries.runs import newest_runs
    from metaharvest.queries.trends import status_in_words

    with invocation.harvester.reading() as session:
        rows = [_row(record) for record in newest_runs(session, limit)]
        failing = [] if as_json else _failing_now(session, invocation.harvester.today())
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo("There has been no run yet. `metaharvest run` makes one.")
        return
    counts = zip(["sites", "failed", "listed", "new", "updated", "unchanged", "other", "errors"], _RANKS, strict=True)
    headings = [Column("run"), Column("date", 1), Column("status", 2)]
    headings += [Column(name, rank) for name, rank in counts]
    columns = ("run_id", "harvest_date", "status", "sites", "failed", *_COUNTS)
    shown = [
        {**row, "status": status_in_words(str(row["status"]), bool(row["rehearsal"])), "failed": row["failed"] or ""}
        for row in rows
    ]
    print_table(headings, [[row[column] for column in columns] for row in shown])
    for sentence in failing:
        print_line(sentence)


def _failing_now(session: Session, today: date) -> list[str]:
    """A sentence for each of the first sites whose last harvest failed as a whole."""
    from metaharvest.queries.failed_sites import named_failed_sites

    failed = sorted(named_failed_sites(session, today), key=lambda each: (each.failed_since, each.site))
    sentences = [f"{each.site}: {each.sentence}" for each in failed[:_NAMED]]
    more = len(failed) - _NAMED
    return [*sentences, *([f"And {more:,} more: `metaharvest sites list`"] if more > 0 else [])]


def _trend_row(site: SiteRunRecord) -> list[object]:
    from metaharvest.queries.trends import in_words
    from metaharvest.reports.phrasing import PHASES, duration, phases

    took = "" if site.took_seconds is None else duration(site.took_seconds)
    seconds = {name: getattr(site, name) for name in PHASES}
    return [site.site, site.failing or "", in_words(site.trend), took, phases(seconds, "its server")]


def _row(record: RunRecord) -> dict[str, object]:
    dates = {name: getattr(record, name) for name in ("run_id", "harvest_date", "started_at", "ended_at")}
    took = {"took": _took(record), "took_seconds": record.took_seconds}
    return {**dates, **took, "status": record.status, "rehearsal": record.is_rehearsal, **asdict(record.totals)}


def _fields(record: RunRecord) -> dict[str, object]:
    totals = record.totals
    return {
        "started": f"{stamp(record.started_at)} UTC",
        "ended": f"{stamp(record.ended_at)} UTC" if record.ended_at else "not yet",
        "took": _took(record),
        "host": f"{record.host}, process {record.pid}",
        "documents": ", ".join(f"{getattr(totals, name):,} {name}" for name in _COUNTS),
    }


def _took(record: RunRecord) -> str:
    from metaharvest.reports.phrasing import duration

    return duration(record.took.total_seconds()) if record.took is not None else ""


def print_run(record: RunRecord) -> None:
    """Print the run as a table of its sites, and a sentence for each site or target that failed as a whole."""
    from metaharvest.queries.trends import status_in_words
    from metaharvest.reports.phrasing import LABELS

    status, headline = record.status, f"Run {record.run_id} ({record.harvest_date})"
    if not record.sites:
        result = "no site was due" if status == RunStatus.SUCCEEDED else f"{status}; no site was harvested"
        click.echo(f"{headline}: {result}.")
        return
    rehearsed = (
        " It was a rehearsal: no site has a target, so that nothing was uploaded." if record.is_rehearsal else ""
    )
    click.echo(f"{headline}: {status}.{rehearsed}")
    shown = [kind for kind in OutcomeKind if any(site.number(kind) for site in record.sites)]
    print_table(
        [
            Column("site"),
            Column("status"),
            Column("listed", 2),
            *(Column(LABELS[kind], 1 if kind.is_error else 3 + place) for place, kind in enumerate(shown)),
            Column("warnings", 20),
            Column("next harvest", 21),
        ],
        [
            [
                *(site.site, status_in_words(site.status, site.rehearsal), site.listed),
                *(site.number(kind) or "" for kind in shown),
                *(site.warnings or "", site.next_harvest),
            ]
            for site in record.sites
        ],
    )
    for sentence in record.targets_away:
        print_line(sentence)
    for site in record.sites:
        named = f"{site.site}: "
        if site.failed:
            print_line(named + site.failed.sentence.replace(f": {named}", ": "))
        elif site.failure_reason:
            print_line(named + site.failure_reason.removeprefix(named))
