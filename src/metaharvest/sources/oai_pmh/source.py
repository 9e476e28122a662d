"""An OAI-PMH repository as a source of records: where a harvest begins, and what it asks for.

The order is that of the implementation guidelines: Identify, the formats, the sets, then the list. How that goes on is
in listing.py.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta
from functools import partial
from math import inf
from urllib.parse import parse_qsl, urlsplit

from metaharvest.errors import BrokenOff, FetchError, ListError, NotUsable
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
from metaharvest.sources.base import Page, PagedListing, Patience
from metaharvest.sources.oai_pmh.answers import NoAnswer
from metaharvest.sources.oai_pmh.course import ENDLESS
from metaharvest.sources.oai_pmh.datestamps import Window, from_watermark, moment, window, written
from metaharvest.sources.oai_pmh.describe import CLOCK_RIGHT, Description, changes, described, missing
from metaharvest.sources.oai_pmh.listing import OaiListing
from metaharvest.sources.oai_pmh.probes import From, Probed, Probes, is_due
from metaharvest.sources.oai_pmh.progress import ListProgress, State, asked_by, asks_for_others, state_from
from metaharvest.sources.oai_pmh.protocol import Identity
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.repository import Repository
from metaharvest.sources.oai_pmh.shortfalls import Shortfalls
from metaharvest.sources.oai_pmh.singly import checked_record
from metaharvest.text import one_line

_FEW = 2_000
"""Records of a list that is asked for every night until it has ended beyond doubt; a longer one, once more."""


class OaiSource:
    """The records of one repository that a site asks for: in one format, of all sets or of some.

    `is_harvest`: those that are listed have digests, and each answer is asked for while the one before is read. Nobody
    needs either who only looks at some of them.
    """

    def __init__(self, site: Site, fetcher: Fetcher, *, is_harvest: bool = True) -> None:
        self._site = site
        self._is_harvest = is_harvest
        self._fetcher = fetcher
        self._options = site.options.oai or OaiOptions(origin=without_login(site.list_url))
        self._repository = Repository(site, fetcher, post=self._options.post)

    async def list_records(
        self, checkpoint: Checkpoint | None, patience: Patience, *, full: bool, resumed: bool = False
    ) -> PagedListing:
        """What the repository lists; see PagedSource. A repository that has changed is a warning."""
        options = self._options
        asked = asked_by(without_login(self._site.list_url), options)
        state, is_other = state_from(checkpoint, asked), asks_for_others(checkpoint, asked)
        description = await described(self._repository, patience, sets=options.set_spec is not None)

        def compared() -> tuple[dict[str, object], tuple[Finding, ...]]:
            _require_offered(description, options)
            remembered = description.remembered(state.identity)
            return remembered, tuple(changes(state.identity, remembered))

        remembered, changed = await asyncio.to_thread(compared)
        ahead = tuple(_ahead(state, description.identity))
        findings = (*description.findings, *changed, *ahead)
        if full and not resumed:
            state = replace(state, progress=None)
        progress = _progress(state, options, description, full=full or bool(ahead) or state.from_is_off)
        progress = replace(progress, ahead=max(progress.ahead, int(description.identity.ahead.total_seconds())))
        largest = self._fetcher.http.max_document_bytes
        records = Records(self._site.list_url, options, digests=self._is_harvest, largest=largest)

        def checkpoint_of(listing: OaiListing) -> Checkpoint:
            now = replace(state, identity=remembered)
            return _state_after(now, listing, description.identity.response_date).as_checkpoint()

        listing = OaiListing(
            self._repository, records, options, description.identity, progress, self._fetcher.http, checkpoint_of
        )
        listing.in_days = state.in_days
        listing.shortfalls = Shortfalls(dict(state.short), dict(state.usually_short))
        if state.listed and not full:
            listing.most_records = min(listing.most_records, 10 * state.listed + ENDLESS)
        if self._is_harvest and description.identity.version == "2.0":
            listing.beside = partial(self._beside, state, description.identity, patience)
        pages = listing.pages(patience)
        first = await _first(pages)

        def begin() -> None:
            if self._is_harvest:
                listing.ask_ahead()

        def again() -> Checkpoint | None:
            if state.is_second and not (listing.progress.full and state.watermark):  # it was one of changes
                return None
            return replace(_state_again(replace(state, identity=remembered), listing), is_second=True).as_checkpoint()

        is_empty = first.is_last and not (first.records or progress.earlier or progress.received)
        # A record that changes leaves a window with an end: it is not missing.
        is_whole = progress.full and options.until is None
        return PagedListing(
            _with_first(first, pages, lambda: again() if listing.is_done else None, begin),
            is_whole and not is_empty,
            listing.is_begun,
            findings,
            is_other,
            is_whole and is_empty,
        )

    async def _beside(self, state: State, identity: Identity, patience: Patience, listing: OaiListing) -> Probed:
        """Ask, after a list has ended, how many records there are in all, and whether `from` is right.

        The number is asked after a list of changes; `from` is tried after each full list, and now and then.
        """
        options, now = self._options, identity.response_date
        probes = Probes(self._repository, options, identity, patience, in_days=listing.in_days)
        probed = Probed(newest=listing.newest.or_newer(*_three(state.newest), now))
        is_full = listing.progress.full
        checks = options.until is None and (is_full or is_due(state.from_checked, now))
        if patience.heed():
            return probed
        if not is_full and (state.size != 0 or (checks and not probed.newest.identifier)):
            spec = options.set_spec or ""
            if page := await probes.first_page(spec, Window(options.begin, options.until)):
                size = page.size if state.size != 0 else None
                probed = replace(probed, in_all=size, in_all_before=state.size or 0)
                newest = page.newest(now, spec)
                probed = replace(probed, newest=probed.newest.or_newer(newest.datestamp, newest.identifier, spec, now))
        if not (checks and probed.newest.identifier) or patience.heed():
            return probed
        how, finding = await probes.check_from(probed.newest)
        return replace(probed, how=how, findings=(finding,) if finding else ())

    def original_columns(self, document_id: str) -> OriginalColumns:
        """None: see PagedSource."""
        return None, None

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        """One record by itself; see PagedSource. Raises FetchError, also for one that is deleted; NotUsable."""
        identifier = document.origin.identifier if document.origin else identifier_in(document.url)
        records = Records(self._site.list_url, self._options, largest=self._fetcher.http.max_document_bytes)
        if too_long := records.too_long(identifier):
            raise NotUsable(too_long)
        await self._repository.heed_robots()
        content, seconds = await self._repository.record(records.arguments(identifier), patience)
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


def _progress(state: State, options: OaiOptions, description: Description, *, full: bool) -> ListProgress:
    """Where the list begins: at the stored token, at the watermark, or at the very beginning."""
    identity = description.identity
    under_way, is_due = state.progress, _is_due(state, options, identity.response_date)
    may_go_on = under_way is not None and (under_way.full or not (full or (is_due and not under_way.token)))
    if under_way is not None and may_go_on:
        if _has_expired(under_way, identity.response_date):
            return under_way.restarted()
        return under_way
    is_full = full or not state.watermark or is_due
    seconds = _has_seconds(state, identity)
    since = None if is_full else _since(state, identity, state.watermark)
    asked = window(options.begin, options.until, since, seconds=seconds)
    begins: list[str | None] = []
    own = {**dict.fromkeys(state.empty, ""), **state.behind}
    if since is not None and own:
        behind = [_since(state, identity, own.get(each, state.watermark)) for each in (options.set_spec or "",)]
        begins = [window(options.begin, options.until, each, seconds=seconds).begin for each in behind]
    return ListProgress(full=since is None, begin=asked.begin, until=asked.until, begins=begins)


def _since(state: State, identity: Identity, watermark: str) -> str | None:
    """From where on to ask for changes; not from before the repository's first record, which some refuse."""
    if not watermark:
        return None
    seconds = _has_seconds(state, identity)
    since = from_watermark(watermark, timedelta(seconds=state.ahead), seconds=seconds, local=identity.version != "2.0")
    begin, last, earliest = moment(since or ""), moment(watermark), moment(identity.earliest)
    if begin is None or last is None or earliest is None or not begin < earliest <= last:
        return since
    return written(earliest, seconds=seconds)


