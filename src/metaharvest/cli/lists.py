"""`metaharvest list`: makes harvest lists, and compares them; needs no settings and no database.

`metaharvest list add` and its neighbours change entries; `metaharvest list validate` checks a list.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.invocation import AS_JSON, FOLDERS, NETWORKS, Invocation, options_as
from metaharvest.cli.list_printing import (
    changes_mapping,
    counted_changes,
    entry_mapping,
    finding_mapping,
    print_changes,
    print_findings,
)
from metaharvest.cli.printing import print_json, print_line, print_table
from metaharvest.errors import ListError
from metaharvest.model import Finding, Network
from metaharvest.model.values import frozen
from metaharvest.text import counted, shown_url

if TYPE_CHECKING:
    from metaharvest.publishing.comparing import ListDifference
    from metaharvest.publishing.contents import FolderOptions
    from metaharvest.publishing.plan import BuildRequest, Built, ListPlan


@click.group("list")
def command() -> None:
    """Make harvest lists, change, check and compare them. No settings and no database are needed.

    \b
    Example: metaharvest list build /srv/www/eml --base-url https://www.example.org/eml/ --write
    """


_FILE_NAME = "harvest-list.xml"
_Found = tuple[str, Finding]
_EMPTY = Finding(
    "list.empty",
    "There is no document that can be listed, and a harvest list names one at least: nothing was written.",
    "Correct the faults above; or check that this is the right folder, and that --pattern fits the names of files.",
)


@frozen
class _Editing:
    """How a list is changed: the order of its entries, a dry run, the form of the output."""

    keep_order: bool
    dry_run: bool
    as_json: bool

    def edit(self, path: Path, make_plan: Callable[[], ListPlan], hint: str = "") -> int:
        """Plan the change of the list at `path`, carry the plan out, and print the result; the exit code.

        A list that is not valid stays as it is. `hint` is printed if a list was written.
        """
        from metaharvest.publishing.plan import Built, carry_out

        try:
            plan = make_plan()
        except ListError as error:
            if self.as_json:
                nothing = {"listed": 0, **changes_mapping(()), "passed_over": []}
                self._print_json(path, nothing, _findings_of(path, error), valid=False)
            else:
                _print_invalid(path, error)
            return 1
        built = Built(False, 0, ()) if self.dry_run else carry_out(plan)
        findings = [(found.file, found.finding) for found in (*plan.findings, *built.findings)]
        if plan.is_empty:
            findings.append((str(plan.stored.path), _EMPTY))
        if self.as_json:
            done = {"written": built.list_written, "package_ids_written": built.documents_written}
            new = {"listed": len(plan.list_file.entries), **changes_mapping(plan.changes)}
            result = {**done, **new, "passed_over": list(plan.passed_over)}
            self._print_json(plan.stored.path, result, findings, valid=True)
        else:
            self._print(plan, built, findings, hint)
        return 1 if any(finding.is_error for _, finding in findings) else 0

    def _print_json(self, path: Path, result: dict[str, Any], findings: Iterable[_Found], *, valid: bool) -> None:
        """`valid`: true if the former list is valid."""
        about = {"list": str(path), "valid": valid, "dry_run": self.dry_run, "written": False, "package_ids_written": 0}
        print_json({**about, **result, "findings": [finding_mapping(*each) for each in findings]})

    def _print(self, plan: ListPlan, built: Built, findings: Sequence[_Found], hint: str) -> None:
        print_findings(findings)
        print_changes(plan.changes)
        if plan.passed_over:
            shown = ", ".join(plan.passed_over[:5]) + (", …" if len(plan.passed_over) > 5 else "")
            print_line(
                f"Passed over, as hidden files, copies of editors, links to listed files or harvest lists: {shown}"
            )
        if not plan.is_empty:
            print_line(self._sentence(plan, built))
        if built.list_written and hint:
            print_line(hint)

    def _sentence(self, plan: ListPlan, built: Built) -> str:
        number = len(plan.list_file.entries)
        content = counted(number, "document") + (f" ({counted_changes(plan.changes)})" if plan.changes else "")
        path = plan.stored.path
        if self.dry_run:
            verb = "would be written" if plan.changes_list else "would stay as it is"
            return f"{path} {verb}: {content}. Nothing was written."
        if built.list_written:
            number = built.documents_written
            documents_too = f", and the packageId of {counted(number, 'document')}" if number else ""
            return f"Wrote {path}{documents_too}: {content}."
        return f"{path} stays as it is, nothing has changed: {content}."


def _findings_of(path: Path, error: ListError) -> list[_Found]:
    return [(str(path), finding) for finding in error.findings]


def _print_invalid(path: Path, error: ListError) -> None:
    print_findings(_findings_of(path, error), are_paths=True)
    print_line(f"{path} is no valid harvest list: correct it first.", err=True)


_editing = options_as(
    "editing",
    _Editing,
    click.option(
        "--keep-order",
        is_flag=True,
        help="Leave the entries in the order in which they are; new ones come last. [default: sorted by docid]",
    ),
    click.option("--dry-run", is_flag=True, help="Print what would be done; write nothing."),
    AS_JSON,
)
_list_file = click.argument("list_file", metavar="LIST", type=click.Path(dir_okay=False, exists=True, path_type=Path))


@command.command("build")
@click.argument("folder", type=click.Path(file_okay=False, exists=True, path_type=Path))
@click.option("--base-url", "base", metavar="URL", required=True, help="Where FOLDER is on the web.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"The list; the one that is there says what has changed. [default: {_FILE_NAME} in FOLDER]",
)
@FOLDERS
@click.option("--write", "writes", is_flag=True, help="Write raised revisions into the packageIds, too.")
@_editing
def build(
    invocation: Invocation,
    folder: Path,
    base: str,
    output: Path | None,
    options: FolderOptions,
    writes: bool,
    editing: _Editing,
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
        folder, base_url(base, "--base-url https://www.example.org/eml/"), path, options, writes, editing.keep_order
    )
    hint = f"To see what its harvest would say, once it is on the web: {invocation.start} check {_published(request)}"
    return editing.edit(path, lambda: plan_build(request), hint)


def _published(request: BuildRequest) -> str:
    """The URL of the list on the web, if it is in the folder; else its file."""
    folder, output = (Path(os.path.realpath(each)) for each in (request.folder, request.output))
    if not output.is_relative_to(folder):
        return shlex.quote(str(request.output))
    return shlex.quote(request.base.url_of(output.relative_to(folder).as_posix()))


@command.command("add")
@click.argument("list_file", metavar="LIST", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("documents", metavar="URL|FILE...", nargs=-1, required=True)
@click.option("--base-url", "base", metavar="URL", help="Where the folder of the FILEs is on the web.")
@click.option("--url", metavar="URL", help="Where the one FILE is on the web.")
@click.option("--docid", help="The docid of the one document, where its packageId is none, or another.")
@click.option("--write", "writes", is_flag=True, help="Write a raised revision into the packageId of a FILE, too.")
@NETWORKS
@_editing
def add(
    invocation: Invocation,
    list_file: Path,
    documents: tuple[str, ...],
    base: str | None,
    url: str | None,
    docid: str | None,
    writes: bool,
    networks: tuple[Network, ...],
    editing: _Editing,
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
    from metaharvest.publishing.list_store import open_list
    from metaharvest.publishing.naming import base_url
    from metaharvest.publishing.plan import plan_addition

    given = Given(
        documents, base_url(base, "--base-url https://www.example.org/eml/") if base else None, url, docid, networks
    )

    def plan() -> ListPlan:
        stored = open_list(list_file)
        found, problems = read_given(given, stored.list_file, invocation.harvester.settings)
        planned = plan_addition(stored, found, writes=writes, keep_order=editing.keep_order)
        return replace(planned, findings=(*problems, *planned.findings))

    return editing.edit(list_file, plan)


@command.command("remove")
@_list_file
@click.argument("docids", metavar="DOCID...", nargs=-1, required=True)
@_editing
def remove(_invocation: Invocation, list_file: Path, docids: tuple[str, ...], editing: _Editing) -> int:
    """Take documents out of LIST. A DOCID without a revision means all its revisions.

    Nothing is deleted from the central repository: ask its administrator. `list build` lists the document again as
    long as its file is in the folder.

    \b
    Example: metaharvest list remove harvest-list.xml alder.12

    Exit codes: 0 done; 1 LIST is not valid; 2 usage, also where LIST does not name a DOCID.
    """
    from metaharvest.publishing.list_store import open_list
    from metaharvest.publishing.plan import plan_removal

    return editing.edit(list_file, lambda: plan_removal(open_list(list_file), docids, keep_order=editing.keep_order))


@command.command("bump")
@_list_file
@click.argument("docids", metavar="DOCID...", nargs=-1, required=True)
@click.option("--to", type=click.IntRange(min=0), metavar="REVISION", help="This revision. [default: the next one]")
@_editing
def bump(_invocation: Invocation, list_file: Path, docids: tuple[str, ...], to: int | None, editing: _Editing) -> int:
    """Raise the revision of documents in LIST, so that the next harvest fetches them again.

    Raise it in the packageIds, too. A list that is made with `list build` needs no bump: the build finds the changes
    itself.

    \b
    Example: metaharvest list bump harvest-list.xml alder.12
    Example: metaharvest list bump harvest-list.xml alder.12 --to 7

    Exit codes: 0 done; 1 LIST is not valid; 2 usage, also where LIST does not name a DOCID.
    """
    from metaharvest.publishing.list_store import open_list
    from metaharvest.publishing.plan import plan_raise

    return editing.edit(list_file, lambda: plan_raise(open_list(list_file), docids, to, keep_order=editing.keep_order))


_MOST_DIFFERENCES = 500


@command.command("validate")
@_list_file
@click.option("--file-urls", is_flag=True, help="Accept file: URLs, for a site to which the harvester allows a folder.")
@AS_JSON
def validate(_invocation: Invocation, list_file: Path, file_urls: bool, as_json: bool) -> int:
    """Check LIST as its harvest would, without a request to any server.

    The documents are not checked: `metaharvest check` does that.

    \b
    Example: metaharvest list validate harvest-list.xml

    Exit codes: 0 it is a valid harvest list; 1 it is not; 2 usage.
    """
    from metaharvest.publishing.list_store import checked_list

    checked = checked_list(list_file, files_allowed=file_urls)
    findings, is_valid = checked.findings, checked.is_valid
    if as_json:
        mappings = [finding_mapping(str(list_file), finding) for finding in findings]
        print_json({"list": str(list_file), "valid": is_valid, "listed": len(checked.documents), "findings": mappings})
        return 0 if is_valid else 1
    print_findings(((str(list_file), finding) for finding in findings), are_paths=True)
    if is_valid:
        print_line(f"{list_file} is a valid harvest list of {counted(len(checked.documents), 'document')}.")
    else:
        print_line(f"{list_file} is no valid harvest list: nothing of it would be harvested.")
    return 0 if is_valid else 1


@command.command("diff")
@click.argument("old", metavar="OLD", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@click.argument("new", metavar="NEW", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@AS_JSON
def diff(_invocation: Invocation, old: Path, new: Path, as_json: bool) -> int:
    """Show the differences between two harvest lists, OLD and NEW, as a harvest sees them.

    \b
    Example: metaharvest list diff harvest-list.xml.before harvest-list.xml

    Exit codes, the same as of diff: 0 the lists are equal; 1 they differ; 2 usage, or one is not valid.
    """
    from metaharvest.publishing.comparing import differences
    from metaharvest.publishing.list_store import documents_of_list

    documents = []
    for path in (old, new):
        try:
            documents.append(list(documents_of_list(path, files_allowed=True)))
        except ListError as error:
            if as_json:
                print_json(_difference_mapping(old, new, [], _findings_of(path, error)))
            else:
                _print_invalid(path, error)
            return 2
    found = differences(*documents)
    if as_json:
        print_json(_difference_mapping(old, new, found, []))
    else:
        _print_differences(found, old, new)
    return 1 if found else 0


def _difference_mapping(
    old: Path, new: Path, found: Sequence[ListDifference], findings: Sequence[_Found]
) -> dict[str, Any]:
    from metaharvest.publishing.comparing import Difference

    numbers = Counter(each.kind for each in found)
    return {
        "old_list": str(old),
        "new_list": str(new),
        "totals": {kind.value.replace("-", "_"): numbers[kind] for kind in Difference},
        "differences": [
            {
                "kind": each.kind.value,
                "document_id": each.document_id,
                "before": entry_mapping(each.old) if each.old else None,
                "after": entry_mapping(each.new) if each.new else None,
            }
            for each in found
        ],
        "findings": [finding_mapping(*each) for each in findings],
    }


def _print_differences(found: list[ListDifference], old: Path, new: Path) -> None:
    if not found:
        print_line(f"A harvest sees no difference between {old} and {new}.")
        return
    print_table(["", "docid", ""], [_row(each) for each in found[:_MOST_DIFFERENCES]])
    if len(found) > _MOST_DIFFERENCES:
        print_line(f"and {len(found) - _MOST_DIFFERENCES:,} more; --json has all of them.")
    click.echo()
    for kind, number in Counter(each.kind for each in found).items():
        one, several, what = _EFFECTS[kind.value]
        print_line(f"{counted(number, one, several)}: {what}.")


def _row(difference: ListDifference) -> tuple[str, str, str]:
    old, new, kind = difference.old, difference.new, difference.kind.value
    entry = new or old
    assert entry is not None
    docid = f"{entry.docid} (was {old.revision})" if old and new and old.revision != new.revision else entry.docid
    if kind == "type-changed" and old and new:
        return kind, docid, f"{old.document_type} -> {new.document_type}"
    if kind == "url-changed" and old and new:
        return kind, docid, f"{shown_url(old.url)} -> {shown_url(new.url)}"
    return kind, docid, shown_url(entry.url)


_EFFECTS = {
    "added": ("is new", "are new", "fetched, checked and inserted, unless the repository has it"),
    "removed": ("is not listed any more", "are not listed any more", "nothing is deleted from the repository"),
    "raised": ("has a higher revision", "have a higher revision", "fetched, checked and updated"),
    "lowered": ("has a lower revision", "have a lower revision", "reported as stale, and left as in the repository"),
    "url-changed": ("has another URL", "have another URL", "not fetched again under the same revision"),
    "type-changed": ("has another type", "have another type", "not fetched again under the same revision"),
    "revision-added": ("older revision is listed, too", "older revisions are listed, too", "not fetched"),
    "revision-removed": (
        "older revision is gone",
        "older revisions are gone",
        "nothing is deleted from the repository",
    ),
}
"""The words for each kind of difference: for one, for several, and for the harvest's action."""
