"""`metaharvest problems`: the open problems of all sites, by rule."""

from __future__ import annotations

from dataclasses import asdict

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import Form, Invocation, json_or_csv
from metaharvest.cli.printing import Column, layout_options, print_csv, print_json, print_table
from metaharvest.text import one_line

_HEADINGS = (
    Column("rule"),
    Column("documents", 1),
    Column("sites", 2),
    Column("since", 4),
    Column("level", 5),
    Column("what it is", 3, wrap=True),
)


@click.command("problems")
@click.option("--site", metavar="NAME", help="Only problems of this site. [default: all registered sites]")
@layout_options
@json_or_csv("A table on stdout, a line for each rule.")
@click.pass_obj
def command(invocation: Invocation, site: str | None, form: Form) -> None:
    """Count the open problems by rule: the number of documents and sites, and the first day.

    `documents --rule RULE` lists the documents of a rule.

    \b
    Examples:
      metaharvest problems
      metaharvest problems --site basalt-flats --csv
    """
    with invocation.harvester.reading() as session:
        found = queries.problems.open_problems(session, site)
    if form is Form.JSON:
        print_json([asdict(each) for each in found])
    elif form is Form.CSV:
        print_csv(services.tables.problems_csv(found))
    elif not found:
        click.echo(f"Nothing is wrong at {'any site' if site is None else one_line(site)}.")
    else:
        print_table(_HEADINGS, [_row(each) for each in found])


def _row(each: queries.problems.RuleTotal) -> list[object]:
    weight = "needs attention" if each.needs_attention else "warning"
    return [
        each.rule,
        each.number_of_documents or "",
        each.site or each.number_of_sites,
        each.first_seen,
        weight,
        each.rule_title,
    ]
