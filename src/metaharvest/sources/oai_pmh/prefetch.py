"""Fetches the answers of a list and reads them, a few hundred records at a time; prefetches the next answer.

Answers are read in a thread, however short they are. A record of a usual page takes 40 to 48 µs of the processor in a
thread and in the event loop alike. The token of a prefetch comes from the end of an answer that has not been read
yet. It is a guess: the prefetched answer is used if the answer that was read has this token.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from os import SEEK_END
from typing import BinaryIO, Self, TypeVar

from metaharvest.model.values import frozen
from metaharvest.sources.base import ListedRecord, TimeBudget
from metaharvest.sources.oai_pmh.mapped_file import spool
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.repository import Repository
from metaharvest.sources.oai_pmh.response_reader import MOST_BYTES, MOST_RECORDS, ResponseReader
from metaharvest.sources.oai_pmh.responses import Response
from metaharvest.text import unescaped

Result = TypeVar("Result")

_TURNS = 3
"""Turns of the event loop that a request needs to leave: afterwards, reading an answer keeps the interpreter busy."""


@frozen
class _Prefetch:
    """A request for the next answer: its task returns the date of the answer, as Repository.ask_list does."""

    arguments: Mapping[str, str]
    task: asyncio.Task[str]


class Prefetcher:
    """Fetches and reads answers one after the other, in one thread: a parser of lxml belongs to its thread.

    `is_on`: the page after an answer to ListRecords is requested as soon as that answer has come. After a page that
    failed, prefetching stops until an answer was read to its end.
    """

    def __init__(self, repository: Repository, records: Records, patience: TimeBudget) -> None:
        self._repository = repository
        self._records = records
        self._patience = patience
        self.is_on = False
        self._has_failed = False
        self._next: _Prefetch | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metaharvest-oai")
        self._reader = ResponseReader()

    async def __aenter__(self) -> Self:
        with ExitStack() as stack:
            self._spool, self._other = (stack.enter_context(spool()) for _ in range(2))
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._cancel()
        finally:
            self._reader.close()
            self._thread.shutdown(wait=False)
            self._open.close()

    async def answer(self, answer: Response, arguments: Mapping[str, str]) -> AsyncGenerator[list[ListedRecord], None]:
        """The records of the answer, fetched completely first; the call fills in `answer`.

        Raises FetchError, and NotOaiResponse.
        """
        answer.date = await self._fetch(answer.verb, arguments)
        parts = self._reader.parts(self._spool, answer, self._records)
        is_over = False
        while not is_over:
            some, is_over = await self._in_thread(partial(_next_parts, parts))
            for part in some:
                yield part
        self._has_failed = False

    async def note_failure(self) -> None:
        """Stop prefetching after a failed page."""
        self._has_failed = True
        await self._cancel()

    async def _fetch(self, verb: str, arguments: Mapping[str, str]) -> str:
        """Put the answer into the spool. Returns its date. Raises FetchError."""
        prefetch = self._next
        if prefetch is not None and prefetch.arguments == arguments:
            self._next = None
            self._spool, self._other = self._other, self._spool
            date = await prefetch.task
        else:
            await self._cancel()
            date = await self._repository.ask_list(verb, arguments, self._spool, self._patience)
        if self.is_on and verb == "ListRecords" and not (self._has_failed or self._patience.stop_reason()):
            await self._prefetch(verb, arguments)
        return date

    async def _prefetch(self, verb: str, arguments: Mapping[str, str]) -> None:
        """Request the page after the answer in the spool, unless its token is the one that was just sent."""
        token = await self._in_thread(partial(next_token, self._spool))
        if not token or arguments.get("resumptionToken") == token:
            return
        before = arguments if "resumptionToken" in arguments else {}
        following = {**before, "resumptionToken": token}
        asking = self._repository.ask_list(verb, following, self._other, self._patience)
        self._next = _Prefetch(following, asyncio.create_task(asking))
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def _cancel(self) -> None:
        """Cancel the prefetch, if there is one."""
        if self._next is not None:
            prefetch, self._next = self._next, None
            prefetch.task.cancel()
            await asyncio.gather(prefetch.task, return_exceptions=True)

    async def _in_thread(self, call: Callable[[], Result]) -> Result:
        """Run `call` in the thread. A cancelled caller ends the reader's process, and waits for the thread.

        The thread uses the spool.
        """
        running = asyncio.get_running_loop().run_in_executor(self._thread, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._reader.close()
            await asyncio.wait([running])
            raise


def _next_parts(parts: Iterator[list[ListedRecord]]) -> tuple[list[list[ListedRecord]], bool]:
    """The next part of an answer; True if it is the last one.

    The end of the answer is read in the same turn of the thread if the part is not full: a turn for each page of 100
    records costs 3 % of a harvest's processor time.
    """
    part = next(parts, None)
    if part is None:
        return [], True
    if len(part) == MOST_RECORDS or sum(len(record.content or b"") for record in part) >= MOST_BYTES:
        return [part], False
    following = next(parts, None)
    return ([part], True) if following is None else ([part, following], False)


_TAIL = 4096
_END = re.compile(
    rb"<(?P<name>(?:[A-Za-z][\w.-]*:)?resumptionToken)(?:\s[^<>]*)?>"
    rb"(?P<token>(?:[ \t\r\n!-%'-;=?-~]|&(?:amp|lt|gt|quot|apos);)+)</(?P=name)\s*>"
    rb"\s*(?:</(?:[A-Za-z][\w.-]*:)?(?:ListRecords|OAI-PMH)\s*>\s*){1,2}\Z"
)


def next_token(file: BinaryIO) -> str:
    """The token at the end of the answer in `file`; empty if there is none. Leaves the file at its start."""
    size = file.seek(0, SEEK_END)
    file.seek(max(0, size - _TAIL))
    found = _END.search(file.read())
    file.seek(0)
    return unescaped(found["token"].decode("ascii")).strip() if found else ""
