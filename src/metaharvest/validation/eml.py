"""What makes a document valid EML beyond the schema: ids, references, annotations, custom units.

The rules are those that the EML specification lists under its validation rules, as its own validator applies them, in
all versions. Content that may be of any kind (in `metadata`, in `inline`, and what follows `describes` in EML 2.0) need
not be EML even where it uses EML's names: there references, annotations and units that do not fit are warnings.
"""

from __future__ import annotations

import difflib
from typing import Any, cast

from lxml import etree

from metaharvest.model import MAX_FINDINGS, Level
from metaharvest.text import one_line
from metaharvest.validation.places import Problem, xpath

_NAMED = ("references", "annotation", "describes", "customUnit", "{*}unit")
_MAX_NAMES_COMPARED = 2000
_UNSHOWN = {level: Problem("findings.more", "There is more of the same kind.", "", None, level) for level in Level}
_MAX_FOUND = 10_000
"""Problems after which a document is looked through no further."""

_ids = etree.XPath("//@id")
_text_of = etree.XPath("string()")


def problems(root: etree._Element) -> list[Problem]:
    """Everything that the rules have against a schema-valid EML document."""
    return _Rules(root).found


def additional_metadata(root: etree._Element) -> list[Problem]:
    """What the mended schemas of EML 2.0.0 and 2.0.1 no longer say: `describes` first, then exactly one element."""
    found: list[Problem] = []
    for holder in root.iterchildren("additionalMetadata"):
        last = next(holder.iterchildren("*", reversed=True), None)
        for child in holder.iterchildren("*"):
            if child is last or len(found) >= _MAX_FOUND:
                break
            if child.tag != "describes":
                found.append(
                    Problem(
                        "schema.unexpected-element",
                        f"additionalMetadata has an element after {one_line(str(etree.QName(child).localname), 100)}; "
                        "it takes any number of describes and then exactly one other element.",
                        "Put each further element into an additionalMetadata of its own, and describes first.",
                        child,
                    )
                )
            elif next(child.iterchildren("*"), None) is not None:
                found.append(
                    Problem(
                        "schema.unexpected-element",
                        "describes may hold nothing but text.",
                        "Write just the id of what is described.",
                        child,
                    )
                )
    return found


