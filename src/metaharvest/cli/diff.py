"""`metaharvest diff`: what changed between two runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import Form, Invocation, json_or_csv
from metaharvest.cli.printing import Column, layout_options, print_csv, print_json, print_line, print_table
from metaharvest.text import one_line

_TITLES = {
    "newly_failing": "Newly failing",
    "still_failing": "Still failing",
    "fixed": "Fixed",
    "inserted": "New",
    "updated": "Updated",
    "deleted": "Deleted",
}
_SHOWN_TO_PEOPLE = 20


@click.command("diff")
@click.argument("first", metavar="RUN", type=click.IntRange(min=1))
@click.argument("second", metavar="RUN", type=click.IntRange(min=1))
@click.option("--site", metavar="NAME", help="Only this site.")
@layout_options
@json_or_csv("A table on stdout, a line for each document.")
@click.pass_obj
def command(invocation: Invocation, first: int, second: int, site: str | None, form: Form) -> None:
    """Show the changes from one run to a later one: documents that came in or were deleted, new failures, repairs.

    A site that was not harvested in one of the runs is shown with its state at that time.

    \b
    Example:
      metaharvest diff 11 12
    """
    with invocation.harvester.reading() as session:
        found = queries.changes.changes(session, first, second, site)
    if form is Form.JSON:
        print_json(found)
    elif form is Form.CSV:
        print_csv(services.tables.changes_csv(found))
    else:
        _print(found)


def _print(found: queries.changes.Changes) -> None:
    runs = [f"run {each.run_id} ({each.harvest_date})" for each in (found.before, found.after)]
    click.echo(f"From {runs[0]} to {runs[1]}:")
    if not found.sites:
        click.echo("No site was harvested.")
        return
    stands = [Column("last harvest", 7), Column("listed", 9), Column("failing", 8)]
    changed = [Column(title.lower(), rank) for rank, title in enumerate(_TITLES.values(), start=1)]
    headings = [Column("site"), *stands, *changed]
    print_table(headings, [_row(site) for site in found.sites])
    for site in found.sites:
        for change, documents in groupby(site.documents, key=attrgetter("change")):
            _print_documents(site, change, list(documents))
        if not site.log_kept:
            print_line(f"{site.site}: the log of a harvest has been deleted; what failed in it is not shown.")


def _row(site: queries.changes.ChangedSite) -> list[object]:
    changed = [_changed(site.before, site.after, name) for name in ("status", "listed", "failing")]
    return [site.site, *changed, *(getattr(site.totals, change) or "" for change in _TITLES)]


def _changed(before: queries.trends.Harvest | None, after: queries.trends.Harvest | None, name: str) -> str:
    """`with-errors -> succeeded`; an unchanged value is shown once, an unknown one as `-`."""
    ends = ["-" if getattr(end, name) is None else str(getattr(end, name)) for end in (before, after) if end]
    return " -> ".join(dict.fromkeys(ends))


def _print_documents(
    site: queries.changes.ChangedSite, change: str, documents: Sequence[queries.changes.ChangedDocument]
) -> None:
    click.echo()
    print_line(f"{site.site}: {_TITLES[change]} ({len(documents):,})")
    for document in documents[:_SHOWN_TO_PEOPLE]:
        click.echo(f"  {document.docid}  {_in_words(document, change)}".rstrip())
    if len(documents) > _SHOWN_TO_PEOPLE:
        click.echo(f"  and {len(documents) - _SHOWN_TO_PEOPLE:,} more; --csv and --json name all of them")


def _in_words(document: queries.changes.ChangedDocument, change: str) -> str:
    was = document.rule_before or document.outcome_before
    if change == "fixed":
        return f"{document.outcome or 'unchanged, or listed no longer'} (before: {was})"
    if change not in ("newly_failing", "still_failing"):
        return ""
    rule = f" [{document.rule}]" if document.rule else ""
    differs = change == "still_failing" and document.rule != document.rule_before
    before = f" (before: {was})" if differs else ""
    return f"{document.outcome}: {one_line(document.message or '')}{rule}{before}"
