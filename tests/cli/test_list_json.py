"""`--json` of `metaharvest list` is what docs/schemas says: every name, and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support import schemas
from support.lists import BASE, SiteFolder, said


def tell(command: str, *arguments: str | Path) -> Any:
    """The JSON of a command, which is as its schema says."""
    told = json.loads(said("list", command, *arguments, "--json").out)
    assert schemas.problems(f"list-{command}", told) == []
    return told


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
