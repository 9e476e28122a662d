"""The output of `check`: text, JSON or CSV on stdout; SARIF, JUnit and HTML into files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.printing import json_text, new_page, opened, print_json
from metaharvest.queries.json_keys import as_mapping
from metaharvest.text import clean, counted, joined, one_line

if TYPE_CHECKING:
    from metaharvest.cli.finding_text import CheckPrinter
    from metaharvest.model import Level
    from metaharvest.services.check_report import CheckReport
    from metaharvest.services.harvester import Checked

STDOUT = Path("-")


@dataclass(frozen=True, slots=True)
class Outputs:
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
        return options + [f"{option} -" for option, file in self._files.items() if file == STDOUT]

    def require_possible(self) -> None:
        """Raises UsageError for impossible outputs, before anything is checked."""
        if len(self._on_stdout) > 1:
            first, second, *_ = self._on_stdout
            raise click.UsageError(f"{first} and {second} are two ways to print the same: use one of the two.")
        if self.opens and self.html == STDOUT:
            raise click.UsageError("--open opens a file: give --html the name of one, or leave it out.")
        taken: dict[Path, str] = {}
        for option, file in self._files.items():
            if file != STDOUT and (other := taken.setdefault(file.resolve(), option)) != option:
                both = f"{other} and {option} name the same file, {one_line(str(file))}"
                raise click.UsageError(f"{both}: give each a file of its own.")
            if file != STDOUT and not (file.parent.is_dir() and os.access(file.parent, os.W_OK)):
                raise click.UsageError(f"{option} {one_line(str(file))}: nothing can be written in {file.parent}.")

    def report_of(self, checked: Checked) -> CheckReport:
        """The report about the rehearsal, for these outputs: JUnit names valid documents, too."""
        from metaharvest.services.check_report import CheckReport

        return CheckReport(checked, all_of_them=self.junit is not None)

    def write(self, report: CheckReport) -> None:
        """Print and write all requested outputs."""
        for note in report.checked.given.arguments.notes:
            click.echo(clean(note), err=True)
        if self.as_json:
            print_json(_as_mapping(report))
        elif self.as_csv:
            for chunk in report.csv():
                click.echo(chunk, nl=False)
        elif not self._on_stdout:
            self.print_text(report)
        self.write_files(report)

    def print_text(self, report: CheckReport) -> None:
        """Print all findings and the expected results on stdout."""
        printer = printer_of(report)
        levels: Counter[Level] = Counter()
        for part, documents in report.parts:
            levels += printer.documents(part, documents)
        print_summary(printer, report, levels)

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


def _as_mapping(report: CheckReport) -> dict[str, Any]:
    """The run, its site runs and its findings, each with the `file` that it is about, if there is one."""
    findings = [{**as_mapping(each.finding), "file": each.file} for each in report.findings]
    notes = [*report.checked.given.arguments.notes, *report.notes]
    return {**as_mapping(report.record), "sites": report.sites, "findings": findings, "notes": notes}


def printer_of(report: CheckReport) -> CheckPrinter:
    """The printer for the findings of a rehearsal."""
    from metaharvest.cli.finding_text import CheckPrinter

    return CheckPrinter(report.places, report.checked.harvester.settings.reports.lines_per_group)


def print_summary(printer: CheckPrinter, report: CheckReport, levels: Mapping[Level, int]) -> None:
    """Print the expected results on stdout."""
    from metaharvest.model import Level

    for sentence in report.summary:
        printer.line(sentence, "bold")
    numbers = [(levels.get(Level.ERROR, 0), "error"), (levels.get(Level.WARNING, 0), "warning")]
    if found := joined([counted(number, what) for number, what in numbers if number]):
        printer.line(f"{found}.", "red" if numbers[0][0] else "yellow")
    for sentence in report.notes:
        printer.line(sentence, "dim")


def _put(file: Path, text: str) -> None:
    """Raises click.ClickException if it cannot be written."""
    if file == STDOUT:
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        raise click.ClickException(f"{one_line(str(file))} cannot be written: {error.strerror}.") from error
