"""`metaharvest export`: the journal as one workbook, the harvested documents as dataset files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import ROWS, Invocation, file_errors
from metaharvest.cli.signals import stop_on_signal
from metaharvest.services.exit_codes import ExitCode
from metaharvest.text import clean, counted

_STOPPED = "Stopped. The same command goes on with the rest."


@click.group("export")
def command() -> None:
    """Write sites, problems, runs and mail into one file, or all documents into dataset files.

    \b
    Examples:
      metaharvest export workbook harvest.xlsx
      metaharvest export dataset all-documents
    """


@command.command("workbook")
@click.argument("file", metavar="FILE.xlsx", type=click.Path(dir_okay=False, path_type=Path))
@click.pass_obj
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


@command.command("dataset")
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
@click.pass_obj
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
