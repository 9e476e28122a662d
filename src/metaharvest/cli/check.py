"""`metaharvest check`: a rehearsal: what would tomorrow's report say?

`metaharvest check --watch` checks again after each change of a file, and prints new and repaired findings. Files are
looked at twice a second: that works on every file system, and for editors that replace a file. Documents on web servers
are fetched once.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from metaharvest.cli import services
from metaharvest.cli.invocation import AS_JSON, FOLDERS, NETWORKS, Invocation, called_as, options_as
from metaharvest.cli.printing import json_text, new_page, opened, print_csv, print_json
from metaharvest.cli.signals import handled, stop_on_signal
from metaharvest.errors import CannotBeChecked
from metaharvest.model import Finding, Level, Network
from metaharvest.model.values import frozen
from metaharvest.queries.json_keys import as_mapping
from metaharvest.text import clean, counted, joined, one_line, some_of

if TYPE_CHECKING:
    from metaharvest.cli.finding_text import CheckPrinter
    from metaharvest.services.check_report import CheckedDocument, CheckOptions, CheckReport, FolderOptions
    from metaharvest.services.harvester import Checked
    from metaharvest.services.runs import StopSignal


_STDOUT = Path("-")


@frozen
class _Outputs:
    """The requested outputs. A file with the name `-` is stdout."""

    as_json: bool = False
    as_csv: bool = False
    sarif: Path | None = None
    junit: Path | None = None
    html: Path | None = None
    opens: bool = False

    @property
    def _files(self) -> Mapping[str, Path]:
        named = {"--sarif": self.sarif, "--junit": self.junit, "--html": self.html}
        return {option: file for option, file in named.items() if file is not None}

    @property
    def _on_stdout(self) -> list[str]:
        """The options that print something else than text on stdout."""
        options = [option for option, asked in (("--json", self.as_json), ("--csv", self.as_csv)) if asked]
        return options + [f"{option} -" for option, file in self._files.items() if file == _STDOUT]

    def require_possible(self) -> None:
        """Raises UsageError for impossible outputs, before anything is checked."""
        if len(self._on_stdout) > 1:
            first, second, *_ = self._on_stdout
            raise click.UsageError(f"{first} and {second} are two ways to print the same: use one of the two.")
        if self.opens and self.html == _STDOUT:
            raise click.UsageError("--open opens a file: give --html the name of one, or leave it out.")
        taken: dict[Path, str] = {}
        for option, file in self._files.items():
            if file != _STDOUT and (other := taken.setdefault(file.resolve(), option)) != option:
                both = f"{other} and {option} name the same file, {one_line(str(file))}"
                raise click.UsageError(f"{both}: give each a file of its own.")
            if file != _STDOUT and not (file.parent.is_dir() and os.access(file.parent, os.W_OK)):
                raise click.UsageError(f"{option} {one_line(str(file))}: nothing can be written in {file.parent}.")

    def report_of(self, checked: Checked) -> CheckReport:
        """The report about the rehearsal, for these outputs: JUnit names valid documents, too."""
        return services.check_report.CheckReport(checked, all_of_them=self.junit is not None)

    def write(self, report: CheckReport) -> None:
        """Print and write all requested outputs."""
        for note in report.checked.given.arguments.notes:
            click.echo(clean(note), err=True)
        if self.as_json:
            findings = [{**as_mapping(each.finding), "file": each.file} for each in report.findings]
            notes = [*report.checked.given.arguments.notes, *report.notes]
            print_json({**as_mapping(report.record), "sites": report.sites, "findings": findings, "notes": notes})
        elif self.as_csv:
            print_csv(report.csv())
        elif not self._on_stdout:
            self.print_text(report)
        self.write_files(report)

    def print_text(self, report: CheckReport) -> None:
        """Print all findings and the expected results on stdout."""
        printer = _printer_of(report)
        levels: Counter[Level] = Counter()
        for part in report.parts:
            levels += printer.part(part)
        for sentence in report.summary:
            printer.line(sentence, "bold")
        numbers = [(levels[Level.ERROR], "error"), (levels[Level.WARNING], "warning")]
        if found := joined([counted(number, what) for number, what in numbers if number]):
            printer.line(f"{found}.", "red" if levels[Level.ERROR] else "yellow")
        for sentence in report.notes:
            printer.line(sentence, "dim")

    def write_files(self, report: CheckReport) -> None:
        """Write SARIF, JUnit and HTML, if they were requested; open the page."""
        if self.sarif is not None:
            _put(self.sarif, json_text(report.sarif()) + "\n")
        if self.junit is not None:
            _put(self.junit, report.junit())
        if self.html is not None or self.opens:
            text = report.page()
            file = self.html or new_page("check")
            _put(file, text)
            if self.opens:
                click.echo(opened(file), err=True)


def _printer_of(report: CheckReport) -> CheckPrinter:
    from metaharvest.cli.finding_text import CheckPrinter

    return CheckPrinter(report.places, report.checked.harvester.settings.reports.lines_per_group)


def _put(file: Path, text: str) -> None:
    if file == _STDOUT:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise click.ClickException(f"{one_line(str(file))} cannot be written: {error.strerror}.") from error


_NOBODY_ASKED = (
    "Rehearsing without the database and the target of {file}, so every document counts as new: the file was found in "
    "this folder, and it may send secrets to another computer. If it is yours, name it: {start} --config {file} check …"
)

_FILE = click.Path(dir_okay=False, writable=True, allow_dash=True, path_type=Path)


@click.command("check")
@click.argument("arguments", metavar="URL|FILE|FOLDER...", nargs=-1)
@click.option(
    "--site", "as_site", metavar="NAME", help="Rehearse as this registered site (default: the one of the URL)."
)
@click.option(
    "--against",
    metavar="TARGET",
    help="Say what would be inserted there, updated, or is unchanged: `target`, `embedded`, or NAME of a section "
    "[targets.NAME] in the settings.",
)
@NETWORKS
@FOLDERS
@options_as(
    "outputs",
    _Outputs,
    AS_JSON,
    click.option("--csv", "as_csv", is_flag=True, help="The table of documents, as CSV on stdout."),
    click.option("--sarif", type=_FILE, metavar="FILE", help="Write the findings as SARIF 2.1.0, for code scanning."),
    click.option("--junit", type=_FILE, metavar="FILE", help="Write a JUnit report, for services that run tests."),
    click.option("--html", type=_FILE, metavar="FILE", help="Write an HTML page."),
    click.option("--open", "opens", is_flag=True, help="Open the HTML page in a browser."),
)
@click.option("--watch", is_flag=True, help="Check again whenever a file changes, until Ctrl-C.")
def command(
    invocation: Invocation,
    arguments: tuple[str, ...],
    as_site: str | None,
    against: str | None,
    networks: tuple[Network, ...],
    options: FolderOptions,
    outputs: _Outputs,
    watch: bool,
) -> int:
    """Rehearse the harvest of lists, documents and folders of them: what would tomorrow's report say?

    Each may be a URL, a file or a folder, or `-` for standard input. Everything is fetched and checked as at night, and
    nothing is written. A list in a file may name its documents by relative URLs: they are read from there. No settings
    and no database are needed; if there are some, the documents are compared with the central repository.

    Exit codes: 0 all is well; 1 a list cannot be read, or documents have errors; 2 settings or usage.

    \b
    Example: metaharvest check https://alder.example.org/list.xml
             metaharvest check harvest-list.xml eml/
             metaharvest check eml/ --watch
             metaharvest check eml/ --sarif eml.sarif --junit eml.junit.xml
    """
    outputs.require_possible()
    if watch and (outputs.as_json or outputs.as_csv or "-" in arguments):
        raise click.UsageError("--watch shows people what changed: use it without --json, --csv and `-`.")
    how = services.check_report.CheckOptions(
        as_site, against, networks, standard_input=getattr(sys.stdin, "buffer", None), folders=options
    )
    try:
        if watch:
            return _watch_for_changes(invocation, arguments, how, outputs)
        return _check(invocation, arguments, how, outputs)
    except CannotBeChecked as error:
        raise click.UsageError(clean(str(error))) from None
    except KeyboardInterrupt:
        if outputs.as_json:
            raise click.Abort from None
        click.echo("Stopped.", err=True)
        return 130


def _check(invocation: Invocation, arguments: Sequence[str], how: CheckOptions, outputs: _Outputs) -> int:
    """The rehearsal, and its output; returns the exit code."""
    from metaharvest.cli.progress import shown_progress

    harvester = invocation.harvester
    settings = harvester.settings
    if services.check_report.asks_nobody(settings, how):
        click.echo(clean(_NOBODY_ASKED.format(start=called_as(), file=shlex.quote(str(settings.file)))), err=True)
    elif how.against is None and (settings.file or settings.variables) and (error := harvester.database_error):
        # The contact of a site needs no database, so that no remedy is printed.
        why = str(error).partition(". ")[0].rstrip(".")
        click.echo(clean(f"Rehearsing without a database, so every document counts as new. ({why}.)"), err=True)
    with ExitStack() as stack:
        with shown_progress(transient=True) as progress:
            checked = stack.enter_context(harvester.check(arguments, how, progress))
        report = outputs.report_of(checked)
        outputs.write(report)
    return int(report.has_errors)


# -- --watch

_PAUSE_SECONDS = 0.5
"""The pause between two looks at the files, as long as a look takes almost no time."""

_LOOKING_SHARE = 20
"""The largest share of the time for looking at files."""

_MOST_NAMED = 5
_Fingerprint = tuple[str, str, str, str, str, int]
_Findings = dict[_Fingerprint, tuple["CheckedDocument", Finding]]
_Stamps = dict[Path, tuple[int, int, int]]


def _watch_for_changes(invocation: Invocation, arguments: Sequence[str], how: CheckOptions, outputs: _Outputs) -> int:
    """Check, and check again after each change of a file, until Ctrl-C; the exit code.

    Raises CannotBeChecked if there is nothing to check, or nothing to watch; KeyboardInterrupt if the first check was
    interrupted.
    """
    with (
        handled(signal.default_int_handler, signal.SIGTERM),
        tempfile.TemporaryDirectory(prefix="metaharvest-", ignore_cleanup_errors=True) as folder,
    ):
        copies = services.check_report.Copies(Path(folder), reused=True)
        watched = _Watched(invocation, arguments, replace(how, copies=copies), outputs)
        watched.check_first()
        with stop_on_signal("Stopped.") as stop:
            while changed := watched.wait_for_change(stop):
                watched.check_again(changed, stop)
        click.echo("Stopped.", err=True)
        return 0


class _Watched:
    """The watched files, and the findings of the last check."""

    def __init__(self, invocation: Invocation, arguments: Sequence[str], how: CheckOptions, outputs: _Outputs) -> None:
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
        self._found = _findings_by_key(report)
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
            time.sleep(max(_PAUSE_SECONDS, _LOOKING_SHARE * (time.monotonic() - began)))
        return []

    def _print_changes(self, report: CheckReport, before: _Findings, changed: Sequence[Path]) -> None:
        """Print new findings, former findings, and the expected results."""
        printer = _printer_of(report)
        names = [one_line(report.places.name(path.as_uri())) for path in changed]
        printer.line(f"{time.strftime('%H:%M:%S')}  {some_of(names, _MOST_NAMED)}", "bold cyan")
        for key, (document, finding) in self._found.items():
            if key not in before:
                printer.finding(document, finding)
        for key, (document, finding) in before.items():
            if key not in self._found:
                printer.line(f"Gone: {report.places.name(document.url)}  {finding.rule}  {finding.message}", "green")
        levels = Counter(finding.level.value for _, finding in self._found.values())
        errors, warnings = levels["error"], levels["warning"]
        printer.line(f"{report.story}. Errors: {errors:,}, warnings: {warnings:,}.", "bold red" if errors else "bold")


def _findings_by_key(report: CheckReport) -> _Findings:
    """Every finding by a key that does not depend on its line.

    A docid that no list gives is not part of the key: it changes with the docids of other files.
    """
    found: _Findings = {}
    number: Counter[tuple[str, ...]] = Counter()
    for part in report.parts:
        for document, finding in part.reported:
            key = (document.url, document.listed_docid, finding.rule, finding.xpath, finding.message)
            number[key] += 1
            found[(*key, number[key])] = (document, finding)
    return found


def _stamps(paths: Iterable[Path]) -> _Stamps:
    """The time of the last change, the size and the inode of each of these files; of a folder, of each file in it."""
    stamps: _Stamps = {}
    for path in paths:
        if path.is_dir():
            for where, folders, names in os.walk(path):
                folders[:] = [name for name in folders if not name.startswith(".")]
                for name in filter(services.check_report.is_looked_at, names):
                    _add_stamp(Path(where, name), stamps)
        else:
            _add_stamp(path, stamps)
    return stamps


def _add_stamp(path: Path, stamps: _Stamps) -> None:
    with suppress(OSError):
        if path not in stamps:
            found = path.stat()
            stamps[path] = found.st_mtime_ns, found.st_size, found.st_ino
