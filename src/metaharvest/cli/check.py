"""`metaharvest check`: a rehearsal: what would tomorrow's report say?"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.check_outputs import Outputs
from metaharvest.cli.folder_options import folder_options
from metaharvest.cli.invocation import AS_JSON, NETWORKS, Invocation, called_as, options_as
from metaharvest.errors import CannotBeChecked
from metaharvest.text import clean

if TYPE_CHECKING:
    from metaharvest.model import Network
    from metaharvest.services.check_report import CheckOptions, FolderOptions

_NOBODY_ASKED = (
    "Rehearsing without the database and the target of {file}, so every document counts as new: the file was found in "
    "this folder, and it may send secrets to another computer. If it is yours, name it: {start} --config {file} check …"
)

_FILE = click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path)


@click.command("check")
@click.argument("arguments", metavar="URL|FILE|FOLDER...", nargs=-1)
@click.option(
    "--site", "as_site", metavar="NAME", help="Rehearse as this registered site (default: the one of the URL)."
)
@click.option(
    "--against",
    metavar="TARGET",
    help="Say what would be inserted there, updated, or is unchanged: `target`, `embedded`, or NAME of a section "
    "[targets.NAME] in the settings.",
)
@NETWORKS
@folder_options
@options_as(
    "outputs",
    Outputs,
    AS_JSON,
    click.option("--csv", "as_csv", is_flag=True, help="The table of documents, as CSV on stdout."),
    click.option("--sarif", type=_FILE, metavar="FILE", help="Write the findings as SARIF 2.1.0, for code scanning."),
    click.option("--junit", type=_FILE, metavar="FILE", help="Write a JUnit report, for services that run tests."),
    click.option("--html", type=_FILE, metavar="FILE", help="Write an HTML page."),
    click.option("--open", "opens", is_flag=True, help="Open the HTML page in a browser."),
)
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
@click.pass_obj
def command(
    invocation: Invocation,
    arguments: tuple[str, ...],
    as_site: str | None,
    against: str | None,
    networks: tuple[Network, ...],
    options: FolderOptions,
    outputs: Outputs,
    watch: bool,
) -> int:
    """Rehearse the harvest of lists, documents and folders of them: what would tomorrow's report say?

    Each may be a URL, a file or a folder, or `-` for standard input. Everything is fetched and checked as at night, and
    nothing is written. A list in a file may name its documents by relative URLs: they are read from there. No settings
    and no database are needed; if there are some, the documents are compared with the central repository.

    Exit codes: 0 all is well; 1 a list cannot be read, or documents have errors; 2 settings or usage.

    \b
    Example: metaharvest check https://alder.example.org/list.xml
             metaharvest check harvest-list.xml eml/
             metaharvest check eml/ --watch
             metaharvest check eml/ --sarif eml.sarif --junit eml.junit.xml
    """
    from metaharvest.services.check_report import CheckOptions

    outputs.require_possible()
    if watch and (outputs.as_json or outputs.as_csv or "-" in arguments):
        raise click.UsageError("--watch shows people what changed: use it without --json, --csv and `-`.")
    how = CheckOptions(as_site, against, networks, standard_input=getattr(sys.stdin, "buffer", None), folders=options)
    try:
        if watch:
            from metaharvest.cli.check_watch import watch_for_changes

            return watch_for_changes(invocation, arguments, how, outputs)
        return _check(invocation, arguments, how, outputs)
    except CannotBeChecked as error:
        raise click.UsageError(clean(str(error))) from None
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)
        return 130


def _check(invocation: Invocation, arguments: Sequence[str], how: CheckOptions, outputs: Outputs) -> int:
    """The rehearsal, and its output; returns the exit code."""
    from metaharvest.cli.progress import shown_progress
    from metaharvest.services.check_report import asks_nobody

    harvester = invocation.harvester
    settings = harvester.settings
    if asks_nobody(settings, how):
        click.echo(clean(_NOBODY_ASKED.format(start=called_as(), file=shlex.quote(str(settings.file)))), err=True)
    elif how.against is None and (settings.file or settings.variables) and (error := harvester.database_error):
        # The contact of a site needs no database, so that no remedy is printed.
        why = str(error).partition(". ")[0].rstrip(".")
        click.echo(clean(f"Rehearsing without a database, so every document counts as new. ({why}.)"), err=True)
    with ExitStack() as stack:
        with shown_progress(transient=True) as progress:
            checked = stack.enter_context(harvester.check(arguments, how, progress))
        report = outputs.report_of(checked)
        outputs.write(report)
    return int(report.has_errors)
