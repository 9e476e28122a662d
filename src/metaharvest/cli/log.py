"""`metaharvest log` and `decisions`: the journal, row by row, with the findings under each; who changed what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import NUMBER, ROWS, Invocation, OutputForm, day, json_or_csv, trimmed
from metaharvest.cli.printing import print_csv, print_for_program, print_json_rows, print_line, stamp
from metaharvest.model import LOG_LEVELS
from metaharvest.text import clean, counted, one_line

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


_SHOWN_TO_PEOPLE = 200


@click.command("log")
@click.option("--run", "run_id", type=click.IntRange(min=1), metavar="N", help="A run. [default: the newest]")
@click.option("--site-run", "site_run_id", type=click.IntRange(min=1), metavar="N", help="One site's part of a run.")
@click.option(
    "--site",
    metavar="NAME",
    help="A site, whatever its name was; without --run, the newest run that harvested it, or, with --document, "
    "--rule, --since or --until, all of them.",
)
@click.option(
    "--document",
    metavar="DOCID",
    callback=trimmed,
    help="A document, with or without its revision; without --run, all runs.",
)
@click.option("--rule", metavar="RULE", help="Rows with a finding of this rule, and only such findings.")
@click.option("--since", metavar="YYYY-MM-DD", callback=day, help="Harvests of this day and after; without --run, all.")
@click.option("--until", metavar="YYYY-MM-DD", callback=day, help="Harvests of this day and before.")
@click.option(
    "--level",
    type=click.Choice(LOG_LEVELS),
    help="This level, and graver ones. [default: info, with --csv all]",
)
@click.option(
    "--limit",
    type=ROWS,
    metavar="N",
    help=f"The last N rows. [default: {_SHOWN_TO_PEOPLE}, with --json and --csv all]",
)
@json_or_csv(
    "The rows as a table, a line for each finding; of a site run (or a --site) without any filter: its documents."
)
@click.option("--all", "unchanged", is_flag=True, help="With --csv and a site run's documents: unchanged ones too.")
def log_command(invocation: Invocation, /, form: OutputForm, unchanged: bool, **options: Any) -> None:
    """Read the log: the events, and the findings about each document.

    \b
    Examples:
      metaharvest log --level error
      metaharvest log --site alder-creek --since 2026-11-01 --csv
      metaharvest log --rule eml.id-duplicate
      metaharvest log --document ren-alder.5
    """
    from metaharvest.reports.tables import documents_csv

    given = queries.log.LogFilter(**options)
    of_documents = form is OutputForm.CSV and _is_of_documents(given)
    if given.run_id is not None and given.site_run_id is not None:
        raise click.UsageError("--site-run already says which run: leave out --run.")
    if given.since is not None and given.until is not None and given.since > given.until:
        raise click.UsageError(f"--since {given.since} is after --until {given.until}: no day is in between.")
    if unchanged and not of_documents:
        raise click.UsageError(
            "--all goes with --csv and --site-run (or --site), without a filter: it lists unchanged documents too."
        )
    wanted = replace(given, level=given.level or (None if form is OutputForm.CSV else "info"))
    if form is OutputForm.CSV and not of_documents:
        print_csv(services.tables.log_table(invocation.harvester, wanted))
        return
    with invocation.harvester.reading() as session:
        if of_documents:
            # No site run has the number 0: for a site that was never harvested, the table has only a header.
            site_run_id = queries.log.of_one_run(session, wanted).site_run_id or 0
            print_csv(documents_csv(session, site_run_id, unchanged=unchanged))
        elif form is OutputForm.JSON:
            entries = queries.log.log_entries(session, wanted)
            print_json_rows(entries if wanted.limit is None else list(entries)[-wanted.limit :])
        else:
            _print_rows(session, wanted)


def _is_of_documents(given: queries.log.LogFilter) -> bool:
    """True if a table has the documents of a site run: the table that the site's contacts got."""
    narrowed = (given.document, given.rule, given.since, given.until, given.level, given.limit)
    return (given.site_run_id is not None or given.site is not None) and all(each is None for each in narrowed)


