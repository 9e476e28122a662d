"""What `check` tells people: each finding with its line and a caret under the place, and how it all would end.

In colour on a terminal; plain, and one line for a text however long it is, on anything else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from metaharvest.fetch.local_files import is_file_url
from metaharvest.model import Finding, Level
from metaharvest.reports.checked import CheckedDocument, CheckedPart, Places
from metaharvest.reports.source_lines import source_line
from metaharvest.text import clean, one_line

_STYLES = {Level.ERROR: "bold red", Level.WARNING: "bold yellow"}
_EXCERPT = 200
_MESSAGE = 2000


class CheckPrinter:
    """Prints findings on stdout; of each rule and part at most `most`, and then how many more there are."""

    def __init__(self, places: Places, most: int) -> None:
        self._places = places
        self._most = most
        self.console = Console(highlight=False, emoji=False, markup=False)
        self._is_plain = not self.console.is_terminal

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
        for rule, number in rules.items():
            if number > self._most:
                self.line(f"{number - self._most:,} more like these ({rule}): --csv has all of them.", "dim")
        return levels

    def finding(self, part: CheckedPart, document: CheckedDocument, finding: Finding) -> None:
        """One finding: place and rule, what is wrong, the line, what to do."""
        docid = document.docid if part.name.is_list else ""
        head = Text().append(self._place(document.url_of(finding), finding), style="bold")
        head.append(f"  {finding.level.value}", style=_STYLES[finding.level])
        head.append(f"  {finding.rule}", style="cyan")
        if docid or finding.docid:
            head.append(f"  {one_line(docid or finding.docid)}", style="dim")
        self._print(head)
        self._print(Text(one_line(finding.message, _MESSAGE)), 2)
        self._source(document.url_of(finding), finding)
        if finding.remedy:
            self._print(Text().append("What to do: ", style="green").append(one_line(finding.remedy, _MESSAGE)), 2)
        self.console.print()

    def line(self, text: str, style: str = "") -> None:
        """A sentence."""
        self._print(Text(one_line(text, _MESSAGE), style=style))

    def _place(self, url: str, finding: Finding) -> str:
        """`eml/gauge.xml:14:9`, which editors and terminals know as a link, or a URL and a line."""
        name = self._places.name(url)
        if not finding.line:
            return name
        if is_file_url(url):
            return f"{name}:{finding.line}:{finding.column}" if finding.column else f"{name}:{finding.line}"
        return f"{name} line {finding.line}" + (f", column {finding.column}" if finding.column else "")

    def _source(self, url: str, finding: Finding) -> None:
        line = source_line(self._places.file_of(url), finding, self._room)
        if line is None:
            if finding.excerpt and finding.rule != "harvest.surprise":
                excerpt = one_line(clean(finding.excerpt), _EXCERPT)
                self._print(Text().append("| ", style="dim").append(excerpt), 7)
            return
        self._print(Text().append(f"{line.number:>6} | ", style="dim").append(line.text))
        self._print(Text().append(f"{'| ':>9}", style="dim").append(" " * line.before + "^", style="bold red"))

    @property
    def _room(self) -> int:
        return 120 if self._is_plain else max(20, self.console.width - 11)

    def _print(self, text: Text, indent: int = 0) -> None:
        space = Text(" " * indent)
        if self._is_plain:
            self.console.print(space + text, soft_wrap=True)
            return
        for line in text.wrap(self.console, max(10, self.console.width - indent)):
            self.console.print(space + line)
