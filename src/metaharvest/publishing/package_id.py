"""Finds the packageId in the bytes of a document, and replaces it; every other byte stays.

The document was parsed already: it is well-formed, and its DOCTYPE declares nothing.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from metaharvest.model import MAX_EXCERPT
from metaharvest.sources.harvest_list.values import XML_SPACE
from metaharvest.text import one_line

_MISC = r"(?:[ \t\r\n]++|<\?(?s:.*?)\?>|<!--(?s:.*?)-->)*+"
_DOCTYPE = r"(?:<!DOCTYPE(?:[^\[>\"']|\"[^\"]*\"|'[^']*')*+>)?+"
_ATTRIBUTE = r"[ \t\r\n]+(?!packageId[ \t\r\n]*=)[^ \t\r\n=/>]+[ \t\r\n]*=[ \t\r\n]*(?:\"[^\"]*\"|'[^']*')"
_ROOT = re.compile(
    rf"\ufeff?{_MISC}{_DOCTYPE}{_MISC}<[^!?/ \t\r\n>]+(?:{_ATTRIBUTE})*+"
    r"[ \t\r\n]+(?P<attribute>packageId)[ \t\r\n]*=[ \t\r\n]*(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)')"
)
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)


class NotReplaceable(Exception):
    """The packageId cannot be replaced without a change of other bytes."""


@dataclass(frozen=True, slots=True)
class AttributePlace:
    """The place of the attribute packageId: line and column, which count from 1, and the text from there on."""

    line: int
    column: int
    excerpt: str


def place_in(content: bytes, encoding: str) -> AttributePlace | None:
    """The place of the packageId of a document; None if it is unknown."""
    try:
        text = content.decode(_codec(content, encoding)).removeprefix("\ufeff")
    except (LookupError, UnicodeError):
        return None
    found = _ROOT.match(text)
    if found is None:
        return None
    start = found.start("attribute")
    before = text[:start].replace("\r\n", "\n")
    line_end = text.find("\n", start)
    excerpt = text[start : line_end if line_end >= 0 else len(text)]
    return AttributePlace(before.count("\n") + 1, len(before) - before.rfind("\n"), one_line(excerpt, MAX_EXCERPT))


def with_package_id(content: bytes, encoding: str, package_id: str) -> bytes:
    """`content`, in the encoding that its parser found, with another packageId. Raises NotReplaceable.

    White space around the old packageId stays.
    """
    codec = _codec(content, encoding)
    try:
        text = content.decode(codec)
    except (LookupError, UnicodeError):
        raise NotReplaceable(f"its encoding, {encoding}, is not known here") from None
    found = _ROOT.match(text)
    if found is None:
        raise NotReplaceable("it was not found in the root element")
    group = "double" if found["double"] is not None else "single"
    old, quotes = found[group], '"' if group == "double" else "'"
    if quotes in package_id or set(package_id) & set("<&"):
        raise NotReplaceable("the new one has characters that would have to be escaped")
    start = found.start(group) + len(old) - len(old.lstrip(XML_SPACE))
    head = text[:start].encode(codec)
    value = old.strip(XML_SPACE).encode(codec)
    # Some encodings have more than one way to write a text.
    if not content.startswith(head + value):
        raise NotReplaceable(f"the text before it can be written in several ways in its encoding, {encoding}")
    return head + package_id.encode(codec) + content[len(head) + len(value) :]


def _codec(content: bytes, encoding: str) -> str:
    return next((name for mark, name in _MARKS if content.startswith(mark)), encoding)
