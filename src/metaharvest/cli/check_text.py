"""The findings that `check` prints, each with its place. A finding of several documents is printed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from metaharvest.cli.finding_text import FindingPrinter, place_in
from metaharvest.model import Finding, Level
from metaharvest.services.check_report import CheckedDocument, CheckedPart, Places
from metaharvest.text import one_line, shown_url

_Place = tuple[CheckedDocument, Finding]


class CheckPrinter:
    """Prints findings on stdout: at most `most` of each rule and part, and then the number of the others."""

    def __init__(self, places: Places, most: int) -> None:
        self._places = places
        self._most = most
        self._printer = FindingPrinter()
        self.line = self._printer.line
        self.console = self._printer.console

    def documents(self, part: CheckedPart, documents: Iterable[CheckedDocument]) -> Counter[Level]:
        """Print the findings of these documents; returns the number for each level."""
        same: dict[tuple[str, ...], list[_Place]] = {}
        for document in documents:
            for finding in document.reported_findings:
                same.setdefault(_key(document, finding), []).append((document, finding))
        rules, left = Counter[str](), Counter[str]()
        for (rule, *_), places in same.items():
            rules[rule] += 1
            shown = places[: self._most] if rules[rule] <= self._most else []
            left[rule] += len(places) - len(shown)
            if shown:
                self.finding(part, *shown[0], more=shown[1:])
        for rule, number in left.items():
            if number:
                self.line(f"{number:,} more like these ({rule}): --csv has all of them.", "dim")
        return Counter(finding.level for places in same.values() for _, finding in places)

    def finding(
        self, part: CheckedPart, document: CheckedDocument, finding: Finding, more: Sequence[_Place] = ()
    ) -> None:
        """Print one finding about a document, or about its list; `more` are other places with the same one."""
        url = document.url_of(finding)
        docid = _docid(part, document, finding)
        others = [
            "  ".join(filter(None, (self._place(each.url_of(its), its), one_line(_docid(part, each, its)))))
            for each, its in more
        ]
        self._printer.finding(self._place(url, finding), finding, docid, self._places.file_of(url), others)

    def _place(self, url: str, finding: Finding) -> str:
        """The place in a file, or a URL and a line."""
        name = self._places.name(url)
        if self._places.is_file(url) or not finding.line:
            return place_in(name, finding)
        return f"{name} line {finding.line}" + (f", column {finding.column}" if finding.column else "")


def _docid(part: CheckedPart, document: CheckedDocument, finding: Finding) -> str:
    return (document.docid if part.name.is_list else "") or finding.docid


def _key(document: CheckedDocument, finding: Finding) -> tuple[str, ...]:
    """The parts of a finding without its place. Findings with the same key are printed once."""
    message = finding.message
    for name in filter(None, (shown_url(document.url), document.url, document.docid)):
        message = message.replace(name, "")
    return finding.rule, finding.level.value, message, finding.remedy
