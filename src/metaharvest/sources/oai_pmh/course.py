"""How one list goes: which token comes next, how much came of how much, and what is odd about that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from metaharvest.errors import BrokenOff, FetchError
from metaharvest.model import Finding, Level, ListMethod
from metaharvest.model.lengths import TOKEN
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh.answers import IN_THE_LOG, Answer, NoAnswer
from metaharvest.sources.oai_pmh.datestamps import Window, ahead_of
from metaharvest.sources.oai_pmh.progress import ListProgress
from metaharvest.sources.oai_pmh.protocol import Token
from metaharvest.sources.oai_pmh.shortfalls import Shortfalls, is_short
from metaharvest.text import one_line

MOST_STALE = 10
"""Pages in a row that have no new records, each with a token, after which nothing more is expected."""

_NOTHING_RULES = frozenset({"oai.not-oai", "http.empty"})
"""What comes from a program that ended while it wrote a page; of the first page of a list, from something else."""

_ONE_PAGE_RULES = frozenset(
    {"http.deadline", "http.timeout-read", "http.truncated", "http.too-large", "http.encoding", "http.protocol"}
)
"""What may be so of one page alone, as there is too much in it, or something that cannot be written."""

ENDLESS = 100_000
"""A list may have this many records more than ten times the last full list."""

UNDATED = 0
"""The version of a record that has no datestamp, as in lists of identifiers in 1.x: it may be any."""

_PARTIAL, _TOO_LARGE = 206, 413

_NEXT_TOKEN = (
    "The repository's keeper has each token lead to the records behind those that came with it, and the last page end "
    "with an empty resumptionToken."
)
_ALL_RECORDS = (
    "The repository's keeper looks why the others were left out, or has completeListSize be the number of records that "
    "the list has."
)


_ASKED_AGAIN = "The next harvest asks for this list once more."


class PageFailed(Exception):
    """A page cannot be had; smaller ones perhaps can."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class SetBrokenOff(BrokenOff):
    """The list of a set broke off by itself: those of other sets may come to their end."""


