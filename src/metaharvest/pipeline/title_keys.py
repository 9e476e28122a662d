"""Keys by which a title is found in a reference, whatever the style of the reference.

A key is the beginning, or the end, of a title or of its part before a colon: letters and digits alone, of one length
for all titles. A reference has the same key at the beginning, or at the end, of one of its words. One misprint does not
spoil all keys of a long title.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from metaharvest.pipeline.letters import without_accents

LENGTH = 24
"""Of a key; Chinese, Japanese and Korean characters count for three."""

_FEWEST = 9
"""The length of a title that has a key."""

_LONGEST_TEXT = 3_000
_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"[^.,:;?!()\[\]\"“”„«»/。，：]+")
_SUBTITLE = re.compile(r"[:：?？!.]\s|：|\s[-–—]\s|;\s")
_WIDE = re.compile("[\u2e80-\ud7af\uf900-\ufaff]")
_LETTERS = str.maketrans({"æ": "ae", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "œ": "oe", "ı": "i"})


def plain(text: str) -> str:
    """The text in lower case, without accents, with a blank between its words."""
    if not text.isascii():
        text = without_accents(text.casefold().translate(_LETTERS))
    return " ".join(_WORD.findall(text.casefold()))


def keys_of_title(title: str) -> frozenset[str]:
    """The keys of a title; none if it is too short to be known again."""
    main = _SUBTITLE.split(title, maxsplit=1)[0]
    return frozenset(key for each in {title, main} for key in _ends(each))


def _ends(title: str) -> tuple[str, ...]:
    squeezed = _Squeezed(plain(title[:_LONGEST_TEXT]).split())
    if squeezed.weight(squeezed.text) < _FEWEST:
        return ()
    return squeezed.start(0), squeezed.end(len(squeezed.text))


def keys_in_reference(raw: str) -> frozenset[str]:
    """The keys of all titles that the text of a reference may have in it."""
    raw = raw[:_LONGEST_TEXT]
    squeezed = _Squeezed(plain(raw).split())
    found: set[str] = set()
    place = 0
    for word in squeezed.words:
        found.add(squeezed.start(place))
        place += len(word)
        found.add(squeezed.end(place))
    short = (plain(part).replace(" ", "") for part in _PART.findall(raw))
    found.update(part for part in short if squeezed.weight(part) <= LENGTH)
    return frozenset(key for key in found if squeezed.weight(key) >= _FEWEST)


class _Squeezed:
    """Words without blanks between them. Each character of Chinese and Japanese is a word, and counts for three."""

    def __init__(self, words: Sequence[str]) -> None:
        self.text = "".join(words)
        self._is_plain = not _WIDE.search(self.text)
        self.words = (
            words if self._is_plain else [part for word in words for part in (word if _WIDE.search(word) else (word,))]
        )

    def weight(self, text: str) -> int:
        """The length of a key."""
        return len(text) if self._is_plain else len(text) + 2 * len(_WIDE.findall(text))

    def start(self, place: int) -> str:
        """The key that begins here."""
        return self._cut(self.text[place : place + LENGTH], slice(None, -1))

    def end(self, place: int) -> str:
        """The key that ends here."""
        return self._cut(self.text[max(0, place - LENGTH) : place], slice(1, None))

    def _cut(self, key: str, shorter: slice) -> str:
        while not self._is_plain and self.weight(key) > LENGTH:
            key = key[shorter]
        return key