class _Rules:
    """The rules applied to one document; hints are looked up only for those findings that will be shown."""

    def __init__(self, root: etree._Element) -> None:
        self.found: list[Problem] = []
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
        """Rule 2: every id once, and none that is the packageId."""
        seen = {self._root.get("packageId"): self._root}
        for element in identified:
            if len(self.found) >= _MAX_FOUND:
                return
            value = element.get("id") or ""
            self._targets.setdefault(value.strip(), element)
            first = seen.setdefault(value, element)
            if first is self._root:
                self._add(
                    "eml.id-duplicate",
                    f"The id '{_shown(value)}' is also the packageId of the document.",
                    "Give this element another id, and change the references to it.",
                    element,
                )
            elif first is not element:
                where = f"; first at {xpath(first)}" if self._is_shown else ""
                self._add(
                    "eml.id-duplicate",
                    f"The id '{_shown(value)}' occurs more than once{where}.",
                    "Give each element an id of its own, and check which of them the references mean.",
                    element,
                )

    def _references(self, element: etree._Element) -> None:
        """Rules 3, 4 and 7, for a `references` element."""
        named = _text(element)
        looks_foreign = not named.strip() or next(element.iterchildren("*"), None) is not None
        if looks_foreign and _is_free(element):
            return
        self._names_an_id(element, named, "references names")
        parent = element.getparent()
        if parent is not None and parent.get("id") is not None:
            self._add(
                "eml.id-with-references",
                f"{_local(parent)} has both an id ('{_shown(parent.get('id'))}') and references; "
                "what is defined elsewhere has no id of its own.",
                "Remove the id, or replace references by the content itself.",
                parent,
                _level(element),
            )

    def _annotation(self, element: etree._Element) -> None:
        """Rules 3, 5 and 7, for an `annotation`."""
        parent = element.getparent()
        if parent is None:
            return
        if element.get("references") is not None:
            self._names_an_id(element, element.get("references"), "annotation references")
        elif parent.get("id") is None and not _is_described(parent):
            self._add(
                "eml.annotation-without-id",
                f"{_local(parent)} has an annotation and no id, so nothing says what is annotated.",
                "Name the id of what is annotated in a describes of the additionalMetadata."
                if _is_of_additional_metadata(element) or _is_of_additional_metadata(parent)
                else 'Give it an id, such as id="annotated-1".',
                parent,
                _level(parent),
            )

    def _describes(self, element: etree._Element) -> None:
        """Rule 3, for the `describes` of an additionalMetadata."""
        if _is_of_additional_metadata(element) and _text(element).strip() not in self._targets:
            self._unresolved(element, _text(element), "describes names")

    def _names_an_id(self, element: etree._Element, named: str | None, what: str) -> None:
        """Rule 3, and rule 7: the system of both is the same, or both have none."""
        target = self._targets.get((named or "").strip())
        if target is None:
            self._unresolved(element, named, what)
        elif element.get("system") != target.get("system"):
            self._add(
                "eml.system-differs",
                f"{_local(element)} has {_stated(element.get('system'))}, and what it names has "
                f"{_stated(target.get('system'))}.",
                "Write the same system in both, or in neither.",
                element,
                Level.WARNING,
            )

    def _unresolved(self, element: etree._Element, named: str | None, what: str) -> None:
        self._add(
            "eml.reference-unresolved",
            f"{what} the id '{_shown(named)}', and nothing in the document has that id.",
            self._similar("id", named, self._targets) or "Correct the id, or give it to the element that is meant.",
            element,
            _level(element),
        )

    def _custom_units(self, custom_units: list[etree._Element], units: list[etree._Element]) -> None:
        """Rule 6: each customUnit is defined, as a `unit` with that id in a `unitList`, in whatever namespace."""
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
            self._add(
                "eml.custom-unit-undefined",
                f"The custom unit '{_shown(value)}' is not defined in the document.",
                self._similar("unit", value, defined)
                or f'Define it in additionalMetadata, as <unit id="{_shown(value)}" …> in a unitList, '
                "or use a standardUnit.",
                element,
                _level(element),
            )

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
        """Beyond what can be shown of a level, its problems are only counted; hostile documents have millions."""
        self._counts[level] += 1
        shown = self._counts[level] <= MAX_FINDINGS
        self.found.append(Problem(rule, message, remedy, element, level) if shown else _UNSHOWN[level])


def _with_ids(root: etree._Element) -> list[etree._Element]:
    try:
        # Several times as quick as to ask for the elements.
        return [attribute.getparent() for attribute in cast(list[Any], _ids(root))]
    except etree.XPathError:  # beyond ten million elements
        return [element for element in root.iter("*") if element.get("id") is not None]


def _text(element: etree._Element) -> str:
    """All of the element's text, comments within it left out."""
    return (element.text or "") if not len(element) else str(_text_of(element))


def _level(element: etree._Element) -> Level:
    return Level.WARNING if _is_free(element) else Level.ERROR


def _local(element: etree._Element) -> str:
    return one_line(str(etree.QName(element).localname), 100)


def _stated(system: str | None) -> str:
    return "no system" if system is None else f"the system '{_shown(system)}'"


def _shown(value: str | None) -> str:
    return one_line(value or "", 100)


def _in_unit_list(unit: etree._Element) -> bool:
    return next(unit.iterancestors("{*}unitList"), None) is not None


def _id(element: etree._Element) -> str:
    return (element.get("id") or "").strip()


def _is_described(annotated: etree._Element) -> bool:
    """True for the content of an additionalMetadata that says what it describes (rule 5's exception)."""
    holder = annotated if annotated.tag == "additionalMetadata" else annotated.getparent()
    if holder is None or holder.tag != "additionalMetadata" or not _is_root(holder.getparent()):
        return False
    return holder.find("describes") is not None


def _is_of_additional_metadata(element: etree._Element) -> bool:
    parent = element.getparent()
    return parent is not None and parent.tag == "additionalMetadata" and _is_root(parent.getparent())


def _is_root(element: etree._Element | None) -> bool:
    return element is not None and element.getparent() is None


def _is_free(element: etree._Element) -> bool:
    """True within content that may be of any kind, and need not be EML."""
    return any(
        ancestor.tag == "inline" or _is_of_additional_metadata(ancestor) for ancestor in element.iterancestors("*")
    )