def _print_rows(session: Session, wanted: queries.log.LogFilter) -> None:
    limit = wanted.limit or _SHOWN_TO_PEOPLE
    entries = list(queries.log.log_entries(session, replace(wanted, limit=limit + 1)))
    if not entries:
        meant = queries.document_search.did_you_mean(session, wanted.document) if wanted.document else ""
        click.echo(clean(f"The log has nothing of that{_where(session, wanted)}.{meant}"))
    if len(entries) > limit:
        last = counted(limit, "row is", "rows are")
        click.echo(f"Only the last {last} shown; --limit shows more, --csv writes all of them.", err=True)
    for entry in entries[-limit:]:
        click.echo("\n".join(_lines(entry)))


def _where(session: Session, wanted: queries.log.LogFilter) -> str:
    """The run in the output, in words; empty if the filter is about all runs."""
    meant = queries.log.of_one_run(session, wanted)
    if meant.site_run_id is None and meant.run_id is None:
        return ""
    one = f"run {meant.run_id}" if meant.site_run_id is None else f"site run {meant.site_run_id}"
    return f" in {one}; `--run ID` names another run"


def _lines(entry: queries.log.LogEntry) -> Iterable[str]:
    site = f"{one_line(entry.site)}: " if entry.site else ""
    message = one_line(entry.own_message, 2000)
    yield f"{entry.logged_at:%Y-%m-%d %H:%M:%S}  {entry.level:<7}  {entry.operation:<26}  {site}{message}"
    for finding in entry.findings:
        line = "" if finding.line is None else f", line {finding.line}"
        message = one_line(finding.message, 2000)
        yield f"{'':21}{finding.level}{line}: {message} [{finding.rule}]"
        if finding.excerpt:
            yield f"{'':23}{one_line(finding.excerpt)}"
        if finding.remedy:
            yield f"{'':23}What to do: {one_line(finding.remedy, 2000)}"


# -- decisions

_SHOWN_DECISIONS = 50
_LONGEST_VALUE = 300


@click.command("decisions")
@click.option("--site", metavar="NAME", help="Decisions about this site, under any of its names.")
@click.option("--actor", metavar="NAME", help="Decisions of this person: a user of the system, or an address.")
@click.option("--action", metavar="ID", help="Decisions of this kind, such as sites.edit.")
@click.option("--since", metavar="YYYY-MM-DD", callback=day, help="Decisions of this day and after.")
@click.option(
    "--limit", type=ROWS, metavar="N", help=f"The newest N. [default: {_SHOWN_DECISIONS}, with --json and --csv all]"
)
@click.option("--after", type=NUMBER, metavar="ID", help="The next page: decisions before this one.")
@json_or_csv("A table, a line for each decision.")
def decisions_command(
    invocation: Invocation,
    /,
    site: str | None,
    since: date | None,
    limit: int | None,
    after: int | None,
    form: OutputForm,
    **options: Any,
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
        site_id = None if site is None else queries.decisions.number_of_site(session, site)
        begin = None if since is None else datetime.combine(since, time(), zone)
        wanted = queries.decisions.DecisionFilter(site_id=site_id, since=begin, **options)
        shown = limit if form is not OutputForm.TEXT else (limit or _SHOWN_DECISIONS)
        found = queries.decisions.decisions(session, wanted, shown, after)
        if not print_for_program(form, found, lambda: services.tables.decisions_csv(found)):
            _print_decisions(list(found), shown)


def _print_decisions(found: list[queries.decisions.DecisionRecord], limit: int | None) -> None:
    if not found:
        click.echo("There is no such decision.")
    for each in found:
        reason = f" ({one_line(each.reason)})" if each.reason else ""
        by = f"{each.actor or 'name not known'}, {each.via}"
        print_line(f"{stamp(each.at)} UTC  {by}: {each.action} {each.subject}{reason}")
        for name, before, after in each.changes:
            words = (queries.decisions.value_in_words(value, _LONGEST_VALUE) for value in (before, after))
            print_line(f"{name}: {' -> '.join(words)}", indent=2)
    if limit is not None and len(found) == limit:
        print_line(f"The next page: the same command with --after {found[-1].decision_id}", err=True)
