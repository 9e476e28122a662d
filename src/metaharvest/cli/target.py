"""`metaharvest target`: looks into the target; lets a document belong to another site."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.app import App, json_text, print_fields, print_json, print_table

if TYPE_CHECKING:
    from metaharvest.database.models import DocumentRevision


@click.group("target")
def command() -> None:
    """Look into the target: what it holds."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def list_documents(app: App, as_json: bool) -> None:
    """List the documents, each with its highest revision."""
    from metaharvest.cli.queries import reading, site_names
    from metaharvest.database.engine import database_errors

    with reading(app) as session:
        names = site_names(session)
    number = 0
    with database_errors(app.engine):
        for number, row in enumerate(app.target.documents(), start=1):
            if as_json:
                start = "[" if number == 1 else ","
                click.echo(f"{start}\n  {json_text(_values(row, names))}", nl=False)
            else:
                click.echo(_line(row, names))
    if as_json:
        click.echo("\n]" if number else "[]")
    elif not number:
        click.echo("The target holds no document yet.")


@command.command("show")
@click.argument("docid")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def show(app: App, docid: str, as_json: bool) -> None:
    """Show a document: its revisions, their sizes and dates, its site. DOCID is with or without a revision."""
    from metaharvest.cli.queries import reading, site_names, stamp
    from metaharvest.text import shown_url

    with reading(app) as session:
        names = site_names(session)
    document_id, revision = _find(app, docid)
    rows = _revisions(app, document_id)
    shown = [row for row in rows if revision in (None, row.revision)]
    if as_json:
        revisions = [_values(row, names) for row in shown]
        print_json({"document_id": document_id, "site": _site(rows[0], names), "revisions": revisions})
        return
    print_fields({"document": document_id, "site": _site(rows[0], names), "revisions": len(rows)})
    click.echo()
    headings = ["revision", "bytes", "inserted (UTC)", "type", "sha256", "from"]
    table = [
        [row.revision, row.size, stamp(row.inserted_at), row.document_type, row.sha256, shown_url(row.source_url)]
        for row in shown
    ]
    print_table(headings, table)


@command.command("get")
@click.argument("docid")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="A file. [default: stdout]")
@click.pass_obj
def get(app: App, docid: str, output: Path | None) -> None:
    """Get the exact bytes of a document. DOCID without a revision means the highest."""
    from metaharvest.database.engine import database_errors

    document_id, revision = _find(app, docid)
    if revision is None:
        revision = _revisions(app, document_id)[0].revision
    with database_errors(app.engine):
        content = app.target.content(document_id, revision) or b""
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
def transfer(app: App, document_id: str, site: str) -> None:
    """Let a document belong to another site from now on."""
    from metaharvest.cli.queries import writing
    from metaharvest.sites.registry import find_site

    found, _ = _find(app, document_id)
    with writing(app) as session:
        new = find_site(session, site)
        app.target.transfer(found, new.site_id, session)
    click.echo(f"{found} belongs to {new.name} from now on.")
    command = f"metaharvest run --site {shlex.quote(site)}"
    click.echo(f"Higher revisions that {new.name} lists go in with its next harvest: {command}")


def _find(app: App, name: str) -> tuple[str, int | None]:
    """The document that `name` means, and its revision where it names one; as a docid first, then as a document id.

    Raises MetaharvestError where the target has neither.
    """
    from metaharvest.errors import MetaharvestError

    head, _, tail = name.rpartition(".")
    held: list[int] = []
    if head and tail.isdecimal() and tail.isascii():
        held = [row.revision for row in _revisions(app, head)]
        if int(tail) in held:
            return head, int(tail)
    if _revisions(app, name):
        return name, None
    if held:
        known = ", ".join(map(str, held))
        raise MetaharvestError(f"The target has no revision {tail} of {head}. It has: {known}.")
    raise MetaharvestError(f"The target has no document '{name}'. `metaharvest target list` lists those it has.")


def _revisions(app: App, document_id: str) -> list[DocumentRevision]:
    from metaharvest.database.engine import database_errors

    with database_errors(app.engine):
        return app.target.revisions(document_id)


def _line(row: DocumentRevision, names: dict[int, str]) -> str:
    from metaharvest.cli.queries import stamp
    from metaharvest.text import one_line

    docid = f"{row.document_id}.{row.revision}"
    return f"{docid:<36}  {row.size:>11,} bytes  {stamp(row.inserted_at)}  {one_line(_site(row, names))}"


def _values(row: DocumentRevision, names: dict[int, str]) -> dict[str, Any]:
    from metaharvest.text import shown_url

    return {
        "document_id": row.document_id,
        "revision": row.revision,
        "document_type": row.document_type,
        "size": row.size,
        "sha256": row.sha256,
        "inserted_at": row.inserted_at,
        "source_url": shown_url(row.source_url),
        "site": _site(row, names),
    }


def _site(row: DocumentRevision, names: dict[int, str]) -> str:
    """The site that a document belongs to."""
    if row.site_schedule_id is None:
        return ""
    return names.get(row.site_schedule_id, f"site {row.site_schedule_id}, registered no longer")
