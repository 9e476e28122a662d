"""Harvesting into a folder: night after night, on a folder that is away, and with an index that has to be made anew."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.databases import TestDatabase
from support.harvester import SETTINGS, Harvester, eml, publish
from support.http_server import HttpServer
from support.mails import text_of

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Where nothing depends on the database."""

FOLDER = '[target]\nkind = "folder"\nfolder = "repository"\n'


@pytest.fixture
def harvester(tmp_path: Path, database: TestDatabase) -> Iterator[Harvester]:
    """An installation whose documents go into a folder."""
    installed = Harvester(tmp_path, SETTINGS + FOLDER, database)
    yield installed
    installed.close()


def files(harvester: Harvester) -> dict[str, bytes]:
    """The documents in the folder."""
    base = harvester.folder / "repository"
    found = (path for path in base.rglob("*.xml") if ".metaharvest" not in path.parts)
    return {str(path.relative_to(base)): path.read_bytes() for path in found}


def index(harvester: Harvester) -> Path:
    return harvester.folder / "repository" / ".metaharvest" / "index.db"


def only_site(run: dict[str, Any]) -> dict[str, int]:
    """What became of the one site's documents."""
    [site] = run["sites"]
    names = ("inserted", "updated", "unchanged", "stale", "duplicate", "deferred", "invalid", "upload_error")
    return {name: site[name] for name in names if site[name]}


