"""The description of a document in the vocabulary of schema.org, for search engines. Pure.

It follows the guide of science-on-schema.org for data sets: https://github.com/ESIPFed/science-on-schema.org
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from metaharvest.web.pages.addresses import page_path, xml_path
from metaharvest.web.pages.description import Description
from metaharvest.web.pages.landing import Landing

_TYPES = {"dataset": "Dataset", "collection": "Collection", "software": "SoftwareSourceCode"}
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
"""A date that programs can read."""

_LONGEST_DESCRIPTION = 5000
"""Characters of a description that search engines accept."""


def type_of(description: Description) -> str:
    """Dataset if the document gives no type; CreativeWork if it gives only types that are unknown here."""
    types = [each.lower() for each in description.of("type")]
    return next((_TYPES[each] for each in types if each in _TYPES), "CreativeWork" if types else "Dataset")


def json_ld(landing: Landing, description: Description, root_url: str, catalogue: str) -> Mapping[str, object]:
    """The object for a landing page; `catalogue` is the name of the installation."""
    entry = landing.entry
    page_url = f"{root_url}/{page_path(entry.document_id)}"
    found = {
        "@context": {"@vocab": "https://schema.org/"},
        "@id": description.persistent_url or page_url,
        "@type": type_of(description),
        "name": description.title,
        "description": "\n\n".join(description.of("description"))[:_LONGEST_DESCRIPTION],
        "url": page_url,
        "identifier": [_identifier(each) for each in description.of("identifier")],
        "version": str(entry.revision),
        "creator": {"@list": [_party(each) for each in description.of("creator")]},
        "contributor": [_party(each) for each in description.of("contributor")],
        "publisher": [{"@type": "Organization", "name": each} for each in description.of("publisher")],
        "datePublished": next(filter(_DATE.fullmatch, description.of("date")), ""),
        "keywords": description.of("subject"),
        "inLanguage": next(iter(description.of("language")), ""),
        "license": description.licence,
        "spatialCoverage": [
            {"@type": "Place", "geo": {"@type": "GeoShape", "box": each}} for each in description.boxes
        ],
        "temporalCoverage": description.periods,
        "distribution": [{"@type": "DataDownload", "contentUrl": each} for each in description.files],
        "includedInDataCatalog": {"@type": "DataCatalog", "name": catalogue, "url": f"{root_url}/"},
        "subjectOf": {
            "@type": "DataDownload",
            "name": "Metadata in XML",
            "encodingFormat": ["application/xml", *([entry.document_type] if entry.document_type else [])],
            "contentUrl": f"{root_url}/{xml_path(entry.document_id)}",
            "dateModified": entry.changed_at.isoformat(),
        },
    }
    return {name: value for name, value in found.items() if value and value != {"@list": []}}


def written(value: Mapping[str, object]) -> str:
    """The value as JSON that can neither end the element around it nor begin a comment in HTML."""
    text = json.dumps(value, ensure_ascii=False, default=list)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _identifier(text: str) -> object:
    if not text.startswith("https://doi.org/"):
        return text
    doi = text.removeprefix("https://doi.org/")
    return {
        "@id": text,
        "@type": "PropertyValue",
        "propertyID": "https://registry.identifiers.org/registry/doi",
        "value": f"doi:{doi}",
        "url": text,
    }


def _party(name: str) -> Mapping[str, object]:
    """A person if the name has its family name first; otherwise an organisation."""
    family, comma, given = name.partition(", ")
    if not comma:
        return {"@type": "Organization", "name": name}
    return {"@type": "Person", "name": f"{given} {family}", "familyName": family, "givenName": given}
