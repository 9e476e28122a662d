"""The results of a rehearsal as SARIF 2.1.0 (OASIS), which code-scanning services and editors read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from metaharvest import __version__
from metaharvest.fetch.local_files import is_file_url, path_of
from metaharvest.model import Finding
from metaharvest.rehearsal.results import CheckedDocument, CheckedPart
from metaharvest.rules import RULES

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"


def sarif(parts: Iterable[CheckedPart], folder: Path) -> dict[str, Any]:
    """One SARIF log with a result for each finding. Files below `folder` are named by their path from there."""
    rules: dict[str, int] = {}
    results = [_result(*each, rules, folder) for part in parts for each in part.reported]
    driver: dict[str, Any] = {"name": "metaharvest", "version": __version__, "semanticVersion": __version__}
    driver["rules"] = [_rule(rule) for rule in rules]
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_ROOT: {"uri": _root(folder)}},
        "results": results,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: str) -> dict[str, Any]:
    known = RULES.get(rule)
    if known is None:
        return {"id": rule}
    return {
        "id": rule,
        "shortDescription": {"text": known.title},
        "fullDescription": {"text": known.cause},
        "help": {"text": known.remedy},
    }


def _result(document: CheckedDocument, finding: Finding, rules: dict[str, int], folder: Path) -> dict[str, Any]:
    index = rules.setdefault(finding.rule, len(rules))
    text = finding.with_remedy
    docid = document.docid or finding.docid
    # The same in every folder.
    about = finding.xpath or finding.message.replace(_root(folder), "")
    print_of = "\n".join((_artifact(document.url, folder)["uri"], docid, finding.rule, about))
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": "error" if finding.is_error else "warning",
        "message": {"text": text},
        "locations": [_location(document.url_of(finding), finding, folder)],
        "partialFingerprints": {"metaharvest/v1": hashlib.sha256(print_of.encode("utf-8", "replace")).hexdigest()},
    }
    if docid:
        result["properties"] = {"docid": docid}
    return result


def _location(url: str, finding: Finding, folder: Path) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": _artifact(url, folder)}
    if finding.line:
        region: dict[str, Any] = {"startLine": finding.line}
        if finding.column:
            region["startColumn"] = finding.column
        if finding.excerpt:
            region["snippet"] = {"text": finding.excerpt}
        physical["region"] = region
    location: dict[str, Any] = {"physicalLocation": physical}
    if finding.xpath:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.xpath, "kind": "element"}]
    return location


def _artifact(url: str, folder: Path) -> Mapping[str, str]:
    path = path_of(url) if is_file_url(url) else None
    if path is not None and path.is_relative_to(folder):
        return {"uri": path.as_uri().removeprefix(_root(folder)), "uriBaseId": _ROOT}
    return {"uri": url if path is None else path.as_uri()}


def _root(folder: Path) -> str:
    return f"{folder.as_uri().rstrip('/')}/"
