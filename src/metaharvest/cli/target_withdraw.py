"""`metaharvest target withdraw`: deletes a document for good; with --erase, its content too."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from metaharvest.cli.invocation import Invocation, login, require_yes, trimmed
from metaharvest.cli.printing import print_json, print_line
from metaharvest.text import clean, counted

if TYPE_CHECKING:
    from metaharvest.services.documents import AtTarget, Withdrawn


@click.command("withdraw")
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
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.pass_obj
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
    from metaharvest.services import documents

    if undo and (erase or reason):
        raise click.UsageError("--undo takes a withdrawal back: it has no --reason and no --erase.")
    if not undo and not (reason or "").strip():
        raise click.UsageError("Give --reason: the site's report, `target get` and the log say why it is gone.")
    if erase:
        question = f"Erase all revisions of {clean(document)}? It cannot be undone."
        require_yes(yes, question, "--yes to erase it. It cannot be undone.")
    request = documents.WithdrawalRequest(document, (reason or "").strip(), login(), erase, target_name)
    do = documents.take_back if undo else documents.withdraw
    done = do(invocation.harvester, request)
    if as_json:
        print_json(_as_mapping(done, undo, erase))
    elif undo:
        _print_undone(done)
    else:
        _print(done, erase, f"{invocation.start} target withdraw {shlex.quote(done.document_id)} --undo")


def _as_mapping(done: Withdrawn, undo: bool, erase: bool) -> dict[str, object]:
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


def _print(done: Withdrawn, erase: bool, undo: str) -> None:
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


def _said(at: AtTarget, erase: bool) -> str:
    parts = ["deleted" if at.deleted else "not held, or deleted before"]
    if erase and (at.erased or not at.stays):
        parts.append(f"{counted(at.erased, 'revision or file', 'revisions or files')} erased")
    return "; ".join([*parts, *([at.stays] if at.stays else [])]) + "."


def _print_undone(done: Withdrawn) -> None:
    click.echo(clean(f"The withdrawal of {done.document_id} is taken back."))
    for each in done.at_targets:
        if each.stays:
            print_line(f"{each.target}: {each.stays}.")
    if done.sites:
        print_line(f"The next harvest tries it again, from {', '.join(done.sites)}.")
