"""`metaharvest runs` lists runs and their results; `metaharvest diff` says what changed between two of them.

`print_run` is also for other commands that make a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import (
    AS_JSON,
    ROWS,
    Invocation,
    OutputForm,
    json_or_csv,
    require_yes,
)
from metaharvest.cli.printing import (
    Column,
    layout_options,
    print_fields,
    print_for_program,
    print_json,
    print_line,
    print_table,
    stamp,
    table_options,
    took,
    wide_option,
)
from metaharvest.cli.requests import print_asked
from metaharvest.model import OutcomeKind, RunStatus
from metaharvest.queries.json_keys import as_mapping
from metaharvest.text import counted, one_line

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


_RANKS = (8, 2, 6, 4, 5, 7, 9, 3)
"""The ranks of the columns with numbers, see Column: the highest are left out first."""

_NAMED = 10
_COUNTS = ("listed", "inserted", "updated", "unchanged", "attention", "errors")


@click.group("runs", invoke_without_command=True)
@click.option("--limit", type=ROWS, default=20, show_default=True, metavar="N", help="The newest N.")
@table_options
def runs_command(invocation: Invocation, limit: int, as_json: bool) -> None:
    """List the runs, the newest first; `runs show` has the details of one."""
    with invocation.harvester.reading() as session:
        rows = [services.json_documents.run_row(record) for record in queries.runs.newest_runs(session, limit)]
        failing = [] if as_json else _failing_now(session, invocation.harvester.today())
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo("There has been no run yet. `metaharvest run` makes one.")
        return
    counts = zip(["sites", "failed", "listed", "new", "updated", "unchanged", "other", "errors"], _RANKS, strict=True)
    headings = [Column("run"), Column("date", 1), Column("status", 2)]
    headings += [Column(name, rank) for name, rank in counts]
    columns = ("run_id", "harvest_date", "status", "sites", "failed", *_COUNTS)
    shown = [
        {
            **row,
            "status": queries.trends.status_in_words(str(row["status"]), bool(row["rehearsal"])),
            "failed": row["failed"] or "",
        }
        for row in rows
    ]
    print_table(headings, [[row[column] for column in columns] for row in shown])
    for sentence in failing:
        print_line(sentence)


@runs_command.command("show")
@click.argument("run_id", type=click.IntRange(min=1))
@wide_option
@AS_JSON
def show(invocation: Invocation, run_id: int, as_json: bool) -> None:
    """Show a run: its sites, their totals, the failures, the time of each, and the trend of each.

    `trend` is the number of failed documents in each of the site's last harvests, up to this one.
    """
    with invocation.harvester.reading() as session:
        found = queries.runs.run_record(session, run_id)
        if as_json:
            print_json(services.json_documents.run_document(session, found))
            return
        record = queries.runs.with_trends(session, found)
    print_run(record)
    if record.sites:
        click.echo()
        where = Column("where the time of its documents went", 4, wrap=True)
        print_table(["site", "failing", "trend", "took", where], [_trend_row(site) for site in record.sites])
    click.echo()
    print_fields(_fields(record))
    click.echo(f"\nWhat happened: metaharvest log --run {run_id}")


@runs_command.command("now")
@wide_option
@AS_JSON
def now(invocation: Invocation, as_json: bool) -> None:
    """Show the run under way, with live numbers by site; and the next run."""
    harvester = invocation.harvester
    with harvester.reading() as session:
        running = queries.live.live_run(session, harvester.now())
        coming = queries.live.upcoming_run(session, harvester.now(), harvester.today())
    if as_json:
        following = {"next_at" if name == "at" else name: value for name, value in as_mapping(coming).items()}
        print_json({"run": running, "next": {**following, "when": coming.when}})
        return
    if running is None:
        click.echo("No run is under way.")
    else:
        _print_live(running)
    for sentence in _next_run(coming):
        print_line(sentence)


@runs_command.command("stop")
@click.option("--site", "name", metavar="NAME", help="Stop the harvest of this site alone.")
def stop(invocation: Invocation, name: str | None) -> None:
    """Stop the run under way, or the harvest of one site in it.

    Documents under way are finished; the rest is left to the next run.
    """
    print_asked(services.requests.ask_stop(invocation.harvester, name))


@runs_command.command("remove")
@click.argument("run_id", type=click.IntRange(min=1))
@click.option("--reason", metavar="TEXT", help="The reason, for `metaharvest decisions`.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def remove(invocation: Invocation, run_id: int, reason: str | None, yes: bool) -> None:
    """Delete an old run: its log, its site runs, its reports. The documents stay."""
    question = f"Delete run {run_id} with its log and its reports? It cannot be undone."
    require_yes(yes, question, f"--yes to delete run {run_id}. It cannot be undone.")
    done = services.runs.remove(invocation.harvester, run_id, reason or "")
    click.echo(done.sentence)


def _print_live(run: queries.live.LiveRun) -> None:
    from metaharvest.model.requests import LivePhase
    from metaharvest.reports.phrasing import rate

    left = "" if run.seconds_left is None else f", about {took(run.seconds_left)} left"
    began = f"Run {run.run_id} ({run.harvest_date}) is under way for {took(run.seconds)}{left}"
    errors = f", {counted(run.errors, 'error')}" if run.listed else ""
    print_line(f"{began}: {run.so_far}{errors}.")
    if run.is_silent:
        print_line(f"It has not written since {stamp(run.heartbeat_at)} UTC: its process {run.pid} may have ended.")
    if run.stops:
        print_line("It stops: documents under way are finished.")
    ended, waiting = run.number(LivePhase.ENDED), run.number(LivePhase.WAITING)
    if run.sites:
        print_line(f"Sites: {len(run.sites) - ended - waiting} under way, {waiting} waiting, {ended} ended.")
    rows = [
        [
            site.site,
            "stops" if site.stops else site.phase,
            site.listed,
            site.done,
            site.errors or "",
            rate(site.documents_per_second) if site.documents_per_second else "",
            took(site.seconds),
            took(site.seconds_left),
        ]
        for site in run.sites
        if site.phase not in (LivePhase.ENDED, LivePhase.WAITING)
    ]
    if rows:
        print_table(["site", "phase", "listed", "done", "errors", "a second", "for", "left"], rows)


def _next_run(coming: queries.live.UpcomingRun) -> list[str]:
    named = f": {', '.join(coming.sites[:_NAMED])}" if coming.sites else ""
    more = f", and {len(coming.sites) - _NAMED:,} more" if len(coming.sites) > _NAMED else ""
    sentences = [f"Due {coming.when}: {counted(len(coming.sites), 'site')}{named}{more}."]
    if coming.requested:
        sentences.append(f"Asked for: {', '.join(coming.requested)}.")
    if coming.left_out:
        sentences.append(f"Left out of the next run: {', '.join(coming.left_out)}.")
    return sentences


def _failing_now(session: Session, today: date) -> list[str]:
    """A sentence for each of the first sites whose last harvest failed as a whole."""
    failed = sorted(queries.trends.named_failed_sites(session, today), key=lambda each: (each.failed_since, each.site))
    sentences = [f"{each.site}: {each.sentence}" for each in failed[:_NAMED]]
    more = len(failed) - _NAMED
    return [*sentences, *([f"And {more:,} more: `metaharvest sites list`"] if more > 0 else [])]


def _trend_row(site: queries.runs.SiteRunRecord) -> list[object]:
    from metaharvest.reports.phrasing import PHASES, phases

    where = phases({name: getattr(site, name) for name in PHASES}, "its server")
    return [site.site, site.failing or "", queries.trends.in_words(site.trend), took(site.took_seconds), where]


def _fields(record: queries.runs.RunRecord) -> dict[str, object]:
    totals = record.totals
    return {
        "started": f"{stamp(record.started_at)} UTC",
        "ended": f"{stamp(record.ended_at)} UTC" if record.ended_at else "not yet",
        "took": took(record.took_seconds),
        "host": f"{record.host}, process {record.pid}",
        "documents": ", ".join(f"{getattr(totals, name):,} {name}" for name in _COUNTS),
    }


def print_run(record: queries.runs.RunRecord) -> None:
    """Print the run as a table of its sites, and a sentence for each site or target that failed as a whole."""
    from metaharvest.reports.phrasing import LABELS

    status, headline = record.status, f"Run {record.run_id} ({record.harvest_date})"
    if not record.sites:
        result = "no site was due" if status == RunStatus.SUCCEEDED else f"{status}; no site was harvested"
        click.echo(f"{headline}: {result}.")
        return
    rehearsed = (
        " It was a rehearsal: no site has a target, so that nothing was uploaded." if record.is_rehearsal else ""
    )
    click.echo(f"{headline}: {status}.{rehearsed}")
    shown = [kind for kind in OutcomeKind if any(site.number(kind) for site in record.sites)]
    print_table(
        [
            Column("site"),
            Column("status"),
            Column("listed", 2),
            *(Column(LABELS[kind], 1 if kind.is_error else 3 + place) for place, kind in enumerate(shown)),
            Column("warnings", 20),
            Column("next harvest", 21),
        ],
        [
            [
                *(site.site, queries.trends.status_in_words(site.status, site.rehearsal), site.listed),
                *(site.number(kind) or "" for kind in shown),
                *(site.warnings or "", site.next_harvest),
            ]
            for site in record.sites
        ],
    )
    for sentence in record.targets_away:
        print_line(sentence)
    for site in record.sites:
        named = f"{site.site}: "
        if site.failed:
            print_line(named + site.failed.sentence.replace(f": {named}", ": "))
        elif site.failure_reason:
            print_line(named + site.failure_reason.removeprefix(named))


# -- diff

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
def diff_command(invocation: Invocation, first: int, second: int, site: str | None, form: OutputForm) -> None:
    """Show the changes from one run to a later one: documents that came in or were deleted, new failures, repairs.

    A site that was not harvested in one of the runs is shown with its state at that time.

    \b
    Example:
      metaharvest diff 11 12
    """
    found = invocation.harvester.read(queries.changes.changes, first, second, site)
    if not print_for_program(form, found, lambda: services.tables.changes_csv(found)):
        _print_changes(found)


def _print_changes(found: queries.changes.Changes) -> None:
    runs = [f"run {each.run_id} ({each.harvest_date})" for each in (found.before, found.after)]
    click.echo(f"From {runs[0]} to {runs[1]}:")
    if not found.sites:
        click.echo("No site was harvested.")
        return
    stands = [Column("last harvest", 7), Column("listed", 9), Column("failing", 8)]
    changed = [Column(title.lower(), rank) for rank, title in enumerate(_TITLES.values(), start=1)]
    headings = [Column("site"), *stands, *changed]
    print_table(headings, [_site_row(site) for site in found.sites])
    for site in found.sites:
        for change, documents in groupby(site.documents, key=attrgetter("change")):
            _print_documents(site, change, list(documents))
        if not site.log_kept:
            print_line(f"{site.site}: the log of a harvest has been deleted; what failed in it is not shown.")


def _site_row(site: queries.changes.ChangedSite) -> list[object]:
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
        click.echo(f"  {document.docid}  {_change_in_words(document, change)}".rstrip())
    if len(documents) > _SHOWN_TO_PEOPLE:
        click.echo(f"  and {len(documents) - _SHOWN_TO_PEOPLE:,} more; --csv and --json name all of them")


def _change_in_words(document: queries.changes.ChangedDocument, change: str) -> str:
    was = document.rule_before or document.outcome_before
    if change == "fixed":
        return f"{document.outcome or 'unchanged, or listed no longer'} (before: {was})"
    if change not in ("newly_failing", "still_failing"):
        return ""
    rule = f" [{document.rule}]" if document.rule else ""
    differs = change == "still_failing" and document.rule != document.rule_before
    before = f" (before: {was})" if differs else ""
    return f"{document.outcome}: {one_line(document.message or '')}{rule}{before}"
