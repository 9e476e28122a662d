"""`metaharvest target`: looks into targets, checks and copies them, and transfers documents.

`metaharvest target withdraw` deletes a document for good.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

import click

from metaharvest.cli import services
from metaharvest.cli.installation import print_checks
from metaharvest.cli.invocation import (
    AS_JSON,
    Invocation,
    OutputForm,
    file_errors,
    json_or_csv,
    login,
    require_yes,
    trimmed,
)
from metaharvest.cli.printing import (
    Column,
    print_csv,
    print_fields,
    print_json,
    print_json_rows,
    print_line,
    print_lines,
    print_table,
    stamp,
)
from metaharvest.cli.target_copy import copy
from metaharvest.model.mappings import picked
from metaharvest.text import clean, counted, one_line, shown_url

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


@command.command("check")
@click.option("--target", "name", metavar="NAME", help="`target`, `embedded`, or a section [targets.NAME].")
@click.option("--site", metavar="NAME", help="As this site: its own target or login, where it has one.")
@AS_JSON
def check(invocation: Invocation, name: str | None, site: str | None, as_json: bool) -> int:
    """Check if the target answers, and show our identity and our rights there. Writes nothing.

    Without options: the targets that the harvest uses, and the logins that sites have of their own.

    Exit codes: 0 all well, or warnings only; 1 there is a problem; 2 settings or usage.
    """
    return print_checks(services.targets.check(invocation.harvester, name, site), as_json)


@command.command("list")
@_of_target
@json_or_csv("A table on stdout.")
def list_documents(invocation: Invocation, name: str, form: OutputForm) -> None:
    """List the documents, each with its highest revision and its title."""
    held = services.targets.held_documents(invocation.harvester, name)
    if form is OutputForm.CSV:
        _print_csv(held)
    elif form is OutputForm.JSON:
        print_json_rows(map(_as_mapping, held))
    else:
        print_lines(_COLUMNS, map(_cells, held), "The target holds no document yet.")


def _print_csv(held: Iterable[services.targets.Held]) -> None:
    from metaharvest.reports.tables import table_csv

    rows = (
        (
            *picked(each, "docid document_id revision document_type size sha256").values(),
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
@AS_JSON
def show(invocation: Invocation, docid: str, name: str, as_json: bool) -> None:
    """Show a document: its revisions, their sizes and dates, its site. DOCID is with or without a revision."""
    found = services.targets.find(invocation.harvester, name, docid)
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
                *(held.revision, held.size, stamp(held.inserted_at), held.document_type, held.sha256),
                shown_url(held.source_url),
            )
            for held in [each.revision for each in shown]
        ],
    )


@command.command("get")
@click.argument("docid", callback=trimmed)
@_of_target
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True), help="A file. [default: stdout]"
)
def get(invocation: Invocation, docid: str, name: str, output: Path | None) -> None:
    """Get the exact bytes of a document. DOCID without a revision means the highest."""
    found = services.targets.find(invocation.harvester, name, docid)
    gone, revision = found.departure(), found.revision
    if revision is None:
        revision = found.highest()
        if gone:
            kept = f"`{invocation.start} target get {found.document_id}.{revision}`"
            raise click.ClickException(f"{gone} Its revisions are kept: {kept} reads the highest.")
    elif gone:
        print_line(gone, err=True)
    content = found.content(revision)
    if content is None:
        raise click.ClickException(f"The target lists {found.document_id}.{revision}, but has no bytes of it.")
    if output is None or str(output) == "-":
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
def rebuild(invocation: Invocation, name: str, site: str | None) -> None:
    """Rebuild the index of a folder from its files, and accept the folder in its present state."""
    done, missing = services.targets.rebuild_index(invocation.harvester, name, site)
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
    for site_name, number in missing.items():
        documents = f"{counted(number, 'document')} of {site_name}"
        click.echo(clean(f"Missing: {documents}. Its next harvest asks the repository for all records."))


def _cells(held: services.targets.Held) -> tuple[str, ...]:
    each = held.revision
    size = "" if each.size is None else f"{each.size:,} bytes"
    return each.docid, size, stamp(each.inserted_at), one_line(held.site), one_line(each.title)


def _as_mapping(held: services.targets.Held) -> dict[str, Any]:
    each, url = held.revision, shown_url(held.revision.source_url)
    columns = {**asdict(each), "source_url": url, "bytes": each.size, "url": url, "title": each.title or None}
    return {**columns, "docid": each.docid, "site": held.site}


# -- transfer and withdraw

_SHOWN = 20


@command.command("transfer")
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
@AS_JSON
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
    names = [*document_ids, *(_names(file) if file else ())]
    if not names and not scopes:
        raise click.UsageError("Name the documents to transfer: before the site, with --scope, or with --from-file.")
    wanted = services.documents.TransferRequest(tuple(names), site, login(), scopes, dry_run)
    made = services.documents.transfer(invocation.harvester, wanted)
    if as_json:
        documents = [
            picked(each, "document_id from_site=former") | {"to_site": site, "transferred": each.done} for each in made
        ]
        print_json({"site": site, "dry_run": dry_run, "documents": documents})
    elif len(made) == 1 and not dry_run:
        _print_one(invocation, made[0], site)
    else:
        _print_many(invocation, made, site, dry_run)


def _names(file: TextIO) -> list[str]:
    """The names in the file. Raises UsageError if it is not text, or far too large."""
    name = getattr(file, "name", "standard input")
    try:
        lines = [line.partition("#")[0].strip() for line in file.read().splitlines()]
    except UnicodeDecodeError:
        raise click.UsageError(f"{name} is not UTF-8 text: it should name a document on each line.") from None
    if not any(lines):
        raise click.UsageError(f"{name} names no document.")
    return [line for line in lines if line]


def _print_one(invocation: Invocation, made: services.documents.Transfer, site: str) -> None:
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


def _print_many(invocation: Invocation, made: Sequence[services.documents.Transfer], site: str, dry_run: bool) -> None:
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


@command.command("withdraw")
@click.argument("document", callback=trimmed)
@click.option("--reason", metavar="TEXT", help="Why: the report to the site, `target get` and the log say it.")
@click.option("--erase", is_flag=True, help="Delete the content, too: all revisions, and what log and reports quote.")
@click.option("--undo", is_flag=True, help="Take a withdrawal back: the next harvest may bring the document in again.")
@click.option(
    "--target",
    "target_name",
    metavar="NAME",
    help="Only in this target. [default: [target], and the targets of the sites that list it]",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@AS_JSON
def withdraw(
    invocation: Invocation,
    document: str,
    reason: str | None,
    erase: bool,
    undo: bool,
    target_name: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete a document, with all its revisions, for good: no harvest brings it back.

    DOCUMENT is a document id, or a docid. The report to a site that still lists it gives the reason.

    \b
    Examples:
      metaharvest target withdraw knb-lter-gce.109 --reason "names a person who objects" --erase --yes
      metaharvest target withdraw knb-lter-gce.109 --undo
    """
    why = (reason or "").strip()
    if undo and (erase or reason):
        raise click.UsageError("--undo takes a withdrawal back: it has no --reason and no --erase.")
    if not undo and not why:
        raise click.UsageError("Give --reason: the site's report, `target get` and the log say why it is gone.")
    if erase:
        question = f"Erase all revisions of {clean(document)}? It cannot be undone."
        require_yes(yes, question, "--yes to erase it. It cannot be undone.")
    request = services.documents.WithdrawalRequest(document, why, login(), erase, target_name)
    do = services.documents.take_back if undo else services.documents.withdraw
    done = do(invocation.harvester, request)
    if as_json:
        print_json(_withdrawal_mapping(done, undo, erase))
    elif undo:
        _print_undone(done)
    else:
        _print_withdrawn(done, erase, f"{invocation.start} target withdraw {shlex.quote(done.document_id)} --undo")


