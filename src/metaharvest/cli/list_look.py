"""`metaharvest list validate` and `diff`: read harvest lists, and change nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.list_plan import AS_JSON, LIST_FILE, InvalidList, list_errors
from metaharvest.cli.list_printing import entry_mapping, finding_mapping, print_findings
from metaharvest.cli.printing import print_json, print_line
from metaharvest.cli.tables import print_table
from metaharvest.text import counted, shown_url

if TYPE_CHECKING:
    from metaharvest.model import Finding, ListedDocument
    from metaharvest.publishing.comparing import ListDifference

_MOST_DIFFERENCES = 500


@click.command("validate")
@LIST_FILE
@click.option("--file-urls", is_flag=True, help="Accept file: URLs, for a site to which the harvester allows a folder.")
@AS_JSON
def validate(list_file: Path, file_urls: bool, as_json: bool) -> int:
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


@click.command("diff")
@click.argument("old", metavar="OLD", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@click.argument("new", metavar="NEW", type=click.Path(dir_okay=False, exists=True, path_type=Path))
@AS_JSON
def diff(old: Path, new: Path, as_json: bool) -> int:
    """Show the differences between two harvest lists, OLD and NEW, as a harvest sees them.

    \b
    Example: metaharvest list diff harvest-list.xml.before harvest-list.xml

    Exit codes, the same as of diff: 0 the lists are equal; 1 they differ; 2 usage, or one is not valid.
    """
    from metaharvest.publishing.comparing import differences

    try:
        found = differences(*(_documents(path) for path in (old, new)))
    except InvalidList as invalid:
        if as_json:
            print_json(_as_mapping(old, new, [], invalid.findings))
        else:
            invalid.report()
        return 2
    if as_json:
        print_json(_as_mapping(old, new, found, []))
    else:
        _print(found, old, new)
    return 1 if found else 0


def _documents(path: Path) -> list[ListedDocument]:
    """The documents of a list. Raises InvalidList."""
    from metaharvest.publishing.list_store import documents_of_list

    with list_errors(path):
        return list(documents_of_list(path, files_allowed=True))


def _as_mapping(
    old: Path, new: Path, found: Sequence[ListDifference], findings: Sequence[tuple[str, Finding]]
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


def _print(found: list[ListDifference], old: Path, new: Path) -> None:
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
