"""`metaharvest list add`, `remove` and `bump`: one entry at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.harvester import SETTINGS, TYPE, eml, harvest_list
from support.http_server import HttpServer
from support.lists import BASE, SiteFolder, changes, documents_of, problems, said

LOOPBACK = ("--allow-network", "127.0.0.0/8")


@pytest.fixture
def site(tmp_path: Path) -> SiteFolder:
    """A list that was written by hand, out of order, with a comment."""
    folder = SiteFolder(tmp_path)
    content = harvest_list([("alder.2.1", f"{BASE}rain.xml"), ("alder.1.4", f"{BASE}discharge.xml")])
    folder.put_bytes("harvest-list.xml", content.replace(b"<document>", b"<!-- by Bo -->\n<document>", 1))
    return folder


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as server:
        yield server


def docids(site: SiteFolder) -> list[str]:
    return [document.docid for document in documents_of(site.list_file)]


def ran(*arguments: str | Path, code: int = 0) -> dict[str, object]:
    told = said("list", *arguments, "--json")
    assert told.code == code, told
    return dict(json.loads(told.out))


# -- add


def test_a_file_is_added_at_its_url_and_the_list_becomes_canonical(site: SiteFolder) -> None:
    file = site.put("größe & co.xml", "alder.3.1")
    told = said("list", "add", site.list_file, file, "--base-url", BASE.rstrip("/"))
    assert told.code == 0
    assert "alder.3.1" in told.out
    assert "3 documents (1 new)" in told.out
    assert list(site.listed().items()) == [
        ("alder.1.4", "discharge.xml"),
        ("alder.2.1", "rain.xml"),
        ("alder.3.1", "gr%C3%B6%C3%9Fe%20%26%20co.xml"),
    ]
    assert "<!-- by Bo -->" in site.list_file.read_text(encoding="utf-8")
    assert documents_of(site.list_file)[-1].document_type == TYPE


def test_the_order_is_kept_where_asked(site: SiteFolder) -> None:
    file = site.put("a.xml", "aaa.1.1")
    said("list", "add", site.list_file, file, "--url", "https://other.example.org/show?id=a&b=c", "--keep-order")
    assert docids(site) == ["alder.2.1", "alder.1.4", "aaa.1.1"]
    assert documents_of(site.list_file)[-1].url == "https://other.example.org/show?id=a&b=c"


def test_a_list_that_is_not_there_is_made(tmp_path: Path) -> None:
    file, output = SiteFolder(tmp_path).put("a.xml", "aaa.1.1"), tmp_path / "list.xml"
    assert said("list", "add", output, file, "--base-url", BASE).code == 0
    assert [document.docid for document in documents_of(output)] == ["aaa.1.1"]


def test_a_document_added_again_is_raised_if_it_has_changed_and_keeps_its_url(site: SiteFolder) -> None:
    file = site.put("a.xml", "aaa.1.1")
    ran("add", site.list_file, file, "--url", f"{BASE}elsewhere.xml")
    told = ran("add", site.list_file, file)
    assert (told["written"], changes(told)) == (False, {"aaa.1.1": "unchanged"})
    site.put("a.xml", "aaa.1.1", "Changed")
    told = ran("add", site.list_file, file, "--write")
    assert changes(told) == {"aaa.1.2": "raised"}
    assert site.listed()["aaa.1.2"] == "elsewhere.xml"
    assert file.read_bytes() == eml("aaa.1.2", "Changed")
    site.put("a.xml", "aaa.1.9", "Changed again")
    assert changes(ran("add", site.list_file, file)) == {"aaa.1.9": "raised-by-hand"}


def test_a_url_is_fetched_and_added(site: SiteFolder, server: HttpServer) -> None:
    server.serve("/soil.xml", eml("alder.3.5"))
    told = ran("add", site.list_file, server.url("/soil.xml"), *LOOPBACK)
    assert changes(told) == {"alder.3.5": "added"}
    assert documents_of(site.list_file)[-1].url == server.url("/soil.xml")
    assert server.requests[-1].headers["user-agent"].startswith("metaharvest/")
    server.serve("/soil.xml", eml("alder.3.5", "Changed"))
    assert changes(ran("add", site.list_file, server.url("/soil.xml"), *LOOPBACK)) == {"alder.3.6": "raised"}


def test_how_an_address_that_is_not_public_can_be_asked_is_told(site: SiteFolder, server: HttpServer) -> None:
    server.serve("/a.xml", eml("aaa.1.1"))
    said_of_it = said("list", "add", site.list_file, server.url("/a.xml"))
    assert said_of_it.code == 1
    told = " ".join((said_of_it.out + said_of_it.err).split())
    assert "`metaharvest check URL --allow-network 127.0.0.1/32` asks it; `list add` and `oai` have the same" in told


def test_the_settings_say_which_networks_may_be_asked(site: SiteFolder, server: HttpServer) -> None:
    server.serve("/soil.xml", eml("alder.3.5"))
    told = ran("add", site.list_file, server.url("/soil.xml"), code=1)
    assert problems(told) == [(server.url("/soil.xml"), "http.address-not-public")]
    config = site.put_bytes("metaharvest.toml", SETTINGS.encode())
    assert said("--config", config, "list", "add", site.list_file, server.url("/soil.xml")).code == 0
    told_ = said("list", "add", site.list_file, server.url("/soil.xml"), "--allow-network", "home")
    assert told_.code == 2
    assert "'home' is not an address range" in told_.err


def test_what_cannot_be_listed_is_told_and_the_others_are_added(site: SiteFolder, server: HttpServer) -> None:
    server.serve("/good.xml", eml("alder.7.1"))
    server.serve("/page.xml", b"<!DOCTYPE html><html><head><title>Log in</title></head></html>")
    server.serve("/list.xml", site.list_file.read_bytes())
    doi = site.put("doi.xml", "doi:10.5072/FK2")
    names = [server.url(path) for path in ("/page.xml", "/missing.xml", "/list.xml", "/good.xml")]
    told = ran("add", site.list_file, *names, doi, site.path / "gone.xml", *LOOPBACK, "--base-url", BASE, code=1)
    assert problems(told) == [
        (names[0], "http.html-page"),
        (names[1], "http.status"),
        (names[2], "build.list-instead"),
        (str(doi), "build.no-docid"),
        (str(site.path / "gone.xml"), "build.unreadable"),
    ]
    assert changes(told) == {"alder.7.1": "added"}
    assert docids(site) == ["alder.1.4", "alder.2.1", "alder.7.1"]


def test_a_file_that_is_not_there_gets_a_remedy_about_its_name(site: SiteFolder) -> None:
    told = said("list", "add", site.list_file, site.path / "gone.xml", "--base-url", BASE)
    assert told.code == 1
    assert "The file cannot be read: No such file or directory." in told.out
    assert "What to do: Check the name of the file, with its ending, and the folder." in told.out


def test_nothing_is_written_if_nothing_can_be_added(site: SiteFolder) -> None:
    before, doi = site.list_file.read_bytes(), site.put("doi.xml", "doi:10.5072/FK2")
    assert said("list", "add", site.path / "new.xml", doi, "--base-url", BASE).code == 1
    assert not (site.path / "new.xml").exists()
    assert said("list", "add", site.list_file, doi, "--base-url", BASE).code == 1
    assert site.list_file.read_bytes() == before


def test_a_docid_can_be_given_to_a_document_that_has_none(site: SiteFolder) -> None:
    doi = site.put("doi.xml", "doi:10.5072/FK2")
    told = ran("add", site.list_file, doi, "--base-url", BASE, "--docid", "alder.9.1", "--write")
    assert changes(told) == {"alder.9.1": "added"}
    assert doi.read_bytes() == eml("doi:10.5072/FK2")


def test_a_docid_given_to_a_document_with_another_one_is_told_as_what_it_is(site: SiteFolder) -> None:
    file = site.put("eml.xml", "birch.2.1")
    told = said("list", "add", site.list_file, file, "--base-url", BASE, "--docid", "k.5.1", "--json")
    [finding] = json.loads(told.out)["findings"]
    assert finding["rule"] == "build.package-id-behind"
    assert finding["message"] == "The packageId is 'birch.2.1', and --docid calls the document k.5.1."
    assert finding["remedy"] == 'Write packageId="k.5.1", or give the docid of the packageId with --docid.'


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.xml"], "on the web? Say so with --url, or with --base-url for its folder."),
        (["a.xml", "b.xml", "--url", BASE], "--url and --docid are about one document"),
        (["a.xml", "--url", "www.example.org/a.xml"], "is not absolute"),
        (["https://www.example.org/a b.xml"], "contains a space"),
        (["https://www.example.org/a.xml", "--url", BASE], "a document that is given by a URL is there"),
        (["a.xml", "--docid", "doi:10.5072/FK2", "--base-url", BASE], "is a DOI, and no docid"),
        (["a.xml", "same.xml", "--base-url", BASE], "are the same document, aaa.1"),
        (["a.xml", "--base-url", "example.org"], "does not begin with http"),
        (["https://bo:geheim@www.example.org/a.xml"], "https://www.example.org/a.xml was given with a user name"),
        (["a.xml", "--url", "https://bo:geheim@www.example.org/a.xml"], "was given with a user name"),
        (["https://www example.org/a.xml"], "contains a space"),
        (["https://ex_$ample.org/a.xml"], "is not a host name"),
        ([], "Missing argument"),
    ],
)
def test_usage_that_makes_no_sense_is_told_in_a_sentence(site: SiteFolder, arguments: list[str], words: str) -> None:
    site.put("a.xml", "aaa.1.1")
    site.put("b.xml", "bbb.1.1")
    site.put("same.xml", "aaa.1.1")
    before = site.list_file.read_bytes()
    given = [str(site.path / each) if each.endswith(".xml") and "/" not in each else each for each in arguments]
    told = said("list", "add", site.list_file, *given)
    assert (told.code, told.out) == (2, "")
    assert words in told.err
    assert "geheim" not in told.err
    assert site.list_file.read_bytes() == before


# -- remove


def test_a_document_is_taken_out_by_its_id_or_one_revision_by_its_docid(site: SiteFolder) -> None:
    more = harvest_list([(f"birch.{n}.{r}", f"{BASE}{n}-{r}.xml") for n in (1, 2) for r in (1, 2)])
    site.put_bytes("harvest-list.xml", more)
    told = said("list", "remove", site.list_file, "birch.1")
    assert told.code == 0
    assert "2 documents (2 removed)" in told.out
    assert docids(site) == ["birch.2.1", "birch.2.2"]
    assert changes(ran("remove", site.list_file, "birch.2.1")) == {"birch.2.1": "removed"}
    assert docids(site) == ["birch.2.2"]


def test_the_revision_of_what_was_taken_out_is_remembered(site: SiteFolder) -> None:
    ran("remove", site.list_file, "alder.1")
    file = site.put("discharge.xml", "alder.1.1")
    # Nobody knows what alder.1.4 was: it is not promised a second time.
    assert changes(ran("add", site.list_file, file, "--base-url", BASE)) == {"alder.1.5": "added"}


def test_the_last_document_stays(site: SiteFolder) -> None:
    before = site.list_file.read_bytes()
    told = said("list", "remove", site.list_file, "alder.1", "alder.2.1")
    assert (told.code, told.out) == (2, "")
    assert "Nothing would be left in the list" in told.err
    assert site.list_file.read_bytes() == before


@pytest.mark.parametrize("command", ["remove", "bump"])
def test_a_document_that_is_not_listed_is_told_with_those_that_are_like_it(site: SiteFolder, command: str) -> None:
    before = site.list_file.read_bytes()
    for name, hint in (("alder.1.3", "It names alder.1.4."), ("aldre.2.1", "It names alder.2.1"), ("x", "'x'.")):
        told = said("list", command, site.list_file, "alder.2", name)
        assert (told.code, told.out) == (2, "")
        assert f"The list does not name '{name}'." in told.err
        assert hint in told.err
    assert site.list_file.read_bytes() == before


# -- bump


def test_a_revision_is_raised_by_one_or_to_a_number(site: SiteFolder) -> None:
    told = said("list", "bump", site.list_file, "alder.2 ", "alder.1.4")
    assert told.code == 0
    assert "2 documents (2 raised by hand)" in told.out
    assert docids(site) == ["alder.1.5", "alder.2.2"]
    ran("bump", site.list_file, "alder.2", "--to", "20", "--keep-order")
    assert docids(site) == ["alder.1.5", "alder.2.20"]


def test_of_several_revisions_the_highest_is_raised(site: SiteFolder) -> None:
    site.put_bytes("harvest-list.xml", harvest_list([("a.1.3", f"{BASE}3.xml"), ("a.1.2", f"{BASE}2.xml")]))
    ran("bump", site.list_file, "a.1")
    assert {document.docid: document.url for document in documents_of(site.list_file)} == {
        "a.1.2": f"{BASE}2.xml",
        "a.1.4": f"{BASE}3.xml",
    }


def test_a_revision_is_never_lowered_and_has_an_end(site: SiteFolder) -> None:
    told = said("list", "bump", site.list_file, "alder.1", "--to", "4")
    assert told.code == 2
    assert "alder.1.4 has the revision 4 already" in told.err
    ran("bump", site.list_file, "alder.1", "--to", str(2**63 - 1))
    told = said("list", "bump", site.list_file, "alder.1")
    assert told.code == 2
    assert "is the largest revision there is" in told.err


def test_a_revision_that_the_list_remembers_is_not_given_again(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path)
    file = site.put("a.xml", "a.1.7")
    site.build()
    list_text = site.list_file.read_text(encoding="utf-8")
    site.list_file.write_text(list_text.replace("<revision>7</revision>", "<revision>3</revision>"), encoding="utf-8")
    told = said("list", "bump", site.list_file, "a.1", "--to", "4")
    assert (told.code, "a.1.3 has the revision 7 already" in told.err) == (2, True)
    assert file.exists()


def test_a_file_that_is_named_twice_is_added_once(tmp_path: Path) -> None:
    file, output = SiteFolder(tmp_path).put("a.xml", "aaa.1.1"), tmp_path / "list.xml"
    assert said("list", "add", output, file, file, "--base-url", BASE).code == 0
    assert [document.docid for document in documents_of(output)] == ["aaa.1.1"]


def test_a_build_does_not_raise_what_was_raised_by_hand_already(tmp_path: Path) -> None:
    site = SiteFolder(tmp_path)
    site.put("rain.xml", "alder.2.1")
    site.build()
    ran("bump", site.list_file, "alder.2")
    site.put("rain.xml", "alder.2.1", "Changed")
    assert changes(site.built("--write")) == {"alder.2.2": "unchanged"}
    site.put("rain.xml", "alder.2.2", "Changed again")
    assert changes(site.built("--write")) == {"alder.2.3": "raised"}


# -- all of them


@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (("remove", "a.9"), ["a.1.1", "b.7.1", "b.7.1"]),
        (("add", "c.xml", "--base-url", BASE), ["a.1.1", "a.9.1", "b.7.1", "b.7.1", "c.1.1"]),
        (("bump", "a.9"), ["a.1.1", "a.9.2", "b.7.1", "b.7.1"]),
        (("remove", "b.7.1"), ["a.1.1", "a.9.1"]),
    ],
)
def test_entries_that_name_a_docid_again_stay_as_they_are_and_are_told(
    site: SiteFolder, arguments: tuple[str, ...], left: list[str]
) -> None:
    entries = [("b.7.1", f"{BASE}two.xml"), ("a.9.1", f"{BASE}9.xml"), ("b.7.1", f"{BASE}a.xml"), ("a.1.1", BASE)]
    noted = harvest_list(entries).replace(b"a.xml</documentURL>", b"a.xml</documentURL><!-- by Ida -->")
    site.put_bytes("harvest-list.xml", noted)
    command, *rest = (str(site.put(each, "c.1.1")) if each == "c.xml" else each for each in arguments)
    told = said("list", command, site.list_file, *rest)
    assert told.code == 0
    assert docids(site) == left
    is_there = "b.7.1" in left
    assert ("by Ida" in site.list_file.read_text(encoding="utf-8")) == is_there
    assert told.out.count("list.duplicate  b.7.1") == is_there
    # The first entry counts: which one that is must not change.
    assert [each.url for each in documents_of(site.list_file) if each.docid == "b.7.1"] == [
        f"{BASE}two.xml",
        f"{BASE}a.xml",
    ][: 2 * is_there]


@pytest.mark.parametrize(
    "arguments", [("add", "a.xml", "--base-url", BASE), ("remove", "alder.1"), ("bump", "alder.1")]
)
def test_a_list_that_is_not_valid_is_told_and_left_alone(site: SiteFolder, arguments: tuple[str, ...]) -> None:
    site.put("a.xml", "aaa.1.1")
    broken = site.list_file.read_bytes().replace(b"</docid>", b"", 1)
    site.list_file.write_bytes(broken)
    command, *rest = (str(site.path / each) if each == "a.xml" else each for each in arguments)
    told = said("list", command, site.list_file, *rest)
    assert told.code == 1
    assert f"{site.list_file}:4:" in told.out
    assert "correct it first" in told.err
    assert ran(command, site.list_file, *rest, code=1)["valid"] is False
    assert site.list_file.read_bytes() == broken


def test_a_dry_run_writes_nothing(site: SiteFolder) -> None:
    before = site.list_file.read_bytes()
    file = site.put("a.xml", "aaa.1.1")
    for arguments in (("add", file, "--base-url", BASE), ("remove", "alder.1"), ("bump", "alder.1")):
        told = said("list", arguments[0], site.list_file, *arguments[1:], "--dry-run")
        assert told.code == 0
        assert "Nothing was written." in told.out
        assert site.list_file.read_bytes() == before


def test_a_list_that_is_not_there_is_a_mistake_in_usage(tmp_path: Path) -> None:
    for command in (("remove", "alder.1"), ("bump", "alder.1")):
        told = said("list", command[0], tmp_path / "no.xml", command[1])
        assert told.code == 2
        assert "does not exist" in told.err
