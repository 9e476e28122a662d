"""Explains in plain words why a document is not schema-valid.

libxml2 has already decided that it is not (`against_schema`). Its messages say little, so xmlschema is given the same
tree and the same schema to explain the errors. libxml2's own messages are used if the document is large, and for places
about which xmlschema says nothing.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from lxml import etree

from metaharvest.model import MAX_FINDINGS
from metaharvest.model.values import frozen
from metaharvest.rules import RULES
from metaharvest.text import joined, one_line, some_of
from metaharvest.validation import advice, html_text, lenient
from metaharvest.validation.formats import is_taken_for_protocol
from metaharvest.validation.libxml2_errors import schema_error_in_words
from metaharvest.validation.places import ElementFinding, shown_name
from metaharvest.validation.schemas import VERSIONS, Described, EmlVersion, explaining, explaining_schema

logger = logging.getLogger(__name__)

MAX_EXPLAINED_BYTES = 1_000_000
"""A document larger than this is not given to xmlschema, which takes 0.3 to 0.5 s per MB."""

_has_wide_element = etree.XPath("boolean(//*[*[5000]])")
"""xmlschema's time for errors among the children of one element grows with the square of their number."""

_has_many_attributes = etree.XPath("boolean(//*[@*[50]])")
_MAX_ATTRIBUTE_ERRORS = 1000
"""For each error in an attribute, xmlschema writes down all attributes of its element: 12,000 errors in 12 elements
take 48 s."""

_MAX_DECLARATIONS = 10_000_000
"""Declarations of namespaces times tags: xmlschema lists all declarations in scope for each element."""

_XSD = "{http://www.w3.org/2001/XMLSchema}"
_NEEDED = frozenset({"dataset", "citation", "software", "protocol", "title", "creator", "contact"})
"""Elements that a document needs at least once; no remedy removes them."""

_XHTML = "http://www.w3.org/1999/xhtml"
_MAX_NAMES = 12
"""Names that one message lists."""

_MAX_TYPES = 50
"""Types that are followed from one type to those that it is derived from."""

_DECIMALS = frozenset({"decimal", "float", "double"})
_VAGUE = frozenset({"schema.bad-value", "schema.other"})
"""Rules that say less than any other rule about the same element."""

_MISSING = re.compile(r" lacks ([\w.-]+(?:,? [\w.-]+){0,20})\.$|: ([\w.-]+(?:,? [\w.-]+){0,20}) is missing\.$")
_ATTRIBUTE = re.compile(r"attribute (\S+?)=")
_ATTRIBUTE_VALUE = re.compile(r"^attribute [^\s=]++='.*?': ", re.DOTALL)
_BOUND = re.compile(r"value has to be (less|greater) (?:than )?or equal")
_NAMED = re.compile(r"['\"]([^'\"]+)['\"]")
_BY_NAME = r"*[name() = '\g<0>']"
"""Takes the place of a step with a prefix, so that the prefix need not be declared."""


def explained_findings(
    root: etree._Element, log: Sequence[Any], content: bytes, described: Described
) -> list[ElementFinding]:
    """The errors of a document that is not schema-valid. `log`: libxml2's errors; `content`: the source.

    After MAX_FINDINGS findings the rest is only counted.
    """
    explains = isinstance(described, EmlVersion) or described.explains
    found = [] if not explains or _is_costly(root, log, content) else _explained_by_xmlschema(root, described)
    places = {finding.element for finding in found}
    parents = {element.getparent() for element in places if element is not None}
    tree = root.getroottree()
    for number, entry in enumerate(log):
        if len(found) >= MAX_FINDINGS:
            return found + [UNSHOWN] * (len(log) - max(number, MAX_FINDINGS))
        element = element_at(tree, entry.path)
        is_content = entry.type_name == "SCHEMAV_ELEMENT_CONTENT"
        if element in places or (is_content and {element, element.getparent()} & (places | parents)):
            continue
        found.append(_from_libxml2(entry, element))
    return _with_text_as_one(_with_html_as_one(found)) if isinstance(described, EmlVersion) else found


