"""Normalising adds elements with standard values to a document, beside the texts that say the same in other words.

For each node that a mapping's XPath finds, each of its new elements whose regular expression matches the node's text is
added beside the node, once for each of its values, unless the same element with the same text is there already. This is
repeated until there is nothing left to add: normalising twice gives the same as normalising once, also if a mapping
finds elements that others have added.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lxml import etree

from metaharvest.model.values import frozen
from metaharvest.text import one_line
from metaharvest.transform.expressions import Namespaces, TimeLeft, TransformTooCostly, evaluated, matches, text_of
from metaharvest.transform.files import RuleFile

_MOST_ADDED = 10_000
"""Elements that may be added to one document."""

_NAME = re.compile(r"(?:([^\W\d][\w.-]*):)?([^\W\d][\w.-]*)")


@frozen
class NewElement:
    """A new element: it has this name, once for each value, if the text matches `regexp`, or always if that is None.

    `name` is in Clark notation, `prefix` is the prefix for its namespace.
    """

    name: str
    prefix: str
    regexp: str | None
    ignore_case: bool
    values: tuple[str, ...]


@frozen
class Mapping:
    """The new elements for the nodes that an XPath finds."""

    xpath: str
    elements: tuple[NewElement, ...]


@frozen
class Normalization:
    """The mappings of one file."""

    file: str
    namespaces: Namespaces
    mappings: tuple[Mapping, ...]

    def add_to(self, root: etree._Element, time_left: TimeLeft) -> int:
        """Add the new elements to the tree of this root element; return their number.

        Raises TransformTooCostly, also for more than 10,000, and NotEvaluated.
        """
        added = before = 0
        while True:
            # Read again in each pass: an element's text changes after something was added inside it.
            there = _AddedBefore(self.mappings)
            for mapping in self.mappings:
                nodes = evaluated(mapping.xpath, self.namespaces, root)
                for node in nodes if isinstance(nodes, list) else ():
                    added += self._add_beside(node, mapping, there, time_left)
                    if added > _MOST_ADDED:
                        raise TransformTooCostly
            if added == before:
                return added
            before = added

    def _add_beside(self, node: Any, mapping: Mapping, there: _AddedBefore, time_left: TimeLeft) -> int:
        place = _element_of(node)
        parent = None if place is None else place.getparent()
        if place is None or parent is None:
            return 0
        in_parent, text, added = there.within(parent), text_of(node), 0
        for new in mapping.elements:
            if new.regexp is not None and not matches(new.regexp, new.ignore_case, text, time_left):
                continue
            for value in new.values:
                if (new.name, value) not in in_parent:
                    in_parent.add((new.name, value))
                    place = _added_after(place, new, value)
                    added += 1
        return added


class _AddedBefore:
    """Elements and texts that are there already, of the kinds that may be added, by their parent.

    No other text is kept: in a deep document, all texts together grow with the square of its size.
    """

    def __init__(self, mappings: Sequence[Mapping]) -> None:
        self._values: defaultdict[str, set[str]] = defaultdict(set)
        for mapping in mappings:
            for new in mapping.elements:
                self._values[new.name].update(new.values)
        self._found: dict[etree._Element, set[tuple[str, str]]] = {}

    def within(self, parent: etree._Element) -> set[tuple[str, str]]:
        """The names and texts of such children; callers may add to the set."""
        if parent not in self._found:
            children = ((str(child.tag), child) for child in parent.iterchildren("*") if child.tag in self._values)
            texts = ((name, text_of(child)) for name, child in children)
            self._found[parent] = {(name, text) for name, text in texts if text in self._values[name]}
        return self._found[parent]


def _element_of(node: Any) -> etree._Element | None:
    """The element beside which another is added: the node itself, or the owner of the attribute or the text."""
    if isinstance(node, etree._Element):
        return node
    element = node.getparent() if hasattr(node, "getparent") else None
    if element is not None and node.is_tail:  # lxml's parent of a text behind a child, or a comment, is that
        element = element.getparent()
    return element if isinstance(element, etree._Element) else None


def _added_after(place: etree._Element, new: NewElement, value: str) -> etree._Element:
    """Add the element after this one, with the same white space between them."""
    namespace = etree.QName(new.name).namespace
    parent = place.getparent()
    assert parent is not None
    if namespace or None not in parent.nsmap:
        element = etree.Element(new.name, nsmap={new.prefix: namespace} if namespace else None)
    else:  # lxml does not undeclare a default namespace, and keeps parsed declarations
        element = etree.fromstring(f'<{new.name} xmlns=""/>')
    element.text = value
    element.tail = place.tail
    before = place.getprevious()
    space = parent.text if before is None else before.tail
    place.tail = space if space is None or not space.strip() else None
    place.addnext(element)
    return element


def read_normalization(path: Path) -> Normalization:
    """The mappings of this file. Raises TransformError with a finding for each mistake in it."""
    file = RuleFile(path, "normalize")
    file.attributes(file.root)
    file.only(file.root, "selectionNamespaces", "mapping")
    mappings: list[Mapping] = []
    for element in file.elements(file.root, "mapping"):
        file.attributes(element, "xpath")
        file.only(element, "newElement")
        xpath, new = file.path(element), [_new_element(file, each) for each in file.elements(element, "newElement")]
        if not new:
            file.wrong(element, "the mapping has no newElement", 'Add one, such as <newElement name="dc:subject">.')
        mappings.append(Mapping(xpath, tuple(new)))
    if not mappings:
        file.wrong(file.root, "there is no mapping in it", "Add a mapping, or take the file from the site.")
    file.require_right()
    return Normalization(file.name, file.frozen_namespaces(), tuple(mappings))


def _new_element(file: RuleFile, element: etree._Element) -> NewElement:
    file.attributes(element, "name", "regexp", "ignoreCase")
    file.only(element, "newValue")
    values = []
    for each in file.elements(element, "newValue"):
        file.attributes(each)
        file.only(each)
        if text := (each.text or "").strip():
            values.append(text)
        else:
            file.wrong(each, "the newValue is empty", "Write the text of the new element in it.")
    if not file.elements(element, "newValue"):
        file.wrong(element, "the newElement has no newValue", "Add one with the text of the new element.")
    name, prefix = _name(file, element)
    return NewElement(name, prefix, file.pattern(element), file.truth(element, "ignoreCase"), tuple(values))


def _name(file: RuleFile, element: etree._Element) -> tuple[str, str]:
    """The name of a new element in Clark notation, and its prefix."""
    written = element.get("name", "").strip()
    match = _NAME.fullmatch(written)
    if match is None or not _is_name(match[2]):
        what = f"'{one_line(written, 80)}' is no name of an element" if written else "the newElement has no name"
        file.wrong(element, what, 'Write name="dc:subject", with a prefix of selectionNamespaces.')
        return "x", ""
    prefix, local = match[1] or "", match[2]
    if not prefix:
        return local, ""
    if prefix not in file.namespaces:
        what = f"the prefix {prefix} of {one_line(written, 80)} is not declared"
        file.wrong(element, what, f"Add xmlns:{prefix}='…' to selectionNamespaces.")
        return local, ""
    return f"{{{file.namespaces[prefix]}}}{local}", prefix


def _is_name(local: str) -> bool:
    """True if this is a valid element name."""
    try:
        etree.QName(None, local)
    except ValueError:
        return False
    return True
