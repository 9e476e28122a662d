"""Dataset files: everything, then what changed; a reader that applies them has the catalogue."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import resource
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lxml import etree
from sqlalchemy import select

from metaharvest.database.engine import readers, writers
from metaharvest.database.models import CatalogueDocument
from metaharvest.database.pipeline_models import OutputFile, OutputRecord, OutputText
from metaharvest.model.kinds import StepState
from metaharvest.model.outputs import Access, Licence, Output
from metaharvest.pipeline.cleaning.licences import spdx_of
from metaharvest.pipeline.file_store import FolderStore
from metaharvest.pipeline.stored_outputs import json_of
from metaharvest.replication.dataset.formats import NAMESPACE, TEXT_NAMES
from metaharvest.targets.embedded import EmbeddedTarget
from support import schemas
from support.catalogue import AT, upload
from support.cli import process_as_others
from support.databases import on_one_database
from support.harvester import Harvester, eml, publish
from support.http_server import HttpServer
from support.oai_server import OaiServer
from support.pipeline_steps import add_step
from support.waiting import wait_until

HELD = """\
SELECT document_id, revision, content FROM document_revision JOIN catalogue_document USING (document_id, revision)
WHERE NOT deleted
"""


class Reader:
    """A program that keeps a copy of the catalogue by dataset files."""

    def __init__(self, harvester: Harvester) -> None:
        self._harvester = harvester
        self._last = 0
        self.documents: dict[str, tuple[int, bytes]] = {}

    def follow(self) -> list[dict[str, Any]]:
        """Export what changed since the last time, and apply it; returns the lines."""
        folder = self._harvester.folder / f"dataset-{secrets.token_hex(8)}"
        said = self._harvester("export", "dataset", str(folder), "--since", str(self._last))
        assert said.code == 0, said.err
        manifest = manifest_of(folder)
        lines = list(lines_of(folder))
        assert [each["change_seq"] for each in lines] == sorted(each["change_seq"] for each in lines)
        assert sum(each["is_deleted"] for each in lines) == manifest["deleted"]
        assert len(lines) == manifest["deleted"] + manifest["documents"]
        for line in lines:
            assert schemas.problems("dataset-line", line) == []
            self.documents.pop(line["document_id"], None)
            if not line["is_deleted"]:
                self.documents[line["document_id"]] = (line["revision"], content_of(line))
        self._last = manifest["last_change_seq"]
        assert f"--since {self._last}\n" in said.out
        return lines

    def is_right(self) -> bool:
        """True if it has all that the catalogue has."""
        rows = self._harvester.rows(HELD)
        return self.documents == {document_id: (revision, bytes(content)) for document_id, revision, content in rows}


def manifest_of(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_bytes())
    assert schemas.problems("dataset-manifest", manifest) == []
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        *(each["file"] for each in manifest["files"]),
    ]
    for each in manifest["files"]:
        content = (folder / each["file"]).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (each["bytes"], each["sha256"])
    return manifest


def lines_of(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("part-*.jsonl.gz")):
        with gzip.open(path) as file:
            yield from map(json.loads, file)


def content_of(line: dict[str, Any]) -> bytes:
    content: str = line["content"]
    return base64.b64decode(content) if line["content_encoding"] == "base64" else content.encode()


def fill(harvester: Harvester, number: int) -> None:
    """Put documents into the catalogue."""
    with writers(harvester.engine).begin() as session:
        EmbeddedTarget(readers(harvester.engine)).upload([upload(f"e.{each}.1") for each in range(number)], session)


def test_a_reader_follows_the_documents_of_a_list(harvester: Harvester, server: HttpServer) -> None:
    reader = Reader(harvester)
    latin = '<?xml version="1.0" encoding="ISO-8859-1"?>\n' + eml("a.3.1", "Åse").decode().partition("\n")[2]
    url = server.serve("/a.3.1.xml", latin.encode("latin-1"))
    harvester.add_site("elm", publish(server, "a.1.1", "a.2.1", also=[("a.3.1", url)]))
    harvester.run("2026-11-20")
    lines = {each["document_id"]: each for each in reader.follow()}
    assert reader.is_right()
    assert {name: each["content_encoding"] for name, each in lines.items()} == {
        "a.1": "utf-8",
        "a.2": "utf-8",
        "a.3": "base64",
    }
    line = lines["a.1"]
    assert (line["site"], line["title"], line["origin"], line["sets"]) == ("elm", "A title", None, [])
    assert (line["url"], line["bytes"]) == (server.url("/a.1.1.xml"), len(eml("a.1.1")))
    assert reader.follow() == []

    server.serve("/a.1.2.xml", eml("a.1.2", "Stream chemistry"))
    publish(server, "a.1.2", "a.2.1", also=[("a.3.1", url)])
    harvester.run("2026-11-21")
    assert [(each["document_id"], each["revision"]) for each in reader.follow()] == [("a.1", 2)]
    assert reader.is_right()

    assert harvester("target", "withdraw", "a.2", "--reason", "a person objects").code == 0
    [line] = reader.follow()
    assert (line["document_id"], line["is_deleted"], line["content"], line["title"]) == ("a.2", True, None, None)
    assert reader.is_right()
    assert harvester("target", "withdraw", "a.2", "--undo").code == 0
    [line] = reader.follow()
    assert (line["document_id"], line["is_deleted"]) == ("a.2", False)
    assert reader.is_right()
    assert harvester("target", "withdraw", "a.2", "--reason", "it must go", "--erase", "--yes").code == 0
    assert [each["is_deleted"] for each in reader.follow()] == [True]
    assert reader.is_right()

    everything = Reader(harvester)
    everything.follow()
    assert everything.is_right()


def test_a_reader_follows_the_records_of_a_source_repository(harvester: Harvester) -> None:
    reader = Reader(harvester)
    with OaiServer(3) as repository:
        added = harvester("sites", "add", "repo", "--oai", repository.base_url, "--contact", "repo@example.org")
        assert added.code == 0, added.err
        harvester.run("2026-11-20", "--force")
        lines = reader.follow()
        assert len(lines) == 3
        assert reader.is_right()
        assert {each["base_url"] for each in lines} == {repository.base_url}
        repository.put("oai:test:1", sets=("rivers", "rivers:alder"))
        repository.delete("oai:test:2")
        harvester.run("2026-11-21", "--force")
    changed = {each["item_identifier"]: each for each in reader.follow()}
    assert reader.is_right()
    assert changed["oai:test:1"]["sets"] == ["rivers", "rivers:alder"]
    assert changed["oai:test:2"]["is_deleted"]
    assert all(each["datestamp"] for each in changed.values())


@on_one_database
def test_a_file_is_on_the_disk_before_and_after_it_gets_its_name(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Otherwise, a manifest could name a file that is lost when the machine fails."""
    steps: list[tuple[str, int]] = []
    sync, rename = os.fsync, Path.replace

    def synced(descriptor: int) -> None:
        steps.append(("sync", os.fstat(descriptor).st_ino))
        sync(descriptor)

    def renamed(path: Path, target: Path) -> Path:
        steps.append((target.name, path.stat().st_ino))
        return rename(path, target)

    fill(harvester, 2)
    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", renamed)
    folder = tmp_path / "dataset"
    assert harvester("export", "dataset", str(folder), "--documents-per-file", "1").code == 0
    names = [name for name, _ in steps if name != "sync"]
    begun = "manifest.partial.json"
    assert names == [begun, "part-00001.jsonl.gz", begun, "part-00002.jsonl.gz", begun, begun, "manifest.json"]
    for number, (name, file) in enumerate(steps):
        if name != "sync":
            assert ("sync", file) in steps[:number]
            assert steps[number + 1] == ("sync", folder.stat().st_ino)


