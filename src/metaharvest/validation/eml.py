"""Applies the rules of EML that a schema cannot express: ids, references, annotations, custom units.

They are the validation rules of the EML specification, applied in all versions as EML's own validator does. Content of
any kind (in `metadata`, in `inline`, and after `describes` in EML 2.0) need not be EML, even if it uses EML's names: in
such free content, references, annotations and units that break a rule are warnings.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, cast

from lxml import etree

from metaharvest.model import MAX_FINDINGS, Level
from metaharvest.text import one_line
from metaharvest.validation.places import ElementFinding, shown_name, xpath

_NAMED = ("references", "annotation", "describes", "customUnit")
_MAX_NAME = 100
"""Characters of a name for which similar ones are looked for."""

_MAX_COMPARED = 2_000_000
"""Pairs of characters that all comparisons of one document may have: a suggestion is not worth more than a second."""

_UNSHOWN = {
    level: ElementFinding("findings.more", "There is more of the same kind.", "", None, level) for level in Level
}
_MAX_FOUND = 10_000
"""Number of findings after which checking stops."""

_ids = etree.XPath("//*/@id")
_text_of = etree.XPath("string()")


def additional_metadata_findings(root: etree._Element) -> list[ElementFinding]:
    """Checks what the corrected schemas of EML 2.0.0 and 2.0.1 do not: `describes` first, then exactly one element."""
    found: list[ElementFinding] = []
    for holder in root.iterchildren("additionalMetadata"):
        last = next(holder.iterchildren("*", reversed=True), None)
        for child in holder.iterchildren("*"):
            if child is last or len(found) >= _MAX_FOUND:
                break
            if child.tag != "describes":
                message = (
                    f"additionalMetadata has an element after {shown_name(child)}; "
                    "it takes any number of describes and then exactly one other element."
                )
                remedy = "Put each further element into an additionalMetadata of its own, and describes first."
                found.append(ElementFinding("schema.unexpected-element", message, remedy, child))
            elif next(child.iterchildren("*"), None) is not None:
                message, remedy = "describes may hold nothing but text.", "Write just the id of what is described."
                found.append(ElementFinding("schema.unexpected-element", message, remedy, child))
    return found


class EmlRules:
    """The rules applied to one schema-valid document; `found` has the findings.

    Suggestions are looked up only for findings that will be shown.
    """

    def __init__(self, root: etree._Element) -> None:
        self.found: list[ElementFinding] = []
        self._counts = dict.fromkeys(Level, 0)
        self._root = root
        self._targets: dict[str, etree._Element] = {(root.get("packageId") or "").strip(): root}
        self._systems: dict[etree._Element, str | None] = {}
        self._left_to_compare = _MAX_COMPARED
        self._unique_ids(_with_ids(root))
        custom_units: list[tuple[etree._Element, Level]] = []
        for element, free in _with_free_content(root):
            if len(self.found) >= _MAX_FOUND:
                return
            level = Level.ERROR if free is None else Level.WARNING
            if element.tag == "references":
                self._references(element, level)
            elif element.tag == "annotation":
                self._annotation(element, free)
            elif element.tag == "describes":  # rule 3
                if _is_of_additional_metadata(element) and _text(element).strip() not in self._targets:
                    self._unresolved(element, _text(element), "describes names", level)
            else:
                custom_units.append((element, level))
        if custom_units:
            self._custom_units(custom_units)

    def _unique_ids(self, identified: list[etree._Element]) -> None:
        """Rule 2: each id occurs once, and none is the packageId."""
        seen = {self._root.get("packageId"): self._root}
        for element in identified:
            if len(self.found) >= _MAX_FOUND:
                return
            value = element.get("id") or ""
            self._targets.setdefault(value.strip(), element)
            first = seen.setdefault(value, element)
            if first is self._root:
                message = f"The id '{_shown(value)}' is also the packageId of the document."
                remedy = "Give this element another id, and change the references to it."
                self._add("eml.id-duplicate", message, remedy, element)
            elif first is not element:
                where = f"; first at {xpath(first)}" if self._is_shown else ""
                message = f"The id '{_shown(value)}' occurs more than once{where}."
                remedy = "Give each element an id of its own, and check which of them the references mean."
                if not value.strip():
                    remedy = "Remove empty ids, or give each element an id of its own."
                self._add("eml.id-duplicate", message, remedy, element)

    def _references(self, element: etree._Element, level: Level) -> None:
        """Rules 3, 4 and 7, for a `references` element."""
        named = _text(element)
        looks_foreign = not named.strip() or next(element.iterchildren("*"), None) is not None
        if looks_foreign and level is Level.WARNING:
            return
        self._names_an_id(element, named, "references names", level)
        parent = element.getparent()
        if parent is not None and "id" in parent.attrib:
            # A long id is cut: very many references may stand beside each other.
            shown = _shown(parent.get("id")) if self._counts[level] < MAX_FINDINGS else ""
            message = (
                f"{shown_name(parent)} has both an id ('{shown}') and references; "
                "what is defined elsewhere has no id of its own."
            )
            remedy = "Remove the id, or replace references by the content itself."
            self._add("eml.id-with-references", message, remedy, parent, level)

    def _annotation(self, element: etree._Element, free: etree._Element | None) -> None:
        """Rules 3, 5 and 7, for an `annotation`; `free`: the free content that it is in."""
        parent = element.getparent()
        if parent is None:
            return
        level = Level.ERROR if free is None else Level.WARNING
        if element.get("references") is not None:
            self._names_an_id(element, element.get("references"), "annotation references", level)
        elif "id" not in parent.attrib and not _is_described(parent):
            message = f"{shown_name(parent)} has an annotation and no id, so nothing says what is annotated."
            remedy = 'Give it an id, such as id="annotated-1".'
            if _is_of_additional_metadata(element) or _is_of_additional_metadata(parent):
                remedy = "Name the id of what is annotated in a describes of the additionalMetadata."
            self._add("eml.annotation-without-id", message, remedy, parent, Level.ERROR if free is parent else level)

    def _names_an_id(self, element: etree._Element, named: str | None, what: str, level: Level) -> None:
        """Rule 3: the id exists. Rule 7: both elements have the same system, or none."""
        target = self._targets.get((named or "").strip())
        if target is None:
            self._unresolved(element, named, what, level)
            return
        if target not in self._systems:
            self._systems[target] = target.get("system")
        if element.get("system") != self._systems[target]:
            systems = f"{_stated(element.get('system'))}, and what it names has {_stated(self._systems[target])}"
            remedy = "Write the same system in both, or in neither."
            self._add("eml.system-differs", f"{shown_name(element)} has {systems}.", remedy, element, Level.WARNING)

    def _unresolved(self, element: etree._Element, named: str | None, what: str, level: Level) -> None:
        if not (named or "").strip():
            remedy = "Write the id of the element that is meant, or remove what is empty."
            self._add("eml.reference-unresolved", f"{what} no id: it is empty.", remedy, element, level)
            return
        message = f"{what} the id '{_shown(named)}', and nothing in the document has that id."
        similar = self._similar("id", named, self._targets)
        remedy = similar or "Correct the id, or give it to the element that is meant."
        self._add("eml.reference-unresolved", message, remedy, element, level)

    def _custom_units(self, custom_units: list[tuple[etree._Element, Level]]) -> None:
        """Rule 6: each customUnit is defined as a `unit` with that id in a `unitList`, in any namespace."""
        units = list(_with_outermost(self._root, "unitList", "{*}unitList", "{*}unit"))
        defined = {(unit.get("id") or "").strip(): unit for unit, unit_list in units if unit_list is not None}
        without_id = {unit.get("name") for unit, _ in units if unit.get("id") is None}
        for element, level in custom_units:
            if len(self.found) >= _MAX_FOUND:
                return
            value = _text(element).strip()
            if value in defined:
                continue
            message = f"The custom unit '{_shown(value)}' is not defined in the document."
            definition = f'<unit id="{_shown(value)}" …> in a unitList'
            remedy = f"Define it in additionalMetadata, as {definition}, or use a standardUnit."
            remedy = self._similar("unit", value, defined) or remedy
            if value in without_id:
                remedy = f'Its definition has no id: write <unit id="{_shown(value)}" name="{_shown(value)}" …>.'
            self._add("eml.custom-unit-undefined", message, remedy, element, level)

    def _similar(self, what: str, named: str | None, known: dict[str, etree._Element]) -> str:
        """A suggestion, if one is cheap enough to find: after _MAX_COMPARED pairs a document gets none."""
        value = (named or "").strip()
        if not value or len(value) > _MAX_NAME or not self._is_shown:
            return ""
        self._left_to_compare -= len(value) * sum(len(name) for name in known if len(name) <= _MAX_NAME)
        if self._left_to_compare < 0:
            return ""
        close = difflib.get_close_matches(value, [name for name in known if len(name) <= _MAX_NAME], 1, 0.6)
        return f"Did you mean the {what} '{_shown(close[0])}'?" if close else ""

    @property
    def _is_shown(self) -> bool:
        return len(self.found) < MAX_FINDINGS

    def _add(self, rule: str, message: str, remedy: str, element: etree._Element, level: Level = Level.ERROR) -> None:
        """Adds a finding; after as many of a level as can be shown, only their number matters."""
        self._counts[level] += 1
        shown = self._counts[level] <= MAX_FINDINGS
        self.found.append(ElementFinding(rule, message, remedy, element, level) if shown else _UNSHOWN[level])


def _with_ids(root: etree._Element) -> list[etree._Element]:
    try:
        # Several times as fast as an XPath for the elements.
        return [attribute.getparent() for attribute in cast(list[Any], _ids(root))]
    except etree.XPathError:  # more than ten million elements
        return [element for element in root.iter("*") if element.get("id") is not None]


def _text(element: etree._Element) -> str:
    """All of the element's text, without comments."""
    return (element.text or "") if not len(element) else str(_text_of(element))


