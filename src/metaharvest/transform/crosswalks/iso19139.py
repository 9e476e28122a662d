"""ISO 19139 and 19139-2: data sets, series and services, with either version of GML."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lxml import etree

from metaharvest.transform.crosswalks.rows import MOST, Row, Values, area_of, pairs_by, period, plain, resolvable

_ISO = "http://www.isotc211.org/2005/"
NAMESPACES = (f"{_ISO}gmd", f"{_ISO}gmi")
_PREFIXES = {"gmd": f"{_ISO}gmd", "gco": f"{_ISO}gco"}
_GMD = f"{{{_ISO}gmd}}"
_HREF = "{http://www.w3.org/1999/xlink}href"
_TRANSLATION = f"{_GMD}LocalisedCharacterString"

_ROLES = {
    **dict.fromkeys(("author", "originator", "principalInvestigator"), "creator"),
    **dict.fromkeys(("publisher", "distributor"), "publisher"),
}
"""The roles of people and organisations; all others contribute."""

_TYPES = {"dataset": "Dataset", "nonGeographicDataset": "Dataset", "series": "Collection", "service": "Service"}
"""Types by the vocabulary of DCMI; others keep their code."""


def _text(element: etree._Element) -> Iterator[str]:
    """The text of an element, which is in its first child, and its translations."""
    child = next(element.iterchildren("*"), None)
    if child is None or not str(child.tag).endswith("}PT_FreeText"):
        yield plain(element if child is None else child)
    yield from map(plain, islice(element.iter(_TRANSLATION), MOST))


def _first(element: etree._Element | None) -> str:
    return "" if element is None else next((text for text in _text(element) if text), "")


def _identifier(element: etree._Element) -> Iterator[str]:
    child = next(element.iterchildren("*"), element)
    yield resolvable(child.get(_HREF, ""))
    yield from map(resolvable, _text(element))


def _code(element: etree._Element) -> str:
    """The value of a code list."""
    return element.get("codeListValue") or plain(element)


def _code_or_text(element: etree._Element) -> Iterator[str]:
    child = next(element.iterchildren("*"), element)
    yield _code(child)


def _type(element: etree._Element) -> Iterator[str]:
    code = _code(element)
    yield _TYPES.get(code, code)


def _party(wanted: str) -> Values:
    """The name of a responsible party, if its role is one of this element of Dublin Core."""

    def name(party: etree._Element) -> Iterator[str]:
        role = party.find(f"{_GMD}role/*")
        if wanted == _ROLES.get("" if role is None else _code(role), "contributor"):
            names = (_first(party.find(f"{_GMD}{kind}Name")) for kind in ("individual", "organisation", "position"))
            yield next(filter(None, names), "")

    return name


def sides(box: etree._Element) -> tuple[str, str, str, str]:
    """The west, east, south and north of a bounding box."""
    names = ("westBoundLongitude", "eastBoundLongitude", "southBoundLatitude", "northBoundLatitude")
    west, east, south, north = (_first(box.find(f"{_GMD}{name}")) for name in names)
    return west, east, south, north


def ends(time: etree._Element) -> tuple[str, str]:
    """The begin and the end of a period of GML."""
    return _position(time, "begin"), _position(time, "end")


def _period(element: etree._Element) -> Iterator[str]:
    """A period or an instant of GML. The ends of a period are positions, or instants."""
    time = next(element.iterchildren("*"), None)
    if time is None:
        return
    if str(time.tag).endswith("}TimePeriod"):
        yield from period(*ends(time))
    elif instant := plain(time.find("{*}timePosition")):
        yield f"{instant}."


def _position(time: etree._Element, end: str) -> str:
    position = time.find(f"{{*}}{end}Position")
    return plain(time.find(f"{{*}}{end}/*/{{*}}timePosition") if position is None else position)


_IDENT = "gmd:identificationInfo/*/"
_CITATION = f"{_IDENT}gmd:citation/*/"
_PARTIES = (f"{_CITATION}gmd:citedResponsibleParty/*", f"{_IDENT}gmd:pointOfContact/*")
_EXTENT = f"{_IDENT}{{*}}extent/*/"
_DISTRIBUTION = "gmd:distributionInfo/*/"

_ROWS = (
    Row("title", f"{_CITATION}gmd:title", _text),
    Row("title", f"{_CITATION}gmd:alternateTitle", _text),
    *(Row("creator", path, _party("creator")) for path in _PARTIES),
    Row("subject", f"{_IDENT}gmd:descriptiveKeywords/*/gmd:keyword", _text),
    Row("subject", f"{_IDENT}gmd:topicCategory", _text),
    Row("description", f"{_IDENT}gmd:abstract", _text),
    *(Row("publisher", path, _party("publisher")) for path in _PARTIES),
    *(Row("contributor", path, _party("contributor")) for path in _PARTIES),
    Row("date", f"{_CITATION}gmd:date/*/gmd:date", _text),
    Row("date", "gmd:dateStamp", _text, fallback=True),
    Row("type", "gmd:hierarchyLevel/*", _type),
    Row("format", f"{_DISTRIBUTION}gmd:distributionFormat/*/gmd:name", _text),
    Row("identifier", f"{_CITATION}gmd:identifier/*/gmd:code", _identifier),
    Row("identifier", "gmd:dataSetURI", _identifier),
    Row("identifier", f"{_DISTRIBUTION}gmd:transferOptions/*/gmd:onLine/*/gmd:linkage", _identifier),
    Row("identifier", "gmd:fileIdentifier", _identifier),
    Row("language", f"{_IDENT}gmd:language", _code_or_text),
    Row("relation", f"{_IDENT}gmd:aggregationInfo/*/gmd:aggregateDataSetIdentifier/*/gmd:code", _identifier),
    Row("relation", "gmd:parentIdentifier", _identifier),
    Row("coverage", f"{_EXTENT}gmd:description", _text),
    Row("coverage", f"{_EXTENT}gmd:geographicElement/*/gmd:geographicIdentifier/*/gmd:code", _text),
    Row("coverage", f"{_EXTENT}gmd:geographicElement/gmd:EX_GeographicBoundingBox", area_of(sides)),
    Row("coverage", f"{_EXTENT}gmd:temporalElement/*/gmd:extent", _period),
    Row("rights", f"{_IDENT}gmd:resourceConstraints/*/gmd:otherConstraints", _identifier),
    Row("rights", f"{_IDENT}gmd:resourceConstraints/*/gmd:useLimitation", _identifier),
)


def pairs(root: etree._Element) -> Iterator[tuple[str, str]]:
    """The values of the document with this root element."""
    return pairs_by(_ROWS, root, _PREFIXES)