def _withdrawal_mapping(done: services.documents.Withdrawn, undo: bool, erase: bool) -> dict[str, object]:
    return {
        "document_id": done.document_id,
        "is_withdrawn": not undo,
        "is_erased": erase,
        "targets": [
            {"target": each.target, "was_deleted": each.deleted, "erased": each.erased, "stays": each.stays or None}
            for each in done.at_targets
        ],
        "listing_sites": list(done.sites),
        "log_rows": done.erased.rows if done.erased else 0,
        "reports_changed": done.erased.reports if done.erased else 0,
        "stays": done.stays or None,
    }


def _print_withdrawn(done: services.documents.Withdrawn, erase: bool, undo: str) -> None:
    click.echo(clean(f"{done.document_id} is withdrawn: no harvest brings it back."))
    for each in done.at_targets:
        print_line(f"{each.target}: {_said(each, erase)}")
    if done.erased is not None:
        click.echo(
            f"Erased: {counted(done.erased.rows, 'row')} of the log that quoted it, and the text of "
            f"{counted(done.erased.reports, 'report')}."
        )
        click.echo("What stays: mails that were sent, the mail folder, backups, and copies that others have.")
    if done.stays:
        print_line(done.stays)
    if done.sites:
        print_line(f"Still in the list of {', '.join(done.sites)}: the next report says that it is left out, and why.")
    print_line(f"To take the withdrawal back: {undo}")


def _said(at: services.documents.AtTarget, erase: bool) -> str:
    parts = ["deleted" if at.deleted else "not held, or deleted before"]
    if erase and (at.erased or not at.stays):
        parts.append(f"{counted(at.erased, 'revision or file', 'revisions or files')} erased")
    return "; ".join([*parts, *([at.stays] if at.stays else [])]) + "."


def _print_undone(done: services.documents.Withdrawn) -> None:
    click.echo(clean(f"The withdrawal of {done.document_id} is taken back."))
    for each in done.at_targets:
        if each.stays:
            print_line(f"{each.target}: {each.stays}.")
    if done.sites:
        print_line(f"The next harvest tries it again, from {', '.join(done.sites)}.")
