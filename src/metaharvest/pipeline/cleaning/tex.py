r"""Accents of TeX as letters: `Schr\"odinger` is Schrödinger. Pure.

Records of arXiv have titles and abstracts as their authors typed them, so that a search for the word finds nothing.
Seen at https://github.com/scirate/scirate/issues/94 and https://github.com/CCSDForge/episciences/issues/694.
"""

from __future__ import annotations

import re
import unicodedata

_COMBINING = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", "=": "\u0304", "u": "\u0306", ".": "\u0307",
    '"': "\u0308", "r": "\u030a", "H": "\u030b", "v": "\u030c", "d": "\u0323", "c": "\u0327", "k": "\u0328",
}  # fmt: skip
_LETTERS = {"ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å"}

_END = r"(?:\{\}|\s(?=[A-Za-z])|(?![A-Za-z]))"
"""The end of a command of letters, which takes a blank behind it."""

_BRACED = r"\{(?:\\[ij]|[A-Za-z])\}"
_ACCENT = rf"\\(?:[`'^~=.\"]\s?(?:{_BRACED}|\\[ij]{_END}|[A-Za-z])|[urHvdck](?:\s?{_BRACED}|\s[A-Za-z]))"
_NAMED = rf"\\(?:ss|ae|AE|oe|OE|aa|[oOlL]){_END}"
_IN_TEX = re.compile(rf"\{{({_ACCENT}|{_NAMED})\}}|({_ACCENT}|{_NAMED})")
_AROUND = re.compile(r"[{}\s]")
_FORMULA_SIGN = re.compile(r"(?<!\\)\$")


def with_letters(text: str) -> str:
    """The text with the letters of TeX's accents. Formulas between `$` stay."""
    if "\\" not in text:
        return text
    parts = _FORMULA_SIGN.split(text)
    parts[::2] = [_IN_TEX.sub(_letter, each) for each in parts[::2]]
    return "$".join(parts)


def _letter(found: re.Match[str]) -> str:
    """The letter of an accent; as it was, if Unicode has no such letter."""
    accent = _AROUND.sub("", (found[1] or found[2])[1:])
    if accent in _LETTERS:
        return _LETTERS[accent]
    letter = unicodedata.normalize("NFC", accent[1:].removeprefix("\\") + _COMBINING[accent[0]])
    return letter if len(letter) == 1 else found[0]
