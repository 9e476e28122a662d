"""DataCite 3 and 4, also in the envelope that DataCite's OAI-PMH puts around them."""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from metaharvest.transform.crosswalks.rows import (
    Row,
    area,
    area_of,
    attribute,
    identifier,
    inverted,
    namespace_of,
    pairs_by,
    plain,
    text,
    with_attribute,
)

KERNEL_4 = "http://datacite.org/schema/kernel-4"
_KERNELS = ("http://datacite.org/schema/kernel-3", KERNEL_4)
NAMESPACES = (*_KERNELS, "http://schema.datacite.org/oai/oai-1.0/", "http://schema.datacite.org/oai/oai-1.1/")


def _name(party: etree._Element) -> Iterator[str]:
    """The name of a creator or contributor; the parts of the name count more than the name as a whole."""
    family = plain(party.find("{*}familyName"))
    if family:
        yield inverted(family, plain(party.find("{*}givenName")))
    else:
        name = party.find("{*}creatorName")
        yield plain(party.find("{*}contributorName") if name is None else name)


def sides(box: etree._Element) -> tuple[str, str, str, str]:
    """The west, east, south and north of a box, each "" if it has none.

    They are four elements in DataCite 4, and four numbers (latitude before longitude, twice) in DataCite 3.
    """
    if len(box):
        names = ("westBoundLongitude", "eastBoundLongitude", "southBoundLatitude", "northBoundLatitude")
        west, east, south, north = (plain(box.find(f"{{*}}{name}")) for name in names)
        return west, east, south, north
    numbers = plain(box).split(maxsplit=4)
    south, west, north, east = numbers if len(numbers) == 4 else [""] * 4
    return west, east, south, north


def _point(element: etree._Element) -> Iterator[str]:
    """A point: two elements in DataCite 4, two numbers (latitude, longitude) in DataCite 3."""
    numbers = plain(element).split(maxsplit=2)
    if len(element):
        east, north = (plain(element.find(f"{{*}}point{axis}")) for axis in ("Longitude", "Latitude"))
        yield from area(east, east, north, north)
    elif len(numbers) == 2:
        north, east = numbers
        yield from area(east, east, north, north)


ROWS = (
    Row("title", "m:titles/m:title"),
    Row("creator", "m:creators/m:creator", _name),
    Row("subject", "m:subjects/m:subject"),
    Row("description", "m:descriptions/m:description"),
    Row("publisher", "m:publisher"),
    Row("contributor", "m:contributors/m:contributor", _name),
    Row("date", "m:publicationYear"),
    Row("date", "m:dates/m:date"),
    Row("type", "m:resourceType", attribute("resourceTypeGeneral")),
    Row("type", "m:resourceType", text),
    Row("format", "m:formats/m:format"),
    Row("format", "m:sizes/m:size"),
    Row("identifier", "m:identifier", identifier),
    Row("identifier", "m:alternateIdentifiers/m:alternateIdentifier", identifier),
    Row("language", "m:language"),
    Row("relation", "m:relatedIdentifiers/m:relatedIdentifier", identifier),
    Row("coverage", "m:geoLocations/m:geoLocation/m:geoLocationPlace"),
    Row("coverage", "m:geoLocations/m:geoLocation/m:geoLocationBox", area_of(sides)),
    Row("coverage", "m:geoLocations/m:geoLocation/m:geoLocationPoint", _point),
    Row("rights", "m:rightsList/m:rights", with_attribute("rightsURI")),
)


def resource_of(root: etree._Element) -> etree._Element:
    """The element of DataCite in a document: its root, or the one inside of the envelope."""
    return next(root.iter(*(f"{{{kernel}}}resource" for kernel in _KERNELS)), root)


def pairs(root: etree._Element) -> Iterator[tuple[str, str]]:
    """The values of the document with this root element."""
    resource = resource_of(root)
    return pairs_by(ROWS, resource, namespace_of(resource))
