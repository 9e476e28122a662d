"""`metaharvest figures` and `metaharvest year`: a period over all sites."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import Invocation, OutputForm, day, json_or_csv, options_as
from metaharvest.cli.printing import (
    Column,
    layout_options,
    print_csv,
    print_fields,
    print_for_program,
    print_json,
    print_table,
    took,
)
from metaharvest.model.values import frozen
from metaharvest.text import counted

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


@frozen
class _Period:
    begin: date | None
    end: date | None

    def days(self, harvester: services.harvester.Harvester) -> tuple[date, date]:
        """The first and the last day; by default from 1 January to today. Raises UsageError."""
        last = self.end or harvester.today()
        first = self.begin or last.replace(month=1, day=1)
        if first > last:
            raise click.UsageError(f"--from {first} is after --to {last}.")
        return first, last


_period_options = options_as(
    "period",
    _Period,
    click.option("--from", "begin", metavar="YYYY-MM-DD", callback=day, help="The first day. [default: 1 January]"),
    click.option("--to", "end", metavar="YYYY-MM-DD", callback=day, help="The last day. [default: today]"),
)


@click.command("figures")
@_period_options
@click.option("--per", type=click.Choice(["week", "month", "site"]), help="A row for each of these.")
@layout_options
@json_or_csv("A table on stdout.")
def figures_command(invocation: Invocation, period: _Period, per: str | None, form: OutputForm) -> None:
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
    tables = services.tables
    first, last = period.days(invocation.harvester)
    found = invocation.harvester.read(queries.figures.figures, first, last, queries.figures.Per(per) if per else None)
    if print_for_program(form, found, lambda: tables.records_csv(tables.names_of(queries.figures.Figures), found)):
        return
    if per is None:
        print_fields(_figures_in_words(found[0]))
    elif not found:
        click.echo(f"No site was harvested from {first} to {last}.")
    else:
        heading = Column("site") if per == "site" else Column("from")
        rows = [[each.site if per == "site" else each.first_day, *_figure_row(each)] for each in found]
        print_table([heading, *_COLUMNS.values()], rows)


def _figure_row(each: queries.figures.Figures) -> list[object]:
    shown = {**asdict(each), "took_seconds": took(each.took_seconds)}
    return [f"{value:,}" if isinstance(value := shown[name], int) else value for name in _COLUMNS]


def _period_in_words(found: queries.figures.Figures | queries.figures.YearFigures) -> dict[str, object]:
    return {
        "from": found.first_day,
        "to": found.last_day,
        "runs": f"{found.number_of_runs:,}",
        "sites harvested": f"{found.number_of_sites:,}",
        "harvests": f"{found.harvests:,}, of which {found.failed_harvests:,} failed as a whole",
    }


def _figures_in_words(each: queries.figures.Figures) -> dict[str, object]:
    return {
        **_period_in_words(each),
        "documents new": f"{each.inserted:,}",
        "documents updated": f"{each.updated:,}",
        "documents deleted": f"{each.deleted:,}",
        "documents failing": f"{each.failing:,}",
        "bytes that went in": f"{each.bytes:,}",
        "time of the harvests": took(each.took_seconds),
        "last success": each.last_success or "none",
    }


# -- year

_SITE_COLUMNS = (
    Column("site"),
    Column("harvests", 6),
    Column("failed", 5),
    Column("without errors", 2),
    Column("new", 1),
    Column("updated", 7),
    Column("deleted", 8),
    Column("last success", 4),
)
_RULE_COLUMNS = (Column("rule"), Column("documents", 1), Column("sites", 2), Column("problems", 3))


@click.command("year")
@_period_options
@layout_options
@json_or_csv("A table on stdout, a line for each site.")
def year_command(invocation: Invocation, period: _Period, form: OutputForm) -> None:
    """Show how a year, or another period, went: harvests without errors, documents in and deleted, days until a
    problem was fixed, silent sites, the most frequent rules.

    Silent sites are switched on, and had no harvest that succeeded. `figures` has the trend by week or month.

    \b
    Examples:
      metaharvest year
      metaharvest year --from 2026-01-01 --to 2026-12-31 --csv
    """
    first, last = period.days(invocation.harvester)
    found = invocation.harvester.read(queries.figures.year_figures, first, last)
    if form is OutputForm.JSON:
        sites = [{**asdict(each), "share_well": each.share_well} for each in found.sites]
        print_json({**asdict(found), "share_well": found.share_well, "sites": sites})
    elif form is OutputForm.CSV:
        print_csv(services.tables.records_csv(queries.figures.SITE_COLUMNS, found.sites))
    else:
        _print_year(found)


def _print_year(found: queries.figures.YearFigures) -> None:
    print_fields(_year_in_words(found))
    if found.sites:
        click.echo()
        print_table(
            _SITE_COLUMNS,
            [
                [each.site, each.harvests, each.failed_harvests, _share(each.share_well), each.inserted, each.updated,
                 each.deleted, each.last_success or "none"]
                for each in found.sites
            ],
        )  # fmt: skip
    if found.rules:
        click.echo()
        numbers = ["number_of_documents", "number_of_sites", "number_of_problems"]
        print_table(_RULE_COLUMNS, [[each.rule, *(getattr(each, name) for name in numbers)] for each in found.rules])


def _year_in_words(found: queries.figures.YearFigures) -> dict[str, object]:
    fixed = f"{found.fixed:,}"
    if found.fixed:
        days = "day" if found.days_until_fixed == 1 else "days"
        last = counted(found.most_days_until_fixed or 0, "day")
        fixed += f", half of them within {found.days_until_fixed:g} {days}, the last one after {last}"
    return {
        **_period_in_words(found),
        "harvests without any error": f"{found.went_well:,} ({_share(found.share_well)})",
        "documents new": f"{found.inserted:,}",
        "documents updated": f"{found.updated:,}",
        "documents deleted": f"{found.deleted:,}",
        "documents withdrawn": f"{found.withdrawn:,}",
        "problems fixed": fixed,
        "silent sites": ", ".join(found.silent) or "none",
    }


def _share(share: float | None) -> str:
    return "none" if share is None else f"{share * 100:.1f} %"
