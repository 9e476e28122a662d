"""`metaharvest check` of a site's folder: it takes the same documents as `list build`, each once, from its file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.checking import LOOPBACK, broken, check, put
from support.harvester import eml
from support.http_server import HttpServer
from support.lists import BASE, said

RAIN = {"rain.xml": eml("alder.1.1"), "wind.xml": eml("alder.99.1")}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of somebody who has no settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-settings"))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def build(*options: str) -> Any:
    """`list build` of the folder `eml`: its exit code and what --json says."""
    answer = said("list", "build", "eml", "--base-url", BASE, "--json", *options)
    return answer.code, json.loads(answer.out)


def errors_of_build(*options: str) -> tuple[int, set[tuple[str, str]]]:
    code, told = build("--dry-run", *options)
    return code, {(each["file"], each["rule"]) for each in told["findings"] if each["level"] == "error"}


def errors_of_check(*arguments: str) -> tuple[int, set[tuple[str, str]]]:
    answer = check(*arguments, "--json")
    findings = json.loads(answer.out)["findings"]
    return answer.code, {
        (each["file"].removeprefix("eml/"), each["rule"]) for each in findings if each["level"] == "error"
    }


@pytest.mark.parametrize(
    ("files", "rules"),
    [
        pytest.param({}, {}, id="well"),
        pytest.param({"report.eml": eml("alder.2.1")}, {}, id="eml-ending"),
        pytest.param({"doi.xml": eml("doi:10.5072/FK2")}, {"doi.xml": "build.no-docid"}, id="doi"),
        pytest.param({"bare.xml": eml("alder.2")}, {"bare.xml": "build.no-docid"}, id="no-revision"),
        pytest.param({"zero.xml": eml("alder.02.1")}, {"zero.xml": "build.no-docid"}, id="leading-zero"),
        pytest.param({"big.xml": eml(f"alder.2.{10**19}")}, {"big.xml": "build.no-docid"}, id="too-large"),
        pytest.param({"copy.xml": eml("alder.1.1")}, {"copy.xml": "build.copy", "rain.xml": "build.copy"}, id="copy"),
        pytest.param({"new.xml": eml("alder.1.2")}, {"rain.xml": "build.older-revision"}, id="older"),
        pytest.param({"a.xml.txt": eml("alder.2.1")}, {"a.xml.txt": "build.ending"}, id="hidden-ending"),
        pytest.param({"a.XML.TXT": eml("alder.2.1")}, {"a.XML.TXT": "build.ending"}, id="hidden-ending-in-capitals"),
        pytest.param({"a.eml.html": eml("alder.2.1")}, {"a.eml.html": "build.ending"}, id="hidden-html"),
        pytest.param({"a.xml.txt": b"notes about <a.xml>"}, {}, id="a-text"),
        pytest.param(
            {"notes.txt": eml("alder.2.1"), "data.csv": b"1,2", "a.xml.bak": eml("alder.3.1")}, {}, id="others"
        ),
        pytest.param({"style.xml": b"<stylesheet/>"}, {"style.xml": "eml.not-eml"}, id="other-xml"),
        pytest.param({"cut.xml": eml("alder.2.1")[:-30]}, {"cut.xml": "xml.unclosed"}, id="cut"),
        pytest.param({"empty.xml": b"\n"}, {"empty.xml": "xml.empty"}, id="empty"),
        pytest.param({"sub/deep/doi.xml": eml("x")}, {"sub/deep/doi.xml": "build.no-docid"}, id="below"),
    ],
)
def test_check_refuses_what_list_build_refuses(folder: Path, files: dict[str, bytes], rules: dict[str, str]) -> None:
    put(folder / "eml", {**RAIN, **files})
    expected = (1 if rules else 0, set(rules.items()))
    assert errors_of_build() == expected
    assert errors_of_check("eml") == expected


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda eml_folder: (eml_folder / "gone.xml").symlink_to("nowhere.xml"), ("gone.xml", "build.link")),
        (
            lambda eml_folder: (eml_folder / "out.xml").symlink_to(eml_folder.parent / "x.xml"),
            ("out.xml", "build.link"),
        ),
        (lambda eml_folder: os.mkfifo(eml_folder / "pipe.xml"), ("pipe.xml", "build.unreadable")),
    ],
)
def test_what_is_no_file_of_the_folder_is_refused_by_both(
    folder: Path, make: Callable[[Path], object], rule: tuple[str, str]
) -> None:
    put(folder, {"x.xml": eml("alder.9.1"), "eml/rain.xml": eml("alder.1.1")})
    make(folder / "eml")
    assert errors_of_build() == errors_of_check("eml") == (1, {rule})


@pytest.mark.parametrize(
    "options",
    [
        ("--exclude", "drafts", "--revisions", "newest"),
        ("--pattern", "rain*.xml", "--revisions", "newest"),
        ("--from-names", "{scope}.{identifier}-*.xml", "--exclude", "rain*", "--exclude", "drafts"),
    ],
)
def test_the_options_of_list_build_mean_the_same(folder: Path, options: tuple[str, ...]) -> None:
    put(
        folder / "eml",
        {
            "rain-old.xml": eml("alder.1.1"),
            "rain.xml": eml("alder.1.2"),
            "drafts/new.xml": eml("nothing"),
            "alder.7-soil.xml": eml("alder.7.1"),
        },
    )
    assert errors_of_check("eml")[0] == 1
    assert errors_of_build(*options) == errors_of_check("eml", *options) == (0, set())


def test_what_is_not_taken_is_named_with_what_to_do(folder: Path) -> None:
    put(folder / "eml", {**RAIN, "document.xml.txt": eml("alder.2.1"), "soil": eml("alder.3.1"), "old.xml~": b"<eml/>"})
    answer = check("eml")
    assert "eml/document.xml.txt:2:1  error  build.ending\n" in answer.out
    assert "ends in .txt: it is not taken." in answer.out
    assert "What to do: Rename it to document.xml. Windows hides the ends of names" in answer.out
    assert "eml/soil: This is an EML document, and the name of its file does not end in .xml or .eml" in answer.err
    assert "links to files of the folder: old.xml~." in answer.err
    built = said("list", "build", "eml", "--base-url", BASE)
    assert "document.xml.txt  error  build.ending\n" in built.out
    assert "soil  warning  build.ending\n" in built.out


def test_a_document_that_a_list_in_the_folder_names_is_checked_once_from_its_file(folder: Path) -> None:
    put(folder / "eml", {f"sub/{number} ü.xml": eml(f"alder.{number}.1") for number in range(1, 5)})
    put(folder / "eml", {"sub/4 ü.xml": broken("alder.4.1"), "new.xml": eml("alder.8.1")})
    assert build("--exclude", "new.xml")[0] == 0
    answer = check("eml")
    assert "eml/sub/4 ü.xml:6:5  error  schema.unexpected-element  alder.4.1\n" in answer.out
    assert "eml/harvest-list.xml names 4 documents: 3 would be added and 1 is not valid.\n" in answer.out
    assert "eml/new.xml would be added.\n" in answer.out
    assert "Together 5 documents" in answer.out
    assert "4 documents are checked from the folder eml, not from the web addresses" in answer.err
    assert "must name each by its https:// URL" not in answer.out
    assert check("eml/harvest-list.xml", "eml").out == answer.out


def test_a_document_is_found_by_its_docid_where_the_list_has_another_address(folder: Path, server: HttpServer) -> None:
    put(folder / "eml", {"a.xml": eml("alder.1.1"), "b.xml": eml("alder.2.1")})
    server.serve("/get/2", eml("alder.2.1"))
    entries = "".join(
        f"<document><docid><scope>alder</scope><identifier>{number}</identifier><revision>1</revision></docid>"
        "<documentType>eml://ecoinformatics.org/eml-2.1.1</documentType>"
        f"<documentURL>{server.url('/get')}?id={number}</documentURL></document>"
        for number in (1, 2)
    )
    text = f'<l:harvestList xmlns:l="eml://ecoinformatics.org/harvestList">{entries}</l:harvestList>'
    (folder / "eml" / "list.xml").write_text(text)
    answer = check("eml", *LOOPBACK)
    assert (answer.code, server.requests) == (0, [])
    assert "eml/list.xml names 2 documents: 2 would be added.\n" in answer.out


def test_a_docid_that_only_the_list_gives_is_one_for_both(folder: Path) -> None:
    put(folder / "eml", {"alder.7.1.xml": eml("doi:10.5072/FK2")})
    assert build("--from-names", "{scope}.{identifier}.{revision}.xml")[0] == 0
    assert errors_of_check("eml") == (0, set())
    assert errors_of_build() == (0, set())


def test_the_same_finding_of_many_documents_is_shown_once_with_all_places(folder: Path) -> None:
    put(folder / "eml", {f"{number}.xml": broken(f"alder.{number}.1") for number in range(1, 10)})
    answer = check("eml")
    assert answer.out.count("What to do:") == 1
    assert answer.out.count("The same at 8 more places:\n") == 1
    assert all(f"eml/{number}.xml:6:5" in answer.out for number in range(1, 10))
    assert "9 errors." in answer.out


def test_a_package_id_beyond_all_numbers_is_no_unexpected_error(folder: Path) -> None:
    put(folder, {"big.xml": eml(f"alder.{10**30}.{10**30}")})
    answer = check("big.xml")
    assert (answer.code, "Traceback" in answer.err) == (0, False)
    assert "big.xml:2:1  warning  eml.package-id\n" in answer.out
