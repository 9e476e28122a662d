"""Finds the place of an element in a document's source: line, column, a readable XPath and an excerpt.

Used only for documents with findings. libxml2's line numbers name the end of a start tag, and may stop at
65,535; so the source is read a second time with expat, which knows where each start tag begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeVar, cast
from xml.parsers import expat

from lxml import etree

from metaharvest.model import MAX_EXCERPT, MAX_FINDINGS, Finding, Level
from metaharvest.model.values import frozen
from metaharvest.text import one_line

_START_TAG = re.compile(r"""<(?:"[^"]*"|'[^']*'|[^<>"'])*>""")
_SAME_BEFORE, _SAME_AFTER = (
    etree.XPath(f"count({axis}-sibling::*[local-name() = $name and namespace-uri() = $uri])")
    for axis in ("preceding", "following")
)
_LEAF = re.compile(r"[^<]*</[^>]*>")
_MOST_ATTRIBUTES = 20_000
"""The most attributes of an element that expat reads: of 600,000 it makes a list for 5 seconds, in which no other
thread of the process gets a turn.
"""

_has_crowded_element = etree.XPath(f"boolean(//*[@*[{_MOST_ATTRIBUTES + 1}]])")

Found = TypeVar("Found")


@frozen
class ElementFinding:
    """A finding about an element of the tree, whose place in the source is not known yet.

    `element` is None if the finding is about the document as a whole. `with_places` turns it into a Finding.
    """

    rule: str
    message: str
    remedy: str
    element: etree._Element | None
    level: Level = Level.ERROR


_SourcePlace = tuple[int, int | None, str]
"""Line, column and excerpt; the column is None if only libxml2's line is known."""


def with_places(found: Sequence[ElementFinding], content: bytes, root: etree._Element) -> Iterable[Finding]:
    """`found` as findings with their places in `content`, the source of `root`.

    Those after the first MAX_FINDINGS get no place, since only their number is reported.
    """
    shown = {each.element for each in found[:MAX_FINDINGS] if each.element is not None}
    places = _places(shown, content, root)
    for number, each in enumerate(found):
        if each.element is None or number >= MAX_FINDINGS:
            yield Finding(each.rule, each.message, each.remedy, each.level)
        else:
            line, column, excerpt = places[each.element]
            path = xpath(each.element)
            yield Finding(each.rule, each.message, each.remedy, each.level, line, column, path, excerpt)


def in_document_order(found: Sequence[ElementFinding], root: etree._Element) -> list[ElementFinding]:
    """`found` in the order of their elements in the document, those without an element last.

    If there are more than can be shown, errors come before warnings.
    """
    wanted = {each.element for each in found if each.element is not None}
    # No further than to the last of them: each step takes a time that grows with the element's depth.
    ordered = islice((element for element in root.iter("*") if element in wanted), len(wanted))
    order: dict[etree._Element | None, int] = {element: place for place, element in enumerate(ordered)}
    errors_first = len(found) > MAX_FINDINGS
    return sorted(
        found, key=lambda each: (errors_first and each.level is Level.WARNING, order.get(each.element, len(order)))
    )


def evaluated(path: etree.XPath, root: etree._Element, otherwise: Found) -> Found:
    """What an XPath finds; `otherwise` in a document of more than ten million elements, where libxml2 gives up."""
    try:
        return cast(Found, path(root))
    except etree.XPathError:
        return otherwise


def xpath(element: etree._Element) -> str:
    """A readable path, `/eml:eml/dataset/creator[2]`: prefixes as in the document, positions only if needed."""
    steps = element.getroottree().getpath(element).split("/")[1:]
    node: etree._Element | None = element
    for index in range(len(steps) - 1, -1, -1):
        if node is not None and steps[index].startswith("*"):
            steps[index] = _prefixed_name(node) + _position(node)
        node = node.getparent() if node is not None else None
    return "/" + "/".join(steps)


def shown_name(element: etree._Element) -> str:
    """The element's name without its prefix, short enough to show."""
    return one_line(str(etree.QName(element).localname), 100)


def _prefixed_name(element: etree._Element) -> str:
    """The element's name as the document writes it, with its prefix."""
    local = etree.QName(element).localname
    return f"{element.prefix}:{local}" if element.prefix else local


def _position(element: etree._Element) -> str:
    """`[2]` for the second of several siblings with the same name; empty if there is only one.

    Needed for names in a default namespace: they have no prefix, and lxml's path shows them as `*`.
    """
    same = {"name": etree.QName(element).localname, "uri": etree.QName(element).namespace or ""}
    before, after = (cast(float, count(element, **same)) for count in (_SAME_BEFORE, _SAME_AFTER))
    return f"[{int(before) + 1}]" if before or after else ""


def _places(wanted: set[etree._Element], content: bytes, root: etree._Element) -> dict[etree._Element, _SourcePlace]:
    if not wanted:
        return {}
    numbered = ((number, element) for number, element in enumerate(root.iter("*")) if element in wanted)
    ordinals = dict(islice(numbered, len(wanted)))
    places: dict[etree._Element, _SourcePlace] = {
        element: (cast(int | None, element.sourceline) or 1, None, _rebuilt(element)) for element in wanted
    }
    # In UTF-16 an equals sign is this byte and another one.
    if content.count(b"=") > _MOST_ATTRIBUTES and evaluated(_has_crowded_element, root, True):
        return places
    if (source := _utf8(content, root)) is None:
        return places
    for number, line, column, offset in _start_tags(source, set(ordinals)):
        element = ordinals[number]
        places[element] = line, column, _excerpt(source[offset : offset + 4000], element)
    return places


def _start_tags(source: bytes, wanted: set[int]) -> list[tuple[int, int, int, int]]:
    """Number, line, column and byte offset of the wanted start tags, as far as expat can read the source."""
    parser = expat.ParserCreate("utf-8")
    found: list[tuple[int, int, int, int]] = []
    count = 0

    def start(_name: str, _attributes: list[str]) -> None:
        nonlocal count
        if count in wanted:
            found.append((count, parser.CurrentLineNumber, parser.CurrentColumnNumber + 1, parser.CurrentByteIndex))
        count += 1
        if len(found) == len(wanted):
            parser.StartElementHandler = None

    parser.ordered_attributes = True
    parser.StartElementHandler = start
    with suppress(expat.ExpatError):
        parser.Parse(source, True)
    return found


def _utf8(content: bytes, root: etree._Element) -> bytes | None:
    """The source as UTF-8 without a byte order mark; None if Python does not know its encoding."""
    try:
        text = content.decode(root.getroottree().docinfo.encoding or "utf-8")
    except (LookupError, UnicodeError):
        return None
    return text.removeprefix("\ufeff").encode("utf-8", "replace")


def _excerpt(source: bytes, element: etree._Element) -> str:
    """The element's start tag, with its text and end tag if it has no child elements."""
    text = source.decode("utf-8", "ignore")
    tag = _START_TAG.match(text)
    if tag is None:
        return one_line(text, MAX_EXCERPT)
    leaf = _LEAF.match(text, tag.end()) if not len(element) and not tag[0].endswith("/>") else None
    return one_line(tag[0] + (leaf[0] if leaf else ""), MAX_EXCERPT)


def _rebuilt(element: etree._Element) -> str:
    """An excerpt made from the tree, for an element that is not found in the source."""
    return one_line(f"<{_prefixed_name(element)}>{(element.text or '')[:MAX_EXCERPT]}", MAX_EXCERPT)
