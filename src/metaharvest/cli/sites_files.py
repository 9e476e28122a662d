"""`metaharvest sites export` and `sites import`: the schedule as a file, JSON or CSV."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation, file_errors
from metaharvest.cli.printing import print_json, print_line
from metaharvest.cli.site_options import warn_of_far_date
from metaharvest.text import clean, counted, one_line, shown_url

if TYPE_CHECKING:
    from metaharvest.services.schedule_files import SiteChange

_SOME_LEFT_OUT = 1


@click.command("export")
@click.option("--csv", "as_csv", is_flag=True, help="As CSV, for spreadsheets. [default: JSON]")
@click.option("--json", "as_json", is_flag=True, help="As JSON. This is the default.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file. [default: stdout]")
@click.option("--with-logins", is_flag=True, help="With the user names and passwords in the URLs of sites.")
@click.pass_obj
def export_sites(invocation: Invocation, as_csv: bool, as_json: bool, output: Path | None, with_logins: bool) -> int:
    """Write all sites into a file, with all their registered values.

    `sites import` registers them in another installation. Exit code 1 if a row of the schedule cannot be exported.

    \b
    Examples:
      metaharvest sites export -o sites.json
      metaharvest sites export --csv -o sites.csv
    """
    from metaharvest.services import schedule_files

    if as_csv and as_json:
        raise click.UsageError("Use one of --json and --csv.")
    done = schedule_files.export_file(invocation.harvester, as_csv=as_csv, with_logins=with_logins)
    if output is None:
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
    return _SOME_LEFT_OUT if done.broken else 0


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Say what would become of each site, and write nothing.")
@click.option("--allow-duplicate", is_flag=True, help="Also register a list, or a set, that another site has.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def import_sites(invocation: Invocation, file: Path, dry_run: bool, allow_duplicate: bool, as_json: bool) -> None:
    """Register the sites of a file that `sites export` wrote, or a spreadsheet: all of them, or none.

    FILE is JSON or CSV; `-` is stdin. The name identifies a site: new sites are added, others are changed. Values that
    are not in the file stay. A second import of the file changes nothing.

    \b
    Examples:
      metaharvest sites import sites.json --dry-run
      metaharvest sites import sites.csv
    """
    from metaharvest.services import schedule_files

    harvester = invocation.harvester
    imported = schedule_files.import_file(harvester, _content(file), dry_run=dry_run, allow_duplicates=allow_duplicate)
    done = imported.changes
    if as_json:
        print_json({"dry_run": dry_run, "imported": [_as_mapping(change) for change in done]})
        return
    for change in done:
        if change.verdict == "unchanged":
            continue
        print_line(f"{change.name}: {change.verdict}.")
        for name, (before, after) in change.changes.items():
            click.echo(clean(f"  {name.replace('_', ' ')}: {_shown(before)} -> {_shown(after)}"))
    counts = {verdict: sum(each.verdict == verdict for each in done) for verdict in ("added", "changed", "unchanged")}
    number = counted(len(done), "site")
    click.echo(f"{number}: {counts['added']} added, {counts['changed']} changed, {counts['unchanged']} unchanged.")
    if dry_run:
        click.echo("Nothing was written (--dry-run).")
        return
    for site in imported.with_new_date:
        warn_of_far_date(site, harvester.today())


def _content(file: Path) -> bytes:
    """Raises FileError."""
    from metaharvest.config.files import read_file
    from metaharvest.services.schedule_files import MOST_BYTES

    if str(file) == "-":
        return sys.stdin.buffer.read()
    with file_errors(file):
        return read_file(file, MOST_BYTES)


def _as_mapping(change: SiteChange) -> dict[str, object]:
    return {
        "site": change.name,
        "verdict": change.verdict,
        "changes": [f"{name}: {_shown(before)} -> {_shown(after)}" for name, (before, after) in change.changes.items()],
    }


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(each)}" for name, each in value.items() if each not in (None, [], False))
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return one_line(shown_url(str(value)), 500) if value not in (None, "") else "none"
