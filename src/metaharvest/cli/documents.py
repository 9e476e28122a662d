"""`metaharvest documents` and `problems`: the state of documents and the open problems, over all sites; histories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import AS_JSON, ROWS, Invocation, OutputForm, json_or_csv, parsed, trimmed
from metaharvest.cli.printing import (
    Column,
    layout_options,
    print_fields,
    print_for_program,
    print_json,
    print_table,
    rows_of,
    wide_option,
)
from metaharvest.model import OutcomeKind
from metaharvest.text import clean, counted, one_line

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


_SHOWN_TO_PEOPLE = 200
_DOCUMENT_COLUMNS = (
    Column("document"),
    Column("site", 1),
    Column("outcome", 2),
    Column("since", 4),
    Column("nights", 5),
    Column("tries", 7),
    Column("what was found", 3, wrap=True),
    Column("title", 6, wrap=True),
)


@click.group("documents", invoke_without_command=True)
@click.option(
    "--failing",
    is_flag=True,
    help="Only documents that were not accepted, or were put off; without --site, of sites switched on.",
)
@click.option(
    "--for",
    "nights",
    type=click.IntRange(1, 100_000),
    metavar="NIGHTS",
    help="With --failing: for at least this number of nights, the first one counted.",
)
@click.option("--missing", is_flag=True, help="Only documents that a full list of their repository no longer names.")
@click.option("--site", metavar="NAME", help="Only documents of this site. [default: all registered ones]")
@click.option(
    "--rule", metavar="RULE", help="Only documents with a finding of this rule the last time, and only such findings."
)
@click.option(
    "--outcome",
    type=click.Choice([kind.value for kind in OutcomeKind if kind is not OutcomeKind.DUPLICATE]),
    callback=parsed(OutcomeKind),
    help="Only documents with this result the last time.",
)
@click.option(
    "--limit", type=ROWS, metavar="N", help=f"The first N. [default: {_SHOWN_TO_PEOPLE}, with --json and --csv all]"
)
@layout_options
@json_or_csv("A table on stdout, a line for each finding.")
def documents_command(invocation: Invocation, /, limit: int | None, form: OutputForm, **options: Any) -> None:
    """Show the state of the listed documents, over all sites: which fail, since when, why.

    With --failing, sites that failed as a whole are named as well, since their documents were not checked
    (with --json: `sites list --json`). `documents show` has the history of one document.

    \b
    Examples:
      metaharvest documents --failing --for 7
      metaharvest documents --site alder-creek --outcome invalid --csv
      metaharvest documents --rule eml.id-duplicate
      metaharvest documents --missing
      metaharvest documents show ren-alder.5
    """
    wanted = queries.documents.DocumentFilter(**options)
    if wanted.nights is not None and not wanted.failing:
        raise click.UsageError("--for goes with --failing: for how many nights.")
    today = invocation.harvester.today()
    with invocation.harvester.reading() as session:
        rows = queries.documents.document_rows(session, wanted, today)
        shown = islice(rows, limit)
        if not print_for_program(form, shown, lambda: services.tables.listed_csv(shown)):
            unread = _unread(session, wanted, today) if wanted.failing else []
            _print(rows, limit or _SHOWN_TO_PEOPLE, bool(unread))
            _print_unread(unread)


@documents_command.command("show")
@click.argument("docid", metavar="ID", callback=trimmed)
@wide_option
@AS_JSON
def show(invocation: Invocation, docid: str, as_json: bool) -> None:
    """Show the history of a document, and its state.

    The sites that list it, its owner, its revisions, its transfers, and its result in each run. ID is a document id, or
    a docid for one revision alone. The history goes as far back as the log.

    \b
    Example:
      metaharvest documents show ren-alder.5
    """
    known = invocation.harvester.read(queries.history.document_history, docid, invocation.harvester.today())
    if as_json:
        print_json(known)
    else:
        _print_history(known)


def _unread(session: Session, wanted: queries.documents.DocumentFilter, today: date) -> list[queries.trends.FailedSite]:
    """The sites that failed as a whole for at least the wanted number of nights."""
    if wanted.rule or wanted.outcome or wanted.missing:
        return []
    failed = queries.trends.named_failed_sites(session, today, wanted.site)
    return sorted(
        (each for each in failed if each.failed_nights >= (wanted.nights or 1)), key=lambda each: each.site.casefold()
    )


def _print_unread(unread: Sequence[queries.trends.FailedSite]) -> None:
    if unread:
        click.echo("\nSites that failed as a whole, so that their documents were not looked at:")
        print_table(
            ["site", "status", "since", "nights", "why"],
            rows_of(
                unread,
                "site status failed_since failed_nights failure_reason",
                failure_reason=lambda each: one_line(each.failure_reason, 200),
            ),
        )


def _print(rows: Iterator[queries.documents.DocumentRow], limit: int, sites_failed: bool) -> None:
    shown = list(islice(rows, limit))
    if not shown:
        click.echo("There is no such document at the other sites." if sites_failed else "There is no such document.")
        return
    print_table(_DOCUMENT_COLUMNS, [_row(row) for row in shown])
    if next(rows, None) is not None:
        click.echo(f"Only the first {limit:,} are shown; --limit shows more, --csv writes all of them.", err=True)


def _row(row: queries.documents.DocumentRow) -> Sequence[object]:
    first, *more = row.findings or [None]
    why = _kept(row) or _missing(row) if first is None else f"{first.rule}: {one_line(first.message, 100)}"
    others = f" (and {len(more)} more)" if more else ""
    tries, title = row.attempts or "", one_line(row.title or "", 80)
    stands = [row.outcome, row.failing_since, row.nights, tries]
    return [row.docid, row.site, *stands, f"{why}{others}", title]


def _kept(row: queries.documents.DocumentRow | queries.history.ListingSite) -> str:
    """The highest revision that the target has of a document that a filter left out; empty if it has none."""
    is_kept = row.outcome == OutcomeKind.FILTERED.value and row.repository_revision is not None
    return f"the repository keeps revision {row.repository_revision}" if is_kept else ""


def _missing(row: queries.documents.DocumentRow | queries.history.ListingSite) -> str:
    """A sentence if the list of a document's source repository does not name it; else empty."""
    return f"missing since {row.missing_since}: a full list does not name it" if row.missing_since else ""


