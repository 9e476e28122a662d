"""The XML that a node answers, as a tree whose cost is bounded before it exists."""

from __future__ import annotations

from lxml import etree

from metaharvest.fetch.xml_bounds import XmlLimits, XmlRefused, tree_of
from metaharvest.targets.http import ANSWER_BYTES

SHORT = XmlLimits(size=ANSWER_BYTES, nodes=20_000, namespaces=1_000)
"""System metadata, an error, what a node says of itself. Each person who may read an object is a node."""


def root_of(content: bytes, limits: XmlLimits = SHORT) -> etree._Element:
    """The root element. Raises ValueError if this is no XML, or is not within the limits."""
    try:
        return tree_of(content, limits)
    except XmlRefused as error:
        raise ValueError(f"the answer {error}") from error
