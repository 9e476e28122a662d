"""The common part of all commands that change a harvest list: they plan, print, write, and end with an exit code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.list_printing import (
    changes_mapping,
    counted_changes,
    finding_mapping,
    print_changes,
    print_findings,
)
from metaharvest.cli.printing import print_json, print_line
from metaharvest.errors import ListError
from metaharvest.model import Finding
from metaharvest.text import counted

if TYPE_CHECKING:
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
