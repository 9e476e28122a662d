"""`metaharvest export`: sites, failing documents, problems, runs and deliveries as one file."""

from __future__ import annotations

from pathlib import Path

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.text import clean


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
    from metaharvest.services.export import write_workbook

    try:
        written = write_workbook(invocation.harvester, file)
    except OSError as error:
        raise click.FileError(str(file), error.strerror) from error
    counts = ", ".join(f"{number:,} {name}" for name, number in written.items())
    click.echo(clean(f"Wrote {file}. Rows: {counts}."))
