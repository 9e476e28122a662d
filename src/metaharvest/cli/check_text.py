"""What `check` tells people: each finding of each document, and where it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from metaharvest.cli.finding_text import FindingPrinter, place_in
from metaharvest.fetch.local_files import is_file_url
from metaharvest.model import Finding, Level
from metaharvest.reports.checked import CheckedDocument, CheckedPart, Places


class CheckPrinter:
    """Prints findings on stdout; of each rule and part at most `most`, and then how many more there are."""

    def __init__(self, places: Places, most: int) -> None:
        self._places = places
        self._most = most
        self._printer = FindingPrinter()
        self.line = self._printer.line
        self.console = self._printer.console

    def documents(self, part: CheckedPart, documents: Iterable[CheckedDocument]) -> Counter[Level]:
        """Everything that there is to say of these documents; how many findings of each level there are."""
        levels: Counter[Level] = Counter()
        rules: Counter[str] = Counter()
        for document in documents:
            for finding in document.told:
                levels[finding.level] += 1
                rules[finding.rule] += 1
                if rules[finding.rule] <= self._most:
                    self.finding(part, document, finding)
        self._printer.more(rules, self._most, "--csv")
        return levels

    def finding(self, part: CheckedPart, document: CheckedDocument, finding: Finding) -> None:
        """One finding about a document, or about its list."""
        docid = document.docid if part.name.is_list else ""
        url = document.url_of(finding)
        self._printer.finding(self._place(url, finding), finding, docid or finding.docid, self._places.file_of(url))

    def _place(self, url: str, finding: Finding) -> str:
        """The place in a file, or a URL and a line."""
        name = self._places.name(url)
        if is_file_url(url) or not finding.line:
            return place_in(name, finding)
        return f"{name} line {finding.line}" + (f", column {finding.column}" if finding.column else "")
