"""`metaharvest target`: looks into the target; lets a document belong to another site."""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.invocation import Invocation
from metaharvest.cli.printing import json_text, print_fields, print_json, print_table, stamp
from metaharvest.text import clean, one_line, shown_url

if TYPE_CHECKING:
    from sqlalchemy import Row
    from sqlalchemy.orm import Session


@click.group("target")
def command() -> None:
    """Look into the target: what it holds."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def list_documents(invocation: Invocation, as_json: bool) -> None:
    """List the documents, each with its highest revision."""
    from metaharvest.queries.documents import held_documents
    from metaharvest.queries.sites import known_names

    number = 0
    with _reading(invocation) as session:
        names = known_names(session)
        for number, held in enumerate(held_documents(session), start=1):
            if as_json:
                start = "[" if number == 1 else ","
                click.echo(f"{start}\n  {json_text(_as_mapping(held, names))}", nl=False)
            else:
                click.echo(_as_line(held, names))
    if as_json:
        click.echo("\n]" if number else "[]")
    elif not number:
        click.echo("The target holds no document yet.")


@command.command("show")
@click.argument("docid")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def show(invocation: Invocation, docid: str, as_json: bool) -> None:
    """Show a document: its revisions, their sizes and dates, its site. DOCID is with or without a revision."""
    from metaharvest.queries.documents import find_document, held_revisions
    from metaharvest.queries.sites import known_names

    with _reading(invocation) as session:
        names = known_names(session)
        document_id, revision = find_document(session, docid)
        all_held = held_revisions(session, document_id)
    shown = [held for held in all_held if revision in (None, held.revision)]
    site = _site(all_held[0], names)
    if as_json:
        revisions = [_as_mapping(held, names) for held in shown]
        print_json({"document_id": document_id, "site": site, "revisions": revisions})
        return
    print_fields({"document": document_id, "site": site, "revisions": len(all_held)})
    click.echo()
    print_table(
        ["revision", "bytes", "inserted (UTC)", "type", "sha256", "from"],
        [
            (
                held.revision,
                held.size,
                stamp(held.inserted_at),
                held.document_type,
                held.sha256,
                shown_url(held.source_url),
            )
            for held in shown
        ],
    )


@command.command("get")
@click.argument("docid")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file. [default: stdout]")
@click.pass_obj
def get(invocation: Invocation, docid: str, output: Path | None) -> None:
    """Get the exact bytes of a document. DOCID without a revision means the highest."""
    from metaharvest.queries.documents import find_document, held_content, held_revisions

    with _reading(invocation) as session:
        document_id, revision = find_document(session, docid)
        if revision is None:
            revision = held_revisions(session, document_id)[0].revision
        content = held_content(session, document_id, revision) or b""
    if output is None:
        click.echo(content, nl=False)
        return
    try:
        output.write_bytes(content)
    except OSError as error:
        raise click.FileError(str(output), error.strerror) from error
    click.echo(f"Wrote {document_id}.{revision} to {output}: {len(content):,} bytes.", err=True)


@command.command("transfer")
@click.argument("document_id")
@click.argument("site")
@click.pass_obj
def transfer(invocation: Invocation, document_id: str, site: str) -> None:
    """Let a document belong to another site from now on, with all its revisions."""
    made = invocation.harvester.transfer_document(document_id, site, _login())
    if not made.done:
        click.echo(f"{made.document_id} belongs to {site} already: nothing was changed.")
        return
    whole = "" if made.revision is None else f", with all its revisions, not only revision {made.revision}"
    click.echo(f"{made.document_id} belongs to {site} from now on{whole}.")
    if made.former is None:
        click.echo("Until now it belonged to no registered site.")
    else:
        click.echo(clean(f"Until now it belonged to {made.former}, which should take it out of its list."))
    command = f"{invocation.start} run --site {shlex.quote(site)}"
    click.echo(f"Higher revisions that {site} lists go in with its next harvest: {command}")


def _login() -> str:
    """The user name of the person at this terminal, for the log; empty where the machine has none for them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


@contextmanager
def _reading(invocation: Invocation) -> Iterator[Session]:
    """A session to read what the embedded target holds. Raises MetaharvestError if documents go somewhere else."""
    invocation.harvester.require_embedded_target()
    with invocation.harvester.reading() as session:
        yield session


def _as_line(held: Row[Any], names: Mapping[int, str]) -> str:
    docid = f"{held.document_id}.{held.revision}"
    return f"{docid:<36}  {held.size:>11,} bytes  {stamp(held.inserted_at)}  {one_line(_site(held, names))}"


def _as_mapping(held: Row[Any], names: Mapping[int, str]) -> dict[str, Any]:
    columns = {name: value for name, value in held._mapping.items() if name != "site_id"}
    return {**columns, "source_url": shown_url(held.source_url), "site": _site(held, names)}


def _site(held: Row[Any], names: Mapping[int, str]) -> str:
    """The site that a document belongs to, or belonged to while that was registered."""
    return "" if held.site_id is None else names.get(held.site_id, f"site {held.site_id}, registered no longer")