def _print_history(known: queries.history.DocumentHistory) -> None:
    owners = [f"{_site(owner) if owner.site else 'no site'} ({_repository(owner)})" for owner in known.owners]
    named = known.document_id if known.revision is None else f"{known.document_id}.{known.revision}"
    print_fields(
        {
            "document": named,
            **({"title": known.title} if known.title else {}),
            "belongs to": ", ".join(owners) or "no site",
            "listed by": "; ".join(_listing(row, known.history) for row in known.listed) or "no site",
        }
    )
    if known.revisions:
        click.echo("\nWhat went in:")
        went_in = ["revision", "inserted (UTC)", "run", "bytes", "site", "repository", "from"]
        print_table(went_in, rows_of(known.revisions, "revision inserted_at run_id bytes site repository url"))
    happened: list[queries.history.DocumentEvent | queries.history.TransferEvent] = [*known.history, *known.transfers]
    events = sorted(happened, key=lambda event: event.at)
    if events:
        click.echo("\nWhat happened:")
        headings = [Column("date"), Column("run", 4), Column("site", 3), Column("document", 5)]
        headings += [Column("what", 1, wrap=True), Column("why", 2, wrap=True)]
        print_table(headings, _event_rows(events))
    else:
        click.echo("\nThe log has nothing about it.")


def _repository(record: queries.history.OwnerSite) -> str:
    return "embedded repository" if record.repository == "embedded" else "other repository"


def _site(row: queries.history.OwnerSite | queries.history.ListingSite) -> str:
    return str(row.site) if row.registered else f"{row.site} (registered no longer)"


def _listing(row: queries.history.ListingSite, history: Sequence[queries.history.DocumentEvent]) -> str:
    same = [each for each in history if (each.site_id, each.docid) == (row.site_id, row.docid)]
    said = queries.records.would_be(row.outcome, same[-1].message) if same else ""
    since = f" since {row.failing_since}" if row.failing_since else ""
    if row.nights is not None:
        since += f" ({counted(row.nights, 'night')})"
    revision = "" if row.revision is None else f"revision {row.revision}, "
    kept = f", {kept}" if (kept := _kept(row)) else ""
    missing = f", {missing}" if (missing := _missing(row)) else ""
    return f"{_site(row)}: {revision}{said or row.outcome or 'not decided yet'}{kept}{missing}{since}"


def _event_rows(
    events: Sequence[queries.history.DocumentEvent | queries.history.TransferEvent],
) -> list[Sequence[object]]:
    """The events in order; the same event in several nights is one row."""
    rows: list[Sequence[object]] = []
    for (site, document, what, why), same in groupby(events, key=_in_words):
        nights = list(same)
        dates = [str(event.day) for event in nights]
        runs = [str(event.run_id) for event in nights if event.run_id is not None]
        times = f"{what}, {len(nights)} times" if len(nights) > 1 else what
        rows.append([_span(dates), _span(runs), site, document, times, clean(why)])
    return rows


def _in_words(event: queries.history.DocumentEvent | queries.history.TransferEvent) -> tuple[object, object, str, str]:
    if isinstance(event, queries.history.TransferEvent):
        former = event.from_site or "no registered site"
        by = f"by {event.transferred_by}" if event.transferred_by else ""
        return event.to_site, event.document_id, f"transferred from {former}", by
    why = "; ".join(dict.fromkeys(f"{each.rule}: {one_line(each.message, 200)}" for each in event.findings))
    if event.outcome == OutcomeKind.FILTERED.value:
        why = one_line(event.message, 400)
    said = queries.records.would_be(event.outcome, event.message) or event.outcome or one_line(event.message)
    return event.site, event.docid, said, why


def _span(values: Sequence[str]) -> str:
    if not values:
        return ""
    return values[0] if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


# -- problems

_RULE_COLUMNS = (
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
def problems_command(invocation: Invocation, site: str | None, form: OutputForm) -> None:
    """Count the open problems by rule: the number of documents and sites, and the first day.

    `documents --rule RULE` lists the documents of a rule.

    \b
    Examples:
      metaharvest problems
      metaharvest problems --site basalt-flats --csv
    """
    found = invocation.harvester.read(queries.problems.open_problems, site)
    if print_for_program(form, found, lambda: services.tables.problems_csv(found)):
        return
    if not found:
        click.echo(f"Nothing is wrong at {'any site' if site is None else one_line(site)}.")
    else:
        print_table(_RULE_COLUMNS, [_rule_row(each) for each in found])


def _rule_row(each: queries.problems.RuleTotal) -> list[object]:
    weight = "needs attention" if each.needs_attention else "warning"
    numbers = [each.number_of_documents or "", each.site or each.number_of_sites]
    return [each.rule, *numbers, each.first_seen, weight, each.rule_title]
