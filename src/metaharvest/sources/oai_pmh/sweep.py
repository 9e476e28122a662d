"""Walks through the windows of a source repository's sweep, answer by answer.

    while there are windows to do:
        list the first one, answer by answer, by its tokens
        request a failed answer once more, if that may help
        divide the window in two if the answer fails again, or its token is refused
        fetch records individually if the window has few, or is the smallest
        keep the window as a hole if its identifiers cannot be listed, and go on with the next one

An answer becomes a Page; a long one becomes several. The last page of each answer has a checkpoint, unless the answer
failed: another harvest goes on from there. So has each page of records that are fetched individually. A list that ends
too early never counts as whole: it breaks off, and the finding says after how many records of how many.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf

from lxml import etree

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, ListIncomplete
from metaharvest.fetch.backoff import back_off
from metaharvest.model import Finding, Level, ListMethod, OaiOptions, limited
from metaharvest.model.actions import Remedy, todo
from metaharvest.sources.base import ListedRecord, Page, TimeBudget
from metaharvest.sources.oai_pmh.bounds import DATE
from metaharvest.sources.oai_pmh.counts import UNDATED, Counts, check_size, key_and_version
from metaharvest.sources.oai_pmh.datestamps import ahead_of
from metaharvest.sources.oai_pmh.describe import refused
from metaharvest.sources.oai_pmh.oddities import IN_THE_LOG
from metaharvest.sources.oai_pmh.prefetch import Prefetcher
from metaharvest.sources.oai_pmh.probes import Newest, Probed
from metaharvest.sources.oai_pmh.progress import State, Sweep, first_moment, has_seconds, state_after
from metaharvest.sources.oai_pmh.protocol import Identity
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.repository import Repository
from metaharvest.sources.oai_pmh.responses import NotOaiResponse, Response, cut_off
from metaharvest.sources.oai_pmh.single_records import SingleRecords, Stopped
from metaharvest.sources.oai_pmh.versions import Versions
from metaharvest.sources.oai_pmh.windows import Failure, Step, Window, next_step
from metaharvest.text import counted, one_line

ENDLESS = 100_000
"""A list of changes may have this many records more than ten times the last full list.

Lists without an end: https://github.com/OpenSKOS/OpenSKOS/issues/8
"""

MOST_ONE_BY_ONE = 30
"""A window with at most this many records is not divided: they are fetched individually."""

MOST_FAILED = 33
"""The list breaks off after more failed windows than this without a record.

Halving 37 years down to two seconds takes 31. The smallest windows count once; the holes of the last harvest do not
count.
"""

MOST_HOLES = 1_000
"""The list breaks off when this many windows cannot be listed: the state that is kept has its limits."""

_MOST_LOOKED_AT = 1_000

_NOTHING_RULES = frozenset({"oai.not-oai", "oai.encoding", "http.empty"})
"""Rules of a page without a readable beginning. On the first page of a list, they concern the whole repository."""

_ONE_PAGE_RULES = frozenset(
    {"http.deadline", "http.timeout-read", "http.truncated", "http.too-large", "http.encoding", "http.protocol"}
)
"""Rules that may concern one page alone: it is too large, or has a character that cannot be written.

