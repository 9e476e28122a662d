"""`metaharvest database`: copies everything into another database, and repairs dates."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.printing import print_json
from metaharvest.cli.tables import print_table
from metaharvest.text import counted

if TYPE_CHECKING:
    from metaharvest.services.installation import CopiedTable


@click.group("database")
def command() -> None:
    """Copy everything into another database, or repair dates that a wrong clock has left behind."""


@command.command("copy")
@click.option(
    "--to",
    "url",
    metavar="URL",
    required=True,
    help="The new database, which must be empty: sqlite:///FILE, postgresql+psycopg://USER@HOST/NAME or "
    "mysql+pymysql://USER@HOST/NAME. A relative path starts at the settings file.",
)
@click.option(
    "--password",
    metavar="REFERENCE",
    default="",
    help="Where its password is: env:NAME, file:PATH or keyring:SERVICE/USERNAME.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def copy(invocation: Invocation, url: str, password: str, as_json: bool) -> None:
    """Copy everything into another database: schedule, log, ledger, reports, documents. The old one stays as it is.

    Nothing is harvested meanwhile. An interrupted copy continues when the same command is given again. In the end both
    databases are compared, table by table.

    \b
    Examples:
      metaharvest database copy --to postgresql+psycopg://harvest@db.example.org/metaharvest --password env:DB_PASSWORD
      metaharvest database copy --to sqlite:///copy.db
    """

    from metaharvest.services import installation

    def report(table: CopiedTable) -> None:
        if sys.stderr.isatty():
            kept = f" ({table.copied_before:,} of them before)" if table.copied_before else ""
            click.echo(f"{table.table}: {counted(table.copied, 'row')}{kept}", err=True)

    copied = installation.copy_database(invocation.harvester, url, password, report)
    if as_json:
        print_json({"tables": [asdict(table) for table in copied], "rows": sum(table.copied for table in copied)})
        return
    print_table(["table", "rows", "copied"], [[each.table, each.rows, each.copied] for each in copied])
    click.echo("\nEverything was copied, and both come to the same. To use the new database, write into the settings:")
    click.echo("\n[database]")
    click.echo(f'url = "{url}"')
    if password:
        click.echo(f'password = "{password}"')
    click.echo(f"\nThen check whether all is well: {invocation.start} doctor")


@command.command("repair-dates")
@click.pass_obj
def repair_dates(invocation: Invocation) -> None:
    """Move dates that lie in the future to today. A wrong clock, or a mistyped --date, leaves such dates.

    Sites whose last harvest lies in the future are due today. Runs, log rows, documents and problems are moved as well.
    Correct the clock first. A date of yours stays: a next harvest in the future, of a site harvested in the past.
    """
    from metaharvest.services import installation

    repaired = installation.repair_dates(invocation.harvester)
    today = invocation.harvester.today()
    if not repaired:
        click.echo(f"No date lies in the future: today is {today} by the harvester's clock.")
        return
    counts = ", ".join(f"{number:,} {what}" for what, number in repaired.items())
    click.echo(f"Moved to {today}, which is today by the harvester's clock: {counts}.")
    if "sites" in repaired:
        click.echo("The next run harvests these sites.")
