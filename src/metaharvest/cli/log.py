"""`metaharvest log`: the journal, row by row, with the findings under each; or its tables as CSV."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.invocation import ROWS, Invocation
from metaharvest.cli.printing import print_json
from metaharvest.model import LOG_LEVELS
from metaharvest.text import one_line

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from metaharvest.queries.log import LogFilter
    from metaharvest.queries.records import Record

_SHOWN_TO_PEOPLE = 200


@click.command("log")
@click.option("--run", "run_id", type=click.IntRange(min=1), metavar="N", help="A run. [default: the newest]")
@click.option("--site-run", "site_run_id", type=click.IntRange(min=1), metavar="N", help="One site's part of a run.")
@click.option("--site", metavar="NAME", help="A site; without --run, the newest run that harvested it.")
@click.option("--document", metavar="DOCID", help="A document, with or without its revision; without --run, all runs.")
@click.option(
    "--level", type=click.Choice(LOG_LEVELS), default="info", show_default=True, help="This level, and graver ones."
)
@click.option(
    "--limit", type=ROWS, metavar="N", help=f"The last N rows. [default: {_SHOWN_TO_PEOPLE}, with --json all]"
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option(
    "--csv",
    "as_csv",
    is_flag=True,
    help="The table of a site run's documents, or with --run the whole log of that run.",
)
@click.option("--all", "unchanged", is_flag=True, help="With --csv and a site run: unchanged documents too.")
@click.pass_context
def command(context: click.Context, /, as_json: bool, as_csv: bool, unchanged: bool, **options: Any) -> None:
    """Read the log: what happened, and what was found wrong with which document."""
    from metaharvest.queries.log import LogFilter, log_entries

    wanted = LogFilter(**options)
    _check_options(context, wanted, as_json, as_csv, unchanged)
    invocation: Invocation = context.obj
    with invocation.harvester.reading() as session:
        if as_csv:
            _write_csv(session, wanted, unchanged)
        elif as_json:
            print_json(log_entries(session, wanted))
        else:
            _print(session, wanted)


def _check_options(context: click.Context, wanted: LogFilter, as_json: bool, as_csv: bool, unchanged: bool) -> None:
    if wanted.run_id is not None and wanted.site_run_id is not None:
        raise click.UsageError("--site-run already says which run: leave out --run.")
    if as_json and as_csv:
        raise click.UsageError("Use one of --json and --csv.")
    level_given = context.get_parameter_source("level") is not click.core.ParameterSource.DEFAULT
    if as_csv and (wanted.document or wanted.limit or level_given):
        raise click.UsageError("--csv writes a whole table: leave out --document, --level and --limit.")
    if unchanged and not (as_csv and (wanted.site_run_id or wanted.site)):
        raise click.UsageError("--all goes with --csv and --site-run (or --site): it lists unchanged documents too.")


def _print(session: Session, wanted: LogFilter) -> None:
    from metaharvest.queries.log import log_entries

    limit = wanted.limit or _SHOWN_TO_PEOPLE
    entries = log_entries(session, replace(wanted, limit=limit + 1))
    if not entries:
        click.echo("The log has nothing of that.")
    if len(entries) > limit:
        click.echo(f"Only the last {limit:,} rows are shown; --limit shows more, --csv writes all of them.", err=True)
    for entry in entries[-limit:]:
        click.echo("\n".join(_lines(entry)))


def _lines(entry: Record) -> Iterable[str]:
    site = f"{one_line(entry['site'])}: " if entry["site"] else ""
    told = one_line(_message(entry), 2000)
    yield f"{entry['logged_at']:%Y-%m-%d %H:%M:%S}  {entry['level']:<7}  {entry['operation']:<26}  {site}{told}"
    for finding in entry["findings"]:
        line = "" if finding["line_number"] is None else f", line {finding['line_number']}"
        message = one_line(finding["error_message"], 2000)
        yield f"{'':21}{finding['level']}{line}: {message} [{finding['rule']}]"
        if finding["excerpt"]:
            yield f"{'':23}{one_line(finding['excerpt'])}"
        if finding["remedy"]:
            yield f"{'':23}What to do: {one_line(finding['remedy'], 2000)}"


def _message(entry: Record) -> str:
    """The row's message, without what the findings under it say again."""
    message: str = entry["message"]
    for finding in entry["findings"]:
        if len(finding["error_message"]) < len(message):
            message = message.removesuffix(finding["error_message"]).rstrip()
    return message


def _write_csv(session: Session, wanted: LogFilter, unchanged: bool) -> None:
    from metaharvest.errors import MetaharvestError
    from metaharvest.queries.log import log_scope
    from metaharvest.queries.runs import newest_run_id
    from metaharvest.reports import documents_csv, log_csv

    run_id, site_run_id = log_scope(session, wanted)
    run_id = newest_run_id(session) if run_id is None else run_id
    if site_run_id is not None:
        chunks = documents_csv(session, site_run_id, unchanged=unchanged)
    elif run_id is not None:
        chunks = log_csv(session, run_id)
    else:
        raise MetaharvestError("There has been no run yet, so there is no log.")
    for chunk in chunks:
        click.echo(chunk.encode("utf-8", "replace"), nl=False)
