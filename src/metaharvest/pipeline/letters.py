"""Letters and words that are compared: words without accents, and the characters of East Asian scripts."""

from __future__ import annotations

import re
import unicodedata

EAST_ASIAN_LETTER = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
"""Kana, Han characters and Hangul: each of them says more than a letter."""

EAST_ASIAN = re.compile("[\u2e80-\ud7af]")
"""Letters, radicals, punctuation and marks."""


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written with blanks."""
    return frozenset(text.split())


def folded(text: str) -> str:
    """The text in lower case and without accents, with one blank between its words."""
    return without_accents(" ".join(text.casefold().split()))


def without_accents(text: str) -> str:
    """The text without the accents of Latin, Greek and Cyrillic letters; other marks stay."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(each for each in decomposed if not "\u0300" <= each <= "\u036f"))
