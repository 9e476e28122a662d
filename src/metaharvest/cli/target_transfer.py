"""`metaharvest target transfer`: transfers documents, or whole scopes, to another site."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

import click

from metaharvest.cli.invocation import Invocation, login
from metaharvest.cli.printing import print_json
from metaharvest.text import clean, counted, one_line

if TYPE_CHECKING:
    from metaharvest.services.documents import Transfer

_SHOWN = 20


@click.command("transfer")
@click.argument("document_ids", metavar="[DOCUMENT]...", nargs=-1)
@click.argument("site")
@click.option("--scope", "scopes", metavar="SCOPE", multiple=True, help="All documents of this scope. May be repeated.")
@click.option(
    "--from-file",
    "file",
    type=click.File("r", encoding="utf-8-sig"),
    metavar="FILE",
    help="Documents named in a file, one a line; `-` is stdin. What follows a # is left out.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be transferred.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
def transfer(
    invocation: Invocation,
    document_ids: tuple[str, ...],
    site: str,
    scopes: tuple[str, ...],
    file: TextIO | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Transfer documents to another site, with all their revisions: all of them, or none if one is unknown.

    DOCUMENT is a document id, or a docid. The log names the person and the day of each transfer. More than
    10,000 are transferred in parts: if the database is lost in between, the same command transfers the rest.

    \b
    Examples:
      metaharvest target transfer knb-lter-gce.109 fern
      metaharvest target transfer --scope knb-lter-gce fern
      metaharvest target transfer --from-file moved.txt --dry-run fern
    """
    from metaharvest.services import documents

    names = [*document_ids, *(_names(file) if file else ())]
    if not names and not scopes:
        raise click.UsageError("Name the documents to transfer: before the site, with --scope, or with --from-file.")
    wanted = documents.TransferRequest(tuple(names), site, login(), scopes, dry_run)
    made = documents.transfer(invocation.harvester, wanted)
    if as_json:
        print_json({"site": site, "dry_run": dry_run, "documents": [_as_mapping(each, site) for each in made]})
    elif len(made) == 1 and not dry_run:
        _print_one(invocation, made[0], site)
    else:
        _print_many(invocation, made, site, dry_run)


def _names(file: TextIO) -> list[str]:
    """The names in the file. Raises UsageError if it is not text, or far too large."""
    try:
        lines = [line.partition("#")[0].strip() for line in file.read().splitlines()]
    except UnicodeDecodeError:
        raise click.UsageError(f"{file.name} is not UTF-8 text: it should name a document on each line.") from None
    if not any(lines):
        raise click.UsageError(f"{file.name} names no document.")
    return [line for line in lines if line]


def _as_mapping(made: Transfer, site: str) -> dict[str, object]:
    return {"document_id": made.document_id, "from_site": made.former, "to_site": site, "transferred": made.done}


def _print_one(invocation: Invocation, made: Transfer, site: str) -> None:
    if not made.done:
        click.echo(f"{made.document_id} belongs to {site} already: nothing was changed.")
        return
    whole = "" if made.revision is None else f", with all its revisions, not only revision {made.revision}"
    click.echo(f"{made.document_id} belongs to {site} from now on{whole}.")
    if made.former is None:
        click.echo("Until now it belonged to no registered site.")
    else:
        click.echo(clean(f"Until now it belonged to {made.former}, which should take it out of its list."))
    _say_what_next(invocation, site)


def _print_many(invocation: Invocation, made: Sequence[Transfer], site: str, dry_run: bool) -> None:
    done = [each for each in made if each.done]
    already = len(made) - len(done)
    had = f" {counted(already, 'document belongs', 'documents belong')} to it already." if already else ""
    belong = f"{'would belong' if dry_run else 'belong' if len(done) != 1 else 'belongs'} to {site} from now on"
    click.echo(clean(f"{counted(len(done), 'document')} {belong}.{had}"))
    for document in done[:_SHOWN]:
        click.echo(f"  {document.document_id}  {one_line(document.former or 'no registered site')}".rstrip())
    if len(done) > _SHOWN:
        click.echo(f"  and {len(done) - _SHOWN:,} more; --json names all of them")
    former = Counter(each.former for each in done if each.former)
    if former and not dry_run:
        owners = ", ".join(f"{name} ({number:,})" for name, number in former.items())
        click.echo(clean(f"The former owners should take them out of their lists: {owners}."))
    if done and not dry_run:
        _say_what_next(invocation, site)
    if dry_run:
        click.echo("This was a rehearsal: nothing was changed.")


def _say_what_next(invocation: Invocation, site: str) -> None:
    command = f"{invocation.start} run --site {shlex.quote(site)}"
    click.echo(f"Higher revisions that {site} lists go in with its next harvest: {command}")
