"""`--json` of `metaharvest list` is what docs/schemas says: every name, and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from support.lists import BASE, SiteFolder, said

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "schemas"
SCHEMAS = {file.name: json.loads(file.read_text(encoding="utf-8")) for file in FOLDER.glob("list-*.json")}


def closed(schema: Any) -> Any:
    """The schema, with no names but those that it has."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(part) for name, part in schema.items()}
    return {**found, "additionalProperties": False} if isinstance(schema.get("properties"), dict) else found


REGISTRY: Registry[Any] = Registry().with_resources(
    [(name, DRAFT202012.create_resource(closed(schema))) for name, schema in SCHEMAS.items()]
)


def tell(command: str, *arguments: str | Path) -> Any:
    """The JSON of a command, which is as its schema says."""
    told = json.loads(said("list", command, *arguments, "--json").out)
    validator = Draft202012Validator({"$ref": f"list-{command}.json"}, registry=REGISTRY)
    assert [f"{error.json_path}: {error.message}" for error in validator.iter_errors(told)] == []
    return told


def test_the_schemas_are_schemas() -> None:
    for name, schema in SCHEMAS.items():
        Draft202012Validator.check_schema(schema)
        assert schema["$id"] == name


def test_what_the_commands_print_is_as_their_schemas_say(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path)
    build = (tmp_path, "--base-url", BASE)
    assert tell("build", *build)["findings"][0]["rule"] == "list.empty"
    rain = site.put("rain.xml", "alder.1.1")
    site.put("soil.xml", "alder.2.1")
    assert tell("build", *build)["written"] is True
    site.put("rain.xml", "alder.1.1", "Changed")
    site.put("birds.xml", "doi:10.5072/FK2")
    old = tmp_path / "old-list.xml"
    old.write_bytes(site.list_file.read_bytes())
    assert tell("build", *build, "--dry-run")["dry_run"] is True
    assert tell("build", *build, "--write")["package_ids_written"] == 1
    assert tell("bump", site.list_file, "alder.2")["totals"]["raised_by_hand"] == 1
    assert tell("remove", site.list_file, "alder.2")["totals"]["removed"] == 1
    assert tell("add", site.list_file, rain)["totals"]["unchanged"] == 1
    assert tell("validate", site.list_file) == {
        "list": str(site.list_file),
        "valid": True,
        "listed": 1,
        "findings": [],
    }
    assert [each["kind"] for each in tell("diff", old, site.list_file)["differences"]] == ["raised", "removed"]


def test_what_they_print_of_a_list_that_is_not_valid_is_so_too(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path)
    rain = site.put("rain.xml", "alder.1.1")
    site.list_file.write_bytes(b"<harvestList>")
    for command, *arguments in (("add", rain, "--base-url", BASE), ("bump", "alder.1"), ("remove", "alder.1")):
        told = tell(str(command), site.list_file, *arguments)
        assert (told["valid"], told["written"], told["findings"] != []) == (False, False, True)
    assert tell("build", tmp_path, "--base-url", BASE)["valid"] is False
    assert tell("validate", site.list_file)["valid"] is False
    assert tell("diff", site.list_file, site.list_file)["findings"] != []
