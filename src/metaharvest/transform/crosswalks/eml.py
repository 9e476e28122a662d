"""EML 2.0.0 to 2.2.0: data sets, literature, software, protocols. Elements below the root are in no namespace."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from lxml import etree

from metaharvest.transform.crosswalks.rows import (
    MOST,
    Row,
    area_of,
    attribute,
    identifier,
    inverted,
    pairs_by,
    period,
    plain,
    url,
)

NAMESPACES = (
    *(f"eml://ecoinformatics.org/eml-{version}" for version in ("2.0.0", "2.0.1", "2.1.0", "2.1.1")),
    "https://eml.ecoinformatics.org/eml-2.2.0",
)

_TYPES = {"dataset": "Dataset", "citation": "Text", "software": "Software", "protocol": "Text"}
"""The element of the resource in an EML document, and its type by the vocabulary of DCMI."""


_ROLES = {"creator": "creator", "publisher": "publisher", "associatedParty": "contributor"}
"""The roles of parties in EML, and the elements of Dublin Core for their names."""


def _parties(resource: etree._Element) -> Iterator[tuple[str, str]]:
    """The names of all parties, also of those that refer to another place in the document, with their elements."""
    parties = [(each, role) for role in _ROLES for each in islice(resource.iterchildren(role), MOST)]
    references = [plain(each.find("references")) for each, _ in parties]
    named: dict[str, etree._Element] = {}
    if wanted := set(references).difference(("",)):
        # One pass for all roles: a large document takes long to read.
        known = resource.getroottree().iter("*")
        named = {each.get("id", ""): each for each in known if each.get("id") in wanted}
    for (party, role), reference in zip(parties, references, strict=True):
        for name in _name(named.get(reference, party)):
            yield _ROLES[role], name


def _name(party: etree._Element) -> Iterator[str]:
    """The persons of a party; its organisation if there are none, its position if there is neither."""
    persons = [
        inverted(plain(person.find("surName")), " ".join(map(plain, islice(person.iterchildren("givenName"), MOST))))
        for person in islice(party.iterchildren("individualName"), MOST)
    ]
    if persons:
        yield from persons
    else:
        yield plain(party.find("organizationName")) or plain(party.find("positionName"))


def _with_translations(element: etree._Element) -> Iterator[str]:
    """The text of an element, and each of its translations, which are its children."""
    children = list(islice(element.iterchildren(), MOST))
    yield (element.text or "") + "".join(child.tail or "" for child in children)
    yield from (plain(child) for child in children if child.tag == "value")


def _type(resource: etree._Element) -> Iterator[str]:
    yield _TYPES[str(resource.tag)]


def sides(coordinates: etree._Element) -> tuple[str, str, str, str]:
    """The west, east, south and north of a bounding box."""
    west, east, south, north = (
        plain(coordinates.find(f"{side}BoundingCoordinate")) for side in ("west", "east", "south", "north")
    )
    return west, east, south, north


def _date(element: etree._Element | None) -> str:
    if element is None:
        return ""
    return plain(element.find("calendarDate")) or plain(element.find("alternativeTimeScale/timeScaleAgeEstimate"))


def ends(range_of_dates: etree._Element) -> tuple[str, str]:
    """The begin and the end of a period."""
    return _date(range_of_dates.find("beginDate")), _date(range_of_dates.find("endDate"))


def _period(range_of_dates: etree._Element) -> Iterator[str]:
    return period(*ends(range_of_dates))


def _single_date(element: etree._Element) -> Iterator[str]:
    if date := _date(element):
        yield f"{date}."


def _taxa(coverage: etree._Element) -> Iterator[str]:
    """A sentence for each of the lowest taxa."""
    for taxon in coverage.iter("taxonomicClassification"):
        if taxon.find("taxonomicClassification") is not None:
            continue
        rank, name = plain(taxon.find("taxonRankName")), plain(taxon.find("taxonRankValue"))
        above, common = taxon.getparent(), plain(taxon.find("commonName"))
        if rank.lower() == "species" and " " not in name and above is not None:
            # Many documents give the genus at its own rank, and only the epithet here.
            name = f"{plain(above.find('taxonRankValue'))} {name}".strip()
        if name:
            taxon_name = f"{rank.capitalize()} {name}"
            yield f"{taxon_name} ({common})." if common else f"{taxon_name}."


_ROWS = (
    Row("title", "title", _with_translations),
    Row("title", "shortName", fallback=True),
    Row("subject", "keywordSet/keyword", _with_translations),
    Row("description", "abstract"),
    Row("date", "pubDate"),
    Row("type", ".", _type),
    Row("format", "*/physical/dataFormat/externallyDefinedFormat/formatName"),
    Row("identifier", "alternateIdentifier", identifier),
    Row("identifier", "distribution/online/url", url),
    Row("identifier", "..", attribute("packageId")),
    Row("language", "language"),
    Row("relation", "referencePublication/DOI", identifier),
    Row("relation", "usageCitation/DOI", identifier),
    Row("coverage", "coverage/geographicCoverage/geographicDescription"),
    Row("coverage", "coverage/geographicCoverage/boundingCoordinates", area_of(sides)),
    Row("coverage", "coverage/temporalCoverage/rangeOfDates", _period),
    Row("coverage", "coverage/temporalCoverage/singleDateTime", _single_date),
    Row("coverage", "coverage/taxonomicCoverage/generalTaxonomicCoverage"),
    Row("coverage", "coverage/taxonomicCoverage", _taxa),
    Row("rights", "licensed/url"),
    Row("rights", "licensed/licenseName"),
    Row("rights", "intellectualRights"),
)


def pairs(root: etree._Element) -> Iterator[tuple[str, str]]:
    """The values of the document with this root element."""
    resource = next(root.iterchildren(*_TYPES), None)
    return iter(()) if resource is None else chain(_parties(resource), pairs_by(_ROWS, resource))
