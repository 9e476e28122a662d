"""The results of a rehearsal as an HTML page, in the layout of the reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from metaharvest.config.settings import Settings
from metaharvest.model import Finding
from metaharvest.rehearsal.results import CheckedDocument, CheckedPart, Places
from metaharvest.reports import phrasing
from metaharvest.reports.findings import MAX_MESSAGE, FindingGroup, FindingLine, with_shared
from metaharvest.reports.phrasing import TableNote
from metaharvest.reports.render import render_page
from metaharvest.reports.source_lines import source_line
from metaharvest.rules import title_of
from metaharvest.text import one_line

_TONES = ("bad", "doubtful", "good")
_ROOM = 66


def page(
    found: Iterable[CheckedPart], places: Places, settings: Settings, story: str, notes: Sequence[str], day: str
) -> str:
    """The page; `story` is the result of the whole, `notes` are sentences at its end. Raises TemplateError."""
    parts = [_page_part(part, places, settings.reports.lines_per_group) for part in found]
    view = {
        "above": day,
        "title": "Rehearsal",
        "story": story,
        "tone": min((part["tone"] for part in parts), key=_TONES.index, default="good"),
        "parts": parts,
        "notes": notes,
        "table": TableNote("", "in the table that --csv prints"),
    }
    return render_page("check/page.html", view, settings)


def _page_part(part: CheckedPart, places: Places, most: int) -> dict[str, Any]:
    groups: dict[tuple[bool, str], tuple[list[FindingLine], list[int]]] = {}
    for document, finding in part.reported:
        lines, count = groups.setdefault((not finding.is_error, finding.rule), ([], [0]))
        count[0] += 1
        if len(lines) < most:
            lines.append(_line(document, finding, places))
    return {
        "name": part.name.shown,
        "sentence": part.sentence,
        "tone": phrasing.site_tone(part.status, part.counts),
        "totals": phrasing.totals_of(part.listed, part.counts, part.warnings),
        "groups": tuple(_groups(groups)),
    }


def _groups(found: dict[tuple[bool, str], tuple[list[FindingLine], list[int]]]) -> Iterator[FindingGroup]:
    """The errors first, and the most frequent of them."""
    for (is_warning, rule), (lines, count) in sorted(found.items(), key=lambda each: (each[0][0], -each[1][1][0])):
        group = FindingGroup(rule, title_of(rule), not is_warning, count[0], tuple(lines))
        yield with_shared("remedy", group) if len(lines) > 1 else group


def _line(document: CheckedDocument, finding: Finding, places: Places) -> FindingLine:
    url = document.url_of(finding)
    name = places.name(url)
    docid = document.listed_docid
    numbers = [f"{what} {number:,}" for what, number in (("line", finding.line), ("column", finding.column)) if number]
    return FindingLine(
        docid=one_line(docid or finding.docid or name),
        url=name if docid else "",
        place=", ".join((*numbers, *filter(None, (one_line(finding.xpath, 200),)))),
        excerpt=_excerpt(url, finding, places),
        message=one_line(finding.message, MAX_MESSAGE),
        remedy=one_line(finding.remedy, MAX_MESSAGE),
    )


def _excerpt(url: str, finding: Finding, places: Places) -> str:
    line = source_line(places.file_of(url), finding, _ROOM)
    if line is None:
        return one_line(finding.excerpt)
    number = f"{line.number} | "
    return f"{number}{line.text}\n{'| ':>{len(number)}}{' ' * line.before}^"
