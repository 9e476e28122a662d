"""Recognises an HTML page in the place of a document or a list, and reads its title.

It reads the first few kilobytes only, and never parses: `validation` checks the XML.
"""

from __future__ import annotations

import codecs
import re

from metaharvest.text import one_line, shown_url, unescaped

HEAD_BYTES = 8192
"""The number of bytes of an answer that are read."""

_STARTS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"<\0\0\0": "utf-32-le",
    b"\0\0\0<": "utf-32-be",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}
"""Byte order marks, which these encodings leave out of the text, and the first character without one; longest first."""

# bounded: it is looked for in 1,024 characters
_CHARSET = re.compile(
    r"""<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9._:-]+)""", re.IGNORECASE
)
_HTML = re.compile(
    r"""(?:[\s\ufeff]|<!--.*?-->|<\?.*?\?>|<!(?!--|doctype\s+html\b).*?>|(?!))*+
    (?:<!doctype\s+html\b|<(?:[a-z_][\w.-]*:)?(?:html|head|body|title|meta)(?=[\s/>]|\Z))""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
"""White space, comments and declarations, then a DOCTYPE that names HTML, or a root element of it."""

_ELEMENTS = frozenset(
    (
        "html", "head", "body", "title", "meta", "div", "p", "h1", "h2", "center", "script", "style", "table", "form",
        "br",
    )
)  # fmt: skip
"""The first elements of web pages that lack their beginning."""

_MOST = 65_536
_PAGE = re.compile(rb"<!doctype\s+html\b|<html[\s>]", re.IGNORECASE)
# bounded: the first title ends the search, at the latest at the end of HEAD_BYTES
_TITLE = re.compile(r"<title\b[^<>]*>(.*?)(?:</title|\Z)", re.IGNORECASE | re.DOTALL)
_EML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^<>]*\?>\s*)?<(?:[A-Za-z_][\w.-]*:)?eml[\s>]")
"""The beginning of almost every document."""


def html_title(head: bytes) -> str | None:
    """The title of the (X)HTML page that begins with `head`, on one line; "" without one; None for anything else."""
    head = head[:HEAD_BYTES]
    if _EML_START.match(head):
        return None
    text = _decoded(head)
    if not _HTML.match(text):
        return None
    title = _TITLE.search(text)
    return one_line(shown_url(unescaped(title[1]))) if title else ""


def title_of_odd_page(head: bytes, tag: str | None) -> str | None:
    """The title as in html_title(), of a page with other text in front of it, or without its beginning.

    `tag` is the name of the first element of `head`, None if it is no XML. None is returned for anything but a web
    page.
    """
    is_page = tag is not None and tag.rpartition("}")[2].lower() in _ELEMENTS
    if not (is_page or (tag is None and _PAGE.search(head[:HEAD_BYTES]))):
        return None
    place = head[:_MOST].lower().find(b"<title")
    return (html_title(b"<html>" + head[place : place + HEAD_BYTES]) or "") if place >= 0 else ""


def _decoded(head: bytes) -> str:
    """`head` as text, by its byte order mark, the charset that it declares, UTF-8 or Latin-1; never an exception."""
    for start, encoding in _STARTS.items():
        if head.startswith(start):
            return head.decode(encoding, "replace")
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        latin = head.decode("latin-1")
    charset = _CHARSET.search(latin, 0, 1024)
    try:
        return head.decode(charset[1], "replace") if charset else latin
    except (LookupError, UnicodeError):
        return latin