def _has_seconds(state: State, identity: Identity) -> bool:
    return identity.has_seconds and not state.in_days


def _ahead(state: State, identity: Identity) -> Iterator[Finding]:
    """What was kept of the repository's clock, if that is later than it is now, even by more than the overlap."""
    today, local, ahead = moment(identity.response_date), identity.version != "2.0", timedelta(seconds=state.ahead)
    for stamp in (state.watermark, state.full_at):
        since = moment(from_watermark(stamp, ahead, seconds=_has_seconds(state, identity), local=local) or "")
        if today is not None and since is not None and since > today:
            message = (
                f"The repository's clock shows {identity.response_date}, and showed {stamp} in an earlier harvest. "
                "Nobody knows what has changed since then, so everything is listed again."
            )
            yield Finding("oai.clock", message, CLOCK_RIGHT, Level.WARNING)
            return


def _has_expired(progress: ListProgress, now: str) -> bool:
    """True if the token is older than the repository's own expirationDate."""
    expires, today = moment(progress.expires), moment(now)
    return bool(progress.token) and expires is not None and today is not None and expires < today


def _is_due(state: State, options: OaiOptions, now: str) -> bool:
    """True if a full list is due, by the repository's clock."""
    if options.full_every is None:
        return False
    if state.is_owed_full:
        return True
    last, today = moment(state.full_at), moment(now)
    # Harvests do not begin in the same second each night.
    return last is None or today is None or (today.date() - last.date()).days >= options.full_every


