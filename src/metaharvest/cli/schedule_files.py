"""`metaharvest sites export`, `import` and `import-metacat`: the schedule in files, and of a Metacat Harvester."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import AS_JSON, Invocation, file_errors
from metaharvest.cli.printing import print_json, print_line
from metaharvest.cli.site_options import LOST_LOGIN, warn_of_far_date
from metaharvest.model.mappings import picked
from metaharvest.text import clean, counted, one_line, shown_url


@click.command("export")
@click.option("--csv", "as_csv", is_flag=True, help="As CSV, for spreadsheets. [default: JSON]")
@click.option("--json", "as_json", is_flag=True, help="As JSON. This is the default.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), help="A file. [default: stdout]"
)
@click.option("--with-logins", is_flag=True, help="With the user names and passwords in the URLs of sites.")
def export_sites(invocation: Invocation, as_csv: bool, as_json: bool, output: Path | None, with_logins: bool) -> int:
    """Write all sites into a file, with all their registered values.

    `sites import` registers them in another installation. Exit code 1 if a row of the schedule cannot be exported.

    \b
    Examples:
      metaharvest sites export -o sites.json
      metaharvest sites export --csv -o sites.csv
    """
    if as_csv and as_json:
        raise click.UsageError("Use one of --json and --csv.")
    done = services.schedule_files.export_file(invocation.harvester, as_csv=as_csv, with_logins=with_logins)
    if output is None or str(output) == "-":
        click.echo(done.content, nl=False)
    else:
        output.write_bytes(done.content)
        click.echo(f"Wrote {counted(done.sites, 'site')} to {output}.", err=True)
    if done.without_login:
        names = ", ".join(done.without_login)
        print_line(f"Exported without the login in the URL, which --with-logins writes: {names}.", err=True)
    for name in done.broken:
        print_line(
            f"{name} is not exported: its row cannot be used, and `metaharvest sites show NAME` says why.", err=True
        )
    return 1 if done.broken else 0


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Say what would become of each site, and write nothing.")
@click.option("--allow-duplicate", is_flag=True, help="Also register a list, or a set, that another site has.")
@AS_JSON
def import_sites(invocation: Invocation, file: Path, dry_run: bool, allow_duplicate: bool, as_json: bool) -> None:
    """Register the sites of a file that `sites export` wrote, or a spreadsheet: all of them, or none.

    FILE is JSON or CSV; `-` is stdin. The name identifies a site: new sites are added, others are changed. Values that
    are not in the file stay. A second import of the file changes nothing.

    \b
    Examples:
      metaharvest sites import sites.json --dry-run
      metaharvest sites import sites.csv
    """
    harvester = invocation.harvester
    imported = services.schedule_files.import_file(
        harvester, _content(file), dry_run=dry_run, allow_duplicates=allow_duplicate
    )
    done = imported.changes
    if as_json:
        mappings = [
            {"site": each.name, "verdict": each.verdict, "changes": list(map(": ".join, _changes(each)))}
            for each in done
        ]
        print_json({"dry_run": dry_run, "imported": mappings})
        return
    for change in done:
        if change.verdict == "unchanged":
            continue
        print_line(f"{change.name}: {change.verdict}.")
        for name, values in _changes(change):
            click.echo(clean(f"  {name.replace('_', ' ')}: {values}"))
        if change.lost_login:
            click.echo(LOST_LOGIN)
    counts = {verdict: sum(each.verdict == verdict for each in done) for verdict in ("added", "changed", "unchanged")}
    number = counted(len(done), "site")
    click.echo(f"{number}: {counts['added']} added, {counts['changed']} changed, {counts['unchanged']} unchanged.")
    if dry_run:
        click.echo("Nothing was written (--dry-run).")
        return
    for site in imported.with_new_date:
        warn_of_far_date(site, harvester.today())


def _content(file: Path) -> bytes:
    """The content of a file, or of stdin; nothing if there is no stdin. Raises FileError."""
    from metaharvest.config.files import read_file

    if str(file) == "-":
        pipe: BinaryIO | None = getattr(sys.stdin, "buffer", None)
        return pipe.read() if pipe else b""
    with file_errors(file):
        return read_file(file, services.schedule_files.MOST_BYTES)


def _changes(change: services.schedule_files.SiteChange) -> Iterable[tuple[str, str]]:
    return ((name, f"{_shown(before)} -> {_shown(after)}") for name, (before, after) in change.changes.items())


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items() if each not in (None, [], False))
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return one_line(shown_url(str(value)), 500) if value not in (None, "") else "none"


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
@AS_JSON
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
    if (database is None) == (file is None):
        raise click.UsageError("Name the tables: one of --database and --csv.")
    if file is not None and password:
        raise click.UsageError("--password goes with --database.")
    harvester = invocation.harvester
    opened = (
        nullcontext(services.schedule_files.CsvTables(file))
        if file is not None
        else services.schedule_files.database_tables(database or "", password, Path.cwd())
    )
    with opened as tables:
        done = services.schedule_files.import_metacat(
            harvester, tables, log=log, dry_run=dry_run, start=invocation.start
        )
    if as_json:
        print_json(_import_mapping(done, dry_run))
    else:
        _print_import(done, dry_run, invocation.start)
    return 1 if done.totals["refused"] or (done.log and done.log.refused) else 0


def _print_import(done: services.schedule_files.MetacatImport, dry_run: bool, start: str) -> None:
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
    for number, line in enumerate(lines):
        click.echo(f"{'    ' if number else ''}{one_line(line, _LONGEST_LINE)}")


def _lines(row: services.schedule_files.ImportedRow) -> Iterable[str]:
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


def _log_lines(log: services.schedule_files.ImportedLog, start: str) -> Iterable[str]:
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


def _import_mapping(done: services.schedule_files.MetacatImport, dry_run: bool) -> dict[str, Any]:
    keys = "row=place site_schedule_id=schedule_id verdict=verdict.value site list_url changes reasons to_do"
    rows = [picked(row, keys) | {"site": row.site or None} for row in done.rows]
    return {"dry_run": dry_run, "rows": rows, "totals": done.totals, "log": done.log}
