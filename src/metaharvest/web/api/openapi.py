"""Assembles the description of the API, OpenAPI 3.1, from its operations and the schemas in docs/schemas.

`python -m metaharvest.web.api.openapi docs/schemas` prints it; `make docs` writes docs/openapi.json.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from metaharvest.model.actions import todo
from metaharvest.model.kinds import Role
from metaharvest.web.api.call import ROOT, Operation
from metaharvest.web.api.operations import OPERATIONS

_COMPONENT = "#/components/schemas/"
_NAME = re.compile(r"{(\w+)}")
_NUMBERS = ("run", "report", "request", "job", "registration", "work")
_PARTS = {"requests", "reports", "search", "output", "output-summary"}
"""Schemas of which operations name a part."""

_PROBLEM = {
    "title": "RFC 9457: an error",
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, and what to do."},
        "kind": {"type": "string", "description": "As `kind` in error.json."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "message": {"type": "string"}},
                "required": ["name", "message"],
            },
        },
    },
    "required": ["type", "title", "status", "detail", "kind"],
}
_DESCRIPTIONS = {
    400: "The query, the cursor or the body cannot be read",
    401: "No valid key",
    403: "The role of the key does not allow this",
    404: "There is nothing at this address",
    405: "The address does not allow this method",
    409: "The action is not possible now",
    412: "It was changed since it was read",
    413: "The body is too large",
    415: "The body is not JSON",
    422: "A value cannot be used",
    428: "If-Match is missing",
    429: "Too many calls; Retry-After has the seconds to wait",
    503: "The database, or the index of the search, cannot be used at this moment",
}


def openapi(schemas: Path) -> Mapping[str, Any]:
    """The description; `schemas` is the folder docs/schemas."""
    paths: dict[str, dict[str, Any]] = {}
    components: dict[str, Any] = {"problem": _PROBLEM}
    for operation in OPERATIONS:
        described = _described(operation, components)
        paths.setdefault(ROOT + operation.path, {})[operation.method.lower()] = described
    _add_documents(schemas, components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "metaharvest",
            "version": "1",
            "description": "The read models and actions of the console, for programs. docs/api.md explains it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "description": f"{todo('keys.add')} makes a key."}
            },
        },
    }


def _described(operation: Operation, components: dict[str, Any]) -> Mapping[str, Any]:
    found: dict[str, Any] = {
        "operationId": f"{operation.method.lower()}_{'_'.join(re.findall(r'[a-z]+', operation.path))}",
        "summary": operation.summary,
        **_access(operation),
        "tags": [operation.path.split("/")[1]],
        "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_headers(operation)],
        "responses": _responses(operation),
    }
    if operation.body is not None:
        name = operation.body.__name__
        components[name] = _schema_of(operation.body)
        is_required = bool(components[name].get("required")) or operation.is_edit
        content = {"application/json": {"schema": {"$ref": _COMPONENT + name}}}
        found["requestBody"] = {"required": is_required, "content": content}
    return found


def _access(operation: Operation) -> Mapping[str, Any]:
    if operation.least is Role.PUBLIC:
        return {"description": "For everybody: it needs no key.", "security": []}
    return {"description": f"For keys with the role {operation.least.word}, and higher ones."}


def _path_parameters(operation: Operation) -> Sequence[Mapping[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 1} if name in _NUMBERS else {"type": "string", "minLength": 1},
        }
        for name in _NAME.findall(operation.path)
    ]


def _query_parameters(operation: Operation) -> Sequence[Mapping[str, Any]]:
    properties = _schema_of(operation.query).get("properties", {})
    return [
        {"name": name, "in": "query", "required": False, "schema": _without_null(schema)}
        for name, schema in properties.items()
    ]


def _headers(operation: Operation) -> Sequence[Mapping[str, Any]]:
    if operation.is_edit:
        etag = {"type": "string", "description": "The ETag of the answer that was read."}
        return [{"name": "If-Match", "in": "header", "required": True, "schema": etag}]
    if operation.is_action:
        words = "The same key with the same call gives the first answer again, for a day."
        schema = {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$", "description": words}
        return [{"name": "Idempotency-Key", "in": "header", "required": False, "schema": schema}]
    return []


def _responses(operation: Operation) -> Mapping[str, Any]:
    statuses = {400, 503} if operation.least is Role.PUBLIC else {400, 401, 403, 429, 503}
    if operation.path.count("{"):
        statuses.add(404)
    if operation.body is not None:
        statuses |= {413, 415, 422}
    if operation.is_action:
        statuses |= {409, 422}
    if operation.is_edit:
        statuses |= {409, 412, 428}
    if operation.query.model_fields:
        statuses.add(422)
    headers: dict[str, Any] = {}
    if operation.is_edit or operation.path == "/sites/{site}":
        headers["ETag"] = {"schema": {"type": "string"}, "description": "The version of the registered values."}
    if operation.path in ("/harvests", "/stops", "/skips"):
        headers["Location"] = {"schema": {"type": "string"}, "description": "The address of the request."}
    good: dict[str, Any] = {
        "description": operation.summary,
        "content": {"application/json": {"schema": _envelope(operation)}},
    }
    if headers:
        good["headers"] = headers
    refused = {
        str(status): {
            "description": _DESCRIPTIONS[status],
            "content": {"application/problem+json": {"schema": {"$ref": f"{_COMPONENT}problem"}}},
        }
        for status in sorted(statuses)
    }
    return {str(operation.status): good, **refused}


def _envelope(operation: Operation) -> Mapping[str, Any]:
    schema = operation.schema
    data = {"$ref": f"{schema}.json"} if isinstance(schema, str) else schema
    return {
        "type": "object",
        "properties": {"data": _referring(data, ""), "next_cursor": {"type": ["string", "null"]}},
        "required": ["data", "next_cursor"],
    }


def _schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The schema of a model, with its definitions written out."""
    schema = model.model_json_schema()
    definitions = schema.pop("$defs", {})

    def written_out(value: Any) -> Any:
        if isinstance(value, dict):
            if str(value.get("$ref", "")).startswith("#/$defs/"):
                found = written_out(definitions[value["$ref"].removeprefix("#/$defs/")])
                return {**found, **{key: each for key, each in value.items() if key not in ("$ref", "default")}}
            return {key: written_out(each) for key, each in value.items() if key not in ("default", "title")}
        return [written_out(each) for each in value] if isinstance(value, list) else value

    made: dict[str, Any] = written_out(schema)
    return made


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A parameter that is not given has no value: it is never null."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    return {**rest, **kinds[0]} if len(kinds) == 1 else schema


def _add_documents(schemas: Path, components: dict[str, Any]) -> None:
    """Add the schemas in docs/schemas that the operations name, and the schemas that these name."""
    wanted = {each.schema for each in OPERATIONS if isinstance(each.schema, str)} | _PARTS
    while wanted:
        name = wanted.pop()
        text = (schemas / f"{name}.json").read_text(encoding="utf-8")
        schema = {key: value for key, value in json.loads(text).items() if key not in ("$schema", "$id")}
        components[name] = _referring(schema, name)
        wanted |= {other for other in re.findall(r'"\$ref": "([\w-]+)\.json', text) if other not in components}


def _referring(value: Any, name: str) -> Any:
    """A schema whose references name components."""
    if isinstance(value, dict):
        made = {key: _referring(each, name) for key, each in value.items()}
        if isinstance(ref := value.get("$ref"), str):
            file, _, pointer = ref.partition("#")
            made["$ref"] = _COMPONENT + (file.removesuffix(".json") or name) + pointer
        return made
    return [_referring(each, name) for each in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.stdout.write(json.dumps(openapi(Path(sys.argv[1])), indent=2, ensure_ascii=False) + "\n")
