"""`metaharvest export` and `changes`: the journal in a workbook, documents in dataset files, the change feed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import AS_JSON, ROWS, Invocation, file_errors
from metaharvest.cli.printing import print_json
from metaharvest.cli.signals import stop_on_signal
from metaharvest.services.exit_codes import ExitCode
from metaharvest.text import clean, counted

_STOPPED = "Stopped. The same command goes on with the rest."


@click.group("export")
def export_command() -> None:
    """Write sites, problems, runs and mail into one file, or all documents into dataset files.

    \b
    Examples:
      metaharvest export workbook harvest.xlsx
      metaharvest export dataset all-documents
    """


@export_command.command("workbook")
@click.argument("file", metavar="FILE.xlsx", type=click.Path(dir_okay=False, path_type=Path))
def workbook(invocation: Invocation, file: Path) -> None:
    """Write a workbook for a spreadsheet program: sites, failing documents, problems, runs, deliveries, a sheet each.

    No text in it becomes a formula or a link. A file of this name is replaced. It has the newest 10,000 runs, and the
    newest 10,000 reports.

    \b
    Example: metaharvest export workbook harvest.xlsx
    """
    with file_errors(file):
        written = services.export.write_workbook(invocation.harvester, file)
    counts = ", ".join(f"{number:,} {name}" for name, number in written.items())
    click.echo(clean(f"Wrote {file}. Rows: {counts}."))


@export_command.command("dataset")
@click.argument("folder", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--format",
    type=click.Choice(["jsonl", "xml", "parquet"]),
    default="jsonl",
    show_default=True,
    help="jsonl: a document a line, gzip; xml: gzip; parquet: a table.",
)
@click.option(
    "--since",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    metavar="SEQ",
    help="Only what changed after this number: last_change_seq in the manifest of the last export.",
)
@click.option(
    "--documents-per-file", type=ROWS, default=100_000, show_default=True, metavar="N", help="A file ends also at 1 GB."
)
@click.option(
    "--full-text", "with_texts", is_flag=True, help="Also the texts whose licence allows it; not with --format xml."
)
def dataset(invocation: Invocation, /, folder: Path, **options: Any) -> int:
    """Write the documents of the embedded target, with their origin, into files in a new folder.

    Deleted documents are in it as tombstones. The last file is manifest.json: it lists the files with counts and
    SHA-256, and has the number of the last change. If the command is interrupted, give it again: it goes on.

    Exit codes: 0 all is there; 1 a file could not be written; 2 settings or usage; 130 a signal stopped it.

    \b
    Examples:
      metaharvest export dataset all-documents
      metaharvest export dataset changes --since 12 --format parquet
      metaharvest export dataset open-texts --full-text
    """
    from metaharvest.cli.progress import shown_progress

    request = services.export.DatasetRequest(folder, **options)
    try:
        with stop_on_signal(_STOPPED) as stop, shown_progress(transient=True) as progress:
            manifest = services.export.write_dataset(invocation.harvester, request, progress, stop)
    except OSError as error:
        reason = f"{folder} cannot be written: {error.strerror or error}."
        raise click.ClickException(f"{reason} When this is corrected, the same command goes on.") from error
    if manifest.created_at is None:
        click.echo(_STOPPED, err=True)
        return ExitCode.INTERRUPTED
    counts = f"{counted(manifest.documents, 'document')}, {counted(manifest.deleted, 'deletion')}"
    counts += f", {counted(manifest.texts, 'full text')}" if manifest.with_texts else ""
    click.echo(clean(f"Wrote {counted(len(manifest.files), 'file')} into {folder}: {counts}."))
    again = f"export dataset FOLDER --since {manifest.last_change_seq}{' --full-text' if manifest.with_texts else ''}"
    click.echo(f"What changes from now on: {invocation.start} {again}")
    return ExitCode.DONE


# -- changes

_SEQ = click.IntRange(0, 2**63 - 1)


@click.command("changes")
@click.option("--since", type=_SEQ, metavar="SEQ", help="The changes after this number. [default: 0, all documents]")
@click.option("--name", metavar="NAME", help="A reader whose position the database keeps. A new one begins with all.")
@click.option("--ack", type=_SEQ, metavar="SEQ", help="Set the position of the reader, and print nothing.")
@click.option("--limit", type=ROWS, default=1000, show_default=True, metavar="N", help="The most changes of a batch.")
@click.option("--run", "command_line", metavar="COMMAND", help="Run this command for each batch, with it on stdin.")
@click.option("--post", "url", metavar="URL", help="Send each batch to this address by POST (application/x-ndjson).")
@click.option("--not-during-sweep", is_flag=True, help="Stop before documents of a site whose list is under way.")
@AS_JSON
def changes_command(
    invocation: Invocation,
    since: int | None,
    name: str | None,
    ack: int | None,
    limit: int,
    command_line: str | None,
    url: str | None,
    not_during_sweep: bool,
    as_json: bool,
) -> int:
    """Give the changed documents to another program, a JSON object a line, in the order of the changes.

    Without --run and --post, the command prints one batch. With one of them, it delivers batch after batch until no
    change is left. The position of a reader (--name) moves when a batch was printed, when the command ended with the
    exit code 0, or when the address answered with 2xx. So each change comes at least once. A document that is no
    longer public counts as deleted.

    Exit codes: 0 done; 1 a batch was not taken; 2 settings or usage; 69 the database cannot be used; 130 stopped by a
    signal.

    \b
    Examples:
      metaharvest changes --since 0 --limit 100
      metaharvest changes --name portal --not-during-sweep
      metaharvest changes --name archive --run "cat >> changes.jsonl"
    """
    from metaharvest.services import change_hooks as hooks

    if since is not None and name is not None:
        raise click.UsageError("Give --since SEQ or --name NAME, not both.")
    if command_line and url:
        raise click.UsageError("Give --run or --post, not both.")
    if ack is not None and (name is None or command_line or url):
        raise click.UsageError("--ack needs --name NAME, and neither --run nor --post.")
    harvester = invocation.harvester
    with stop_on_signal() as stop:
        if ack is not None and name is not None:
            hooks.confirm(harvester, name, ack)
            if as_json:
                _print_document([], hooks.Delivered(0, ack))
            return ExitCode.DONE
        after = hooks.position(harvester, name) if name is not None else since or 0
        delivers, printed = bool(command_line or url), list[str]()
        send = hooks.to_command(command_line) if command_line else hooks.to_address(url) if url else _print_batch
        if as_json and not delivers:
            send = printed.append
        reader = name if delivers or not as_json else None
        wanted = hooks.Delivery(after, limit, reader, None if delivers else 1, not_during_sweep)
        done = hooks.deliver(harvester, send, wanted, stop.is_set)
        if as_json:
            _print_document(printed, done)
            if name is not None and printed:
                hooks.confirm(harvester, name, done.position)
            return ExitCode.INTERRUPTED if stop.is_set() else ExitCode.DONE
    if delivers:
        click.echo(f"{counted(done.changes, 'change')} delivered; the last one is {done.position}.")
    if done.waits_for is not None:
        click.echo(f"The next changes wait: the list of {done.waits_for} is being harvested.", err=True)
    return ExitCode.INTERRUPTED if stop.is_set() else ExitCode.DONE


def _print_document(batches: Sequence[str], done: services.change_hooks.Delivered) -> None:
    """Print the changes of these batches, and how far the delivery has come, as one JSON document."""
    changes = [json.loads(line) for batch in batches for line in batch.splitlines()]
    about = {"delivered_changes": done.changes, "position": done.position, "waiting_site": done.waits_for}
    print_json({"changes": changes, **about})
    sys.stdout.flush()


def _print_batch(lines: str) -> None:
    """Print a batch in UTF-8; the output is flushed before the position of the reader moves."""
    click.echo(lines.encode("utf-8", "replace"), nl=False)
