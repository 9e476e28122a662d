"""Makes text from outside safe to show: in a log row, a mail, a terminal, a table. Counts things in words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

_KEPT = "\n\t\u00ad\u200c\u200d"
_MARKS = {**dict.fromkeys((0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF)), **dict.fromkeys((0x0D, 0x85, 0x2028, 0x2029), " ")}
"""Marks without a shape, and the ends of lines.

Seen at https://github.com/digitalbiblesociety/browserbible-3/issues/88 and https://github.com/WDscholia/scholia/issues/177.
"""

_ROOM = re.compile("[ \n\t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]{2,}")
_USERINFO = re.compile(r"(?<=://)[^/?#]*@")
_USERINFO_IN_TEXT = re.compile(r"(?<=://)(?!\[)(?:[^/?#\s<>\"']*@|[^/?#@:\s<>\"']*+:(?!\d*[/?#])[^\s<>\"']*+)")
"""The second alternative, up to the last @, is for a password in which a `/`, `?` or `#` is not encoded as it must be.

It matches possessively, with or without an @, so that the time is linear: a server can send a text with many `://`.
"""

_NOT_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Names the few characters that are refused: Python compiles a set of all others ten times as slowly."""

_LONG_URL = 10_000
_LONGEST_SHOWN = 1_000_000

_COMPRESSED = (
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_OFFICE = "a file of an office program, such as Excel or Word"
_OFFICE_NAMES = (b"[Content_Types].xml", b"docProps/", b"vnd.oasis.opendocument")
_BINARY = (
    (b"\xd0\xcf\x11\xe0", _OFFICE),
    (b"{\\rtf", _OFFICE),
    (b"%PDF-", "a PDF file"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
)
HEAD_BYTES = 4096
"""The bytes at the beginning of a file that show its kind."""


def clean(text: str) -> str:
    """`text` without control and formatting characters (each becomes U+FFFD).

    Line breaks and tabs stay, and the joiners and the soft hyphen that some languages are written with.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c in _KEPT or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else "\ufffd"
        for c in text.replace("\r\n", "\n")
    )


def without_marks(text: str) -> str:
    """`text` without marks of no shape, as Khmer has them between words, and with blanks for the ends of lines.

    `clean` shows such a mark as U+FFFD, since an address or a name must have none.
    """
    return text if text.isprintable() else text.translate(_MARKS)


def one_line(text: str, limit: int = 300) -> str:
    """`text` cleaned, white space folded, without the logins of URLs.

    A text of more than `limit` characters is cut and ends with an ellipsis.
    """
    if "://" in text and "@" in text:
        # A server's text may repeat the login of the request.
        text = without_credentials(text[:_LONGEST_SHOWN])
    if len(text) <= limit and text.isprintable() and "  " not in text and text == text.strip(" "):
        return text
    # A text may have megabytes, but only one line is shown: only the part that fills the line is checked.
    room = 8 * limit
    while len(folded := " ".join(clean(_ROOM.sub(" ", text[:room])).split())) <= limit and room < len(text):
        room *= 8
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"


def some_of(names: Sequence[str], most: int = 20) -> str:
    """`a, b`, or the first names and the number of the others: `a, b and 980 more`. Empty without names."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def counted(number: int, singular: str, plural: str = "") -> str:
    """`1 error`, `2 errors`, `1,204 errors`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def joined(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""


def only_xml(text: str, replacement: str = "\ufffd") -> str:
    """`text` with the replacement for each character that XML 1.0 does not have: https://www.w3.org/TR/xml/#charsets"""
    return _NOT_XML.sub(replacement, text)


def shown_url(url: str) -> str:
    """`url` on one line, without user name and password."""
    if len(url) > _LONG_URL:
        # If the cut goes through a password, the @ has it removed like a whole one.
        url = url[:_LONG_URL] + ("@" if "@" in url[_LONG_URL:] else "")
    return _shown_url(url)


@lru_cache(maxsize=500)  # a document under way shows its URL several times
def _shown_url(url: str) -> str:
    return one_line(without_credentials(_USERINFO.sub("", url)) if "@" in url else url, 2000)


def without_credentials(text: str) -> str:
    """`text` without the user names and passwords of URLs in it."""
    return _USERINFO_IN_TEXT.sub(lambda found: found[0].rpartition("@")[2], text)


def unescaped(text: str) -> str:
    """`text` with its HTML references resolved; as it is if one of them is a number that is too long to read."""
    if "&" not in text:
        return text
    import html  # most texts have no references

    try:
        return html.unescape(text)
    except ValueError:
        return text


LARGEST_ID = 2**63 - 1
"""The largest number of a row, on each database."""


def whole_number(text: str, most: int = LARGEST_ID) -> int | None:
    """The number that `text` writes with ASCII digits; None if it writes none, or one above `most`.

    Python refuses numbers of more than 4,300 digits with an error of its own.
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    number = int(digits) if len(digits) <= len(str(most)) else most + 1
    return number if number <= most else None


def compressed_as(content: bytes) -> str:
    """The kind of compressed file that begins like this, such as `gzip`; "" for none."""
    return next((kind for start, kind in _COMPRESSED if content.startswith(start)), "")


def binary_kind(content: bytes) -> str:
    """The kind of a file that begins like this and is no text, such as `a PDF file`; "" for none that is known."""
    if compressed_as(content) == "zip" and any(name in content[:HEAD_BYTES] for name in _OFFICE_NAMES):
        return _OFFICE
    return next((kind for start, kind in _BINARY if content.startswith(start)), "")


def invisible_character(text: str) -> str:
    """The first space, control character or invisible character of an address; empty if there is none."""
    # A printable text has none of these but a space. A check of each character of all URLs of a list takes long.
    suspects = text if " " in text or not text.isprintable() else ""
    return next((c for c in suspects if c.isspace() or unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp")), "")


def character_in_words(character: str) -> str:
    """A character in words, since some, such as a no-break space, are invisible."""
    named = {" ": "a space", "\n": "a line break", "\r": "a line break", "\t": "a tab", "/": "a slash (/)"}
    if character in named:
        return named[character]
    name = unicodedata.name(character, "a control character")
    shown = f"'{character}', " if character.isprintable() else ""
    return f"{shown}the character U+{ord(character):04X} ({name})"
