"""While an answer of a list is read, and its records are stored, the next one is on its way."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from io import BytesIO

import pytest

from metaharvest.errors import ListIncomplete
from metaharvest.fetch.client import Fetcher
from metaharvest.harvest.deadlines import Deadlines, StopSignal
from metaharvest.model import ListMethod
from metaharvest.sources.base import PagedListing
from metaharvest.sources.oai_pmh.prefetch import next_token
from metaharvest.sources.oai_pmh.source import OaiSource
from support.oai_harvest import HTTP, Patient, harvest, site_of
from support.oai_server import Asked, OaiServer
from support.waiting import wait_until

ALL = [f"oai:test:{number}" for number in range(1, 31)]


def ended_by(token: str) -> str:
    return next_token(BytesIO(f"<OAI-PMH><ListRecords><record/>{token}</ListRecords></OAI-PMH>".encode()))


@pytest.mark.parametrize(
    ("end", "token"),
    [
        ("<resumptionToken>a1</resumptionToken>", "a1"),
        ('<resumptionToken cursor="0" completeListSize="9">\n  a!b:c/d=e \n</resumptionToken>\n', "a!b:c/d=e"),
        ("<oai:resumptionToken>from=2026&amp;n=1&lt;2&gt;&quot;&apos;</oai:resumptionToken >", "from=2026&n=1<2>\"'"),
        ("<resumptionToken>&amp;lt;</resumptionToken>", "&lt;"),
    ],
)
def test_the_token_of_an_answer_is_read_from_its_end(end: str, token: str) -> None:
    assert ended_by(end) == token


def test_an_answer_of_1_1_ends_with_the_list() -> None:
    answer = b'<ListRecords xmlns="http://www.openarchives.org/OAI/1.1/OAI_ListRecords">'
    assert next_token(BytesIO(answer + b"<resumptionToken>a1</resumptionToken></ListRecords>\n")) == "a1"


@pytest.mark.parametrize(
    "end",
    [
        "",
        "<resumptionToken/>",
        "<resumptionToken></resumptionToken>",
        "<resumptionToken>  \n </resumptionToken>",
        "<resumptionToken>a&#49;</resumptionToken>",
        "<resumptionToken>a&one;</resumptionToken>",
        "<resumptionToken>å1</resumptionToken>",
        "<resumptionToken><![CDATA[a1]]></resumptionToken>",
        "<resumptionToken>a1</resumptionToken><resumptionToken/>",
        "<!-- <resumptionToken>a1</resumptionToken> -->",
        "<resumptionToken>a1</resumptionToken><record/>",
    ],
)
def test_no_token_is_guessed_where_there_may_be_more_to_it(end: str) -> None:
    assert ended_by(end) == ""


def test_no_token_is_guessed_of_an_answer_that_breaks_off() -> None:
    assert next_token(BytesIO(b"<OAI-PMH><ListRecords><resumptionToken>a1</resumptionToken>")) == ""
    assert next_token(BytesIO(b"")) == ""


@asynccontextmanager
async def listing_of(repository: OaiServer, *, is_harvest: bool, **options: object) -> AsyncIterator[PagedListing]:
    async with Fetcher(HTTP, name="Test", administrator=None) as fetcher:
        source = OaiSource(site_of(repository.base_url, **options), fetcher, is_harvest=is_harvest)
        listing = await source.list_records(None, Patient(), full=True)
        async with aclosing(listing.pages):
            yield listing


def test_the_next_answer_is_asked_for_before_the_page_is_taken() -> None:
    async def taken(repository: OaiServer) -> None:
        async with listing_of(repository, is_harvest=True) as listing:
            numbers = [len((await anext(listing.pages)).records) for _ in range(2)]
            await asyncio.to_thread(wait_until, lambda: len(repository.asked("ListRecords")) == 3)
            await asyncio.sleep(0.1)
            assert len(repository.asked("ListRecords")) == 3, "it goes no further ahead"
            numbers += [len(page.records) async for page in listing.pages]
            assert numbers == [10, 10, 10, 10, 0]

    with OaiServer(40) as repository:
        asyncio.run(taken(repository))
        assert len(repository.asked("ListRecords")) == 4
        assert repository.http.most_at_once == 1


@pytest.mark.parametrize(
    ("is_harvest", "method"), [(False, ListMethod.LIST_RECORDS), (True, ListMethod.LIST_IDENTIFIERS)]
)
def test_nothing_is_asked_for_ahead_by_who_only_looks_or_asks_for_each_record(
    is_harvest: bool, method: ListMethod
) -> None:
    async def looked(repository: OaiServer) -> None:
        async with listing_of(repository, is_harvest=is_harvest, method=method) as listing:
            assert [len((await anext(listing.pages)).records) for _ in range(2)] == [10, 10]
            await asyncio.sleep(0.1)

    with OaiServer(40) as repository:
        asyncio.run(looked(repository))
        assert len(repository.asked("ListRecords")) + len(repository.asked("ListIdentifiers")) == 2


def test_nothing_is_under_way_of_a_list_that_nobody_takes() -> None:
    """As where the target refuses the login, after the list was begun."""

    async def begun(repository: OaiServer) -> list[str]:
        async with Fetcher(HTTP, name="Test", administrator=None) as fetcher:
            listing = await OaiSource(site_of(repository.base_url), fetcher).list_records(None, Patient(), full=True)
            await listing.pages.aclose()
            await asyncio.sleep(0.1)
            return [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    with OaiServer(30) as repository:
        assert asyncio.run(begun(repository)) == []
        assert len(repository.asked("ListRecords")) == 1


def test_nothing_is_asked_ahead_once_the_run_is_to_end() -> None:
    stop = StopSignal()

    def stopping(body: bytes, asked: Asked) -> bytes:
        if asked.arguments.get("resumptionToken"):
            stop.set()
        return body

    async def stopped(repository: OaiServer) -> None:
        async with Fetcher(HTTP, name="Test", administrator=None) as fetcher:
            source = OaiSource(site_of(repository.base_url), fetcher)
            listing = await source.list_records(None, Deadlines(stop), full=True)
            async with aclosing(listing.pages) as pages:
                assert [len((await anext(pages)).records) for _ in range(2)] == [10, 10]
                await asyncio.sleep(0.1)
                with pytest.raises(ListIncomplete):
                    await anext(pages)

    with OaiServer(40) as repository:
        repository.tamper = stopping
        asyncio.run(stopped(repository))
        assert len(repository.asked("ListRecords")) == 2


def test_a_page_that_cannot_be_fetched_does_not_wait_for_what_it_leads_to() -> None:
    """The second page is one for people, as long as a certain record is in it; the third one is late."""
    third = "oai_dc!!!!20!0"
    is_done = threading.Event()
    was_done_before: list[bool] = []

    def spoilt(body: bytes, asked: Asked) -> bytes:
        if asked.arguments.get("resumptionToken") == third:
            was_done_before.append(is_done.wait(15))
        is_spoilt = asked.verb == "ListRecords" and b"oai:test:15<" in body
        return b"<html><title>Out of memory</title></html>" if is_spoilt else body

    with OaiServer(30) as repository:
        repository.tamper = spoilt
        found = harvest(repository.base_url)
        is_done.set()
        assert (found.broken, len(found.good)) == (None, 30)
        assert len([each for each in repository.answered if each.arguments.get("resumptionToken") == third]) <= 1
    assert all(was_done_before)


def test_what_an_answer_that_is_not_taken_leads_to_is_given_up() -> None:
    def with_dtd(body: bytes, asked: Asked) -> bytes:
        return b"<!DOCTYPE OAI-PMH>" + body if asked.arguments.get("resumptionToken") else body

    with OaiServer(30) as repository:
        repository.tamper = lambda body, asked: with_dtd(re.sub(rb"^<\?xml.*?\?>", b"", body), asked)
        found = harvest(repository.base_url)
        assert found.good == ALL[:10]
        assert "begins with a DTD" in found.words("oai.broken-off")
        assert not [task for task in found.under_way if "ask_list" in task]


def test_what_was_asked_ahead_ends_with_the_harvest() -> None:
    """Nothing is left of it, though its answer takes long."""

    async def left_off(repository: OaiServer) -> list[str]:
        async with listing_of(repository, is_harvest=True) as listing:
            for _ in range(2):
                await anext(listing.pages)
            await asyncio.to_thread(wait_until, lambda: len(repository.asked("ListRecords")) == 3)
        return [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    with OaiServer(30) as repository:
        assert asyncio.run(left_off(repository)) == []


def test_an_answer_that_fails_ahead_fails_where_it_is_wanted() -> None:
    with OaiServer(30) as repository:
        repository.poison.add("oai:test:15")
        found = harvest(repository.base_url)
        assert found.broken is None
        assert sorted(found.good) == sorted(each for each in ALL if each != "oai:test:15")
        assert "oai.page-failed" in found.rules
