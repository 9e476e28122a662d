"""The stage: from files to the tables output_text and output_reference, again and again."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import Engine, insert, select
from sqlalchemy.orm import Session

from metaharvest.config.settings import HttpSettings, PipelineSettings, Settings
from metaharvest.database.all_tables import Base
from metaharvest.database.engine import writers
from metaharvest.database.pipeline_models import OutputFile, OutputReference, OutputText, PipelineStep
from metaharvest.errors import MetaharvestError
from metaharvest.model.outputs import Agent, Identifier, Output, Text
from metaharvest.pipeline import steps
from metaharvest.pipeline.cleaning import stage as cleaning
from metaharvest.pipeline.extraction import services
from metaharvest.pipeline.extraction.stage import STAGE
from metaharvest.pipeline.file_store import FolderStore
from metaharvest.pipeline.stage import Context, Document, Result, StepState
from support.databases import open_sqlite_file
from support.http_server import Asking, HttpServer, silent
from support.pdf_files import encrypted, pdf_of_text
from support.waiting import wait_until

AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
BODY = "The recovery of beech forests after storms was studied in forty plots over ten years.\n" * 40
TITLES = {
    1: "The recovery of beech forests after storms in the north",
    2: "Die Erholung der Buchenwälder nach Stürmen im Norden",
    3: "Le rétablissement des hêtraies après les tempêtes du nord",
}
REFERENCES = [
    "[1] Lind, A. (2001). Die Erholung der Buchenwälder nach Stürmen im Norden. Forst 3, 1-15.",
    "[2] Bo, C. (2002). Le rétablissement des hêtraies. Forêts 4. doi:10.1234/THREE",
    "[3] Holm, K. (2003). Water in the woods of the far south: a long study. Trees 5, 1-9.",
]
PAPER = BODY + "\nReferences\n\n" + "\n".join(REFERENCES)


class Installation:
    """A database and a folder with outputs and files, and the stage over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine: Engine = open_sqlite_file(folder / "test.db")
        self.settings = Settings(folder=folder)
        self.files = FolderStore(folder / "pipeline" / "files")

    def context(self) -> Context:
        return Context(self.engine, self.settings, lambda: AT)

    def use(self, **settings: str) -> None:
        self.settings = Settings(folder=self.folder, pipeline=PipelineSettings(**settings))  # type: ignore[arg-type]

    def add_output(self, number: int, title: str, doi: str | None = None, language: str | None = None) -> None:
        output = Output(
            "oai_dc",
            (Text(title, "dc:title"),),
            creators=(Agent("Lind, A.", "dc:creator", family="Lind"),),
            identifiers=(Identifier("doi", doi, "dc:identifier"),) if doi else (),
            year=2001,
            language=language,
        )
        with writers(self.engine).begin() as session:
            cleaning.STAGE.store(session, [Result(document(number), output)], AT)

    def add_file(
        self, number: int, content: bytes, media_type: str = "application/pdf", *, kept: bool = True, rank: int = 0
    ) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self.files.put(digest, content)
        self.files.confirm(digest)
        row = {
            **{"url": "https://x.org/a", "final_url": "https://x.org/a", "found_by": "record", "sha256": digest},
            **{"media_type": media_type, "size": len(content), "kept": kept, "fetched_at": AT, "rank": rank},
        }
        with writers(self.engine).begin() as session:
            session.execute(insert(OutputFile), {"catalogue_document_id": number, **row})
        return digest

    def run(self, *numbers: int) -> list[Result]:
        """Do the stage for these documents, in the way of the runner."""
        context = self.context()
        with writers(self.engine).begin() as session:
            steps.wake(session, STAGE.name, numbers)
            taken = {step.number: step for step in steps.take(session, STAGE, AT)}
        results = list(STAGE.perform(context, [document(number) for number in numbers]))
        with writers(self.engine).begin() as session:
            STAGE.store(session, results, AT)
            steps.end(session, STAGE, [(taken[each.document.number], each) for each in results], AT)
        STAGE.tidy(context)
        return results

    def texts(self) -> list[OutputText]:
        with Session(self.engine) as session:
            return list(session.scalars(select(OutputText).order_by(OutputText.catalogue_document_id)))

    def references(self) -> list[tuple[int, str | None, int | None, str | None]]:
        with Session(self.engine) as session:
            rows = session.scalars(select(OutputReference).order_by(OutputReference.output_reference_id))
            return [(row.position, row.doi, row.matched_id, row.method) for row in rows]

    def text_files(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "pipeline" / "texts").rglob("*") if len(path.name) == 64)