def _with_text_as_one(found: list[ElementFinding]) -> list[ElementFinding]:
    """The findings, where a text without its tags and the missing element beside it become one."""
    texts = {each.element: each for each in found if each.rule == "schema.unexpected-text" and each.element is not None}
    explained: dict[etree._Element, ElementFinding] = {}
    for each in found:
        element = each.element
        if each.rule != "schema.missing-element" or element is None:
            continue
        parent = element if element in texts else element.getparent()
        missing = _MISSING.search(each.message)
        if parent is None or parent not in texts or parent in explained or missing is None:
            continue
        names = re.split(", | or ", missing[1] or missing[2])
        name = "para" if "para" in names else names[0]
        text = texts[parent]
        message = f"{text.message.removesuffix('.')}; {missing[1] or missing[2]} is missing."
        remedy = f"Put the text into the element that is missing: <{name}>…</{name}>."
        if name != "para" and len(names) > 1:
            remedy = "Put the text into the one of these elements that it belongs to."
        explained[parent] = replace(text, message=message, remedy=remedy)
        texts[element] = each
    folded = {each for each in texts.values() if each.rule == "schema.missing-element"}
    return [
        explained.get(each.element, each)
        if each.rule == "schema.unexpected-text" and each.element is not None
        else each
        for each in found
        if each not in folded
    ]


def _with_html_as_one(found: list[ElementFinding]) -> list[ElementFinding]:
    """The findings, with all findings about HTML in a text as one; of the text itself, only missing content counts."""
    holders: dict[etree._Element, etree._Element] = {}
    for finding in found:
        element = finding.element
        if element is not None and _is_html(element) and _is_text(around := _holder(element)):
            holders.setdefault(around, element)
    explained: dict[etree._Element, ElementFinding] = {}
    kept: list[ElementFinding] = []
    for finding in found:
        holder = None if finding.element is None else _within(finding.element, holders)
        is_missing = finding.rule in ("schema.missing-element", "schema.unexpected-text")
        if holder is None or (finding.element is holder and not is_missing):
            kept.append(finding)
        elif holder not in explained:
            explained[holder] = _html_finding(holder, holders[holder])
            kept.append(explained[holder])
    return kept


def _is_html(element: etree._Element) -> bool:
    name = etree.QName(element)
    return name.namespace in (None, _XHTML) and html_text.is_html(name.localname)


def _is_of_text(element: etree._Element) -> bool:
    return _is_html(element) or shown_name(element) in html_text.INNER


def _holder(element: etree._Element) -> etree._Element:
    """The EML element whose text contains this HTML."""
    parent = element.getparent()
    while parent is not None and _is_of_text(parent):
        element, parent = parent, parent.getparent()
    return element if parent is None else parent


def _is_text(holder: etree._Element) -> bool:
    """True if an element of this kind holds text, and this one has no other parts."""
    if shown_name(holder) in html_text.TEXTS:
        return True
    return all(map(_is_of_text, holder.iterchildren("*")))


def _within(element: etree._Element, holders: Mapping[etree._Element, object]) -> etree._Element | None:
    """The nearest holder around the element, or the element itself; None outside of all."""
    here: etree._Element | None = element
    while here is not None:
        if here in holders:
            return here
        here = here.getparent() if _is_of_text(here) else None
    return None


def _html_finding(holder: etree._Element, first: etree._Element) -> ElementFinding:
    names = [str(etree.QName(element).localname) for element in holder.iterdescendants("*") if _is_html(element)]
    version = VERSIONS.get(etree.QName(holder.getroottree().getroot()).namespace or "")
    takes_markdown = version is not None and version.number == "2.2.0"
    name = shown_name(holder)
    return ElementFinding(
        html_text.RULE,
        html_text.message(name, names, ()),
        html_text.remedy(name, names, (), takes_markdown=takes_markdown),
        first,
    )


def _is_costly(root: etree._Element, log: Sequence[Any], content: bytes) -> bool:
    """True if xmlschema would be slow for the errors of this document."""
    if len(content) > MAX_EXPLAINED_BYTES or content.count(b"xmlns") * content.count(b"<") > _MAX_DECLARATIONS:
        return True
    if _has_wide_element(root) or _has_many_attributes(root):
        return True
    return sum("attribute '" in entry.message for entry in log) > _MAX_ATTRIBUTE_ERRORS


