"""The catalogue over several nights: what a program reads that follows the embedded target."""

from __future__ import annotations

import json
from pathlib import Path

from metaharvest.catalogue.change_feed import changed_documents
from metaharvest.catalogue.selection import Hidden
from metaharvest.database.engine import readers
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer
from support.oai_server import OaiServer

CATALOGUE = """\
SELECT document_id, revision, title, deleted, site_schedule_id FROM catalogue_document ORDER BY document_id
"""


class Follower:
    """A program that reads the change feed after each night."""

    def __init__(self, harvester: Harvester) -> None:
        self._harvester = harvester
        self._seen = 0

    def news(self) -> list[tuple[str, int, bool]]:
        with readers(self._harvester.engine)() as session:
            found = changed_documents(session, self._seen, 1000, Hidden())
        self._seen = found[-1].change_seq if found else self._seen
        return sorted((each.document_id.rpartition("/")[2], each.revision, each.is_deleted) for each in found)


def test_the_documents_of_a_list_night_after_night(harvester: Harvester, server: HttpServer) -> None:
    follower = Follower(harvester)
    elm = harvester.add_site("elm", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    assert follower.news() == [("a.1", 1, False), ("a.2", 1, False)]
    before = harvester.rows("SELECT * FROM catalogue_counter")
    harvester.run("2026-11-21")
    assert harvester.rows("SELECT * FROM catalogue_counter") == before

    publish(server, "a.1.2", "a.2.1")
    server.serve("/a.1.2.xml", eml("a.1.2", "Stream chemistry"))
    harvester.run("2026-11-22")
    assert follower.news() == [("a.1", 2, False)]
    assert harvester.rows(CATALOGUE) == [
        ("a.1", 2, "Stream chemistry", False, elm),
        ("a.2", 1, "A title", False, elm),
    ]

    oak = harvester.add_site("oak", "https://oak.example.org/list.xml")
    assert harvester("target", "transfer", "a.2", "oak").code == 0
    assert follower.news() == [("a.2", 1, False)]
    assert harvester("target", "withdraw", "a.1", "--reason", "a person objects").code == 0
    assert follower.news() == [("a.1", 2, True)]
    assert harvester("target", "withdraw", "a.1", "--undo").code == 0
    assert follower.news() == [("a.1", 2, False)]
    assert harvester("target", "withdraw", "a.1", "--reason", "a person objects", "--erase", "--yes").code == 0
    assert follower.news() == [("a.1", 2, True)]
    assert harvester.rows(CATALOGUE) == [("a.1", 2, "", True, elm), ("a.2", 1, "A title", False, oak)]


def test_the_records_of_a_source_repository_night_after_night(harvester: Harvester) -> None:
    follower = Follower(harvester)
    with OaiServer(3) as repository:
        added = harvester("sites", "add", "repo", "--oai", repository.base_url, "--contact", "repo@example.org")
        assert added.code == 0, added.err
        harvester.run("2026-11-20", "--force")
        assert len(follower.news()) == 3
        harvester.run("2026-11-21", "--force")
        assert follower.news() == []
        repository.put("oai:test:1", sets=("rivers", "rivers:alder"))
        repository.delete("oai:test:2")
        harvester.run("2026-11-22", "--force")
        assert follower.news() == [("oai:test:1", 1, False), ("oai:test:2", 1, True)]
    sets = "SELECT set_spec FROM catalogue_set NATURAL JOIN catalogue_document WHERE item_identifier = 'oai:test:1'"
    assert sorted(harvester.rows(sets)) == [("rivers",), ("rivers:alder",)]
    [(origin,)] = harvester.rows("SELECT DISTINCT origin FROM catalogue_document")
    assert {name.partition("/")[0] for (name,) in harvester.rows("SELECT document_id FROM catalogue_document")} == {
        origin
    }


def test_sets_that_change_without_a_new_datestamp_come_with_each_full_list(harvester: Harvester) -> None:
    follower, found = Follower(harvester), []
    with OaiServer(3) as repository:
        added = harvester("sites", "add", "repo", "--oai", repository.base_url, "--contact", "repo@example.org")
        assert added.code == 0, added.err
        for night, set_spec in enumerate(("elm", "oak", "oak", "ash")):
            repository.records["oai:test:1"].sets = (set_spec,)
            harvester.run(f"2026-11-2{night}", "--force", "--full")
            found.append((harvester.rows("SELECT set_spec FROM catalogue_set"), len(follower.news())))
    assert found == [([("elm",)], 3), ([("oak",)], 1), ([("oak",)], 0), ([("ash",)], 1)]


def test_titles_are_shown_wherever_the_documents_are(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("elm", publish(server, "a.1.1", also=[("a.2.1", server.serve("/x.xml", eml("a.2.1", "Moss")))]))
    harvester.run("2026-11-20")
    listed = json.loads(harvester("target", "list", "--json").out)
    assert [(each["docid"], each["title"]) for each in listed] == [("a.1.1", "A title"), ("a.2.1", "Moss")]
    assert [line.rpartition("  ")[2] for line in harvester("target", "list").out.splitlines()] == ["A title", "Moss"]
    assert harvester("target", "list", "--csv").out.splitlines()[2].endswith(",elm,Moss")
    assert "title      Moss" in harvester("target", "show", "a.2").out
    assert harvester("sites", "remove", "elm", "--yes").code == 0
    assert json.loads(harvester("documents", "show", "a.2", "--json").out)["title"] == "Moss"
    assert 'Did you mean a.2 ("Moss")?' in harvester("target", "show", "Moss").err


def test_a_copy_has_the_titles_of_the_ledger(harvester: Harvester, server: HttpServer, tmp_path: Path) -> None:
    sections = f'[target]\nkind = "folder"\nfolder = "{tmp_path / "documents"}"\n'
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(settings + sections, encoding="utf-8")
    harvester.add_site("elm", publish(server, "a.1.1", also=[("a.2.1", server.serve("/x.xml", eml("a.2.1", "Moss")))]))
    harvester.run("2026-11-20")
    assert [each["title"] for each in json.loads(harvester("target", "list", "--json").out)] == ["A title", "Moss"]
    said = harvester("target", "copy", "target", "embedded")
    assert said.code == 0, said.err
    assert harvester.rows("SELECT title FROM catalogue_document ORDER BY document_id") == [("A title",), ("Moss",)]