def document(number: int) -> Document:
    name = f"oai:r:{number}"
    return Document(number, name, name, None, "oai_dc", 1, number, number, None, None, False)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    made = Installation(tmp_path)
    made.add_output(1, TITLES[1])
    made.add_output(2, TITLES[2])
    made.add_output(3, TITLES[3], doi="10.1234/three")
    yield made
    made.engine.dispose()


def test_a_paper_gives_its_text_its_language_and_references_to_other_documents(installation: Installation) -> None:
    installation.add_file(1, pdf_of_text(PAPER))
    [result] = installation.run(1)
    assert result.state is StepState.DONE
    [row] = installation.texts()
    assert (row.language, row.pages) == ("en", 1)
    text = FolderStore(installation.folder / "pipeline" / "texts").read(row.text_sha256).decode()
    assert text.startswith("The recovery of beech forests after storms")
    assert row.characters == len(text)
    assert installation.references() == [
        (1, None, 2, "title"),
        (2, "10.1234/three", 3, "doi"),
        (3, None, None, None),
    ]


def test_the_same_again_gives_the_same_tables(installation: Installation) -> None:
    installation.add_file(1, pdf_of_text(PAPER))
    installation.run(1)
    before = installation.references(), [row.text_sha256 for row in installation.texts()], installation.text_files()
    installation.run(1)
    assert (
        installation.references(),
        [row.text_sha256 for row in installation.texts()],
        installation.text_files(),
    ) == before


def test_a_document_without_a_file_is_skipped_and_one_that_is_bad_costs_itself_alone(
    installation: Installation,
) -> None:
    installation.add_file(1, encrypted(pdf_of_text(PAPER)))
    installation.add_file(3, pdf_of_text(BODY))
    results = installation.run(1, 2, 3)
    assert [each.state for each in results] == [StepState.FAILED, StepState.SKIPPED, StepState.DONE]
    assert results[0].failure is not None
    assert results[0].failure.rule == "extraction.encrypted"
    assert [row.catalogue_document_id for row in installation.texts()] == [3]


def test_a_text_stays_while_the_store_of_files_cannot_be_read(installation: Installation) -> None:
    digest = installation.add_file(1, pdf_of_text(PAPER))
    installation.run(1)
    before = installation.references(), installation.text_files()
    folder = installation.files.path(digest).parents[1]
    folder.rename(folder.with_suffix(".away"))
    folder.touch()
    [result] = installation.run(1)
    assert result.failure is not None
    assert result.failure.rule == "extraction.store-away"
    assert (installation.references(), installation.text_files()) == before
    assert len(installation.texts()) == 1


def test_a_folder_that_cannot_be_written_is_a_sentence(installation: Installation) -> None:
    installation.add_file(1, pdf_of_text(PAPER))
    (installation.folder / "pipeline" / "texts").write_bytes(b"no folder")
    with pytest.raises(MetaharvestError, match="cannot be written"):
        installation.run(1)


def test_the_next_file_is_read_if_the_best_one_cannot_be(installation: Installation) -> None:
    installation.add_file(1, encrypted(pdf_of_text(PAPER)))
    second = installation.add_file(1, PAPER.encode(), "text/plain", rank=1)
    installation.run(1)
    assert [row.file_sha256 for row in installation.texts()] == [second]


def test_a_damaged_file_is_missing_and_the_next_one_is_read(installation: Installation) -> None:
    damaged = installation.add_file(1, pdf_of_text(PAPER))
    installation.files.path(damaged).write_bytes(b"%PDF")
    second = installation.add_file(1, PAPER.encode(), "text/plain", rank=1)
    also = installation.add_file(2, pdf_of_text(BODY))
    installation.files.path(also).write_bytes(b"%PDF")
    results = installation.run(1, 2)
    assert [row.file_sha256 for row in installation.texts()] == [second]
    assert results[1].failure is not None
    assert results[1].failure.rule == "extraction.file-missing"
    assert not installation.files.has(damaged)
    assert not installation.files.has(also)