def findings_without_places(log: Sequence[Any]) -> list[ElementFinding]:
    """libxml2's errors, without places, for documents with too many errors: finding the places takes too long."""
    return [_from_libxml2(entry, None) for entry in log[:MAX_FINDINGS]] + [UNSHOWN] * (len(log) - MAX_FINDINGS)


def folded(found: Sequence[ElementFinding]) -> list[ElementFinding]:
    """The findings about a record, with equal ones as one: a program repeats its mistakes.

    The first has the place and the number of the others.
    """
    numbers = Counter((each.rule, each.message) for each in found if each is not UNSHOWN)
    kept: list[ElementFinding] = []
    for finding in found:
        number = 1 if finding is UNSHOWN else numbers.pop((finding.rule, finding.message), 0)
        if number > 1:
            places = "1 more place" if number == 2 else f"{number - 1:,} more places"
            finding = replace(finding, message=f"{finding.message} The same is so at {places} of the record.")
        kept += [finding] if number else []
    return kept


UNSHOWN = ElementFinding("schema.other", "The document does not agree with the schema in another place.", "", None)
"""Stands for an error that is only counted."""


@frozen
class _Fault:
    """One error from xmlschema: the element, the reason, the value, and the schema component that refused it."""

    element: etree._Element
    reason: str
    value: str
    validator: Any

    @property
    def what(self) -> str:
        """`pubDate`, or `The attribute order of codeDefinition`."""
        attribute = _ATTRIBUTE.match(self.reason)
        return f"The attribute {attribute[1]} of {_name(self.element)}" if attribute else _name(self.element)

    @property
    def shown(self) -> str:
        """The offending value, short enough to show."""
        return one_line(self.value, 100)


_XMLSCHEMA_FAILURES = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)
"""The exceptions of xmlschema if it fails itself, for instance for an xsi:type that does not exist."""


def _explained_by_xmlschema(root: etree._Element, described: Described) -> list[ElementFinding]:
    import xmlschema

    found: list[ElementFinding] = []
    resource = xmlschema.XMLResource(root, allow="none")
    with explaining:
        errors = explaining_schema(described).iter_errors(resource, use_location_hints=False)
        try:
            found.extend(islice(filter(None, map(_finding_of, errors)), MAX_FINDINGS))
        except _XMLSCHEMA_FAILURES as error:
            logger.info("xmlschema could not explain all of a document, libxml2 is used: %s", one_line(str(error)))
        return _once(found)


def _once(found: list[ElementFinding]) -> list[ElementFinding]:
    """Each error once: if a value breaks its type, its pattern and its length, findings of vague rules are dropped."""
    plain = {finding.element for finding in found if finding.rule not in _VAGUE}
    once = dict.fromkeys(each for each in found if each.rule not in _VAGUE or each.element not in plain)
    return _with_wrapped_as_one(list(once))


def _finding_of(error: Any) -> ElementFinding | None:
    """The finding for one of xmlschema's errors; None if it is not an error of an element, or not by the standard."""
    import xmlschema
    from xmlschema.validators import XsdAttributeGroup, XsdEnumerationFacets

    if not isinstance(error.elem, etree._Element):
        return None
    if isinstance(error, xmlschema.XMLSchemaChildrenValidationError):
        return _children(error)
    fault = _Fault(error.elem, error.reason or "", str(error.obj), error.validator)
    if isinstance(error.validator, XsdAttributeGroup):
        return _attributes(fault)
    if isinstance(error.validator, XsdEnumerationFacets):
        return _enumeration(fault)
    if "character data" in fault.reason:
        return _text_not_allowed(fault.element)
    if "can't have child elements" in fault.reason:
        message = f"{_name(fault.element)} may hold nothing but text, and has elements in it."
        remedy = "Remove the tags within it, and keep the text."
        return ElementFinding("schema.unexpected-element", message, remedy, fault.element)
    return _value(fault)


