"""The stage `index` after a stage that has the outputs ready: what a reader of the index finds after each run."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import pytest
from pydantic import TypeAdapter
from sqlalchemy import delete, insert
from sqlalchemy.orm import Session

from metaharvest.catalogue.stage_documents import stage_documents
from metaharvest.database.engine import writers
from metaharvest.database.pipeline_models import OutputFile, OutputRecord, OutputText, OutputWork, PipelineStep
from metaharvest.errors import IndexUnavailable
from metaharvest.model.outputs import Output
from metaharvest.pipeline.file_store import FolderStore
from metaharvest.pipeline.running import run_stages
from metaharvest.pipeline.search import index_places, stage
from metaharvest.pipeline.search.contract import Entry, Search
from metaharvest.pipeline.search.embedded_index import EmbeddedWriter
from metaharvest.pipeline.search.entries import entry_of
from metaharvest.pipeline.search.index_places import IndexFolder
from metaharvest.pipeline.search.query_language import read_query
from metaharvest.pipeline.search.removals import Removals
from metaharvest.pipeline.search.stage import STAGE, index_place, rebuild
from metaharvest.pipeline.stage import Context, Document, Result, Stage, StageName
from support.databases import on_one_database
from support.harvester import Harvester
from support.outputs import output
from support.provider import dc, record, store
from support.provider import delete as delete_document

pytestmark = on_one_database


@dataclass
class Installation:
    """An installation whose outputs have the titles of its documents. `stops_after`: the context stops then."""

    harvester: Harvester
    context: Context
    stops_after: int = 10_000
    seen: list[int] = field(default_factory=list)

    def run(self) -> None:
        run_stages(replace(self.context, stops=self._stops), [CLEANING, replace(STAGE, batch=3)])

    def _stops(self) -> bool:
        self.stops_after -= 1
        return self.stops_after < 0

    def titles(self, query: str = "") -> list[str]:
        """The titles that a new reader finds."""
        hits = index_place(self.context.folder, "").reader().search(Search(read_query(query), limit=100)).hits
        return sorted(each.record["title"] for each in hits)


def _clean(context: Context, documents: Sequence[Document]) -> Iterator[Result]:
    for each in documents:
        name = each.document_id.rpartition("/")[2]
        yield Result(each, None if name.startswith("broken") else output(f"{name} r{each.revision}"))


def _store(session: Session, results: Sequence[Result], now: datetime) -> None:
    _remove(session, [each.document.number for each in results])
    for each in results:
        if each.value is not None:
            content = TypeAdapter(Output).dump_json(each.value, exclude_defaults=True).decode()
            values = {"catalogue_document_id": each.document.number, "revision": 1, "version": 1, "content": content}
            session.execute(insert(OutputRecord).values(values))


def _remove(session: Session, numbers: Collection[int]) -> None:
    session.execute(delete(OutputRecord).where(OutputRecord.catalogue_document_id.in_(numbers)))


CLEANING = Stage(StageName.CLEANING, 1, _clean, _store, _remove, wakes=(StageName.INDEX,))


@pytest.fixture
def installation(harvester: Harvester) -> Iterator[Installation]:
    with harvester.opened(engine=harvester.engine) as opened:
        yield Installation(harvester, Context(harvester.engine, opened.settings, opened.now))


def uploads(*names: str, revision: int = 1) -> list[object]:
    return [record(name, dc(name), revision=revision) for name in names]


def test_documents_are_found_after_a_run(installation: Installation) -> None:
    harvester = installation.harvester
    store(harvester, *uploads("alder", "beech", "broken", "elm", "fir"))  # type: ignore[arg-type]
    installation.run()
    assert installation.titles() == ["alder r1", "beech r1", "elm r1", "fir r1"]
    assert harvester.rows("SELECT state, count(*) FROM pipeline_step WHERE stage = 'index' GROUP BY state") == [
        ("done", 4),
        ("skipped", 1),
    ]
    store(harvester, *uploads("beech", "oak", revision=2))  # type: ignore[arg-type]
    delete_document(harvester, record("fir", dc("fir")))
    installation.run()
    assert installation.titles() == ["alder r1", "beech r2", "elm r1", "oak r2"]
    assert installation.titles("beech") == ["beech r2"]


def test_removals_are_known_until_the_index_has_them(installation: Installation) -> None:
    harvester, removals = installation.harvester, Removals()

    def known() -> set[int]:
        with installation.context.reading() as session:
            found = set(removals.numbers(session, None))
            assert set(Removals().numbers(session, None)) == found  # another process
            return found

    store(harvester, *uploads("alder", "beech", "elm"))  # type: ignore[arg-type]
    installation.run()
    assert known() == set()
    delete_document(harvester, record("alder", dc("alder")))
    delete_document(harvester, record("beech", dc("beech")))
    assert known() == {1, 2}
    store(harvester, *uploads("alder", revision=2))  # type: ignore[arg-type]
    assert known() == {2}
    installation.stops_after = 3  # after the feed, before the stage `index`
    installation.run()
    assert known() == {2}
    assert installation.titles() == ["alder r1", "beech r1", "elm r1"]
    installation.stops_after = 10_000
    installation.run()
    assert known() == set()
    assert installation.titles() == ["alder r2", "elm r1"]
    # Documents wait at stages that are switched off.
    columns = "catalogue_document_id, stage, state, woken, attempts"
    harvester.rows(f"INSERT INTO pipeline_step ({columns}) VALUES (3, 'full-text', 'waiting', 1, 0)")
    delete_document(harvester, record("elm", dc("elm")))
    installation.run()
    assert known() == {3}
    of_pipeline = installation.context.settings.pipeline.model_copy(update={"full_text": False})
    settings = installation.context.settings.model_copy(update={"pipeline": of_pipeline})
    installation.context = replace(installation.context, settings=settings)
    installation.run()
    assert known() == set()


def test_a_full_text_and_a_work_are_in_the_entry(installation: Installation) -> None:
    store(installation.harvester, *uploads("alder", "beech"))  # type: ignore[arg-type]
    text = "The plots lie in the Solling mountains."
    digest = hashlib.sha256(text.encode()).hexdigest()
    place = installation.context.folder / "texts" / digest[:2] / digest[2:4]
    place.mkdir(parents=True)
    (place / digest).write_text(text, encoding="utf-8")
    values = {"version": 1, "file_sha256": "0" * 64, "characters": len(text), "language": "en"}
    with writers(installation.harvester.engine).begin() as session:
        for number, text_sha256 in ((1, digest), (2, "f" * 64)):
            session.add(OutputText(catalogue_document_id=number, text_sha256=text_sha256, **values))
        session.add(OutputWork(catalogue_document_id=2, work_id=1))
    installation.run()
    assert installation.titles("solling") == ["alder r1"]
    hits = index_place(installation.context.folder, "").reader().search(Search()).hits
    assert {each.number: (each.record["work"], each.record["full_text"] is None) for each in hits} == {
        1: (1, False),
        2: (1, True),
    }


def test_a_damaged_text_is_not_indexed_and_is_extracted_again(installation: Installation) -> None:
    store(installation.harvester, *uploads("alder", "beech", "elm", "fir"))  # type: ignore[arg-type]
    texts = FolderStore(installation.context.folder / "texts")
    digests = [hashlib.sha256(b"Solling %d" % number).hexdigest() for number in range(1, 5)]
    for digest, content in zip(digests, (b"Solling 1", b"Solling", b"Solling", b""), strict=True):
        texts.put(digest, content)
    texts.delete(digests[3])  # it may be on a disk that is away
    text = {"version": 1, "file_sha256": "0" * 64, "characters": 7, "language": "en"}
    file = {"url": "", "final_url": "", "found_by": "", "sha256": "0" * 64, "media_type": "", "size": 1}
    with writers(installation.harvester.engine).begin() as session:
        for number, digest in enumerate(digests, 1):
            session.add(OutputText(catalogue_document_id=number, text_sha256=digest, **text))
            is_kept, fetched_at = number == 2, installation.context.now()
            session.add(OutputFile(catalogue_document_id=number, rank=0, kept=is_kept, fetched_at=fetched_at, **file))
            for name in ("full-text", "extraction"):
                step = {"stage": name, "state": "done", "woken": 1, "attempts": 0}
                session.add(PipelineStep(catalogue_document_id=number, **step))
    installation.run()
    assert installation.titles("solling") == ["alder r1"]
    query = "SELECT stage, catalogue_document_id FROM pipeline_step WHERE state = 'waiting' ORDER BY stage"
    assert installation.harvester.rows(query) == [("extraction", 2), ("full-text", 3)]
    assert [texts.has(each) for each in digests] == [True, False, False, False]


def test_a_lost_index_is_made_again_with_all_documents(installation: Installation) -> None:
    store(installation.harvester, *uploads("alder", "beech", "elm"))  # type: ignore[arg-type]
    installation.run()
    shutil.rmtree(installation.context.folder / "index")
    store(installation.harvester, *uploads("oak"))  # type: ignore[arg-type]
    installation.run()
    assert installation.titles() == ["alder r1", "beech r1", "elm r1", "oak r1"]


def test_a_lost_index_is_made_again_although_nothing_waits(installation: Installation) -> None:
    store(installation.harvester, *uploads("alder", "beech"))  # type: ignore[arg-type]
    installation.run()
    index = installation.context.folder / "index"
    for lost in (index, index / "v1-1"):
        shutil.rmtree(lost)
        installation.run()
        assert installation.titles() == ["alder r1", "beech r1"]


def test_an_old_index_that_was_not_deleted_does_no_harm(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(installation.harvester, *uploads("alder", "beech"))  # type: ignore[arg-type]
    installation.run()
    index = installation.context.folder / "index"
    with monkeypatch.context() as patch:
        patch.setattr(IndexFolder, "_delete", lambda self, name: (index / name / "meta.json").write_text("{"))
        assert rebuild(installation.context)
        store(installation.harvester, *uploads("elm"))  # type: ignore[arg-type]
        installation.run()
        assert (index / "current").read_text("ascii") == "v1-2\n"
    installation.run()
    assert sorted(each.name for each in index.iterdir()) == ["current", "lock", "v1-2"]
    assert installation.titles() == ["alder r1", "beech r1", "elm r1"]


def test_a_damaged_new_index_is_made_again(installation: Installation) -> None:
    store(installation.harvester, *uploads("alder", "beech"))  # type: ignore[arg-type]
    installation.run()
    damaged = installation.context.folder / "index" / "v1-2"
    damaged.mkdir()
    (damaged / "meta.json").write_text("{")
    assert rebuild(installation.context)
    assert (damaged.parent / "current").read_text("ascii") == "v1-3\n"
    assert installation.titles() == ["alder r1", "beech r1"]


def test_another_version_is_made_beside_the_old_one(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(installation.harvester, *uploads("alder", "beech", "elm", "fir"))  # type: ignore[arg-type]
    installation.run()
    reader = index_place(installation.context.folder, "").reader()
    for module in (stage, index_places):
        monkeypatch.setattr(module, "INDEX_VERSION", 2)
    monkeypatch.setattr(stage, "_AT_ONCE", 2)
    store(installation.harvester, *uploads("oak"))  # type: ignore[arg-type]
    # Stopped in the middle: the old one is still there, and a document that goes meanwhile is in neither.
    context = replace(installation.context, stops=iter([False, True]).__next__)
    assert not rebuild(context)
    folder = installation.context.folder / "index"
    assert (folder / "current").read_text("ascii") == "v1-1\n"
    delete_document(installation.harvester, record("beech", dc("beech")))
    installation.run()
    assert (folder / "current").read_text("ascii") == "v2-2\n"
    assert sorted(each.name for each in folder.iterdir()) == ["current", "lock", "v2-2"]
    assert installation.titles() == ["alder r1", "elm r1", "fir r1", "oak r1"]
    assert reader.size() == 4


def test_a_new_version_is_made_once_and_the_old_one_answers_until_then(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    harvester = installation.harvester
    store(harvester, *uploads("alder", "beech", "elm", "fir"))  # type: ignore[arg-type]
    installation.run()
    for module in (stage, index_places):
        monkeypatch.setattr(module, "INDEX_VERSION", 2)
    put: list[int] = []
    real_put = EmbeddedWriter.put

    def noting(writer: EmbeddedWriter, entries: Sequence[Entry]) -> Mapping[int, str]:
        put.extend(each.number for each in entries)
        assert installation.titles() == ["alder r1", "beech r1", "elm r1", "fir r1"]
        return real_put(writer, entries)

    monkeypatch.setattr(EmbeddedWriter, "put", noting)
    higher = replace(STAGE, version=2, batch=2)
    # The last document that waits is gone.
    delete_document(harvester, record("fir", dc("fir")))
    run_stages(installation.context, [CLEANING, higher])
    assert installation.titles() == ["alder r1", "beech r1", "elm r1"]
    assert sorted(put) == [1, 2, 3]
    assert (installation.context.folder / "index" / "current").read_text("ascii") == "v2-2\n"


def test_a_new_version_that_was_lost_half_made_is_made_with_all_documents(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(installation.harvester, *uploads("alder", "beech", "elm", "fir"))  # type: ignore[arg-type]
    installation.run()
    for module in (stage, index_places):
        monkeypatch.setattr(module, "INDEX_VERSION", 2)
    higher = replace(STAGE, version=2, batch=2)
    looks = iter([False, False, False, True])
    run_stages(replace(installation.context, stops=lambda: next(looks, True)), [CLEANING, higher])
    done = "SELECT count(*) FROM pipeline_step WHERE stage = 'index' AND state = 'done' AND version = 2"
    assert installation.harvester.rows(done) == [(2,)]
    shutil.rmtree(installation.context.folder / "index" / "v2-2")
    run_stages(installation.context, [CLEANING, higher])
    assert installation.titles() == ["alder r1", "beech r1", "elm r1", "fir r1"]


def test_an_entry_that_the_index_refuses_fails_alone(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(installation.harvester, *uploads("alder", "beech", "elm"))  # type: ignore[arg-type]

    def with_a_bad_year(document: Document, *others: Any) -> Entry:
        made = entry_of(document, *others)
        return replace(made, year=10**30) if document.number == 2 else made

    monkeypatch.setattr(stage, "entry_of", with_a_bad_year)
    installation.run()
    assert installation.titles() == ["alder r1", "elm r1"]
    failed = "SELECT catalogue_document_id, rule, message, retry_at IS NULL FROM pipeline_step WHERE state = 'failed'"
    [(number, rule, message, is_final)] = installation.harvester.rows(failed)
    assert (number, rule, bool(is_final)) == (2, "pipeline.entry-refused", False)
    assert "does not accept the entry" in message


def test_a_run_that_ends_before_its_steps_are_noted_is_harmless(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(installation.harvester, *uploads("alder", "beech"))  # type: ignore[arg-type]
    installation.run()
    store(installation.harvester, *uploads("alder", revision=2))  # type: ignore[arg-type]
    delete_document(installation.harvester, record("beech", dc("beech")))
    run_stages(installation.context, [CLEANING])
    for _ in range(2):
        with installation.context.reading() as session:
            documents = stage_documents(session, [1])
        list(STAGE.perform(installation.context, list(documents.values())))
        STAGE.forget(installation.context, [2])
    assert installation.titles() == ["alder r2"]
    installation.run()
    assert installation.titles() == ["alder r2"]


def test_a_rebuild_that_was_stopped_goes_on_although_nothing_waits(installation: Installation) -> None:
    store(installation.harvester, *uploads("alder", "beech"))  # type: ignore[arg-type]
    installation.run()
    assert not rebuild(replace(installation.context, stops=lambda: True))
    installation.run()
    assert (installation.context.folder / "index" / "current").read_text("ascii") == "v1-2\n"
    assert installation.titles() == ["alder r1", "beech r1"]


def test_two_processes_do_not_write_at_once(installation: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "_WAIT_SECONDS", 0)
    folder = installation.context.folder / "index"
    with stage._only_writer(folder), pytest.raises(IndexUnavailable, match="Another process writes"):
        rebuild(installation.context)
