"""`metaharvest target`: looks into targets, checks, copies, mends an index; gives a document to another site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.invocation import Invocation, trimmed
from metaharvest.cli.printing import json_text, print_fields, print_json, print_line, stamp
from metaharvest.cli.tables import print_table
from metaharvest.cli.target_check import check
from metaharvest.cli.target_copy import copy
from metaharvest.cli.target_transfer import transfer
from metaharvest.cli.target_withdraw import withdraw
from metaharvest.text import clean, one_line, shown_url

if TYPE_CHECKING:
    from metaharvest.targets.base import HeldRevision, Target


CSV_COLUMNS = ("docid", "document_id", "revision", "document_type", "bytes", "sha256", "inserted_at_utc", "url", "site")

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
    """Look into targets: what they hold, whether they answer. Copy documents from one to another."""


command.add_command(check)
command.add_command(copy)
command.add_command(transfer)
command.add_command(withdraw)


@command.command("list")
@_of_target
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--csv", "as_csv", is_flag=True, help="A table on stdout.")
@click.pass_obj
def list_documents(invocation: Invocation, name: str, as_json: bool, as_csv: bool) -> None:
    """List the documents, each with its highest revision."""
    from metaharvest.database.engine import readers
    from metaharvest.queries.sites import known_names
    from metaharvest.targets.owners import with_owners

    if as_json and as_csv:
        raise click.UsageError("Use one of --json and --csv.")
    harvester = invocation.harvester
    target = harvester.targets.named(name)
    with harvester.reading() as session:
        names = known_names(session)
    highest = (list(revisions)[-1] for _, revisions in groupby(target.held(), key=attrgetter("document_id")))
    held = with_owners(highest, readers(harvester.engine))
    if as_csv:
        _print_csv(held, names)
    elif as_json:
        _print_json(held, names)
    else:
        lines = (_as_line(each, names) for each in held)
        click.echo(next(lines, "The target holds no document yet."))
        for line in lines:
            click.echo(line)


def _print_json(held: Iterable[HeldRevision], names: Mapping[int, str]) -> None:
    number = 0
    for number, each in enumerate(held, start=1):
        start = "[" if number == 1 else ","
        click.echo(f"{start}\n  {json_text(_as_mapping(each, names))}", nl=False)
    click.echo("\n]" if number else "[]")


def _print_csv(held: Iterable[HeldRevision], names: Mapping[int, str]) -> None:
    from metaharvest.reports import table_csv

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
            _site(each, names),
        )
        for each in held
    )
    for chunk in table_csv(CSV_COLUMNS, rows):
        click.echo(chunk.encode("utf-8", "replace"), nl=False)


@command.command("show")
@click.argument("docid", callback=trimmed)
@_of_target
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def show(invocation: Invocation, docid: str, name: str, as_json: bool) -> None:
    """Show a document: its revisions, their sizes and dates, its site. DOCID is with or without a revision."""
    from metaharvest.database.engine import readers
    from metaharvest.queries.sites import known_names
    from metaharvest.targets.owners import with_owners

    harvester = invocation.harvester
    target = harvester.targets.named(name)
    document_id, revision = _found(invocation, target, docid)
    with harvester.reading() as session:
        names = known_names(session)
    all_held = list(with_owners(target.revisions(document_id), readers(harvester.engine)))
    shown = [held for held in all_held if revision in (None, held.revision)]
    site = _site(all_held[0], names)
    if as_json:
        revisions = [_as_mapping(held, names) for held in shown]
        print_json({"document_id": document_id, "site": site, "revisions": revisions})
        return
    print_fields({"document": document_id, "site": site, "revisions": len(all_held)})
    if gone := _departure(invocation, target, document_id):
        print_line(gone)
    click.echo()
    print_table(
        ["revision", "bytes", "inserted (UTC)", "type", "sha256", "from"],
        [
            (
                held.revision,
                "" if held.size is None else held.size,
                _stamp(held),
                held.document_type,
                held.sha256 or "",
                shown_url(held.source_url),
            )
            for held in shown
        ],
    )


@command.command("get")
@click.argument("docid", callback=trimmed)
@_of_target
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file. [default: stdout]")
@click.pass_obj
def get(invocation: Invocation, docid: str, name: str, output: Path | None) -> None:
    """Get the exact bytes of a document. DOCID without a revision means the highest."""
    target = invocation.harvester.targets.named(name)
    document_id, revision = _found(invocation, target, docid)
    gone = _departure(invocation, target, document_id)
    if gone and revision is None:
        kept = f"`{invocation.start} target get {document_id}.{target.revisions(document_id)[0].revision}`"
        raise click.ClickException(f"{gone} Its revisions are kept: {kept} reads the highest.")
    if gone:
        print_line(gone, err=True)
    if revision is None:
        revision = target.revisions(document_id)[0].revision
    content = target.content(document_id, revision)
    if content is None:
        raise click.ClickException(f"The target lists {document_id}.{revision}, but has no bytes of it.")
    if output is None:
        click.echo(content, nl=False)
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        raise click.FileError(str(output), error.strerror) from error
    click.echo(f"Wrote {document_id}.{revision} to {output}: {len(content):,} bytes.", err=True)


@command.command("rebuild")
@click.option(
    "--target", "name", default="target", metavar="NAME", help="The section [targets.NAME]. [default: [target]]"
)
@click.option("--site", metavar="NAME", help="The target of this site.")
@click.pass_obj
def rebuild(invocation: Invocation, name: str, site: str | None) -> None:
    """Build the index of a folder again from its files, and take the folder as it is."""
    from metaharvest.reports.words import counted

    done = invocation.harvester.rebuild_index(name, site)
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


def _found(invocation: Invocation, target: Target, name: str) -> tuple[str, int | None]:
    """The document that `name` means. Raises TargetError, MetaharvestError.

    The message says when and why a document was deleted, or suggests other documents.
    """
    from metaharvest.errors import MetaharvestError, UnknownDocument
    from metaharvest.queries.departures import departure
    from metaharvest.queries.suggestions import did_you_mean
    from metaharvest.targets.naming import find_document, possible_ids

    try:
        return find_document(target, name)
    except UnknownDocument as error:
        with invocation.harvester.reading() as session:
            gone = next(filter(None, (departure(session, each) for each in possible_ids([name]))), "")
            meant = "" if gone else did_you_mean(session, name)
        raise (MetaharvestError(gone) if gone else UnknownDocument(f"{error}{meant}")) from None


def _departure(invocation: Invocation, target: Target, document_id: str) -> str:
    """When and why a document was deleted whose revisions the target keeps; empty if it is held."""
    from metaharvest.queries.departures import departure

    with invocation.harvester.reading() as session:
        gone = departure(session, document_id)
    if not gone:
        return ""
    with target.session(None) as opened:
        return gone if opened.writes_in_journal and not opened.holdings([document_id]) else ""


def _as_line(held: HeldRevision, names: Mapping[int, str]) -> str:
    size = "" if held.size is None else f"{held.size:,} bytes"
    return f"{held.docid:<36}  {size:>17}  {_stamp(held)}  {one_line(_site(held, names))}".rstrip()


def _as_mapping(held: HeldRevision, names: Mapping[int, str]) -> dict[str, Any]:
    from metaharvest.queries.records import with_one_name

    columns = {**asdict(held), "source_url": shown_url(held.source_url)}
    return {**with_one_name(columns), "docid": held.docid, "site": _site(held, names)}


def _stamp(held: HeldRevision) -> str:
    return stamp(held.inserted_at) if held.inserted_at else ""


def _site(held: HeldRevision, names: Mapping[int, str]) -> str:
    """The site that a document belongs to, or belonged to while that was registered."""
    return "" if held.site_id is None else names.get(held.site_id, f"site {held.site_id}, registered no longer")
