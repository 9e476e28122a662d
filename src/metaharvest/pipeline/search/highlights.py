"""Highlights: the places of the words of a query in a text, as HTML whose only element is <mark>. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape
from itertools import islice

from metaharvest.model.values import frozen
from metaharvest.pipeline.search.query_language import Query, words_of
from metaharvest.pipeline.search.terms import GRAMS, folded
from metaharvest.text import clean

SNIPPET = 280
"""Characters of a part of a text."""

LOOKED_AT = 400_000
"""Characters of a full text in which words are looked for."""

_MOST_PLACES = 40
_MOST_LOOKS = 2_000
_BETWEEN = r"[\W_]{1,9}"
"""Between two words of a phrase."""

_WITH_MARKS = re.compile("[\u00c0-\u024f\u0370-\u03ff\u1e00-\u1fff]")
"""Latin and Greek letters, which are found without their marks."""

_RUN = re.compile(f"[{GRAMS}]")
_PIECE = re.compile(f"[{GRAMS}]+|[^ {GRAMS}]+")


@frozen
class _Part:
    """A word or a phrase: its pattern, and the letters that it begins with."""

    beginning: str
    pattern: re.Pattern[str]

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Where it stands in a text, from its beginning to its end."""
        at, looks = text.find(self.beginning), 0
        while at >= 0 and looks < _MOST_LOOKS:
            found = self.pattern.match(text, at)
            if found is not None:
                yield found.span()
            at, looks = text.find(self.beginning, found.end() if found else at + 1), looks + 1


@frozen
class Marker:
    """Marks words and phrases in texts."""

    parts: Sequence[_Part]

    def whole(self, text: str) -> str | None:
        """The whole text with its words marked; None if it has none of them."""
        places = self._places(_alike(text))
        return _marked(text, places, 0, len(text)) if places else None

    def snippet(self, text: str) -> str | None:
        """The part of the text with most of the words, marked; None if it has none of them."""
        text = text[:LOOKED_AT]
        alike = _alike(text)
        places = self._places(alike)
        if not places:
            return None
        start, end = _window(alike, places)
        before, after = "… " if start else "", " …" if end < len(text) else ""
        return f"{before}{_marked(text, places, start, end)}{after}"

    def _places(self, alike: str) -> Sequence[tuple[int, int]]:
        """The places of the words, of which none is in another one."""
        every = sorted(
            (place for part in self.parts for place in islice(part.places(alike), _MOST_PLACES)),
            key=lambda place: (place[0], -place[1]),
        )
        found: list[tuple[int, int]] = []
        for place in every:
            if not found or place[0] >= found[-1][1]:
                found.append(place)
        return found


def marker(query: Query, field: str) -> Marker:
    """The marker of the words of a query that are searched in a field of the index, or in all fields."""
    texts = dict.fromkeys(each.text for each in words_of(query) if each.field in (None, field))
    return Marker([part for text in texts for part in _parts(text)])


def _parts(text: str) -> Iterator[_Part]:
    """The parts of a text of a query: words one after another, or a run without blanks, wherever it stands."""
    words: list[str] = []
    for piece in (*_PIECE.findall(_alike_words(text)), None):
        if piece is not None and not _RUN.match(piece):
            words.append(piece)
            continue
        if words:
            pattern = _BETWEEN.join(map(re.escape, words))
            yield _Part(words[0], re.compile(rf"(?<![^\W_]){pattern}(?![^\W_])"))
        words = []
        if piece:
            yield _Part(piece, re.compile(re.escape(piece)))


def _alike_words(text: str) -> str:
    """The words of a text as `_alike` writes them, with blanks between them."""
    return "".join(each if each.isalnum() else " " for each in _alike(unicodedata.normalize("NFC", text)))


def _alike(text: str) -> str:
    """The text in lower case and without accents, character by character: a place in it is the place in the text."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(each.lower()[0] for each in text)
    return lower if lower.isascii() else _WITH_MARKS.sub(lambda found: _first_letter(found[0]), lower)


@lru_cache(maxsize=20_000)
def _first_letter(character: str) -> str:
    return folded(character)[:1] or character


def _window(alike: str, places: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The part of the text with most different words, a little before the first of them, at the ends of words."""
    if len(alike) <= SNIPPET:
        return 0, len(alike)

    def worth(first: int) -> int:
        last = places[first][0] + SNIPPET * 3 // 4
        return len({alike[start:end] for start, end in places[first:] if end <= last})

    best = max(range(len(places)), key=lambda number: (worth(number), -number))
    start = max(0, min(places[best][0] - SNIPPET // 4, len(alike) - SNIPPET))
    end = min(len(alike), max(start + SNIPPET, places[best][1]))
    if start and (blank := alike.find(" ", start, places[best][0])) >= 0:
        start = blank + 1
    if end < len(alike) and (blank := alike.rfind(" ", places[best][1], end)) >= 0:
        end = blank
    return start, end


def _marked(text: str, places: Sequence[tuple[int, int]], start: int, end: int) -> str:
    """The part of a text on one line, escaped, with its words in <mark>."""
    parts, at = [], start
    for first, last in places:
        if first < at or last > end:
            continue
        parts += [_safe(text[at:first]), "<mark>", _safe(text[first:last]), "</mark>"]
        at = last
    parts.append(_safe(text[at:end]))
    return " ".join("".join(parts).split())


def _safe(text: str) -> str:
    return escape(clean(text))
