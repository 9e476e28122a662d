"""The kind of a body, by its first bytes; if they do not decide, by the type that its server says."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from enum import StrEnum

_HEAD = 1_024
"""A PDF has its mark within these bytes (ISO 32000-1, annex H, note 13)."""


class Kind(StrEnum):
    """A kind of body, in the words of messages."""

    PDF = "a PDF"
    JATS = "an article in XML"
    XML = "XML that is no article"
    HTML = "a web page"
    TEXT = "plain text"
    EMPTY = "nothing"
    WORD = "a document of a word processor"
    ARCHIVE = "an archive"
    IMAGE = "an image"
    POSTSCRIPT = "PostScript"
    OTHER = "a file of another kind"


TEXTS = {Kind.PDF: "application/pdf", Kind.JATS: "application/xml", Kind.HTML: "text/html", Kind.TEXT: "text/plain"}
"""The kinds that text is taken from, and their types."""

_STARTS = (
    (b"%!PS", Kind.POSTSCRIPT),
    (b"{\\rtf", Kind.WORD),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", Kind.WORD),
    (b"\x1f\x8b", Kind.ARCHIVE),
    (b"7z\xbc\xaf", Kind.ARCHIVE),
    (b"Rar!", Kind.ARCHIVE),
    (b"\xff\xd8\xff", Kind.IMAGE),
    (b"\x89PNG", Kind.IMAGE),
    (b"GIF8", Kind.IMAGE),
    (b"II*\0", Kind.IMAGE),
    (b"MM\0*", Kind.IMAGE),
)
_WORD_PARTS = (b"word/", b"mimetypeapplication/vnd.oasis.opendocument.text")
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)[\s/>]")
_ARTICLES = (b"article", b"TEI", b"book", b"book-part", b"pmc-articleset")
_BLANK = b"\xef\xbb\xbf \t\r\n\0"
_HTML = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|script|div|table|form|p|h1|center|a|br|frameset)\b", re.IGNORECASE
)


def kind_of(content: bytes, media_type: str = "") -> Kind:
    """The kind of a body; `media_type` is the header Content-Type of its server."""
    head = content[:_HEAD]
    start = head.lstrip(_BLANK)
    if not start:
        return Kind.EMPTY
    # A script may send warnings in HTML before its PDF: https://github.com/mikehaertl/phpwkhtmltopdf/issues/298.
    if b"%PDF-" in head and (not start.startswith(b"<") or b"%%EOF" in content[-_HEAD:]):
        return Kind.PDF
    if start.startswith(b"<"):
        return _marked_up(content[:8_192], media_type)
    if start.startswith(b"PK\x03\x04"):
        return Kind.WORD if any(part in content[:4_096] for part in _WORD_PARTS) else Kind.ARCHIVE
    for mark, kind in _STARTS:
        if start.startswith(mark):
            return kind
    if "html" in media_type.lower() or _HTML.match(start):
        return Kind.HTML
    return Kind.TEXT if _is_plain(head, media_type) else Kind.OTHER


def stored_type(kind: Kind, media_type: str) -> str:
    """The type that a text of this kind is stored with. Plain text has the charset of its header Content-Type."""
    charset = charset_of(media_type) if kind is Kind.TEXT else None
    if charset is not None:
        with suppress(LookupError, ValueError):
            return f"{TEXTS[kind]}; charset={codecs.lookup(charset).name}"
    return TEXTS[kind]


def bare_type(media_type: str) -> str:
    """A media type without its parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()


def charset_of(media_type: str) -> str | None:
    """The charset in a header Content-Type."""
    for part in media_type.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset" and value.strip(" \"'"):
            return value.strip(" \"'")
    return None


def _marked_up(head: bytes, media_type: str) -> Kind:
    root = _root_of(head)
    if root in _ARTICLES:
        return Kind.JATS
    start = head.lstrip(_BLANK)
    if root.lower() == b"html" or b"<!doctype html" in head.lower():
        return Kind.HTML
    if not start.startswith(b"<?xml") and ("html" in media_type.lower() or _HTML.match(start)):
        return Kind.HTML
    return Kind.XML


def _root_of(head: bytes) -> bytes:
    """The local name of the first element: comments, instructions and declarations come before it."""
    place = 0
    while (place := head.find(b"<", place)) >= 0:
        if head.startswith(b"<!--", place):
            place = _after(head, b"-->", place)
        elif head.startswith((b"<?", b"<!"), place):
            place = _after(head, b">", place)
        else:
            found = _ROOT.match(head, place)
            return found[1] if found else b""
        if place < 0:
            break
    return b""


def _after(head: bytes, end: bytes, place: int) -> int:
    found = head.find(end, place)
    return found + len(end) if found >= 0 else -1


def _is_plain(head: bytes, media_type: str) -> bool:
    """True for text, except for data in columns."""
    kind = bare_type(media_type)
    has_controls = any(byte < 9 or 13 < byte < 32 for byte in head)
    return not has_controls and kind in ("", "text/plain", "application/octet-stream", "application/download")
