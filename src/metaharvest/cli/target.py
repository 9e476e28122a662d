"""`metaharvest target`: lists, checks and copies targets, rebuilds an index; transfers a document to another site."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.doctor import print_checks
from metaharvest.cli.invocation import Invocation, file_errors, trimmed
from metaharvest.cli.printing import print_csv, print_fields, print_json, print_json_rows, print_line, stamp
from metaharvest.cli.tables import Column, print_lines, print_table
from metaharvest.cli.target_copy import copy
from metaharvest.cli.target_transfer import transfer
from metaharvest.cli.target_withdraw import withdraw
from metaharvest.text import clean, counted, one_line, shown_url

if TYPE_CHECKING:
    from metaharvest.services.targets import Held


CSV_COLUMNS = (
    "docid", "document_id", "revision", "document_type", "bytes", "sha256", "inserted_at_utc", "url", "site", "title",
)  # fmt: skip

_COLUMNS = (
    Column("document"),
    Column("bytes", 4),
    Column("inserted (UTC)", 3),
    Column("site", 1),
    Column("title", 2, wrap=True),
)
_of_target = click.option(
    "--target",
    "name",
    default="target",
    show_default=True,
    metavar="NAME",
    help="`target`, `embedded`, or a section [targets.NAME].",
)


@click.group("target")
def command() -> None:
    """Look into targets: their holdings, and their state. Copy documents from one to another."""


command.add_command(copy)
command.add_command(transfer)
command.add_command(withdraw)


@command.command("check")
@click.option("--target", "name", metavar="NAME", help="`target`, `embedded`, or a section [targets.NAME].")
@click.option("--site", metavar="NAME", help="As this site: its own target or login, where it has one.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def check(invocation: Invocation, name: str | None, site: str | None, as_json: bool) -> int:
    """Check if the target answers, and show our identity and our rights there. Writes nothing.

    Without options: the targets that the harvest uses, and the logins that sites have of their own.

    Exit codes: 0 all well, or warnings only; 1 there is a problem; 2 settings or usage.
    """
    from metaharvest.services import targets

    return print_checks(targets.check(invocation.harvester, name, site), as_json)


@command.command("list")
@_of_target
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--csv", "as_csv", is_flag=True, help="A table on stdout.")
@click.pass_obj
def list_documents(invocation: Invocation, name: str, as_json: bool, as_csv: bool) -> None:
    """List the documents, each with its highest revision and its title."""
    from metaharvest.services import targets

    if as_json and as_csv:
        raise click.UsageError("Use one of --json and --csv.")
    held = targets.held_documents(invocation.harvester, name)
    if as_csv:
        _print_csv(held)
    elif as_json:
        print_json_rows(map(_as_mapping, held))
    else:
        print_lines(_COLUMNS, map(_cells, held), "The target holds no document yet.")


def _print_csv(held: Iterable[Held]) -> None:
    from metaharvest.reports.tables import table_csv

    rows = (
        (
            each.docid,
            each.document_id,
            each.revision,
            each.document_type,
            each.size,
            each.sha256,
            each.inserted_at and f"{each.inserted_at:%Y-%m-%d %H:%M:%S}",
            shown_url(each.source_url),
            document.site,
            each.title,
        )
        for document in held
        for each in [document.revision]
    )
    print_csv(table_csv(CSV_COLUMNS, rows))


@command.command("show")
@click.argument("docid", callback=trimmed)
@_of_target
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def show(invocation: Invocation, docid: str, name: str, as_json: bool) -> None:
    """Show a document: its revisions, their sizes and dates, its site. DOCID is with or without a revision."""
    from metaharvest.services import targets

    found = targets.find(invocation.harvester, name, docid)
    all_held = found.revisions()
    shown = [held for held in all_held if found.revision in (None, held.revision.revision)]
    site = all_held[0].site
    if as_json:
        revisions = [_as_mapping(held) for held in shown]
        print_json({"document_id": found.document_id, "site": site, "revisions": revisions})
        return
    title = all_held[0].revision.title
    named = {"document": found.document_id, **({"title": title} if title else {})}
    print_fields({**named, "site": site, "revisions": len(all_held)})
    if gone := found.departure():
        print_line(gone)
    click.echo()
    print_table(
        ["revision", "bytes", "inserted (UTC)", "type", "sha256", "from"],
        [
            (
                held.revision,
                "" if held.size is None else held.size,
                stamp(held.inserted_at),
                held.document_type,
                held.sha256 or "",
                shown_url(held.source_url),
            )
            for held in [each.revision for each in shown]
        ],
    )


@command.command("get")
@click.argument("docid", callback=trimmed)
@_of_target
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file. [default: stdout]")
@click.pass_obj
def get(invocation: Invocation, docid: str, name: str, output: Path | None) -> None:
    """Get the exact bytes of a document. DOCID without a revision means the highest."""
    from metaharvest.services import targets

    found = targets.find(invocation.harvester, name, docid)
    gone = found.departure()
    if gone and found.revision is None:
        kept = f"`{invocation.start} target get {found.document_id}.{found.highest()}`"
        raise click.ClickException(f"{gone} Its revisions are kept: {kept} reads the highest.")
    if gone:
        print_line(gone, err=True)
    revision = found.highest() if found.revision is None else found.revision
    content = found.content(revision)
    if content is None:
        raise click.ClickException(f"The target lists {found.document_id}.{revision}, but has no bytes of it.")
    if output is None:
        click.echo(content, nl=False)
        return
    with file_errors(output):
        output.write_bytes(content)
    click.echo(f"Wrote {found.document_id}.{revision} to {output}: {len(content):,} bytes.", err=True)


@command.command("rebuild")
@click.option(
    "--target", "name", default="target", metavar="NAME", help="The section [targets.NAME]. [default: [target]]"
)
@click.option("--site", metavar="NAME", help="The target of this site.")
@click.pass_obj
def rebuild(invocation: Invocation, name: str, site: str | None) -> None:
    """Rebuild the index of a folder from its files, and accept the folder in its present state."""
    from metaharvest.services import targets

    done = targets.rebuild_index(invocation.harvester, name, site)
    files = counted(done.revisions, "file")
    click.echo(f"The index was built again: {counted(done.documents, 'document')} in {files}.")
    if done.deleted:
        click.echo(f"Kept apart: {counted(done.deleted, 'file')} of deleted documents.")
    if done.others:
        click.echo(f"Left alone: {counted(done.others, 'file')} with other names than documents have.")
    for problem in done.problems:
        click.echo(clean(f"Left out: {problem}"), err=True)
    if done.left_out > len(done.problems):
        click.echo(f"Left out: {counted(done.left_out - len(done.problems), 'more file')}.", err=True)


def _cells(held: Held) -> tuple[str, ...]:
    each = held.revision
    size = "" if each.size is None else f"{each.size:,} bytes"
    return each.docid, size, stamp(each.inserted_at), one_line(held.site), one_line(each.title)


def _as_mapping(held: Held) -> dict[str, Any]:
    each, url = held.revision, shown_url(held.revision.source_url)
    columns = {**asdict(each), "source_url": url, "bytes": each.size, "url": url, "title": each.title or None}
    return {**columns, "docid": each.docid, "site": held.site}
