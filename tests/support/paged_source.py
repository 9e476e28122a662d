"""A repository that is no server: a source as another distribution may add one, whose pages a test writes."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from metaharvest.errors import FetchError, ListIncomplete
from metaharvest.fetch.client import Fetcher
from metaharvest.model import (
    Checkpoint,
    FetchedDocument,
    Finding,
    ListedDocument,
    OriginalColumns,
    RecordOrigin,
    Site,
)
from metaharvest.sources.base import ListedRecord, Page, PagedListing, TimeBudget

BASE_URL = "https://repository.example.org/oai"


def dc(title: str) -> bytes:
    """A record's metadata."""
    return (
        '<oai_dc:dc xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></oai_dc:dc>'
    ).encode()


@dataclass
class Repository:
    """Records by local identifier: their metadata, None for one that is deleted; `datestamp` is that of all of them.

    Pages have `page` records; an answer has `parts` pages, of which the last has a checkpoint. `is_complete`: the list
    names everything, not only the `changed` ones. `breaks_after`: the list breaks off after this number of pages.
    `refuses_tokens`: a listing cannot go on, and begins again. `ends_with_records`: the last page has records.
    `without_checkpoint`: the page before the end has none. `finding`: of the first page. `asked`: the requests, one
    after the other. `between` is called after each page. `also`: named at the end of the list, each a local identifier
    with metadata and a datestamp of its own.
    """

    records: dict[str, bytes | None] = field(default_factory=dict)
    datestamp: str = "2026-11-20T00:00:00Z"
    page: int = 2
    parts: int = 1
    is_complete: bool = True
    changed: Sequence[str] | None = None
    breaks_after: int | None = None
    refuses_tokens: bool = False
    ends_with_records: bool = False
    without_checkpoint: bool = False
    finding: Finding | None = None
    repeated: Sequence[str] = ()
    also: Sequence[tuple[str, bytes | None, str]] = ()
    asked: list[str] = field(default_factory=list)
    between: Callable[[int], None] = lambda number: None

    def source(self, site: Site, _fetcher: Fetcher) -> Source:
        """What a run asks for the site's documents."""
        return Source(self, site)


class Source:
    """The repository as one run reads it."""

    def __init__(self, repository: Repository, site: Site) -> None:
        self._repository = repository
        self._site = site

    async def list_records(
        self, checkpoint: Checkpoint | None, patience: TimeBudget, *, full: bool, resumed: bool = False
    ) -> PagedListing:
        """Its pages, from where the checkpoint stands."""
        position: Any = (checkpoint or {}).get("token")
        goes_on = position is not None and not full and not self._repository.refuses_tokens
        self._repository.asked.append("full" if full else f"from {position}" if goes_on else "list")
        pages = self._pages(int(position) if goes_on else 0)
        return PagedListing(pages, self._repository.is_complete or full, goes_on)

    def original_columns(self, _document_id: str) -> OriginalColumns:
        """None."""
        return None, None

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        """One record."""
        local = document.document_id.rpartition("/")[2]
        self._repository.asked.append(local)
        content = self._repository.records.get(local)
        if content is None:
            raise FetchError(Finding("http.status", f"There is no record {local}.", "Nothing."))
        listed = self._record(local, content, self._repository.datestamp).document
        full = replace(listed, revision=document.revision)
        return FetchedDocument(full, content, hashlib.sha256(content).hexdigest(), 0.1)

    async def _pages(self, first: int) -> AsyncGenerator[Page, None]:
        names = list(self._repository.records if self._repository.changed is None else self._repository.changed)
        names += self._repository.repeated
        listed = [self._record(name, self._repository.records[name], self._repository.datestamp) for name in names]
        listed += [self._record(*each) for each in self._repository.also]
        size = self._repository.page
        begins = range(first, len(listed), size)
        for number, begin in enumerate(begins):
            if number == self._repository.breaks_after:
                raise ListIncomplete(Finding("http.status", "The server answered 500.", "Look into its log."))
            records = listed[begin : begin + size]
            is_last = begin + size >= len(listed)
            checkpoint: dict[str, object] = {"token": None if is_last else begin + size}
            page = Page(records, checkpoint, announced=len(listed))
            if number == 0 and self._repository.finding:
                page = replace(page, findings=(self._repository.finding,))
            if is_last and self._repository.ends_with_records:
                yield replace(page, is_last=True)
                return
            is_part = (number + 1) % self._repository.parts and not is_last
            has_none = is_part or (is_last and self._repository.without_checkpoint)
            yield replace(page, checkpoint=None) if has_none else page
            self._repository.between(number)
        yield Page((), {"token": None}, is_last=True)

    def _record(self, local: str, content: bytes | None, datestamp: str) -> ListedRecord:
        # All that is XML here is canonical as it is.
        digest = hashlib.sha256(content).hexdigest() if content and content.startswith(b"<") else ""
        identifier = f"oai:repository.example.org:{local}"
        origin = RecordOrigin(
            BASE_URL, identifier, "oai_dc", datestamp, "2026-11-20T01:00:00Z", "http://example.org/dc",
            digest, ("all",), (b"<rights/>",),
        )  # fmt: skip
        document = ListedDocument(f"repo/oai_dc/{local}", 0, "http://example.org/dc", f"{BASE_URL}?id={local}")
        return ListedRecord(replace(document, origin=origin), content, deleted=content is None)
