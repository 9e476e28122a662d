"""`metaharvest check` of a site's folder: it takes the same documents as `list build`, each once, from its file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.checking import LOOPBACK, broken, check, local_list, put
from support.harvester import eml
from support.http_server import HttpServer
from support.lists import BASE, said

RAIN = {"rain.xml": eml("alder.1.1"), "wind.xml": eml("alder.99.1")}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, without a settings file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-settings"))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def build(*options: str) -> Any:
    """`list build` of the folder `eml`: its exit code and what --json says."""
    answer = said("list", "build", "eml", "--base-url", BASE, "--json", *options)
    return answer.code, json.loads(answer.out)


def errors_of_build(*options: str) -> tuple[int, set[tuple[str, str]]]:
    code, answer = build("--dry-run", *options)
    return code, {(each["file"], each["rule"]) for each in answer["findings"] if each["level"] == "error"}


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


# -- documents that were changed since they were listed


def test_a_document_changed_without_a_new_revision_is_reported_with_the_command_that_raises_it(folder: Path) -> None:
    put(folder / "eml", {"a.xml": eml("alder.1.1"), "b.xml": eml("alder.2.1"), "c.xml": eml("alder.3.1")})
    assert build()[0] == 0
    assert "changed-content" not in check("eml").out
    put(folder / "eml", {"a.xml": eml("alder.1.1", "Other"), "b.xml": eml("alder.2.4", "Other")})
    answer = check("eml")
    assert answer.code == 0
    assert answer.out.count("list.changed-content") == 1
    assert "eml/harvest-list.xml:3  warning  list.changed-content  alder.1.1\n" in answer.out
    command = f"metaharvest list build eml --base-url {BASE} --write"
    assert f"`{command}` does both." in answer.out
    # The packageId of the other one was raised by hand: it is the list that is behind.
    assert "metaharvest list bump eml/harvest-list.xml alder.2 --to 4" in answer.out
    assert said(*command.split()[1:]).code == 0
    assert check("eml").out.startswith("eml/harvest-list.xml names 3 documents: 3 would be added.")


def test_a_package_id_brought_into_line_with_the_list_is_no_change(folder: Path) -> None:
    put(folder / "eml", {"a.xml": eml("alder.1.1")})
    assert build()[0] == 0
    put(folder / "eml", {"a.xml": eml("alder.1.1", "Other")})
    assert build()[0] == 0
    put(folder / "eml", {"a.xml": eml("alder.1.2", "Other")})
    assert "warning" not in check("eml").out
    put(folder / "eml", {"a.xml": eml("alder.1.2", "Another")})
    assert "list.changed-content  alder.1.2\n" in check("eml").out


def test_lists_at_a_url_and_beside_the_folder_remember_too(folder: Path, server: HttpServer) -> None:
    put(folder / "eml", {"a.xml": eml("alder.1.1")})
    base = server.url("/eml/")
    assert said("list", "build", "eml", "--base-url", base, "-o", "my list.xml").code == 0
    server.serve("/eml/harvest-list.xml", (folder / "my list.xml").read_bytes())
    server.serve("/eml/a.xml", eml("alder.1.1", "Other"))
    answer = check(f"{base}harvest-list.xml", *LOOPBACK)
    assert f"`metaharvest list build FOLDER --base-url {base} --write` does both." in answer.out
    put(folder / "eml", {"a.xml": eml("alder.1.1", "Other")})
    answer = check("my list.xml", "eml")
    assert f"`metaharvest list build eml --base-url {base} -o 'my list.xml' --write` does both." in answer.out


# -- packageIds and what to do about them


@pytest.mark.parametrize(
    ("package_id", "remedy"),
    [
        ("alder.10", 'Write packageId="alder.10.1": scope, number and revision.'),
        ("alder.010.1", 'Write packageId="alder.10.1": scope, number and revision.'),
        ("alder creek.5.2", 'Write packageId="alder-creek.5.2": scope, number and revision.'),
        ("doi:10.5072/FK2.1", "as in your-site.12.1."),
        ("urn:uuid:6f7a2b3c-0d1e-4f50-8a9b-0c1d2e3f4a5b", "as in your-site.12.1."),
        ("Rain", "as in your-site.12.1."),
        (f"alder.1.{10**20}", "as in your-site.12.1."),
    ],
)
def test_the_remedy_for_a_package_id_is_made_of_the_package_id_itself(
    folder: Path, package_id: str, remedy: str
) -> None:
    put(folder, {"eml/a.xml": eml(package_id), "eml/b.xml": eml("alder.99.1")})
    for answer in (check("eml"), check("eml/a.xml"), said("list", "build", "eml", "--base-url", BASE, "--dry-run")):
        assert remedy in answer.out
        assert "knb-lter" not in answer.out


@pytest.mark.parametrize(
    ("package_id", "remedy"),
    [
        ("alder.1.7", "raise the revision in the list to 7, with `metaharvest list bump list.xml alder.1 --to 7`."),
        ("alder.1.2", 'Write packageId="alder.1.5". `metaharvest list build FOLDER --base-url URL --write` does so'),
        ("alder.1", 'Write packageId="alder.1.5".'),
        ("alder.01.5", 'Write packageId="alder.1.5".'),
        (
            "doi:10.5072/FK2",
            'Where the other identifier is meant to stay, this may be left; otherwise write packageId="alder.1.5".',
        ),
        ("beech.1.5", 'Write packageId="alder.1.5", or correct the docid in the harvest list.'),
    ],
)
def test_a_package_id_that_differs_from_the_list_has_its_own_remedy(folder: Path, package_id: str, remedy: str) -> None:
    put(folder, {"list.xml": local_list("alder.1.5"), "eml/alder.1.5.xml": eml(package_id)})
    answer = check("list.xml")
    assert "eml.package-id-mismatch  alder.1.5\n" in answer.out
    assert f"What to do: {remedy}" in answer.out.replace("The document is newer than the list: ", "")
    assert ("DOI" in answer.out) == package_id.startswith("doi:")
    assert "revision 7 in the harvest list" not in answer.out
