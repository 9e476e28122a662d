"""What the commands of `metaharvest list` print: findings, what happens to the entries of a list, both as JSON."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.printing import print_line, print_table
from metaharvest.model import Finding, Level, ListedDocument
from metaharvest.sources.publishing.revisions import Change
from metaharvest.text import one_line, shown_url

if TYPE_CHECKING:
    from metaharvest.sources.publishing.entries import ListChange

_MOST_FINDINGS = 50
"""Of one rule: what is wrong with one document is often wrong with many."""

_MOST_CHANGES = 200
_MOST_CHARACTERS = 2000
_STYLES = {Level.ERROR: "red", Level.WARNING: "yellow"}
_TOLD = {
    Change.ADDED: "new",
    Change.RAISED: "changed",
    Change.RAISED_BY_HAND: "raised by hand",
    Change.MOVED: "other URL or type",
    Change.HELD: "left as it was",
    Change.REMOVED: "removed",
    Change.DUPLICATE: "second entry removed",
}
"""The changes that people are told one by one."""

_COUNTED = {
    Change.ADDED: "new",
    Change.RAISED: "changed",
    Change.RAISED_BY_HAND: "raised by hand",
    Change.MOVED: "with another URL or type",
    Change.HELD: "left as they were",
    Change.REMOVED: "removed",
    Change.DUPLICATE: "listed twice",
    Change.ELSEWHERE: "not of this folder",
    Change.UNCHANGED: "unchanged",
}


def print_findings(findings: Iterable[tuple[str, Finding]]) -> None:
    """Findings, each with the file that it is about: where, what is wrong, the excerpt, and what to do."""
    rules: Counter[str] = Counter()
    for file, finding in findings:
        rules[finding.rule] += 1
        if rules[finding.rule] <= _MOST_FINDINGS:
            _print_finding(file, finding)
    for rule, number in rules.items():
        if number > _MOST_FINDINGS:
            print_line(f"{number - _MOST_FINDINGS:,} more like these ({rule}); --json has all of them.")


def _print_finding(file: str, finding: Finding) -> None:
    place = [one_line(file), *(str(number) for number in (finding.line, finding.column) if number)]
    level = click.style(finding.level.value, fg=_STYLES[finding.level], bold=True)
    docid = f"  {one_line(finding.docid)}" if finding.docid else ""
    click.echo(f"{click.style(':'.join(place), bold=True)}  {level}  {finding.rule}{docid}")
    _print_indented(finding.message)
    if finding.excerpt:
        click.echo(f"      | {one_line(finding.excerpt, _width() - 8)}")
    if finding.remedy:
        _print_indented(f"What to do: {finding.remedy}")
    click.echo()


def _print_indented(text: str) -> None:
    """A paragraph: folded on a terminal, one line elsewhere."""
    lines = textwrap.wrap(one_line(text, _MOST_CHARACTERS), _width(), break_long_words=False, break_on_hyphens=False)
    for line in lines:
        print_line(line, indent=2)


def _width() -> int:
    """Characters that a line may have."""
    return max(40, shutil.get_terminal_size().columns - 2) if sys.stdout.isatty() else _MOST_CHARACTERS


def print_changes(changes: Iterable[ListChange]) -> None:
    """A line for every entry that is not as it was."""
    told = [change for change in changes if change.change in _TOLD or change.writes]
    if not told:
        return
    rows = [(_TOLD.get(change.change, ""), _docids(change), _what(change)) for change in told[:_MOST_CHANGES]]
    print_table(["", "docid", ""], rows)
    if len(told) > _MOST_CHANGES:
        print_line(f"and {len(told) - _MOST_CHANGES:,} more; --json has all of them.")
    click.echo()


def _docids(change: ListChange) -> str:
    docid, is_raised = change.document.docid, change.was not in (None, change.document.revision)
    return f"{docid} (was {change.was})" if is_raised else docid


def _what(change: ListChange) -> str:
    return (change.file or shown_url(change.document.url)) + (", packageId written" if change.writes else "")


def counted(changes: Iterable[ListChange]) -> str:
    """How many entries there are of each kind, in words: `1 new, 2 changed, 9 unchanged`."""
    numbers = Counter(change.change for change in changes)
    return ", ".join(f"{numbers[kind]:,} {word}" for kind, word in _COUNTED.items() if numbers[kind])


def finding_mapping(file: str, finding: Finding) -> dict[str, Any]:
    """A finding for JSON."""
    return {
        "file": file,
        "rule": finding.rule,
        "level": finding.level.value,
        "message": finding.message,
        "remedy": finding.remedy,
        "line": finding.line,
        "column": finding.column,
        "xpath": finding.xpath,
        "excerpt": finding.excerpt,
        "docid": finding.docid,
    }


def entry_mapping(document: ListedDocument) -> dict[str, Any]:
    """An entry of a list for JSON."""
    return {
        "docid": document.docid,
        "document_id": document.document_id,
        "revision": document.revision,
        "document_type": document.document_type,
        "url": document.url,
    }


def change_mapping(change: ListChange) -> dict[str, Any]:
    """What happens to an entry, for JSON."""
    about = {"kind": change.change.value, "old_revision": change.was, "file": change.file or None}
    return {**entry_mapping(change.document), **about, "package_id_written": change.writes}


def changes_mapping(changes: Iterable[ListChange]) -> dict[str, Any]:
    """What happens to the entries of a list, for JSON: how many of each kind, and one by one."""
    told = list(changes)
    numbers = Counter(change.change for change in told)
    totals = {kind.value.replace("-", "_"): numbers[kind] for kind in Change}
    return {"totals": totals, "entries": [change_mapping(change) for change in told]}
