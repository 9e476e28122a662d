"""A source repository with OAI-PMH: where a harvest begins, and which requests it sends.

Their order follows the implementation guidelines: Identify, the formats, the sets, then the list (sweep.py).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import inf
from urllib.parse import parse_qsl, urlsplit

from metaharvest.errors import FetchError, ListError, ListIncomplete, NotUsable
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.url import without_login
from metaharvest.model import (
    Checkpoint,
    FetchedDocument,
    Finding,
    Level,
    ListedDocument,
    OaiOptions,
    OriginalColumns,
    Site,
)
from metaharvest.sources.base import Page, PagedListing, TimeBudget
from metaharvest.sources.oai_pmh.datestamps import from_watermark, moment
from metaharvest.sources.oai_pmh.describe import (
    ALL_PAGES,
    CLOCK_RIGHT,
    changes,
    described,
    has_other_identifiers,
    missing,
)
from metaharvest.sources.oai_pmh.probes import Probed, Probes, is_due
from metaharvest.sources.oai_pmh.progress import (
    State,
    asked_by,
    asks_for_others,
    first_moment,
    has_seconds,
    newest_of,
    next_sweep,
    state_from,
)
from metaharvest.sources.oai_pmh.protocol import Identity
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.repository import Repository
from metaharvest.sources.oai_pmh.responses import NotOaiResponse
from metaharvest.sources.oai_pmh.single_records import checked_record
from metaharvest.sources.oai_pmh.sweep import Sweeper
from metaharvest.sources.oai_pmh.windows import Window
from metaharvest.text import one_line


class OaiSource:
    """The records of one source repository for one site: in one format, from one set or all.

    `is_harvest`: records get digests, answers are prefetched, and probes follow the list. An inspection of some records
    needs none of these.
    """

    def __init__(self, site: Site, fetcher: Fetcher, *, is_harvest: bool = True) -> None:
        self._site = site
        self._is_harvest = is_harvest
        self._fetcher = fetcher
        self._options = site.options.oai or OaiOptions(origin=without_login(site.list_url))
        self._repository = Repository(site, fetcher, post=self._options.post)

    async def list_records(
        self, checkpoint: Checkpoint | None, patience: TimeBudget, *, full: bool, resumed: bool = False
    ) -> PagedListing:
        """The list; see PagedSource. A warning names the changes of the source repository since the last harvest."""
        options, http = self._options, self._fetcher.http
        asked = asked_by(without_login(self._site.list_url), options)
        state, is_other = state_from(checkpoint, asked), asks_for_others(checkpoint, asked)
        description = await described(self._repository, patience, pages=ALL_PAGES if options.set_spec else 1)
        identity = description.identity

        def compared() -> tuple[dict[str, object], tuple[Finding, ...]]:
            set_specs = (options.set_spec,) if options.set_spec else ()
            if lacking := tuple(missing(description, options.prefix, set_specs)):
                raise ListError(*lacking)
            remembered = description.remembered(state.identity)
            return remembered, tuple(changes(state.identity, remembered))

        remembered, changed = await asyncio.to_thread(compared)
        ahead = tuple(_ahead(state, identity))
        findings = (*description.findings, *changed, *ahead)
        wants_all = bool(ahead) or state.from_is_off or has_other_identifiers(state.identity, remembered)
        if identity.has_seconds and _had_days(state):
            # Changes since the last harvest may have the midnight before it as their datestamps.
            state = replace(state, watermark=first_moment(state.watermark, timedelta(days=1)))
        state = replace(state, identity=remembered, sweep=None if full and not resumed else state.sweep)
        sweep = next_sweep(state, options, identity, full=full or wants_all)
        if not resumed:  # the site run that ended has reported them
            sweep = replace(sweep, notes=())
        records = Records(self._site.list_url, options, digests=self._is_harvest, largest=http.max_document_bytes)
        sweeper = Sweeper(self._repository, records, options, identity, state, sweep, http)
        if self._is_harvest and identity.version == "2.0":
            sweeper.probe = partial(self._probe, state, identity, patience)
        pages = sweeper.pages(patience)
        first = await _first(pages)
        is_empty = first.is_last and sweeper.is_empty
        # If a record changes, it leaves a list with an end date: it is not missing.
        is_whole = sweep.full and options.until is None
        begin = sweeper.start_prefetch if self._is_harvest else None
        return PagedListing(
            _with_first(first, pages, begin),
            is_whole and not is_empty,
            sweeper.is_resumed,
            findings,
            is_other,
            is_whole and is_empty,
        )

    async def _probe(self, state: State, identity: Identity, patience: TimeBudget, sweeper: Sweeper) -> Probed:
        """Find out, after a list, the number of all records, and whether the source repository respects `from`.

        The number is requested after a list of changes. `from` is tried after each full list, and every CHECK_EVERY.
        """
        options, now = self._options, identity.response_date
        probes = Probes(self._repository, options, identity, patience, in_days=sweeper.state.in_days)
        before, is_full = newest_of(state), sweeper.sweep.full
        probed = Probed(newest=sweeper.newest.or_newer(before.datestamp, before.identifier, now))
        checks = options.until is None and (is_full or is_due(state.from_checked, now))
        if patience.stop_reason():
            return probed
        asks_size = not is_full and (state.size != 0 or (checks and not probed.newest.identifier))
        page = await probes.first_page(Window(options.begin, options.until)) if asks_size else None
        if page is not None:
            size, newest = page.size if state.size != 0 else None, page.newest(now)
            newest = probed.newest.or_newer(newest.datestamp, newest.identifier, now)
            probed = replace(probed, in_all=size, in_all_before=state.size or 0, newest=newest)
        if not (checks and probed.newest.identifier) or patience.stop_reason():
            return probed
        how, finding = await probes.check_from(probed.newest)
        return replace(probed, how=how, findings=(finding,) if finding else ())

    def original_columns(self, document_id: str) -> OriginalColumns:
        """None: see PagedSource."""
        return None, None

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        """One record; see PagedSource. Raises FetchError, also for a deleted record; and NotUsable."""
        identifier = document.origin.identifier if document.origin else identifier_in(document.url)
        records = Records(self._site.list_url, self._options, largest=self._fetcher.http.max_document_bytes)
        if too_long := records.names.too_long(identifier):
            raise NotUsable(too_long)
        await self._repository.check_robots()
        content, seconds = await self._repository.record(records.names.arguments(identifier), patience)
        record = await asyncio.to_thread(checked_record, content, identifier, records)
        if record is None or record.deleted:
            raise FetchError(_gone(identifier, is_there=record is not None), seconds=seconds)
        if record.content is None:
            raise NotUsable(*record.findings, seconds=seconds)
        sha256 = hashlib.sha256(record.content).hexdigest()
        found = replace(record.document, document_id=document.document_id, revision=document.revision)
        return FetchedDocument(found, record.content, sha256, seconds, findings=record.findings)


def identifier_in(url: str) -> str:
    """The identifier that a GetRecord URL asks for."""
    return dict(parse_qsl(urlsplit(url).query)).get("identifier", "")


def _had_days(state: State) -> bool:
    """True if the source repository's datestamps were days in the last harvest.

    Seen at https://github.com/DOAJ/doaj/issues/507.
    """
    granularity = state.identity.get("granularity")
    return isinstance(granularity, str) and "T" not in granularity


def _ahead(state: State, identity: Identity) -> Iterator[Finding]:
    """The warning that the source repository's clock went back by more than the overlap since an earlier harvest.

    A clock that was corrected: https://github.com/DSpace/DSpace/pull/825
    """
    today, local = moment(identity.response_date), identity.version != "2.0"
    for stamp in (state.watermark, state.full_at):
        since = moment(from_watermark(stamp, seconds=has_seconds(state, identity), local=local) or "")
        if today is not None and since is not None and since > today:
            message = (
                f"The repository's clock shows {identity.response_date}, and showed {stamp} in an earlier harvest. "
                "It is unknown what has changed since then, so everything is listed again."
            )
            yield Finding("oai.clock", message, CLOCK_RIGHT, Level.WARNING)
            return


async def _first(pages: AsyncIterator[Page]) -> Page:
    """The first page. Raises FetchError or ListError if there is none."""
    try:
        return await anext(pages)
    except ListIncomplete as error:
        cause = error.__cause__
        if isinstance(cause, FetchError):
            cause.of_list = True
            raise cause from None
        failed = ListError(*((cause.finding,) if isinstance(cause, NotOaiResponse) else error.findings))
        failed.of_list = True
        raise failed from error


async def _with_first(
    first: Page, pages: AsyncGenerator[Page, None], begin: Callable[[], None] | None
) -> AsyncGenerator[Page, None]:
    async with aclosing(pages):
        if begin is not None:
            begin()
        yield first
        async for page in pages:
            yield page


def _gone(identifier: str, *, is_there: bool) -> Finding:
    """The finding about a record that is gone.

    `is_there`: the answer has the record, with the status deleted. False: the answer is empty, as in 1.x.
    """
    shown = one_line(identifier, 200)
    message = f"The repository says that its record {shown} is deleted."
    if not is_there:
        message = f"The repository has no record {shown}, or does not have it in this format."
    remedy = (
        "No action is needed if a list named it: the next list reports the deletion. Otherwise, check the identifier."
    )
    return Finding("oai.record-failed", message, remedy)
