"""`metaharvest figures`: the totals of all sites in a period."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import date
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation, day, period
from metaharvest.cli.printing import print_csv, print_fields, print_json
from metaharvest.cli.tables import Column, print_table, table_options

if TYPE_CHECKING:
    from metaharvest.queries.figures import Figures

_COLUMNS = {
    "harvests": Column("harvests", 6),
    "failed_harvests": Column("failed", 5),
    "inserted": Column("new", 1),
    "updated": Column("updated", 2),
    "deleted": Column("deleted", 7),
    "failing": Column("failing", 3),
    "bytes": Column("bytes", 8),
    "took_seconds": Column("took", 9),
    "last_success": Column("last success", 4),
}


@click.command("figures")
@click.option("--from", "begin", metavar="YYYY-MM-DD", callback=day, help="The first day. [default: 1 January]")
@click.option("--to", "end", metavar="YYYY-MM-DD", callback=day, help="The last day. [default: today]")
@click.option("--per", type=click.Choice(["week", "month", "site"]), help="A row for each of these.")
@table_options
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--csv", "as_csv", is_flag=True, help="A table on stdout.")
@click.pass_obj
def command(
    invocation: Invocation, begin: date | None, end: date | None, per: str | None, as_json: bool, as_csv: bool
) -> None:
    """Show the totals of all sites in a period: documents new, updated, deleted and failing, harvests, bytes, time.

    `failing` is the number of documents that failed in the last harvest of each site in that time. Bytes are known as
    far as the log goes back. With --per week or month, the rows are the trend; with --per site, each row has the last
    success.

    \b
    Examples:
      metaharvest figures --from 2026-01-01 --to 2026-12-31
      metaharvest figures --per month
      metaharvest figures --per site --csv
    """
    from metaharvest.queries.figures import Figures, Per, figures

    if as_json and as_csv:
        raise click.UsageError("Use one of --json and --csv.")
    first, last = period(invocation, begin, end)
    with invocation.harvester.reading() as session:
        found = figures(session, first, last, Per(per) if per else None)
    if as_json:
        print_json([asdict(each) for each in found])
    elif as_csv:
        from metaharvest.reports.tables import table_csv

        names = [each.name for each in fields(Figures)]
        print_csv(table_csv(names, ([getattr(each, name) for name in names] for each in found)))
    elif per is None:
        print_fields(_in_words(found[0]))
    elif not found:
        click.echo(f"No site was harvested from {first} to {last}.")
    else:
        heading = Column("site") if per == "site" else Column("from")
        rows = [[each.site if per == "site" else each.first_day, *_row(each)] for each in found]
        print_table([heading, *_COLUMNS.values()], rows)


def _row(each: Figures) -> list[object]:
    from metaharvest.reports.phrasing import duration

    shown = {**asdict(each), "took_seconds": duration(each.took_seconds)}
    return [f"{value:,}" if isinstance(value := shown[name], int) else value for name in _COLUMNS]


def _in_words(each: Figures) -> dict[str, object]:
    from metaharvest.reports.phrasing import duration

    return {
        "from": each.first_day,
        "to": each.last_day,
        "runs": f"{each.number_of_runs:,}",
        "sites harvested": f"{each.number_of_sites:,}",
        "harvests": f"{each.harvests:,}, of which {each.failed_harvests:,} failed as a whole",
        "documents new": f"{each.inserted:,}",
        "documents updated": f"{each.updated:,}",
        "documents deleted": f"{each.deleted:,}",
        "documents failing": f"{each.failing:,}",
        "bytes that went in": f"{each.bytes:,}",
        "time of the harvests": duration(each.took_seconds),
        "last success": each.last_success or "none",
    }
