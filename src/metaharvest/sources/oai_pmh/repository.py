"""Sends requests to a source repository, one after the other, over fetch/; the settings limit the attempts."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from io import BytesIO
from math import inf
from typing import BinaryIO, TypeVar, cast
from urllib.parse import quote

from lxml import etree

from metaharvest.errors import FetchError, NotAsked
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.exchange import Query, started
from metaharvest.fetch.limits import WaitedTooLong
from metaharvest.fetch.url import repository_key
from metaharvest.model import Finding, Level, ListMethod, OaiOptions, Site
from metaharvest.sources.attempts import in_attempts
from metaharvest.sources.base import TimeBudget
from metaharvest.sources.charset import apply_charset
from metaharvest.sources.oai_pmh.bounds import SHORT_ANSWER
from metaharvest.sources.oai_pmh.responses import NotOaiResponse, Response, cut_off, short_response
from metaharvest.text import shown_url
from metaharvest.validation.parse_lock import parsing

Result = TypeVar("Result")

_LONGEST_URL = 4000
"""Characters of a URL; a longer request is sent as a form, as servers refuse long URLs."""

Read = Callable[[etree._Element, Response], Result]
"""Takes the wanted part out of the tree of a short answer; it is called in a thread."""


class Repository:
    """The source repository at a site's base URL. `post`: every request is sent as a form."""

    def __init__(self, site: Site, fetcher: Fetcher, *, post: bool = False) -> None:
        self._site = site
        self._fetcher = fetcher
        self._post = post
        self.shown = shown_url(site.list_url)
        self._turn = repository_key(site.list_url)  # after the first answer: of the address after redirects

    async def check_robots(self) -> tuple[Finding, ...]:
        """A warning if the server's robots.txt forbids the requests. Raises FetchError if that is binding."""
        options = self._site.options
        oai = options.oai or OaiOptions("")
        is_listed = oai.method is ListMethod.LIST_RECORDS
        verbs = ("ListRecords",) if is_listed else ("ListIdentifiers", "GetRecord")
        queries = [self._query("Identify", {}), *(self._query(verb, {"metadataPrefix": oai.prefix}) for verb in verbs)]
        for query in queries:
            address = started(self._site.list_url, query)
            finding = await self._fetcher.robots.forbids(address.url, options.reach)
            if finding is not None and finding.is_error:
                raise FetchError(finding)
            if finding is not None:
                return (finding,)
        return ()

    async def ask_list(self, verb: str, arguments: Mapping[str, str], file: BinaryIO, patience: TimeBudget) -> str:
        """Put the answer to a request for a list into `file`; other requests for lists wait. Raises FetchError.

        Returns the date of the answer as the web server wrote it, by its own clock; empty if it did not.
        """

        async def ask() -> str:
            return await self._ask(self._query(verb, arguments), file, patience.left())

        return await self._in_turn(ask, patience)

    async def short(
        self, verb: str, arguments: Mapping[str, str], patience: TimeBudget, read: Read[Result]
    ) -> tuple[Result, Response]:
        """The result of `read` for a short answer, and the answer.

        Raises FetchError, also if the answer breaks off; and NotOaiResponse.
        """
        with tempfile.SpooledTemporaryFile(max_size=1_048_576) as spool:
            file = cast(BinaryIO, spool)

            async def ask() -> tuple[Result, Response]:
                date = await self._ask(self._query(verb, arguments), file, patience.left())
                found, answer = await asyncio.to_thread(_taken, file.read(SHORT_ANSWER.size + 1), verb, read)
                answer.date = date
                return found, answer

            return await self._in_turn(ask, patience)

    async def _in_turn(self, ask: Callable[[], Awaitable[Result]], patience: TimeBudget) -> Result:
        """The result of `ask`, after repeated attempts if needed; other requests for lists wait."""
        turns, turn = self._fetcher.lists, self._turn
        try:
            await turns.acquire(turn, patience.left())
        except WaitedTooLong as error:
            raise NotAsked(_no_turn(self.shown), "", seconds=0.0) from error
        try:
            return await in_attempts(ask, self._fetcher.http, patience)
        finally:
            turns.release(turn)

    async def record(self, arguments: Mapping[str, str], seconds: float = inf) -> tuple[bytes, float]:
        """The answer to GetRecord, and the seconds that it took. Raises FetchError."""
        try:
            response, content = await self._fetcher.fetch(
                self._site.list_url,
                reach=self._site.options.reach,
                patience=seconds,
                site_id=self._site.site_id,
                query=self._query("GetRecord", arguments),
            )
        except FetchError as error:
            if await is_answer(error, "GetRecord"):
                return error.page, error.seconds or 0.0
            raise
        with BytesIO(content) as file:
            await apply_charset(file, response.media_type)
            return file.getvalue(), response.seconds

    async def _ask(self, query: Query, file: BinaryIO, seconds: float) -> str:
        """Put the answer into `file`, in place of its content. Returns its date, as ask_list does."""
        file.seek(0)
        file.truncate()
        try:
            response = await self._fetcher.fetch_to(
                self._site.list_url,
                file,
                reach=self._site.options.reach,
                seconds=seconds,
                query=query,
            )
        except FetchError as error:
            if not await is_answer(error, query.arguments[len("verb=") :].partition("&")[0]):
                raise
            file.seek(0)
            file.truncate()
            file.write(error.page)
            file.seek(0)
            return ""
        await apply_charset(file, response.media_type)
        self._turn = repository_key(_base_of(response.url))
        return response.date

    def _query(self, verb: str, arguments: Mapping[str, str]) -> Query:
        text = "&".join(
            f"{name}={quote(value, safe='')}" for name, value in (("verb", verb), *arguments.items()) if value
        )
        return Query(text, self._post or len(text) + len(self._site.list_url) > _LONGEST_URL)


def _taken(content: bytes, verb: str, read: Read[Result]) -> tuple[Result, Response]:
    """The result of `read` for a short answer. Raises NotOaiResponse, and FetchError if it breaks off.

    Seen at https://github.com/libris/librisxl/issues/138.
    """
    with parsing():
        tree, answer = short_response(content, verb)
        if not (answer.is_whole or answer.errors):
            raise FetchError(cut_off(answer), transient=True)
        return read(tree, answer), answer


async def is_answer(error: FetchError, verb: str) -> bool:
    """True if an error status came with an error of the protocol.

    Seen at https://github.com/miku/metha/issues/39.
    """
    if error.transient or b"OAI" not in error.page:
        return False
    return await asyncio.to_thread(_has_errors, error.page, verb)


def _has_errors(page: bytes, verb: str) -> bool:
    try:
        with parsing():
            return bool(short_response(page, verb)[1].errors)
    except NotOaiResponse:
        return False


def _base_of(url: str) -> str:
    """The base URL in the URL of an answer."""
    base, verb, _ = url.rpartition("verb=")
    return (base if verb else url).rstrip("?&")


def _no_turn(shown: str) -> Finding:
    message = f"{shown} was not asked: another site of the same repository was being read all the time."
    return Finding("http.busy", message, "The harvester tries again by itself.", Level.WARNING)