@on_one_database
def test_hidden_sites_are_left_out(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("elm", publish(server, "a.1.1"))
    harvester.add_site("oak", publish(server, "b.1.1", path="/oak.xml"))
    harvester.run("2026-11-20")
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(settings + '[web]\nhidden = ["oak"]\n', encoding="utf-8")
    assert [each["document_id"] for each in Reader(harvester).follow()] == ["a.1"]


@on_one_database
def test_a_killed_export_goes_on_and_ends_as_if_nothing_had_happened(harvester: Harvester) -> None:
    fill(harvester, 4000)
    whole, killed = harvester.folder / "whole", harvester.folder / "killed"
    options = ("--documents-per-file", "80")
    assert harvester("export", "dataset", str(whole), *options).code == 0
    process = harvester.start("export", "dataset", str(killed), *options)
    wait_until(lambda: (killed / "part-00003.jsonl.gz").exists())
    process.kill()
    process.communicate()
    assert not (killed / "manifest.json").exists()
    other = harvester("export", "dataset", str(killed))
    assert (other.code, "--documents-per-file 80" in other.err) == (2, True)

    before = {path.name: path.stat().st_mtime_ns for path in killed.glob("part-*")}
    assert harvester("export", "dataset", str(killed), *options).code == 0
    kept = [name for name, moment in before.items() if (killed / name).stat().st_mtime_ns == moment]
    assert len(kept) >= 2
    first, second = manifest_of(whole), manifest_of(killed)
    assert {**first, "created_at": None} == {**second, "created_at": None}
    assert (first["documents"], len(first["files"])) == (4000, 50)


@on_one_database
@pytest.mark.parametrize("left", [".metaharvest-0123456789abcdef.new", ".manifest.partial.json.0123456789abcdef.new"])
def test_an_export_that_was_killed_before_its_first_manifest_begins_again(harvester: Harvester, left: str) -> None:
    """The second name is that of earlier versions."""
    fill(harvester, 2)
    folder = harvester.folder / "dataset"
    folder.mkdir()
    (folder / left).write_bytes(b"{")
    assert harvester("export", "dataset", str(folder)).code == 0
    assert {path.name for path in folder.iterdir()} == {"manifest.json", "part-00001.jsonl.gz"}


@on_one_database
def test_a_document_that_changes_meanwhile_comes_once_more(harvester: Harvester) -> None:
    fill(harvester, 30)
    folder = harvester.folder / "dataset"
    process = harvester.start("export", "dataset", str(folder), "--documents-per-file", "10")
    process.communicate()
    (folder / "manifest.json").rename(folder / "manifest.partial.json")  # as if it had been killed before the end
    with writers(harvester.engine).begin() as session:
        EmbeddedTarget(readers(harvester.engine)).upload([upload("e.3.2")], session)
    assert harvester("export", "dataset", str(folder), "--documents-per-file", "10").code == 0
    assert [each["revision"] for each in lines_of(folder) if each["document_id"] == "e.3"] == [1, 2]
    assert manifest_of(folder)["documents"] == 31


@on_one_database
def test_xml_has_the_documents_unchanged(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("elm", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    assert harvester("target", "withdraw", "a.2", "--reason", "a person objects").code == 0
    folder = harvester.folder / "dataset"
    assert harvester("export", "dataset", str(folder), "--format", "xml").code == 0
    [file] = manifest_of(folder)["files"]
    root = etree.fromstring(gzip.decompress((folder / file["file"]).read_bytes()))
    first, second = root
    assert (first.get("document_id"), second.get("document_id")) == ("a.1", "a.2")
    assert (second.get("is_deleted"), len(second)) == ("true", 0)
    [inner] = first[0]
    assert first[0].tag == f"{{{NAMESPACE}}}content"
    assert etree.tostring(inner, method="c14n", exclusive=True) == etree.tostring(
        etree.fromstring(eml("a.1.1")), method="c14n", exclusive=True
    )


@on_one_database
def test_parquet_has_the_same_as_json(harvester: Harvester, server: HttpServer) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: the extra is parquet")
    harvester.add_site("elm", publish(server, "a.1.1", "a.2.1"))
    harvester.run("2026-11-20")
    assert harvester("target", "withdraw", "a.2", "--reason", "a person objects").code == 0
    folder = harvester.folder / "dataset"
    assert harvester("export", "dataset", str(folder), "--format", "parquet").code == 0
    [file] = manifest_of(folder)["files"]
    rows = parquet.read_table(folder / file["file"]).to_pylist()
    lines = Reader(harvester).follow()
    assert [row.pop("content") for row in rows] == [eml("a.1.1"), None]
    assert [{**row, "changed_at": row["changed_at"].isoformat()} for row in rows] == [
        {name: value for name, value in line.items() if not name.startswith("content")} for line in lines
    ]


CC_BY = "https://creativecommons.org/licenses/by/4.0/"


def add_text(harvester: Harvester, document_id: str, text: str, licence: str | None, **other: Any) -> None:
    """The text of a document, as the pipeline leaves it in the tables and in the folder."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    values: dict[str, Any] = {"revision": 1, "state": StepState.DONE, "access": None, "until": None} | other
    output = Output(
        "oai_dc",
        licences=(Licence(licence, "dc:rights[1]", spdx_of(licence)),) if licence else (),
        access=values["access"],
        embargo_until=values["until"],
    )
    with writers(harvester.engine).begin() as session:
        its = CatalogueDocument.document_id == document_id
        number = session.scalars(select(CatalogueDocument.catalogue_document_id).where(its)).one()
        of = {"catalogue_document_id": number}
        session.add(OutputRecord(**of, revision=values["revision"], version=1, content=json_of(output)))
        file = {"sha256": "f" * 64, "media_type": "application/pdf", "size": 9, "kept": False, "fetched_at": AT}
        at = {"url": "https://e.org/1", "final_url": "https://me:secret@e.org/1.pdf", "found_by": "identifier"}
        session.add(OutputFile(**of, rank=0, licence=licence, **file, **at))
        session.add(
            OutputText(**of, version=1, file_sha256="f" * 64, text_sha256=digest, characters=len(text), language="en")
        )
        add_step(session, document_id, "full-text", values["state"], revision=values["revision"])
    FolderStore(harvester.folder / "pipeline" / "texts").put(digest, text.encode())


@on_one_database
def test_full_texts_are_given_away_only_where_the_licence_allows_it(
    harvester: Harvester, server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"a.{number}" for number in range(1, 13)]
    harvester.add_site("elm", publish(server, *(f"{name}.1" for name in names)))
    harvester.add_site("oak", publish(server, "b.1.1", path="/oak.xml"))
    harvester.run("2026-11-20")
    add_text(harvester, "a.1", "Ünder CC\n\tBY", CC_BY)
    add_text(harvester, "a.2", "without a version", "CC BY-NC")
    add_text(harvester, "a.3", "not changed", "CC BY-ND 4.0")
    add_text(harvester, "a.4", "no licence", None)
    add_text(harvester, "a.5", "restricted", CC_BY, access=Access.RESTRICTED)
    add_text(harvester, "a.6", "closed for long", CC_BY, access=Access.EMBARGOED, until="2999-01-01")
    add_text(harvester, "a.7", "of another revision", CC_BY, revision=0)
    add_text(harvester, "a.8", "not found again", CC_BY, state=StepState.FAILED)
    add_text(harvester, "a.9", "withdrawn", CC_BY)
    add_text(harvester, "a.10", "erased", CC_BY)
    add_text(harvester, "a.11", "lost", CC_BY)
    add_text(harvester, "a.12", "open by now", CC_BY, access=Access.EMBARGOED, until="2020-01-01")
    add_text(harvester, "b.1", "hidden", CC_BY)
    assert harvester("target", "withdraw", "a.9", "--reason", "a person objects").code == 0
    assert harvester("target", "withdraw", "a.10", "--reason", "a person objects", "--erase", "--yes").code == 0
    store = FolderStore(harvester.folder / "pipeline" / "texts")
    store.delete(hashlib.sha256(b"lost").hexdigest())
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(settings + '[web]\nhidden = ["oak"]\n', encoding="utf-8")

    folder = harvester.folder / "dataset"
    said = harvester("export", "dataset", str(folder), "--full-text")
    assert (said.code, "3 full texts" in said.out, "--full-text" in said.out) == (0, True, True), said.err
    assert "The text of a.11 is not in the folder" in caplog.text
    lines = {each["document_id"]: each for each in lines_of(folder)}
    assert not any(schemas.problems("dataset-line", each) for each in lines.values())
    assert {name: each["text"] for name, each in lines.items() if each["text"] is not None} == {
        "a.1": "Ünder CC\n\tBY",
        "a.2": "without a version",
        "a.12": "open by now",
    }
    assert len(lines) == 12
    assert "b.1" not in lines
    first = {name: value for name, value in lines["a.1"].items() if name.startswith("text_")}
    assert first == {
        "text_licence": "CC-BY-4.0",
        "text_url": "https://e.org/1.pdf",
        "text_language": "en",
        "text_sha256": hashlib.sha256("Ünder CC\n\tBY".encode()).hexdigest(),
    }
    assert lines["a.2"]["text_licence"] == "CC-BY-NC"
    assert {value for name, value in lines["a.3"].items() if name.startswith("text")} == {None}
    manifest = manifest_of(folder)
    assert (manifest["with_texts"], manifest["texts"], manifest["files"][0]["texts"]) == (True, 3, 3)

    (folder / "manifest.json").rename(folder / "manifest.partial.json")
    other = harvester("export", "dataset", str(folder))
    assert (other.code, "--full-text" in other.err) == (2, True)
    assert harvester("export", "dataset", str(folder), "--full-text").code == 0
    assert manifest_of(folder)["files"] == manifest["files"]

    table = harvester.folder / "table"
    parquet: Any = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: the extra is parquet")
    assert harvester("export", "dataset", str(table), "--full-text", "--format", "parquet").code == 0
    rows = parquet.read_table(table / manifest_of(table)["files"][0]["file"]).to_pylist()
    in_table = {row["document_id"]: {name: row[name] for name in TEXT_NAMES} for row in rows}
    assert in_table == {name: {each: line[each] for each in TEXT_NAMES} for name, line in lines.items()}


@on_one_database
def test_full_texts_need_their_folder_and_a_format_for_them(harvester: Harvester) -> None:
    fill(harvester, 1)
    folder = harvester.folder / "dataset"
    said = harvester("export", "dataset", str(folder), "--full-text", "--format", "xml")
    assert (said.code, "Files of the format xml have no full texts" in said.err) == (2, True)
    said = harvester("export", "dataset", str(folder), "--full-text")
    assert (said.code, "Run the pipeline first" in said.err) == (2, True)
    assert not folder.exists()


@on_one_database
def test_what_cannot_be_done_ends_with_a_sentence(harvester: Harvester, tmp_path: Path) -> None:
    fill(harvester, 3)
    folder = str(tmp_path / "new" / "dataset")

    def sentence(*arguments: str, code: int = 2) -> str:
        said = harvester("export", "dataset", *arguments)
        assert (said.code, said.out) == (code, "")
        return said.err

    assert "--since 4: the last change of the catalogue has the number 3." in sentence(folder, "--since", "4")
    assert "-1 is not in the range" in sentence(folder, "--since", "-1")
    assert "is not in the range" in sentence(folder, "--since", "9" * 100)
    assert "is not one of" in sentence(folder, "--format", "csv")
    assert "is not empty" in sentence(str(tmp_path))
    assert "is a file" in sentence(str(harvester.config))
    assert not Path(folder).exists()
    assert harvester("export", "dataset", folder).code == 0
    assert "has a complete dataset" in sentence(folder)

    begun = Path(folder) / "manifest.partial.json"
    (Path(folder) / "manifest.json").rename(begun)
    (Path(folder) / "part-00001.jsonl.gz").write_bytes(b"")
    assert "part-00001.jsonl.gz is not as it was written" in sentence(folder)
    begun.write_bytes(b"{}")
    assert "is not a manifest of this version" in sentence(folder)

    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f'{settings}[target]\nkind = "folder"\nfolder = "x"\n', encoding="utf-8")
    assert "a target of the kind folder" in sentence(str(tmp_path / "other"))


@on_one_database
def test_two_exports_into_one_folder_exclude_each_other(harvester: Harvester, tmp_path: Path) -> None:
    from filelock import FileLock

    folder = tmp_path / "dataset"
    folder.mkdir()
    with FileLock(folder / "export.lock"):
        said = harvester("export", "dataset", str(folder))
    assert (said.code, "Another process writes a dataset into" in said.err) == (2, True)


@on_one_database
def test_a_complete_dataset_stays_without_a_lock_after_a_second_export(harvester: Harvester, tmp_path: Path) -> None:
    fill(harvester, 1)
    folder = tmp_path / "dataset"
    assert [harvester("export", "dataset", str(folder)).code for _ in range(2)] == [0, 2]
    assert not (folder / "export.lock").exists()


@on_one_database
def test_a_file_that_cannot_be_written_is_not_there(harvester: Harvester, tmp_path: Path) -> None:
    big = upload("e.1.1")
    content = os.urandom(400_000)
    fetched = replace(big.fetched, content=content, sha256=hashlib.sha256(content).hexdigest())
    with writers(harvester.engine).begin() as session:
        EmbeddedTarget(readers(harvester.engine)).upload([replace(big, fetched=fetched)], session)
    folder = tmp_path / "dataset"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
    try:
        said = harvester("export", "dataset", str(folder))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (said.code, said.out) == (1, "")
    assert f"{folder} cannot be written: File too large. When this is corrected, the same command goes on." in said.err
    assert sorted(path.name for path in folder.iterdir()) == ["export.lock", "manifest.partial.json"]
    assert harvester("export", "dataset", str(folder)).code == 0
    assert [content_of(line) for line in lines_of(folder)] == [content]


@on_one_database
def test_a_folder_of_somebody_else_is_not_written(harvester: Harvester, tmp_path: Path) -> None:
    fill(harvester, 3)
    folder = tmp_path / "others"
    folder.mkdir(mode=0o555)
    command = ["--config", str(harvester.config), "export", "dataset", str(folder)]
    said = process_as_others(*command)
    assert (said.returncode, said.stdout) == (1, ""), said.stderr
    assert f"{folder} cannot be written: Permission denied." in said.stderr
