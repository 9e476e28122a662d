"""Findings on a terminal: the place, the fault, the line with a caret under it, the remedy.

In colour on a terminal; elsewhere plain, and each text on one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from metaharvest.model import Finding, Level
from metaharvest.reports.source_lines import source_line
from metaharvest.rules import TRACEBACK_RULE
from metaharvest.text import clean, counted, one_line, shown_url

if TYPE_CHECKING:
    from metaharvest.services.check_report import CheckedDocument, CheckedPart, Places

_STYLES = {Level.ERROR: "bold red", Level.WARNING: "bold yellow"}
_EXCERPT = 200
_MESSAGE = 2000


def place_in(file: str, finding: Finding) -> str:
    """`eml/gauge.xml:14:9`, which editors and terminals know as a link."""
    return ":".join([file, *(str(number) for number in (finding.line, finding.column) if number and finding.line)])


class FindingPrinter:
    """Prints findings on stdout."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, emoji=False, markup=False)
        self._is_plain = not self.console.is_terminal

    def print_finding(
        self, place: str, finding: Finding, docid: str, file: Path | None, others: Sequence[str] = (), more: int = 0
    ) -> None:
        """Print one finding: its place, the fault, the line of `file` or else the excerpt, the remedy.

        `others` are more places with the same finding, `more` is the number of places that are not named.
        """
        head = Text().append(place, style="bold")
        head.append(f"  {finding.level.value}", style=_STYLES[finding.level])
        head.append(f"  {finding.rule}", style="cyan")
        if docid:
            head.append(f"  {one_line(docid)}", style="dim")
        self._print(head)
        self._print(Text(one_line(finding.message, _MESSAGE)), 2)
        self._source(file, finding)
        if finding.remedy:
            self._print(Text().append("What to do: ", style="green").append(one_line(finding.remedy, _MESSAGE)), 2)
        if others:
            number = len(others) + more
            self._print(Text(f"The same at {counted(number, 'more place')}:"), 2)
        for other in others:
            self._print(Text(other), 4)
        if more:
            self._print(Text(f"and {more:,} more: --json has all of them."), 4)
        self.console.print()

    def more(self, left: Mapping[str, int], option: str) -> None:
        """Name the rules with findings that were not printed; `option` has all of them."""
        for rule, number in left.items():
            if number > 0:
                self.line(f"{number:,} more like these ({rule}): {option} has all of them.", "dim")

    def line(self, text: str, style: str = "") -> None:
        """Print a sentence."""
        self._print(Text(one_line(text, _MESSAGE), style=style))

    def _source(self, file: Path | None, finding: Finding) -> None:
        room = 120 if self._is_plain else max(20, self.console.width - 11)
        line = source_line(file, finding, room)
        if line is None:
            if finding.excerpt and finding.rule != TRACEBACK_RULE:
                excerpt = one_line(clean(finding.excerpt), _EXCERPT)
                self._print(Text().append("| ", style="dim").append(excerpt), 7)
            return
        self._print(Text().append(f"{line.number:>6} | ", style="dim").append(line.text))
        self._print(Text().append(f"{'| ':>9}", style="dim").append(" " * line.before + "^", style="bold red"))

    def _print(self, text: Text, indent: int = 0) -> None:
        space = Text(" " * indent)
        if self._is_plain:
            self.console.print(space + text, soft_wrap=True)
            return
        for line in text.wrap(self.console, max(10, self.console.width - indent)):
            self.console.print(space + line)


_Place = tuple["CheckedDocument", Finding]


class CheckPrinter(FindingPrinter):
    """Prints findings of a check: at most `most` of each rule and part, and then the number of the others."""

    def __init__(self, places: Places, most: int) -> None:
        super().__init__()
        self._places = places
        self._most = most

    def part(self, part: CheckedPart) -> Counter[Level]:
        """Print the findings of this part; returns the number for each level."""
        same: dict[tuple[str, ...], list[_Place]] = {}
        for document, finding in part.reported:
            same.setdefault(_key(document, finding), []).append((document, finding))
        rules, left = Counter[str](), Counter[str]()
        for (rule, *_), places in same.items():
            rules[rule] += 1
            shown = places[: self._most] if rules[rule] <= self._most else []
            left[rule] += len(places) - len(shown)
            if shown:
                self.finding(*shown[0], more=shown[1:])
        self.more(left, "--csv")
        return Counter(finding.level for places in same.values() for _, finding in places)

    def finding(self, document: CheckedDocument, finding: Finding, more: Sequence[_Place] = ()) -> None:
        """Print one finding about a document, or about its list; `more` are other places with the same one."""
        url = document.url_of(finding)
        docid = document.listed_docid or finding.docid
        others = [
            "  ".join(filter(None, (self._place(each.url_of(its), its), one_line(each.listed_docid or its.docid))))
            for each, its in more
        ]
        self.print_finding(self._place(url, finding), finding, docid, self._places.file_of(url), others)

    def _place(self, url: str, finding: Finding) -> str:
        """The place in a file, or a URL and a line."""
        name = self._places.name(url)
        if self._places.is_file(url) or not finding.line:
            return place_in(name, finding)
        return f"{name} line {finding.line}" + (f", column {finding.column}" if finding.column else "")


def _key(document: CheckedDocument, finding: Finding) -> tuple[str, ...]:
    """The parts of a finding without its place. Findings with the same key are printed once."""
    message = finding.message
    for name in filter(None, (shown_url(document.url), document.url, document.docid)):
        message = message.replace(name, "")
    return finding.rule, finding.level.value, message, finding.remedy
