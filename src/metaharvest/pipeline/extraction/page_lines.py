"""The lines of a text, and the text of lines: without running heads and page numbers, words at line ends joined."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from metaharvest.model.values import frozen

_LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st", "\u00a0": " ", "\t": " ", "\r": ""}
)
_BROKEN = "\ufffe"
"""The sign of pdfium for a hyphen and the line break behind it."""

_SOFT = "\u00ad"
_EDGE = 2
"""Lines at the top and at the bottom of a page that may be running heads or page numbers."""

_FEWEST_PAGES = 3
"""Pages on which a line must stand to be a running head."""

_PAGE_NUMBER = re.compile(
    r"(?:page|seite|página|pagina|p\.|s\.)?\s?[-–—]?\s?(?:\d{1,4}|[ivxlc]{1,6})\s?[-–—]?"
    r"(?:\s?(?:of|von|de|di|/)\s?\d{1,4})?",
    re.IGNORECASE,
)
_HYPHENS = "-‐"
_WORD = re.compile(r"[^\W\d_]{1,60}(?:[-‐][^\W\d_]{1,60}){0,4}")
_LAST_WORD = re.compile(r"(?<!\S)\S{1,100}$")
_FIRST_WORD = re.compile(r"\S{1,100}")
_DIGITS = re.compile(r"\d+")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffd\ufeff]")


@frozen
class Line:
    """A line of a page. `x` and `y` are the place where it begins, in points; None where a text has no places.

    `gap`: a paragraph ends before the line, as far as the layout shows. `page` counts from 0.
    """

    text: str
    x: int | None = None
    y: int | None = None
    page: int = 0
    gap: bool = False


def lines_of_pages(pages: Iterable[tuple[str, Sequence[int], Sequence[int]]]) -> list[Line]:
    """The lines of the pages of a PDF, without running heads and page numbers."""
    parted = [_lines_of_page(number, *page) for number, page in enumerate(pages)]
    heads = _repeated(parted)
    kept = [line for page in parted for line in _without_heads(page, heads)]
    return list(_with_gaps(kept))


def lines_of_text(text: str) -> list[Line]:
    """The lines of a text in which empty lines part paragraphs. A form feed begins a page."""
    lines: list[Line] = []
    gap = True
    for page, part in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\f")):
        for each in part.split("\n"):
            if stripped := _clean(each):
                lines.append(Line(stripped, page=page, gap=gap))
                gap = False
            else:
                gap = True
    return lines


def text_of(lines: Sequence[Line]) -> str:
    """The text: a line break between lines, an empty line where a paragraph ends, words joined."""
    has_broken = any(_BROKEN in line.text or line.text.endswith(tuple(_HYPHENS)) for line in lines)
    known = _words(lines) if has_broken else frozenset()
    parts: list[str] = []
    for line in lines:
        text = _joined_inside(line.text, known)
        if line.gap or not parts:
            parts.append(("\n\n" if parts else "") + text)
            continue
        joined = _joined(parts[-1], text, known)
        if joined is None:
            parts.append("\n" + text)
        else:
            parts[-1:] = joined
    return "".join(parts).replace(_SOFT, "")


def joined_line(lines: Sequence[Line]) -> str:
    """Lines as one line, for instance of a reference; words are joined."""
    return " ".join(text_of([replace(line, gap=False) for line in lines]).split())


def _clean(text: str) -> str:
    if not text.isascii() or not text.isprintable():
        text = _CONTROLS.sub("", text.translate(_LIGATURES))
    return text.strip()


def _lines_of_page(page: int, text: str, xs: Sequence[int], ys: Sequence[int]) -> list[Line]:
    """The lines of a page. A line of pdfium may hold several, broken by hyphens: `y` is the place of the first."""
    placed = zip(text.split("\r\n"), xs, ys, strict=False)
    return [Line(cleaned, x, y, page) for each, x, y in placed if (cleaned := _clean(each))]


def _shape(line: Line) -> str:
    """What a running head has in common on all pages: its text without numbers."""
    return _DIGITS.sub("#", line.text).casefold()


def _edges(page: Sequence[Line]) -> list[Line]:
    """The lines at the top and at the bottom of a page; where they stand in its text does not matter."""
    by_height = sorted(page, key=lambda line: line.y or 0, reverse=True)
    return [*by_height[:_EDGE], *by_height[_EDGE:][-_EDGE:]]


def _repeated(pages: Sequence[Sequence[Line]]) -> frozenset[str]:
    """The shapes of running heads: lines at the edges of enough pages. Some journals change left and right heads.

    Two pages are enough for a line that stands apart from the text, at the same height of both.
    """
    counted = Counter(shape for page in pages for shape in {_shape(line) for line in _edges(page)})
    fewest = max(_FEWEST_PAGES, len(pages) // 4)
    apart = Counter(key for page in pages for key in _apart(page)) if len(pages) <= 2 * _FEWEST_PAGES else Counter()
    return frozenset(
        [shape for shape, number in counted.items() if number >= fewest]
        + [shape for (shape, _), number in apart.items() if number >= 2]
    )


def _apart(page: Sequence[Line]) -> set[tuple[str, int]]:
    """The shapes and heights of the first and the last line of a page, if they stand apart from the text."""
    lines = sorted((line for line in page if line.y is not None), key=lambda line: -(line.y or 0))
    steps = [(above.y or 0) - (line.y or 0) for above, line in pairwise(lines)]
    if len(steps) < 3:
        return set()
    usual = sorted(steps)[len(steps) // 2]
    ends = ((lines[0], steps[0]), (lines[-1], steps[-1]))
    return {(_shape(line), line.y or 0) for line, step in ends if step > 1.4 * usual}


def _without_heads(page: Sequence[Line], heads: frozenset[str]) -> Iterator[Line]:
    edges = {id(line) for line in _edges(page)} if len(page) > 1 else set()
    for line in page:
        if id(line) in edges and (_shape(line) in heads or _PAGE_NUMBER.fullmatch(line.text)):
            continue
        yield line


def _with_gaps(lines: Sequence[Line]) -> Iterator[Line]:
    """The lines, with `gap` where the distance to the line above is clearly larger than usual."""
    steps = Counter(
        above.y - line.y
        for above, line in pairwise(lines)
        if above.page == line.page
        and above.y is not None
        and line.y is not None
        and 0 < above.y - line.y < 60
        and _BROKEN not in above.text
    )
    usual = max(steps, key=lambda step: (steps[step], -step)) if steps else 0
    above: Line | None = None
    for line in lines:
        gap = above is None
        if above is not None and above.page == line.page and above.y is not None and line.y is not None and usual:
            step = above.y - line.y - usual * above.text.count(_BROKEN)
            gap = step > usual * 1.35 + 1 and step < 300
        yield replace(line, gap=True) if gap else line
        above = line


def _words(lines: Iterable[Line]) -> frozenset[str]:
    """The words of the text, also words with a hyphen inside."""
    return frozenset(word.casefold() for line in lines for word in _WORD.findall(line.text))


def _joined_inside(text: str, known: frozenset[str]) -> str:
    """The text, with the words joined that pdfium found broken at line ends."""
    if _BROKEN not in text:
        return text
    parts = text.split(_BROKEN)
    result = parts[0]
    for part in parts[1:]:
        result += _hyphen_between(result, part, known) + part
    return result


def _joined(above: str, below: str, known: frozenset[str]) -> list[str] | None:
    """Two lines with a broken word between them as two parts of a text; None if no word is broken.

    The first word of the lower line goes up, so that the text keeps its lines.
    """
    first = _FIRST_WORD.match(below)
    if first is None or len(above) < 2:
        return None
    if above[-1] == _SOFT:
        return [above[:-1] + first[0], _rest(below, first.end())]
    if above[-1] not in _HYPHENS or not above[-2].isalpha() or not below[0].isalpha():
        return None
    return [above[:-1] + _hyphen_between(above[:-1], below, known) + first[0], _rest(below, first.end())]


def _rest(line: str, start: int) -> str:
    rest = line[start:].lstrip()
    return f"\n{rest}" if rest else ""


def _hyphen_between(above: str, below: str, known: frozenset[str]) -> str:
    """The hyphen if the two ends are parts of a compound or of an address; "" if they are one word."""
    start, end = _LAST_WORD.search(above), _FIRST_WORD.match(below)
    if start is None or end is None:
        return "-"
    if "/" in start[0] or "@" in start[0] or start[0].startswith("10."):
        return "-"
    if not above[-1].isalpha() or not below[0].islower():
        return "-"
    left, right = _WORD.findall(start[0]), _WORD.match(end[0])
    if not left or right is None:
        return ""
    whole, compound = (left[-1] + right[0]).casefold(), f"{left[-1]}-{right[0]}".casefold()
    return "-" if compound in known and whole not in known else ""
