"""Parses the XML responses of a node, with limits on their cost."""

from __future__ import annotations

from lxml import etree

from metaharvest.fetch.xml_bounds import XmlLimits, XmlRefused, tree_of
from metaharvest.targets.http import ANSWER_BYTES

SHORT = XmlLimits(size=ANSWER_BYTES, nodes=20_000, namespaces=1_000)
"""For system metadata, an error, or the description of a node. Each person with access to an object is an XML node."""


def root_of(content: bytes, limits: XmlLimits = SHORT) -> etree._Element:
    """The root element. Raises ValueError if the content is not XML, or exceeds the limits."""
    try:
        return tree_of(content, limits)
    except XmlRefused as error:
        raise ValueError(f"the answer {error}") from error
