"""The metadata formats that the provider has: one for each document type of the catalogue, and oai_dc. Pure.

A format keeps the prefix that it has at its source; EML is named after its version. Where two document types would have
one prefix, the one that the catalogue had first keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from lxml import etree

from metaharvest.catalogue.selection import CatalogueEntry

OAI_DC = "http://www.openarchives.org/OAI/2.0/oai_dc/"
_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
_EML = re.compile(r"(eml://|https://eml\.)ecoinformatics\.org/eml-(?P<version>\d+\.\d+\.\d+)")
_NOT_IN_PREFIX = re.compile(r"[^A-Za-z0-9\-_.!~*'()]+")
_SCHEMAS = {
    OAI_DC: "http://www.openarchives.org/OAI/2.0/oai_dc.xsd",
    "http://datacite.org/schema/kernel-3": "http://schema.datacite.org/meta/kernel-3/metadata.xsd",
    "http://datacite.org/schema/kernel-4": "http://schema.datacite.org/meta/kernel-4/metadata.xsd",
    "http://www.isotc211.org/2005/gmd": "http://www.isotc211.org/2005/gmd/gmd.xsd",
    "http://www.isotc211.org/2005/gmi": "http://www.isotc211.org/2005/gmi/gmi.xsd",
    "http://www.loc.gov/mods/v3": "http://www.loc.gov/standards/mods/v3/mods.xsd",
    "http://www.loc.gov/MARC21/slim": "http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd",
}
"""The schema of a format, by its namespace, where documents need not name it."""


@dataclass(frozen=True, slots=True)
class Format:
    """A metadata format: its prefix, the place of its schema, its namespace, and the document type of the catalogue."""

    prefix: str
    schema: str
    document_type: str

    @property
    def namespace(self) -> str:
        """The namespace of its root element."""
        return self.document_type

    @property
    def set_name(self) -> str:
        """The name of its set: all versions of EML have one."""
        return "eml" if _EML.fullmatch(self.document_type) else self.prefix


DUBLIN_CORE = Format("oai_dc", _SCHEMAS[OAI_DC], OAI_DC)


def wanted_prefix(first: CatalogueEntry) -> str:
    """The prefix for the type of this document, the first one of it: by the version of EML, its source, or its name."""
    if eml := _EML.fullmatch(first.document_type):
        return f"eml-{eml['version']}"
    if first.document_type == OAI_DC:
        return DUBLIN_CORE.prefix
    if first.origin is not None:
        # The document id of a record is its origin, its format and its identifier.
        wanted = unquote(first.document_id.split("/", 2)[1])
    else:
        wanted = first.document_type.rstrip("/").rpartition("/")[2].rpartition(":")[2]
    return _NOT_IN_PREFIX.sub("-", wanted) or "xml"


def schema_of(document_type: str, root: etree._Element | None) -> str:
    """The place of the schema: as known, as a document names it, or in the folder of its namespace."""
    if known := _SCHEMAS.get(document_type):
        return known
    if eml := _EML.fullmatch(document_type):
        return f"https://eml.ecoinformatics.org/eml-{eml['version']}/eml.xsd"
    named = (root.get(f"{_XSI}schemaLocation") or "").split() if root is not None else []
    places = dict(zip(named[::2], named[1::2], strict=False))
    place = places.get(document_type) or (root.get(f"{_XSI}noNamespaceSchemaLocation") if root is not None else "")
    return (
        place
        if place and place.startswith(("http://", "https://")) and not set(place) & set(" <>\"'")
        else document_type
    )


def with_prefixes(wanted: Iterable[tuple[CatalogueEntry, str, str]]) -> Sequence[Format]:
    """The formats, each with a prefix of its own: from the first document of each type, the wanted prefix, the schema.

    The prefix oai_dc is always that of Dublin Core.
    """
    found: dict[str, Format] = {}
    for first, prefix, schema in sorted(wanted, key=lambda each: each[0].number):
        own, number = prefix, 1
        while own in found or (own == DUBLIN_CORE.prefix and first.document_type != OAI_DC):
            number += 1
            own = f"{prefix}-{number}"
        found[own] = Format(own, schema, first.document_type)
    return list(found.values())