def _children(error: Any) -> ElementFinding:
    """A child that is unknown, out of order or one too many, or that is missing."""
    parent: etree._Element = error.elem
    child: etree._Element | None = error.invalid_child
    expected = [_local(tag) for tag in error.expected_tags]
    if child is None:
        return _incomplete(parent, expected)
    name = _name(child)
    model = error.validator
    known = {_local(particle.name): particle.name for particle in model.iter_elements() if particle.name}
    order = list(known)
    if name in order and child.tag not in {particle.name for particle in model.iter_elements()}:
        return _in_another_namespace(child, etree.QName(known[name]).namespace)
    if name not in order:
        rule = "schema.unexpected-element"
        message = f"{name} is not known inside {_name(parent)} at this place."
        remedy = f"{_meant(name, order)} {_allowed(order, parent, model)}"
        wrappers = tuple(_wrappers(name, model))
        if _name(parent) == "additionalMetadata" and not remedy.startswith("Did you mean"):
            # EML 2.0 has no such element here: https://github.com/NCEAS/eml/issues/199
            wrappers = ("metadata",)
        return _Unknown(rule, message, remedy, child, wrappers=wrappers)
    siblings = reversed([_name(each) for each in child.itersiblings("*", preceding=True)])
    later = next((each for each in siblings if _must_precede(model, name, each)), None)
    if later is not None:
        return _too_late(child, later, _allowed(order, parent, model))
    is_repeated = next(child.itersiblings(str(child.tag), preceding=True), None) is not None
    # bounded: the elements that a schema knows inside of this one
    missing = [tag for tag in expected if tag not in order or order.index(tag) < order.index(name)]
    if missing and not is_repeated:
        names = set(missing)
        late = next((sibling for sibling in child.itersiblings("*") if _name(sibling) in names), None)
        if late is not None:
            return _too_late(late, name)
        message = f"Before {name}, {_name(parent)} lacks {_any_of(missing)}."
        return ElementFinding("schema.missing-element", message, f"Add {_any_of(missing)} before {name}.", child)
    before = next(child.itersiblings("*", preceding=True), None)
    another = "another one here" if is_repeated or before is None else f"it beside {_name(before)}"
    message = f"{name} is one too many: {_name(parent)} does not take {another}."
    remedy = f"Remove it, or move it to where it belongs. {_allowed(order, parent, model)}"
    return ElementFinding("schema.too-many-elements", message, remedy, child)


def _too_late(element: etree._Element, other: str, allowed: str = "") -> ElementFinding:
    """An element that stands after a sibling, and must come before it."""
    message = f"{_name(element)} stands after {other}, and must come before it."
    remedy = f"Move {_name(element)} before {other}. {allowed}".rstrip()
    return ElementFinding("schema.wrong-order", message, remedy, element)


@frozen
class _Unknown(ElementFinding):
    """A finding about an element that its parent does not allow; the parent allows some of its `wrappers`."""

    wrappers: tuple[str, ...] = ()


def _wrappers(name: str, model: Any) -> Iterator[str]:
    """The elements of this model that allow an element of this name."""
    for particle in model.iter_elements():
        content: Any = getattr(getattr(particle, "type", None), "content", None)
        if particle.name and hasattr(content, "iter_elements"):
            within = (each.name for each in content.iter_elements() if each.name)
            if name in map(_local, within):
                yield _local(particle.name)


def _with_wrapped_as_one(found: list[ElementFinding]) -> list[ElementFinding]:
    """The findings, where neighbouring elements without the element around them become one."""
    explained: list[ElementFinding] = []
    together: list[_Unknown] = []
    for each in found:
        if isinstance(each, _Unknown) and together and _belong_together(together[-1], each):
            shared = tuple(name for name in together[-1].wrappers if name in each.wrappers)
            together.append(replace(each, wrappers=shared))
            continue
        explained += _around(together)
        together = [each] if isinstance(each, _Unknown) else []
        explained += [] if together else [each]
    return [*explained, *_around(together)]


