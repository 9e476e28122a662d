"""Where in a document something is: line, column, a readable XPath and an excerpt of an element.

Used only once something has been found. libxml2's own line numbers are those of a start tag's end and may stop at
65,535, so the source is read a second time with expat, which knows where each start tag begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast
from xml.parsers import expat

from lxml import etree

from metaharvest.model import MAX_EXCERPT, MAX_FINDINGS, Finding, Level
from metaharvest.text import one_line

_START_TAG = re.compile(r"""<(?:"[^"]*"|'[^']*'|[^<>"'])*>""")
_SAME_BEFORE, _SAME_AFTER = (
    etree.XPath(f"count({axis}-sibling::*[local-name() = $name and namespace-uri() = $uri])")
    for axis in ("preceding", "following")
)
_LEAF = re.compile(r"[^<]*</[^>]*>")


@dataclass(frozen=True, slots=True)
class Problem:
    """A finding in the making: `element` still has to be found in the source. None: the document as a whole."""

    rule: str
    message: str
    remedy: str
    element: etree._Element | None
    level: Level = Level.ERROR


@dataclass(frozen=True, slots=True)
class _Place:
    line: int
    column: int | None
    excerpt: str


def findings(problems: Sequence[Problem], content: bytes, root: etree._Element) -> Iterable[Finding]:
    """Each problem as a finding with its place. Those beyond what a document may have stay without one: only their
    number is told. `content` is the source of `root`."""
    shown = problems[:MAX_FINDINGS]
    places = _places({problem.element for problem in shown if problem.element is not None}, content, root)
    for problem in shown:
        if problem.element is None:
            yield Finding(problem.rule, problem.message, problem.remedy, problem.level)
            continue
        place = places[problem.element]
        yield Finding(
            problem.rule,
            problem.message,
            problem.remedy,
            problem.level,
            line=place.line,
            column=place.column,
            xpath=xpath(problem.element),
            excerpt=place.excerpt,
        )
    for problem in problems[MAX_FINDINGS:]:
        yield Finding(problem.rule, problem.message, problem.remedy, problem.level)


def in_document_order(problems: Sequence[Problem], root: etree._Element) -> list[Problem]:
    """The problems as their elements follow one another, those without one last; where not all of them can be shown,
    errors come before warnings."""
    wanted = {problem.element for problem in problems if problem.element is not None}
    order: dict[etree._Element | None, int] = {}
    for element in root.iter("*"):
        if element in wanted:
            order[element] = len(order)
    is_whole = len(problems) <= MAX_FINDINGS
    return sorted(problems, key=lambda p: (not is_whole and p.level is Level.WARNING, order.get(p.element, len(order))))


def xpath(element: etree._Element) -> str:
    """A readable path, `/eml:eml/dataset/creator[2]`: prefixes as the document writes them, positions where needed."""
    steps = element.getroottree().getpath(element).split("/")[1:]
    node: etree._Element | None = element
    for index in range(len(steps) - 1, -1, -1):
        if node is not None and steps[index].startswith("*"):
            steps[index] = name(node) + _position(node)
        node = node.getparent() if node is not None else None
    return "/" + "/".join(steps)


def name(element: etree._Element) -> str:
    """The element's name as the document writes it, prefix included."""
    local = etree.QName(element).localname
    return f"{element.prefix}:{local}" if element.prefix else local


def _position(element: etree._Element) -> str:
    """`[2]` for the second of several siblings of one name; for names in a default namespace, which have no prefix."""
    same = {"name": etree.QName(element).localname, "uri": etree.QName(element).namespace or ""}
    before, after = (cast(float, count(element, **same)) for count in (_SAME_BEFORE, _SAME_AFTER))
    return f"[{int(before) + 1}]" if before or after else ""


def _places(wanted: set[etree._Element], content: bytes, root: etree._Element) -> dict[etree._Element, _Place]:
    if not wanted:
        return {}
    ordinals = {number: element for number, element in enumerate(root.iter("*")) if element in wanted}
    places = {element: _Place(cast(int | None, element.sourceline) or 1, None, _rebuilt(element)) for element in wanted}
    source = _utf8(content, root)
    if source is None:
        return places
    for number, line, column, offset in _starts(source, set(ordinals)):
        element = ordinals[number]
        places[element] = _Place(line, column, _excerpt(source[offset : offset + 4000], element))
    return places


def _starts(source: bytes, wanted: set[int]) -> list[tuple[int, int, int, int]]:
    """Number, line, column and byte offset of the wanted start tags; as many as expat gets to see."""
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
    try:
        parser.Parse(source, True)
    except expat.ExpatError:
        return found
    return found


def _utf8(content: bytes, root: etree._Element) -> bytes | None:
    """The source as UTF-8 without a byte order mark; None where Python does not know its encoding."""
    try:
        text = content.decode(root.getroottree().docinfo.encoding or "utf-8")
    except (LookupError, UnicodeError):
        return None
    return text.removeprefix("\ufeff").encode("utf-8", "replace")


def _excerpt(source: bytes, element: etree._Element) -> str:
    """The element's start tag, and its text where it has nothing but text."""
    text = source.decode("utf-8", "ignore")
    tag = _START_TAG.match(text)
    if tag is None:
        return one_line(text, MAX_EXCERPT)
    leaf = _LEAF.match(text, tag.end()) if not len(element) and not tag[0].endswith("/>") else None
    return one_line(tag[0] + (leaf[0] if leaf else ""), MAX_EXCERPT)


def _rebuilt(element: etree._Element) -> str:
    return one_line(f"<{name(element)}>{(element.text or '')[:MAX_EXCERPT]}", MAX_EXCERPT)