def _stated(system: str | None) -> str:
    return "no system" if system is None else f"the system '{_shown(system)}'"


def _shown(value: str | None) -> str:
    return one_line(value or "", 100)


def _is_described(annotated: etree._Element) -> bool:
    """True for an additionalMetadata with `describes`, and for its content (the exception of rule 5)."""
    holder = annotated if annotated.tag == "additionalMetadata" else annotated.getparent()
    if holder is None or holder.tag != "additionalMetadata" or not _is_root(holder.getparent()):
        return False
    return holder.find("describes") is not None


def _is_of_additional_metadata(element: etree._Element) -> bool:
    parent = element.getparent()
    return parent is not None and parent.tag == "additionalMetadata" and _is_root(parent.getparent())


def _is_root(element: etree._Element | None) -> bool:
    return element is not None and element.getparent() is None


def _with_free_content(root: etree._Element) -> Iterator[tuple[etree._Element, etree._Element | None]]:
    """The elements of the rules, each with the outermost free content that it is in; None: in none.

    In one pass, and not by the ancestors of each: a hostile document has very many, nested very deeply.
    """
    for child in root.iterchildren("*"):
        if child.tag != "additionalMetadata":
            yield from _with_outermost(child, "inline", "inline", *_NAMED)
            continue
        for content in child.iterchildren("*"):
            for element in content.iter(*_NAMED):
                yield element, content if element is not content else None


def _with_outermost(
    root: etree._Element, holder_name: str, *tags: str
) -> Iterator[tuple[etree._Element, etree._Element | None]]:
    """The elements with these `tags` but the holders, each with the outermost holder that it is in."""
    holder: etree._Element | None = None
    inside = 0
    for element in root.iter(*tags):
        is_holder = str(element.tag).rpartition("}")[2] == holder_name
        if inside:
            inside -= 1
        elif is_holder:
            holder, inside = element, sum(1 for _ in element.iterdescendants(*tags))
        else:
            holder = None
        if not is_holder:
            yield element, holder