def _belong_together(one: _Unknown, following: _Unknown) -> bool:
    if one.element is None or following.element is None or not set(one.wrappers) & set(following.wrappers):
        return False
    return next(one.element.itersiblings("*"), None) is following.element


def _around(together: list[_Unknown]) -> list[ElementFinding]:
    """One finding that names the missing element around these; without one, the same findings."""
    if not together:
        return []
    first, wrappers = together[0], together[-1].wrappers[:3]
    if not wrappers:
        return [*together]
    around = " or ".join(f"<{name}>…</{name}>" for name in wrappers)
    if len(together) == 1:
        return [replace(first, remedy=f"Put it into {around}, whose tags seem to be missing. {_kept(first.remedy)}")]
    names = list(dict.fromkeys(_name(each.element) for each in together))
    parent = None if first.element is None else first.element.getparent()
    message = f"{joined(names)} {'are' if len(names) > 1 else 'is'} not known inside {_name(parent)} at this place."
    return [replace(first, message=message, remedy=f"Put them into {around}, whose tags seem to be missing.")]


def _kept(remedy: str) -> str:
    """The remedy's sentence about the parent, without the advice to remove or rename the element."""
    return remedy.partition("? " if remedy.startswith("Did you mean") else "spelling. ")[2]


def _in_another_namespace(child: etree._Element, right: str | None) -> ElementFinding:
    name, namespace = _name(child), one_line(etree.QName(child).namespace or "", 200)
    if right is not None:
        where = f"in the namespace {namespace}" if namespace else "in no namespace"
        remedy = f"Let its prefix be one that is declared for {right}."
        message = f"{name} is {where}; it should be in {right}."
        return ElementFinding("schema.unexpected-element", message, remedy, child)
    if is_taken_for_protocol(child):
        return _taken_for_protocol(child)
    remedy = (
        'Give the root element a prefix, <eml:eml xmlns:eml="…">, in place of xmlns="…"; '
        "what is inside it has no prefix and no namespace."
    )
    if child.prefix:
        remedy = f"Remove the prefix, in the end tag too: <{name}> in place of <{one_line(child.prefix, 100)}:{name}>."
    message = f"{name} is in the namespace {namespace}; it should be in none."
    return ElementFinding("schema.unexpected-element", message, remedy, child)


def _taken_for_protocol(element: etree._Element) -> ElementFinding:
    """An element without a prefix in metadata whose root does not undeclare the namespace of the answer around it."""
    root = element.getroottree().getroot()
    shown = f"{root.prefix}:{_name(root)}" if root.prefix else _name(root)
    message = f"{_name(element)} is taken for an element of OAI-PMH: it is in the namespace of the answer around it."
    remedy = f'Add xmlns="" to <{one_line(shown, 200)}>, the root of the metadata; what is inside it has no namespace.'
    return ElementFinding("schema.unexpected-element", message, remedy, element)


def _meant(name: str, order: list[str]) -> str:
    """The remedy for an unknown name; suggests a known name that is similar."""
    lower = {known.lower(): known for known in order}
    close = difflib.get_close_matches(name.lower(), lower, 1, 0.8)
    return f"Did you mean {lower[close[0]]}?" if close else "Remove it, or check its spelling."


def _incomplete(parent: etree._Element, expected: list[str]) -> ElementFinding:
    message = f"{_name(parent)} is not complete: an element is missing in it."
    remedy = "Add what is missing, or remove the whole element if it says nothing."
    if expected:
        otherwise = f", or remove {_name(parent)} if it is not needed" if _may_go(parent) else ""
        message = f"{_name(parent)} is not complete: {_any_of(expected)} is missing."
        remedy = f"Add {_any_of(expected)} at its end{otherwise}."
    return ElementFinding("schema.missing-element", message, remedy, parent)


def _may_go(element: etree._Element) -> bool:
    """True if a remedy may advise to remove this element: it is not the last one of a kind that each document needs."""
    parent = element.getparent()
    is_only = parent is not None and len(parent.findall(str(element.tag))) == 1
    return parent is not None and not (is_only and _name(element) in _NEEDED)


