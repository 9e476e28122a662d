"""`metaharvest decisions`: who changed what, before and after."""

from __future__ import annotations

from datetime import date, datetime, time

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import ROWS, Form, Invocation, day, json_or_csv
from metaharvest.cli.printing import print_csv, print_json_rows, print_line, stamp
from metaharvest.text import one_line

_SHOWN_TO_PEOPLE = 50
_LONGEST_VALUE = 300


@click.command("decisions")
@click.option("--site", metavar="NAME", help="Decisions about this site, under any of its names.")
@click.option("--actor", metavar="NAME", help="Decisions of this person: a user of the system, or an address.")
@click.option("--action", metavar="ID", help="Decisions of this kind, such as sites.edit.")
@click.option("--since", metavar="YYYY-MM-DD", callback=day, help="Decisions of this day and after.")
@click.option(
    "--limit", type=ROWS, metavar="N", help=f"The newest N. [default: {_SHOWN_TO_PEOPLE}, with --json and --csv all]"
)
@click.option("--after", type=click.IntRange(min=1), metavar="ID", help="The next page: decisions before this one.")
@json_or_csv("A table, a line for each decision.")
@click.pass_obj
def command(
    invocation: Invocation,
    site: str | None,
    actor: str | None,
    action: str | None,
    since: date | None,
    limit: int | None,
    after: int | None,
    form: Form,
) -> None:
    """List who has changed what, and when: before and after, the newest first.

    \b
    Examples:
      metaharvest decisions --site alder-creek
      metaharvest decisions --since 2026-11-01 --csv
    """
    harvester = invocation.harvester
    zone = harvester.settings.harvester.zone
    with harvester.reading() as session:
        wanted = queries.decisions.DecisionFilter(
            site_id=None if site is None else queries.decisions.number_of_site(session, site),
            actor=actor,
            action=action,
            since=None if since is None else datetime.combine(since, time(), zone),
        )
        shown = limit if form is not Form.TEXT else (limit or _SHOWN_TO_PEOPLE)
        found = queries.decisions.decisions(session, wanted, shown, after)
        if form is Form.JSON:
            print_json_rows(found)
        elif form is Form.CSV:
            print_csv(services.tables.decisions_csv(found))
        else:
            _print(list(found), shown)


def _print(found: list[queries.decisions.DecisionRecord], limit: int | None) -> None:
    if not found:
        click.echo("There is no such decision.")
    for each in found:
        reason = f" ({one_line(each.reason)})" if each.reason else ""
        by = f"{each.actor or 'name not known'}, {each.via}"
        print_line(f"{stamp(each.at)} UTC  {by}: {each.action} {each.subject}{reason}")
        for name, before, after in each.changes:
            words = (services.tables.value_in_words(value, _LONGEST_VALUE) for value in (before, after))
            print_line(f"{name}: {' -> '.join(words)}", indent=2)
    if limit is not None and len(found) == limit:
        print_line(f"The next page: the same command with --after {found[-1].decision_id}", err=True)