def _state_after(state: State, listing: OaiListing, before: str) -> State:
    """The state after this list. The watermark moves when a list has come to its end. `before`: a date before it began.

    A full list without a record moves no watermark, and the next list is a full one.
    """
    progress = listing.so_far
    state = _with_shortfalls(state, listing)
    if not listing.is_done:
        return replace(state, in_days=listing.in_days, progress=progress)
    if progress.full and listing.is_empty:
        return replace(_state_again(state, listing), is_second=False)
    if progress.in_doubt and progress.earlier <= _FEW:
        return _state_again(state, listing)
    if progress.in_doubt and not state.is_second:
        return replace(_state_again(state, listing), is_second=True)
    first, behind, empty = progress.first or before, _behind(state, progress), _empty(state, progress)
    if progress.full:
        # One that was owed counts as it is: a set may break off from each of them. Of the first, nothing is missing.
        owes_full = bool(progress.broken_off and state.full_at) and not state.is_owed_full
        state = replace(state, full_at=first, owes_full=owes_full, listed=progress.earlier)
        state = replace(state, size=listing.size)
    state = _with_probed(state, listing.probed, before)
    ahead = max(progress.ahead, state.ahead) if behind else progress.ahead
    state = replace(state, watermark=first, ahead=ahead, behind=behind, empty=empty)
    return replace(state, in_days=listing.in_days, is_second=False, progress=None)


def _three(newest: Sequence[str]) -> tuple[str, str, str]:
    return (newest[0], newest[1], newest[2]) if len(newest) == 3 else ("", "", "")


def _with_probed(state: State, probed: Probed, now: str) -> State:
    """The state with the result of the probes at `now`."""
    newest = (
        (probed.newest.datestamp, probed.newest.identifier, probed.newest.set_spec) if probed.newest.identifier else ()
    )
    state = replace(state, newest=newest or state.newest)
    if probed.how is None:
        return state
    return replace(state, from_checked=now, from_is_off=probed.how in (From.OFF, From.IGNORED))


def _behind(state: State, progress: ListProgress) -> Mapping[str, str]:
    """From where on the next lists of the sets are to begin whose lists broke off: where these have begun."""
    began = {} if progress.full else state.behind
    return {each: began.get(each, "" if progress.full else state.watermark) for each in progress.broken_off}


def _empty(state: State, progress: ListProgress) -> Sequence[str]:
    """The sets that have never listed a record: an empty list of changes of another set says nothing."""
    never = {*state.empty, *(each for each, since in state.behind.items() if not since)}
    return [each for each in progress.empty if progress.full or each in never]


def _state_again(state: State, listing: OaiListing) -> State:
    """What is kept where the next list is to ask for all that this one has asked for."""
    state = replace(state, watermark="", behind={}, empty=()) if listing.progress.full else state
    return replace(_with_shortfalls(state, listing), in_days=listing.in_days, progress=None)


def _with_shortfalls(state: State, listing: OaiListing) -> State:
    return replace(state, short=dict(listing.shortfalls.seen), usually_short=dict(listing.shortfalls.usual))


def _require_offered(description: Description, options: OaiOptions) -> None:
    """Raises ListError if the repository does not have the format, or the set."""
    if lacking := tuple(missing(description, options.prefix, (options.set_spec,) if options.set_spec else ())):
        raise ListError(*lacking)


async def _first(pages: AsyncIterator[Page]) -> Page:
    """The first page. Raises FetchError or ListError where there is none."""
    try:
        return await anext(pages)
    except BrokenOff as error:
        cause = error.__cause__
        if isinstance(cause, FetchError):
            cause.of_list = True
            raise cause from None
        failed = ListError(*((cause.finding,) if isinstance(cause, NoAnswer) else error.findings))
        failed.of_list = True
        raise failed from error


async def _with_first(
    first: Page, pages: AsyncGenerator[Page, None], again: Callable[[], Checkpoint | None], begin: Callable[[], None]
) -> AsyncGenerator[Page, None]:
    async with aclosing(pages):
        begin()
        page: Page | None = first
        while page is not None:
            yield replace(page, again=again())
            page = await anext(pages, None)


def _gone(identifier: str, *, is_there: bool) -> Finding:
    """`is_there`: with the status deleted; otherwise it was an empty answer, as 1.x gives it."""
    shown = one_line(identifier, 200)
    message = f"The repository says that its record {shown} is deleted."
    if not is_there:
        message = f"The repository has no record {shown}, or does not have it in this format."
    remedy = "Nothing is to be done where a list named it: the next one says so too. Otherwise, check the identifier."
    return Finding("oai.record-failed", message, remedy)
