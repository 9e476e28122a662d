"""`metaharvest list validate` and `diff`: what a harvest would say of a list, and see between two."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from metaharvest.config.paths import data_folder
from support.harvester import TYPE, harvest_list
from support.lists import BASE, said

SAMPLES = data_folder("sample_sites")


def put(folder: Path, name: str, *entries: tuple[str, str], document_type: str = TYPE) -> Path:
    path = folder / name
    path.write_bytes(harvest_list([(docid, BASE + url) for docid, url in entries], document_type))
    return path


# -- validate


def test_a_valid_list_is_valid_without_asking_any_server(tmp_path: Path) -> None:
    path = put(tmp_path, "list.xml", ("a.1.1", "1.xml"), ("a.2.1", "2.xml"))
    told = said("list", "validate", path)
    assert (told.code, told.err) == (0, "")
    assert told.out == f"{path} is a valid harvest list of 2 documents.\n"
    assert json.loads(said("list", "validate", path, "--json").out) == {
        "list": str(path),
        "valid": True,
        "listed": 2,
        "findings": [],
    }


def test_a_finding_is_printed_as_by_check(tmp_path: Path) -> None:
    path = put(tmp_path, "list.xml", ("a.1.two", "1.xml"))
    told, rehearsed = said("list", "validate", path), said("check", path)
    finding, _, _ = told.out.partition("\n\n")
    assert finding.splitlines()[-2].endswith("^")
    assert rehearsed.out.startswith(finding)


def test_every_problem_is_told_with_its_line_as_the_harvest_would(tmp_path: Path) -> None:
    path = put(tmp_path, "list.xml", ("a.1.1", "1.xml"), ("a.2.1", "a b.xml"), ("a.3.-1", "3.xml"))
    told = said("list", "validate", path)
    assert told.code == 1
    assert f"{path}:4  error  list.url  a.2.1\n" in told.out
    assert "contains a space" in told.out
    assert "What to do: Write a space in a URL as %20" in told.out
    assert "is no valid harvest list: nothing of it would be harvested." in told.out
    told_json = json.loads(said("list", "validate", path, "--json").out)
    assert [finding["rule"] for finding in told_json["findings"]] == ["list.url", "list.revision"]
    assert (told_json["valid"], told_json["listed"]) == (False, 0)


def test_problems_of_one_kind_in_one_list_are_all_printed(tmp_path: Path) -> None:
    path = put(tmp_path, "list.xml", ("a.1.one", "1.xml"), ("a.2.two", "2.xml"))
    printed = said("list", "validate", path).out
    assert [docid in printed for docid in ("a.1.one", "a.2.two")] == [True, True]
    assert ("'one'" in printed, "'two'" in printed) == (True, True)


def test_a_docid_that_is_listed_twice_is_a_warning_as_in_the_harvest(tmp_path: Path) -> None:
    path = put(tmp_path, "list.xml", ("a.1.1", "1.xml"), ("a.1.1", "2.xml"), ("a.1.2", "3.xml"))
    told = said("list", "validate", path)
    assert told.code == 0
    assert "warning  list.duplicate  a.1.1" in told.out


def test_file_urls_are_accepted_where_asked(tmp_path: Path) -> None:
    path = tmp_path / "list.xml"
    path.write_bytes(harvest_list([("a.1.1", "file:///srv/eml/1.xml")]))
    assert said("list", "validate", path).code == 1
    assert said("list", "validate", path, "--file-urls").code == 0


def test_the_sample_lists_are_what_their_network_takes_them_for() -> None:
    codes = {path.parent.name: said("list", "validate", path).code for path in SAMPLES.glob("*/harvest-list.xml")}
    assert codes == {"alder-creek": 0, "basalt-flats": 0, "cedar-marsh": 1, "elm-ridge": 0, "fern-gorge": 0}


@pytest.mark.parametrize("command", [("validate",), ("diff", "{there}"), ("remove", "a.1")])
def test_what_is_no_file_is_a_mistake_in_usage(tmp_path: Path, command: tuple[str, ...]) -> None:
    there = put(tmp_path, "list.xml", ("a.1.1", "1.xml"))
    name, *rest = (part.format(there=there) for part in command)
    for path in (tmp_path, tmp_path / "nowhere.xml"):
        told = said("list", name, path, *rest)
        assert told.code == 2
        assert str(path) in told.err
        assert "Traceback" not in told.err


# -- diff


def test_lists_that_a_harvest_takes_for_the_same_do_not_differ(tmp_path: Path) -> None:
    old = put(tmp_path, "old.xml", ("a.1.1", "1.xml"), ("a.2.1", "2.xml"))
    new = put(tmp_path, "new.xml", ("a.2.1", "2.xml"), ("a.1.1", "1.xml"))
    new.write_bytes(new.read_bytes().replace(b"<scope>", b"<scope>\n").replace(b"<document>", b"<!-- x --><document>"))
    told = said("list", "diff", old, new)
    assert (told.code, told.out) == (0, f"A harvest sees no difference between {old} and {new}.\n")
    assert json.loads(said("list", "diff", old, new, "--json").out)["differences"] == []


def test_a_harvest_sees_documents_come_go_rise_fall_and_move(tmp_path: Path) -> None:
    old = put(
        tmp_path,
        "old.xml",
        *(("gone.1.1", "g.xml"), ("up.1.1", "u.xml"), ("down.1.5", "d.xml"), ("moved.1.1", "old.xml")),
        *(("same.1.1", "s.xml"), ("several.1.1", "1.xml"), ("several.1.2", "2.xml"), ("less.1.1", "1.xml")),
        ("less.1.2", "2.xml"),
    )
    new = put(
        tmp_path,
        "new.xml",
        *(("new.1.1", "n.xml"), ("up.1.3", "u.xml"), ("down.1.4", "d.xml"), ("moved.1.1", "new.xml")),
        *(("same.1.1", "s.xml"), ("several.1.1", "1.xml"), ("several.1.2", "2.xml"), ("several.1.3", "3.xml")),
        *(("several.1.0", "0.xml"), ("less.1.2", "2.xml")),
    )
    told = said("list", "diff", old, new)
    assert told.code == 1
    rows = dict(line.split(maxsplit=1) for line in told.out.split("\n\n")[0].splitlines()[1:])
    assert {kind: row.split("  ")[0] for kind, row in rows.items()} == {
        "added": "new.1.1",
        "removed": "gone.1.1",
        "raised": "up.1.3 (was 1)",
        "lowered": "down.1.4 (was 5)",
        "url-changed": "moved.1.1",
        "revision-added": "several.1.0",
        "revision-removed": "less.1.1",
    }
    assert "several.1.3 (was 2)" in told.out
    assert f"{BASE}old.xml -> {BASE}new.xml" in told.out
    assert "2 have a higher revision: fetched, checked and updated." in told.out
    assert "1 has a lower revision: reported as stale, and left as in the repository." in told.out
    found = json.loads(said("list", "diff", old, new, "--json").out)
    assert found["totals"] == {
        "added": 1,
        "removed": 1,
        "raised": 2,
        "lowered": 1,
        "url_changed": 1,
        "type_changed": 0,
        "revision_added": 1,
        "revision_removed": 1,
    }
    [raised] = [each for each in found["differences"] if each["document_id"] == "up.1"]
    assert (raised["kind"], raised["before"]["revision"], raised["after"]["docid"]) == ("raised", 1, "up.1.3")
    ids = [each["document_id"] for each in found["differences"]]
    assert ids == sorted(ids)


def test_a_new_type_is_seen(tmp_path: Path) -> None:
    old = put(tmp_path, "old.xml", ("a.1.1", "1.xml"))
    new = put(tmp_path, "new.xml", ("a.1.1", "1.xml"), document_type="https://eml.ecoinformatics.org/eml-2.2.0")
    told = said("list", "diff", old, new)
    assert told.code == 1
    assert f"{TYPE} -> https://eml.ecoinformatics.org/eml-2.2.0" in told.out


def test_a_list_that_is_not_valid_cannot_be_compared(tmp_path: Path) -> None:
    good = put(tmp_path, "good.xml", ("a.1.1", "1.xml"))
    bad = tmp_path / "bad.xml"
    bad.write_bytes(good.read_bytes()[:-20])
    for pair in ((good, bad), (bad, good)):
        told = said("list", "diff", *pair)
        assert told.code == 2
        assert f"{bad} is no valid harvest list" in told.err
        told = said("list", "diff", *pair, "--json")
        assert (told.code, told.err) == (2, "")
        assert {finding["file"] for finding in json.loads(told.out)["findings"]} == {str(bad)}
