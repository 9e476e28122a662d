"""`metaharvest list build`: a harvest list of the EML documents in a folder."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.folder_options import folder_options
from metaharvest.cli.invocation import Invocation
from metaharvest.cli.list_plan import AS_JSON, DRY_RUN, KEEP_ORDER, InvalidList, list_errors, perform, refuse

if TYPE_CHECKING:
    from metaharvest.publishing.contents import FolderOptions
    from metaharvest.publishing.plan import BuildRequest

_FILE_NAME = "harvest-list.xml"


@click.command("build")
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option("--base-url", "base", metavar="URL", required=True, help="Where FOLDER is on the web.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"The list; the one that is there says what has changed. [default: {_FILE_NAME} in FOLDER]",
)
@folder_options
@click.option("--write", "writes", is_flag=True, help="Write raised revisions into the packageIds, too.")
@KEEP_ORDER
@DRY_RUN
@AS_JSON
@click.pass_obj
def build(
    invocation: Invocation,
    folder: Path,
    base: str,
    output: Path | None,
    options: FolderOptions,
    writes: bool,
    keep_order: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Make a harvest list of the EML documents in FOLDER and the folders in it.

    The docids come from the packageIds. Run it again after each change: a document with other content gets the next
    revision, the others keep theirs. The list remembers the contents by itself. A revision that you have raised in a
    packageId stays. Your own text in the list stays: comments, and documents that are not below --base-url.

    Documents that cannot be listed are named and left out; an entry that was in the list before stays then. The list
    is written only after a change, and as a whole.

    \b
    Example: metaharvest list build /srv/www/eml --base-url https://www.example.org/eml/ --write

    Exit codes: 0 all is well; 1 documents were left out, or the old list is not valid; 2 usage.
    """
    from metaharvest.publishing.naming import base_url
    from metaharvest.publishing.plan import BuildRequest, plan_build

    path = output or folder / _FILE_NAME
    request = BuildRequest(
        folder, base_url(base, "--base-url https://www.example.org/eml/"), path, options, writes, keep_order
    )
    try:
        with list_errors(path):
            plan = plan_build(request)
    except InvalidList as invalid:
        return refuse(invalid, dry_run=dry_run, as_json=as_json)
    hint = f"To see what its harvest would say, once it is on the web: {invocation.start} check {_published(request)}"
    return perform(plan, dry_run=dry_run, as_json=as_json, hint=hint)


def _published(request: BuildRequest) -> str:
    """The URL of the list on the web, if it is in the folder; else its file."""
    folder, output = request.folder.resolve(), request.output.resolve()
    if not output.is_relative_to(folder):
        return shlex.quote(str(request.output))
    return shlex.quote(request.base.url_of(output.relative_to(folder).as_posix()))
