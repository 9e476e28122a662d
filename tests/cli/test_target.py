"""`metaharvest target`: what the target holds, its exact bytes, and whose they are."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
from pathlib import Path

import pytest

from metaharvest.config.paths import data_folder
from metaharvest.errors import MetaharvestError, ScheduleError
from support.catalogue import FILL_CATALOGUE
from support.cli import attempt, harvested, initialize, process, tell

DISCHARGE = data_folder("sample_sites") / "alder-creek" / "discharge.xml"


@pytest.fixture(scope="module")
def harvested_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("harvested")
    harvested(made)
    return made


@pytest.fixture
def folder(harvested_folder: Path, tmp_path: Path) -> Path:
    copied = tmp_path / "copy"
    shutil.copytree(harvested_folder, copied)
    return copied


def put(folder: Path, document_id: str, revision: int, content: bytes) -> None:
    with sqlite3.connect(folder / "metaharvest.db") as connection:
        connection.execute(
            "INSERT INTO document_revision (document_id, revision, document_type, content, size, sha256, source_url,"
            " site_schedule_id, inserted_at) VALUES (?, ?, '', ?, ?, '', '', 1, '2026-11-20 00:00:00')",
            (document_id, revision, content, len(content)),
        )
        connection.execute("DELETE FROM catalogue_document WHERE document_id = ?", (document_id,))
        connection.execute(FILL_CATALOGUE)
    connection.close()


def test_the_documents_are_listed_each_once_for_people_and_machines(folder: Path) -> None:
    put(folder, "ren-alder.1", 2, b"later")
    listed = tell(folder, "target", "list", "--json").json
    assert len(listed) == 13
    first = listed[0]
    assert (first["document_id"], first["revision"], first["size"]) == ("ren-alder.1", 2, 5)
    lines = tell(folder, "target", "list").out.splitlines()
    assert len(lines) == 13
    assert lines[0].startswith("ren-alder.1.2 ")
    assert lines[0].endswith("alder-creek")


def test_an_empty_target_is_an_empty_list(tmp_path: Path) -> None:
    initialize(tmp_path)
    assert tell(tmp_path, "target", "list", "--json").json == []
    assert "no document yet" in tell(tmp_path, "target", "list").out


def test_a_document_is_shown_with_all_its_revisions_or_the_one_that_is_named(folder: Path) -> None:
    put(folder, "ren-alder.1", 2, b"later")
    whole = tell(folder, "target", "show", "ren-alder.1", "--json").json
    assert (whole["site"], [row["revision"] for row in whole["revisions"]]) == ("alder-creek", [2, 1])
    one = tell(folder, "target", "show", "ren-alder.1.1", "--json").json
    assert [row["size"] for row in one["revisions"]] == [DISCHARGE.stat().st_size]
    assert "alder-creek" in tell(folder, "target", "show", "ren-alder.1").out
    assert tell(folder, "target", "show", " ren-alder.1 ").out == tell(folder, "target", "show", "ren-alder.1").out


@pytest.mark.parametrize("name", ["ren-alder.1", "ren-alder.1.1", " ren-alder.1 "])
def test_the_bytes_are_those_that_the_site_serves(folder: Path, tmp_path: Path, name: str) -> None:
    assert tell(folder, "target", "get", name).raw == DISCHARGE.read_bytes()
    told = tell(folder, "target", "get", name, "-o", str(tmp_path / "copy.xml"))
    assert (tmp_path / "copy.xml").read_bytes() == DISCHARGE.read_bytes()
    assert told.out == ""


def test_a_hyphen_as_the_file_is_stdout(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert tell(folder, "target", "get", "ren-alder.1", "-o", "-").raw == DISCHARGE.read_bytes()
    assert tell(folder, "sites", "export", "-o", "-").raw == tell(folder, "sites", "export").raw
    assert not (tmp_path / "-").exists()


def test_without_a_revision_the_highest_is_meant(folder: Path) -> None:
    put(folder, "ren-alder.1", 10, b"ten")
    put(folder, "ren-alder.1", 9, b"nine")
    assert tell(folder, "target", "get", "ren-alder.1").raw == b"ten"


def test_a_name_is_taken_as_a_docid_first_and_as_a_document_id_then(folder: Path) -> None:
    put(folder, "ren-alder.1.7", 3, b"document id with a dot more")
    assert tell(folder, "target", "get", "ren-alder.1.7").raw == b"document id with a dot more"
    put(folder, "ren-alder.1", 7, b"revision 7")
    assert tell(folder, "target", "get", "ren-alder.1.7").raw == b"revision 7"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ren-alder.99", "no document 'ren-alder.99'"),
        ("ren-alder.1.5", "no revision 5 of ren-alder.1. It has: 1."),
        (f"ren-alder.1.{2**70}", "It has: 1."),
        ("nonsense", "no document 'nonsense'"),
    ],
)
def test_an_unknown_document_is_answered_with_what_there_is(folder: Path, name: str, sentence: str) -> None:
    for verb in (("show",), ("get",)):
        told = attempt(folder, "target", *verb, name)
        assert isinstance(told.error, MetaharvestError)
        assert sentence in str(told.error)


def test_a_file_that_cannot_be_written_is_told_with_exit_code_1(folder: Path) -> None:
    done = process(folder, "target", "get", "ren-alder.1", "-o", "no/such/folder.xml")
    assert done.returncode == 1
    assert "no/such/folder.xml" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_document_is_transferred_to_another_site(folder: Path) -> None:
    told = tell(folder, "target", "transfer", "ren-alder.1", "basalt-flats")
    assert "belongs to basalt-flats" in told.out
    assert tell(folder, "target", "show", "ren-alder.1", "--json").json["site"] == "basalt-flats"


def test_a_transfer_needs_a_document_and_a_site_that_exist(folder: Path) -> None:
    assert isinstance(attempt(folder, "target", "transfer", "ren-alder.1", "elder").error, ScheduleError)
    assert "no document" in str(attempt(folder, "target", "transfer", "nonsense", "basalt-flats").error)
    assert tell(folder, "target", "show", "ren-alder.1", "--json").json["site"] == "alder-creek"


def test_the_site_of_a_document_is_named_although_it_is_registered_no_longer(folder: Path) -> None:
    tell(folder, "sites", "remove", "alder-creek", "--yes")
    shown = tell(folder, "target", "show", "ren-alder.1", "--json").json["site"]
    assert shown == "alder-creek (registered no longer)"
    assert "alder-creek (registered no longer)" in tell(folder, "target", "list").out


def test_a_site_s_name_is_quoted_in_the_command_to_paste(folder: Path) -> None:
    tell(folder, "sites", "edit", "basalt-flats", "--name", "basalt's flats")
    out = tell(folder, "target", "transfer", "ren-alder.1", "basalt's flats").out
    pasted = shlex.split(out.rpartition("next harvest: ")[2])
    config = ["--config", str(folder / "metaharvest.toml")]
    assert pasted == ["metaharvest", *config, "run", "--site", "basalt's flats"]