@dataclass(slots=True)
class Course:
    """One list: of one set, or of all, in one window. `is_main`: it is the whole list, and not a part of one.

    `used` are hashes of the tokens that were sent, `named` the records that came, each with its version (see
    note_record), `nameless` the number of records without a key. `stale` counts the pages in a row without new ones,
    `broken` the pages in a row that broke off. `restarted`: it began again after a refused token. `fresh` counts the
    records since then that had not come before in this harvest. `on_page` counts the records of the answer that is
    being read, `last` the records of the last page that had any, `most` the records of the longest page. `in_doubt`: it
    has `ended`, perhaps too early. `notes` are warnings. `had_come`: the number of different records before this
    harvest went on with the list. `refused` is the finding about a request that the repository refused; it counts once
    the repository takes the request in its place: for whole days (`in_days`), or for all records. `lacks_token`: its
    last page had no resumptionToken at all, after pages that had one. `shortfalls` belong to earlier lists.
    """

    method: ListMethod
    set_spec: str | None
    window: Window
    progress: ListProgress
    is_main: bool = True
    used: set[int] = field(default_factory=set)
    named: dict[int, int] = field(default_factory=dict)
    nameless: int = 0
    stale: int = 0
    broken: int = 0
    restarted: bool = False
    fresh: int = 0
    on_page: set[int] = field(default_factory=set)
    last: int = 0
    most: int = 0
    ended: bool = False
    in_doubt: bool = False
    notes: list[Finding] = field(default_factory=list)
    refused: Finding | None = None
    in_days: bool = False
    lacks_token: bool = False
    shortfalls: Shortfalls = field(default_factory=Shortfalls)
    had_come: int = field(init=False)

    def __post_init__(self) -> None:
        self.had_come = self.progress.different

    @property
    def verb(self) -> str:
        """The verb of the next request."""
        return "ListRecords" if self.method is ListMethod.LIST_RECORDS else "ListIdentifiers"

    def arguments(self, prefix: str, *, is_old: bool) -> dict[str, str]:
        """The arguments of the next request; ListIdentifiers of 1.x has no prefix."""
        if self.progress.token:
            return {"resumptionToken": self.progress.token}
        named = {} if is_old and self.method is ListMethod.LIST_IDENTIFIERS else {"metadataPrefix": prefix}
        return {**named, "set": self.set_spec or "", **self.window.arguments()}

    def closed(self, odd: Mapping[str, Sequence[Any]]) -> ListProgress:
        """The progress of the next set's list, now that this one has ended; `odd` holds all oddities until now."""
        done = self.progress
        left = replace(done.restarted(), number=done.number + 1, since=None, earlier=done.earlier + done.received)
        is_empty = not (self.named or self.had_come or done.since)
        empty = (*done.empty, self.set_spec or "") if is_empty else done.empty
        return replace(left, odd_before=odd, in_doubt=done.in_doubt or self.in_doubt, empty=empty)

    def take_in(self, part: Course) -> None:
        """A part of this list has come to its end."""
        self.named |= part.named
        self.nameless += part.nameless
        self.in_doubt = self.in_doubt or part.in_doubt
        self.progress = replace(self.progress, first=self.progress.first or part.progress.first)

    def part(self, window: Window, method: ListMethod) -> Course:
        """A list of a part of this one's window."""
        part = Course(method, self.set_spec, window, ListProgress(self.progress.full), is_main=False, notes=self.notes)
        return replace(part, refused=self.refused, in_days=self.in_days, shortfalls=self.shortfalls)

    def ask_in_days(self, why: Finding) -> None:
        """Ask for whole days from now on. `why`: the repository's words about seconds."""
        message = f"The repository says that its datestamps have seconds, and refuses them: {why.message}"
        remedy = "The repository's keeper corrects the granularity in Identify. Whole days were asked for instead."
        self.refused, self.in_days = Finding("oai.granularity", message, remedy, Level.WARNING), True
        self.window, self.progress = self.window.in_days(), self.progress.in_days()

    def ask_for_all(self, why: Finding) -> None:
        """Ask for all records, not only for changes. `why`: the repository's words about `from`."""
        message = f"The repository does not say what has changed since a date, and all was asked for: {why.message}"
        remedy = "The repository's keeper has it take `from`, as it should. Each harvest asks for all until then."
        self.refused, self.in_days = Finding("oai.error", message, remedy, Level.WARNING), False
        self.progress = replace(self.progress, begin=None, since=None, begins=())
        self.window = self.progress.window

    def taken(self) -> bool:
        """Note that the repository took a request, so that what it refused before is certain.

        True if that is seconds.
        """
        if self.refused is not None:
            self.notes.append(self.refused)
            self.refused = None
        return self.in_days

    def restart(self) -> None:
        """Begin again."""
        self.progress = self.progress.restarted()
        self.restarted = True
        self.used.clear()
        self.named = {}
        self.nameless = self.fresh = self.last = self.most = self.had_come = 0

    def note_record(self, key: int, version: int = 0) -> bool:
        """Note that this version of the record has come; True if none had, in this list since it was begun."""
        is_new = key not in self.named
        self.named[key] = version
        return is_new

    def note_unusable(self, answer: Answer) -> int:
        """Note the unusable records of an answer. Returns how many of them are new."""
        new = sum(self.note_record(key) for key in answer.unusable if key is not None)
        self.nameless += len(answer.unusable) - new
        return new

    def follow(self, answer: Answer, number: int, new: int) -> Finding | None:
        """Go on after a whole answer with `number` records, `new` of them new. Returns why the list does not go on."""
        token, before = answer.token or Token(""), self.progress
        if token.too_long:
            message = (
                f"The resumption token of a page has {token.too_long:,} characters; {TOKEN:,} are sent back at most."
            )
            return Finding("oai.token", message, "The repository's keeper has it give out short tokens.")
        if before.token:
            self.used.add(hash(before.token))
        different = self.had_come + len(self.named) + self.nameless
        announced = token.size or before.announced
        if (token.text or token.is_blank) and announced and different > announced:
            announced = None  # more came, and is to come, than the list has in all: it is the size of something else
        ahead = 0 if before.first else int(ahead_of(answer.response_date, answer.date).total_seconds())
        self.progress = replace(
            before,
            token=token.text,
            expires=token.expires,
            first=before.first or answer.response_date,
            ahead=max(before.ahead, ahead),
            pages=before.pages + 1,
            received=before.received + number,
            announced=announced,
            different=different,
            shrunk=before.shrunk + max(0, (before.announced or 0) - (announced or before.announced or 0)),
        )
        self.broken = 0
        self.stale = 0 if new else self.stale + 1
        if token.is_blank:
            self._end_in_blank(number)
        elif before.token and not token.text:
            self._end_without_token(number, before.pages, answer)
        self.last, self.most = number or self.last, max(self.most, number)
        if hash(token.text) in self.used and not new:
            return _repeated(token.text)
        if token.text and self.stale >= MOST_STALE:
            message = f"{self.stale} pages in a row had no new records, and a token each."
            return Finding("oai.broken-off", message, _NEXT_TOKEN)
        self.ended = not token.text
        return self._size() if self.ended else None

    def is_of_token(self, error: FetchError | NoAnswer, was_resumed: bool) -> bool:
        """Whether the token may be refused by this: one that is from another harvest may be dead by now.

        1.x has no other way to refuse any of them than the status 400.
        """
        if isinstance(error, NoAnswer):
            return was_resumed
        if error.status == 400:
            return True
        is_of_page = error.findings[0].rule in _ONE_PAGE_RULES or error.status >= 500
        return was_resumed and not error.transient and not is_of_page

    def may_be_of_page(self, error: FetchError | NoAnswer) -> bool:
        """Whether this page alone may be one that cannot be had."""
        is_first = self.is_main and not self.progress.token
        if isinstance(error, NoAnswer):
            return not is_first and error.finding.rule in _NOTHING_RULES
        rule = error.findings[0].rule
        if rule in _ONE_PAGE_RULES or (error.status >= 500 and error.status != 503) or error.status == _TOO_LARGE:
            return True
        return not is_first and rule in _NOTHING_RULES

    def may_pass(self, rule: str) -> bool:
        """Whether a page that failed so is asked for again, before smaller ones: not in each part of the list anew."""
        return rule == "oai.cut-off" or (self.is_main and rule in {*_NOTHING_RULES, "http.encoding"})

    def end(self, answer: Answer) -> Finding | None:
        """There is nothing more, as the repository says noRecordsMatch; what is wrong about that."""
        self.ended = True
        self.progress = replace(self.progress, first=self.progress.first or answer.response_date)
        if not self.progress.token:
            return None
        message = f"A list of the repository ended in an error: {', '.join(map(str, answer.errors))}."
        announced, received = self.progress.announced, self.progress.received
        if not announced or _is_of_page(announced, received, self.progress.pages):
            self._doubt(f"{message} {received:,} records had come", Level.ERROR)
            return None
        self.notes.append(Finding("oai.token", message, _NEXT_TOKEN, Level.WARNING))
        return self._size()

    def add_up(self) -> Finding | None:
        """The list has come to its end by its parts; why they are too few together."""
        self.ended = True
        came = len(self.named) + self.nameless
        self.in_doubt = self.in_doubt and not self.progress.announced
        self.progress = replace(self.progress, received=came, different=came)
        return self._size()

    def _end_in_blank(self, number: int) -> None:
        """The list ends in a token of white space, on a page of so many records."""
        message = (
            "The resumption token of a page was nothing but white space, which was taken for the end of the list: "
        )
        message += f"{self.progress.received:,} records had come"
        # Behind tokens that led on, on a page that has less than others, it stands for none.
        if self.progress.announced or number < self.most:
            self.notes.append(Finding("oai.token", f"{message}.", _NEXT_TOKEN, Level.WARNING))
        else:
            self._doubt(message, Level.WARNING)

    def _end_without_token(self, number: int, pages: int, answer: Answer) -> None:
        """The list ends on a page of so many records, after so many others; whether a token may have been lost there.

        The empty token with which it should end in 2.0 may be left out behind a page that has less than others.
        """
        is_missing = answer.token is None and not answer.root.is_old
        self.lacks_token = is_missing
        if (number and not is_missing) or (number or self.last) < self.most:
            return
        announced, received = self.progress.announced, self.progress.received
        if announced and not _is_of_page(announced, received, pages):
            return
        # Some never send an empty token; but a list of nothing is how 1.x says that nothing matches.
        level = Level.WARNING if number or answer.token else Level.ERROR
        where = "a full page, without the empty resumptionToken of an end" if number else "a page without records"
        self._doubt(f"The list ended in {where}: {received:,} records had come", level)

    def _doubt(self, message: str, level: Level) -> None:
        """The list has ended, nobody can say whether with all that it has."""
        message += ", and no completeListSize says whether those are all. None is said to be missing for that."
        self.notes.append(Finding("oai.token", message, _NEXT_TOKEN, level))
        self.in_doubt = True

    def _size(self) -> Finding | None:
        """Why a list that has ended is too short; one that is shorter by very little is only noted."""
        announced, received, different = self.progress.announced or 0, self.progress.received, self.progress.different
        short, left_out = announced - received, self.progress.moved
        if announced >= different:  # or it is the size of something else
            left_out = announced - different + self.progress.shrunk
        if self.is_main and not is_short(announced, received):
            self.shortfalls.end(self.set_spec or "", is_full=self.progress.full)
        if left_out <= 0:
            return None
        message = f"The repository announced a list of {announced:,} records (completeListSize) and sent {received:,}."
        if is_short(announced, received):
            if self.lacks_token:
                return Finding("oai.broken-off", f"{message} Its last page has no resumptionToken.", _NEXT_TOKEN)
            usual = self.shortfalls.usual_of(self.set_spec or "", announced, received)
            if not usual:
                return Finding("oai.broken-off", f"{message} {_ASKED_AGAIN}", _ALL_RECORDS)
            left_out -= usual
            message += " It does so in each list: it counts records that it does not list, and the list is complete."
        self.progress = replace(self.progress, left_out=self.progress.left_out + max(0, left_out))
        if short > 0:
            self.notes.append(Finding("oai.list-size", message, _ALL_RECORDS, Level.WARNING))
        return None


