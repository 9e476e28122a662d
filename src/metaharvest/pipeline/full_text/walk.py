"""The decisions on the way from a record to its file: what to request next, what an answer or a failure is. Pure.

    walk = Walk(candidates, title)
    while candidate := walk.following():
        walk.take(candidate, ...the answer, or the reason why there is none...)
    walk.found, or walk.refusal

A page is followed at once, before the next address of the record: its links are better than another guess.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from enum import StrEnum

from metaharvest.errors import FetchError
from metaharvest.model.values import frozen
from metaharvest.pipeline.full_text.candidates import Candidate, Expects
from metaharvest.pipeline.full_text.kinds import TEXTS, Kind, charset_of, kind_of, stored_type
from metaharvest.pipeline.full_text.landing import Page, is_login_address, read_page
from metaharvest.pipeline.stage import Failure
from metaharvest.text import shown_url

MOST_HOPS = 3
"""The number of pages on the way to a file."""

MOST_REQUESTS = 12
LETTERS_OF_A_TEXT = 8_000
"""A page with this number of letters, which is said to be the text of an output, is taken for it."""


class Reason(StrEnum):
    """Why there is no file. The first ones count before the later ones, where several addresses were tried."""

    UNREACHABLE = "unreachable"
    BLOCKED = "blocked"
    LOGIN = "login"
    LICENCE = "licence"
    TOO_LARGE = "too-large"
    WRONG_TYPE = "wrong-type"
    TOO_MANY_HOPS = "too-many-hops"
    LOOP = "loop"
    MISSING = "missing"
    NO_LINK = "no-link"


_ORDER = {reason: place for place, reason in enumerate(Reason)}


@frozen
class Refusal:
    """A reason with a sentence. `retry_after`: the pause that the server asks for.

    `may_return`: the file is missing, and the server does not say that it is gone for good.
    """

    reason: Reason
    message: str
    retry_after: timedelta | None = None
    may_return: bool = False


@frozen
class Answer:
    """A body that came from `url`, after all redirects. `link` is its header Link, `media_type` its Content-Type."""

    url: str
    content: bytes
    sha256: str
    media_type: str = ""
    link: str = ""
    etag: str | None = None
    last_modified: str | None = None


@frozen
class Found:
    """The file of an output, and the way to it."""

    candidate: Candidate
    answer: Answer
    media_type: str
    licence: str | None


class Walk:
    """One search for the file of an output with this title, from the addresses of its record."""

    def __init__(self, candidates: Sequence[Candidate], title: str = "") -> None:
        self.found: Found | None = None
        self._waiting = list(candidates)
        self._title = title
        self._visited: set[str] = set()
        self._pages: set[str] = set()
        self._refusals: list[Refusal] = []
        self._text_page: Found | None = None
        self._requests = 0

    @property
    def refusal(self) -> Refusal:
        """Why there is no file: the reason that says most."""
        if not self._refusals:
            return Refusal(Reason.NO_LINK, "The record has no address that may lead to a file.")
        return min(self._refusals, key=lambda each: (_ORDER[each.reason], not each.may_return))

    def following(self) -> Candidate | None:
        """The next address to request; None: the file is found, or nothing is left."""
        while self.found is None and self._waiting and self._requests < MOST_REQUESTS:
            candidate = self._waiting.pop(0)
            if candidate.url not in self._visited:
                self._visited.add(candidate.url)
                self._requests += 1
                return candidate
        if self.found is None:
            self.found = self._text_page
        return None

    def take(self, candidate: Candidate, answer: Answer | Refusal) -> None:
        """The answer to a candidate. A redirect counts as a visit of the address that it ends at."""
        if isinstance(answer, Refusal):
            self._refusals.append(answer)
            return
        self._visited.add(answer.url)
        kind = kind_of(answer.content, answer.media_type)
        if kind in (Kind.PDF, Kind.JATS) or (kind is Kind.TEXT and candidate.expects is not Expects.PAGE):
            self.found = Found(candidate, answer, stored_type(kind, answer.media_type), candidate.licence)
        elif kind is Kind.HTML:
            self._take_page(candidate, answer)
        else:
            self._refuse(Reason.WRONG_TYPE, f"{shown_url(answer.url)} is {kind}, and no text can be taken from it.")

    def _take_page(self, candidate: Candidate, answer: Answer) -> None:
        if answer.sha256 in self._pages:
            self._refuse(Reason.LOOP, f"{shown_url(answer.url)} is a page that was read already under another address.")
            return
        self._pages.add(answer.sha256)
        charset = charset_of(answer.media_type)
        page = read_page(answer.content, answer.url, link=answer.link, charset=charset, title=self._title)
        if page.asks_login or (is_login_address(answer.url) and not page.candidates):
            self._refuse(Reason.LOGIN, f"{shown_url(candidate.url)} leads to a page that asks for a login.")
            return
        self._note_text(candidate, answer, page)
        self._follow(candidate, answer, page)

    def _note_text(self, candidate: Candidate, answer: Answer, page: Page) -> None:
        """Keep a page that is the text itself, for the case that no file is found."""
        said = candidate.expects is Expects.HTML_TEXT or any(
            each.expects is Expects.HTML_TEXT and each.url == answer.url for each in page.candidates
        )
        if said and page.letters >= LETTERS_OF_A_TEXT and self._text_page is None:
            licence = candidate.licence or page.licence
            self._text_page = Found(candidate, answer, TEXTS[Kind.HTML], licence)

    def _follow(self, candidate: Candidate, answer: Answer, page: Page) -> None:
        where = shown_url(answer.url)
        if not page.candidates:
            if candidate.expects is Expects.FILE:
                self._refuse(Reason.WRONG_TYPE, f"{where} should be a file, and is a web page without a link to one.")
            elif candidate.expects is Expects.PAGE:
                self._refuse(Reason.NO_LINK, f"The page {where} has no link to a file.")
            elif self._text_page is None:
                message = f"The page {where} has no link to a file, and is too short for the text itself."
                self._refuse(Reason.NO_LINK, message)
            return
        new = [each for each in page.candidates if each.url not in self._visited]
        if not new:
            self._refuse(Reason.LOOP, f"The page {where} leads only to pages that lead back to it.")
        elif candidate.hops >= MOST_HOPS:
            self._refuse(Reason.TOO_MANY_HOPS, f"No file was found after {MOST_HOPS} pages; the last one is {where}.")
        else:
            own = [replace(each, licence=each.licence or page.licence) for each in new]
            self._waiting[:0] = [candidate.followed_by(each) for each in own]

    def _refuse(self, reason: Reason, message: str) -> None:
        self._refusals.append(Refusal(reason, message))


# -- failures: the rule, the sentence, the time of the next try

RULES = {reason: f"full-text.{reason}" for reason in Reason}

_RETRY = {
    Reason.UNREACHABLE: timedelta(days=2),
    Reason.BLOCKED: timedelta(days=30),
    Reason.LOGIN: timedelta(days=90),
    Reason.LICENCE: timedelta(days=90),
    Reason.TOO_LARGE: timedelta(days=90),
    Reason.WRONG_TYPE: timedelta(days=60),
    Reason.TOO_MANY_HOPS: timedelta(days=90),
    Reason.LOOP: timedelta(days=60),
    Reason.MISSING: timedelta(days=30),
    Reason.NO_LINK: timedelta(days=90),
}
"""The time until a document is tried again. A new revision of its record is tried at once."""

_SHORTEST = timedelta(hours=1)

_BY_RULE = {
    "http.robots": Reason.BLOCKED,
    "http.blocked": Reason.BLOCKED,
    "http.address-not-public": Reason.BLOCKED,
    "http.too-large": Reason.TOO_LARGE,
    "http.redirects": Reason.LOOP,
    "http.empty": Reason.MISSING,
    "http.bad-url": Reason.MISSING,
    "http.scheme": Reason.MISSING,
}
_BY_STATUS = {401: Reason.LOGIN, 403: Reason.BLOCKED, 404: Reason.MISSING, 410: Reason.MISSING, 451: Reason.BLOCKED}


def failure_of(refusal: Refusal) -> Failure:
    """The failure of a document whose file was not found."""
    pause = refusal.retry_after
    wait = _RETRY[refusal.reason] if pause is None else max(pause, _SHORTEST)
    is_embargo = refusal.reason is Reason.LICENCE and pause is not None
    return Failure(RULES[refusal.reason], refusal.message, wait, is_exact=is_embargo)


def keeps_files(refusal: Refusal, *, has_text_only: bool = False) -> bool:
    """True if files that were found earlier stay: their server does not answer, or answers 404 or nothing.

    `has_text_only`: the bytes of a file to keep were lost on our side. Its text stays unless the record is closed.
    """
    is_away = refusal.reason is Reason.UNREACHABLE or refusal.may_return
    return is_away or (has_text_only and refusal.reason is not Reason.LICENCE)


def refusal_of(error: FetchError) -> Refusal:
    """The reason behind a failed request."""
    finding = error.findings[0]
    reason = _BY_RULE.get(finding.rule)
    if reason is None and error.status >= 400 and not error.transient:
        reason = _BY_STATUS.get(error.status, Reason.MISSING if error.status < 500 else None)
    reason = reason or Reason.UNREACHABLE
    pause = timedelta(seconds=error.retry_after) if error.retry_after and reason is Reason.UNREACHABLE else None
    is_dead_link = error.status == 404 or (finding.rule == "http.empty" and error.status != 410)
    return Refusal(reason, finding.message, pause, may_return=reason is Reason.MISSING and is_dead_link)


def closed(embargo_until: str | None, today: date) -> Refusal:
    """The record says that the file is not open, or not before a date."""
    if embargo_until is None:
        return Refusal(Reason.LICENCE, "The record says that its file is not open to everybody.")
    message = f"The record says that its file is under an embargo until {embargo_until}."
    try:
        days = (date.fromisoformat(embargo_until[:10]) - today).days
    except ValueError:
        return Refusal(Reason.LICENCE, message)
    return Refusal(Reason.LICENCE, message, timedelta(days=max(days, 1)))
