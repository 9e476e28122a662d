"""Asks for one answer of a list and reads it, a few hundred records at a time.

No answer is read in the event loop, however short it is: a thread costs no more. A record of a usual page takes 40 to
48 µs of the processor in either. In a harvest, the next answer is on its way meanwhile: its token is read from the
end of an answer that has not been read yet. That token is a guess. It counts if the answer turns out to have it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from os import SEEK_END
from typing import BinaryIO, Self, TypeVar
from xml.sax.saxutils import unescape

from metaharvest.sources.base import ListedRecord, Patience
from metaharvest.sources.oai_pmh.answer_reader import AnswerReader
from metaharvest.sources.oai_pmh.answers import Answer
from metaharvest.sources.oai_pmh.records import Records
from metaharvest.sources.oai_pmh.repository import Repository
from metaharvest.sources.oai_pmh.spooled import spool

Result = TypeVar("Result")

_TURNS = 3
"""Of the event loop, in which a question gets on its way: reading an answer takes the interpreter from it."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that is asked ahead, and when its answer was sent; see Repository.ask_list."""

    arguments: Mapping[str, str]
    date: asyncio.Task[str]


class Reading:
    """Reads answers, one after the other, each in one thread: a parser of lxml belongs to its thread.

    Where it `asks_ahead`, what an answer to ListRecords leads to is asked for as soon as that answer has come; but not
    after one that failed, until another one was read to its end.
    """

    def __init__(self, repository: Repository, records: Records, patience: Patience) -> None:
        self._repository = repository
        self._records = records
        self._patience = patience
        self.asks_ahead = False
        self._has_failed = False
        self._asked: _Asked | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="metaharvest-oai")
        self._reader = AnswerReader()

    async def __aenter__(self) -> Self:
        with ExitStack() as stack:
            self._spool, self._other = (stack.enter_context(spool()) for _ in range(2))
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._give_up_asked()
        finally:
            self._reader.close()
            self._thread.shutdown(wait=False)
            self._open.close()

    async def answer(self, answer: Answer, arguments: Mapping[str, str]) -> AsyncGenerator[list[ListedRecord], None]:
        """The records of the answer, which was fetched whole before; `answer` is filled in on the way.

        Raises FetchError, and NoAnswer.
        """
        answer.date = await self._fetched(answer.verb, arguments)
        parts = self._reader.parts(self._spool, answer, self._records)
        while part := await self._in_thread(partial(next, parts, None)):
            yield part
        self._has_failed = False

    async def failed(self) -> None:
        """The last answer is of no use: what it leads to is not wanted now."""
        self._has_failed = True
        await self._give_up_asked()

    async def _fetched(self, verb: str, arguments: Mapping[str, str]) -> str:
        """Put the answer into the spool; when it was sent. Raises FetchError."""
        asked = self._asked
        if asked is not None and asked.arguments == arguments:
            self._asked = None
            self._spool, self._other = self._other, self._spool
            date = await asked.date
        else:
            await self._give_up_asked()
            date = await self._repository.ask_list(verb, arguments, self._spool, self._patience)
        if self.asks_ahead and verb == "ListRecords" and not (self._has_failed or self._patience.heed()):
            await self._ask_ahead(verb, arguments)
        return date

    async def _ask_ahead(self, verb: str, arguments: Mapping[str, str]) -> None:
        """Ask for what the answer in the spool leads to, unless that is the same again."""
        token = await self._in_thread(partial(next_token, self._spool))
        if not token or arguments.get("resumptionToken") == token:
            return
        following = {"resumptionToken": token}
        asking = self._repository.ask_list(verb, following, self._other, self._patience)
        self._asked = _Asked(following, asyncio.create_task(asking))
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def _give_up_asked(self) -> None:
        """Nobody wants what was asked ahead any more."""
        if self._asked is not None:
            asked, self._asked = self._asked, None
            asked.date.cancel()
            await asyncio.gather(asked.date, return_exceptions=True)

    async def _in_thread(self, call: Callable[[], Result]) -> Result:
        """A caller that is cancelled ends the reader's process, and waits for the thread, which uses the spool."""
        running = asyncio.get_running_loop().run_in_executor(self._thread, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._reader.close()
            await asyncio.wait([running])
            raise


_TAIL = 4096
_END = re.compile(
    rb"<(?P<name>(?:[A-Za-z][\w.-]*:)?resumptionToken)(?:\s[^<>]*)?>"
    rb"(?P<token>(?:[ \t\r\n!-%'-;=?-~]|&(?:amp|lt|gt|quot|apos);)+)</(?P=name)\s*>"
    rb"\s*(?:</(?:[A-Za-z][\w.-]*:)?(?:ListRecords|OAI-PMH)\s*>\s*){1,2}\Z"
)
_QUOTES = {"&quot;": '"', "&apos;": "'"}


def next_token(file: BinaryIO) -> str:
    """The token with which the answer in `file` seems to end; empty if it does not. The file is at its start then."""
    size = file.seek(0, SEEK_END)
    file.seek(max(0, size - _TAIL))
    found = _END.search(file.read())
    file.seek(0)
    return unescape(found["token"].decode("ascii"), _QUOTES).strip() if found else ""
