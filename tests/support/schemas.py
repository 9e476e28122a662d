"""The JSON Schemas in docs/schemas, as they are published, and closed: with nothing allowed that they do not name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "schemas"

_FORMATS = FormatChecker(formats=["date"])


@_FORMATS.checks("date-time", raises=ValueError)
def _is_time(value: object) -> bool:
    """With a zone: without one nobody knows when it was."""
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None


def published() -> Iterator[tuple[str, Any]]:
    """Every file by its name without `.json`."""
    for file in sorted(FOLDER.glob("*.json")):
        yield file.stem, json.loads(file.read_text(encoding="utf-8"))


def problems(name: str, value: object) -> list[str]:
    """What is wrong with `value`, which must be as the schema of this name says, and have nothing beyond that."""
    validator = Draft202012Validator(_closed(_read(name)), registry=_registry(), format_checker=_FORMATS)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def _read(name: str) -> Any:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@cache
def _registry() -> Registry[Any]:
    resources = [(f"{name}.json", DRAFT202012.create_resource(_parts_closed(schema))) for name, schema in published()]
    return Registry().with_resources(resources)


def _closed(schema: Any) -> Any:
    """The schema, with no property but those that it names, at any depth."""
    inner = _parts_closed(schema)
    is_object = any(key in inner for key in ("properties", "allOf", "$ref"))
    return {**inner, "unevaluatedProperties": False} if is_object else inner


def _parts_closed(schema: Any) -> Any:
    """The schema with its parts closed; at the top itself others may add to it."""
    found = dict(schema)
    if "properties" in found:
        found["properties"] = {name: _closed(part) for name, part in found["properties"].items()}
    if "items" in found:
        found["items"] = _closed(found["items"])
    if "anyOf" in found:
        found["anyOf"] = [_closed(part) for part in found["anyOf"]]
    if "allOf" in found:
        found["allOf"] = [_parts_closed(part) for part in found["allOf"]]
    return found
