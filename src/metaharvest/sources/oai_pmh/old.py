"""Versions 1.0 and 1.1 of the protocol: their answers as version 2.0 has them.

The root element is the verb, in a namespace that names the verb too. ListIdentifiers has identifiers without headers.
A record that does not exist in a format has a header and nothing else.
"""

from __future__ import annotations

import re

from lxml import etree

from metaharvest.sources.oai_pmh.protocol import VERBS, ResponseRoot, says_deleted, text_of

_NAMESPACE = re.compile(r"http://www\.openarchives\.org/OAI/(?:(1\.[01])/)?OAI_\w+")


def root_of(tag: str) -> ResponseRoot | None:
    """The root element of an answer, in any version; None: the answer is not OAI-PMH.

    The namespace may be another one: https://github.com/DSpace/xoai/issues/71
    """
    namespace, _, local = tag.rpartition("}")
    namespace = namespace.removeprefix("{")
    if local == "OAI-PMH":
        return ResponseRoot(namespace, "2.0")
    old = _NAMESPACE.fullmatch(namespace)
    return ResponseRoot(namespace, old[1] or "1.0", local) if old and local in VERBS else None


def item_of(root: ResponseRoot, verb: str) -> str:
    """The local name of the elements in a list."""
    if verb == "ListIdentifiers":
        return "identifier" if root.is_old else "header"
    return "record"


def as_in_2_0(element: etree._Element, root: ResponseRoot) -> etree._Element | None:
    """An identifier as a header without datestamp; a record unchanged. None: the record is not in this format."""
    if element.tag == root.name("identifier"):
        made = etree.Element(root.name("header"))
        made.set("status", element.get("status", ""))
        etree.SubElement(made, element.tag).text = text_of(element)
        return made
    header = element.find(root.name("header"))
    is_deleted = says_deleted(element) or (header is not None and says_deleted(header))
    is_there = header is None or is_deleted or element.find(root.name("metadata")) is not None
    return element if is_there else None
