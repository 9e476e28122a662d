"""Stories of the stage, over a web of eight kinds of repository software on loopback."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from metaharvest.config.settings import load
from metaharvest.database.pipeline_models import OutputFile, OutputRecord, OutputText, PipelineStep
from metaharvest.model.outputs import Access, FileLink, FileRole, Identifier, Licence, Output, ResourceType, Text
from metaharvest.pipeline import file_store as store
from metaharvest.pipeline.extraction.reading import FileReader
from metaharvest.pipeline.extraction.rows import stores
from metaharvest.pipeline.file_store import FolderStore
from metaharvest.pipeline.full_text.stage import STAGE, tidy
from metaharvest.pipeline.stage import Context, Document, Result, StepState
from metaharvest.pipeline.stored_outputs import json_of
from support.databases import on_one_database
from support.harvester import Harvester
from support.http_server import Asking, HttpServer, silent

pytestmark = on_one_database
AT = datetime(2026, 11, 28, 3, tzinfo=UTC)
HTML = {"Content-Type": "text/html; charset=utf-8"}
SETTINGS = "[pipeline]\nlargest_file = 5_000\n"


DSPACE = "/bitstream/handle/1/1001/dspace.pdf"
COMMONS = "/cgi/viewcontent.cgi?article=1006&context=etd"


def pdf(name: str) -> bytes:
    return b"%PDF-1.4\n" + name.encode()


class Web:
    """Eight repositories, each with a paper, on one server; and another server, to which some of them lead."""

    def __init__(self, server: HttpServer, other: HttpServer) -> None:
        self.server, self.other = server, other
        at = server.url
        self.file(DSPACE, "dspace")
        self.page(
            "/handle/1/1001", f'<meta name="citation_pdf_url" content="{at("/bitstream/handle/1/1001/dspace.pdf")}">'
        )
        self.file("/1002/1/eprints.pdf", "eprints")
        self.page("/id/eprint/1002/", '<meta name="eprints.document_url" content="/1002/1/eprints.pdf">')
        self.file("/index.php/j/article/download/1003/7", "ojs")
        self.page(
            "/index.php/j/article/view/1003",
            '<a class="obj_galley_link pdf" href="/index.php/j/article/view/1003/7">PDF</a>',
        )
        self.file("/hal-01001004/document", "hal")
        self.file("/records/1005/files/invenio.pdf", "invenio")
        self.page("/records/1005", "", link='</records/1005/files/invenio.pdf>; rel="item"; type="application/pdf"')
        self.file("/cgi/viewcontent.cgi?article=1006&context=etd", "commons")
        self.page(
            "/etd/1006",
            '<meta name="bepress_citation_pdf_url" content="/cgi/viewcontent.cgi?article=1006&amp;context=etd">',
        )
        self.file("/downloads/x1007abcd", "hyrax")
        self.page("/concern/theses/x1007abcd", '<a href="/downloads/x1007abcd">Download</a>')
        other.serve("/files/1008/opus.pdf", pdf("opus"), headers={"Content-Type": "application/pdf"})
        server.redirect("/frontdoor/index/index/docId/1008", other.url("/docId/1008"))
        other.serve("/docId/1008", b'<a href="/files/1008/opus.pdf">Volltext</a>', headers=HTML)

    def file(self, path: str, name: str) -> None:
        self.server.serve(path, pdf(name), headers={"Content-Type": "application/pdf", "ETag": f'"{name}"'})

    def page(self, path: str, body: str, *, link: str = "") -> None:
        self.server.serve(
            path, f"<html><body>{body}</body></html>".encode(), headers={**HTML, **({"Link": link} if link else {})}
        )


PAPERS = {
    "/handle/1/1001": "dspace",
    "/id/eprint/1002/": "eprints",
    "/index.php/j/article/view/1003": "ojs",
    "/hal-01001004": "hal",
    "/records/1005": "invenio",
    "/etd/1006": "commons",
    "/concern/theses/x1007abcd": "hyrax",
    "/frontdoor/index/index/docId/1008": "opus",
}


@pytest.fixture
def other() -> Iterator[HttpServer]:
    with HttpServer(host="127.0.0.2") as running:
        yield running


@pytest.fixture
def web(server: HttpServer, other: HttpServer) -> Web:
    return Web(server, other)


@pytest.fixture
def installation(harvester: Harvester) -> Harvester:
    with harvester.config.open("a", encoding="utf-8") as file:
        file.write(SETTINGS)
    return harvester


def context(harvester: Harvester, **changes: Any) -> Context:
    return Context(harvester.engine, load(harvester.config), lambda: AT, **changes)


def document(number: int, site_id: int | None = None) -> Document:
    name = f"oai:r:{number}"
    return Document(number, name, name, None, "oai_dc", 1, number, number, site_id, None, False)


def output(url: str, **values: Any) -> Output:
    return Output(
        "oai_dc",
        (Text("Alders by the river", "dc:title"),),
        identifiers=(Identifier("url", url, "dc:identifier"),),
        **values,
    )


def know(harvester: Harvester, outputs: Mapping[int, Output]) -> None:
    """Write what cleaning has made."""
    rows = [
        {"catalogue_document_id": number, "revision": 1, "version": 1, "content": json_of(each)}
        for number, each in outputs.items()
    ]
    with Session(harvester.engine) as session, session.begin():
        session.execute(insert(OutputRecord), rows)


def run(harvester: Harvester, *documents: Document, **changes: Any) -> dict[int, Result]:
    where = context(harvester, **changes)
    results = list(STAGE.perform(where, documents))
    with Session(harvester.engine) as session, session.begin():
        STAGE.store(session, results, AT)
    tidy(where)
    return {each.document.number: each for each in results}


def table(harvester: Harvester) -> dict[int, tuple[str, str, bool, str | None]]:
    """The way to each file, its bytes if they are there, whether it is kept, and its licence, by document."""
    files = folder(harvester)
    with Session(harvester.engine) as session:
        return {
            row.catalogue_document_id: (
                row.found_by,
                files.read(row.sha256).decode()[9:] if files.has(row.sha256) else "",
                row.kept,
                row.licence,
            )
            for row in session.scalars(select(OutputFile).order_by(OutputFile.catalogue_document_id))
        }


def digests(harvester: Harvester) -> list[str]:
    with Session(harvester.engine) as session:
        return list(session.scalars(select(OutputFile.sha256)))


def folder(harvester: Harvester) -> FolderStore:
    return FolderStore(harvester.folder / "pipeline" / "files")


def stored(harvester: Harvester) -> list[str]:
    """The contents of all files in the folder."""
    found = (harvester.folder / "pipeline" / "files").rglob("*")
    return sorted(each.read_bytes().decode()[9:] for each in found if each.is_file() and each.parent.name != "new")


def test_the_papers_of_eight_kinds_of_software_are_found(installation: Harvester, web: Web) -> None:
    site = installation.add_site("alder", web.server.url("/list.xml"))
    licence = (Licence("CC BY", "dc:rights", "CC-BY-4.0"),)
    know(installation, {n: output(web.server.url(path), licences=licence) for n, path in enumerate(PAPERS)})
    results = run(installation, *(document(n, site) for n in range(len(PAPERS))))
    assert {each.state for each in results.values()} == {StepState.DONE}, [each.failure for each in results.values()]
    found = table(installation)
    assert [found[n][1] for n in range(len(PAPERS))] == list(PAPERS.values())
    assert {each[2:] for each in found.values()} == {(True, "CC-BY-4.0")}
    assert found[0][0] == "identifier > citation_pdf_url"
    assert found[3][0] == "identifier > HAL"
    assert list(folder(installation).unconfirmed()) == []
    # Servers that choose a form by the header Accept choose one for people.
    assert web.server.requests[0].headers["accept"].startswith("application/pdf, text/html")


def bad_pages(web: Web) -> dict[str, str]:
    """Pages that lead to no file, each with its rule."""
    server = web.server
    server.serve("/robots.txt", b"User-agent: *\nDisallow: /private/", headers={"Content-Type": "text/plain"})
    web.page("/nothing", "<p>Only words</p>")
    web.page("/loop/1", '<a href="/loop/2">PDF</a>')
    web.page("/loop/2", '<a href="/loop/1">PDF</a>')
    server.redirect("/circle", "/circle")
    web.page("/picture", '<a href="/picture/a.pdf">PDF</a>')
    server.serve("/picture/a.pdf", b"\x89PNG....", headers={"Content-Type": "application/pdf"})
    web.page("/locked", '<a href="/locked/a.pdf">PDF</a>')
    server.redirect("/locked/a.pdf", "/login?back=a.pdf")
    web.page("/form", '<a href="/form/a.pdf">PDF</a>')
    web.page("/form/a.pdf", "<title>Sign in</title><form><input type=password></form>")
    web.page("/hidden", '<a href="/private/a.pdf">PDF</a>')
    server.redirect("/sideways", web.other.url("/elsewhere"))
    web.other.serve("/robots.txt", b"User-agent: *\nDisallow: /", headers={"Content-Type": "text/plain"})
    web.page("/large", '<a href="/large/a.pdf">PDF</a>')
    server.serve("/large/a.pdf", pdf("x" * 6_000))
    for number in range(5):
        web.page(f"/deep/{number}", f'<a href="/deep/{number + 1}">PDF</a>')
    web.page("/dead", '<a href="/dead/a.pdf">PDF</a>')
    server.serve("/away", b"", status=503, headers=HTML)
    server.serve("/forbidden", b"<html>No</html>", status=403, headers=HTML)
    return {
        "/nothing": "no-link",
        "/loop/1": "loop",
        "/circle": "loop",
        "/picture": "wrong-type",
        "/locked": "login",
        "/form": "login",
        "/hidden": "blocked",
        "/sideways": "blocked",
        "/forbidden": "blocked",
        "/large": "too-large",
        "/deep/0": "too-many-hops",
        "/dead": "missing",
        "/away": "unreachable",
    }


def test_every_reason_is_named(installation: Harvester, web: Web) -> None:
    pages = bad_pages(web)
    know(installation, {n: output(web.server.url(path)) for n, path in enumerate(pages)})
    results = run(installation, *map(document, range(len(pages))))
    rules = {path: (failure := results[n].failure) and failure.rule for n, path in enumerate(pages)}
    assert rules == {path: f"full-text.{reason}" for path, reason in pages.items()}
    assert web.server.asked("/private/a.pdf") == []
    assert web.other.asked("/elsewhere") == []
    assert table(installation) == {}


def test_a_site_in_a_private_network_leads_to_no_other_server_there(harvester: Harvester, web: Web) -> None:
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(settings.replace('allow_networks = ["127.0.0.0/8"]', "", 1), encoding="utf-8")
    at, hidden = web.server.url, web.other.serve("/admin.pdf", pdf("secret"))
    own = harvester.add_site("alder", at("/list.xml"), options='{"allow_networks": ["127.0.0.0/8"]}')
    other = harvester.add_site("birch", "https://birch.example/l.xml", options='{"allow_networks": ["127.0.0.0/8"]}')
    web.server.serve("/robots.txt", b"User-agent: *\nDisallow: /port", headers={"Content-Type": "text/plain"})
    web.page("/page", f'<a href="{hidden}">PDF</a>')
    web.server.redirect("/redirect", hidden)
    with HttpServer() as neighbour:
        links = [hidden, at("/page"), at("/redirect"), neighbour.serve("/a.pdf", pdf("secret")), at("/port/a.pdf")]
        know(harvester, {n: output(url) for n, url in enumerate([*links, at("/hal-01001004"), at("/hal-01001004")])})
        # One site may not read the robots.txt of the server: the other one, in the same run, still obeys it.
        memory: dict[str, Any] = {}
        results = run(harvester, document(6, other), memory=memory)
        results |= run(harvester, *(document(n, own) for n in range(6)), memory=memory)
        assert (neighbour.requests, web.other.requests, web.server.asked("/port/a.pdf")) == ([], [], [])
    rules = [failure.rule if (failure := results[n].failure) else None for n in range(7)]
    assert rules == [*["full-text.blocked"] * 5, None, "full-text.blocked"]


def test_a_record_may_close_its_file_or_have_none(installation: Harvester, web: Web) -> None:
    url = web.server.url("/hal-01001004")
    closed = output(url, access=Access.RESTRICTED)
    embargoed = output(url, access=Access.EMBARGOED, embargo_until="2026-12-08")
    data = Output("datacite", types=(ResourceType("Dataset", "x", "c_ddb1"),))
    know(installation, {1: closed, 2: embargoed, 3: data})
    results = run(installation, document(1), document(2), document(3), document(4))
    assert [results[n].state for n in (1, 2, 3, 4)] == ["failed", "failed", "skipped", "skipped"]
    failure = results[2].failure
    assert failure is not None
    assert (failure.rule, failure.retry_after) == ("full-text.licence", timedelta(days=10))
    assert web.server.requests == []


def test_a_server_that_fails_is_given_up_for_the_run(installation: Harvester, server: HttpServer) -> None:
    for number in range(1, 13):
        server.serve(f"/{number}.pdf", b"", status=503)
    know(installation, {number: output(server.url(f"/{number}.pdf")) for number in range(1, 13)})
    where = context(installation)
    for batch in (range(1, 9), range(9, 13)):
        results = list(STAGE.perform(where, [document(number) for number in batch]))
        assert {each.failure and each.failure.rule for each in results} == {"full-text.unreachable"}
    assert len(where.memory["full-text"].robots) == 1
    assert not any(server.asked(f"/{number}.pdf") for number in range(9, 13))


def test_nobody_is_blamed_for_a_dataset_without_a_text(installation: Harvester, server: HttpServer) -> None:
    kind = (ResourceType("Dataset", "x", "c_ddb1"),)
    links = tuple(
        FileLink(server.url(path), "x", FileRole.DATA, "application/pdf") for path in ("/gone.pdf", "/ill.pdf")
    )
    server.serve("/ill.pdf", b"", status=500)
    know(installation, {1: Output("eml", types=kind, files=links), 2: Output("eml", types=kind, files=links[1:])})
    results = run(installation, document(1), document(2))
    assert [each.state for each in results.values()] == ["skipped", "skipped"]
    assert server.asked("/gone.pdf") != []


def test_a_server_that_asks_for_a_pause_gets_it(installation: Harvester, server: HttpServer) -> None:
    answers = [(429, {"Retry-After": "0"}), (200, {})]

    def answer(asking: Asking) -> None:
        status, headers = answers.pop(0)
        asking.answer(pdf("late"), status, {"Content-Type": "application/pdf", **headers})

    know(installation, {1: output(server.route("/a.pdf", answer)), 2: output(server.url("/b.pdf"))})
    server.serve("/b.pdf", b"", status=429, headers={"Retry-After": "7200"})
    results = run(installation, document(1))
    assert results[1].state is StepState.DONE
    failure = run(installation, document(2))[2].failure
    assert failure is not None
    assert (failure.rule, failure.retry_after and failure.retry_after.total_seconds()) == (
        "full-text.unreachable",
        7200,
    )


def test_a_known_file_is_not_sent_again(installation: Harvester, server: HttpServer) -> None:
    def answer(asking: Asking) -> None:
        known = asking.headers.get("If-None-Match") == '"1"'
        asking.answer(
            b"" if known else pdf("one"), 304 if known else 200, {"ETag": '"1"', "Content-Type": "application/pdf"}
        )

    know(installation, {1: output(server.route("/a.pdf", answer))})
    run(installation, document(1))
    before = table(installation)
    assert run(installation, document(1))[1].state is StepState.DONE
    assert table(installation) == before
    files = folder(installation)
    [digest] = digests(installation)
    files.path(digest).write_bytes(b"%PDF")
    with pytest.raises(FileNotFoundError):  # extraction finds the damage
        files.read(digest)
    run(installation, document(1))
    assert table(installation) == before
    server.serve("/a.pdf", pdf("two"), headers={"Content-Type": "application/pdf"})
    run(installation, document(1))
    assert [each[1] for each in table(installation).values()] == ["two"]
    assert stored(installation) == ["two"]


def test_a_licence_that_the_record_no_longer_names_is_not_kept_with_the_file(
    installation: Harvester, server: HttpServer
) -> None:
    file = server.serve("/a.pdf", pdf("one"), headers={"Content-Type": "application/pdf", "ETag": '"1"'})
    link = f'<{file}>; rel="item"; type="application/pdf", <https://a.org/licence>; rel="license"'
    page = server.serve("/1", b"<html></html>", headers={**HTML, "Link": link})
    given = {"licences": (Licence("CC BY", "dc:rights", "CC-BY-4.0"),)}
    for number, url in ((1, file), (2, page)):
        know(installation, {number: output(url, **given)})
    run(installation, document(1), document(2))
    assert [each[3] for each in table(installation).values()] == ["CC-BY-4.0", "CC-BY-4.0"]
    with Session(installation.engine) as session, session.begin():
        session.execute(delete(OutputRecord))
    know(installation, {1: output(file), 2: output(page)})
    run(installation, document(1), document(2))
    assert [each[3] for each in table(installation).values()] == [None, "https://a.org/licence"]


def test_the_charset_of_a_plain_text_is_stored(installation: Harvester, server: HttpServer) -> None:
    content = "Леса севера".encode("cp1251")
    url = server.serve("/a.txt", content, headers={"Content-Type": "text/plain; charset=windows-1251", "ETag": '"1"'})
    know(installation, {1: Output("oai_dc", files=(FileLink(url, "dc:relation", FileRole.FULL_TEXT, "text/plain"),))})
    for _ in range(2):
        assert run(installation, document(1))[1].state is StepState.DONE
        [(media_type,)] = installation.rows("SELECT media_type FROM output_file")
        with FileReader() as reader:
            assert reader.read(content, media_type).text == "Леса севера"
        server.serve("/a.txt", content, headers={"Content-Type": "text/plain; charset=cp1251", "ETag": '"2"'})


def test_a_file_stays_while_its_server_is_away_and_goes_when_it_is_gone(
    installation: Harvester, server: HttpServer
) -> None:
    know(installation, {1: output(server.serve("/a.pdf", pdf("one")))})
    run(installation, document(1))
    server.serve("/a.pdf", b"", status=500)
    assert run(installation, document(1))[1].state is StepState.FAILED
    assert stored(installation) == ["one"]
    server.serve("/a.pdf", b"", status=410)
    run(installation, document(1))
    assert (table(installation), stored(installation)) == ({}, [])


def test_extraction_learns_that_a_file_goes_after_a_failure_by_the_same_rule(
    installation: Harvester, server: HttpServer
) -> None:
    know(installation, {1: output(server.serve("/a.pdf", pdf("one")))})
    run(installation, document(1))
    with Session(installation.engine) as session, session.begin():
        done = {"stage": "extraction", "state": "done", "woken": 1, "attempts": 0}
        session.execute(insert(PipelineStep).values(catalogue_document_id=1, **done))
    states = []
    for status in (404, 410):
        server.serve("/a.pdf", b"", status=status)
        failure = run(installation, document(1))[1].failure
        assert failure is not None
        states.append((failure.rule, *installation.rows("SELECT state FROM pipeline_step")))
    assert states == [("full-text.missing", ("done",)), ("full-text.missing", ("waiting",))]


@pytest.mark.parametrize("kind", ["c_ddb1", "c_6501"])
def test_the_row_of_a_lost_file_with_a_text_stays(installation: Harvester, server: HttpServer, kind: str) -> None:
    link = FileLink(server.serve("/a.pdf", pdf("one")), "x", FileRole.DATA, "application/pdf")
    know(installation, {1: Output("eml", types=(ResourceType("x", "x", kind),), files=(link,))})
    run(installation, document(1))
    [digest] = digests(installation)
    know_text(installation, digest)
    FolderStore(installation.folder / "pipeline" / "texts").put(digest, pdf("one"))
    folder(installation).delete(digest)
    server.serve("/a.pdf", b"", status=503)
    failure = run(installation, document(1))[1].failure
    assert failure is not None
    assert (failure.rule, failure.retry_after) == ("full-text.unreachable", timedelta(days=2))
    assert digests(installation) == [digest]
    for status in (403, 404, 410):
        server.serve("/a.pdf", b"", status=status)
        run(installation, document(1))
        assert digests(installation) == [digest]
    server.serve("/a.pdf", pdf("one"))
    assert run(installation, document(1))[1].state is StepState.DONE
    assert stored(installation) == ["one"]


def know_text(harvester: Harvester, digest: str) -> None:
    """Write what extraction has made of the file of document 1."""
    row = {"file_sha256": digest, "text_sha256": digest, "characters": 1, "language": "en"}
    with Session(harvester.engine) as session, session.begin():
        session.execute(insert(OutputText).values(catalogue_document_id=1, version=1, **row))


def test_two_records_share_a_file_until_both_are_gone(installation: Harvester, server: HttpServer) -> None:
    know(installation, {n: output(server.serve(f"/{n}.pdf", pdf("same"))) for n in (1, 2)})
    run(installation, document(1), document(2))
    assert stored(installation) == ["same"]
    for number, left in ((1, ["same"]), (2, [])):
        with Session(installation.engine) as session, session.begin():
            STAGE.remove(session, [number])
        tidy(context(installation))
        assert stored(installation) == left


def test_a_site_decides_about_its_files(installation: Harvester, server: HttpServer) -> None:
    text = installation.add_site("text", server.url("/t.xml"), options='{"full_text": "text"}')
    none = installation.add_site("none", server.url("/n.xml"), options='{"full_text": "none"}')
    know(installation, {n: output(server.serve(f"/{n}.pdf", pdf(str(n)), headers={"ETag": '"1"'})) for n in (1, 2)})
    results = run(installation, document(1, text), document(2, none))
    assert [results[n].state for n in (1, 2)] == ["done", "skipped"]
    assert server.asked("/2.pdf") == []
    # The bytes wait for the extraction of the text. Then they may go, and are not needed again.
    assert table(installation) == {1: ("identifier", "1", False, None)}
    with Session(installation.engine) as session, session.begin():
        digest = session.scalars(select(OutputFile.sha256)).one()
        session.execute(
            insert(OutputText).values(
                catalogue_document_id=1, version=1, file_sha256=digest, text_sha256=digest, characters=1, language="en"
            )
        )
    texts = FolderStore(installation.folder / "pipeline" / "texts")
    texts.put(digest, pdf("1"))
    folder(installation).delete(digest)
    server.route(
        "/1.pdf",
        lambda asking: asking.answer(b"", 304) if asking.headers.get("If-None-Match") else asking.answer(pdf("1")),
    )
    assert run(installation, document(1, text))[1].state is StepState.DONE
    assert table(installation) == {1: ("identifier", "", False, None)}
    # Without its text, the file is fetched again.
    texts.delete(digest)
    run(installation, document(1, text))
    assert table(installation) == {1: ("identifier", "1", False, None)}


def test_documents_that_were_not_begun_wait_on(installation: Harvester, server: HttpServer) -> None:
    know(installation, {1: output(server.serve("/a.pdf", pdf("one")))})
    assert run(installation, document(1), stops=lambda: True) == {}
    assert server.requests == []


def test_a_server_that_sends_nothing_does_not_keep_a_pipeline_that_stops(
    installation: Harvester, server: HttpServer
) -> None:
    know(installation, {1: output(server.route("/a.pdf", silent())), 2: output(server.serve("/b.pdf", pdf("two")))})
    began = time.monotonic()
    results = run(installation, document(1), document(2), stops=lambda: bool(server.asked("/a.pdf")))
    assert time.monotonic() - began < 10
    assert 1 not in results


def test_the_setting_switches_the_search_off(installation: Harvester, server: HttpServer) -> None:
    know(installation, {1: output(server.serve("/a.pdf", pdf("one")))})
    where = context(installation)
    off = where.settings.model_copy(
        update={"pipeline": where.settings.pipeline.model_copy(update={"full_text": False})}
    )
    [result] = STAGE.perform(replace(where, settings=off), [document(1)])
    assert result.state is StepState.SKIPPED


def test_a_file_of_a_dead_process_goes(installation: Harvester) -> None:
    files = folder(installation)
    for digest, age in (("a" * 64, 7200), ("b" * 64, 0)):
        files.put(digest, pdf(digest[0]))
        note = installation.folder / "pipeline" / "files" / "new" / digest
        os.utime(note, (time.time() - age,) * 2)
    tidy(context(installation))
    assert stored(installation) == ["b"]


@pytest.mark.parametrize("url", ["", "memory://elm"])
def test_a_file_of_this_moment_stays_whatever_the_clock_of_the_machine(
    installation: Harvester, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    class MachineClock(datetime):
        @classmethod
        def now(cls, zone: tzinfo | None = None) -> Self:
            return cls.fromtimestamp(time.time(), zone)

    where = context(installation)
    pipeline = where.settings.pipeline.model_copy(update={"files": url})
    where = replace(where, settings=where.settings.model_copy(update={"pipeline": pipeline}))
    stores(where).files.put("a" * 64, pdf("a"))
    with monkeypatch.context() as machine:
        machine.setattr(store, "datetime", MachineClock)
        machine.setattr(time, "time", partial(sum, (time.time(), 10_800)))
        tidy(where)
    assert stores(where).files.has("a" * 64)


def test_after_a_kill_the_tables_are_the_same(installation: Harvester, web: Web) -> None:
    know(installation, {n: output(web.server.url(path)) for n, path in enumerate(PAPERS)})
    documents = [document(n) for n in range(len(PAPERS))]
    for after in (3, 9):
        before = len(web.server.requests)
        script = Path(__file__).with_name("stage_process.py")
        child = subprocess.Popen([sys.executable, str(script), str(installation.config), str(len(PAPERS))])
        while len(web.server.requests) - before < after and child.poll() is None:
            time.sleep(0.002)
        child.kill()
        child.wait()
    results = run(installation, *documents)
    assert {each.state for each in results.values()} == {StepState.DONE}
    assert [each[1] for each in table(installation).values()] == list(PAPERS.values())
    assert stored(installation) == sorted(PAPERS.values())
