"""Harvests the list of a repository over the harvester's client, and keeps what came for tests to look at."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from math import inf
from typing import Any

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import ListIncomplete
from metaharvest.fetch.client import Fetcher
from metaharvest.model import FetchedDocument, Finding, ListedDocument, OaiOptions, Site, SiteOptions
from metaharvest.sources.base import ListedRecord, Page, PagedListing
from metaharvest.sources.oai_pmh.source import OaiSource

HTTP = HttpSettings(allow_networks=(ip_network("127.0.0.0/8"),), retry_wait=0, read_timeout=20)


class Patient:
    """The time is up, with the reason `stop`, after this number of `questions`."""

    def __init__(self, stop: Finding | None = None, questions: int = 10**9) -> None:
        self._stop = stop
        self._left = questions

    def left(self) -> float:
        return inf

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def stop_reason(self) -> Finding | None:
        self._left -= 1
        return self._stop if self._left < 0 else None


@dataclass
class Harvested:
    """What came of one harvest: `checkpoint` is the last one that the journal would have."""

    listing: PagedListing
    pages: list[Page] = field(default_factory=list)
    broken: ListIncomplete | None = None
    checkpoint: dict[str, Any] | None = None
    under_way: list[str] = field(default_factory=list)
    """What was still being done when the list broke off."""

    @property
    def records(self) -> list[ListedRecord]:
        return [record for page in self.pages for record in page.records]

    @property
    def identifiers(self) -> list[str]:
        return [record.document.origin.identifier for record in self.records if record.document.origin]

    @property
    def good(self) -> list[str]:
        """The identifiers of the records that have content."""
        return [
            record.document.origin.identifier
            for record in self.records
            if record.document.origin and record.content is not None
        ]

    @property
    def deleted(self) -> list[str]:
        return [each.document.origin.identifier for each in self.records if each.deleted and each.document.origin]

    @property
    def findings(self) -> list[Finding]:
        """All of them: about the repository, the list, its records, and why it broke off."""
        found = [*self.listing.findings, *(finding for page in self.pages for finding in page.findings)]
        found += [finding for record in self.records for finding in record.findings]
        return found + list(self.broken.findings if self.broken else ())

    @property
    def rules(self) -> list[str]:
        return [finding.rule for finding in self.findings]

    def words(self, rule: str) -> str:
        """The messages of the findings of this rule."""
        return "\n".join(finding.message for finding in self.findings if finding.rule == rule)


def site_of(base_url: str, **options: Any) -> Site:
    """A site with this base URL."""
    oai = OaiOptions(**{"origin": "test", **options})
    return Site(1, "Test", base_url, ("c@example.org",), source_kind="oai-pmh", options=SiteOptions(oai=oai))


def harvest(
    base_url: str,
    checkpoint: Mapping[str, Any] | None = None,
    *,
    full: bool = False,
    resumed: bool = False,
    http: HttpSettings = HTTP,
    patience: Patient | None = None,
    most_pages: int | None = None,
    **options: Any,
) -> Harvested:
    """The whole list, or its first pages, of which nothing is asked ahead.

    Raises FetchError and ListError where it cannot be begun.
    """
    return asyncio.run(_harvest(base_url, checkpoint, full, resumed, http, patience or Patient(), most_pages, options))


async def _harvest(
    base_url: str,
    checkpoint: Mapping[str, Any] | None,
    full: bool,
    resumed: bool,
    http: HttpSettings,
    patience: Patient,
    most_pages: int | None,
    options: dict[str, Any],
) -> Harvested:
    async with Fetcher(http, name="Test", administrator=None) as fetcher:
        source = OaiSource(site_of(base_url, **options), fetcher, is_harvest=most_pages is None)
        found = Harvested(await source.list_records(checkpoint, patience, full=full, resumed=resumed))
        found.checkpoint = dict(checkpoint) if checkpoint else None
        try:
            async for page in found.listing.pages:
                found.pages.append(page)
                if page.checkpoint is not None:
                    found.checkpoint = json.loads(json.dumps(page.checkpoint))
                if len(found.pages) == most_pages:
                    break
        except ListIncomplete as error:
            found.broken = error
            found.under_way = [repr(task.get_coro()) for task in asyncio.all_tasks()]
        return found


def get(base_url: str, document: ListedDocument, **options: Any) -> FetchedDocument:
    """One record by itself. Raises FetchError."""

    async def fetched() -> FetchedDocument:
        async with Fetcher(HTTP, name="Test", administrator=None) as fetcher:
            return await OaiSource(site_of(base_url, **options), fetcher).fetch(document)

    return asyncio.run(fetched())
