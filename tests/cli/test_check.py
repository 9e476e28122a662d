"""`metaharvest check`: lists, documents and folders, local and remote, with no settings and no database."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from pathlib import Path

import pytest

from support.checking import LOOPBACK, broken, check, local_list, put
from support.harvester import eml, harvest_list, publish
from support.http_server import HttpServer


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of somebody who has no settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-settings"))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def test_a_document_is_shown_with_its_line_and_a_caret_under_the_place(folder: Path) -> None:
    put(folder, {"gauge.xml": broken("a.1.1")})
    said = check("gauge.xml")
    assert (said.code, said.err) == (1, "")
    head, message, line, caret, todo, *_ = said.out.splitlines()
    assert head == "gauge.xml:6:5  error  schema.unexpected-element"
    assert message == "  contat is not known inside dataset at this place."
    assert line == "     6 |     <contat><organizationName>Test station</organizationName></contat>"
    assert caret == "       |     ^"
    assert todo.startswith("  What to do: Did you mean contact?")
    assert "gauge.xml is not valid." in said.out
    assert [file.name for file in folder.iterdir()] == ["gauge.xml"]


def test_a_good_document_says_so_in_three_lines(folder: Path) -> None:
    put(folder, {"a.xml": eml("a.1.1")})
    said = check("a.xml")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "a.xml would be added.",
        "Compared with no repository: every document counts as new.",
        "This was a rehearsal: nothing was written.",
    ]


def test_a_list_in_a_file_names_documents_beside_itself(folder: Path) -> None:
    away = folder / "elsewhere"
    put(away, {"eml/a.1.1.xml": eml("a.1.1"), "eml/b 2.xml": eml("a.2.1"), "up.xml": broken("a.3.1")})
    entries = [
        ("a.1.1", "eml/a.1.1.xml"),
        ("a.2.1", (away / "eml" / "b 2.xml").as_uri()),
        ("a.3.1", "../elsewhere/up.xml"),
        ("a.4.1", "eml/gone.xml"),
        ("a.5.1", "ftp://example.org/x.xml"),
    ]
    put(away, {"list.xml": harvest_list(entries)})
    refused = check("elsewhere/list.xml")
    assert (refused.code, "elsewhere/list.xml:7  error  list.url  a.5.1" in refused.out) == (1, True)
    put(away, {"list.xml": harvest_list(entries[:-1])})
    said = check("elsewhere/list.xml")
    assert said.code == 1
    assert "elsewhere/up.xml:6:5  error  schema.unexpected-element  a.3.1" in said.out
    assert "elsewhere/eml/gone.xml  error  file.missing  a.4.1" in said.out
    ends = "names 4 documents: 2 would be added, 1 could not be fetched and 1 is not valid."
    assert f"elsewhere/list.xml {ends}\n" in said.out
    assert "4 documents are read from this computer: a list that is published must name each by its https:// URL." in (
        said.out
    )


def test_a_path_of_windows_in_a_list_gets_its_remedy(folder: Path) -> None:
    put(folder, {"eml/a.1.1.xml": eml("a.1.1"), "list.xml": harvest_list([("a.1.1", "eml\\a.1.1.xml")])})
    said = check("list.xml")
    assert said.code == 1
    assert "error  file.missing  a.1.1" in said.out
    assert "What to do: Write / in place of \\ in the URL." in said.out


def test_a_list_that_notepad_saved_as_utf_16_is_known_as_a_list(folder: Path) -> None:
    text = local_list("a.1.1").decode().replace('"1.0"', '"1.0" encoding="UTF-8"')
    put(folder, {"list.xml": text.encode("utf-16")})
    said = check("list.xml")
    assert said.code == 1
    assert "list.xml:1  error  list.encoding\n  The list is saved as UTF-16, and its first line says UTF-8." in said.out


def test_a_published_list_may_name_no_files_and_no_relative_urls(server: HttpServer) -> None:
    server.serve("/list.xml", local_list("a.1.1"))
    said = check(server.url("/list.xml"), *LOOPBACK)
    assert said.code == 1
    assert "list.url" in said.out
    server.serve("/list.xml", harvest_list([("a.1.1", "file:///etc/passwd")]))
    assert "list.url" in check(server.url("/list.xml"), *LOOPBACK).out
    assert [request.path for request in server.requests] == ["/list.xml"] * 2


@pytest.mark.quick
def test_a_folder_is_looked_through_for_lists_and_for_the_documents_that_they_do_not_name(folder: Path) -> None:
    put(
        folder / "site",
        {
            "harvest-list.xml": local_list("a.1.1", "a.2.1"),
            "eml/a.1.1.xml": eml("a.1.1"),
            "eml/a.2.1.xml": broken("a.2.1"),
            "eml/drafts/new.xml": eml("a.3.1"),
            "eml/drafts/empty.XML": b"",
            "eml/.hidden.xml": broken("a.9.1"),
            ".git/x.xml": broken("a.9.2"),
            "style.xml": b"<stylesheet/>",
            "data.csv": b"1,2",
        },
    )
    said = check("site")
    assert said.code == 1
    assert "site/style.xml:1:1  error  eml.not-eml\n" in said.out
    assert "links to files of the folder: eml/.hidden.xml." in said.err
    assert "site/harvest-list.xml names 2 documents: 1 would be added and 1 is not valid." in said.out
    assert "site, 3 documents: 1 would be added, 1 could not be fetched and 1 is not valid." in said.out
    assert "Together 5 documents: 2 would be added, 1 could not be fetched and 2 are not valid." in said.out
    assert "a.9" not in said.out


def test_several_arguments_are_told_together_and_a_file_only_once(folder: Path, server: HttpServer) -> None:
    put(folder, {"one.xml": eml("a.1.1"), "two.xml": broken("a.2.1"), "more/three.xml": eml("a.3.1")})
    url = publish(server, "b.1.1")
    said = check("one.xml", "./one.xml", "two.xml", "more", url, *LOOPBACK)
    assert said.code == 1
    assert f"{url} names 1 document: 1 would be added." in said.out
    assert "\n3 documents: 2 would be added and 1 is not valid.\n" in said.out
    assert "Together 4 documents: 3 would be added and 1 is not valid." in said.out


def test_a_single_document_at_a_url_is_checked(server: HttpServer) -> None:
    server.serve("/gauge.xml", broken("a.1.1"))
    said = check(server.url("/gauge.xml"), *LOOPBACK)
    assert said.code == 1
    first, _, line, caret, *_ = said.out.splitlines()
    assert first == f"{server.url('/gauge.xml')} line 6, column 5  error  schema.unexpected-element"
    assert line.startswith("     6 |     <contat>")
    assert caret == "       |     ^"
    assert f"{server.url('/gauge.xml')} is not valid." in said.out


def test_lines_of_documents_and_lists_that_were_fetched_have_a_caret_too(server: HttpServer) -> None:
    server.serve("/bad.xml", broken("a.2.1"))
    said = check(publish(server, "a.1.1", also=[("a.2.1", server.url("/bad.xml"))]), *LOOPBACK)
    assert "     6 |     <contat>" in said.out
    assert "\n       |     ^\n" in said.out
    server.serve("/list.xml", harvest_list([("a.1.1", "https://example.org/x?a=1&b=2")]))
    said = check(server.url("/list.xml"), *LOOPBACK)
    place, line, caret = (said.out.splitlines()[number] for number in (0, 2, 3))
    assert "line 3, column " in place
    assert line[caret.index("^")] == "&"


def test_an_address_that_is_not_public_is_refused_with_the_option_that_allows_it(server: HttpServer) -> None:
    url = publish(server, "a.1.1")
    said = check(url)
    assert said.code == 1
    assert "http.address-not-public" in said.out
    assert "`metaharvest check URL --allow-network 127.0.0.1/32` asks it; `list add`" in said.out
    assert server.requests == []
    assert check(url, "--allow-network", "127.0.0.1/32").code == 0
    wrong = check(url, "--allow-network", "127.0.0.1/99")
    assert (wrong.code, "is not an address range" in wrong.err) == (2, True)


def test_a_host_without_https_is_understood(server: HttpServer) -> None:
    url = publish(server, "a.1.1")
    said = check(url.removeprefix("http://"), *LOOPBACK)
    assert said.code == 0
    assert f"There is no file named 127.0.0.1:{server.port}/list.xml: it is taken for {url}." in said.err


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("localhost:9/list.xml", "http://localhost:9/list.xml"),
        ("127.0.0.1:9", "http://127.0.0.1:9"),
        ("[::1]:9/list.xml", "http://[::1]:9/list.xml"),
        ("eml-server:9/list.xml", "http://eml-server:9/list.xml"),
        ("bücher.invalid/list.xml", "https://bücher.invalid/list.xml"),
        ("example.invalid:8443", "https://example.invalid:8443"),
        ("www.example.invalid", "https://www.example.invalid"),
    ],
)
def test_a_host_is_known_by_its_port_or_its_path(given: str, url: str) -> None:
    assert f"There is no file named {given}: it is taken for {url}." in check(given).err


@pytest.mark.parametrize("given", ["rain", "folder/list.xml", "alder.1.2", "list.xml", "sites.xml/a"])
def test_what_may_be_the_name_of_a_file_is_taken_for_none(given: str) -> None:
    said = check(given)
    assert (said.code, "There is no file or folder named" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Name a harvest list"),
        ([""], "Name a harvest list"),
        (["nope.xml"], "There is no file or folder named nope.xml"),
        (["/no/such/list.xml"], "There is no file or folder named /no/such/list.xml"),
        (["folder"], "There is nothing to check in folder"),
        (["ftp://example.org/list.xml"], "is not a web address"),
        (["file://other/list.xml"], "names no file of this computer"),
        (["/dev/null"], "not a file, but a device"),
        (["folder", "--site", "alder"], "nothing to check"),
        (["a.xml", "--json", "--csv"], "--json and --csv"),
        (["a.xml", "--json", "--sarif", "-"], "--json and --sarif -"),
        (["a.xml", "--sarif", "none/x.sarif"], "nothing can be written in none"),
        (["a.xml", "--watch", "--json"], "--watch"),
        (["a.xml", "--against", "fern"], "There is no target 'fern'. Known are: target, embedded."),
        (["a.xml", "--against", "embedded"], "There is no settings file"),
        (["a.xml", "--site", "alder"], "One harvest list can be rehearsed as a registered site"),
        (["list.xml", "--site", "alder"], "There is no site named 'alder'"),
    ],
)
def test_what_cannot_be_checked_is_told_in_a_sentence(folder: Path, arguments: list[str], said: str) -> None:
    put(folder, {"folder/readme.txt": b"text", "a.xml": eml("a.1.1"), "list.xml": local_list("a.1.1")})
    told = check(*arguments)
    assert said in " ".join(told.err.split())
    assert "Traceback" not in told.err
    code = 69 if "no settings file" in said else 2
    # Programs read the same sentence from stdout.
    assert json.loads(told.out)["error"]["exit_code"] == code if "--json" in arguments else told.out == ""
    assert told.code == code


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n", "xml.not-xml"),
        (b"", "http.empty"),
        (b"\x89PNG\r\n\x1a\n", "xml"),
        (b"some text", "xml.not-xml"),
        (b"<html><head><title>Log in</title></head></html>", "http.html-page"),
        (b"Warning: mysql_connect()\n<h:harvestList xmlns:h='eml://ecoinformatics.org/harvestList'/>", "list."),
        (local_list("a.1.1")[:-40], "list.truncated"),
        (harvest_list([("a.1.1", "https://example.org/?a=1&b=2")]), "list.ampersand"),
        (b"<harvestList/>", "list."),
        (eml("a.1.1")[:-12], "xml."),
        (eml("doi:10.5072/FK2").replace(b"<contact>", b"<contact id='doi:10.5072/FK2'>"), "eml.id-duplicate"),
        (b"<a>" * 300_000, "xml."),
    ],
)
def test_files_that_are_no_good_have_a_finding_each(folder: Path, content: bytes, rule: str) -> None:
    put(folder, {"file.xml": content})
    said = check("file.xml", "--json")
    findings = json.loads(said.out)["findings"]
    assert said.code == 1
    assert [finding["rule"] for finding in findings if finding["rule"].startswith(rule)], findings
    text = check("file.xml").out
    assert text.startswith("file.xml")
    assert "Traceback" not in text


def test_a_file_that_may_not_be_read_is_a_finding(folder: Path) -> None:
    put(folder, {"eml/a.xml": eml("a.1.1"), "list.xml": local_list("a.1.1")})
    (folder / "eml" / "link.xml").symlink_to(folder / "gone.xml")
    said = check("eml")
    assert said.code == 1
    assert "eml/link.xml  error  build.link" in said.out
    if os.geteuid():
        (folder / "eml" / "a.xml").chmod(0)
        assert "file.unreadable" in check("eml").out


def test_a_file_that_is_too_large_is_not_read_to_its_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__MAX_DOCUMENT_BYTES", "10000")
    with (folder / "huge.xml").open("wb") as file:
        file.write(eml("a.1.1"))
        file.truncate(2_000_000_000)
    said = check("huge.xml")
    assert said.code == 1
    assert "huge.xml  error  http.too-large" in said.out


def test_documents_without_a_list_are_judged_by_their_own_package_ids(folder: Path) -> None:
    put(
        folder,
        {
            "a.xml": eml("a.1.1"),
            "b.xml": eml("a.1.1", "Another"),
            "c.xml": broken("a.1.1"),
            "doi.xml": eml("doi:10.5072/FK2"),
            "other.xml": eml("a.2.1"),
        },
    )
    said = check("a.xml", "b.xml", "c.xml", "doi.xml", "other.xml")
    assert said.code == 1
    assert "b.xml:2:1  warning  eml.package-id-repeated" in said.out
    assert "The packageId is 'a.1.1', as it is in a.xml." in said.out
    assert "c.xml:6:5  error  schema.unexpected-element" in said.out
    assert "doi.xml:2:1  warning  eml.package-id\n" in said.out
    assert "harvest list calls" not in said.out
    assert "5 documents: 4 would be added and 1 is not valid." in said.out
    assert "1 error and 2 warnings." in said.out


def test_what_comes_through_a_pipe_is_checked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, {"eml/a.1.1.xml": eml("a.1.1")})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(local_list("a.1.1"))))
    said = check("-")
    assert said.code == 0
    assert "standard input names 1 document: 1 would be added." in said.out
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_bytes(broken("a.1.1")))
    writer.start()
    said = check("pipe")
    writer.join()
    assert said.code == 1
    assert "pipe:6:5  error" in said.out
    assert "     6 |     <contat>" in said.out


def test_an_empty_pipe_is_told_with_what_to_do(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    said = check("-")
    assert said.code == 2
    assert "Nothing came through standard input: " in said.err
    assert "in front of the pipe" in said.err
    assert "metaharvest-" not in said.err


def test_terminal_controls_in_what_is_checked_do_no_harm(folder: Path) -> None:
    put(folder, {"a\x1b[31m.xml": broken("a.1.1").replace(b"<contat>", b"<contat>\xc2\x9b31m[bold]")})
    said = check(".")
    assert said.code == 1
    assert "\x1b" not in said.out
    assert "\x9b" not in said.out
    assert "[bold]" in said.out


def test_a_place_far_along_a_long_line_is_shown_with_what_is_around_it(folder: Path) -> None:
    one_line = broken("a.1.1").replace(b"\n", b"").replace(b"<title>", b"<title>" + "水文 ".encode() * 200)
    put(folder, {"a.xml": one_line})
    _, _, line, caret, *_ = check("a.xml").out.splitlines()
    assert line.startswith("     1 | …")
    assert len(line) < 150
    text = line[: line.index("<contat>")]
    wide = sum(character in "水文" for character in text)
    assert caret.index("^") == len(text) + wide


def test_many_findings_of_a_rule_are_counted(folder: Path) -> None:
    put(folder, {f"eml/{number}.xml": broken(f"a.{number}.1") for number in range(60)})
    said = check("eml")
    assert said.out.count("  error  schema.unexpected-element\n") == 1
    assert "The same at 49 more places:\n    eml/1.xml:6:5\n" in said.out
    assert said.out.count("\n    eml/") == 49
    assert "10 more like these (schema.unexpected-element): --csv has all of them." in said.out
    assert check("eml", "--csv").out.count("schema.unexpected-element") == 60


def test_json_has_the_run_its_parts_and_every_finding_with_its_file(folder: Path) -> None:
    put(folder, {"list.xml": local_list("a.1.1"), "eml/a.1.1.xml": broken("a.1.1"), "eml/b.xml": eml("a.2.1")})
    said = check("list.xml", "eml", "--json")
    told = json.loads(said.out)
    assert said.code == 1
    assert [(site["site_name"], site["listed"], site["invalid"]) for site in told["sites"]] == [
        ("list.xml", 1, 1),
        ("b.xml", 1, 0),
    ]
    [finding] = told["findings"]
    assert (finding["file"], finding["line_number"], finding["column_number"]) == ("eml/a.1.1.xml", 6, 5)


def test_the_table_has_the_documents_of_all_parts_under_one_header(folder: Path) -> None:
    put(folder, {"list.xml": local_list("a.1.1"), "eml/a.1.1.xml": broken("a.1.1"), "eml/b.xml": eml("a.2.1")})
    lines = check("list.xml", "eml", "--csv").out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["\ufeffdocid", "a.1.1", "a.2.1"]


def test_the_help_has_examples_and_no_command_that_is_not_there() -> None:
    said = check("--help")
    assert said.code == 0
    assert "metaharvest check eml/ --watch" in said.out
