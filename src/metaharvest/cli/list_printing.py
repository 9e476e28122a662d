"""The common part of the commands of `metaharvest list`: carries plans out, prints findings and changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.printing import print_json, print_line
from metaharvest.cli.tables import print_table
from metaharvest.errors import ListError
from metaharvest.model import Finding, ListedDocument
from metaharvest.model.mappings import picked
from metaharvest.publishing.entries import Change
from metaharvest.text import counted, one_line, shown_url

if TYPE_CHECKING:
    from metaharvest.publishing.entries import ListChange
    from metaharvest.publishing.plan import Built, ListPlan


AS_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Print what would be done; write nothing.")
KEEP_ORDER = click.option(
    "--keep-order",
    is_flag=True,
    help="Leave the entries in the order in which they are; new ones come last. [default: sorted by docid]",
)
LIST_FILE = click.argument("list_file", metavar="LIST", type=click.Path(dir_okay=False, exists=True, path_type=Path))

_EMPTY = Finding(
    "list.empty",
    "There is no document that can be listed, and a harvest list names one at least: nothing was written.",
    "Correct the faults above; or check that this is the right folder, and that --pattern fits the names of files.",
)


class InvalidList(Exception):
    """The list in the file at `path` is not valid; `findings` say why."""

    def __init__(self, path: Path, findings: Sequence[Finding]) -> None:
        super().__init__(str(path))
        self.path = path
        self.findings = [(str(path), finding) for finding in findings]

    def report(self) -> None:
        """Print the findings, for people."""
        print_findings(self.findings, are_paths=True)
        print_line(f"{self.path} is no valid harvest list: correct it first.", err=True)


@contextmanager
def list_errors(path: Path) -> Iterator[None]:
    """Raises InvalidList for a ListError."""
    try:
        yield
    except ListError as error:
        raise InvalidList(path, error.findings) from None


def refuse(invalid: InvalidList, *, dry_run: bool, as_json: bool) -> int:
    """Report that a list was not changed, as it is not valid; the exit code."""
    if as_json:
        nothing = {"listed": 0, **changes_mapping(()), "passed_over": []}
        print_json(_document(invalid.path, dry_run, nothing, invalid.findings, valid=False))
    else:
        invalid.report()
    return 1


def perform(plan: ListPlan, *, dry_run: bool, as_json: bool, hint: str = "") -> int:
    """Carry out a plan, unless it is a dry run, and print the result; the exit code.

    `hint` is printed if a list was written.
    """
    from metaharvest.publishing.plan import Built, carry_out

    built = Built(False, 0, ()) if dry_run else carry_out(plan)
    findings = [(found.file, found.finding) for found in (*plan.findings, *built.findings)]
    if plan.is_empty:
        findings.append((str(plan.stored.path), _EMPTY))
    if as_json:
        print_json(_as_mapping(plan, built, findings, dry_run))
    else:
        _print(plan, built, findings, dry_run, hint)
    return 1 if any(finding.is_error for _, finding in findings) else 0


def _as_mapping(plan: ListPlan, built: Built, findings: Sequence[tuple[str, Finding]], dry_run: bool) -> dict[str, Any]:
    done = {"written": built.list_written, "package_ids_written": built.documents_written}
    new = {"listed": len(plan.list_file.entries), **changes_mapping(plan.changes)}
    result = {**done, **new, "passed_over": list(plan.passed_over)}
    return _document(plan.stored.path, dry_run, result, findings, valid=True)


def _document(
    path: Path, dry_run: bool, result: dict[str, Any], findings: Sequence[tuple[str, Finding]], *, valid: bool
) -> dict[str, Any]:
    """The output of --json; `valid`: true if the former list is valid."""
    nothing = {"written": False, "package_ids_written": 0}
    finding_objects = [finding_mapping(*each) for each in findings]
    return {"list": str(path), "valid": valid, "dry_run": dry_run, **nothing, **result, "findings": finding_objects}


def _print(plan: ListPlan, built: Built, findings: Sequence[tuple[str, Finding]], dry_run: bool, hint: str) -> None:
    print_findings(findings)
    print_changes(plan.changes)
    if plan.passed_over:
        shown = ", ".join(plan.passed_over[:5]) + (", …" if len(plan.passed_over) > 5 else "")
        print_line(f"Passed over, as hidden files, copies of editors, links to listed files or harvest lists: {shown}")
    if not plan.is_empty:
        print_line(_sentence(plan, built, dry_run))
    if built.list_written and hint:
        print_line(hint)


def _sentence(plan: ListPlan, built: Built, dry_run: bool) -> str:
    number = len(plan.list_file.entries)
    content = counted(number, "document") + (f" ({counted_changes(plan.changes)})" if plan.changes else "")
    path = plan.stored.path
    if dry_run:
        verb = "would be written" if plan.changes_list else "would stay as it is"
        return f"{path} {verb}: {content}. Nothing was written."
    if built.list_written:
        number = built.documents_written
        documents_too = f", and the packageId of {counted(number, 'document')}" if number else ""
        return f"Wrote {path}{documents_too}: {content}."
    return f"{path} stays as it is, nothing has changed: {content}."


_MOST_FINDINGS = 50
"""The limit for each rule: a fault of one document is often a fault of many."""

_MOST_PLACES = 5
"""The files that are named after the first one with the same problem."""

_QUOTED = re.compile(r"(?<!\w)'[^']*'")
_MOST_CHANGES = 200
_SHOWN = {
    Change.ADDED: "new",
    Change.RAISED: "changed",
    Change.RAISED_BY_HAND: "raised by hand",
    Change.MOVED: "other URL or type",
    Change.HELD: "left as it was",
    Change.REMOVED: "removed",
    Change.DUPLICATE: "second entry removed",
}
"""The changes that are shown individually."""

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
            printer.finding(place_in(one_line(file), finding), finding, finding.docid, path, places, more)
    printer.more(rules, _MOST_FINDINGS, "--json")


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
    """The problem without its place: the message without names of files and without quoted values."""
    words = [word for word in finding.message.split() if word.strip(",:.") not in files]
    return finding.rule, finding.level.value, _QUOTED.sub("''", " ".join(words))


def print_changes(changes: Iterable[ListChange]) -> None:
    """Print a line for every changed entry."""
    shown = [change for change in changes if change.change in _SHOWN or change.writes]
    if not shown:
        return
    rows = [(_SHOWN.get(change.change, ""), _docids(change), _what(change)) for change in shown[:_MOST_CHANGES]]
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
    numbers = Counter(change.change for change in changes)
    return ", ".join(f"{numbers[kind]:,} {word}" for kind, word in _COUNTED.items() if numbers[kind])


def finding_mapping(file: str, finding: Finding) -> dict[str, Any]:
    """A finding for JSON."""
    keys = "rule level=level.value message remedy line column xpath excerpt docid"
    return {"file": file, **picked(finding, keys)}


def entry_mapping(document: ListedDocument) -> dict[str, Any]:
    """An entry of a list for JSON."""
    return picked(document, "docid document_id revision document_type url")


def change_mapping(change: ListChange) -> dict[str, Any]:
    """The change of an entry, for JSON."""
    about = {"kind": change.change.value, "old_revision": change.was, "file": change.file or None}
    return {**entry_mapping(change.document), **about, "package_id_written": change.writes}


def changes_mapping(changes: Iterable[ListChange]) -> dict[str, Any]:
    """The changes of a list's entries, for JSON: the number of each kind, and each entry."""
    all_changes = list(changes)
    numbers = Counter(change.change for change in all_changes)
    totals = {kind.value.replace("-", "_"): numbers[kind] for kind in Change}
    return {"totals": totals, "entries": [change_mapping(change) for change in all_changes]}
