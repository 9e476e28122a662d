"""The metadata formats that the provider has: one for each document type of the catalogue, and oai_dc. Pure.

The prefix follows from the document type alone, so that it is the same in every process and for ever.
"""

from __future__ import annotations

import re
from hashlib import sha256

from metaharvest.model.namespaces import OAI_DC
from metaharvest.model.values import frozen

_EML = re.compile(r"(eml://|https://eml\.)ecoinformatics\.org/eml-(?P<version>\d+\.\d+\.\d+)")
_NOT_IN_PREFIX = re.compile(r"[^A-Za-z0-9\-_.!~*'()]+")
_URI = re.compile(r"(?:[A-Za-z0-9\-._~:/?#@!$&'()*+,;=]|%[0-9A-Fa-f]{2})+")
_KNOWN = {
    OAI_DC: ("oai_dc", "http://www.openarchives.org/OAI/2.0/oai_dc.xsd"),
    "http://datacite.org/schema/kernel-3": ("datacite-3", "http://schema.datacite.org/meta/kernel-3/metadata.xsd"),
    "http://datacite.org/schema/kernel-4": ("datacite", "http://schema.datacite.org/meta/kernel-4/metadata.xsd"),
    "http://www.isotc211.org/2005/gmd": ("iso19139", "http://www.isotc211.org/2005/gmd/gmd.xsd"),
    "http://www.isotc211.org/2005/gmi": ("iso19139-2", "http://www.isotc211.org/2005/gmi/gmi.xsd"),
    "http://www.loc.gov/mods/v3": ("mods", "http://www.loc.gov/standards/mods/v3/mods.xsd"),
    "http://www.loc.gov/MARC21/slim": ("marcxml", "http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd"),
    "http://www.loc.gov/METS/": ("mets", "http://www.loc.gov/standards/mets/mets.xsd"),
}
"""The prefix and the schema of usual formats, by their namespaces."""


@frozen
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


DUBLIN_CORE = Format(*_KNOWN[OAI_DC], OAI_DC)


def format_of_type(document_type: str) -> Format | None:
    """The format of documents of this type; None if it is no URI: a list of formats cannot name it."""
    if known := _KNOWN.get(document_type):
        return Format(*known, document_type)
    if eml := _EML.fullmatch(document_type):
        version = eml["version"]
        return Format(f"eml-{version}", f"https://eml.ecoinformatics.org/eml-{version}/eml.xsd", document_type)
    if not _URI.fullmatch(document_type):
        return None
    name = _NOT_IN_PREFIX.sub("-", document_type.rstrip("/#").rpartition("/")[2].rpartition(":")[2])
    # Two namespaces may end in one name.
    prefix = f"{name or 'xml'}-{sha256(document_type.encode()).hexdigest()[:6]}"
    return Format(prefix, document_type, document_type)