@pytest.mark.quick
def test_first_night_second_night_raised_and_skipped_revisions(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.3", "b.1.7"))
    assert only_site(harvester.run("2026-11-20")) == {"inserted": 3}
    first = {"a/1/a.1.1.xml": eml("a.1.1"), "a/2/a.2.3.xml": eml("a.2.3"), "b/1/b.1.7.xml": eml("b.1.7")}
    assert files(harvester) == first
    assert harvester.held() == {}
    asked = len(server.requests)
    assert only_site(harvester.run("2026-11-21")) == {"unchanged": 3}
    assert len(server.requests) == asked + 1
    publish(server, "a.1.2", "a.1.5", "a.2.2", "b.1.9", also=[("b.1.9", server.url("/b.1.9.xml"))])
    assert only_site(harvester.run("2026-11-22")) == {"updated": 3, "stale": 1, "duplicate": 1}
    raised = {f"{folder}/{docid}.xml": eml(docid) for folder, docid in REVISED}
    assert files(harvester) == first | raised
    assert harvester.rows("SELECT pending_sha256 FROM harvest_document WHERE pending_sha256 IS NOT NULL") == []
    owners = harvester.rows("SELECT document_id, site_schedule_id FROM document_owner ORDER BY document_id")
    assert owners == [("a.1", 1), ("a.2", 1), ("b.1", 1)]
    assert [docid for docid, _ in held(harvester)] == ["a.1.5", "a.2.3", "b.1.9"]


REVISED = (("a/1", "a.1.2"), ("a/1", "a.1.5"), ("b/1", "b.1.9"))


def held(harvester: Harvester) -> list[tuple[str, int]]:
    listed = json.loads(harvester("target", "list", "--json").out)
    return [(f"{each['document_id']}.{each['revision']}", each["size"]) for each in listed]


@on_sqlite
def test_the_commands_that_look_into_the_target_look_into_the_folder(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.1.2"))
    harvester.run("2026-11-20")
    assert harvester("target", "get", "a.1").out == eml("a.1.2").decode()
    assert harvester("target", "get", "a.1.1").out == eml("a.1.1").decode()
    shown = json.loads(harvester("target", "show", "a.1", "--json").out)
    assert [each["revision"] for each in shown["revisions"]] == [2, 1]
    assert "has no revision 7 of a.1. It has: 2, 1." in harvester("target", "get", "a.1.7").err
    [report] = [mail for mail in harvester.mails() if mail["To"] == "steward@example.org"]
    assert "Central repository: the folder " in " ".join(text_of(report).split())


@on_sqlite
def test_a_flat_folder_with_few_names_in_each_part(harvester: Harvester, server: HttpServer) -> None:
    settings = harvester.config.read_text()
    harvester.config.write_text(f'{settings}layout = "flat"\nfiles_per_folder = 3\n')
    harvester.add_site("site", publish(server, *(f"a.{number}.1" for number in range(8))))
    assert only_site(harvester.run("2026-11-20")) == {"inserted": 8}
    folders = sorted(path.rpartition("/")[0] for path in files(harvester))
    assert folders == ["", "", "", *["starting_at_3"] * 3, *["starting_at_6"] * 2]
    assert only_site(harvester.run("2026-11-21")) == {"unchanged": 8}


@on_sqlite
def test_a_rehearsal_makes_no_folder_and_knows_what_is_in_it(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1")
    harvester.add_site("site", url)
    assert json.loads(harvester("run", "--dry-run", "--json").out)["sites"][0]["inserted"] == 1
    assert not (harvester.folder / "repository").exists()
    harvester.run("2026-11-20")
    publish(server, "a.1.1", "a.1.2")
    before = {path: path.stat().st_mtime_ns for path in (harvester.folder / "repository").rglob("*.xml")}
    for arguments in (["run", "--dry-run", "--force", "--json"], ["check", url, "--json"]):
        site = json.loads(harvester(*arguments).out)["sites"][0]
        assert (site["unchanged"], site["updated"]) == (1, 1)
    after = {path: path.stat().st_mtime_ns for path in (harvester.folder / "repository").rglob("*.xml")}
    assert before == after


def test_a_folder_that_is_not_mounted_puts_everything_off_and_nothing_is_written_there(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    base = harvester.folder / "repository"
    base.rename(harvester.folder / "away")
    base.mkdir()
    publish(server, "a.1.1", "a.1.2", "a.2.1")
    run = harvester.run("2026-11-21")
    assert only_site(run) == {"deferred": 3}
    assert list(base.iterdir()) == []
    sql = (
        "SELECT d.rule, d.error_message, d.remedy FROM harvest_detail_log d JOIN harvest_log l USING (harvest_log_id) "
        "WHERE l.run_id = ?"
    )
    # Once for the run, and once for the site, with the number of its documents.
    [(_, of_run, _), (rule, message, remedy)] = sorted(harvester.rows(sql, run["run_id"]), key=lambda row: len(row[1]))
    assert rule == "target.folder-missing"
    assert of_run == (
        f"The folder {base} is not the one that documents went into: it has no marker any more "
        "(.metaharvest/folder.json)."
    )
    assert message == f"{of_run} 3 documents were put off to a later run."
    assert run["exit_code"] == 3
    assert "have it mounted" in remedy
    assert "`metaharvest target rebuild` (with --target NAME or --site NAME, unless it is that of [target])" in remedy
    doctor = harvester("doctor")
    assert doctor.code == 1
    assert "PROBLEM  target: The folder " in doctor.out
    said = harvester("target", "list")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith(f"The folder {base} is not the one that documents went into")
    base.rmdir()
    (harvester.folder / "away").rename(base)
    assert only_site(harvester.run("2026-11-22")) == {"updated": 1, "unchanged": 2}


@on_sqlite
def test_an_index_that_is_lost_is_told_and_made_anew_by_a_command(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    listed = harvester("target", "list").out
    index(harvester).write_bytes(b"no index")
    run = harvester.run("2026-11-21")
    assert only_site(run) == {"deferred": 2}
    assert (None, "warning", "target.folder-index") in harvester.findings(run["run_id"])
    (harvester.folder / "repository" / "README.txt").write_text("For people.")
    said = harvester("target", "rebuild")
    assert (said.code, said.err) == (0, "")
    assert said.out == (
        "The index was built again: 2 documents in 2 files.\nLeft alone: 1 file with other names than documents have.\n"
    )
    assert [line.split()[0] for line in harvester("target", "list").out.splitlines()] == (
        [line.split()[0] for line in listed.splitlines()]
    )
    assert only_site(harvester.run("2026-11-22")) == {"unchanged": 2}


@on_sqlite
@pytest.mark.parametrize(
    "other",
    [
        "a/1/a.1.20261122193000123456.xml",
        f"a.1.{2**63}.xml",
        f"oai-host/1.{2**63}.xml",
        "starting_at_20261122193000123456/a/7/a.7.1.xml",
        "a/starting_at_9223372036854775807/7/a.7.1.xml",
    ],
)
def test_a_file_with_a_number_that_is_too_large_is_left_alone(
    harvester: Harvester, server: HttpServer, other: str
) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    file = harvester.folder / "repository" / other
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(eml("a.1.1"))
    publish(server, "a.1.2", "a.2.1")
    assert only_site(harvester.run("2026-11-21")) == {"updated": 1, "unchanged": 1}
    said = harvester("target", "rebuild")
    assert (said.code, said.err) == (0, "")
    assert "2 documents in 3 files" in said.out
    assert "Left alone: 1 file" in said.out
    publish(server, "a.1.3", "a.2.1")
    assert only_site(harvester.run("2026-11-22")) == {"updated": 1, "unchanged": 1}
    assert harvester("target", "check").code == 0


@on_sqlite
def test_files_that_git_took_away_are_told_and_harvested_again_once_the_index_was_made_anew(
    harvester: Harvester, server: HttpServer
) -> None:
    harvester.add_site("site", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    shutil.rmtree(harvester.folder / "repository" / "a" / "1")
    assert only_site(harvester.run("2026-11-21")) == {"deferred": 2}
    harvester("target", "rebuild")
    assert only_site(harvester.run("2026-11-22")) == {"inserted": 1, "unchanged": 1}
    assert set(files(harvester)) == {"a/1/a.1.1.xml", "a/2/a.2.1.xml"}


@on_sqlite
def test_a_revision_that_is_there_with_other_content_is_told_once(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    (harvester.folder / "repository" / "a" / "1").mkdir(parents=True)
    harvester("target", "rebuild")
    (harvester.folder / "repository" / "a" / "1" / "a.1.1.xml").write_bytes(b"<mine/>")
    run = harvester.run("2026-11-20")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "upload-error"}
    assert ("a.1", "error", "target.other-content") in harvester.findings(run["run_id"])
    assert only_site(harvester.run("2026-11-21")) == {"unchanged": 1}
    assert files(harvester) == {"a/1/a.1.1.xml": b"<mine/>"}


@on_sqlite
def test_only_a_folder_has_an_index(tmp_path: Path, database: TestDatabase) -> None:
    installed = Harvester(tmp_path, SETTINGS + '[targets.old]\nkind = "folder"\nfolder = "old"\n', database)
    said = installed("target", "rebuild")
    assert (said.code, said.out) == (2, "")
    assert said.err == "The target is the embedded repository: only a folder has an index.\n"
    said = installed("target", "rebuild", "--target", "older")
    assert said.code == 2
    assert "There is no target 'older'. Known are: target, embedded, old." in said.err
    assert installed("target", "rebuild", "--site", "nobody").code == 2
    rebuilt = installed("target", "rebuild", "--target", "old")
    assert rebuilt.out == "The index was built again: 0 documents in 0 files.\n"
    assert (tmp_path / "old" / ".metaharvest" / "folder.json").exists()
    installed.close()


@on_sqlite
@pytest.mark.parametrize("folder", ["file", "file/repository"])
def test_a_file_where_a_folder_should_be_is_named_with_what_to_do(
    tmp_path: Path, server: HttpServer, database: TestDatabase, folder: str
) -> None:
    installed = Harvester(tmp_path, f'{SETTINGS}[target]\nkind = "folder"\nfolder = "{folder}"\n', database)
    (tmp_path / "file").write_text("A word to people.")
    said = installed("target", "rebuild")
    assert (said.code, said.out) == (1, "")
    assert f"{tmp_path / 'file'} is a file, and no folder." in " ".join(said.err.split())
    assert "Move it out of the way, or name another folder in the settings." in " ".join(said.err.split())
    assert "disk" not in said.err
    installed.add_site("site", publish(server, "a.1.1"))
    assert only_site(installed.run("2026-11-20")) == {"deferred": 1}
    assert "is a file, and no folder." in installed("doctor").out
    assert (tmp_path / "file").read_text() == "A word to people."
    installed.close()


@on_sqlite
def test_the_index_is_not_made_anew_during_a_run(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    with harvester.opened() as opened, opened.targets.default.session(None) as session:
        assert not session.writes_in_journal
        assert session.delete("a.1")
        said = harvester("target", "rebuild")
    assert said.code == 1
    assert "is in use: a harvester is writing into it. Try again when that has ended" in " ".join(said.err.split())


@on_sqlite
def test_what_a_killed_run_has_left_is_looked_up(harvester: Harvester, server: HttpServer) -> None:
    """As after a SIGKILL between the file and the index: the ledger waits, and the index is in doubt."""
    harvester.add_site("site", publish(server, "a.1.1"))
    harvester.run("2026-11-20")
    with closing(sqlite3.connect(index(harvester))) as connection, connection:
        connection.execute("UPDATE revision SET state = 'reserved'")
    digest = harvester.rows("SELECT sha256 FROM harvest_document")[0][0]
    pending = "pending_run = 1, pending_sha256 = ?, state = 'pending', target_revision = NULL"
    harvester.rows(f"UPDATE harvest_document SET {pending}", digest)
    run = harvester.run("2026-11-21")
    assert harvester.outcomes(run["run_id"]) == {"a.1.1": "inserted"}
    assert ("a.1", "warning", "target.unconfirmed") in harvester.findings(run["run_id"])
    assert only_site(harvester.run("2026-11-22")) == {"unchanged": 1}


@on_sqlite
def test_what_was_received_is_kept_apart_from_what_was_made_of_it(harvester: Harvester, server: HttpServer) -> None:
    normalize = '<normalize><mapping xpath="//dataset/title"><newElement name="title" regexp="Changed">'
    normalize += "<newValue>Hydrology</newValue></newElement></mapping></normalize>"
    (harvester.folder / "normalize.xml").write_text(normalize)
    list_url = publish(server, "a.1.1", "a.2.1")
    changed = eml("a.1.1", "Changed water")
    server.serve("/a.1.1.xml", changed)
    harvester.add_site("site", list_url, options=json.dumps({"normalize": "normalize.xml"}))
    assert only_site(harvester.run("2026-11-20")) == {"inserted": 2}
    received = harvester.folder / "repository" / ".metaharvest" / "received"
    kept = {str(path.relative_to(received)): path.read_bytes() for path in received.rglob("*") if path.is_file()}
    assert kept == {"a/1/a.1.1.xml": changed}
    assert b"<title>Hydrology</title>" in files(harvester)["a/1/a.1.1.xml"]
    assert files(harvester)["a/2/a.2.1.xml"] == eml("a.2.1")
    index(harvester).unlink()
    assert harvester("target", "rebuild").code == 0
    assert [docid for docid, _ in held(harvester)] == ["a.1.1", "a.2.1"]
    assert only_site(harvester.run("2026-11-21")) == {"unchanged": 2}
