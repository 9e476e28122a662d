"""`metaharvest sites import-metacat`: imports the schedule, and the log, of a Metacat Harvester."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.printing import print_json
from metaharvest.model.mappings import picked
from metaharvest.text import counted, one_line

if TYPE_CHECKING:
    from metaharvest.services.schedule_files import ImportedLog, ImportedRow, MetacatImport

_SOME_REFUSED = 1
_LONGEST_LINE = 4000


@click.command("import-metacat")
@click.option(
    "--database", metavar="URL", help="Metacat's database: postgresql+psycopg://..., mysql+pymysql://..., sqlite:///..."
)
@click.option(
    "--password",
    metavar="REFERENCE",
    default="",
    help="Where the database's password is: env:NAME, file:PATH or keyring:SERVICE/USERNAME.",
)
@click.option(
    "--csv",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="HARVEST_SITE_SCHEDULE as a CSV file, whose first line names the columns.",
)
@click.option(
    "--log",
    is_flag=True,
    help="Take over HARVEST_LOG and HARVEST_DETAIL_LOG too; with --csv they lie beside that file, as HARVEST_LOG.csv "
    "and HARVEST_DETAIL_LOG.csv.",
)
@click.option("--dry-run", is_flag=True, help="Say what would become of each row, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def import_metacat(
    invocation: Invocation,
    /,
    database: str | None,
    password: str,
    file: Path | None,
    log: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Import the schedule of a Metacat Harvester.

    Reports for each row what was taken, changed or refused, and why. A second import adds no site twice. Passwords are
    never imported. Exit code 1 if a row was refused.
    """
    from metaharvest.services import schedule_files

    if (database is None) == (file is None):
        raise click.UsageError("Name the tables: one of --database and --csv.")
    if file is not None and password:
        raise click.UsageError("--password goes with --database.")
    harvester = invocation.harvester
    opened = (
        nullcontext(schedule_files.CsvTables(file))
        if file is not None
        else schedule_files.database_tables(database or "", password, Path.cwd())
    )
    with opened as tables:
        done = schedule_files.import_metacat(harvester, tables, log=log, dry_run=dry_run, start=invocation.start)
    if as_json:
        print_json(_as_mapping(done, dry_run))
    else:
        _print(done, dry_run, invocation.start)
    return _SOME_REFUSED if done.totals["refused"] or (done.log and done.log.refused) else 0


def _print(done: MetacatImport, dry_run: bool, start: str) -> None:
    for row in done.rows:
        _print_lines(_lines(row))
    totals = done.totals
    if done.rows:
        click.echo()
    click.echo(
        f"{totals['rows']:,} rows: {totals['taken']:,} taken as they are, {totals['changed']:,} taken with changes, "
        f"{totals['present']:,} registered already, {totals['refused']:,} refused."
    )
    if done.log is not None:
        _print_lines(_log_lines(done.log, start))
    if dry_run:
        click.echo("Nothing was written (--dry-run).")


def _print_lines(lines: Iterable[str]) -> None:
    """Print the first line, and the others below it."""
    for number, line in enumerate(lines):
        click.echo(f"{'    ' if number else ''}{one_line(line, _LONGEST_LINE)}")


def _lines(row: ImportedRow) -> Iterable[str]:
    what = {
        "taken": f"taken as {row.site}",
        "changed": f"taken as {row.site}, with changes",
        "present": f"registered already, as {row.site}",
        "refused": "refused",
    }
    yield f"{row.place} ({row.list_url or 'no list'}): {what[row.verdict]}."
    yield from (f"Changed: {change}." for change in row.changes)
    yield from row.reasons
    yield from (f"What to do: {what_to_do}" for what_to_do in row.to_do)


def _log_lines(log: ImportedLog, start: str) -> Iterable[str]:
    yield (
        f"{counted(log.rows, 'log row')}: {log.taken:,} taken, {log.present:,} there already, {log.too_old:,} too old, "
        f"{log.refused:,} refused. {counted(log.details, 'detail row')}: {log.details_taken:,} taken with them, "
        f"{log.details_left_out:,} left out with others."
    )
    yield from log.reasons
    if log.refused > len(log.reasons):
        yield f"And {log.refused - len(log.reasons):,} more were refused."
    if log.too_old:
        yield "Too old: the next run would delete them. log_period_days in [harvester] says how long rows are kept."
    if log.without_site:
        yield f"{log.without_site:,} of the imported rows belong to no registered site."
    if log.run_id is not None:
        yield f"They are in the log of run {log.run_id}: {start} log --run {log.run_id}"


def _as_mapping(done: MetacatImport, dry_run: bool) -> dict[str, Any]:
    keys = "row=place site_schedule_id=schedule_id verdict=verdict.value site list_url changes reasons to_do"
    rows = [picked(row, keys) | {"site": row.site or None} for row in done.rows]
    return {"dry_run": dry_run, "rows": rows, "totals": done.totals, "log": done.log and done.log.as_mapping}
