"""Recognises an HTML page that came where a document or a list was expected, and reads its title.

It looks at the first few kilobytes only, and never parses: whether something is good XML is for `validation` to say.
"""

from __future__ import annotations

import codecs
import re
from html import unescape

from metaharvest.text import one_line, shown_url

HEAD_BYTES = 8192
"""How much of an answer is looked at."""

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE_STARTS = (
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_CHARSET = re.compile(
    r"""<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9._:-]+)""", re.IGNORECASE
)
_HTML_DOCTYPE = re.compile(r"<!doctype\s+html\b", re.IGNORECASE)
_ROOT = re.compile(r"<(?:[A-Za-z_][\w.-]*:)?([A-Za-z_][\w.-]*)(?=[\s/>]|\Z)")
_HTML_ROOTS = frozenset({"html", "head", "body", "title", "meta"})
_TITLE = re.compile(r"<title\b[^>]*>(.*?)(?:</title|\Z)", re.IGNORECASE | re.DOTALL)
_EML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^<>]*\?>\s*)?<(?:[A-Za-z_][\w.-]*:)?eml[\s>]")
"""How almost every document begins."""

_SKIPPED = (("<!--", "-->"), ("<?", "?>"), ("<!", ">"))


def html_title(head: bytes) -> str | None:
    """The title of the HTML page that begins with `head`, on one line; "" for one without; None for anything else.

    HTML and XHTML are told by their root element, or a DOCTYPE that names it, after white space, comments and
    declarations.
    """
    if _EML_START.match(head):
        return None
    text = _decoded(head[:HEAD_BYTES])
    if not _is_html(text):
        return None
    title = _TITLE.search(text)
    return one_line(shown_url(unescape(title[1]))) if title else ""


def _is_html(text: str) -> bool:
    position = _past_space(text, 0)
    while skipped := next((pair for pair in _SKIPPED if text.startswith(pair[0], position)), None):
        if _HTML_DOCTYPE.match(text, position):
            return True
        end = text.find(skipped[1], position + len(skipped[0]))
        if end < 0:
            return False
        position = _past_space(text, end + len(skipped[1]))
    root = _ROOT.match(text, position)
    return root is not None and root[1].lower() in _HTML_ROOTS


def _past_space(text: str, position: int) -> int:
    while position < len(text) and (text[position].isspace() or text[position] == "\ufeff"):
        position += 1
    return position


def _decoded(head: bytes) -> str:
    """`head` as text, by its byte order mark, the charset that it declares, UTF-8 or Latin-1; never an exception."""
    for start, encoding in _BYTE_ORDER_MARKS:
        if head.startswith(start):
            return head[len(start) :].decode(encoding, "replace")
    for start, encoding in _WIDE_STARTS:
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
