"""The rows of a crosswalk: a path in the document, the element of Dublin Core for it, and how to make its text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from lxml import etree

ELEMENTS = (
    *("title", "creator", "subject", "description", "publisher", "contributor", "date", "type"),
    *("format", "identifier", "source", "language", "relation", "coverage", "rights"),
)
"""The elements of simple Dublin Core, in the order of the values."""

LONGEST = 10_000
"""Characters of a value."""

MOST = 200
"""Values of an element of Dublin Core, and nodes that are read for one row."""

_INLINE = frozenset(
    ("emphasis", "subscript", "superscript", "ulink", "citetitle", "b", "i", "em", "strong", "sub", "sup", "span", "a")
)
"""Elements inside of a word or a sentence. All others are paragraphs: a space separates them from the text around."""

# bounded: at the start of one value
_DOI = re.compile(r"(?:doi:\s?|https?://(?:dx\.)?doi\.org/)?(10\.\d{4,9}/\S+)", re.IGNORECASE)
_URL = re.compile(r"(?:https?|ftp)://\S+", re.IGNORECASE)

Values = Callable[[etree._Element], Iterable[str]]
"""How an element gives its texts."""


def plain(element: etree._Element | None) -> str:
    """The text of an element and of its descendants, without comments; "" for None. A long one is cut."""
    if element is None:
        return ""
    if not len(element):
        return (element.text or "").strip()
    parts, size = list[str](), 0
    for event, each in etree.iterwalk(element, events=("start", "end", "comment", "pi")):
        is_element = isinstance(each.tag, str)
        if is_element and etree.QName(each).localname not in _INLINE:
            parts.append(" ")
        if event != "start":
            parts.append((each.tail or "") if each is not element else "")
        elif is_element:
            parts.append(each.text or "")
        # Elements count, too: a document may have a million without a text.
        size += 1 + len(parts[-1])
        if size > 2 * LONGEST:
            break
    return "".join(parts).strip()


def text(element: etree._Element) -> Iterator[str]:
    """The text of the element."""
    yield plain(element)


def attribute(name: str) -> Values:
    """The attribute with this name, in Clark notation."""
    return lambda element: (element.get(name, ""),)


def with_attribute(name: str) -> Values:
    """The attribute with this name, and the text of the element."""
    return lambda element: (element.get(name, ""), plain(element))


def identifier(element: etree._Element) -> Iterator[str]:
    """The text of the element, a DOI as a URL."""
    yield resolvable(plain(element))


def url(element: etree._Element) -> Iterator[str]:
    """The text of the element, if it is a URL or a DOI."""
    found = resolvable(plain(element))
    if _URL.fullmatch(found):
        yield found


def resolvable(value: str) -> str:
    """A DOI as the URL at which it resolves; any other identifier as it is."""
    doi = _DOI.fullmatch(value)
    return f"https://doi.org/{doi[1]}" if doi else value


def inverted(family: str, given: str) -> str:
    """The name of a person, family name first."""
    return ", ".join(part for part in (family, given) if part)


def area(west: str, east: str, south: str, north: str) -> Iterator[str]:
    """A sentence for a bounding box, or a point; none if a coordinate is missing."""
    if not (west and east and south and north):
        return
    if (west, south) == (east, north):
        yield f"The place lies at longitude {west} and latitude {south}."
    else:
        yield f"The area lies between longitudes {west} and {east} and latitudes {south} and {north}."


def area_of(sides: Callable[[etree._Element], tuple[str, str, str, str]]) -> Values:
    """The sentence for the box of an element, of which `sides` gives the west, east, south and north."""
    return lambda element: area(*sides(element))


def period(begin: str, end: str) -> Iterator[str]:
    """A sentence for a period of time, either end of which may be missing."""
    if begin and end:
        yield f"From {begin} to {end}."
    elif begin or end:
        yield f"From {begin} on." if begin else f"Until {end}."


class Row(NamedTuple):
    """A row: what is found at `path` gives this element of Dublin Core.

    `fallback`: only if the rows before gave no value of this element.
    """

    element: str
    path: str
    values: Values = text
    fallback: bool = False


def pairs_by(
    rows: Sequence[Row], start: etree._Element, namespaces: Mapping[str, str] | None = None
) -> Iterator[tuple[str, str]]:
    """The elements of Dublin Core with their values, row by row, with paths from `start`."""
    return pairs_found(rows, lambda path: start.iterfind(path, dict(namespaces or {})))


def pairs_found(rows: Sequence[Row], find: Callable[[str], Iterable[etree._Element]]) -> Iterator[tuple[str, str]]:
    """The elements of Dublin Core with their values, row by row; `find` gives the elements at a path."""
    found = set[str]()
    for row in rows:
        if row.fallback and row.element in found:
            continue
        for element in islice(find(row.path), MOST):
            for value in islice(row.values(element), MOST):
                if value and not value.isspace():
                    found.add(row.element)
                    yield row.element, value


def namespace_of(root: etree._Element) -> Mapping[str, str]:
    """The namespace of the root element, with the prefix that tables use for it."""
    return {"m": etree.QName(root).namespace or ""}
