"""Letters without their accents, for words that are compared."""

from __future__ import annotations

import unicodedata


def without_accents(text: str) -> str:
    """The text without the accents of Latin, Greek and Cyrillic letters; other marks stay."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(each for each in decomposed if not "\u0300" <= each <= "\u036f"))
