"""`target list`, `show`, `get` with `--target`: every target is looked into in the same way."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer
from support.remote_target import Repository, installed

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

KEYS = {"document_id", "revision", "document_type", "size", "sha256", "inserted_at", "source_url", "site"} | {
    *("docid", "bytes", "url", "site_id", "title"),
}


@pytest.fixture
def repository(
    harvester: Harvester, server: HttpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Repository]:
    """A repository that the settings name as `new`, with a copy of what was harvested, and more."""
    monkeypatch.syspath_prepend(installed(tmp_path))
    harvester.add_site("alder", publish(server, "a.1.1", "a.1.10", "a.2.7"))
    harvester.run("2026-11-20")
    with Repository() as running:
        section = f'[targets.new]\nkind = "remote"\nurl = "{running.url}"\n'
        harvester.config.write_text(f"{harvester.config.read_text()}{section}", encoding="utf-8")
        assert harvester("target", "copy", "embedded", "new").code == 0
        running.documents["z.1.3"] = b"<nobody/>"
        yield running


def test_the_documents_of_a_named_target_are_listed_with_their_sites(
    harvester: Harvester, repository: Repository
) -> None:
    listed = json.loads(harvester("target", "list", "--target", "new", "--json").out)
    assert [(each["document_id"], each["revision"], each["site"]) for each in listed] == [
        ("a.1", 10, "alder"),
        ("a.2", 7, "alder"),
        ("z.1", 3, ""),
    ]
    assert set(listed[0]) == KEYS
    lines = harvester("target", "list", "--target", "new").out.splitlines()
    assert [line.split() for line in lines] == [
        ["a.1.10", "alder", "A", "title"],
        ["a.2.7", "alder", "A", "title"],
        ["z.1.3"],
    ]
    default = harvester("target", "list", "--json").out
    assert harvester("target", "list", "--target", "embedded", "--json").out == default
    assert harvester("target", "list", "--target", "target", "--json").out == default
    assert [set(each) for each in json.loads(default)] == [KEYS, KEYS]


def test_a_table_has_the_same_for_a_spreadsheet(harvester: Harvester, repository: Repository) -> None:
    repository.documents["=1+1.5"] = b"<eml/>"
    said = harvester("target", "list", "--target", "new", "--csv")
    assert said.out.startswith(
        "\ufeffdocid,document_id,revision,document_type,bytes,sha256,inserted_at_utc,url,site,title\r\n"
    )
    rows = list(csv.reader(said.out.splitlines()))
    assert [row[:3] for row in rows[1:]] == [
        ["'=1+1.5", "'=1+1", "5"],
        ["a.1.10", "a.1", "10"],
        ["a.2.7", "a.2", "7"],
        ["z.1.3", "z.1", "3"],
    ]
    [first, _] = csv.DictReader(harvester("target", "list", "--csv").out.removeprefix("\ufeff").splitlines())
    assert (first["docid"], first["bytes"]) == ("a.1.10", str(len(eml("a.1.10"))))
    assert (first["site"], first["title"]) == ("alder", "A title")
    assert len(first["inserted_at_utc"]) == len("2026-11-20 02:30:00")
    assert harvester("target", "list", "--csv", "--json").code == 2


def test_a_document_of_a_named_target_is_shown_and_fetched(harvester: Harvester, repository: Repository) -> None:
    shown = json.loads(harvester("target", "show", "a.1", "--target", "new", "--json").out)
    assert (shown["document_id"], shown["site"]) == ("a.1", "alder")
    assert [row["revision"] for row in shown["revisions"]] == [10, 1]
    assert harvester("target", "get", "a.1", "--target", "new").out == eml("a.1.10").decode()
    assert harvester("target", "get", "a.1.1", "--target", "new").out == eml("a.1.1").decode()
    assert harvester("target", "get", "z.1", "--target", "new").out == "<nobody/>"
    said = harvester("target", "get", "z.1")
    assert (said.code, said.out) == (2, "")
    assert "The target has no document 'z.1'." in said.err


def test_a_target_that_is_away_or_not_there_is_told_in_a_sentence(harvester: Harvester, repository: Repository) -> None:
    repository.patience = 0
    for arguments in (["list"], ["list", "--json"], ["list", "--csv"], ["show", "a.1"], ["get", "a.1"]):
        said = harvester("target", *arguments, "--target", "new")
        assert said.code == 1
        assert said.err.startswith("The repository does not answer: ")
        assert said.err.endswith(" Wait.\n")
    repository.patience = inf
    for arguments in (["list"], ["show", "a.1"], ["get", "a.1"]):
        said = harvester("target", *arguments, "--target", "old")
        assert (said.code, said.out) == (2, "")
        assert said.err.startswith("There is no target 'old'. Known are: target, embedded, new.")


PLACES = {
    "[target]\n{metacat}": ("target", "[target] username is set"),
    "[targets.old]\n{metacat}": ("old", '[targets."old"] username is set'),
    '[sites."alder".target]\n{metacat}': ("", '[sites."alder".target] username is set'),
    '[target]\n{metacat}[sites."alder".target]\nuploads_at_once = 2\n': ("", "[target] username is set"),
    '[targets.old]\nkind = "dataone"\nurl = "http://127.0.0.1:9/v2"\n': ("old", '[targets."old"] rights_holder is not'),
    '[targets.old]\nkind = "dataone"\nurl = "https://127.0.0.1:9/v2"\nrights_holder = "x"\ncertificate = "x.pem"\n': (
        "old",
        'The client certificate ([targets."old"] certificate) cannot be read',
    ),
}


@pytest.mark.parametrize("sections", PLACES)
def test_a_mistake_that_is_found_in_use_is_told_with_the_section_that_it_is_in(
    harvester: Harvester, sections: str
) -> None:
    harvester.add_site("alder", "https://alder.example.org/list.xml")
    name, told = PLACES[sections]
    metacat = 'kind = "metacat"\nurl = "http://127.0.0.1:9/metacat"\nusername = "uid=x"\n'
    with harvester.config.open("a") as settings:
        settings.write(sections.format(metacat=metacat))
    said = harvester("target", "check", *(("--target", name) if name else ("--site", "alder")))
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(told)
