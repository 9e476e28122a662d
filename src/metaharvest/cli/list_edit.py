"""`metaharvest list add`, `remove` and `bump`: change single entries of a harvest list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import NETWORKS, Invocation
from metaharvest.cli.list_plan import AS_JSON, DRY_RUN, KEEP_ORDER, LIST_FILE, InvalidList, list_errors, perform, refuse

if TYPE_CHECKING:
    from metaharvest.model import Network
    from metaharvest.publishing.list_store import StoredList
    from metaharvest.publishing.plan import ListPlan


@click.command("add")
@click.argument("list_file", metavar="LIST", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("documents", metavar="URL|FILE...", nargs=-1, required=True)
@click.option("--base-url", "base", metavar="URL", help="Where the folder of the FILEs is on the web.")
@click.option("--url", metavar="URL", help="Where the one FILE is on the web.")
@click.option("--docid", help="The docid of the one document, where its packageId is none, or another.")
@click.option("--write", "writes", is_flag=True, help="Write a raised revision into the packageId of a FILE, too.")
@NETWORKS
@KEEP_ORDER
@DRY_RUN
@AS_JSON
@click.pass_obj
def add(
    invocation: Invocation,
    list_file: Path,
    documents: tuple[str, ...],
    base: str | None,
    url: str | None,
    docid: str | None,
    writes: bool,
    networks: tuple[Network, ...],
    keep_order: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Put documents into LIST in their present state, each at a URL or in a FILE; if there is no LIST, it is made.

    A document that is listed already gets the next revision if its content has changed. A FILE that is listed already
    needs no --base-url or --url.

    \b
    Example: metaharvest list add harvest-list.xml https://www.example.org/eml/rain.xml
    Example: metaharvest list add harvest-list.xml eml/rain.xml --base-url https://www.example.org/eml/

    Exit codes: 0 all is well; 1 a document cannot be listed, or LIST is not valid; 2 usage.
    """
    from metaharvest.publishing.adding import Given, read_given
    from metaharvest.publishing.naming import base_url
    from metaharvest.publishing.plan import plan_addition

    given = Given(
        documents, base_url(base, "--base-url https://www.example.org/eml/") if base else None, url, docid, networks
    )

    def plan(stored: StoredList) -> ListPlan:
        found, problems = read_given(given, stored.list_file, invocation.harvester.settings)
        planned = plan_addition(stored, found, writes=writes, keep_order=keep_order)
        return replace(planned, findings=(*problems, *planned.findings))

    return _edit(list_file, plan, dry_run=dry_run, as_json=as_json)


@click.command("remove")
@LIST_FILE
@click.argument("docids", metavar="DOCID...", nargs=-1, required=True)
@KEEP_ORDER
@DRY_RUN
@AS_JSON
def remove(list_file: Path, docids: tuple[str, ...], keep_order: bool, dry_run: bool, as_json: bool) -> int:
    """Take documents out of LIST. A DOCID without a revision means all its revisions.

    Nothing is deleted from the central repository: ask its administrator. `list build` lists the document again as
    long as its file is in the folder.

    \b
    Example: metaharvest list remove harvest-list.xml alder.12

    Exit codes: 0 done; 1 LIST is not valid; 2 usage, also where LIST does not name a DOCID.
    """
    from metaharvest.publishing.plan import plan_removal

    return _edit(
        list_file, lambda stored: plan_removal(stored, docids, keep_order=keep_order), dry_run=dry_run, as_json=as_json
    )


@click.command("bump")
@LIST_FILE
@click.argument("docids", metavar="DOCID...", nargs=-1, required=True)
@click.option("--to", type=click.IntRange(min=0), metavar="REVISION", help="This revision. [default: the next one]")
@KEEP_ORDER
@DRY_RUN
@AS_JSON
def bump(
    list_file: Path, docids: tuple[str, ...], to: int | None, keep_order: bool, dry_run: bool, as_json: bool
) -> int:
    """Raise the revision of documents in LIST, so that the next harvest fetches them again.

    Raise it in the packageIds, too. A list that is made with `list build` needs no bump: the build finds the changes
    itself.

    \b
    Example: metaharvest list bump harvest-list.xml alder.12
    Example: metaharvest list bump harvest-list.xml alder.12 --to 7

    Exit codes: 0 done; 1 LIST is not valid; 2 usage, also where LIST does not name a DOCID.
    """
    from metaharvest.publishing.plan import plan_raise

    return _edit(
        list_file,
        lambda stored: plan_raise(stored, docids, to, keep_order=keep_order),
        dry_run=dry_run,
        as_json=as_json,
    )


def _edit(list_file: Path, plan: Callable[[StoredList], ListPlan], *, dry_run: bool, as_json: bool) -> int:
    """Read the list, plan, carry out; the exit code."""
    from metaharvest.publishing.list_store import open_list

    try:
        with list_errors(list_file):
            stored = open_list(list_file)
    except InvalidList as invalid:
        return refuse(invalid, dry_run=dry_run, as_json=as_json)
    return perform(plan(stored), dry_run=dry_run, as_json=as_json)
