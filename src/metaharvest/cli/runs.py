"""`metaharvest runs`: the runs, and what each did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.app import ROWS, App, print_fields, print_json, print_table

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from metaharvest.database.models import HarvestRun

_COUNTS = ("listed", "inserted", "updated", "unchanged", "attention", "errors")


@click.group("runs", invoke_without_command=True)
@click.option("--limit", type=ROWS, default=20, show_default=True, metavar="N", help="The newest N.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_context
def command(context: click.Context, limit: int, as_json: bool) -> None:
    """List the runs, the newest first; `runs show` tells more of one."""
    if context.invoked_subcommand is None:
        _list(context.obj, limit, as_json)


@command.command("show")
@click.argument("run_id", type=click.IntRange(min=1))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def show(app: App, run_id: int, as_json: bool) -> None:
    """Show a run: its sites, their totals, what failed."""
    from metaharvest.cli.queries import find_run, reading
    from metaharvest.cli.summary import print_run, run_as_json

    with reading(app) as session:
        run = find_run(session, run_id)
        if as_json:
            print_json({**run_as_json(session, run_id), "totals": _totals(session, run_id)})
            return
        print_run(session, run_id)
        click.echo()
        print_fields(_fields(session, run))
    click.echo(f"\nWhat happened: metaharvest log --run {run_id}")


def _list(app: App, limit: int, as_json: bool) -> None:
    from metaharvest.cli.queries import reading

    with reading(app) as session:
        rows = _rows(session, limit)
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo("There has been no run yet. `metaharvest run` makes one.")
        return
    headings = ["run", "date", "status", "sites", "listed", "new", "updated", "there", "other", "errors"]
    columns = ("run_id", "harvest_date", "status", "sites", *_COUNTS)
    print_table(headings, [[row[column] for column in columns] for row in rows])


def _rows(session: Session, limit: int) -> list[dict[str, Any]]:
    from sqlalchemy import select

    from metaharvest.database.models import HarvestRun

    runs = session.scalars(select(HarvestRun).order_by(HarvestRun.run_id.desc()).limit(limit)).all()
    return [
        {
            "run_id": run.run_id,
            "harvest_date": run.harvest_date,
            "started_at": run.started_at,
            "ended_at": run.ended_at,
            "took": _took(run),
            "status": run.status,
            **_totals(session, run.run_id),
        }
        for run in runs
    ]


def _totals(session: Session, run_id: int) -> dict[str, int]:
    """How many sites, documents, and documents of each kind a run had, from the rows that the reports read."""
    from metaharvest.cli.summary import site_runs
    from metaharvest.model import OutcomeKind
    from metaharvest.reports.words import ATTENTION, ERRORS

    rows = site_runs(session, run_id)

    def counted(*kinds: OutcomeKind) -> int:
        return sum(getattr(row, kind.column) for row in rows for kind in kinds)

    return {
        "sites": len(rows),
        "listed": sum(row.listed for row in rows),
        "inserted": counted(OutcomeKind.INSERTED),
        "updated": counted(OutcomeKind.UPDATED),
        "unchanged": counted(OutcomeKind.UNCHANGED),
        "attention": counted(*ATTENTION),
        "errors": counted(*ERRORS),
    }


def _fields(session: Session, run: HarvestRun) -> dict[str, object]:
    from metaharvest.cli.queries import stamp

    totals = _totals(session, run.run_id)
    return {
        "started": f"{stamp(run.started_at)} UTC",
        "ended": f"{stamp(run.ended_at)} UTC" if run.ended_at else "not yet",
        "took": _took(run),
        "host": f"{run.host}, process {run.pid}",
        "documents": ", ".join(f"{totals[name]:,} {name}" for name in _COUNTS),
    }


def _took(run: HarvestRun) -> str:
    from metaharvest.reports.words import duration

    return duration((run.ended_at - run.started_at).total_seconds()) if run.ended_at else ""
