"""The output of the commands of `metaharvest list`: findings, and changes of entries, both also as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.printing import print_line, print_table
from metaharvest.model import Finding, ListedDocument
from metaharvest.model.mappings import picked
from metaharvest.text import one_line, shown_url

if TYPE_CHECKING:
    from metaharvest.publishing.entries import ListChange

_MOST_FINDINGS = 50
"""The limit for each rule: a fault of one document is often a fault of many."""

_MOST_PLACES = 5
"""The files that are named after the first one with the same problem."""

_QUOTED = re.compile(r"""(?<!\w)'[^']*'|"[^"]*\"""")
_MOST_CHANGES = 200
_WORDS = {
    "added": ("new", "new"),
    "raised": ("changed", "changed"),
    "raised-by-hand": ("raised by hand", "raised by hand"),
    "moved": ("with another URL or type", "other URL or type"),
    "held": ("left as they were", "left as it was"),
    "removed": ("removed", "removed"),
    "duplicate": ("listed twice", "second entry removed"),
    "elsewhere": ("not of this folder", ""),
    "unchanged": ("unchanged", ""),
}
"""The words for each Change, by its value (its module takes half a second to import): for a number of entries, and for
one of them, if it is shown."""


def print_findings(findings: Iterable[tuple[str, Finding]], *, are_paths: bool = False) -> None:
    """Print findings, each with its file; `are_paths`: it is a path, so that its lines can be shown.

    The same problem of several files is printed once, with the first places.
    """
    from metaharvest.cli.finding_text import FindingPrinter, place_in

    printer, rules = FindingPrinter(), Counter[str]()
    for (file, finding), *others in _by_problem(list(findings)):
        rules[finding.rule] += 1
        if rules[finding.rule] <= _MOST_FINDINGS:
            path = Path(file) if are_paths else None
            places = [place_in(one_line(name), each) for name, each in others[:_MOST_PLACES]]
            more = len(others) - len(places)
            printer.print_finding(place_in(one_line(file), finding), finding, finding.docid, path, places, more)
    printer.more({rule: number - _MOST_FINDINGS for rule, number in rules.items()}, "--json")


def _by_problem(found: Sequence[tuple[str, Finding]]) -> Iterable[Sequence[tuple[str, Finding]]]:
    """The findings in groups of the same problem. Findings of one file stay alone: their places differ by line only."""
    files = {file for file, _ in found}
    if len(files) <= 1:
        return [[each] for each in found]
    same: dict[tuple[str, ...], list[tuple[str, Finding]]] = {}
    for file, finding in found:
        same.setdefault(_problem(finding, files), []).append((file, finding))
    return same.values()


def _problem(finding: Finding, files: Collection[str]) -> tuple[str, ...]:
    """The problem without its place: message and remedy without names of files and without quoted values."""
    words = [word for word in f"{finding.message} {finding.remedy}".split() if word.strip(",:.") not in files]
    return finding.rule, finding.level.value, _QUOTED.sub("''", " ".join(words))


def print_changes(changes: Iterable[ListChange]) -> None:
    """Print a line for every changed entry."""
    shown = [change for change in changes if _WORDS[change.change][1] or change.writes]
    if not shown:
        return
    rows = [(_WORDS[change.change][1], _docids(change), _what(change)) for change in shown[:_MOST_CHANGES]]
    print_table(["", "docid", ""], rows)
    if len(shown) > _MOST_CHANGES:
        print_line(f"and {len(shown) - _MOST_CHANGES:,} more; --json has all of them.")
    click.echo()


def _docids(change: ListChange) -> str:
    docid, is_raised = change.document.docid, change.was not in (None, change.document.revision)
    return f"{docid} (was {change.was})" if is_raised else docid


def _what(change: ListChange) -> str:
    return (change.file or shown_url(change.document.url)) + (", packageId written" if change.writes else "")


def counted_changes(changes: Iterable[ListChange]) -> str:
    """The number of entries of each kind, in words: `1 new, 2 changed, 9 unchanged`."""
    numbers = Counter[str](change.change for change in changes)
    return ", ".join(f"{numbers[kind]:,} {word}" for kind, (word, _) in _WORDS.items() if numbers[kind])


def finding_mapping(file: str, finding: Finding) -> dict[str, Any]:
    """A finding for JSON."""
    keys = "rule level=level.value message remedy line column xpath excerpt docid"
    return {"file": file, **picked(finding, keys)}


def entry_mapping(document: ListedDocument) -> dict[str, Any]:
    """An entry of a list for JSON."""
    return picked(document, "docid document_id revision document_type url")


def changes_mapping(changes: Iterable[ListChange]) -> dict[str, Any]:
    """The changes of a list's entries, for JSON: the number of each kind, and each entry."""
    from metaharvest.publishing.entries import Change

    all_changes = list(changes)
    numbers = Counter(change.change for change in all_changes)
    totals = {kind.value.replace("-", "_"): numbers[kind] for kind in Change}
    keys = "kind=change.value old_revision=was file package_id_written=writes"
    entries = [
        {**entry_mapping(each.document), **picked(each, keys), "file": each.file or None} for each in all_changes
    ]
    return {"totals": totals, "entries": entries}
