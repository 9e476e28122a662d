"""Whether two records are of the same item, by the three rules of the OAI-PMH guidelines for aggregators. Pure.

Rules: https://www.openarchives.org/OAI/2.0/guidelines-aggregator.htm
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from metaharvest.model import RecordOrigin
from metaharvest.model.namespaces import is_of_known_scheme
from metaharvest.text import one_line

_PROVENANCE = "{http://www.openarchives.org/OAI/2.0/provenance}"


def why_same(one: RecordOrigin, other: RecordOrigin) -> str | None:
    """The reason why two records are of the same item, as a sentence; None if no rule says so."""
    if one.identifier == other.identifier and one.base_url == other.base_url:
        return "Identifier and base URL are the same."
    if one.identifier == other.identifier and is_of_known_scheme(one.identifier):
        return "The identifier is the same, and is a URI that means the same everywhere."
    sources = set(_sources(other))
    for base_url, identifier in _sources(one):
        if (base_url, identifier) in sources:
            return f"Both are the record {one_line(identifier, 200)} of {one_line(base_url, 200)}."
    return None


def _sources(origin: RecordOrigin) -> Iterator[tuple[str, str]]:
    """The base URL and the identifier of a record, and of each record that its provenance names."""
    yield origin.base_url, origin.identifier
    for container in origin.about:
        for each in etree.fromstring(container).iter(f"{_PROVENANCE}originDescription"):
            base_url, identifier = each.findtext(f"{_PROVENANCE}baseURL"), each.findtext(f"{_PROVENANCE}identifier")
            if base_url and identifier:
                yield base_url.strip(), identifier.strip()
