"""`metaharvest pipeline`, `works` and `search`: the pipeline, and the outputs that it compares and indexes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from html import unescape
from typing import Any

import click

from metaharvest.cli import queries, services
from metaharvest.cli.invocation import AS_JSON, ROWS, Invocation, trimmed
from metaharvest.cli.printing import Column, print_json, print_line, print_table, rows_of, stamp, table_options
from metaharvest.cli.signals import stop_on_signal
from metaharvest.model.actions import todo
from metaharvest.model.kinds import StepState
from metaharvest.services.exit_codes import ExitCode
from metaharvest.text import counted, one_line, without_marks


@click.group("pipeline", invoke_without_command=True)
@table_options
def pipeline_command(invocation: Invocation, as_json: bool) -> None:
    """Show how far the pipeline has come, by stage: done, waiting, failed, rate, time left.

    Example: metaharvest pipeline
    """
    record = services.pipeline.shown(invocation.harvester)
    if as_json:
        print_json(record)
    else:
        _print_record(record)


@pipeline_command.command("run")
@click.option("--stage", "names", metavar="STAGE", multiple=True, help="Only this stage. May be repeated.")
@AS_JSON
def run(invocation: Invocation, names: tuple[str, ...], as_json: bool) -> int:
    """Run the stages for all documents that wait, in this process. After a stop, the next run goes on.

    Exit codes: 0 done (`pipeline failures` lists the documents that failed); 2 settings or usage; 69 the database
    cannot be used; 75 another process runs the pipeline; 130 stopped by a signal.

    Example: metaharvest pipeline run
    """
    with stop_on_signal() as stop, _shown_progress(invocation) as report:
        done = services.pipeline.run(invocation.harvester, names, stops=stop.is_set, report=report)
    if as_json:
        print_json([{"stage": each.stage, **_states(each), "seconds": round(each.seconds, 3)} for each in done])
    else:
        print_totals(done)
    return ExitCode.INTERRUPTED if stop.is_set() else ExitCode.DONE


@pipeline_command.command("failures")
@click.option("--stage", metavar="STAGE", help="Only this stage.")
@click.option("--rule", metavar="RULE", help="Only failures by this rule.")
@click.option("--site", metavar="NAME", help="Only documents of this site.")
@click.option("--limit", type=ROWS, default=50, show_default=True, metavar="N", help="The first N.")
@click.option("--after", metavar="DOCUMENT", help="The next page: documents after this one.")
@table_options
def failures(invocation: Invocation, /, limit: int, after: str | None, as_json: bool, **options: Any) -> None:
    """List the documents that failed, with the reason and the time of the next try.

    Example: metaharvest pipeline failures --stage full-text
    """
    wanted = services.pipeline.FailureFilter(**options)
    found = services.pipeline.failed(invocation.harvester, wanted, limit, after)
    if as_json:
        print_json(found)
    elif found:
        _print_failures(found)
        for each in dict.fromkeys(each.stage for each in found):
            print_line(f"{todo('pipeline.retry', stage=each)} lets the next run try them again.")
    else:
        click.echo(
            "No document failed." if wanted == services.pipeline.FailureFilter() else "There is no such failure."
        )


@pipeline_command.command("retry")
@click.argument("stage")
@click.option("--rule", metavar="RULE", help="Only failures by this rule.")
def retry(invocation: Invocation, stage: str, rule: str | None) -> None:
    """Let the next run of the pipeline try the documents again that failed at a stage.

    Example: metaharvest pipeline retry full-text --rule full-text.unreachable
    """
    number = services.pipeline.retry(invocation.harvester, stage, rule)
    click.echo(
        f"{counted(number, 'document waits', 'documents wait')} again. {todo('pipeline.run')} runs the pipeline."
        if number
        else "There is no such failure."
    )


@pipeline_command.command("rebuild-index")
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
            bar = tasks[totals.stage]
            # A stage may do documents again that wait for it since its bar is there.
            bars.update(bar, completed=totals.documents, total=max(bars.tasks[bar].total or 0, totals.documents))

        yield report


def _print_record(record: queries.pipeline.PipelineRecord) -> None:
    keys = "stage done_documents waiting_documents failed_documents skipped_documents per_minute seconds_left"
    rows = rows_of(record.stages, keys, per_minute=_rate, seconds_left=_left)
    print_table(["stage", "done", "waiting", "failed", "nothing to do", "a minute", "time left"], rows)
    if record.unseen_changes:
        changes = counted(record.unseen_changes, "document has changed", "documents have changed")
        print_line(f"{changes} since the last run: {todo('pipeline.run')} goes on.")
    for each in record.failures:
        again = f"; the next try is at {stamp(each.retry_at)} UTC" if each.retry_at else ""
        print_line(f"{each.stage}: {counted(each.number_of_documents, 'document')} failed by {each.rule}{again}.")
    if record.failures:
        print_line(f"{todo('pipeline.failures')} lists them.")


def _rate(stage: queries.pipeline.StageRecord) -> str:
    return "" if stage.per_minute is None else f"{stage.per_minute:,.0f}"


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


def _states(totals: services.pipeline.StageTotals) -> dict[str, int]:
    ended = (StepState.DONE, StepState.SKIPPED, StepState.FAILED, StepState.GONE)
    return {f"{state.value}_documents": totals.states.get(state, 0) for state in ended}


def _print_failures(found: Sequence[queries.pipeline.FailedDocument]) -> None:
    headings: list[str | Column] = [*("document", "stage", "rule"), Column("message", 3, wrap=True)]
    headings += [Column("next try (UTC)", 5), Column("site", 6)]
    print_table(headings, rows_of(found, "document_id stage rule message retry_at site"))


# -- works

_OUTPUT_COLUMNS = (Column("document"), Column("year", 2), Column("source", 3), Column("title", 1, wrap=True))
_PAIR_COLUMNS = (Column("document"), Column("other"), Column("answer", 1), Column("reason", 2, wrap=True))


@click.group("works")
def works_command() -> None:
    """Show works: the outputs that are the same. Decide about pairs that the rules leave to people.

    Example: metaharvest works look
    """


@works_command.command("show")
@click.argument("document", metavar="DOCUMENT", callback=trimmed)
@table_options
def show(invocation: Invocation, document: str, as_json: bool) -> None:
    """Show the work of a document: the outputs that are the same, other versions, and the reasons.

    Example: metaharvest works show ren-alder.5
    """
    found = invocation.harvester.read(queries.works.work_of, document)
    if as_json:
        print_json(found)
    else:
        _print_work(found)


@works_command.command("look")
@click.option("--limit", type=ROWS, default=50, show_default=True, metavar="N", help="The first N.")
@click.option("--after", default="", metavar="PLACE", help="The next page: after the place that the last one names.")
@table_options
def look(invocation: Invocation, limit: int, after: str, as_json: bool) -> None:
    """List pairs of outputs that may be the same: the rules leave them to a person, and nobody has decided yet.

    Example: metaharvest works look --limit 10
    """
    page = services.works.to_look_at(invocation.harvester, after, limit)
    if as_json:
        print_json(page)
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


@works_command.command("decide")
@click.argument("first", metavar="DOCUMENT", callback=trimmed)
@click.argument("second", metavar="DOCUMENT", callback=trimmed)
@click.option("--same", "answer", flag_value="same", help="Both are the same output: they come into one work.")
@click.option("--different", "answer", flag_value="different", help="They are never in one work.")
@click.option("--related", "answer", flag_value="related", help="Each is shown as related to the other.")
@click.option("--unrelated", "answer", flag_value="unrelated", help="Neither is shown as related to the other.")
@click.option("--undo", "answer", flag_value="undo", help="Take the decisions about them back: the rules decide.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for the audit and for readers.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout: the work of the first one.")
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
    found = services.works.decide(invocation.harvester, first, second, given, reason)
    if as_json:
        print_json(found)
    else:
        what = "No decision holds any more" if given is None else f"Your decision holds: {given.value}"
        print_line(f"{what}. {first} is in a work of {len(found.outputs)} output{'s' * (len(found.outputs) != 1)}.")


def _print_work(found: queries.works.WorkRecord) -> None:
    print_table(
        _OUTPUT_COLUMNS,
        [[each.document_id, each.year, each.origin or "harvest list", each.title] for each in found.outputs],
    )
    if found.pairs:
        click.echo()
        print_table(_PAIR_COLUMNS, [_pair_row(each) for each in found.pairs])
    for each in found.related:
        print_line(f"{each.first.document_id} and {each.second.document_id}: {each.decided}. {_decision(each)}")


def _pair_row(pair: queries.works.PairLine) -> list[object]:
    answer = [pair.answer, pair.reason] if pair.decided is None else [pair.decided, _decision(pair)]
    return [pair.first.document_id, pair.second.document_id, *answer]


def _decision(pair: queries.works.PairLine) -> str:
    return f"Decided by {pair.decided_by}. {pair.decision_reason or ''}".strip()


# -- search

_WIDTH = 80
_INDENT = 4
_TAG = re.compile("</?mark>")
_COUNTED = {"site": "Sites", "type": "Types", "year": "Years", "language": "Languages", "licence": "Licences"}
_SHOWN_VALUES = 5
_MOST_CREATORS = 3


@click.command("search", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.option("--site", metavar="NAME", multiple=True, help="Only outputs of this site. May be repeated.")
@click.option("--year", metavar="YEAR", default="", help="Only outputs of this year, or of years: 2010..2020, 2010..")
@click.option("--type", metavar="TYPE", multiple=True, help='Only outputs of this type, such as "dataset".')
@click.option(
    "--language", metavar="LANGUAGE", multiple=True, help="Only outputs in this language, such as en or English."
)
@click.option("--licence", metavar="SPDX", multiple=True, help="Only outputs with this licence, such as CC-BY-4.0.")
@click.option("--full-text", is_flag=True, help="Only outputs with a full text.")
@click.option(
    "--sort", type=click.Choice(["relevance", "year"]), default="relevance", show_default=True, help="The order."
)
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, metavar="N", help="The first N.")
@click.option("--cursor", metavar="CURSOR", help="The next page: the cursor that the page before ends with.")
@AS_JSON
@click.help_option("--help")
def search_command(
    invocation: Invocation,
    /,
    words: tuple[str, ...],
    year: str,
    full_text: bool,
    sort: str,
    limit: int,
    cursor: str | None,
    as_json: bool,
    **given: tuple[str, ...],
) -> None:
    """Find outputs by their titles, authors, subjects, abstracts and full texts.

    All words have to be found, unless OR stands between them. NOT leaves outputs out. A field stands before its value:
    title:, author:, subject:, abstract:, fulltext:, site:, type:, language:, licence:, doi:, year:. docs/search.md
    explains it. Put phrases into quotation marks inside of the shell's own.

    \b
    Examples:
      metaharvest search beech phenology
      metaharvest search '"leaf area" author:Rivera NOT oak' --year 2010..2020
      metaharvest search title:soil --type dataset --json
    """
    if "-h" in words:  # As an option, it would be found in `-beech`, too.
        click.echo(click.get_current_context().get_help())
        return
    _refuse_unknown_options(words)
    values = {name: given[name] for name in ("site", "type", "language", "licence")}
    values["full_text"] = ("yes",) if full_text else ()
    question = services.search.Question(" ".join(words), values, year, services.search.Sort(sort), limit, cursor)
    answer = services.search.OutputSearch(invocation.harvester).search(question)
    if as_json:
        print_json(answer)
    else:
        _print_answer(answer)
        if answer.advice:
            print_line(answer.advice, err=True)


def _refuse_unknown_options(words: Sequence[str]) -> None:
    """Raises NoSuchOption for a word with two hyphens in front. One hyphen leaves outputs out of the answer."""
    ctx = click.get_current_context()
    if (unknown := next((each.partition("=")[0] for each in words if each.startswith("--")), None)) is not None:
        options = [name for each in ctx.command.params for name in each.opts]
        raise click.NoSuchOption(unknown, possibilities=get_close_matches(unknown, options), ctx=ctx)


def _print_answer(answer: services.search.Answer) -> None:
    click.echo(counted(answer.total, "output"))
    for output in answer.outputs:
        click.echo()
        _print_output(output)
    if answer.outputs:
        click.echo()
        for name, heading in _COUNTED.items():
            if counts := answer.facets[name]:
                shown = [f"{value} {number:,}" for value, number in list(counts.items())[:_SHOWN_VALUES]]
                print_line(f"{heading}: {', '.join(shown)}{', …' if len(counts) > _SHOWN_VALUES else ''}")
    if answer.next_cursor:
        click.echo(f"The next page: the same command with --cursor {answer.next_cursor}")


def _print_output(output: Mapping[str, Any]) -> None:
    """An output on some lines: its title, where it comes from, the words in their places, its id."""
    _print_wrapped(without_marks(output["title"] or "") or "(no title)", 0)
    creators = output["creators"]
    shown = "; ".join(creators[:_MOST_CREATORS]) + (" et al." if len(creators) > _MOST_CREATORS else "")
    facts = [shown, output["year"], output["type"], output["site"], output["licence"]]
    _print_wrapped(" · ".join(str(each) for each in facts if each), _INDENT)
    for name in ("abstract", "text"):
        if name in output["highlights"]:
            _print_wrapped(unescape(_TAG.sub("", output["highlights"][name])), _INDENT)
    # An id stays on one line: people copy it.
    print_line(output["document_id"], indent=_INDENT)


def _print_wrapped(text: str, indent: int) -> None:
    from rich.console import Console
    from rich.text import Text

    # By the columns that letters take, which are two for an Asian one.
    for line in Text(one_line(text, 2000)).wrap(Console(width=_WIDTH), _WIDTH - indent):
        print_line(line.plain.rstrip(), indent=indent)