def _allowed(order: list[str], parent: etree._Element, model: Any) -> str:
    if not order:
        return f"{_name(parent)} takes no elements."
    return f"{_name(parent)} takes{_in_which_order(model)}: {some_of(order, _MAX_NAMES)}."


def _attributes(fault: _Fault) -> ElementFinding:
    named = _NAMED.search(fault.reason)
    attribute = _local(named[1]) if named else "an attribute"
    if fault.reason.startswith("missing"):
        message = f"{_name(fault.element)} lacks the attribute {attribute}."
        return ElementFinding("schema.missing-attribute", message, f'Add {attribute}="…" to it.', fault.element)
    message = f"{_name(fault.element)} may not have the attribute {attribute}."
    remedy = _meant(attribute, [_local(known) for known in fault.validator if known])
    return ElementFinding("schema.unexpected-attribute", message, remedy, fault.element)


def _enumeration(fault: _Fault) -> ElementFinding:
    message = f"{fault.what} is '{fault.shown}', which is not one of the allowed values."
    allowed = _allowed_values(fault.validator)
    similar = advice.similar_of(fault.value, allowed)
    meant = f"Did you mean {similar}? " if similar else ""
    other = " Write any other unit as customUnit." if _name(fault.element) == "standardUnit" else ""
    remedy = f"{meant}Allowed are: {some_of(allowed, _MAX_NAMES)}.{other}"
    return ElementFinding("schema.not-in-list", message, remedy, fault.element)


def _allowed_values(facets: Any) -> list[str]:
    """The values of an enumeration; if it is a member of a union, of all its members: xmlschema names the first."""
    unions = (getattr(each, "member_types", None) or () for each in facets.maps.types.values())
    members = next((members for members in unions if facets.parent in members), [facets.parent])
    return [str(value) for member in members for value in member.enumeration or ()]


def _text_not_allowed(element: etree._Element) -> ElementFinding:
    texts = [element.text, *(child.tail for child in element)]
    stray = next((one_line(text, 80) for text in texts if text and text.strip()), "")
    message = f"{_name(element)} may hold only elements, and has the text '{stray}' between them."
    remedy = "Remove the text, or put it into the element where it belongs."
    return ElementFinding("schema.unexpected-text", message, remedy, element)


def _value(fault: _Fault) -> ElementFinding | None:
    """A value of the wrong kind, such as an empty one, a wrong date or a number out of range; None for a URL that the
    standard accepts."""
    if fault.value.strip() and "anyURI" in _builtins(fault.validator) and lenient.is_url(fault.value):
        return None
    rule, message, remedy = _of_kind(fault)
    return ElementFinding(rule, f"{fault.what} {message}", remedy, fault.element)


def _of_kind(fault: _Fault) -> tuple[str, str, str]:
    shown, kinds = fault.shown, _builtins(fault.validator)
    reason = _ATTRIBUTE_VALUE.sub("", fault.reason)
    if not fault.value.strip():
        return "schema.empty-text", "is empty, and must have a value.", "Fill it in, or remove it if it is optional."
    bound = _BOUND.match(reason)
    if bound:
        side = "at most" if "less" in bound[1] else "at least"
        return "schema.out-of-range", f"is {shown}; it must be {side} {fault.validator.value}.", "Correct the number."
    if kinds & advice.FORMS.keys():
        message, remedy = advice.about_date(fault.value, kinds)
        return "schema.bad-date", f"is '{shown}', which {message}", remedy
    if "integer" in kinds:
        message = f"is '{shown}', which is not a whole number."
        return "schema.bad-number", message, advice.about_number(fault.value, is_whole=True)
    if kinds & _DECIMALS:
        message = f"is '{shown}', which is not a number."
        is_degree = _name(fault.element).endswith(("BoundingCoordinate", "Latitude", "Longitude"))
        return "schema.bad-number", message, advice.about_number(fault.value, is_whole=False, is_degree=is_degree)
    if "boolean" in kinds:
        message = f"is '{shown}', which is neither true nor false."
        return "schema.bad-value", message, advice.about_boolean(fault.value)
    if "anyURI" in kinds:
        return "schema.bad-url", f"is '{shown}', which is not a URL.", RULES["schema.bad-url"].remedy
    rule = "schema.bad-value" if reason.startswith(("value ", "invalid value")) else "schema.other"
    return rule, f"does not agree with the schema: {one_line(reason)}.", RULES["schema.other"].remedy