def key_and_version(record: ListedRecord) -> tuple[int, int]:
    """What tells a record from others, and this version of it from others that a list may have."""
    origin = record.document.origin
    assert origin is not None
    is_dated = bool(origin.datestamp) or record.deleted
    return hash(origin.identifier), hash((origin.datestamp, record.deleted)) if is_dated else UNDATED


def is_deleted_since(record: ListedRecord, first: str) -> bool:
    """Whether a record was deleted after the `first` answer of a list was sent, from where on the next one begins."""
    origin = record.document.origin
    if origin is None or not (record.deleted and first):
        return False
    stamp, length = origin.datestamp, len(origin.datestamp)
    return first[:length] < stamp <= origin.response_date[:length]


def is_refusal(error: FetchError) -> bool:
    """True if the server refused a page by its status, as servers do that keep programs out."""
    return not error.transient and (400 <= error.status < 500 or error.status == _PARTIAL)


def too_many_records(came: int, most: int, setting: int) -> Finding:
    """The finding about a list with more than `most` records; `setting` is the limit of the settings."""
    message = f"More than {most:,} records came: the list may have no end"
    remedy = "The repository's keeper looks whether its list ends, and how many records it has."
    if most < setting:
        message += f", as that is ten times the number of the last full list and {ENDLESS:,} more."
        return Finding("oai.broken-off", message, f"{remedy} If all is right, `metaharvest run --full` allows more.")
    message += " (max_list_records in [http])."
    return Finding("oai.broken-off", message, f"{remedy} If all is right, the administrator sets a higher number.")


