"""What the harvest expects of a source, whichever it is.

Every source passes all of these tests: a new one joins with a class in SITES, which publishes documents as its sites
do. The source of `Lines` is as small as one can be.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import ip_network
from itertools import islice
from math import inf
from pathlib import Path
from typing import TypeVar

import pytest

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, ListError, NotAsked
from metaharvest.fetch.client import Fetcher
from metaharvest.model import FetchedDocument, Finding, ListedDocument, ListVersion, OriginalColumns, Site
from metaharvest.rehearsal.input.arguments import GivenList, LocalFile
from metaharvest.rehearsal.input.source import Copies, GivenSource
from metaharvest.rules import RULES
from metaharvest.sources.base import Listing, Source
from metaharvest.sources.harvest_list.source import HarvestListSource
from metaharvest.sources.roots import Root
from support.harvester import TYPE, harvest_list
from support.http_server import Asking, HttpServer

Answer = TypeVar("Answer")

DOCIDS = ("b.2.1", "a.1.1", "a.1.2", "a.10.3")
WRONG = "wrong.1.1"


class PublishingSite(ABC):
    """A site of some kind on a web server, some of it perhaps in `folder`."""

    def __init__(self, server: HttpServer, folder: Path) -> None:
        self.server = server
        self.folder = folder

    def serve(self, docid: str, content: bytes) -> None:
        self.server.serve(f"/{docid}.xml", content)

    def entries(self, docids: Sequence[str]) -> list[tuple[str, str]]:
        return [(docid, self.server.url(f"/{docid}.xml")) for docid in docids]

    @abstractmethod
    def publish(self, *docids: str) -> None:
        """List these documents, in this order, and no others."""

    @abstractmethod
    def publish_wrongly(self, *docids: str) -> None:
        """List these documents, and something after them that is not right."""

    @abstractmethod
    def withdraw(self) -> None:
        """There is no list any more."""

    @abstractmethod
    def source(self, fetcher: Fetcher) -> Source:
        """What is tested."""

    def site(self, path: str = "/list.xml") -> Site:
        return Site(1, "site", self.server.url(path), ("site@example.org",))


class ListAtUrl(PublishingSite):
    """A harvest list on the site's web server."""

    def publish(self, *docids: str) -> None:
        self.put(harvest_list(self.entries(docids)))

    def publish_wrongly(self, *docids: str) -> None:
        self.put(harvest_list([*self.entries(docids), (WRONG, "ftp://example.org/")]))

    def withdraw(self) -> None:
        self.server.serve("/list.xml", b"gone", status=404)

    def put(self, content: bytes) -> None:
        self.server.serve("/list.xml", content)

    def source(self, fetcher: Fetcher) -> Source:
        return HarvestListSource(self.site(), fetcher)


class ListInFile(ListAtUrl):
    """A harvest list in a file, as it is rehearsed."""

    def put(self, content: bytes) -> None:
        (self.folder / "list.xml").write_bytes(content)

    def withdraw(self) -> None:
        (self.folder / "list.xml").unlink(missing_ok=True)

    def source(self, fetcher: Fetcher) -> Source:
        file = LocalFile(self.folder / "list.xml", "list.xml", Root(), "")
        return GivenSource(GivenList(file), self.site(), fetcher, Copies(self.folder))


class LinesSource:
    """Another distribution's: a text with a docid and a URL in each line."""

    def __init__(self, site: Site, fetcher: Fetcher) -> None:
        self._url = site.list_url
        self._fetcher = fetcher

    async def list_documents(self, known: ListVersion | None, seconds: float = inf) -> Listing:
        file = io.BytesIO()
        response = await self._fetcher.fetch_to(self._url, file, known=known, seconds=seconds)
        version = ListVersion(response.etag, response.last_modified, response.sha256)
        if known is not None and known.sha256 == version.sha256:
            return Listing(None, version)
        return Listing(self._read(file.getvalue().decode()), version)

    def _read(self, text: str) -> Iterator[ListedDocument]:
        problems = []
        for number, line in enumerate(text.splitlines(), 1):
            docid, _, url = line.partition(" ")
            document_id, _, revision = docid.rpartition(".")
            if url.startswith("http"):
                yield ListedDocument(document_id, int(revision), TYPE, url, number)
            else:
                problems.append(Finding("list.url", f"Line {number} has no URL.", "Write one.", line=number))
        if problems:
            raise ListError(*problems)

    def original_columns(self, document_id: str) -> OriginalColumns:
        return None, None

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        response, content = await self._fetcher.fetch(document.url, patience=patience)
        return FetchedDocument(document, content, response.sha256, response.seconds)


