"""`metaharvest pipeline`: how far the pipeline has come; run it, list its failures, try them again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import AS_JSON, ROWS, Invocation, called_alone, usage_errors
from metaharvest.cli.printing import Column, print_json, print_line, print_table, stamp, table_options
from metaharvest.cli.signals import stop_on_signal
from metaharvest.model.actions import todo
from metaharvest.model.kinds import StepState
from metaharvest.queries.json_keys import as_mapping
from metaharvest.services.exit_codes import ExitCode
from metaharvest.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@click.group("pipeline", invoke_without_command=True)
@called_alone
@table_options
def command(invocation: Invocation, as_json: bool) -> None:
    """Show how far the pipeline has come, by stage: done, waiting, failed, rate, time left.

    Example: metaharvest pipeline
    """
    record = services.pipeline.shown(invocation.harvester)
    if as_json:
        print_json(as_mapping(record))
    else:
        _print_record(record)


@command.command("run")
@click.option("--stage", "names", metavar="STAGE", multiple=True, help="Only this stage. May be repeated.")
@AS_JSON
@click.pass_obj
def run(invocation: Invocation, names: tuple[str, ...], as_json: bool) -> int:
    """Run the stages for all documents that wait, in this process. After a stop, the next run goes on.

    Exit codes: 0 done (`pipeline failures` lists the documents that failed); 2 settings or usage; 69 the database
    cannot be used; 75 another process runs the pipeline; 130 stopped by a signal.

    Example: metaharvest pipeline run
    """
    with stop_on_signal() as stop, usage_errors(), _shown_progress(invocation) as report:
        done = services.pipeline.run(invocation.harvester, names, stops=stop.is_set, report=report)
    if as_json:
        print_json([_totals(each) for each in done])
    else:
        print_totals(done)
    return ExitCode.INTERRUPTED if stop.is_set() else ExitCode.DONE


@command.command("failures")
@click.option("--stage", metavar="STAGE", help="Only this stage.")
@click.option("--rule", metavar="RULE", help="Only failures by this rule.")
@click.option("--site", metavar="NAME", help="Only documents of this site.")
@click.option("--limit", type=ROWS, default=50, show_default=True, metavar="N", help="The first N.")
@click.option("--after", metavar="DOCUMENT", help="The next page: documents after this one.")
@table_options
@click.pass_obj
def failures(invocation: Invocation, /, limit: int, after: str | None, as_json: bool, **options: Any) -> None:
    """List the documents that failed, with the reason and the time of the next try.

    Example: metaharvest pipeline failures --stage full-text
    """
    with usage_errors():
        wanted = services.pipeline.FailureFilter(**options)
        found = services.pipeline.failed(invocation.harvester, wanted, limit, after)
    if as_json:
        print_json([as_mapping(each) for each in found])
    elif found:
        _print_failures(found)
        for each in dict.fromkeys(each.stage for each in found):
            print_line(f"{todo('pipeline.retry', stage=each)} lets the next run try them again.")
    else:
        click.echo(
            "No document failed." if wanted == services.pipeline.FailureFilter() else "There is no such failure."
        )


@command.command("retry")
@click.argument("stage")
@click.option("--rule", metavar="RULE", help="Only failures by this rule.")
@click.pass_obj
def retry(invocation: Invocation, stage: str, rule: str | None) -> None:
    """Let the next run of the pipeline try the documents again that failed at a stage.

    Example: metaharvest pipeline retry full-text --rule full-text.unreachable
    """
    with usage_errors():
        number = services.pipeline.retry(invocation.harvester, stage, rule)
    click.echo(
        f"{counted(number, 'document waits', 'documents wait')} again. {todo('pipeline.run')} runs the pipeline."
        if number
        else "There is no such failure."
    )


@command.command("rebuild-index")
@click.pass_obj
def rebuild_index(invocation: Invocation) -> int:
    """Make the search index again. Searches use the present index until the new one is complete.

    Use it if the index is damaged or lost, and after a site got another name. After a stop, the next run of the
    pipeline goes on with it.

    Exit codes: 0 done; 1 the index cannot be written, or another process writes it; 2 settings or usage; 69 the
    database cannot be used; 130 stopped by a signal.

    Example: metaharvest pipeline rebuild-index
    """
    with stop_on_signal() as stop:
        size = services.search.rebuild(invocation.harvester, stop.is_set)
    if size is None:
        click.echo(f"Stopped. {todo('pipeline.run')} goes on with it.")
        return ExitCode.INTERRUPTED
    click.echo(f"The new index has {counted(size, 'output')}.")
    return ExitCode.DONE


@contextmanager
def _shown_progress(invocation: Invocation) -> Iterator[Callable[[services.pipeline.StageTotals], None]]:
    """A bar for each stage on stderr, if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda totals: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns = (rich.TextColumn("{task.description}"), rich.BarColumn(), rich.MofNCompleteColumn())
    with rich.Progress(*columns, rich.TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        tasks = dict[str, rich.TaskID]()

        def report(totals: services.pipeline.StageTotals) -> None:
            if totals.stage not in tasks:
                waiting = {
                    each.stage: each.waiting_documents for each in services.pipeline.shown(invocation.harvester).stages
                }
                tasks[totals.stage] = bars.add_task(totals.stage, total=waiting.get(totals.stage, 0) + totals.documents)
            bars.update(tasks[totals.stage], completed=totals.documents)

        yield report


def _print_record(record: queries.pipeline.PipelineRecord) -> None:
    rows = [
        [
            *(each.stage, each.done_documents, each.waiting_documents, each.failed_documents, each.skipped_documents),
            _rate(each.per_minute),
            _left(each),
        ]
        for each in record.stages
    ]
    print_table(["stage", "done", "waiting", "failed", "nothing to do", "a minute", "time left"], rows)
    if record.unseen_changes:
        changes = counted(record.unseen_changes, "document has changed", "documents have changed")
        print_line(f"{changes} since the last run: {todo('pipeline.run')} goes on.")
    for each in record.failures:
        again = f"; the next try is at {stamp(each.retry_at)} UTC" if each.retry_at else ""
        print_line(f"{each.stage}: {counted(each.number_of_documents, 'document')} failed by {each.rule}{again}.")
    if record.failures:
        print_line(f"{todo('pipeline.failures')} lists them.")


def _rate(per_minute: float | None) -> str:
    return "" if per_minute is None else f"{per_minute:,.0f}"


def _left(stage: queries.pipeline.StageRecord) -> str:
    if stage.seconds_left is None:
        return ""
    hours, minutes = divmod(round(stage.seconds_left / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else "under a minute"


def print_totals(done: Sequence[services.pipeline.StageTotals]) -> None:
    """Print what the stages did."""
    rows = [[each.stage, *_states(each).values()] for each in done if each.documents]
    if rows:
        print_table(["stage", "done", "nothing to do", "failed", "gone"], rows)
    else:
        click.echo("Nothing waited.")


def _totals(totals: services.pipeline.StageTotals) -> dict[str, object]:
    return {"stage": totals.stage, **_states(totals), "seconds": round(totals.seconds, 3)}


def _states(totals: services.pipeline.StageTotals) -> dict[str, int]:
    ended = (StepState.DONE, StepState.SKIPPED, StepState.FAILED, StepState.GONE)
    return {f"{state.value}_documents": totals.states.get(state, 0) for state in ended}


def _print_failures(found: Sequence[queries.pipeline.FailedDocument]) -> None:
    headings: list[str | Column] = [*("document", "stage", "rule"), Column("message", 3, wrap=True)]
    headings += [Column("next try", 5), Column("site", 6)]
    rows = [[each.document_id, each.stage, each.rule, each.message, stamp(each.retry_at), each.site] for each in found]
    print_table(headings, rows)
