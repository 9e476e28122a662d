"""What the harvest expects of a source that lists records page by page, whichever it is.

Every such source passes all of these tests: a new one joins with a class in REPOSITORIES, which publishes records as
its repositories do. Pages have two records.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from metaharvest.errors import FetchError, ListIncomplete
from metaharvest.fetch.client import Fetcher
from metaharvest.model import Finding, ListedDocument, Site
from metaharvest.rules import RULES
from metaharvest.sources.base import ListedRecord, Page, PagedListing, PagedSource
from metaharvest.sources.oai_pmh.source import OaiSource
from support import paged_source
from support.oai_harvest import HTTP, Patient, site_of
from support.oai_server import OaiServer, dublin_core

Answer = TypeVar("Answer")

NAMES = ["one", "two", "three", "four", "five"]


class PublishingRepository(ABC):
    """A repository of some kind."""

    @abstractmethod
    def put(self, name: str) -> None:
        """Have a record."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Say of a record that it was deleted."""

    @abstractmethod
    def break_off(self) -> None:
        """Give no more than the first page of the list from now on."""

    @abstractmethod
    def source(self, fetcher: Fetcher) -> PagedSource:
        """What is tested."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Go away."""


class OverOai(PublishingRepository):
    """A repository that answers by OAI-PMH, in one of its versions."""

    version = "2.0"

    def __init__(self) -> None:
        self.server = OaiServer(version=self.version, page=2)

    def put(self, name: str) -> None:
        self.server.put(f"oai:test:{name}", metadata=dublin_core(name))

    def delete(self, name: str) -> None:
        self.server.delete(f"oai:test:{name}")

    def break_off(self) -> None:
        self.server.refuse_tokens = b"<html><title>Sorry</title></html>", 200

    def source(self, fetcher: Fetcher) -> PagedSource:
        return OaiSource(site_of(self.server.base_url), fetcher)

    def close(self) -> None:
        self.server.close()


class OverOldOai(OverOai):
    """The same in the version 1.1."""

    version = "1.1"


class Written(PublishingRepository):
    """A source as another distribution may add one."""

    def __init__(self) -> None:
        self.repository = paged_source.Repository()

    def put(self, name: str) -> None:
        self.repository.records[name] = paged_source.dc(name)

    def delete(self, name: str) -> None:
        self.repository.records[name] = None

    def break_off(self) -> None:
        self.repository.breaks_after = 1

    def source(self, fetcher: Fetcher) -> PagedSource:
        site = Site(1, "Test", paged_source.BASE_URL, ("c@example.org",), source_kind="written")
        return self.repository.source(site, fetcher)


REPOSITORIES: dict[str, type[PublishingRepository]] = {
    "OAI-PMH 2.0": OverOai,
    "OAI-PMH 1.1": OverOldOai,
    "added": Written,
}


@pytest.fixture(params=REPOSITORIES)
def repository(request: pytest.FixtureRequest) -> Iterator[PublishingRepository]:
    with closing(REPOSITORIES[request.param]()) as made:
        for name in NAMES:
            made.put(name)
        yield made


def asked(repository: PublishingRepository, question: Callable[[PagedSource], Awaitable[Answer]]) -> Answer:
    """The answer of its source, in an event loop of its own."""

    async def ask() -> Answer:
        async with Fetcher(HTTP, name="Test", administrator=None) as fetcher:
            return await question(repository.source(fetcher))

    return asyncio.run(ask())


def listed(
    repository: PublishingRepository,
    checkpoint: Mapping[str, Any] | None = None,
    *,
    full: bool = False,
    resumed: bool = False,
    most_pages: int = 100,
) -> tuple[PagedListing, list[Page]]:
    """What it lists, or the first pages of that."""

    async def question(source: PagedSource) -> tuple[PagedListing, list[Page]]:
        listing = await source.list_records(checkpoint, Patient(), full=full, resumed=resumed)
        pages: list[Page] = []
        async for page in listing.pages:
            pages.append(page)
            if len(pages) == most_pages:
                break
        return listing, pages

    return asked(repository, question)


def records_of(pages: list[Page]) -> list[ListedRecord]:
    return [record for page in pages for record in page.records]


def names_of(pages: list[Page]) -> list[str]:
    return [record.document.document_id.rpartition("/")[2].rpartition(":")[2] for record in records_of(pages)]


def last_checkpoint(pages: list[Page]) -> dict[str, Any]:
    """The last one, as the journal has it after a night."""
    kept = [page.checkpoint for page in pages if page.checkpoint is not None]
    found: dict[str, Any] = json.loads(json.dumps(kept[-1]))
    return found


def assert_told(findings: tuple[Finding, ...]) -> None:
    """In words for the person who can mend it."""
    assert findings
    for finding in findings:
        assert finding.rule in RULES
        assert finding.message.endswith(".")
        assert finding.remedy.endswith(".")


