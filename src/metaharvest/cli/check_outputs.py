"""The output of `check`: text, JSON or CSV on stdout; SARIF, JUnit and HTML into files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from metaharvest.cli.browser import new_page, opened
from metaharvest.cli.json_keys import as_mapping
from metaharvest.cli.printing import json_text, print_json
from metaharvest.model import OutcomeKind
from metaharvest.text import clean, one_line, shown_url

if TYPE_CHECKING:
    from metaharvest.cli.check_text import CheckPrinter
    from metaharvest.model import Level
    from metaharvest.queries.runs import RunRecord
    from metaharvest.rehearsal.given_sites import GivenSite
    from metaharvest.rehearsal.results import CheckedDocument, CheckedPart, PartName, Places
    from metaharvest.services.harvester import Checked

STDOUT = Path("-")

_COMPARED = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED, OutcomeKind.STALE)


class CheckReport:
    """The report about a rehearsal: its parts, each with the documents that need a mention."""

    def __init__(self, checked: Checked, *, all_of_them: bool) -> None:
        from metaharvest.queries.runs import run_record
        from metaharvest.rehearsal import results as view

        self.checked = checked
        self.names = {site.name: _part_name(site) for site in checked.given.sites}
        with checked.harvester.reading() as session:
            self.record: RunRecord = run_record(session, checked.result.run_id)
            parts = view.parts(session, checked.result.run_id, self.names)
            self.parts: list[tuple[CheckedPart, list[CheckedDocument]]] = [
                (part, list(view.documents(session, part, all_of_them=all_of_them))) for part in parts
            ]

    @property
    def exit_code(self) -> int:
        """1 if a list cannot be read, or documents have errors."""
        return 1 if self.record.failed_as_a_whole or self.record.has_document_errors else 0

    @cached_property
    def places(self) -> Places:
        """The names of the checked files and URLs."""
        from metaharvest.rehearsal.input.arguments import GivenDocuments, GivenList, GivenUrl
        from metaharvest.rehearsal.results import Places

        given: dict[str, str] = {}
        for site in self.checked.given.sites:
            if isinstance(site.given, GivenList):
                given[site.given.file.url] = site.given.shown
                given |= {file.url: file.shown for file in site.given.files.values()}
            elif isinstance(site.given, GivenDocuments):
                given |= {file.url: file.shown for file in site.given.files}
            elif isinstance(site.given, GivenUrl):
                given[site.given.url] = site.given.shown
        return Places(given, self.checked.given.copies.file_of, Path.cwd())

    @property
    def summary(self) -> Iterator[str]:
        """The expected results, in sentences."""
        for part, _ in self.parts:
            yield part.sentence
        if len(self.parts) > 1:
            yield f"Together {self.story}."

    @property
    def story(self) -> str:
        """The expected results: `12 documents: 8 would be added and 4 are not valid`."""
        from metaharvest.reports.phrasing import counted, ends_of, joined

        counts: Counter[OutcomeKind] = Counter()
        for part, _ in self.parts:
            counts.update(part.counts)
        ends = joined(ends_of(counts, is_rehearsal=True))
        number = counted(sum(part.listed for part, _ in self.parts), "document")
        failed = sum(part.failed for part, _ in self.parts)
        lists = f"{counted(failed, 'list')} could not be read" if failed else ""
        return "; ".join(filter(None, (f"{number}: {ends}" if ends else number, lists)))

    @property
    def notes(self) -> Iterator[str]:
        """Remarks for the reader of the summary."""
        if local := len(self.listed_files):
            those = "1 document is" if local == 1 else f"{local:,} documents are"
            each = "it" if local == 1 else "each"
            yield f"{those} read from this computer: a list that is published must name {each} by its https:// URL."
        for site in self.checked.given.sites:
            if site.registered is not None:
                switched = "" if site.registered.enabled else ", which is switched off"
                url = shown_url(site.registered.list_url)
                yield f"Rehearsed as the site {one_line(site.name)}, whose list is {url}{switched}."
        if compared := self._compared:
            yield compared
        yield "This was a rehearsal: nothing was written."

    @property
    def _compared(self) -> str:
        """A sentence that names the targets of the comparison; empty if no document was compared."""
        if not any(part.counts.get(kind) for part, _ in self.parts for kind in _COMPARED):
            return ""
        from metaharvest.errors import SettingsError
        from metaharvest.rehearsal.dry_run import RehearsalTarget

        words: list[str] = []
        for site in self.checked.given.sites:
            try:
                target = self.checked.harvester.targets.of(site.name)
            except SettingsError:
                continue
            if isinstance(target, RehearsalTarget) and (found := target.compared_with_of(site.name)):
                words.append(found)
        if not words:
            return "Compared with no repository: every document counts as new."
        return f"Compared with {', '.join(dict.fromkeys(words))}."

    @cached_property
    def listed_files(self) -> list[str]:
        """The documents of this computer that lists in files name, as file: URLs."""
        from metaharvest.rehearsal.input.arguments import GivenList
        from metaharvest.rehearsal.results import local_documents

        lists = {site.name: site.given for site in self.checked.given.sites if isinstance(site.given, GivenList)}
        on_web = {file.url for given in lists.values() for file in given.files.values()}
        with self.checked.harvester.reading() as session:
            return [url for url in local_documents(session, self.checked.result.run_id, lists) if url not in on_web]

    @property
    def as_mapping(self) -> dict[str, Any]:
        """The run, its site runs and its findings, each with the `file` that it is about, if there is one."""
        from metaharvest.queries.runs import findings_of

        with self.checked.harvester.reading() as session:
            findings = findings_of(session, self.checked.result.run_id)
        local = {url: self.places.name(url) for url in {each.url for each in findings} if url and _is_local(url)}
        shown = [{**as_mapping(each), "file": local.get(each.url or "")} for each in findings]
        order = list(self.names)
        sites = sorted(self.record.sites, key=lambda site: order.index(site.site))
        notes = [*self.checked.given.arguments.notes, *self.notes]
        return {**as_mapping(self.record), "sites": sites, "findings": shown, "notes": notes}

    def csv(self) -> Generator[str, None, None]:
        """The table of documents of all parts, as chunks of text."""
        from metaharvest.reports import documents_csv

        with self.checked.harvester.reading() as session:
            for number, (part, _) in enumerate(self.parts):
                with closing(documents_csv(session, part.site_run_id)) as chunks:
                    for place, chunk in enumerate(chunks):
                        is_header_again = number > 0 and place == 0
                        yield chunk.partition("\r\n")[2] if is_header_again else chunk


def _is_local(url: str | None) -> bool:
    return bool(url) and str(url).startswith("file:")


def _part_name(site: GivenSite) -> PartName:
    from metaharvest.rehearsal.input.arguments import GivenDocuments, GivenList
    from metaharvest.rehearsal.results import PartName

    registered = site.name if site.registered is not None else ""
    if isinstance(site.given, GivenDocuments):
        return PartName(site.given.shown, site.given.files[0].url, False)
    url = site.given.file.url if isinstance(site.given, GivenList) else site.given.url
    return PartName(site.given.shown, url, True, registered)


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
        return CheckReport(checked, all_of_them=self.junit is not None)

    def write(self, report: CheckReport) -> None:
        """Print and write all requested outputs."""
        for note in report.checked.given.arguments.notes:
            click.echo(clean(note), err=True)
        if self.as_json:
            print_json(report.as_mapping)
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
            from metaharvest.rehearsal.sarif import sarif

            _put(
                self.sarif, json_text(sarif((documents for _, documents in report.parts), Path.cwd()), indent=2) + "\n"
            )
        if self.junit is not None:
            from metaharvest.rehearsal.junit import junit

            took, ended = report.record.took, report.record.started_at
            seconds = took.total_seconds() if took else 0.0
            _put(self.junit, junit(report.parts, report.places, seconds, f"{ended:%Y-%m-%dT%H:%M:%S}").decode("utf-8"))
        if self.html is not None or self.opens:
            from metaharvest.rehearsal.page import page

            settings, day = report.checked.harvester.settings, report.checked.harvester.today().isoformat()
            text = page(report.parts, report.places, settings, report.story, list(report.notes), day)
            file = self.html or new_page("check")
            _put(file, text)
            if self.opens:
                click.echo(opened(file), err=True)


def printer_of(report: CheckReport) -> CheckPrinter:
    """The printer for the findings of a rehearsal."""
    from metaharvest.cli.check_text import CheckPrinter

    return CheckPrinter(report.places, report.checked.harvester.settings.reports.lines_per_group)


def print_summary(
    printer: CheckPrinter, report: CheckReport, levels: Mapping[Level, int], more: Sequence[str] = ()
) -> None:
    """Print the expected results on stdout."""
    from metaharvest.model import Level
    from metaharvest.reports.phrasing import counted, joined

    for sentence in report.summary:
        printer.line(sentence, "bold")
    numbers = [(levels.get(Level.ERROR, 0), "error"), (levels.get(Level.WARNING, 0), "warning")]
    if found := joined([counted(number, what) for number, what in numbers if number]):
        printer.line(f"{found}.", "red" if numbers[0][0] else "yellow")
    for sentence in (*more, *report.notes):
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