def test_a_new_file_replaces_the_text_and_the_old_text_is_deleted(installation: Installation) -> None:
    installation.add_file(1, BODY.encode(), "text/plain")
    installation.run(1)
    [old] = installation.text_files()
    with writers(installation.engine).begin() as session:
        session.query(OutputFile).delete()
    installation.add_file(1, PAPER.encode(), "text/plain")
    installation.run(1)
    [new] = installation.text_files()
    assert new != old


def test_a_document_that_is_gone_leaves_nothing_and_no_match(installation: Installation) -> None:
    installation.add_file(1, pdf_of_text(PAPER))
    installation.add_file(2, BODY.encode(), "text/plain")
    installation.run(1, 2)
    with writers(installation.engine).begin() as session:
        STAGE.remove(session, [2])
    STAGE.tidy(installation.context())
    assert installation.references()[0] == (1, None, None, None)
    with writers(installation.engine).begin() as session:
        STAGE.remove(session, [1])
    STAGE.tidy(installation.context())
    assert installation.texts() == []
    assert installation.references() == []
    assert installation.text_files() == []


def test_a_text_that_two_documents_have_stays_for_the_other(installation: Installation) -> None:
    installation.add_file(1, BODY.encode(), "text/plain")
    installation.add_file(2, BODY.encode() + b"\n", "text/plain")
    installation.run(1, 2)
    with writers(installation.engine).begin() as session:
        STAGE.remove(session, [1])
    STAGE.tidy(installation.context())
    assert len(installation.text_files()) == 1


def test_a_file_that_is_not_to_be_kept_goes_when_its_text_is_taken(installation: Installation) -> None:
    digest = installation.add_file(1, pdf_of_text(PAPER), kept=False)
    locked = installation.add_file(2, encrypted(pdf_of_text(BODY)), kept=False)
    installation.run(1, 2)
    assert not installation.files.has(digest)
    assert not installation.files.has(locked)
    before = installation.references()
    assert len(before) == 3
    [result] = installation.run(1)
    assert result.state is StepState.DONE
    assert installation.references() == before


