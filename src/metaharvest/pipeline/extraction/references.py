"""Finds the list of references in a text, and splits it into references."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from metaharvest.pipeline.extraction import headings
from metaharvest.pipeline.extraction.page_lines import Line, joined_line

MOST = 5_000
"""References of a text that are kept."""

_ENDING_STARTS = re.compile(
    r"(?:appendix|annexe?|anhang|apéndice|appendice|table|tabelle|figure|fig\.|abb\.|supplementary (?:table|figure))"
    r"\s(?:[a-z]?\d{1,3}|[a-z]|[ivx]{1,5})(?:[.:\s]|$)",
    re.IGNORECASE,
)
_NUMBERING = re.compile(r"(?:#{1,6}\s?|\*\*|§\s?|(?:\d{1,2}\.){0,3}\d{1,2}[.)]?\s+|[IVX]{1,5}[.)]\s+|[A-Z][.)]\s+)")
_SPACED = re.compile(r"(?:\S ){3,40}\S")
_INLINE = re.compile(r"(\D{4,40}?)[:.]?\s+(?=[\[(]?1[\].)]\s?\D)")

_SAMPLE = 200
"""Lines of a list that are looked at to decide if it is one."""

_FIRST_PART = 0.4
"""The part of a text before which no list of references begins."""


def find(lines: Sequence[Line]) -> list[str]:
    """The references of a text, each on one line, without its number."""
    return split(list_in(lines))[:MOST]


def list_in(lines: Sequence[Line]) -> list[Line]:
    """The lines of the list of references: under the last such heading; none if there is no list."""
    ends: list[int] = []
    length = 0
    for line in lines:
        length += len(line.text) + 1
        ends.append(length)
    first = next((place for place, end in enumerate(ends) if end >= length * _FIRST_PART), len(lines))
    starts = [place for place in range(first, len(lines)) if _heading(lines[place].text)]
    found: list[Line] = []
    for place in reversed(starts):
        until = next((each for each in starts if each > place), len(lines))
        part = _until_end(lines, place, len(lines) if not found else until)
        if _share_of_references(part) < (0.3 if not found else 0.5):
            if found:
                break
            continue
        found = part + found
    return found or _rest_of_short_text(lines[:first], lines) or _numbered_tail(lines[first:])


def _rest_of_short_text(head: Sequence[Line], lines: Sequence[Line]) -> list[Line]:
    """The list under a heading further up, if the text has nothing but references from there on to its end."""
    for place in reversed([place for place, line in enumerate(head) if _heading(line.text)]):
        part = _until_end(lines, place, len(lines))
        if len(part) > 1 and min(_score(split(part[:_SAMPLE])), _score(split(part[-_SAMPLE:]))) >= 0.7:
            return part
    return []


def is_heading(text: str) -> bool:
    """True for the heading of a list of references, also with a number, a colon or spaces between its letters."""
    return len(text) <= 60 and _bare(text) in headings.REFERENCES


def _heading(text: str) -> bool:
    return is_heading(text) or bool((inline := _INLINE.match(text)) and is_heading(inline[1]))


def _bare(text: str) -> str:
    text = text.strip()
    if _SPACED.fullmatch(text):
        text = text.replace(" ", "")
    if numbering := _NUMBERING.match(text):
        text = text[numbering.end() :]
    return " ".join(text.casefold().strip(" *:.：—–-_").split())


def _until_end(lines: Sequence[Line], heading: int, until: int) -> list[Line]:
    """The lines behind a heading, up to the heading of what follows the list."""
    found: list[Line] = []
    if not is_heading(lines[heading].text) and (inline := _INLINE.match(lines[heading].text)):
        found.append(Line(lines[heading].text[inline.end() :], page=lines[heading].page, gap=True))
    for line in lines[heading + 1 : until]:
        if len(line.text) <= 60 and _bare(line.text) in headings.OTHERS:
            break
        ending = _ENDING_STARTS.match(line.text) if found else None
        if ending and (line.gap or ending.end() == len(line.text)):
            break
        found.append(line)
    return found


def _share_of_references(lines: Sequence[Line]) -> float:
    """The share of the references in these lines that look like some."""
    found = split(lines[:_SAMPLE])
    return sum(map(_quality, found)) / len(found) if found else 0.0


def _numbered_tail(lines: Sequence[Line]) -> list[Line]:
    """The list of a text without a heading for it: five references or more in brackets, from [1] on."""
    starts = [place for place, line in enumerate(lines) if line.text.startswith("[1]")]
    for place in reversed(starts):
        tail = list(lines[place:])
        found = split(tail)
        if len(found) >= 5 and sum(map(_quality, found)) / len(found) >= 0.7:
            return tail
    return []


# -- splitting

_BRACKETED = re.compile(r"[\[［【(（]\s?(\d{1,4})\s?[\]］】)）][.:]?\s?")
_NUMBERED = re.compile(r"(\d{1,4})(?:[.)．、:]\s?|\s+)(?=[^\W\d_]|[\"“'‘„«*(_—–\[])|(\d{1,4})[.)]?$")
_LABELLED = re.compile(r"\[[^\W\d_][\w+&.:,’' -]{1,28}\]\s?")
_BULLET = re.compile(r"[-–•●▪◦*·]\s+(?=\S)")
_UPPER = r"[^\W\d_a-zà-öø-ÿа-яё]"
_NAME = (
    r"(?:(?:de|da|do|dos|del|di|la|le|van|von|der|den|ter|zu|af|el|al)\s){0,3}"
    rf"{_UPPER}[\w'’]{{0,30}}(?:[-–\s]{_UPPER}[\w'’]{{0,30}}){{0,2}}"
)
_AUTHOR = re.compile(
    rf"(?:{_NAME},?\s(?:{_UPPER}\.|{_UPPER}{{1,3}}[,.;:\s(]|{_UPPER}[^\W\d_]{{1,30}}[,.;&\s])"
    rf"|(?:{_UPPER}\.[\s-]?){{1,3}}{_NAME}|{_NAME},?\s[(]?(?:1[89]|20)\d\d|[—–_]{{2,20}})"
)
_YEAR = re.compile(r"(?<!\d)(?:1[5-9]\d\d|20\d\d)(?!\d)")
_YEAR_IN_BRACKETS = re.compile(r"\((?:1[5-9]\d\d|20\d\d)[a-z]?\)")
_ADDRESS = re.compile(r"https?://|\bdoi\b|\b10\.\d{4,9}/", re.IGNORECASE)
_LOWER = re.compile(r"[a-zà-ÿа-я]")
_PARTICLE = re.compile(r"(?:de|da|do|dos|del|della|di|d'|d’|la|le|van|von|der|den|ter|ten|zu|af|el|al|bin|ibn|eds?)\b")
_ENDS = tuple('.)]”"»?!。．')

Starts = list[int]


def split(lines: Sequence[Line]) -> list[str]:
    """The references in these lines, each on one line, without its number."""
    if not lines:
        return []
    for pattern in (_BRACKETED, _NUMBERED):
        starts = _in_sequence(lines, pattern)
        if _is_numbered(starts, lines):
            return _parts(lines, starts, pattern)
    for pattern in (_LABELLED, _BULLET):
        starts = [place for place, line in enumerate(lines) if pattern.match(line.text)]
        if starts[:1] == [0] and len(starts) * 12 >= len(lines):
            return _parts(lines, starts, pattern)
    best: list[str] = []
    highest = -1.0
    for ways in _WAYS:
        starts = ways(lines)
        found = _parts(lines, starts)
        score = _score(found)
        if score > highest + 0.02:
            best, highest = found, score
    return best


def _in_sequence(lines: Sequence[Line], pattern: re.Pattern[str]) -> Starts:
    """The lines that begin with the next number. A number or two may be missing."""
    starts: Starts = []
    last = 0
    for place, line in enumerate(lines):
        found = pattern.match(line.text)
        if found is None:
            continue
        number = int(next(group for group in found.groups() if group))
        if number == last + 1 or (starts and last < number <= last + 3) or (not starts and place < 3 and number < 1500):
            starts.append(place)
            last = number
    return starts


def _is_numbered(starts: Starts, lines: Sequence[Line]) -> bool:
    """True if the list begins with these lines, and no reference would be longer than references are."""
    if not starts or starts[0] > 2 or (len(starts) == 1 and (starts[0] or len(lines) > 8)):
        return False
    return len(lines) <= 12 * len(starts) + 20


def _parts(lines: Sequence[Line], starts: Starts, label: re.Pattern[str] | None = None) -> list[str]:
    """The references that begin with these lines."""
    bounds = [*starts, len(lines)]
    found = []
    for start, end in pairwise(bounds):
        raw = joined_line(lines[start:end])
        if label and (number := label.match(raw)):
            raw = raw[number.end() :].strip()
        if len(raw) >= 10 and any(c.isalpha() for c in raw):
            found.append(raw)
    return found


def _by_gaps(lines: Sequence[Line]) -> Starts:
    """Lines with a gap above; the first line of a page has none, whatever it is."""
    return [
        place
        for place, line in enumerate(lines)
        if line.gap or place == 0 or (line.page != lines[place - 1].page and _begins(lines, place))
    ]


def _by_authors(lines: Sequence[Line]) -> Starts:
    """Lines that begin with a name, behind a line that ends a reference."""
    return [0, *(place for place in range(1, len(lines)) if _begins(lines, place))]


def _begins(lines: Sequence[Line], place: int) -> bool:
    above = lines[place - 1].text
    is_end = above.endswith(_ENDS) or above[-1].isdigit() or _ADDRESS.search(above)
    return bool(is_end and _AUTHOR.match(lines[place].text))


def _by_authors_and_years(lines: Sequence[Line]) -> Starts:
    """The same, where each reference has a year in its first lines."""
    return [
        place
        for place in _by_authors(lines)
        if place == 0 or _YEAR.search(" ".join(line.text for line in lines[place : place + 3]))
    ]


def _by_margin(lines: Sequence[Line]) -> Starts:
    """Hanging indents: lines at the margin of their column."""
    return [0, *(place for place, side in _sides(lines) if side == "margin" and place)]


def _by_indent(lines: Sequence[Line]) -> Starts:
    """Indents of first lines."""
    return [0, *(place for place, side in _sides(lines) if side == "indent" and place)]


def _sides(lines: Sequence[Line]) -> Iterator[tuple[int, str]]:
    """For each line with a place: at the margin of its column, indented, or neither."""
    pages: dict[int, list[int]] = {}
    for place, line in enumerate(lines):
        if line.x is not None:
            pages.setdefault(line.page, []).append(place)
    for places in pages.values():
        margins = _margins([lines[place].x or 0 for place in places])
        for place in places:
            x = lines[place].x or 0
            near = [x - margin for margin in margins if -2 <= x - margin <= _INDENT]
            if near:
                yield place, "margin" if min(near) <= 2 else "indent"


_INDENT = 45
"""Points of an indent at most."""


def _margins(xs: Sequence[int]) -> list[int]:
    """The left margins of the columns: frequent places, of which none is a little to the left of another one."""
    counted = Counter(xs)
    frequent = sorted(x for x, number in counted.items() if number >= max(1, len(xs) // 20))
    margins: list[int] = []
    for x in frequent:
        if not margins or x - margins[-1] > _INDENT:
            margins.append(x)
    return margins


_WAYS: tuple[Callable[[Sequence[Line]], Starts], ...] = (
    _by_gaps,
    _by_margin,
    _by_indent,
    _by_authors_and_years,
    _by_authors,
    lambda lines: list(range(len(lines))),
)


def _score(found: Sequence[str]) -> float:
    """How much these look like references: the share of the text in good ones, and the share of good ones."""
    if not found:
        return 0.0
    good = [_quality(each) for each in found]
    length = sum(map(len, found))
    weighed = sum(each * len(raw) for each, raw in zip(good, found, strict=True)) / length
    return (sum(good) / len(good) + weighed) / 2


def _quality(raw: str) -> float:
    """How much a text looks like one whole reference, from 0 to 1."""
    years = len(_YEAR.findall(raw))
    if not years and not _ADDRESS.search(raw):
        return 0.1
    quality = 1.0
    if _LOWER.match(raw) and not _PARTICLE.match(raw):
        quality -= 0.6
    if len(raw) < 30:
        quality -= 0.4
    if len(raw) > 350:
        quality -= min(0.6, (len(raw) - 350) / 800)
    if len(_YEAR_IN_BRACKETS.findall(raw)) > 1 or years > 3:
        quality -= 0.3
    if not (_AUTHOR.match(raw) or not raw[0].isascii()):
        quality -= 0.2
    if not raw.endswith(_ENDS) and not raw[-1].isdigit() and not raw[-1].isalpha():
        quality -= 0.2
    return max(0.0, quality)
