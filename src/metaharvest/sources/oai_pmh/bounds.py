"""Upper bounds for the answers of a source repository: lengths of values, sizes of records and answers, namespaces.

A finding names each excess, with a number. The bounds are far above real answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lxml import etree

from metaharvest.fetch.xml_bounds import XmlLimits
from metaharvest.model import lengths

SET_SPECS = 65_536
"""Characters that all setSpecs of one record have together."""

URI = lengths.NAMESPACE
"""Characters of a namespace, a schema location, a base URL."""

DATE = 64
"""Characters of a datestamp, a responseDate, an expirationDate."""

IDENTIFIER = 4_096
"""Characters of an identifier that are kept: one with more than some 800 cannot be harvested."""

SETS = 100_000
"""Sets of one source repository."""

FORMATS = 10_000
"""Metadata formats of one source repository."""

ERRORS = 20
"""Errors of the protocol in one answer."""

UNUSABLE = 20_000
"""Records of one answer that cannot be read, or have no identifier."""

ADDRESSES = 100
"""Mail addresses and compressions in an answer to Identify."""

FRIENDS = 10_000
"""Base URLs of other source repositories in an answer to Identify."""

RECORD_NODES = 1_000_000
"""Elements, attributes, comments and processing instructions of one record; validation has the same limit."""

SHORT_ANSWER = XmlLimits(size=33_554_432, nodes=1_000_000, namespaces=100_000, huge=True)
"""An answer that is read as a whole: 100,000 sets with names and descriptions."""

_DECLARATIONS = 100
_DECLARED = 8_192

ABOUT_DECLARED = 4_096
"""Characters of namespaces that are declared around the about containers of one record, and copied into each part."""


def record_limits(largest: int) -> XmlLimits:
    """The limits of a record, whose content may have `largest` bytes."""
    return XmlLimits(size=largest, nodes=RECORD_NODES, namespaces=RECORD_NODES, huge=True)


def declared_size(declared: Mapping[str | None, str]) -> int:
    """The characters of namespaces in scope, prefixes included."""
    return sum(map(len, declared.values())) + sum(len(prefix or "") for prefix in declared)


def crowd(element: etree._Element) -> str:
    """Why the namespaces in scope at an element are too much for each record; "" if they are not.

    The limits are 100 namespaces, 8,192 characters together, and 2,048 each. Names of elements contain their
    namespaces, so that a long namespace costs its length for each element.
    """
    declared = element.nsmap
    size = declared_size(declared)
    if len(declared) <= _DECLARATIONS and size <= URI:
        return ""
    if len(declared) > _DECLARATIONS:
        return f"{len(declared):,} namespaces are declared around it; {_DECLARATIONS} can go with it"
    if (longest := max(map(len, declared.values()))) > URI:
        return f"a namespace around it has {longest:,} characters; {URI:,} are taken"
    if size > _DECLARED:
        return f"the namespaces around it have {size:,} characters; {_DECLARED:,} can go with it"
    return ""


def words_of(element: etree._Element, limit: int) -> str:
    """The beginning of an element's text, at most `limit` characters, without the comments within it."""
    if not len(element):
        return (element.text or "")[:limit]
    pieces: Any = element.xpath("descendant::text()[position() <= 1000]")
    return "".join(map(str, pieces))[:limit]
