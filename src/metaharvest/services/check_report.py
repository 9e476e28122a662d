"""The report about a check: a rehearsal of the harvest of lists, documents and folders.

`Harvester.check()` makes the rehearsal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any

from metaharvest.errors import SettingsError
from metaharvest.fetch.local_files import path_of
from metaharvest.model import OutcomeKind
from metaharvest.model.values import frozen
from metaharvest.publishing.contents import FolderOptions
from metaharvest.queries.runs import RunFinding, SiteRunRecord, findings_of, run_record
from metaharvest.rehearsal import results
from metaharvest.rehearsal.check import CheckOptions, GivenSite, asks_nobody
from metaharvest.rehearsal.dry_run import RehearsalTarget
from metaharvest.rehearsal.input.arguments import GivenDocuments, GivenList, GivenUrl, is_looked_at
from metaharvest.rehearsal.input.source import Copies
from metaharvest.rehearsal.results import CheckedDocument, CheckedPart, PartName, Places
from metaharvest.reports.phrasing import ends_of
from metaharvest.reports.tables import documents_csv
from metaharvest.services.harvester import Checked
from metaharvest.text import counted, joined, one_line, shown_url

__all__ = [
    "CheckOptions", "CheckedDocument", "CheckedPart", "Copies", "FolderOptions", "Places", "asks_nobody",
    "is_looked_at",
]  # fmt: skip

_COMPARED = (OutcomeKind.INSERTED, OutcomeKind.UPDATED, OutcomeKind.UNCHANGED, OutcomeKind.STALE)


@frozen
class FindingInFile:
    """A finding, and the name of the file on this computer that it is about, if there is one."""

    finding: RunFinding
    file: str | None


class CheckReport:
    """The report about a rehearsal: its parts, each with the documents to report, or with `all_of_them`."""

    def __init__(self, checked: Checked, *, all_of_them: bool) -> None:
        self.checked = checked
        self._names = {site.name: _part_name(site) for site in checked.given.sites}
        with checked.harvester.reading() as session:
            self.record = run_record(session, checked.result.run_id)
            self.parts = results.parts(session, checked.result.run_id, self._names, all_of_them=all_of_them)

    @property
    def has_errors(self) -> bool:
        """True if a list cannot be read, or documents have errors."""
        return self.record.failed_as_a_whole or self.record.has_document_errors

    @cached_property
    def places(self) -> Places:
        """The names of the checked files and URLs."""
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
        for part in self.parts:
            yield part.sentence
        if len(self.parts) > 1:
            yield f"Together {self.story}."

    @property
    def story(self) -> str:
        """The expected results: `12 documents: 8 would be added and 4 are not valid`."""
        counts: Counter[OutcomeKind] = Counter()
        for part in self.parts:
            counts.update(part.counts)
        ends = joined(ends_of(counts, is_rehearsal=True))
        number = counted(sum(part.listed for part in self.parts), "document")
        failed = sum(part.failed for part in self.parts)
        lists = f"{counted(failed, 'list')} could not be read" if failed else ""
        return "; ".join(filter(None, (f"{number}: {ends}" if ends else number, lists)))

    @property
    def notes(self) -> Iterator[str]:
        """Remarks for the reader of the summary."""
        if local := len(self._listed_files):
            documents = counted(local, "document is", "documents are")
            each = "it" if local == 1 else "each"
            yield f"{documents} read from this computer: a list that is published must name {each} by its https:// URL."
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
        if not any(part.counts.get(kind) for part in self.parts for kind in _COMPARED):
            return ""
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
    def _listed_files(self) -> list[str]:
        """The documents of this computer that lists in files name, as file: URLs."""
        lists = {site.name: site.given for site in self.checked.given.sites if isinstance(site.given, GivenList)}
        on_web = {file.url for given in lists.values() for file in given.files.values()}
        found = self.checked.harvester.read(results.local_documents, self.checked.result.run_id, lists)
        return [url for url in found if url not in on_web]

    @property
    def local_paths(self) -> tuple[Path, ...]:
        """The files and folders of this computer on which the result depends."""
        named = (path for url in self._listed_files if (path := path_of(url)) is not None)
        return (*self.checked.given.arguments.local, *named)

    @property
    def sites(self) -> list[SiteRunRecord]:
        """The site runs, in the order of the arguments."""
        order = list(self._names)
        return sorted(self.record.sites, key=lambda site: order.index(site.site))

    @property
    def findings(self) -> list[FindingInFile]:
        """All findings, in the order of the log."""
        found = self.checked.harvester.read(findings_of, self.checked.result.run_id)
        files = {url: self.places.name(url) for url in {each.url for each in found} if url and self.places.is_file(url)}
        return [FindingInFile(each, files.get(each.url or "")) for each in found]

    def csv(self) -> Generator[str, None, None]:
        """The table of documents of all parts, as chunks of text."""
        with self.checked.harvester.reading() as session:
            for number, part in enumerate(self.parts):
                with closing(documents_csv(session, part.site_run_id)) as chunks:
                    for place, chunk in enumerate(chunks):
                        is_header_again = number > 0 and place == 0
                        yield chunk.partition("\r\n")[2] if is_header_again else chunk

    def sarif(self) -> dict[str, Any]:
        """The findings as SARIF 2.1.0."""
        from metaharvest.rehearsal.sarif import sarif

        return sarif(self.parts, Path.cwd())

    def junit(self) -> str:
        """The documents as a JUnit report."""
        from metaharvest.rehearsal.junit import junit

        seconds = self.record.took.total_seconds() if self.record.took else 0.0
        began = f"{self.record.started_at:%Y-%m-%dT%H:%M:%S}"
        return junit(self.parts, self.places, seconds, began).decode("utf-8")

    def page(self) -> str:
        """The findings as an HTML page."""
        from metaharvest.rehearsal.page import page

        harvester = self.checked.harvester
        day = harvester.today().isoformat()
        return page(self.parts, self.places, harvester.settings, self.story, list(self.notes), day)


def _part_name(site: GivenSite) -> PartName:
    if isinstance(site.given, GivenDocuments):
        return PartName(site.given.shown, site.given.files[0].url, False)
    url = site.given.file.url if isinstance(site.given, GivenList) else site.given.url
    return PartName(site.given.shown, url)
