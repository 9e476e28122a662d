"""Applies the rules of EML that a schema cannot express: ids, references, annotations, custom units.

They are the validation rules of the EML specification, applied in all versions as EML's own validator does. Content of
any kind (in `metadata`, in `inline`, and after `describes` in EML 2.0) need not be EML, even if it uses EML's names: in
such free content, references, annotations and units that break a rule are warnings.
"""

from __future__ import annotations

import difflib
from typing import Any, cast

from lxml import etree

from metaharvest.model import MAX_FINDINGS, Level
from metaharvest.text import one_line
from metaharvest.validation.places import ElementFinding, shown_name, xpath

_NAMED = ("references", "annotation", "describes", "customUnit", "{*}unit")
_MAX_NAMES_COMPARED = 2000
_UNSHOWN = {
    level: ElementFinding("findings.more", "There is more of the same kind.", "", None, level) for level in Level
}
_MAX_FOUND = 10_000
"""Number of findings after which checking stops."""

_ids = etree.XPath("descendant-or-self::*/@id")
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
        self._unique_ids(_with_ids(root))
        custom_units, units = [], []
        for element in root.iter(*_NAMED):
            if len(self.found) >= _MAX_FOUND:
                return
            if element.tag == "references":
                self._references(element)
            elif element.tag == "annotation":
                self._annotation(element)
            elif element.tag == "describes":
                self._describes(element)
            elif element.tag == "customUnit":
                custom_units.append(element)
            else:
                units.append(element)
        if custom_units:
            self._custom_units(custom_units, units)

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
                self._add("eml.id-duplicate", message, remedy, element)

    def _references(self, element: etree._Element) -> None:
        """Rules 3, 4 and 7, for a `references` element."""
        named = _text(element)
        looks_foreign = not named.strip() or next(element.iterchildren("*"), None) is not None
        if looks_foreign and _is_in_free_content(element):
            return
        self._names_an_id(element, named, "references names")
        parent = element.getparent()
        if parent is not None and parent.get("id") is not None:
            message = (
                f"{shown_name(parent)} has both an id ('{_shown(parent.get('id'))}') and references; "
                "what is defined elsewhere has no id of its own."
            )
            remedy = "Remove the id, or replace references by the content itself."
            self._add("eml.id-with-references", message, remedy, parent, _level(element))

    def _annotation(self, element: etree._Element) -> None:
        """Rules 3, 5 and 7, for an `annotation`."""
        parent = element.getparent()
        if parent is None:
            return
        if element.get("references") is not None:
            self._names_an_id(element, element.get("references"), "annotation references")
        elif parent.get("id") is None and not _is_described(parent):
            message = f"{shown_name(parent)} has an annotation and no id, so nothing says what is annotated."
            remedy = 'Give it an id, such as id="annotated-1".'
            if _is_of_additional_metadata(element) or _is_of_additional_metadata(parent):
                remedy = "Name the id of what is annotated in a describes of the additionalMetadata."
            self._add("eml.annotation-without-id", message, remedy, parent, _level(parent))

    def _describes(self, element: etree._Element) -> None:
        """Rule 3, for the `describes` of an additionalMetadata."""
        if _is_of_additional_metadata(element) and _text(element).strip() not in self._targets:
            self._unresolved(element, _text(element), "describes names")

    def _names_an_id(self, element: etree._Element, named: str | None, what: str) -> None:
        """Rule 3: the id exists. Rule 7: both elements have the same system, or none."""
        target = self._targets.get((named or "").strip())
        if target is None:
            self._unresolved(element, named, what)
        elif element.get("system") != target.get("system"):
            systems = f"{_stated(element.get('system'))}, and what it names has {_stated(target.get('system'))}"
            remedy = "Write the same system in both, or in neither."
            self._add("eml.system-differs", f"{shown_name(element)} has {systems}.", remedy, element, Level.WARNING)

    def _unresolved(self, element: etree._Element, named: str | None, what: str) -> None:
        message = f"{what} the id '{_shown(named)}', and nothing in the document has that id."
        similar = self._similar("id", named, self._targets)
        remedy = similar or "Correct the id, or give it to the element that is meant."
        self._add("eml.reference-unresolved", message, remedy, element, _level(element))

    def _custom_units(self, custom_units: list[etree._Element], units: list[etree._Element]) -> None:
        """Rule 6: each customUnit is defined as a `unit` with that id in a `unitList`, in any namespace."""
        wanted = {_text(element).strip() for element in custom_units}
        if wanted <= {name for unit in units if (name := _id(unit)) in wanted and _in_unit_list(unit)}:
            return
        defined = {_id(unit): unit for unit in units if _in_unit_list(unit)}
        for element in custom_units:
            if len(self.found) >= _MAX_FOUND:
                return
            value = _text(element).strip()
            if value in defined:
                continue
            message = f"The custom unit '{_shown(value)}' is not defined in the document."
            definition = f'<unit id="{_shown(value)}" …> in a unitList'
            remedy = f"Define it in additionalMetadata, as {definition}, or use a standardUnit."
            remedy = self._similar("unit", value, defined) or remedy
            self._add("eml.custom-unit-undefined", message, remedy, element, _level(element))

    def _similar(self, what: str, named: str | None, known: dict[str, etree._Element]) -> str:
        value = (named or "").strip()
        if not value or len(value) > 200 or len(known) > _MAX_NAMES_COMPARED or not self._is_shown:
            return ""
        close = difflib.get_close_matches(value, known, 1, 0.6)
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


def _level(element: etree._Element) -> Level:
    return Level.WARNING if _is_in_free_content(element) else Level.ERROR


def _stated(system: str | None) -> str:
    return "no system" if system is None else f"the system '{_shown(system)}'"


def _shown(value: str | None) -> str:
    return one_line(value or "", 100)


def _in_unit_list(unit: etree._Element) -> bool:
    return next(unit.iterancestors("{*}unitList"), None) is not None


def _id(element: etree._Element) -> str:
    return (element.get("id") or "").strip()


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


def _is_in_free_content(element: etree._Element) -> bool:
    """True for an element within free content, which need not be EML."""
    return any(
        ancestor.tag == "inline" or _is_of_additional_metadata(ancestor) for ancestor in element.iterancestors("*")
    )
