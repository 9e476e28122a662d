"""ISO 19139 and 19139-2: data sets, series and services."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lxml import etree

from metaharvest.model.outputs import Access, Agent, AgentKind, FileRole
from metaharvest.pipeline.cleaning.draft import MOST, Draft, Row, fill, relation, value
from metaharvest.pipeline.cleaning.names import Parts, agent
from metaharvest.transform.crosswalks.iso19139 import NAMESPACES, ends
from metaharvest.transform.crosswalks.rows import plain

__all__ = ["NAMESPACES", "read"]

_GMD = "{http://www.isotc211.org/2005/gmd}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_LOCALISED = f"{_GMD}LocalisedCharacterString"

_CREATORS = frozenset(("author", "originator", "principalInvestigator", "coAuthor"))
_DATES = {
    "publication": "Issued",
    "released": "Issued",
    "creation": "Created",
    "revision": "Updated",
    "lastUpdate": "Updated",
    "adopted": "Accepted",
    "available": "Available",
}
_TYPES = {"nonGeographicDataset": "dataset", "series": "dataset", "model": "software", "software": "software"}
_LANDING_PAGES = frozenset(("information", "search", "order", ""))
_OPEN = "noLimitations"
"""The end of INSPIRE's address for data without limitations of public access."""


def _text(element: etree._Element | None) -> str:
    """The text of an element, which is in its first child; of a code list, its value."""
    if element is None:
        return ""
    child = next(element.iterchildren("*"), element)
    return plain(child) or child.get("codeListValue") or ""


def _href(element: etree._Element | None) -> str:
    child = None if element is None else next(element.iterchildren("*"), None)
    return "" if child is None else child.get(_HREF, "")


def _address(element: etree._Element) -> str:
    """The address of an identifier, else its text."""
    return _href(element) or _text(element)


def _code(element: etree._Element | None) -> str:
    if element is None:
        return ""
    return element.get("codeListValue") or plain(element)


def _title(draft: Draft, element: etree._Element, source: str) -> None:
    draft.title(_text(element), source)
    for number, each in enumerate(islice(element.iter(_LOCALISED), MOST), 1):
        draft.title(plain(each), f"{source}/{number}", (each.get("locale") or "").lstrip("#").removeprefix("locale-"))


def _agents(party: etree._Element, source: str, role: str | None) -> Iterator[Agent]:
    """The person of a party; its organisation if there is none, its position if there is neither."""
    person = party.find(f"{_GMD}individualName")
    organisation = party.find(f"{_GMD}organisationName")
    if name := _text(person):
        yield from agent(name, source, identifiers=[_href(person)], role=role)
    elif name := _text(organisation):
        said = Parts(AgentKind.ORGANISATION)
        yield from agent(name, source, said=said, identifiers=[_href(organisation)], role=role)
    elif name := _text(party.find(f"{_GMD}positionName")):
        yield from agent(name, source, role=role)


def _party(draft: Draft, party: etree._Element, source: str) -> None:
    role = _code(party.find(f"{_GMD}role/*"))
    if role in _CREATORS:
        draft.creator(_agents(party, source, None))
    elif role == "publisher":
        for each in _agents(party, source, None):
            draft.publisher(each.name, source)
    else:
        draft.contributor(_agents(party, source, role or None))


def _date(draft: Draft, element: etree._Element, source: str) -> None:
    kind = _DATES.get(_code(element.find(f"{_GMD}dateType/*")), "Other")
    draft.date(_text(element.find(f"{_GMD}date")), kind, source)


def _collected(draft: Draft, element: etree._Element, source: str) -> None:
    time = next(element.iterchildren("*"), None)
    if time is None:
        return
    if str(time.tag).endswith("}TimePeriod"):
        begin, end = ends(time)
        draft.date(f"{begin[:10]}/{end[:10] or '..'}" if begin else "", "Collected", source)
    else:
        draft.date(plain(time.find("{*}timePosition")), "Collected", source)


def _online(draft: Draft, resource: etree._Element, source: str) -> None:
    """An online resource: a file to download, a page, or a service."""
    url = plain(resource.find(f"{_GMD}linkage/*"))
    function = _code(resource.find(f"{_GMD}function/*"))
    if function == "download":
        draft.file(url, source, FileRole.DATA)
    elif function in _LANDING_PAGES and _text(resource.find(f"{_GMD}protocol"))[:4].upper() not in ("OGC:", "ESRI"):
        draft.page(url, source)


def _rights(draft: Draft, element: etree._Element, source: str) -> None:
    href = _href(element)
    if href.endswith(_OPEN):
        draft.allow(Access.OPEN)
    else:
        draft.rights(_text(element), source, href)


_IDENT = "gmd:identificationInfo/*/"
_CITATION = f"{_IDENT}gmd:citation/*/"
_ROWS = (
    Row(f"{_CITATION}gmd:title", _title),
    Row(f"{_CITATION}gmd:alternateTitle", _title),
    Row(f"{_CITATION}gmd:citedResponsibleParty/*", _party),
    Row(f"{_IDENT}gmd:pointOfContact/*", _party),
    Row(f"{_IDENT}gmd:abstract", value(Draft.abstract, _text)),
    Row(f"{_IDENT}gmd:descriptiveKeywords/*/gmd:keyword", value(Draft.subject, _text)),
    Row(f"{_IDENT}gmd:topicCategory", value(Draft.subject, _text)),
    Row(f"{_CITATION}gmd:date/*", _date),
    Row(f"{_IDENT}{{*}}extent/*/gmd:temporalElement/*/gmd:extent", _collected),
    Row("gmd:hierarchyLevel/*", value(Draft.type, lambda each: _TYPES.get(_code(each), _code(each)))),
    Row(f"{_IDENT}gmd:language", value(Draft.language, lambda each: _code(next(each.iterchildren("*"), each)))),
    Row(f"{_CITATION}gmd:identifier/*/gmd:code", value(Draft.identifier, _address)),
    Row("gmd:dataSetURI", value(Draft.identifier, _address)),
    Row("gmd:fileIdentifier", value(Draft.identifier, _address)),
    Row("gmd:distributionInfo/*/gmd:transferOptions/*/gmd:onLine/*", _online),
    Row(f"{_IDENT}gmd:resourceConstraints/*/gmd:otherConstraints", _rights),
    Row(f"{_IDENT}gmd:resourceConstraints/*/gmd:useLimitation", _rights),
    Row("gmd:parentIdentifier", relation("IsPartOf", _address)),
    Row(f"{_IDENT}gmd:aggregationInfo/*/gmd:aggregateDataSetIdentifier/*/gmd:code", relation("relation", _address)),
)


def read(root: etree._Element, draft: Draft) -> None:
    """Read the document with this root element. The date of the record stands for a date that the data do not have."""
    fill(draft, _ROWS, root, {"gmd": _GMD[1:-1]})
    if not draft.dates:
        draft.date(_text(root.find(f"{_GMD}dateStamp")), "Updated", "dateStamp[1]")