def _builtins(validator: Any) -> set[str]:
    """The names of the built-in types of XML Schema from which a type, a facet's type or a union is derived."""
    names: set[str] = set()
    pending, seen = [validator], 0
    while pending and seen < _MAX_TYPES:
        current = pending.pop()
        seen += 1
        name = getattr(current, "name", None)
        if isinstance(name, str) and name.startswith(_XSD):
            names.add(_local(name))
        pending += [part for part in (getattr(current, "base_type", None), getattr(current, "primitive_type", None))
                    if part is not None and part is not current]  # fmt: skip
        pending += list(getattr(current, "member_types", None) or ())
    return names


def _from_libxml2(entry: Any, element: etree._Element | None) -> ElementFinding:
    is_eml = element is not None and etree.QName(element.getroottree().getroot()).namespace in VERSIONS
    if element is not None and is_eml:
        if is_taken_for_protocol(element):
            return _taken_for_protocol(element)
        if element.getparent() is not None and etree.QName(element).namespace in VERSIONS:
            return _in_another_namespace(element, None)
    rule, message, remedy = schema_error_in_words(str(entry.message))
    return ElementFinding(rule, message, remedy, element)


def element_at(tree: etree._ElementTree, path: str | None) -> etree._Element:
    """The element at libxml2's `path`; the root if it cannot be found."""
    root = tree.getroot()
    if not path:
        return root
    try:
        found: Any = root.xpath(re.sub(r"(?<=/)[^/:\[]+:[^/\[]+", _BY_NAME, path.split("/@")[0]))
    except etree.XPathError:
        return root
    element = found[0] if isinstance(found, list) and found else root
    return element if isinstance(element, etree._Element) else root


def _name(element: etree._Element | None) -> str:
    return "the document" if element is None else shown_name(element)


def _local(name: str) -> str:
    return name.rpartition("}")[2].rpartition(":")[2]


def _any_of(names: list[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    every = [name if not name.startswith("from ") else "another element" for name in dict.fromkeys(names)]
    shown = every if len(every) <= _MAX_NAMES else [*every[: _MAX_NAMES - 1], "another element"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


# -- the order of child elements, read from the groups of xmlschema

# A group is a sequence, a choice or `all`. It has elements and other groups. A repeated group has no order, though each
# repetition may have one.


def _must_precede(model: Any, first: str, later: str) -> bool:
    """True if by this group of the schema `first` never follows `later`: false if it repeats, or is no sequence."""
    if model.max_occurs != 1:
        return False
    places = {name: part for part in reversed(model) for name in _names(part)}
    if first not in places or later not in places or first == later:
        return False
    if places[first] is places[later]:
        return _must_precede(places[first], first, later)
    parts = list(model)
    return model.model == "sequence" and parts.index(places[first]) < parts.index(places[later])


def _names(part: Any) -> set[str]:
    """The names of the elements that a part of a group has."""
    elements = part.iter_elements() if hasattr(part, "model") else (part,)
    return {str(element.local_name) for element in elements if element.name}


def _in_which_order(model: Any) -> str:
    """The schema's sentence about the order of the elements in a group."""
    kinds = set(_kinds(model))
    if "sequence" in kinds:
        return ", mostly in this order" if "any" in kinds else ", in this order"
    if "any" in kinds:
        return ", in any order"
    return " one of these" if "choice" in kinds else ""


def _kinds(model: Any, repeats: bool = False) -> Iterator[str]:
    """The kinds of the groups in a group that have several elements: `sequence`, `choice`, or `any` for any order."""
    repeats = repeats or model.max_occurs != 1
    if len(_names(model)) > 1:
        if model.model == "all" or repeats:
            yield "any"
        elif len(model) > 1:
            yield model.model
    for part in model:
        if hasattr(part, "model"):
            yield from _kinds(part, repeats)
