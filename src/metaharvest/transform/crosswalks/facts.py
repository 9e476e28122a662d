"""Facts of a document for programs, beside its Dublin Core: ORCID iDs, files of its data, boxes, periods. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from lxml import etree

from metaharvest.transform.crosswalks import datacite, eml, iso19139
from metaharvest.transform.crosswalks.rows import Row, Values, namespace_of, pairs_by, plain, url

AUTHOR, FILE, BOX, PERIOD = "author", "file", "box", "period"

_LONGEST = 2000
"""Characters of a fact."""

_ORCID = re.compile(r"(?:https?://orcid\.org/)?((?:\d{4}-){3}\d{3}[\dX])")
_NUMBER = re.compile(r"-?\d{1,3}(\.\d{1,20})?")
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_EXTENT = "{*}identificationInfo/*/{*}extent/*"


def _orcid(element: etree._Element) -> Iterator[str]:
    if found := _ORCID.fullmatch(plain(element)):
        yield f"https://orcid.org/{found[1]}"


def _download(resource: etree._Element) -> Iterator[str]:
    """The URL of an online resource of ISO 19139, if it is there to download."""
    function = resource.find("{*}function/{*}CI_OnLineFunctionCode")
    if function is not None and function.get("codeListValue") == "download":
        for linkage in resource.iterfind("{*}linkage/{*}URL"):
            yield from url(linkage)


def _file(online: etree._Element) -> Iterator[str]:
    """The URL of a file of EML, unless it is a page with information about it."""
    for address in online.iterchildren("url"):
        if address.get("function") != "information":
            yield from url(address)


def _box(sides: Callable[[etree._Element], Sequence[str]]) -> Values:
    def box(element: etree._Element) -> Iterator[str]:
        west, east, south, north = (each.removeprefix("+") for each in sides(element))
        if all(_NUMBER.fullmatch(each) for each in (west, east, south, north)):
            yield f"{south} {west} {north} {east}"

    return box


def _period(ends: Callable[[etree._Element], tuple[str, str]]) -> Values:
    def period(element: etree._Element) -> Iterator[str]:
        begin, end = ends(element)
        if _DATE.fullmatch(begin) and _DATE.fullmatch(end):
            yield f"{begin}/{end}"

    return period


_ROWS = {
    **dict.fromkeys(
        eml.NAMESPACES,
        (
            Row(AUTHOR, "dataset/creator/userId", _orcid),
            Row(FILE, "dataset/*/physical/distribution/online", _file),
            Row(BOX, "dataset/coverage/geographicCoverage/boundingCoordinates", _box(eml.sides)),
            Row(PERIOD, "dataset/coverage/temporalCoverage/rangeOfDates", _period(eml.ends)),
        ),
    ),
    **dict.fromkeys(
        datacite.NAMESPACES,
        (
            Row(AUTHOR, "m:creators/m:creator/m:nameIdentifier", _orcid),
            Row(BOX, "m:geoLocations/m:geoLocation/m:geoLocationBox", _box(datacite.sides)),
        ),
    ),
    **dict.fromkeys(
        iso19139.NAMESPACES,
        (
            Row(FILE, "{*}distributionInfo/*/{*}transferOptions/*/{*}onLine/{*}CI_OnlineResource", _download),
            Row(BOX, f"{_EXTENT}/{{*}}geographicElement/{{*}}EX_GeographicBoundingBox", _box(iso19139.sides)),
            Row(PERIOD, f"{_EXTENT}/{{*}}temporalElement/*/{{*}}extent/{{*}}TimePeriod", _period(iso19139.ends)),
        ),
    ),
}


def facts(root: etree._Element) -> Sequence[tuple[str, str]]:
    """The facts of a document, each once, as AUTHOR, FILE, BOX or PERIOD and a text.

    Authors and files are URLs. A box is south, west, north, east in degrees; a period is two dates with a slash.
    """
    namespace = etree.QName(root).namespace or ""
    start = datacite.resource_of(root) if namespace in datacite.NAMESPACES else root
    found = dict.fromkeys(pairs_by(_ROWS.get(namespace, ()), start, namespace_of(start)))
    return [(kind, text) for kind, text in found if len(text) <= _LONGEST]
