"""`metaharvest works`: the outputs that are the same, and the decisions of people about them."""

from __future__ import annotations

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import ROWS, Invocation, trimmed, usage_errors
from metaharvest.cli.printing import Column, print_json, print_line, print_table, table_options
from metaharvest.queries.json_keys import as_mapping

_HEADINGS = (Column("document"), Column("year", 2), Column("source", 3), Column("title", 1, wrap=True))
_PAIR_HEADINGS = (Column("document"), Column("other"), Column("answer", 1), Column("reason", 2, wrap=True))


@click.group("works")
def command() -> None:
    """Show works: the outputs that are the same. Decide about pairs that the rules leave to people.

    Example: metaharvest works look
    """


@command.command("show")
@click.argument("document", metavar="DOCUMENT", callback=trimmed)
@table_options
@click.pass_obj
def show(invocation: Invocation, document: str, as_json: bool) -> None:
    """Show the work of a document: the outputs that are the same, other versions, and the reasons.

    Example: metaharvest works show ren-alder.5
    """
    found = services.works.show(invocation.harvester, document)
    if as_json:
        print_json(as_mapping(found))
    else:
        _print_work(found)


@command.command("look")
@click.option("--limit", type=ROWS, default=50, show_default=True, metavar="N", help="The first N.")
@click.option("--after", default="", metavar="PLACE", help="The next page: after the place that the last one names.")
@table_options
@click.pass_obj
def look(invocation: Invocation, limit: int, after: str, as_json: bool) -> None:
    """List pairs of outputs that may be the same: the rules leave them to a person, and nobody has decided yet.

    Example: metaharvest works look --limit 10
    """
    with usage_errors():
        page = services.works.to_look_at(invocation.harvester, after, limit)
    if as_json:
        print_json(as_mapping(page))
        return
    if not page.pairs:
        click.echo("No pair waits for a decision.")
        return
    for pair in page.pairs:
        print_line(f"{pair.first.document_id}  {pair.first.year or ''}  {pair.first.title}")
        print_line(f"{pair.second.document_id}  {pair.second.year or ''}  {pair.second.title}")
        print_line(pair.reason, indent=4)
        click.echo()
    click.echo("`metaharvest works decide --help` says how to decide about two of them.")
    if page.next:
        print_line(f"There are more: --after {page.next}")


@command.command("decide")
@click.argument("first", metavar="DOCUMENT", callback=trimmed)
@click.argument("second", metavar="DOCUMENT", callback=trimmed)
@click.option("--same", "answer", flag_value="same", help="Both are the same output: they come into one work.")
@click.option("--different", "answer", flag_value="different", help="They are never in one work.")
@click.option("--related", "answer", flag_value="related", help="Each is shown as related to the other.")
@click.option("--unrelated", "answer", flag_value="unrelated", help="Neither is shown as related to the other.")
@click.option("--undo", "answer", flag_value="undo", help="Take the decisions about them back: the rules decide.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for the audit and for readers.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout: the work of the first one.")
@click.pass_obj
def decide(invocation: Invocation, first: str, second: str, answer: str | None, reason: str, as_json: bool) -> None:
    """Decide about two outputs. The decision holds whatever the rules say, also for later revisions.

    \b
    Examples:
      metaharvest works decide ren-alder.5 ren-alder.3 --different --reason "Other plots."
      metaharvest works decide ren-alder.5 ren-alder.3 --undo
    """
    if answer is None:
        raise click.UsageError("Use one of --same, --different, --related, --unrelated and --undo.")
    given = None if answer == "undo" else services.works.WorkAnswer(answer)
    with usage_errors():
        found = services.works.decide(invocation.harvester, services.works.WorkDecision(first, second, given, reason))
    if as_json:
        print_json(as_mapping(found))
    else:
        what = "No decision holds any more" if given is None else f"Your decision holds: {given.value}"
        print_line(f"{what}. {first} is in a work of {len(found.outputs)} output{'s' * (len(found.outputs) != 1)}.")


def _print_work(found: queries.works.WorkRecord) -> None:
    print_table(
        _HEADINGS, [[each.document_id, each.year, each.origin or "harvest list", each.title] for each in found.outputs]
    )
    if found.pairs:
        click.echo()
        print_table(_PAIR_HEADINGS, [_pair_row(each) for each in found.pairs])
    for each in found.related:
        print_line(f"{each.first.document_id} and {each.second.document_id}: {each.decided}. {_decision(each)}")


def _pair_row(pair: queries.works.PairLine) -> list[object]:
    if pair.decided is None:
        return [pair.first.document_id, pair.second.document_id, pair.answer, pair.reason]
    return [pair.first.document_id, pair.second.document_id, pair.decided, _decision(pair)]


def _decision(pair: queries.works.PairLine) -> str:
    return f"Decided by {pair.decided_by}. {pair.decision_reason or ''}".strip()