def test_a_new_version_reads_the_text_of_a_file_that_was_not_kept(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = installation.add_file(1, pdf_of_text(PAPER), kept=False)
    installation.run(1)
    monkeypatch.setattr("metaharvest.pipeline.extraction.stage.VERSION", 2)
    [result] = installation.run(1)
    assert result.state is StepState.DONE
    assert installation.texts()[0].version == 2
    assert len(installation.references()) == 3
    monkeypatch.setattr("metaharvest.pipeline.extraction.stage.VERSION", 3)
    [digest] = installation.text_files()
    FolderStore(installation.folder / "pipeline" / "texts").path(digest).write_bytes(b"The")
    [result] = installation.run(1)
    assert result.failure is not None
    assert result.failure.rule == "extraction.file-missing"
    assert [row.text_sha256 for row in installation.texts()] == [digest]
    assert len(installation.references()) == 3
    installation.files.put(file, pdf_of_text(PAPER))
    [result] = installation.run(1)
    assert result.failure is None
    assert (installation.texts()[0].version, installation.text_files()) == (3, [digest])
    assert len(installation.references()) == 3


def test_a_file_that_another_document_keeps_stays(installation: Installation) -> None:
    digest = installation.add_file(1, pdf_of_text(PAPER), kept=False)
    installation.add_file(2, pdf_of_text(PAPER), kept=True)
    installation.run(1, 2)
    assert installation.files.has(digest)


def test_the_next_run_fetches_a_damaged_file_again_and_no_missing_one(installation: Installation) -> None:
    damaged, missing = installation.add_file(1, pdf_of_text(PAPER)), installation.add_file(2, pdf_of_text(BODY))
    installation.files.path(damaged).write_bytes(b"%PDF")
    installation.files.delete(missing)
    with writers(installation.engine).begin() as session:
        done = {"stage": "full-text", "state": "done", "woken": 1, "attempts": 0}
        session.execute(insert(PipelineStep), [{"catalogue_document_id": number, **done} for number in (1, 2)])
    results = installation.run(1, 2)
    assert [each.failure and each.failure.rule for each in results] == ["extraction.file-missing"] * 2
    with Session(installation.engine) as session:
        waiting = select(PipelineStep.catalogue_document_id).where(PipelineStep.state == "waiting")
        assert list(session.scalars(waiting)) == [1]


def test_a_file_that_is_not_in_the_store_is_named(installation: Installation) -> None:
    digest = installation.add_file(1, pdf_of_text(PAPER))
    installation.files.delete(digest)
    [result] = installation.run(1)
    assert result.failure is not None
    assert result.failure.rule == "extraction.file-missing"


def test_the_language_is_the_declared_one_unless_the_text_is_another(installation: Installation) -> None:
    installation.add_output(1, TITLES[1], language="de")
    installation.add_file(1, BODY.encode(), "text/plain")
    installation.run(1)
    assert installation.texts()[0].language == "en"


# -- services


def crossref_answer(asking: Asking) -> None:
    """The shape of an answer of Crossref to query.bibliographic; it knows the third reference."""
    query = parse_qs(urlsplit(asking.path).query)
    known = {
        "DOI": "10.5555/WATER",
        "title": ["Water in the woods of the far south"],
        "subtitle": ["A long study"],
        "author": [{"given": "Kari", "family": "Holm", "sequence": "first", "affiliation": []}],
        "issued": {"date-parts": [[2003, 5]]},
        "score": 71.2,
    }
    other = {**known, "DOI": "10.5555/other", "title": ["Water in the towns"], "subtitle": []}
    items = [other, known] if "Water in the woods" in query["query.bibliographic"][0] else [other]
    body = {"status": "ok", "message-type": "work-list", "message": {"total-results": 2, "items": items}}
    asking.answer(json.dumps(body).encode(), headers={"Content-Type": "application/json"})


@pytest.fixture
def service() -> Iterator[HttpServer]:
    with HttpServer() as server:
        yield server


def test_crossref_names_the_doi_of_a_reference_and_is_asked_once(
    installation: Installation, service: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metaharvest.pipeline.extraction.stage._CROSSREF_PACE", 0.0)
    service.otherwise = crossref_answer
    installation.use(crossref=service.url("/"), mail="admin@example.org")
    installation.add_file(1, pdf_of_text(PAPER))
    installation.run(1)
    assert installation.references()[2] == (3, "10.5555/water", None, "crossref")
    [request] = service.requests
    asked = parse_qs(urlsplit(request.path).query)
    assert asked["mailto"] == ["admin@example.org"]
    assert "reference" not in asked["select"][0]
    installation.add_output(4, "A title that is not the one of the text", doi="10.5555/water")
    installation.run(1)
    assert installation.references()[2] == (3, "10.5555/water", 4, "crossref")
    assert len(service.requests) == 1


@pytest.mark.parametrize(("status", "body"), [(500, b""), (200, b"<html>"), (429, b"")])
def test_a_service_that_is_away_costs_its_part_alone_and_is_tried_again(
    installation: Installation, service: HttpServer, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes
) -> None:
    monkeypatch.setattr("metaharvest.pipeline.extraction.stage._CROSSREF_PACE", 0.0)
    service.otherwise = lambda asking: asking.answer(body, status, {"Retry-After": "3600"})
    installation.use(crossref=service.url("/"))
    digest = installation.add_file(1, pdf_of_text(PAPER), kept=False)
    [result] = installation.run(1)
    assert result.failure is not None
    assert result.failure.rule == "extraction.service-away"
    assert result.failure.retry_after is not None
    assert len(installation.references()) == 3
    assert installation.files.has(digest)
    assert len(service.requests) == 1
    service.otherwise = crossref_answer
    [result] = installation.run(1)
    assert result.state is StepState.DONE
    assert not installation.files.has(digest)


def test_crossref_away_costs_no_document_that_needs_no_answer_of_it(
    installation: Installation, service: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metaharvest.pipeline.extraction.stage._CROSSREF_PACE", 0.0)
    service.otherwise = crossref_answer
    installation.use(crossref=service.url("/"))
    installation.add_file(3, pdf_of_text(PAPER))
    installation.run(3)
    service.otherwise = lambda asking: asking.answer(b"", 500)
    installation.add_file(1, pdf_of_text(PAPER.replace("far south", "near east")))
    installation.add_file(2, b"A text without references.", "text/plain")
    states = [each.state for each in installation.run(1, 2, 3)]
    assert states == [StepState.FAILED, StepState.DONE, StepState.DONE]


def test_a_busy_service_is_asked_again_after_its_pause(
    installation: Installation, service: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: Iterator[Callable[[Asking], None]] = iter(
        [lambda asking: asking.answer(b"", 503, {"Retry-After": "0"}), crossref_answer]
    )
    service.otherwise = lambda asking: next(answers)(asking)
    installation.use(crossref=service.url("/"))
    installation.add_file(1, pdf_of_text(PAPER))
    assert installation.run(1)[0].state is StepState.DONE
    assert installation.references()[2][3] == "crossref"


TEI = """<?xml version="1.0" encoding="UTF-8"?>
<TEI xmlns="http://www.tei-c.org/ns/1.0"><teiHeader><fileDesc><sourceDesc><biblStruct><monogr><title/></monogr>
</biblStruct></sourceDesc></fileDesc></teiHeader><text><back><div><listBibl>
<biblStruct xml:id="b0"><analytic><title level="a" type="main">Die Erholung der Buchenwälder nach Stürmen</title>
<author><persName><forename type="first">A</forename><surname>Lind</surname></persName></author></analytic>
<monogr><title level="j">Forst</title><imprint><biblScope unit="volume">3</biblScope>
<date type="published" when="2001">2001</date></imprint></monogr>
<note type="raw_reference">Lind, A. (2001). Die Erholung der Buchenwälder nach Stürmen im Norden. Forst 3.</note>
</biblStruct>
<biblStruct xml:id="b1"><analytic><title level="a">Another</title><idno type="DOI">10.1234/Three</idno></analytic>
<monogr><title level="j">Forêts</title><imprint><date when="2002-05"/></imprint></monogr></biblStruct>
</listBibl></div></back></text></TEI>"""


def test_grobid_gives_the_references_of_a_pdf(installation: Installation, service: HttpServer) -> None:
    service.serve("/api/processReferences", TEI.encode())
    installation.use(grobid=service.url("/"))
    installation.add_file(1, pdf_of_text(PAPER))
    installation.run(1)
    assert installation.references() == [(1, None, 2, "title"), (2, "10.1234/three", 3, "doi")]
    [request] = service.requests
    assert request.method == "POST"
    assert b'name="input"' in request.body
    assert b"%PDF-1.4" in request.body
    assert b"includeRawCitations" in request.body


def test_grobid_is_reached_by_a_proxy_with_a_password(
    installation: Installation, service: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXY_PASSWORD", "s3/cr@et")
    service.serve("http://grobid.invalid/api/processReferences", TEI.encode())
    http = HttpSettings(proxy=service.url("", host="anna@127.0.0.1"), proxy_password="env:PROXY_PASSWORD")
    grobid = PipelineSettings(grobid="http://grobid.invalid/")
    installation.settings = Settings(folder=installation.folder, pipeline=grobid, http=http)
    installation.add_file(1, pdf_of_text(PAPER))
    installation.run(1)
    assert len(installation.references()) == 2
    [request] = service.requests
    assert request.headers["proxy-authorization"] == "Basic YW5uYTpzMy9jckBldA=="


def test_grobid_is_not_asked_for_the_references_of_plain_text(installation: Installation, service: HttpServer) -> None:
    installation.use(grobid=service.url("/"))
    installation.add_file(1, PAPER.encode(), "text/plain")
    [result] = installation.run(1)
    assert result.state is StepState.DONE
    assert len(installation.references()) == 3
    assert service.requests == []


def test_without_grobid_the_own_references_are_used_until_it_answers(
    installation: Installation, service: HttpServer
) -> None:
    service.otherwise = lambda asking: asking.answer(b"", 500)
    installation.use(grobid=service.url("/"))
    installation.add_file(1, pdf_of_text(PAPER))
    installation.add_file(2, pdf_of_text(PAPER + " x"))
    results = installation.run(1, 2)
    assert [each.failure.rule for each in results if each.failure] == ["extraction.service-away"] * 2
    assert len(installation.references()) == 6
    assert len(service.requests) == 1


def test_a_file_that_grobid_cannot_read_costs_no_other_file(installation: Installation, service: HttpServer) -> None:
    answers = iter([(b"[BAD_INPUT_DATA] PDF to XML conversion failed", 500), (TEI.encode(), 200)])
    service.otherwise = lambda asking: asking.answer(*next(answers))
    installation.use(grobid=service.url("/"))
    installation.add_file(1, pdf_of_text(PAPER))
    installation.add_file(2, pdf_of_text(PAPER + " x"))
    assert [each.state for each in installation.run(1, 2)] == [StepState.DONE] * 2
    assert len(installation.references()) == 3 + 2


def test_a_file_that_takes_grobid_too_long_costs_no_other_file_unless_the_next_one_does(
    installation: Installation, service: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("metaharvest.pipeline.extraction.stage._GROBID_SECONDS", 0.5)
    slow = {1, 3, 4}
    count = itertools.count(1)

    def answer(asking: Asking) -> None:
        if next(count) in slow:
            silent()(asking)
        else:
            asking.answer(TEI.encode())

    service.otherwise = answer
    installation.use(grobid=service.url("/"))
    for number in range(1, 6):
        installation.add_file(number, pdf_of_text(PAPER + " x" * number))
    states = [each.state for each in installation.run(*range(1, 6))]
    assert states == [*[StepState.DONE] * 3, *[StepState.FAILED] * 2]
    assert len(service.requests) == 4


def test_the_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch, service: HttpServer) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    service.serve("/x", b"answer")
    with services.ServiceClient("It", Settings().http, pace=0, seconds=5) as client:
        assert client.get(service.url("/x")) == "answer"


# -- kill -9

_KILLED = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("test_stage", {file!r})
module = module_from_spec(spec); sys.modules["test_stage"] = module
spec.loader.exec_module(module)
installation = module.Installation(Path({folder!r}))
print("ready", flush=True)
installation.run(*range(1, 13))
print("done", flush=True)
"""


def tables(engine: Engine) -> list[object]:
    found: list[object] = []
    with engine.connect() as connection:
        for name in ("output_text", "output_reference", "lookup_answer"):
            table = Base.metadata.tables[name]
            columns = [column for column in table.c if column.name != "output_reference_id"]
            found.append(sorted(map(str, connection.execute(select(*columns)))))
    return found


@pytest.mark.slow
def test_the_tables_are_the_same_after_kills_at_any_moment(installation: Installation, tmp_path: Path) -> None:
    for number in range(1, 13):
        if number > 3:
            installation.add_output(number, f"{TITLES[1]}: the study number {number}")
        installation.add_file(number, pdf_of_text(PAPER.replace("forty", f"{number} times forty")))
    installation.run(*range(1, 13))
    wanted, texts = tables(installation.engine), installation.text_files()
    with writers(installation.engine).begin() as session:
        STAGE.remove(session, range(1, 13))
    STAGE.tidy(installation.context())
    assert installation.text_files() == []
    script = _KILLED.format(paths=sys.path, file=__file__, folder=str(tmp_path))
    readers: set[int] = set()
    for delay in (0.05, 0.25, 0.5):
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        readers |= set() if readers else wait_until(partial(readers_of, process.pid))
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    installation.run(*range(1, 13))
    assert tables(installation.engine) == wanted
    assert installation.text_files() == texts
    assert readers
    wait_until(lambda: not any(map(is_reader, readers)))


def readers_of(pid: int) -> set[int]:
    """The reader processes of a process; each ends when its input is closed."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(each) for each in children if is_reader(int(each))}


def is_reader(pid: int) -> bool:
    try:
        return b"reader_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
