"""A whole list, from its first answer to its last, page by page, whatever happens on the way.

A list that ends too early is never taken for a whole one: it is broken off, and the finding says after how many records
of how many. A page that cannot be had is looked for in smaller lists: its window is halved by date, and at last the
records are asked for one by one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from math import inf

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import BrokenOff, FetchError
from metaharvest.fetch.backoff import back_off
from metaharvest.model import Checkpoint, Finding, Level, ListMethod, OaiOptions, limited
from metaharvest.sources.base import ListedRecord, Page, Patience
from metaharvest.sources.oai_pmh.answer_reader import MOST_RECORDS
from metaharvest.sources.oai_pmh.answers import IN_THE_LOG, Answer, NoAnswer
from metaharvest.sources.oai_pmh.course import (
    UNDATED,
    Course,
    PageFailed,
    SetBrokenOff,
    broke_off,
    cut_off,
    is_deleted_since,
    is_refusal,
    key_and_version,
    too_many_bytes,
    too_many_records,
)
from metaharvest.sources.oai_pmh.datestamps import Window
from metaharvest.sources.oai_pmh.describe import refused
from metaharvest.sources.oai_pmh.probes import Newest, Probed
from metaharvest.sources.oai_pmh.progress import ListProgress
from metaharvest.sources.oai_pmh.protocol import Identity
from metaharvest.sources.oai_pmh.reading import Reading
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.repository import Repository
from metaharvest.sources.oai_pmh.shortfalls import Shortfalls
from metaharvest.sources.oai_pmh.singly import Singly, Stopped
from metaharvest.sources.oai_pmh.windows import Windows

MOST_FAILED = 200
"""Pages in a row that could not be had, after which records are asked for one by one, however many there are."""

_REFUSAL = 5
"""A page that is refused by its status counts as so many that failed: whoever refuses all of them is asked no more."""

FEW = 30
"""Records that are asked for one by one rather than in smaller lists."""


class OaiListing:
    """One harvest of a repository's list. `progress` says how far it is, `in_days`: days alone are accepted.

    `checkpoint` makes the checkpoint of how it stands. `is_begun`: it goes on from a token. `is_done`: it has ended.
    """

    def __init__(
        self,
        repository: Repository,
        records: Records,
        options: OaiOptions,
        identity: Identity,
        progress: ListProgress,
        http: HttpSettings,
        checkpoint: Callable[[OaiListing], Checkpoint],
    ) -> None:
        self._repository = repository
        self._records = records
        self._options = options
        self._identity = identity
        self._http = http
        self._checkpoint = checkpoint
        self._sets: tuple[str | None, ...] = (options.set_spec,)
        self._seen: dict[int, int] = {}
        self._yielded = self._failed = 0
        self._is_in_parts = False
        self._fears_tokens = bool(progress.since) and options.method is ListMethod.LIST_IDENTIFIERS
        self._notes = list(progress.notes if progress.is_begun else ())
        records.add(progress.odd if progress.is_begun else {})
        self.progress = progress
        self.is_begun, self._begun_at = progress.is_begun, progress.number
        self._is_resumed = bool(progress.token)
        self._before = progress.earlier + progress.received
        self.is_done = False
        self.in_days = False
        self.shortfalls = Shortfalls()
        self.newest = Newest()
        self.beside: Callable[[OaiListing], Awaitable[Probed]] | None = None
        self.probed = Probed()
        self.size = 0
        self.most_records = http.max_list_records
        self._bytes = 0

    @property
    def is_empty(self) -> bool:
        """True if no record with an identifier came, deleted ones included."""
        return not (self._before or self._yielded)

    @property
    def so_far(self) -> ListProgress:
        """Its progress, with what was odd until now."""
        return replace(self.progress, odd=self._records.counted(), notes=self._told())

    def ask_ahead(self) -> None:
        """Ask for each answer as soon as may be, now that somebody takes the pages, and closes them."""
        self._reading.asks_ahead = True

    def _told(self) -> tuple[Finding, ...]:
        """The notes, each of them once."""
        return limited(dict.fromkeys(self._notes))

    async def pages(self, patience: Patience) -> AsyncGenerator[Page, None]:
        """The pages; the last is empty, and has the checkpoint of a whole list. Raises BrokenOff."""
        self._patience = patience
        self._singly = Singly(self._repository, self._records, self._http, patience)
        self._windows = Windows(self._repository, self._identity, self._options.prefix, patience)
        async with Reading(self._repository, self._records, patience) as self._reading:
            while self.progress.number < len(self._sets):
                async with aclosing(self._pages_of_set(self.progress.number)) as pages:
                    async for page in pages:
                        yield page
        if self._identity.has_seconds and not self.in_days and (odd := self._records.without_time()):
            self._notes.append(odd)
            self.in_days = True
        if self.beside is not None and not self.progress.broken_off:
            self.probed = await self.beside(self)
            self._notes += self.probed.findings
        self.is_done = True
        left_out = inf if self.progress.in_doubt else self.progress.left_out
        findings = (*self._told(), *self._records.findings())
        # What the repository counts and does not list is not left out.
        listed = self.shortfalls.listed if len(self._sets) == 1 else None
        last = Page((), self._checkpoint(self), findings, announced=listed, is_last=True, left_out=left_out)
        yield replace(last, in_all=self.probed.in_all, in_all_before=self.probed.in_all_before)

    async def _pages_of_set(self, number: int) -> AsyncGenerator[Page, None]:
        """The list of one of the sets, or of all that there is. Raises BrokenOff if the others cannot be had either."""
        window, progress = self.progress.window, self.progress
        course = Course(self._options.method, self._sets[number], window, progress, notes=self._notes)
        course.shortfalls = self.shortfalls
        if len(self._sets) == 1:
            course.named = self._seen
        try:
            async with aclosing(self._list(course)) as pages:
                async for page in pages:
                    yield page
        except SetBrokenOff as error:
            if len(self._sets) == 1:
                raise
            self._notes[:] = error.findings
            self._records.odd.clear()
            left, came = course.closed({}), self._before + self._yielded
            progress = progress.in_days() if self.in_days else progress
            broken_off = (*left.broken_off, course.set_spec or "")
            # What is refused of this set may be its name: the others are asked for as they were to be.
            left = replace(left, begin=progress.begin, until=progress.until, begins=progress.begins, earlier=came)
            left = replace(left, left_out=progress.left_out, in_doubt=progress.in_doubt)
            self.progress = replace(left, broken_off=broken_off, empty=progress.empty)
        of_set = course.progress
        if len(self._sets) == 1:
            announced = of_set.announced or (of_set.received if of_set.pages == 1 else 0)
            # A number below that of the records is the size of something else, for example of a page.
            self.size = announced if announced >= of_set.different else 0
        if self.progress.number == number:
            self.progress = course.closed(self._records.counted())

    async def _list(self, course: Course) -> AsyncGenerator[Page, None]:
        """One list to its end. Raises BrokenOff."""
        course.ended = course.window.is_empty
        while not course.ended:
            why: Finding | None = None
            if not await self._is_for_parts(course):
                try:
                    async with aclosing(self._answer(course)) as pages:
                        async for page in pages:
                            yield page
                    continue
                except PageFailed as failed:
                    await self._reading.failed()
                    if await self._wait_to_try_again(course, failed):
                        continue
                    why = failed.finding
            async with aclosing(self._in_parts(course, why)) as pages:
                async for page in pages:
                    yield page

    async def _answer(self, course: Course) -> AsyncGenerator[Page, None]:
        """One answer, and what follows from it. Raises BrokenOff, and PageFailed."""
        self._require_time(course)
        answer = Answer(course.verb)
        held: list[ListedRecord] = []
        number = new = 0
        before = course.fresh
        course.on_page.clear()
        try:
            arguments = course.arguments(self._options.prefix, is_old=self._identity.version != "2.0")
            async with aclosing(self._reading.answer(answer, arguments)) as parts:
                async for part in parts:
                    if held:
                        yield self._page(held, course)
                    held, named = self._not_seen(part, course)
                    number, new, course.fresh = number + len(part), new + named, course.fresh + len(held)
                    if course.method is ListMethod.LIST_IDENTIFIERS:
                        held = await self._singly.all_of(held)
        except (FetchError, NoAnswer, Stopped) as error:
            if course.progress.token and not isinstance(error, Stopped) and course.is_of_token(error, self._is_resumed):
                self._begin_again(course, error.finding if isinstance(error, NoAnswer) else error.findings[0])
                return
            raise await self._failure(error, course) from error
        was_resumed, self._is_resumed = self._is_resumed, False
        number += len(answer.unusable)
        new += course.note_unusable(answer)
        if answer.is_ill_formed:
            self._records.note("ill-formed", answer.damage)
        is_refusal = bool(answer.errors) and not number
        is_whole = answer.is_whole and not answer.errors
        if is_whole and course.fresh > before and course.method is self._options.method:
            self._failed = 0
        if is_refusal:
            wrong = self._heed(answer, course, was_resumed=was_resumed)
            if wrong is None:
                return
        else:
            self.in_days = (is_whole and course.taken()) or self.in_days
            wrong = course.follow(answer, number, new) if is_whole else cut_off(answer)
        if wrong and (is_whole or is_refusal):
            broken_off = self._broken_off(wrong, course, len(held), kind=SetBrokenOff)
            yield self._page(held, course, self._begun_again())
            raise broken_off
        if wrong:
            if held:
                yield self._page(held, course)
            raise PageFailed(wrong)
        yield self._page(held, course, self._moved(course, len(held)))

    def _moved(self, course: Course, more: int) -> Checkpoint | None:
        """The checkpoint after an answer, of which so many `more` records come; in the middle of a part there is none.

        The parts of a list come in the order of their dates.
        """
        if not course.is_main:
            if not course.ended or not course.window.until:
                return None
            came = self._before + self._yielded + more
            left = self.progress.narrowed(course.window.until, course.progress.first, came)
            in_doubt = left.in_doubt or course.in_doubt
            self.progress = replace(left, odd_before=self._records.counted(), in_doubt=in_doubt)
            return self._checkpoint(self)
        self.progress = course.closed(self._records.counted()) if course.ended else course.progress
        return self._checkpoint(self)

    def _begun_again(self) -> Checkpoint:
        """The checkpoint with which the next harvest begins at the same window's beginning: no token leads further."""
        before = self.progress
        self.progress = ListProgress(before.full, before.begin, before.until, begins=before.begins)
        self._records.odd.clear()
        self._notes.clear()
        return self._checkpoint(self)

    def _heed(self, answer: Answer, course: Course, *, was_resumed: bool) -> Finding | None:
        """What follows from errors of the protocol. Raises BrokenOff, and PageFailed.

        `was_resumed`: a token, if one was sent, is from another harvest, and may be forgotten by now.
        """
        codes = {error.code for error in answer.errors}
        why = refused(course.verb, answer.errors)
        if "noRecordsMatch" in codes and not (was_resumed and course.progress.token):
            self.in_days = course.taken() or self.in_days
            return course.end(answer)
        if course.progress.token:
            self._begin_again(course, why)
        elif "badArgument" in codes and course.window.has_seconds:
            course.ask_in_days(why)
        elif not course.is_main:
            raise PageFailed(why)
        elif "badArgument" in codes and course.window.begin and not self._options.begin:
            course.ask_for_all(why)
        else:
            raise self._broken_off(why, course, kind=SetBrokenOff)
        return None

    def _begin_again(self, course: Course, why: Finding) -> None:
        """After a token that was refused: the same list from its beginning, once. Raises PageFailed.

        Tokens may expire while records are asked for one by one: then windows are asked for that need none. One that
        cannot be smaller is begun again as long as more records come of it.
        """
        is_singly = course.method is ListMethod.LIST_IDENTIFIERS
        if course.restarted and not (is_singly and course.fresh and self._halves(course) is None):
            raise PageFailed(why)
        course.restart()
        self._fears_tokens = self._fears_tokens or is_singly
        if course.is_main:
            self.is_begun, self._before = course.progress.is_begun, course.progress.earlier
            self._records.count_from(course.progress.odd_before)

    async def _wait_to_try_again(self, course: Course, failed: PageFailed) -> bool:
        """Count an answer that broke off, and wait before it is asked for again; False if it is not."""
        course.broken += 1
        if not course.may_pass(failed.finding.rule) or course.broken > self._http.retries:
            return False
        await self._patience.sleep(back_off(course.broken, self._http))
        return True

    async def _is_for_parts(self, course: Course) -> bool:
        """Whether a list has more than one answer, and tokens are of no use."""
        is_new = course.method is ListMethod.LIST_IDENTIFIERS and not course.progress.token
        if not (is_new and self._fears_tokens) or self._halves(course) is None:
            return False
        self._require_time(course)
        return await self._windows.has_at_most(MOST_RECORDS, course) is False and self._halves(course) is not None

    async def _in_parts(self, course: Course, why: Finding | None) -> AsyncGenerator[Page, None]:
        """A list in two halves; in the end, record by record. `why`: a page cannot be had. Raises BrokenOff."""
        windows, method = self._halves(course), course.method
        if why is not None:
            self._failed += 1
            if windows is None and method is ListMethod.LIST_IDENTIFIERS:
                raise self._broken_off(why, course, kind=SetBrokenOff)
            if not self._is_in_parts:
                message = "A page of the list could not be had, and its records were asked for in smaller lists"
                self._notes.append(Finding("oai.page-failed", f"{message}: {why.message}", IN_THE_LOG, Level.WARNING))
                self._is_in_parts = True
        if method is ListMethod.LIST_RECORDS and (windows is None or await self._is_rather_one_by_one(course)):
            windows, method = None, ListMethod.LIST_IDENTIFIERS
        for window in windows or (course.window,):
            part = course.part(window, method)
            async with aclosing(self._list(part)) as pages:
                async for page in pages:
                    yield page
            course.take_in(part)
        if wrong := course.add_up():
            broken_off = self._broken_off(wrong, course, kind=SetBrokenOff)
            yield self._page((), course, self._begun_again())
            raise broken_off

    def _halves(self, course: Course) -> tuple[Window, ...] | None:
        """The window of a list in two; None if it is as small as windows are, or they are of no use."""
        return self._windows.halves(course, in_days=self.in_days)

    async def _is_rather_one_by_one(self, course: Course) -> bool:
        """Whether it is less to ask for each record of a window, or smaller windows have led to nothing for long."""
        if self._failed > MOST_FAILED:
            return True
        self._require_time(course)
        return await self._windows.has_at_most(FEW, course) is True

    def _not_seen(self, part: Sequence[ListedRecord], course: Course) -> tuple[list[ListedRecord], int]:
        """The records that have not come before in this harvest, as they are; how many are new in this list.

        One that has moved comes again as another version: a list that holds nothing else is no new one.
        """
        fresh: list[ListedRecord] = []
        new, is_whole = 0, course.named is self._seen
        # To a set that was read before: the next list tells of both. In a full one, it would be missing.
        may_move = len(self._sets) > 1 and not self.progress.full
        is_usual = not course.is_main or course.restarted or course.broken > 0
        if not course.is_main:
            self._windows.look_at([each.document.origin.datestamp for each in part if each.document.origin], course)
        for record in part:
            key, version = key_and_version(record)
            before = self._seen.get(key)
            is_other = before != version and not (before is not None and UNDATED in (before, version))
            is_new = before is None if is_whole else course.note_record(key, version)
            new += is_new
            if not (is_new or is_usual):
                self._records.odd["twice"] += 1
                has_moved = is_other or key not in course.on_page
                course.progress = replace(course.progress, moved=course.progress.moved + has_moved)
            course.on_page.add(key)
            if is_new and not record.deleted:
                self._note_newest(record, course)
            if is_other and not (may_move and is_deleted_since(record, self.progress.first)):
                self._seen[key] = version
                fresh.append(record)
        return fresh, new

    def _note_newest(self, record: ListedRecord, course: Course) -> None:
        if origin := record.document.origin:
            found = origin.datestamp, origin.identifier, course.set_spec or "", self._identity.response_date
            self.newest = self.newest.or_newer(*found)

    def _page(self, records: Sequence[ListedRecord], course: Course, checkpoint: Checkpoint | None = None) -> Page:
        announced = self.progress.announced or (course.progress.announced if course.is_main else None)
        announced = announced if len(self._sets) == 1 else None
        self._yielded += len(records)
        self._bytes += sum(map(_bytes_of, records))
        return Page(records, checkpoint, announced=announced)

    def _require_time(self, course: Course) -> None:
        """Raises BrokenOff if nothing more is to be begun."""
        if why := self._patience.heed() or self._is_endless(course):
            raise self._broken_off(why, course)

    def _is_endless(self, course: Course) -> Finding | None:
        """Why no more is asked for, as more records came than can be right."""
        came = max(self._before + self._yielded, course.progress.earlier + course.progress.received)
        if came > self.most_records:
            return too_many_records(came, self.most_records, self._http.max_list_records)
        return too_many_bytes(self._bytes) if self._bytes > self._http.max_run_bytes else None

    async def _failure(self, error: FetchError | NoAnswer | Stopped, course: Course) -> BrokenOff | PageFailed:
        """What follows from an answer that did not come."""
        cause = error.error if isinstance(error, Stopped) else error
        first = cause.finding if isinstance(cause, NoAnswer) else cause.findings[0]
        stopped = self._patience.heed()
        if not (stopped or isinstance(error, Stopped)):
            refused = isinstance(cause, FetchError) and is_refusal(cause)
            is_answered = not course.is_main or (refused and await self._windows.has_at_most(0, course) is not None)
            if course.may_be_of_page(cause) or (refused and is_answered):
                self._failed += _REFUSAL - 1 if refused else 0
                return PageFailed(first)
        transient = isinstance(cause, FetchError) and cause.transient
        is_all = stopped or transient or isinstance(error, Stopped) or course.progress.token
        kind = BrokenOff if is_all else SetBrokenOff
        return self._broken_off(stopped or first, course, transient=transient, kind=kind)

    def _broken_off(
        self, why: Finding, course: Course, more: int = 0, *, transient: bool = False, kind: type[BrokenOff] = BrokenOff
    ) -> BrokenOff:
        """The list ends here, after what was yielded and so many `more`."""
        progress = course.progress if course.is_main else self.progress
        number = self.progress.number
        others = (*self._sets[: self._begun_at], *self._sets[number + 1 :]) if kind is BrokenOff else ()
        finding = broke_off(why, self._before + self._yielded + more, progress, self._sets[number], others)
        return kind(finding, *self._told(), *self._records.findings(is_whole=False), transient=transient)


def _bytes_of(record: ListedRecord) -> int:
    """What is stored of a record: its metadata and its about containers."""
    about = record.document.origin.about if record.document.origin else ()
    return len(record.content or b"") + sum(map(len, about))
