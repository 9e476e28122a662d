"""`metaharvest check --watch`: checks again after each change of a file, and prints new and repaired findings.

Files are looked at twice a second: that works on every file system, and for editors that replace a file. Documents on
web servers are fetched once.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from metaharvest.cli.signals import handled, stop_on_signal
from metaharvest.errors import CannotBeChecked
from metaharvest.text import clean, one_line

if TYPE_CHECKING:
    from metaharvest.cli.check_outputs import Outputs
    from metaharvest.cli.invocation import Invocation
    from metaharvest.model import Finding
    from metaharvest.services.check_report import CheckedDocument, CheckedPart, CheckOptions, CheckReport
    from metaharvest.services.runs import StopSignal

_SECONDS = 0.5
"""The pause between two looks at the files, as long as a look takes almost no time."""

_SHARE = 20
"""The largest share of the time for looking at files."""

_NAMED = 5
"""The number of changed files that are named."""

_Fingerprint = tuple[str, str, str, str, str, int]
_Findings = dict[_Fingerprint, tuple["CheckedPart", "CheckedDocument", "Finding"]]
_Stamps = dict[Path, tuple[int, int, int]]


def watch_for_changes(invocation: Invocation, arguments: Sequence[str], how: CheckOptions, outputs: Outputs) -> int:
    """Check, and check again after each change of a file, until Ctrl-C; the exit code.

    Raises CannotBeChecked if there is nothing to check, or nothing to watch; KeyboardInterrupt if the first check was
    interrupted.
    """
    from metaharvest.services.check_report import keeping_copies

    with (
        handled(_stop, signal.SIGTERM),
        tempfile.TemporaryDirectory(prefix="metaharvest-", ignore_cleanup_errors=True) as folder,
    ):
        watched = _Watched(invocation, arguments, keeping_copies(how, Path(folder)), outputs)
        watched.check_first()
        with stop_on_signal("Stopped.") as stop:
            while changed := watched.wait_for_change(stop):
                watched.check_again(changed, stop)
        click.echo("Stopped.", err=True)
        return 0


def _stop(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


class _Watched:
    """The watched files, and the findings of the last check."""

    def __init__(self, invocation: Invocation, arguments: Sequence[str], how: CheckOptions, outputs: Outputs) -> None:
        self._invocation = invocation
        self._arguments = arguments
        self._how = how
        self._outputs = outputs
        self._found: _Findings = {}
        self._paths: tuple[Path, ...] = ()
        self._stamps: _Stamps = {}

    def check_first(self) -> None:
        """Check everything, and print all of it."""
        with ExitStack() as stack:
            report = self._checked(stack)
            if not self._paths:
                raise CannotBeChecked("There is nothing to watch: --watch looks at files and folders of this computer.")
            self._outputs.write(report)
        click.echo("Watching for changes; Ctrl-C ends it.", err=True)
        self._outputs = replace(self._outputs, opens=False)

    def check_again(self, changed: Sequence[Path], stop: StopSignal) -> None:
        """Check everything; print the changes, unless it was stopped."""
        before = self._found
        try:
            with ExitStack() as stack:
                report = self._checked(stack, stop)
                if not stop.is_set():
                    self._outputs.write_files(report)
                    self._print_changes(report, before, changed)
        except CannotBeChecked as error:
            # Perhaps a person is moving the file now.
            click.echo(clean(str(error)), err=True)

    def _checked(self, stack: ExitStack, stop: StopSignal | None = None) -> CheckReport:
        """The report, and the files to watch: changes during the check count as not seen."""
        began, seen = time.time_ns(), self._stamps
        how = replace(self._how, stop=stop)
        checked = stack.enter_context(self._invocation.harvester.check(self._arguments, how))
        report = self._outputs.report_of(checked)
        self._found = _findings(report)
        self._paths = report.local_paths
        now, stamps = time.time_ns(), _stamps(self._paths)
        self._stamps = {path: seen.get(path, stamps[path]) for path in stamps if not began <= stamps[path][0] <= now}
        return report

    def wait_for_change(self, stop: StopSignal) -> list[Path]:
        """The changed, new or removed files, as soon as there are any; none if it was stopped."""
        while not stop.is_set():
            began = time.monotonic()
            now = _stamps(self._paths)
            if now != self._stamps:
                changed = [path for path in (now | self._stamps) if now.get(path) != self._stamps.get(path)]
                self._stamps = now
                return changed
            time.sleep(max(_SECONDS, _SHARE * (time.monotonic() - began)))
        return []

    def _print_changes(self, report: CheckReport, before: _Findings, changed: Sequence[Path]) -> None:
        """Print new findings, former findings, and the expected results."""
        from metaharvest.cli.check_outputs import printer_of

        printer = printer_of(report)
        names = [one_line(report.places.name(path.as_uri())) for path in changed]
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        printer.line(f"{time.strftime('%H:%M:%S')}  {', '.join(names[:_NAMED])}{more}", "bold cyan")
        for key, (part, document, finding) in self._found.items():
            if key not in before:
                printer.finding(part, document, finding)
        for key, (_, document, finding) in before.items():
            if key not in self._found:
                printer.line(f"Gone: {report.places.name(document.url)}  {finding.rule}  {finding.message}", "green")
        levels = Counter(finding.level.value for _, _, finding in self._found.values())
        errors, warnings = levels["error"], levels["warning"]
        printer.line(f"{report.story}. Errors: {errors:,}, warnings: {warnings:,}.", "bold red" if errors else "bold")


def _findings(report: CheckReport) -> _Findings:
    """Every finding by a key that does not depend on its line.

    A docid that no list gives is not part of the key: it changes with the docids of other files.
    """
    found: _Findings = {}
    number: Counter[tuple[str, ...]] = Counter()
    for part, documents in report.parts:
        for document in documents:
            for finding in document.reported_findings:
                docid = document.docid if part.name.is_list else ""
                key = (document.url, docid, finding.rule, finding.xpath, finding.message)
                number[key] += 1
                found[(*key, number[key])] = (part, document, finding)
    return found


def _stamps(paths: Iterable[Path]) -> _Stamps:
    """The time of the last change, the size and the inode of each of these files; of a folder, of each file in it."""
    from metaharvest.services.check_report import is_looked_at

    stamps: _Stamps = {}
    for path in paths:
        if path.is_dir():
            for where, folders, names in os.walk(path):
                folders[:] = [name for name in folders if not name.startswith(".")]
                for name in filter(is_looked_at, names):
                    _add_stamp(Path(where, name), stamps)
        else:
            _add_stamp(path, stamps)
    return stamps


def _add_stamp(path: Path, stamps: _Stamps) -> None:
    with suppress(OSError):
        if path not in stamps:
            found = path.stat()
            stamps[path] = found.st_mtime_ns, found.st_size, found.st_ino
