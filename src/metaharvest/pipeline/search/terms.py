"""Terms: the words of a text in lower case, without accents, as the index has them. Pure.

Both indexes get texts whose words are cut and folded here, with a blank between two terms. They find the same documents
for this reason, whatever their own analysers do.

Chinese, Japanese, Korean, Thai and their neighbours are written without blanks, or with endings at their words. A run
of such characters becomes all its parts of two and of three characters. A search has the parts of three; of a run with
two characters the run itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

GRAMS = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""The characters of scripts without blanks between words, for a class of a regular expression."""
_RUN = re.compile(f"[{GRAMS}]+")
_PIECE = re.compile(f"[{GRAMS}]+|[^ {GRAMS}]+")
_OUTSIDE = re.compile(r"[^\x00-\x7f]{1,30}")
_MARKS = re.compile(r"[\x00-\x2f\x3a-\x60\x7b-\x7f]+")
"""Of a text in lower case, the characters of ASCII that are no letters and no digits."""

_OUTSIDE_ASCII = {
    "ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ħ": "h", "ı": "i", "ŋ": "n",
    "ŧ": "t", "ĸ": "k", "ς": "σ",
}  # fmt: skip
_IGNORED = "\u00ad\u034f\u061c\u180e\u200b\u200c\u200d\u2060\ufeff"
"""Soft hyphens and joiners: the word goes on after them."""


def _folded(character: str) -> str:
    """The letters or digits of a character in lower case, without accents; a blank for any other character."""
    if character in _IGNORED:
        return ""
    lower = character.lower()
    if _RUN.match(lower):
        return lower if unicodedata.category(lower)[0] in "LMN" else " "
    if lower in _OUTSIDE_ASCII:
        return _OUTSIDE_ASCII[lower]
    base = unicodedata.normalize("NFKD", lower)
    if base[0] in _OUTSIDE_ASCII:
        return _OUTSIDE_ASCII[base[0]]
    if "a" <= base[0] <= "z" or "\u0370" <= base[0] <= "\u052f":
        # Latin, Greek and Cyrillic letters without their marks.
        return "".join(_OUTSIDE_ASCII.get(each, each) for each in base if each.isalnum())
    if unicodedata.category(lower[0])[0] in "LN":
        return lower
    if unicodedata.category(lower[0])[0] == "M":
        # An accent that was left alone goes; the vowels of Indic scripts are marks, and stay.
        return "" if "\u0300" <= lower <= "\u036f" else lower
    return " "


@lru_cache(maxsize=100_000)
def _folded_run(run: str) -> str:
    return "".join(map(_folded_character, run))


_folded_character = lru_cache(maxsize=20_000)(_folded)
_ASCII = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}


def folded(text: str) -> str:
    """The words of a text in lower case and without accents; other characters are blanks."""
    if not text.isascii():
        text = _OUTSIDE.sub(lambda found: _folded_run(found[0]), unicodedata.normalize("NFKC", text))
        if not text.isascii():
            return _MARKS.sub(" ", text.lower())
    return text.translate(_ASCII)


def indexed(text: str) -> str:
    """The terms of a text for the index, with a blank between two terms."""
    found = folded(text)
    return found if text.isascii() or not _RUN.search(found) else _RUN.sub(_grams_of_run, found)


def _grams_of_run(found: re.Match[str]) -> str:
    return f" {' '.join(_grams(found[0]))} "


def _grams(run: str) -> Iterator[str]:
    if len(run) == 1:
        yield run
    for size in (2, 3):
        yield from (run[at : at + size] for at in range(len(run) - size + 1))


def searched(text: str) -> Sequence[Sequence[str]]:
    """The terms that a text is searched by: each sequence is a phrase, and all have to be found."""
    found: list[list[str]] = []
    words: list[str] = []
    for piece in _PIECE.findall(folded(text)):
        if not _RUN.match(piece):
            words.append(piece)
            continue
        found += [words, *([gram] for gram in _grams_to_search(piece))]
        words = []
    return [each for each in (*found, words) if each]


def _grams_to_search(run: str) -> Sequence[str]:
    """The parts of three characters, each once; a shorter run itself."""
    size = min(3, len(run))
    return list(dict.fromkeys(run[at : at + size] for at in range(len(run) - size + 1)))