def too_many_bytes(came: int) -> Finding:
    """The finding about a site that reached its limit of bytes for one run."""
    message = (
        f"{came / 1e9:,.1f} GB of records came, the most that one site may bring in a run (max_run_bytes in [http])."
    )
    remedy = "The next harvest goes on from here; a repository of this size needs nothing else."
    return Finding("oai.broken-off", message, remedy)


def _is_of_page(announced: int, received: int, pages: int) -> bool:
    """True if the announced number may be the number of records on a page."""
    return pages < 2 and received == announced


def _repeated(token: str) -> Finding:
    message = f"The repository gives the same resumption token again, with no new records: {one_line(token, 100)}."
    return Finding("oai.broken-off", message, _NEXT_TOKEN)


def broke_off(
    why: Finding, came: int, progress: ListProgress, set_spec: str | None, others: Sequence[str | None]
) -> Finding:
    """Why and where a list has broken off: so many records `came`, and the `others` are sets that wait for it."""
    of = f" of {progress.earlier + progress.announced:,}" if progress.announced else ""
    of_set = f" of the set {one_line(set_spec, 60)}" if set_spec else ""
    message = f"The list{of_set} broke off after {came:,}{of} records: {why.message}"
    if others := [one_line(each, 60) for each in others if each]:
        message += f" Other sets of this site were not asked for: {', '.join(others)}."
    return Finding("oai.broken-off", message, why.remedy or IN_THE_LOG)


def cut_off(answer: Answer) -> Finding:
    """Why an answer is not taken for a whole one."""
    message = f"An answer to {answer.verb} breaks off before its end: {one_line(answer.damage, 200)}."
    if answer.errors:
        errors = ", ".join(map(str, answer.errors))
        message = f"An answer to {answer.verb} has records, and then an error: {errors}."
    return Finding("oai.cut-off", message, IN_THE_LOG)