class Lines(PublishingSite):
    """The site of LinesSource."""

    def publish(self, *docids: str) -> None:
        self.server.serve("/lines", "".join(f"{docid} {url}\n" for docid, url in self.entries(docids)).encode())

    def publish_wrongly(self, *docids: str) -> None:
        lines = [f"{docid} {url}\n" for docid, url in self.entries(docids)]
        self.server.serve("/lines", "".join([*lines, f"{WRONG}\n"]).encode())

    def withdraw(self) -> None:
        self.server.serve("/lines", b"gone", status=404)

    def source(self, fetcher: Fetcher) -> Source:
        return LinesSource(self.site("/lines"), fetcher)


SITES: dict[str, type[PublishingSite]] = {"list at a URL": ListAtUrl, "list in a file": ListInFile, "added": Lines}


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest, server: HttpServer, tmp_path: Path) -> PublishingSite:
    return SITES[request.param](server, tmp_path)


def asked(
    site: PublishingSite, question: Callable[[Source], Awaitable[Answer]], connections_per_host: int = 4
) -> Answer:
    """The answer of the site's source, in an event loop of its own."""

    async def ask() -> Answer:
        http = HttpSettings(
            allow_networks=(ip_network("127.0.0.0/8"),), connections_per_host=connections_per_host, read_timeout=5
        )
        async with Fetcher(http, name="Test network", administrator=None) as fetcher:
            return await question(site.source(fetcher))

    return asyncio.run(ask())


def listing(site: PublishingSite, known: ListVersion | None = None) -> Listing:
    return asked(site, lambda source: source.list_documents(known))


def documents(site: PublishingSite, known: ListVersion | None = None) -> list[ListedDocument]:
    found = listing(site, known).documents
    assert found is not None
    return list(found)


def fetched(site: PublishingSite, docid: str) -> FetchedDocument:
    [document] = [document for document in documents(site) if document.docid == docid]
    return asked(site, lambda source: source.fetch(document))


def assert_told(findings: Sequence[Finding]) -> None:
    """In words for the person who can mend it."""
    assert findings
    for finding in findings:
        assert finding.rule in RULES
        assert finding.is_error
        assert finding.message.endswith(".")
        assert finding.remedy.endswith(".")


# -- what a site lists


def test_the_documents_of_a_site_are_listed_in_its_order(site: PublishingSite) -> None:
    site.publish(*DOCIDS)
    found = documents(site)
    assert [(document.document_id, document.revision) for document in found] == [
        ("b.2", 1),
        ("a.1", 1),
        ("a.1", 2),
        ("a.10", 3),
    ]
    assert [(document.docid, document.url) for document in found] == site.entries(DOCIDS)
    assert {document.document_type for document in found} == {TYPE}


def test_a_listing_that_is_known_is_not_read_again_until_it_changes(site: PublishingSite) -> None:
    """If a source has no versions, it lists its documents every time."""
    site.publish(*DOCIDS)
    first = listing(site)
    assert first.documents is not None
    assert len(list(first.documents)) == 4
    again = listing(site, first.version)
    if first.version is None:
        assert again.documents is not None
        assert len(list(again.documents)) == 4
    else:
        assert again.documents is None
        assert again.version is not None
        assert again.version.sha256 == first.version.sha256
    site.publish(*DOCIDS, "c.1.1")
    changed = listing(site, first.version)
    assert changed.documents is not None
    assert [document.docid for document in changed.documents] == [*DOCIDS, "c.1.1"]
    assert changed.version is None or changed.version != first.version


def test_a_listing_that_is_not_the_known_one_is_read(site: PublishingSite) -> None:
    site.publish(*DOCIDS)
    assert len(documents(site, ListVersion('"another"', None, "0" * 64))) == 4


def test_what_is_wrong_with_a_listing_is_raised_after_what_is_right(site: PublishingSite) -> None:
    docids = [f"a.{number}.1" for number in range(3000)]
    site.publish_wrongly(*docids)
    found = listing(site).documents
    assert found is not None
    assert [document.docid for document in islice(found, 3000)] == docids
    with pytest.raises(ListError) as caught:
        list(found)
    assert_told(caught.value.findings)


