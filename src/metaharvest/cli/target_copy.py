"""`metaharvest target copy`: documents with all their revisions, from one target into another."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import AS_JSON, ROWS, Invocation, file_errors
from metaharvest.cli.printing import print_fields, print_json, print_line
from metaharvest.cli.signals import stop_on_signal
from metaharvest.model.mappings import picked
from metaharvest.services.exit_codes import ExitCode
from metaharvest.text import clean, counted

if TYPE_CHECKING:
    from metaharvest.services.documents import CopyRequest, CopyResult, NotCopied, ReportNotCopied

CSV_COLUMNS = ("docid", "document_id", "revision", "ended", "rule", "message", "remedy")

_SHOWN = 20
"""The number of shown revisions that were not copied; a table has all."""

_IN_JSON = 1000

_WORDS = {
    "copied": "copied",
    "there-already": "unchanged",
    "different": "other bytes there",
    "refused": "refused",
    "unreadable": "unreadable",
    "left": "left",
}
_AT_ONCE = "Stopped. What was copied is there; the same command goes on with the rest."


@click.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option("--site", "site_name", metavar="NAME", help="Only the documents that belong to this site.")
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Ask both targets, and write nothing.")
@click.option("--limit", type=ROWS, metavar="N", help="Copy at most N revisions.")
@click.option(
    "--csv", "table", type=click.Path(path_type=Path, dir_okay=False), help="A table of what was not copied, and why."
)
@click.option(
    "--accept-refused",
    is_flag=True,
    help="End with 0 although the target refuses revisions for good; they are still named and counted.",
)
@AS_JSON
def copy(invocation: Invocation, /, table: Path | None, accept_refused: bool, as_json: bool, **options: Any) -> int:
    """Copy documents with all their revisions into another target.

    FROM and TO are `target` (the target of [target]), `embedded`, or the NAME of a section [targets.NAME]. Revisions
    that TO has already stay as they are, so that an interrupted copy can begin again. No run can be made meanwhile.

    TO may refuse some revisions for good, such as a version of EML that it does not know. Look at them once, then
    repeat the command with --accept-refused: it ends with 0 if all else is there.

    Exit codes: 0 all is there; 1 something was not copied; 2 settings or usage; 75 a run is under way;
    130 a signal stopped it.
    """
    from metaharvest.cli.progress import shown_progress

    request = services.documents.CopyRequest(**options)
    shown: list[NotCopied] = []

    def keep(revision: NotCopied) -> None:
        if len(shown) < _IN_JSON:
            shown.append(revision)
        add(revision)

    with _table(table) as add, stop_on_signal(_AT_ONCE) as stop, shown_progress() as progress:
        result = services.documents.copy(invocation.harvester, request, keep, progress, stop)
    if as_json:
        print_json(_as_mapping(request, result, shown))
    else:
        _print(request, result, shown, table)
        _print_refused(result, accept_refused)
    if result.is_well or (accept_refused and result.is_well_but_for_refused):
        return ExitCode.DONE
    return ExitCode.INTERRUPTED if stop.is_set() else ExitCode.FAILED


def _print_refused(result: CopyResult, accepted: bool) -> None:
    """Print the next step if all other revisions are there, and the rest is refused for good."""
    if not result.is_well_but_for_refused or result.is_well:
        return
    number = counted(result.refused, "revision was", "revisions were")
    how = "" if accepted else " All else is there: if that is right, add --accept-refused, and the exit code is 0."
    click.echo(f"\n{number} not accepted by {clean(result.target)}.{how}")


@contextmanager
def _table(path: Path | None) -> Iterator[ReportNotCopied]:
    """The function that writes an uncopied revision into the table, if there is one. Raises click.FileError."""
    if path is None:
        yield lambda revision: None
        return
    with file_errors(path):
        file = path.open("wb")
    with file:
        _write(file, CSV_COLUMNS)

        def add(revision: NotCopied) -> None:
            finding = revision.finding
            reason = finding.rule, finding.message, finding.remedy
            _write(file, (), (revision.docid, revision.document_id, revision.revision, revision.ended.key, *reason))

        yield add


def _write(file: IO[bytes], columns: tuple[str, ...], *rows: tuple[object, ...]) -> None:
    from metaharvest.reports.tables import table_csv

    for chunk in table_csv(columns, rows):
        file.write(chunk.encode("utf-8", "replace"))


def _as_mapping(request: CopyRequest, result: CopyResult, shown: list[NotCopied]) -> dict[str, object]:
    problems = [
        picked(
            each,
            "document_id revision ended=ended.key rule=finding.rule message=finding.message remedy=finding.remedy",
        )
        for each in shown
    ]
    return {
        **picked(result, "from=source to=target"),
        "site": request.site_name,
        "dry_run": request.is_dry_run,
        **picked(result, "documents read"),
        **{ended.key: result.ended.get(ended, 0) for ended in services.documents.CopyOutcome},
        **picked(result, "bytes=size reached_limit"),
        "cut_short": result.cut_short or None,
        "problems": problems,
    }


def _print(request: CopyRequest, result: CopyResult, shown: list[NotCopied], table: Path | None) -> None:
    ended = result.ended
    print_fields({"from": result.source, "to": result.target})
    click.echo()
    read = f"{counted(result.read, 'revision')} of {counted(result.documents, 'document')}"
    fields = {"read": read}
    for each in services.documents.CopyOutcome:
        number = ended.get(each, 0)
        if each is services.documents.CopyOutcome.COPIED:
            would = "would be copied" if request.is_dry_run else _WORDS[each]
            fields[would] = f"{number:,}{f' ({result.size:,} bytes)' if result.size else ''}"
        elif number or each is services.documents.CopyOutcome.THERE:
            fields[_WORDS[each]] = f"{number:,}"
    print_fields(fields)
    # A target that does not answer is reported once.
    reported = [each for each in shown if each.ended in services.documents.PROBLEMS or not result.cut_short]
    if reported:
        click.echo()
    for revision in reported[:_SHOWN]:
        finding = revision.finding
        print_line(f"{revision.docid}: {finding.with_remedy} [{finding.rule}]")
    problems = services.documents.PROBLEMS
    more = sum(ended.get(each, 0) for each in problems) - sum(each.ended in problems for each in reported[:_SHOWN])
    if more > 0:
        where = f"{table} has all of them" if table else "--csv FILE writes a table of all"
        click.echo(f"And {more:,} more; {where}.")
    if result.cut_short:
        print_line(result.cut_short, err=True)
    elif result.reached_limit and (ended.get(services.documents.CopyOutcome.LEFT) or not result.all_read):
        click.echo(f"\nNo more than {request.limit:,} were asked for; the same command goes on with the rest.")
    elif ended.get(services.documents.CopyOutcome.LEFT):
        click.echo("\nThe same command goes on with what was left.")
    if request.is_dry_run:
        click.echo("\nThis was a rehearsal: nothing was written.")