Seen at https://github.com/DSpace/DSpace/issues/10721 and https://github.com/zenodo/zenodo-rdm/issues/1149.
"""

_PARTIAL, _TOO_LARGE = 206, 413
_AWAY = frozenset({503, 521, 522, 523})
"""The server is busy, down or cannot be reached by Cloudflare, whatever the page."""


class PageFailed(Exception):
    """An answer failed; smaller windows may help. `token_refused`: the source repository refused its token."""

    def __init__(self, finding: Finding, *, token_refused: bool = False) -> None:
        super().__init__(finding.message)
        self.finding = finding
        self.token_refused = token_refused


@dataclass(slots=True)
class _Answer:
    """An answer to a request with the token `sent`, or without one.

    Of the `number` of its records, `new` are new in the window. `rest` are the records that no page has yet.
    """

    response: Response
    sent: str
    number: int = 0
    new: int = 0
    rest: list[ListedRecord] = field(default_factory=list)


class Sweeper:
    """One harvest's part of a sweep. `state` is kept from harvest to harvest, `sweep` is its progress.

    `is_resumed`: see Sweep. `probe` sends short requests after the list.
    """

    def __init__(
        self,
        repository: Repository,
        records: Records,
        options: OaiOptions,
        identity: Identity,
        state: State,
        sweep: Sweep,
        http: HttpSettings,
    ) -> None:
        self._repository = repository
        self._records = records
        self._options = options
        self._identity = identity
        self._http = http
        self.state = state
        self.sweep = sweep
        self.is_resumed = sweep.is_resumed
        self.newest = Newest()
        self.probe: Callable[[Sweeper], Awaitable[Probed]] | None = None
        self._most_records = http.max_list_records
        if state.listed and not sweep.full:
            self._most_records = min(self._most_records, 10 * state.listed + ENDLESS)
        # Records of this harvest: the version of each by its key; records of failed windows that have not come again.
        self._seen = Versions()
        self._to_come_again: set[int] = set()
        # Numbers: records of earlier harvests; records and bytes in pages; records without a key in ended windows.
        self._came_earlier = sweep.came + sweep.received + sum(sweep.parts.values())
        self._yielded = self._bytes = self._nameless = 0
        # The announced size of the list (see State.size), and the number of its records if it usually announces more.
        self._size: int | None = None
        self._counted: int | None = None
        # True until the first answer, if the first request has a token of an earlier harvest.
        self._token_is_old = bool(sweep.token)
        # The warning that the source repository demands the prefix with each token, which is then sent.
        self._needs_prefix: Finding | None = None
        # True after a refused token, and after a request that succeeded.
        self._token_was_refused = self._has_answered = False
        # False while the source repository is known not to do so.
        self._respects_windows = self._lists_identifiers = True
        # The warning about a refused request, and if it had seconds: noted if the request in its place succeeds.
        self._tried: tuple[Finding, bool] | None = None
        # Windows in a row that failed without a record, and the error of the last hole.
        self._failed = 0
        self._why_hole: Finding | None = None
        # Findings about the list, and the state after it has ended or must be repeated.
        self._notes = list(sweep.notes)
        self._ended: State | None = None

    @property
    def is_empty(self) -> bool:
        """True if no record with an identifier came, deleted ones included."""
        return not (self._came_earlier or self._yielded)

    def start_prefetch(self) -> None:
        """Prefetch from now on. The caller must close the pages: that cancels the last prefetch."""
        self._prefetcher.is_on = True

    async def pages(self, patience: TimeBudget) -> AsyncGenerator[Page, None]:
        """The pages; the last one has no records. Raises ListIncomplete."""
        self._patience = patience
        self._singles = SingleRecords(self._repository, self._records, self._http, patience)
        async with Prefetcher(self._repository, self._records, patience) as self._prefetcher:
            while self.sweep.todo:
                async with aclosing(self._window()) as pages:
                    async for page in pages:
                        yield page
        if wrong := self._check_divided():
            yield Page((), self.checkpoint())
            raise self._incomplete(wrong)
        yield await self._last_page()
        if self.sweep.holes:
            raise self._incomplete(_of_holes(self.sweep.holes, self._why_hole), has_ended=True)

    async def _last_page(self) -> Page:
        """The page after all windows, with the checkpoint of a sweep that has ended."""
        if has_seconds(self.state, self._identity) and (odd := self._records.odd.finding("days")):
            self._notes.append(odd)
            self.state = replace(self.state, in_days=True)
        state, sweep, probed = self.state, self.sweep, Probed()
        if self.probe is not None and not sweep.holes:
            probed = await self.probe(self)
            self._notes += probed.findings
        left_out = inf if sweep.left_out is None else sweep.left_out
        repeat = None if state.is_second(sweep) else dict(state.to_repeat(sweep, sweep.left_out or 0).as_checkpoint())
        if sweep.full:
            state = replace(state, size=self._size)
        before = first_moment(self._identity.response_date, self._identity.ahead)
        self._ended = state_after(state, sweep, probed, before, is_empty=self.is_empty)
        last = Page((), self.checkpoint(), left_out=left_out, repeat=repeat)
        if self.sweep.holes:
            return last
        findings = (*self._findings(), *self._records.odd.findings())
        last = replace(last, findings=findings, announced=self._counted, is_last=True)
        return replace(last, in_all=probed.in_all, in_all_before=probed.in_all_before)

    def checkpoint(self) -> dict[str, object]:
        """The state that is kept, as JSON."""
        under_way = replace(self.sweep, notes=self._findings())
        return dict((self._ended or replace(self.state, sweep=under_way)).as_checkpoint())

    # -- one window

    async def _window(self) -> AsyncGenerator[Page, None]:
        """The pages of the first window, until it ends or is replaced. Raises ListIncomplete."""
        sweep = self.sweep
        self._records.odd.restart(sweep.odd)
        is_whole = not (sweep.divided or self._seen)
        counts = Counts(self._seen if is_whole else Versions(), sweep.received, moved=sweep.moved)
        counts.announced = None if sweep.divided else sweep.announced
        # More than one page has come: the announced number is not the size of a page.
        counts.pages = 2 if sweep.received else 0
        if sweep.todo[0].is_empty:
            self.sweep = sweep.without_first(0)
            return
        failures = 0
        while not counts.has_ended:
            try:
                async with aclosing(self._answer(counts)) as pages:
                    async for page in pages:
                        yield page
                failures = 0
            except PageFailed as failed:
                await self._prefetcher.note_failure()
                failures, counts.has_failed = failures + 1, True
                if not await self._wait_to_try_again(failures, failed):
                    await self._replace_window(counts, failed)
                    return

    async def _answer(self, counts: Counts) -> AsyncGenerator[Page, None]:
        """The pages of one answer; a long answer has several. Raises ListIncomplete, and PageFailed."""
        self._require_time()
        window = self.sweep.todo[0]
        response = Response("ListIdentifiers" if self._is_one_by_one(window) else "ListRecords")
        answer = _Answer(response, self.sweep.token)
        counts.begin_answer()
        try:
            async with aclosing(self._prefetcher.answer(response, self._arguments(window))) as parts:
                async for part in parts:
                    if answer.rest:
                        yield self._page(answer.rest, counts, self.checkpoint() if self.sweep.parts else None)
                    await self._take_part(part, answer, counts)
        except (FetchError, NotOaiResponse, Stopped) as error:
            raise await self._examine_failure(error, window) from error
        token_was_old, self._token_is_old = self._token_is_old, False
        self._note_faults(answer, counts)
        wrong = None
        if response.errors and not answer.number:
            self._react_to_errors(response, counts, token_was_old=token_was_old)
            if not counts.has_ended:
                return
        elif response.is_whole and not response.errors:
            self._accept()
            if answer.sent and self._needs_prefix and self._needs_prefix not in self._notes:
                self._notes.append(self._needs_prefix)
            wrong = counts.follow(response, answer.sent, answer.number, answer.new)
        else:
            if answer.rest:
                yield self._page(answer.rest, counts)
            raise PageFailed(cut_off(response))
        if answer.number:
            self._failed, self._lists_identifiers = 0, True
        self._move_on(response, counts, leads_nowhere=wrong is not None)
        if counts.has_ended and wrong is None:
            wrong = self._end_window(counts)
        if wrong:
            page = self._page(answer.rest, counts, self.checkpoint())
            incomplete = self._incomplete(wrong)
            yield page
            raise incomplete
        # After a failure, an answer without records shows that the windows before it were not an outage.
        if not response.errors or (self._failed and (self.state.listed or not self.is_empty)):
            lacks_token = bool(answer.sent) and response.token is None
            yield replace(self._page(answer.rest, counts, self.checkpoint()), lacks_token=lacks_token)

    async def _take_part(self, part: Sequence[ListedRecord], answer: _Answer, counts: Counts) -> None:
        """Count a part of an answer. Its records that go into a page become the `rest`. Raises Stopped."""
        answer.rest = []
        fresh, new = self._fresh(part, counts)
        answer.number, answer.new = answer.number + len(part), answer.new + new
        if answer.response.verb == "ListIdentifiers":
            fresh = await self._fetched(part, fresh)
        counts.fresh += len(fresh)
        answer.rest = fresh

    async def _fetched(self, part: Sequence[ListedRecord], fresh: Sequence[ListedRecord]) -> list[ListedRecord]:
        """The `fresh` records of a part, fetched individually; none if all of the part came before. Raises Stopped."""
        digest = hashlib.sha256(repr([_stamped(record) for record in part]).encode()).hexdigest()[:16]
        if digest in self.sweep.parts:
            return []
        found = await self._singles.all_of(fresh)
        first = self.sweep.first or first_moment(self._identity.response_date, self._identity.ahead)
        self.sweep = replace(self.sweep, first=first, parts={**self.sweep.parts, digest: len(part)})
        return found

    def _note_faults(self, answer: _Answer, counts: Counts) -> None:
        """Count the unusable records of an answer, and note if it is not well-formed."""
        unusable = answer.response.unusable
        answer.number += len(unusable)
        answer.new += counts.note_unusable(answer.response)
        for key in unusable:
            if key is not None:
                self._seen[key] = UNDATED
        self._to_come_again.difference_update(unusable)
        if answer.response.is_ill_formed:
            self._records.odd.note("ill-formed", answer.response.damage)

    def _move_on(self, answer: Response, counts: Counts, *, leads_nowhere: bool) -> None:
        """Note a whole answer in the sweep. `leads_nowhere`: its token does not lead on."""
        token, sweep = answer.token, self.sweep
        if not sweep.first:
            ahead = max(self._identity.ahead, ahead_of(answer.response_date, answer.date))
            sweep = replace(sweep, first=first_moment(answer.response_date, ahead))
        if not sweep.divided:
            sweep = replace(sweep, announced=counts.announced)
        sweep = replace(sweep, received=counts.before + counts.received, parts={}, moved=counts.moved)
        if leads_nowhere:
            self.sweep = replace(sweep, token="", expires="", odd=sweep.odd_before)
            return
        sweep = replace(sweep, token="", expires="", odd=self._records.odd.counted())
        if counts.has_ended or token is None or not token.text:
            counts.has_ended, self.sweep = True, sweep
        else:
            self.sweep = replace(sweep, token=token.text, expires=token.expires)

    def _end_window(self, counts: Counts) -> Finding | None:
        """Remove the first window from the sweep. Returns the error if it has too few records."""
        self._notes += counts.notes
        sweep, is_whole = self.sweep, not self.sweep.divided
        short, usual = (self.state.short, self.state.usual) if is_whole else (None, 0)
        check = check_size(counts, short=short, usual=usual, is_full=sweep.full)
        if check.error:
            return self._repeat(check.error, check.short, check.usual)
        if is_whole:
            received = counts.before + counts.received
            self.state = replace(self.state, usual=check.usual)
            self._counted = received if check.usual and (counts.announced or 0) > received else None
            announced = counts.announced or (received if counts.pages == 1 else 0)
            self._size = announced if announced >= counts.different else 0
        self._notes += [check.finding] if check.finding else []
        self._nameless += counts.nameless
        self.sweep = sweep.without_first(None if counts.in_doubt else check.left_out)
        return None

    def _check_divided(self) -> Finding | None:
        """Return the error if the windows of a divided list lack announced records, or records that came before."""
        sweep, lacks = self.sweep, len(self._to_come_again)
        if lacks > max(1, len(self._seen) // 100) and not sweep.holes:
            return self._repeat(_left_out(lacks), lacks, self.state.usual)
        if not sweep.divided or not sweep.announced or self._came_earlier or sweep.holes:
            return None
        counts = Counts(self._seen, announced=sweep.announced, nameless=self._nameless)
        counts.received = counts.different
        check = check_size(counts, short=self.state.short, usual=self.state.usual, is_full=sweep.full)
        self._size = sweep.announced if sweep.announced >= counts.different else 0
        if check.error:
            return self._repeat(check.error, check.short, check.usual)
        self.state = replace(self.state, usual=check.usual)
        self._notes += [check.finding] if check.finding else []
        self.sweep = replace(sweep, left_out=check.left_out)
        return None

    def _repeat(self, why: Finding, short: int, usual: int) -> Finding:
        """End the sweep with the error `why`: the next harvest repeats it."""
        self._ended = replace(self.state, usual=usual).to_repeat(self.sweep, short)
        return why

    # -- pages that fail

    async def _wait_to_try_again(self, failures: int, failed: PageFailed) -> bool:
        """Return True, after a pause, if the page must be requested again. `failures`: how often it failed in a row."""
        rules = {"oai.cut-off"} if self.sweep.divided else {"oai.cut-off", "http.encoding", *_NOTHING_RULES}
        if failed.token_refused or failed.finding.rule not in rules or failures > self._http.retries:
            return False
        await self._patience.sleep(back_off(failures, self._http))
        return True

    async def _replace_window(self, counts: Counts, failed: PageFailed) -> None:
        """Replace the first window, of which a page failed, as next_step() says. Raises ListIncomplete."""
        window = self.sweep.todo[0]
        self._to_come_again.update(counts.named)
        is_one_by_one, halves = self._is_one_by_one(window), self._halves(window)
        self._count_failure(failed, window, is_smallest=halves is None)
        is_first_refusal = failed.token_refused and not self._token_was_refused
        self._token_was_refused = self._token_was_refused or failed.token_refused
        # The prefix is noted when a token with it is accepted. A later refusal has another cause.
        if failed.token_refused and self._needs_prefix not in self._notes:
            self._needs_prefix = None
        # Tokens expire, and do so more often while records are fetched individually: that is no warning.
        is_expiry = is_first_refusal or (failed.token_refused and is_one_by_one)
        if not is_expiry:
            self._note_smaller(failed.finding)
        may_have_few = halves is not None and not failed.token_refused and not is_one_by_one
        failure = Failure(
            token_refused=failed.token_refused,
            is_one_by_one=is_one_by_one,
            has_halves=halves is not None,
            has_few=may_have_few and await self._has_at_most(MOST_ONE_BY_ONE) is True,
            may_repeat_smallest=is_first_refusal or (is_one_by_one and bool(counts.fresh)),
        )
        self._take(next_step(failure), halves or (), failed.finding)
        if not self._yielded:  # nothing came in this harvest: the list may still begin again
            self.is_resumed, self._came_earlier = self.sweep.is_resumed, self.sweep.came

    def _take(self, step: Step, halves: Sequence[Window], why: Finding) -> None:
        """Take the step with the first window, which failed. Raises ListIncomplete if the list breaks off."""
        window = self.sweep.todo[0]
        if step is Step.REPEAT:
            self.sweep = self.sweep.restarted()
        elif step is Step.HALVE:
            self.sweep = self.sweep.restarted(*halves)
        elif step is Step.ONE_BY_ONE:
            one_by_one = self.sweep.restarted(replace(window, one_by_one=True))
            self.sweep = one_by_one if self._respects_windows else self.sweep.joined()
        elif self._is_everything(window) or len(self.sweep.holes) >= MOST_HOLES:
            raise self._incomplete(why)
        else:
            self._why_hole, self.sweep = why, self.sweep.with_hole()

    def _count_failure(self, failed: PageFailed, window: Window, *, is_smallest: bool) -> None:
        """Count a window that failed. Raises ListIncomplete if too many did."""
        is_counted = window in self.state.holes or (window.one_by_one and is_smallest)
        self._failed += not (failed.token_refused or is_counted)
        if self._failed > MOST_FAILED:
            raise self._incomplete(failed.finding)

    def _is_everything(self, window: Window) -> bool:
        """True if there is no other window, and the source repository has answered nothing."""
        return self.sweep.todo == (window,) and not (self.sweep.came or self._has_answered)

    def _halves(self, window: Window) -> tuple[Window, Window] | None:
        """The halves of the window; None if it has the smallest size, or windows are not respected."""
        if not self._respects_windows:
            return None
        identity, seconds = self._identity, has_seconds(self.state, self._identity)
        return window.halves(identity.earliest, identity.response_date, seconds=seconds)

    async def _has_at_most(self, most: int) -> bool | None:
        """True if one ListIdentifiers names at most this number of records in the first window; None if it fails."""
        if not self._lists_identifiers:
            return None
        self._require_time()
        arguments = self._first_arguments(replace(self.sweep.todo[0], one_by_one=True))
        try:
            (stamps, number), answer = await self._repository.short(
                "ListIdentifiers", arguments, self._patience, _stamps_and_number
            )
        except (FetchError, NotOaiResponse):
            self._lists_identifiers = False
            return None
        self._check_datestamps(stamps)
        return number <= most and not (answer.token and answer.token.text)

    def _check_datestamps(self, datestamps: Sequence[str]) -> None:
        """Note if most datestamps are far outside of the first window: the source repository ignores windows.

        Seen at https://github.com/inveniosoftware/invenio-app-rdm/issues/2153.
        """
        far = sum(map(self.sweep.todo[0].is_far, datestamps))
        self._respects_windows = self._respects_windows and 2 * far <= len(datestamps)

    def _note_smaller(self, why: Finding) -> None:
        """Warn, once, that a page failed."""
        message = "A page of the list failed, and its records were requested in smaller lists"
        if not any(each.rule == "oai.page-failed" for each in self._notes):
            remedy = why.remedy if why.rule == "oai.encoding" else IN_THE_LOG
            self._notes.append(Finding("oai.page-failed", f"{message}: {why.message}", remedy, Level.WARNING))

    async def _examine_failure(
        self, error: FetchError | NotOaiResponse | Stopped, window: Window
    ) -> ListIncomplete | PageFailed:
        """The exception after a failed request: PageFailed if smaller windows may help.

        If the server refused a request of an undivided list, a short one finds out whether it refuses all.
        """
        cause = error.error if isinstance(error, Stopped) else error
        why = cause.finding if isinstance(cause, NotOaiResponse) else cause.findings[0]
        sweep, stopped = self.sweep, self._patience.stop_reason()
        is_stopped = stopped is not None or isinstance(error, Stopped)
        if sweep.token and not isinstance(error, Stopped) and _refuses_token(error, self._token_is_old):
            return PageFailed(why, token_refused=True)
        if not is_stopped:
            is_part = sweep.divided or window.one_by_one
            is_refused = isinstance(cause, FetchError) and _is_refusal(cause)
            others_answer = is_part or (is_refused and await self._has_at_most(0) is not None)
            if _may_be_of_page(cause, is_first=not (others_answer or sweep.token)) or (is_refused and others_answer):
                return PageFailed(why)
        return self._incomplete(stopped or why)

    def _react_to_errors(self, answer: Response, counts: Counts, *, token_was_old: bool) -> None:
        """End the window if nothing matches. After other errors, change its request, which is then sent again.

        `token_was_old`: the token is from an earlier harvest, and may have expired. Raises PageFailed, ListIncomplete.
        """
        codes = {error.code for error in answer.errors}
        why, window, has_token = refused(answer.verb, answer.errors), self.sweep.todo[0], bool(self.sweep.token)
        if "noRecordsMatch" in codes and not (token_was_old and has_token):
            self._accept()
            counts.has_ended = True
            if has_token:
                counts.end_in_error(answer)
        elif has_token and not self._needs_prefix and _lacks_prefix(answer):
            self._try_prefix(why)
        elif has_token:
            raise PageFailed(why, token_refused=True)
        elif "badArgument" in codes and window.has_seconds:
            self._try_days(why)
        elif self._may_try_all(window):
            self._try_all(why)
        elif self.sweep.divided or window.one_by_one:
            self._respects_windows = self._respects_windows and "badArgument" not in codes
            raise PageFailed(why)
        else:
            raise self._incomplete(why)

    def _may_try_all(self, window: Window) -> bool:
        """True if the window is the whole list of changes. Holes of earlier harvests may follow it."""
        is_part = window.one_by_one or (self.sweep.divided and (window.until or self.sweep.first))
        return bool(window.begin and not self._options.begin and not is_part)

    def _try_days(self, why: Finding) -> None:
        """Request whole days. `why`: the source repository's error about seconds.

        Seen at https://github.com/wimmuskee/shell-oaiharvester/issues/7.
        """
        message = f"The repository says that its datestamps have seconds, and refuses them: {why.message}"
        remedy = "The repository's keeper corrects the granularity in Identify. Whole days were requested instead."
        self._tried = Finding("oai.granularity", message, remedy, Level.WARNING), True
        self.sweep = self.sweep.in_days()

    def _try_all(self, why: Finding) -> None:
        """Request all records. `why`: the source repository's error about `from`.

        Seen at https://github.com/DSpace/xoai/pull/34. Another error than badArgument or noRecordsMatch, where nothing
        has changed: https://github.com/LearningRegistry/LearningRegistry/issues/49.
        """
        message = f"The repository refuses lists of changes, and all records were requested: {why.message}"
        remedy = "The repository should accept `from`. Each harvest lists all records until then."
        self._tried = Finding("oai.error", message, remedy, Level.WARNING), False
        self.sweep = replace(self.sweep, todo=(replace(self.sweep.todo[0], begin=None),))

    def _try_prefix(self, why: Finding) -> None:
        """Send the prefix with each token. `why`: the source repository's error about the token alone.

        Seen at https://github.com/geopython/pycsw/issues/317.
        """
        message = (
            f"The repository refuses a resumption token without metadataPrefix; both were sent then. {why.message}"
        )
        remedy = "The repository should accept a resumption token alone, as the protocol demands."
        self._needs_prefix = Finding("oai.token", message, remedy, Level.WARNING)

    def _accept(self) -> None:
        """Note a successful request: it confirms the warning about the refused one before it."""
        self._has_answered = True
        if self._tried is not None:
            finding, in_days = self._tried
            self._notes.append(finding)
            self.state, self._tried = replace(self.state, in_days=self.state.in_days or in_days), None

    # -- requests and their records

    def _is_one_by_one(self, window: Window) -> bool:
        return window.one_by_one or self._options.method is ListMethod.LIST_IDENTIFIERS

    def _arguments(self, window: Window) -> dict[str, str]:
        if token := self.sweep.token:
            prefix = {"metadataPrefix": self._options.prefix} if self._needs_prefix else {}
            return {**prefix, "resumptionToken": token}
        return self._first_arguments(window)

    def _first_arguments(self, window: Window) -> dict[str, str]:
        """The arguments of a request without a token; ListIdentifiers of 1.x has no prefix."""
        has_none = self._identity.version != "2.0" and self._is_one_by_one(window)
        prefix = {} if has_none else {"metadataPrefix": self._options.prefix}
        return {**prefix, "set": self._options.set_spec or "", **window.arguments()}

    def _fresh(self, part: Sequence[ListedRecord], counts: Counts) -> tuple[list[ListedRecord], int]:
        """The records whose version is new in this harvest, and the number of records that are new in this window.

        A record that changes during the harvest comes again with another version.
        """
        fresh: list[ListedRecord] = []
        new = 0
        if self.sweep.divided:
            self._check_datestamps([each.document.origin.datestamp for each in part if each.document.origin])
        seen, is_whole, newest = self._seen, counts.named is self._seen, self.newest
        for record in part:
            key, version = key_and_version(record)
            before = seen.setdefault(key, version)
            is_new = before is None if is_whole else key not in counts.named
            # A version without a date may be any.
            is_other = before is None or (before != version and UNDATED not in (before, version))
            if is_new:
                new += 1
                if not record.deleted and (origin := record.document.origin):
                    newest = newest.or_newer(origin.datestamp, origin.identifier, self._identity.response_date)
            elif not counts.has_failed:
                self._records.odd.note("twice")
                counts.moved += is_other or not counts.is_on_page(key)
            if not counts.is_first:
                counts.on_page.add(key)
            self._to_come_again.discard(key)
            if not is_whole:
                counts.named[key] = version
            if is_other:
                if before is not None:
                    seen[key] = version
                fresh.append(record)
        self.newest = newest
        return fresh, new

    def _page(
        self, records: Sequence[ListedRecord], counts: Counts, checkpoint: dict[str, object] | None = None
    ) -> Page:
        self._yielded += len(records)
        self._bytes += sum(map(_bytes_of, records))
        announced = self.sweep.announced if self.sweep.divided else counts.announced
        return Page(records, checkpoint, announced=announced)

    def _findings(self) -> tuple[Finding, ...]:
        """The findings about the list until now, each of them once."""
        return limited(dict.fromkeys(self._notes))

    def _require_time(self) -> None:
        """Raises ListIncomplete if the time is up, or a limit is reached."""
        if why := self._patience.stop_reason() or self._limit_reached():
            raise self._incomplete(why)

    def _limit_reached(self) -> Finding | None:
        """The finding about too many records or bytes; None if the limits are not reached."""
        came = max(self._came_earlier + self._yielded, self.sweep.came + self.sweep.received)
        if came > self._most_records:
            return _too_many_records(self._most_records, self._http.max_list_records)
        return _too_many_bytes(self._bytes) if self._bytes > self._http.max_run_bytes else None

    def _incomplete(self, why: Finding, *, has_ended: bool = False) -> ListIncomplete:
        """The error of a list after the records of all its pages: it breaks off, or `has_ended` with holes."""
        set_spec = self._options.set_spec or ""
        of_set = f" of the set {one_line(set_spec, 60)}" if set_spec else ""
        number, announced = self._came_earlier + self._yielded, self.sweep.announced
        came = f"{number:,} of {counted(announced, 'record')}" if announced else counted(number, "record")
        message = f"The list{of_set} broke off after {came}: {why.message}"
        if has_ended:
            message = f"The list{of_set} has ended with {came}. {why.message}"
        finding = Finding("oai.broken-off", message, why.remedy or IN_THE_LOG)
        findings = (finding, *self._findings(), *self._records.odd.findings(is_whole=False))
        return ListIncomplete(*findings, has_ended=has_ended)


def _lacks_prefix(answer: Response) -> bool:
    """True if the error of the answer is a missing metadataPrefix."""
    return all(each.code == "badArgument" and "metadataprefix" in each.words.lower() for each in answer.errors)


def _refuses_token(error: FetchError | NotOaiResponse, token_was_old: bool) -> bool:
    """True if the error may mean that the token is refused: a token of an earlier harvest may have expired.

    Version 1.x refuses a token with the status 400. Seen at
    https://github.com/mattbierbaum/arxiv-public-datasets/issues/26.
    """
    if isinstance(error, NotOaiResponse):
        return token_was_old
    if error.status == 400:
        return True
    is_of_page = error.findings[0].rule in _ONE_PAGE_RULES or error.status >= 500
    return token_was_old and not error.transient and not is_of_page


def _may_be_of_page(error: FetchError | NotOaiResponse, *, is_first: bool) -> bool:
    """True if the error may concern this page alone. `is_first`: it is the first page of the whole list."""
    if isinstance(error, NotOaiResponse):
        return not is_first and error.finding.rule in _NOTHING_RULES
    rule = error.findings[0].rule
    if rule in _ONE_PAGE_RULES or (error.status >= 500 and error.status not in _AWAY) or error.status == _TOO_LARGE:
        return True
    return not is_first and rule in _NOTHING_RULES


def _is_refusal(error: FetchError) -> bool:
    """True if the server refused a page by its status, as a wall against robots does.

    Seen at https://github.com/Gluejar/regluit/issues/1154.
    """
    return not error.transient and (400 <= error.status < 500 or error.status == _PARTIAL)


def _stamps_and_number(tree: etree._Element, _answer: Response) -> tuple[list[str], int]:
    """The datestamps of the first records in an answer, and the number of all its records."""
    datestamps = islice(tree.iter("{*}datestamp"), _MOST_LOOKED_AT)
    number = sum(1 for _ in tree.iter("{*}identifier"))
    return [(each.text or "")[:DATE] for each in datestamps], number


def _of_holes(holes: Sequence[Window], why: Finding | None) -> Finding:
    """The finding about windows whose identifiers cannot be listed. `why`: the error of the last one."""
    named = "; ".join(f"from {each.begin or 'the first record'} until {each.until or 'today'}" for each in holes[:5])
    more = f" and {len(holes) - 5:,} more" if len(holes) > 5 else ""
    message = f"The records with these datestamps cannot be fetched: {named}{more}. All others were requested."
    message = f"{message} The last error: {why.message}" if why else message
    remedy = "The repository's keeper finds out why lists of these dates fail. Each harvest tries them again."
    return Finding("oai.broken-off", message, remedy)


def _left_out(number: int) -> Finding:
    """The finding about windows that lack this number of records of the whole list."""
    message = f"Lists of certain dates (from, until) leave out {counted(number, 'record')} that the whole list has"
    remedy = "The repository should name all records of these dates in lists with `from` and `until`."
    return Finding("oai.broken-off", f"{message}, and perhaps others.", remedy)


def _too_many_records(most: int, setting: int) -> Finding:
    """The finding about a list with more than `most` records; `setting` is the limit of the settings."""
    message = f"More than {most:,} records came: the list may have no end"
    remedy = "The repository's keeper should check whether its list ends, and how many records it has."
    if most < setting:
        message += f", as that is ten times the number of the last full list and {ENDLESS:,} more."
        full = Remedy("{} If all is right, a full list allows more ({}).", remedy, todo("runs.full"))
        return Finding("oai.broken-off", message, full)
    message += " (max_list_records in [http])."
    return Finding("oai.broken-off", message, f"{remedy} If all is right, the administrator sets a higher number.")


def _too_many_bytes(came: int) -> Finding:
    """The finding about a site that reached its limit of bytes for one run."""
    message = (
        f"{came / 1e9:,.1f} GB of records came, the most that one site may bring in a run (max_run_bytes in [http])."
    )
    remedy = "The next harvest goes on from here; a repository of this size needs nothing else."
    return Finding("oai.broken-off", message, remedy)


def _stamped(record: ListedRecord) -> tuple[str, str, bool]:
    """The identifier of a record, its datestamp, and if it is deleted."""
    origin = record.document.origin
    return (origin.identifier, origin.datestamp, record.deleted) if origin else (record.document.document_id, "", False)


def _bytes_of(record: ListedRecord) -> int:
    """The size of a record's metadata and about containers."""
    about = record.document.origin.about if record.document.origin else ()
    return len(record.content or b"") + sum(map(len, about))