def test_a_listing_that_is_not_there_is_a_fetch_error(site: PublishingSite) -> None:
    site.publish(*DOCIDS)
    site.withdraw()
    with pytest.raises(FetchError) as caught:
        documents(site)
    assert_told(caught.value.findings)
    assert not caught.value.transient


# -- its documents

ODD_BYTES = {
    "latin-1": '<?xml version="1.0" encoding="iso-8859-1"?>\r\n<e>é</e>'.encode("iso-8859-1"),
    "utf-16": "<e>é</e>".encode("utf-16"),
    "white space": b"\xef\xbb\xbf\r\n <e>\r\n\t</e>\n\n ",
    "no text": bytes(range(256)),
    "one byte": b"\0",
    "long": b"<e>" + b"x" * 1_000_000 + b"</e>",
}


@pytest.mark.parametrize("content", ODD_BYTES.values(), ids=ODD_BYTES)
def test_a_document_comes_with_its_bytes_as_they_were_received(site: PublishingSite, content: bytes) -> None:
    site.serve("a.1.2", content)
    site.publish(*DOCIDS)
    found = fetched(site, "a.1.2")
    assert found.document.docid == "a.1.2"
    assert found.content == content
    assert found.sha256 == hashlib.sha256(content).hexdigest()
    assert found.seconds is not None
    assert 0 < found.seconds < 60


def test_a_document_that_is_not_there_is_a_fetch_error(site: PublishingSite) -> None:
    site.publish(*DOCIDS)
    with pytest.raises(FetchError) as caught:
        fetched(site, "a.1.1")
    assert_told(caught.value.findings)
    assert not caught.value.transient
    assert caught.value.seconds is not None


def test_a_document_that_may_be_there_later_is_a_transient_failure(site: PublishingSite) -> None:
    site.server.serve("/a.1.1.xml", b"busy", status=503)
    site.publish(*DOCIDS)
    with pytest.raises(FetchError) as caught:
        fetched(site, "a.1.1")
    assert_told(caught.value.findings)
    assert caught.value.transient


def test_several_documents_are_fetched_at_once(site: PublishingSite) -> None:
    """Each waits in the server until all are there."""
    together = threading.Barrier(4)

    def answer(asking: Asking) -> None:
        together.wait(20)
        asking.answer(asking.path.encode())

    for docid in DOCIDS:
        site.server.route(f"/{docid}.xml", answer)
    site.publish(*DOCIDS)

    async def fetch_all(source: Source) -> list[FetchedDocument]:
        found = (await source.list_documents(None)).documents
        assert found is not None
        return await asyncio.gather(*(source.fetch(document) for document in found))

    all_fetched = asked(site, fetch_all)
    assert [(each.document.docid, each.content) for each in all_fetched] == [
        (docid, f"/{docid}.xml".encode()) for docid in DOCIDS
    ]


def test_a_connection_that_is_not_free_is_waited_for_no_longer_than_told(site: PublishingSite) -> None:
    is_asked, may_answer = threading.Event(), threading.Event()

    def answer(asking: Asking) -> None:
        is_asked.set()
        may_answer.wait(20)
        asking.answer(b"<eml/>")

    site.server.route("/a.1.1.xml", answer)
    site.serve("a.1.2", b"<eml/>")
    site.publish("a.1.1", "a.1.2")

    async def fetch_both(source: Source) -> FetchedDocument:
        found = (await source.list_documents(None)).documents
        assert found is not None
        first, second = found
        waiting = asyncio.create_task(source.fetch(first))
        await asyncio.to_thread(is_asked.wait, 20)
        with pytest.raises(NotAsked) as caught:
            await source.fetch(second, 0.05)
        assert_told(caught.value.findings)
        may_answer.set()
        return await waiting

    assert asked(site, fetch_both, connections_per_host=1).document.docid == "a.1.1"
    assert site.server.asked("/a.1.2.xml") == []


@pytest.mark.parametrize("document_id", ["a.1", "knb-lter-gce.109", "no-point", "a.b", "oai:example.org:a/1", ""])
def test_the_originals_columns_are_a_scope_and_a_number_or_neither(site: PublishingSite, document_id: str) -> None:
    async def columns(source: Source) -> OriginalColumns:
        return source.original_columns(document_id)

    scope, identifier = asked(site, columns)
    assert (scope, identifier) == (None, None) or (isinstance(scope, str) and isinstance(identifier, int))
    if scope is not None:
        assert f"{scope}.{identifier}" == document_id
