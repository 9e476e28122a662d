"""Withdrawn documents, and their traces in database, folder, log and reports."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from lxml import etree

from support.databases import TestDatabase, on_one_database
from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import HttpServer
from support.mails import words_of
from support.oai_network import Network
from support.oai_server import OaiServer
from support.provider import OAI, Served, asked, served

OURS = "oai:catalogue.example.org:"
SECRET = "Erika Musterfrau objects"
BROKEN = b"<x>"


@pytest.fixture
def harvested(harvester: Harvester, server: HttpServer) -> Harvester:
    """A site with two documents. The first names a person, and its second revision is not valid at first."""
    url = publish(server, "a.1.1", "a.2.1")
    server.serve("/a.1.1.xml", eml("a.1.1", SECRET))
    harvester.add_site("elm", url)
    harvester.run("2026-11-20")
    return harvester


def withdraw(harvester: Harvester, document: str, *more: str) -> str:
    said = harvester("target", "withdraw", document, "--reason", "a person objects", *more)
    assert said.code == 0, said.err
    return said.out


def test_a_withdrawn_document_does_not_come_back_and_the_report_says_why(
    harvested: Harvester, server: HttpServer
) -> None:
    said = withdraw(harvested, "a.1.1")
    assert "a.1 is withdrawn: no harvest brings it back." in said
    assert "the embedded repository: deleted." in said
    assert "Still in the list of elm" in said
    for night in ("2026-11-21", "2026-11-22"):
        run = harvested.run(night)
        assert (run["exit_code"], run["sites"][0]["filtered"], run["sites"][0]["unchanged"]) == (0, 1, 1)
        assert harvested.outcomes(run["run_id"]) == {"a.1.1": "filtered"}
    # Not with a higher revision either.
    publish(server, "a.1.2", "a.2.1")
    run = harvested.run("2026-11-23")
    assert harvested.outcomes(run["run_id"]) == {"a.1.2": "filtered"}
    assert sorted(harvested.held()) == ["a.1.1", "a.2.1"]
    assert "a.1" not in [each["document_id"] for each in json.loads(harvested("target", "list", "--json").out)]
    for mail in harvested.mails():
        if "(2026-11-21)" in mail["Subject"] and "elm:" in mail["Subject"]:
            output = words_of(mail)
            assert "withdrew a.1 on" in output
            assert "a person objects" in output
    [gone] = harvested.rows("SELECT COUNT(*) FROM site_problem WHERE rule = 'target.withdrawn' AND state = 'open'")
    assert gone == (1,)


def test_a_withdrawn_document_is_erased_from_the_database_and_its_file(
    harvested: Harvester, server: HttpServer
) -> None:
    server.serve("/a.1.2.xml", eml("a.1.2", SECRET).replace(b"</title>", b"</title><x>Musterfrau</x>"))
    server.serve("/list.xml", harvest_list([("a.1.2", server.url("/a.1.2.xml")), ("a.2.1", server.url("/a.2.1.xml"))]))
    harvested.run("2026-11-21")
    before = harvested.rows("SELECT excerpt FROM harvest_detail_log WHERE document_id = 'a.1'")
    assert before
    refused = harvested("target", "withdraw", "a.1", "--reason", "x", "--erase")
    assert (refused.code, "add --yes" in refused.err) == (2, True)
    said = withdraw(harvested, "a.1", "--erase", "--yes")
    assert "1 revision or file erased" in said
    assert sorted(harvested.held()) == ["a.2.1"]
    for table in ("harvest_log", "harvest_detail_log", "report_outbox", "harvest_document"):
        for row in harvested.rows(f"SELECT * FROM {table}"):
            assert "Musterfrau" not in repr(row)
    [row] = set(
        harvested.rows("SELECT error_message, excerpt, remedy FROM harvest_detail_log WHERE document_id = 'a.1'")
    )
    assert row[1:] == (None, None)
    file = harvested.folder / "metaharvest.db"
    if file.exists():
        for each in harvested.folder.glob("metaharvest.db*"):
            assert b"Musterfrau" not in each.read_bytes()
    run = harvested.run("2026-11-22")
    assert harvested.outcomes(run["run_id"]) == {"a.1.2": "filtered"}
    got = harvested("target", "get", "a.1.1")
    assert got.code == 2
    assert "a.1 was withdrawn on" in got.err
    assert "Its content was erased. The reason: a person objects" in got.err


@on_one_database
def test_what_target_get_says_of_a_withdrawn_document_whose_revisions_are_kept(harvested: Harvester) -> None:
    withdraw(harvested, "a.1")
    got = harvested("target", "get", "a.1")
    assert (got.code, got.out) == (1, "")
    assert "a.1 was withdrawn on" in got.err
    assert "target get a.1.1" in got.err
    one = harvested("target", "get", "a.1.1")
    assert (one.code, SECRET in one.out, "was withdrawn on" in one.err) == (0, True, True)
    assert "was withdrawn on" in harvested("target", "show", "a.1").out


@pytest.mark.parametrize("erased", [False, True], ids=["kept", "erased"])
def test_a_withdrawal_is_taken_back(harvested: Harvester, erased: bool) -> None:
    withdraw(harvested, "a.1", *(["--erase", "--yes"] if erased else []))
    harvested.run("2026-11-21")
    said = harvested("target", "withdraw", "a.1", "--undo")
    assert (said.code, "The withdrawal of a.1 is taken back." in said.out) == (0, True)
    run = harvested.run("2026-11-22", "--site", "elm")
    assert harvested.outcomes(run["run_id"]) == ({"a.1.1": "inserted"} if erased else {})
    assert sorted(harvested.held()) == ["a.1.1", "a.2.1"]
    assert harvested("target", "get", "a.1").code == 0
    again = harvested("target", "withdraw", "a.1", "--undo")
    assert (again.code, "No document 'a.1' is withdrawn" in again.err) == (2, True)


@on_one_database
@pytest.mark.parametrize("erased", [False, True], ids=["kept", "erased"])
def test_a_folder_forgets_a_withdrawn_document(harvester: Harvester, server: HttpServer, erased: bool) -> None:
    folder = harvester.folder / "documents"
    with harvester.config.open("a") as file:
        file.write(f'\n[target]\nkind = "folder"\nfolder = "{folder}"\n')
    url = publish(server, "a.1.1", "a.2.1")
    server.serve("/a.1.1.xml", eml("a.1.1", SECRET))
    harvester.add_site("elm", url)
    harvester.run("2026-11-20")

    def with_secret() -> list[Path]:
        return [each for each in folder.rglob("*") if each.is_file() and SECRET.encode() in each.read_bytes()]

    [stored] = with_secret()
    # As a killed upload leaves it.
    (folder / ".metaharvest" / "tmp" / "1-ab").write_bytes(stored.read_bytes())
    withdraw(harvester, "a.1", *(["--erase", "--yes"] if erased else []))
    assert len(with_secret()) == (0 if erased else 2)
    (folder / ".metaharvest" / "tmp" / "1-ab").unlink(missing_ok=True)
    run = harvester.run("2026-11-21")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "filtered"}
    got = harvester("target", "get", "a.1")
    assert (got.code, "a.1 was withdrawn on" in got.err) == (2, True)
    assert harvester("target", "check").code == 0
    harvester("target", "withdraw", "a.1", "--undo")
    harvester.run("2026-11-22", "--site", "elm")
    [back] = with_secret()
    assert ".metaharvest" not in back.parts
    assert harvester("target", "check").code == 0


@on_one_database
def test_a_document_is_withdrawn_while_its_target_is_away(harvester: Harvester, server: HttpServer) -> None:
    folder = harvester.folder / "documents"
    with harvester.config.open("a") as file:
        file.write(f'\n[target]\nkind = "folder"\nfolder = "{folder}"\n')
    harvester.add_site("elm", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    away = folder.rename(folder.with_name("away"))
    said = harvester("target", "withdraw", "a.1.1", "--reason", "a person objects")
    assert (said.code, "mounted" in said.err) == (1, True)
    assert harvester.rows("SELECT document_id, site FROM document_withdrawal") == [("a.1", "elm")]
    away.rename(folder)
    withdraw(harvester, "a.1.1")
    assert [each.name for each in folder.rglob("a.?.1.xml") if ".metaharvest" not in each.parts] == ["a.2.1.xml"]


@on_one_database
def test_the_embedded_target_forgets_a_document_too_after_a_move_to_another_one(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("elm", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    with harvester.config.open("a") as file:
        file.write(f'\n[target]\nkind = "folder"\nfolder = "{harvester.folder / "documents"}"\n')
    publish(server, "a.1.1", "a.2.1", "a.3.1")
    harvester.run("2026-11-21")
    said = withdraw(harvester, "a.1", "--erase", "--yes")
    assert "the embedded repository: deleted; 1 revision or file erased." in said
    assert harvester.rows("SELECT DISTINCT document_id FROM document_revision") == [("a.2",)]
    assert "embedded repository" not in withdraw(harvester, "a.3")


@on_one_database
def test_a_withdrawn_document_of_a_folder_from_a_backup_is_named(harvester: Harvester, server: HttpServer) -> None:
    folder, backup = harvester.folder / "documents", harvester.folder / "backup"
    with harvester.config.open("a") as file:
        file.write(f'\n[target]\nkind = "folder"\nfolder = "{folder}"\n')
    harvester.add_site("elm", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    shutil.copytree(folder, backup)
    withdraw(harvester, "a.1")
    assert "withdrawn document" not in harvester("target", "check").out
    shutil.rmtree(folder)
    backup.rename(folder)
    for command in (("target", "check"), ("doctor",)):
        warning = "The target still has 1 withdrawn document, such as a.1: delete it there with"
        assert warning in harvester(*command).out
    withdraw(harvester, "a.1")
    assert "withdrawn document" not in harvester("target", "check").out


@on_one_database
def test_what_cannot_be_withdrawn_is_said(harvested: Harvester) -> None:
    for arguments, sentence in (
        (("a.9", "--reason", "x"), "The target has no document 'a.9'"),
        (("a.1",), "Give --reason"),
        (("a.1", "--undo", "--erase"), "--undo takes a withdrawal back"),
        (("a.1", "--undo"), "No document 'a.1' is withdrawn"),
    ):
        said = harvested("target", "withdraw", *arguments)
        assert (said.code, sentence in said.err) == (2, True), said.err


@on_one_database
def test_a_rehearsal_and_a_copy_leave_a_withdrawn_document_out(harvested: Harvester) -> None:
    with harvested.config.open("a") as file:
        file.write(f'\n[targets.copy]\nkind = "folder"\nfolder = "{harvested.folder / "copy"}"\n')
    assert harvested("target", "copy", "target", "copy").code == 0
    withdraw(harvested, "a.1", "--erase", "--yes")
    said = harvested("run", "--site", "elm", "--dry-run", "--json", "--date", "2026-11-21")
    assert json.loads(said.out)["sites"][0]["filtered"] == 1
    back = harvested("target", "copy", "copy", "embedded")
    assert "withdrew a.1" in back.out + back.err
    assert sorted(harvested.held()) == ["a.2.1"]


@on_one_database
def test_a_withdrawn_record_of_a_repository_does_not_come_back(tmp_path: Path, database: TestDatabase) -> None:
    with OaiServer(records=5) as server:
        network = Network(tmp_path, server, database=database)
        harvester = network.harvester
        try:
            assert (
                harvester("sites", "add", "repo", "--oai", server.base_url, "--allow-network", "127.0.0.0/8").code == 0
            )
            harvester.run("2026-11-20", "--site", "repo")
            first = min(docid.rpartition(".")[0] for docid in harvester.held())
            said = harvester("target", "withdraw", first, "--reason", "a person objects", "--erase", "--yes")
            assert said.code == 0, said.err
            for number, night in enumerate(("2026-11-21", "2026-11-22")):
                run = harvester.run(night, "--site", "repo", "--full")
                [site] = run["sites"]
                assert (run["exit_code"], site["filtered"], site["unchanged"]) == (0, 1, 4), number
            assert len(harvester.held()) == 4
            assert harvester("target", "withdraw", first, "--undo").code == 0
            harvester.run("2026-11-23", "--site", "repo")
            assert len(harvester.held()) == 5
        finally:
            harvester.close()


@on_one_database
@pytest.mark.parametrize("order", ["deleted first", "withdrawn first"])
@pytest.mark.parametrize("deletions", ["tell", "note"])
def test_a_record_that_its_repository_deleted_is_not_live_after_its_withdrawal_is_taken_back(
    tmp_path: Path, database: TestDatabase, order: str, deletions: str
) -> None:
    with OaiServer(records=5) as server:
        network = Network(tmp_path, server, database=database)
        network.register("--deletions", deletions)
        network.harvest()
        if order == "deleted first":
            server.delete("oai:test:1")
            network.harvest()
        withdraw(network.harvester, "test/oai_dc/oai:test:1")
        assert network.held().keys() == {"2", "3", "4", "5"}
        if order == "withdrawn first":
            server.delete("oai:test:1")
            network.harvest()
        said = network.harvester("target", "withdraw", "test/oai_dc/oai:test:1", "--undo")
        assert (said.code, "the document stays deleted" in said.out) == (0, deletions == "tell")
        assert "The next harvest tries it again" not in said.out
        for options in ((), ("--full",)):
            network.harvest(*options)
            assert ("1" in network.held()) == (deletions == "note"), options
        server.put("oai:test:1", title="back")
        network.harvest()
        assert network.held()["1"] == 2
        network.harvester.close()


def test_readers_of_what_is_published_learn_of_a_withdrawal(harvested: Harvester) -> None:
    """A harvester, a browser, and a reader of dataset files."""
    [(last,)] = harvested.rows("SELECT change_seq FROM catalogue_counter")
    withdraw(harvested, "a.1", "--erase", "--yes")
    with asked(harvested) as ask:
        for prefix in ("oai_dc", "eml-2.1.1"):
            root = ask("ListRecords", metadataPrefix=prefix)
            found = {each.findtext(f"{OAI}identifier"): each.get("status") for each in root.iter(f"{OAI}header")}
            assert found == {f"{OURS}a.1": "deleted", f"{OURS}a.2": None}
            assert SECRET.encode() not in etree.tostring(root)
    with served(harvested) as server:
        root_url = Served(server.base_url.removesuffix("/oai"))
        for path in ("/documents/a.1", "/xml/a.1", "/xml/a.1?revision=1"):
            status, _, content = root_url.get(path)
            assert (status, SECRET.encode() in content) == (410, False)
        assert b"a.1" not in root_url.get("/sitemap/0.xml")[2]
    folder = harvested.folder / "dataset"
    assert harvested("export", "dataset", str(folder), "--since", str(last)).code == 0
    [line] = gzip.decompress((folder / "part-00001.jsonl.gz").read_bytes()).splitlines()
    tombstone = json.loads(line)
    assert (tombstone["document_id"], tombstone["is_deleted"], tombstone["title"]) == ("a.1", True, None)
    assert SECRET not in line.decode()
