"""MODS 3: a record, or the first one of a collection."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lxml import etree

from metaharvest.transform.crosswalks.rows import (
    MOST,
    Row,
    Values,
    identifier,
    inverted,
    namespace_of,
    pairs_by,
    plain,
    url,
    with_attribute,
)

NAMESPACE = "http://www.loc.gov/mods/v3"
_CREATORS = {"aut", "author", "cre", "creator"}
_HREF = "{http://www.w3.org/1999/xlink}href"


def _title(info: etree._Element) -> Iterator[str]:
    main = " ".join(filter(None, (plain(info.find(f"{{*}}{part}")) for part in ("nonSort", "title"))))
    yield ": ".join(filter(None, (main, plain(info.find("{*}subTitle")))))


def _name(wanted: str) -> Values:
    """The name, if its role is one of this element of Dublin Core; a name without a role is a creator."""

    def name(element: etree._Element) -> Iterator[str]:
        roles = {plain(role).lower() for role in islice(element.iterfind("{*}role/{*}roleTerm"), MOST)}
        if (wanted == "creator") == (not roles or not roles.isdisjoint(_CREATORS)):
            yield _name_of(element)

    return name


def _name_of(element: etree._Element) -> str:
    parts: dict[str, list[str]] = {}
    for part in islice(element.iterchildren("{*}namePart"), MOST):
        parts.setdefault(part.get("type", ""), []).append(plain(part))
    family, given, whole = (" ".join(parts.get(kind, ())) for kind in ("family", "given", ""))
    return inverted(family, given) or whole or plain(element.find("{*}displayForm"))


_ROWS = (
    Row("title", "m:titleInfo", _title),
    Row("creator", "m:name", _name("creator")),
    Row("subject", "m:subject/m:topic"),
    Row("subject", "m:subject/m:name", lambda element: (_name_of(element),)),
    Row("subject", "m:subject/m:titleInfo", _title),
    Row("subject", "m:classification"),
    Row("description", "m:abstract"),
    Row("description", "m:tableOfContents"),
    Row("description", "m:note"),
    Row("publisher", "m:originInfo/m:publisher"),
    Row("contributor", "m:name", _name("contributor")),
    *(Row("date", f"m:originInfo/m:{name}") for name in ("dateIssued", "dateCreated", "dateCaptured", "copyrightDate")),
    Row("date", "m:originInfo/m:dateOther", fallback=True),
    Row("type", "m:typeOfResource"),
    Row("type", "m:genre"),
    *(Row("format", f"m:physicalDescription/m:{name}") for name in ("internetMediaType", "form", "extent")),
    Row("identifier", "m:identifier", identifier),
    Row("identifier", "m:location/m:url", url),
    Row("source", "m:relatedItem[@type='original']/m:titleInfo", _title),
    Row("language", "m:language/m:languageTerm"),
    Row("relation", "m:relatedItem/m:titleInfo", _title),
    Row("relation", "m:relatedItem/m:identifier", identifier),
    Row("coverage", "m:subject/m:geographic"),
    Row("coverage", "m:subject/m:temporal"),
    Row("coverage", "m:subject/m:hierarchicalGeographic"),
    Row("coverage", "m:subject/m:cartographics/m:coordinates"),
    Row("rights", "m:accessCondition", with_attribute(_HREF)),
)


def pairs(root: etree._Element) -> Iterator[tuple[str, str]]:
    """The values of the document with this root element."""
    record = next(root.iterchildren("{*}mods"), root)
    return pairs_by(_ROWS, record, namespace_of(record))