def test_the_harvest_knows_it_by_its_methods(repository: PublishingRepository) -> None:
    async def is_paged(source: PagedSource) -> bool:
        return isinstance(source, PagedSource)

    assert asked(repository, is_paged)


def test_the_first_list_names_every_record_once_and_is_complete(repository: PublishingRepository) -> None:
    listing, pages = listed(repository)
    assert sorted(names_of(pages)) == sorted(NAMES)
    assert listing.is_complete
    assert not listing.goes_on
    assert len([page for page in pages if page.records]) == 3


def test_only_the_last_page_says_that_it_is_the_last_and_has_a_checkpoint(repository: PublishingRepository) -> None:
    _, pages = listed(repository)
    assert [page.is_last for page in pages] == [*([False] * (len(pages) - 1)), True]
    assert pages[-1].checkpoint is not None


def test_a_record_comes_with_its_content_its_origin_and_no_revision(repository: PublishingRepository) -> None:
    for record in records_of(listed(repository)[1]):
        origin = record.document.origin
        assert origin is not None
        assert (record.document.revision, record.deleted, record.findings) == (0, False, ())
        assert record.content
        assert origin.identifier
        assert origin.datestamp
        assert len(origin.digest) == 64
        assert record.document.document_id.isascii()
        assert len(record.document.document_id) <= 800


def test_document_ids_and_digests_are_the_same_in_every_list(repository: PublishingRepository) -> None:
    first, second = (
        {
            record.document.document_id: record.document.origin and record.document.origin.digest
            for record in records_of(listed(repository, full=True)[1])
        }
        for _ in range(2)
    )
    assert first == second
    assert len(set(first.values())) == len(NAMES)


def test_a_list_that_was_broken_off_goes_on_from_its_checkpoint_or_begins_again(
    repository: PublishingRepository,
) -> None:
    _, first = listed(repository, most_pages=1)
    again, rest = listed(repository, last_checkpoint(first))
    assert again.is_complete
    assert {*names_of(first), *names_of(rest)} == set(NAMES)
    if again.goes_on:
        assert not {*names_of(first)} & {*names_of(rest)}
    else:
        assert sorted(names_of(rest)) == sorted(NAMES)


def test_everything_is_listed_again_if_that_is_asked_for(repository: PublishingRepository) -> None:
    _, first = listed(repository, most_pages=1)
    listing, pages = listed(repository, last_checkpoint(first), full=True)
    assert listing.is_complete
    assert not listing.goes_on
    assert sorted(names_of(pages)) == sorted(NAMES)


def test_a_deleted_record_is_listed_without_content(repository: PublishingRepository) -> None:
    repository.delete("two")
    records = {record.document.document_id[-3:]: record for record in records_of(listed(repository)[1])}
    assert records["two"].deleted
    assert records["two"].content is None
    assert not records["one"].deleted


def test_a_list_that_does_not_come_to_its_end_says_so_after_what_it_gave(repository: PublishingRepository) -> None:
    repository.break_off()
    pages: list[Page] = []

    async def question(source: PagedSource) -> ListIncomplete:
        listing = await source.list_records(None, Patient(), full=False)
        try:
            async for page in listing.pages:
                pages.append(page)
        except ListIncomplete as error:
            return error
        pytest.fail("the list came to its end")

    assert_told(asked(repository, question).findings)
    assert len(names_of(pages)) >= 2
    assert not any(page.is_last for page in pages)


def test_a_record_is_had_by_itself_and_is_the_one_that_was_listed(repository: PublishingRepository) -> None:
    async def question(source: PagedSource) -> None:
        listing = await source.list_records(None, Patient(), full=False)
        record = next(iter((await anext(listing.pages)).records))
        fetched = await source.fetch(replace(record.document, revision=7))
        assert fetched.document.docid == f"{record.document.document_id}.7"
        assert fetched.sha256 == hashlib.sha256(fetched.content).hexdigest()
        assert fetched.document.origin is not None
        assert record.document.origin is not None
        assert fetched.document.origin.digest == record.document.origin.digest

    asked(repository, question)


def test_a_record_that_is_not_there_any_more_is_a_fetch_error(repository: PublishingRepository) -> None:
    record = records_of(listed(repository)[1])[0]
    repository.delete(names_of(listed(repository)[1])[0])

    async def question(source: PagedSource, document: ListedDocument = record.document) -> FetchError:
        with pytest.raises(FetchError) as caught:
            await source.fetch(document)
        return caught.value

    error = asked(repository, question)
    assert_told(error.findings)
    assert not error.transient


def test_a_record_has_no_scope_and_no_identifier(repository: PublishingRepository) -> None:
    async def columns(source: PagedSource) -> object:
        return source.original_columns("test/oai_dc/oai:test:one")

    assert asked(repository, columns) == (None, None)
