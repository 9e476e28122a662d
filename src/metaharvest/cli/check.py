"""`metaharvest check`: a rehearsal for site contacts: what would tomorrow's report say?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.printing import print_json
from metaharvest.errors import NotAHarvestList
from metaharvest.text import clean

if TYPE_CHECKING:
    from metaharvest.app import Harvester
    from metaharvest.queries.runs import RunRecord


@click.command("check")
@click.argument("harvest_list", metavar="URL-or-FILE")
@click.option(
    "--site", "as_site", metavar="NAME", help="Rehearse as this registered site (default: the one of the URL)."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--csv", "as_csv", is_flag=True, help="The table of documents, as CSV on stdout.")
@click.pass_obj
def command(invocation: Invocation, harvest_list: str, as_site: str | None, as_json: bool, as_csv: bool) -> int:
    """Rehearse the harvest of a list, at its URL or in a file: what would tomorrow's report say?

    Every document is fetched and checked as at night; nothing is written, and no database is needed. Where there is
    one, it says what the repository has already, and which settings the site has.

    Exit codes: 0 all is well; 1 the list cannot be read, or documents have errors; 2 settings or usage.
    """
    from metaharvest.harvest.dry_run import list_url_of

    try:
        list_url_of(harvest_list)
        if as_json and as_csv:
            raise click.UsageError("--json and --csv are two ways to print the same: use one of the two.")
        return _check(invocation, harvest_list, as_site, as_json, as_csv)
    except NotAHarvestList as error:
        raise click.UsageError(str(error)) from None


def _check(invocation: Invocation, harvest_list: str, as_site: str | None, as_json: bool, as_csv: bool) -> int:
    """The rehearsal, and what is printed about it; the exit code."""
    from metaharvest.cli.progress import rehearsed

    harvester = invocation.harvester
    if error := harvester.database_error:
        # What would have to be done about it is nothing for the contact of a site, who needs none.
        why = str(error).partition(". ")[0].rstrip(".")
        click.echo(clean(f"Rehearsing without a database, so every document counts as new. ({why}.)"), err=True)
    with rehearsed(lambda progress: harvester.check(harvest_list, as_site, progress)) as (scratch, record):
        _print(scratch, record, as_json, as_csv)
    return 1 if record.failed_as_a_whole or record.has_document_errors else 0


def _print(scratch: Harvester, record: RunRecord, as_json: bool, as_csv: bool) -> None:
    from metaharvest.queries.runs import findings_of
    from metaharvest.reports import documents_csv

    site_run_id = record.sites[0]["site_run_id"]
    if not as_json and not as_csv:
        report = scratch.site_report(site_run_id)
        click.echo(clean(f"{report.subject}\n\n{report.text}"))
        click.echo("This was a rehearsal: nothing was written, no mail was sent. --csv prints the table.")
        return
    with scratch.reading() as session:
        if as_json:
            print_json({**record.as_mapping, "findings": findings_of(session, record.run["run_id"])})
        else:
            for chunk in documents_csv(session, site_run_id):
                click.echo(chunk, nl=False)
