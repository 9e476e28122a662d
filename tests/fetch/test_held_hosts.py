"""The hosts that a process holds: when it takes them and gives them back, and who may send requests meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from math import inf
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from metaharvest.database.host_leases import HostLeases
from metaharvest.errors import DatabaseError, FetchError, NotAsked
from metaharvest.fetch.client import Fetcher
from metaharvest.fetch.health import HostHealth
from metaharvest.fetch.held_hosts import Host, Step, Times, next_step
from metaharvest.fetch.url import parse_url
from metaharvest.model import ServerTrouble
from support.databases import open_sqlite_file
from support.fetching_process import HTTP
from support.http_server import Asking, HttpServer

TIMES = Times.of(30)
HOUR = HTTP.model_copy(update={"retry_wait_limit": 3600.0})


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = open_sqlite_file(tmp_path / "x.db")
    yield made
    made.dispose()


@pytest.mark.parametrize(
    ("host", "step", "pause"),
    [
        (Host("x", waiting=1), Step.TAKE, 0),
        (Host("x", waiting=1, next_attempt=100.3), Step.NONE, 0.5),
        (Host("x", waiting=1, under_way=1), Step.NONE, 0.5),
        (Host("x", under_way=1), Step.NONE, inf),
        (Host("x"), Step.FORGET, 0),
        (Host("x", is_held=True, used=99), Step.NONE, 1),
        (Host("x", is_held=True, used=98), Step.GIVE_BACK, 0),
        (Host("x", is_held=True, used=90, waiting=1), Step.NONE, inf),
        (Host("x", is_held=True, used=90, under_way=1), Step.NONE, inf),
        (Host("x", is_held=True, used=100, waiting=3, is_given_way=True), Step.GIVE_BACK, 0),
        (Host("x", is_held=True, used=100, under_way=1, is_given_way=True), Step.NONE, inf),
    ],
)
def test_the_next_step_for_a_host(host: Host, step: Step, pause: float) -> None:
    found, seconds = next_step(host, 100, TIMES)
    assert found is step
    assert seconds == pytest.approx(pause)


def test_a_request_begins_only_while_the_lease_is_sure() -> None:
    assert Host("x", is_held=True, sure_until=100.1).is_open(100)
    assert not Host("x", is_held=True, sure_until=100).is_open(100)
    assert not Host("x", is_held=True, sure_until=101, is_given_way=True).is_open(100)
    assert not Host("x", sure_until=101).is_open(100)


def test_trouble_of_servers_goes_from_one_process_to_the_next() -> None:
    changed: list[str] = []
    health = HostHealth(HOUR)
    health.on_change = changed.append
    https, other, away = (parse_url(f"{each}.example.org/") for each in ("https://x", "http://xx", "http://y"))
    port = parse_url("http://x.example.org.:8080/")
    health.rest(https, 100)
    health.rest(other, 100)
    for _ in range(5):
        health.not_reached(port, time.monotonic())
    assert set(changed) == {"x.example.org", "xx.example.org"}
    assert not health.trouble_of("y.example.org")
    troubles = health.trouble_of("x.example.org")
    assert [(each.server, round(each.rest), each.failures) for each in troubles] == [
        ("x.example.org", 100, 0),
        ("x.example.org:8080", 0, 5),
    ]

    second = HostHealth(HOUR)
    second.not_reached(https, time.monotonic())
    second.replace_trouble("x.example.org", troubles)
    second.require_reachable(https)
    second.require_awake(port, 0)
    second.require_awake(away, 0)
    with pytest.raises(NotAsked, match="asked to be left alone"):
        second.require_awake(https, 0)
    with pytest.raises(NotAsked, match="could not be reached 5 times in a row"):
        second.require_reachable(port)
    second.reached(port)
    assert [each.server for each in second.trouble_of("x.example.org")] == ["x.example.org"]


def test_a_pause_that_is_known_here_holds_as_well() -> None:
    health = HostHealth(HTTP)
    health.rest(parse_url("http://x/"), 100)
    health.replace_trouble("x", [ServerTrouble("x", rest=10)])
    [trouble] = health.trouble_of("x")
    assert trouble.rest == pytest.approx(100, abs=5)


def with_two(engine: Engine, story: Callable[[Fetcher, Fetcher], Awaitable[None]], seconds: float = 3.0) -> None:
    """Two clients that share their hosts, as in two processes."""

    async def run() -> None:
        async with (
            Fetcher(HTTP, name="x", administrator=None, leases=HostLeases(engine, seconds)) as first,
            Fetcher(HTTP, name="x", administrator=None, leases=HostLeases(engine, seconds)) as second,
        ):
            await asyncio.wait_for(story(first, second), 30)

    asyncio.run(run())


async def rule_of(fetch: Awaitable[object]) -> str:
    try:
        await fetch
    except FetchError as error:
        return error.findings[0].rule
    return ""


def test_the_answer_to_the_last_request_of_a_turn_is_known_to_the_next_process(
    engine: Engine, server: HttpServer
) -> None:
    def busy(asking: Asking) -> None:
        asking.pause(1.2)
        asking.answer(b"", 503, {"Retry-After": "100"})

    async def story(first: Fetcher, second: Fetcher) -> None:
        last = asyncio.create_task(rule_of(first.fetch(server.route("/busy.xml", busy))))
        await until(lambda: server.requests)
        assert await rule_of(second.fetch(server.serve("/a.xml", b"<eml/>"))) == "http.retry-after"
        assert await last == "http.status"
        assert not server.asked("/a.xml")

    with_two(engine, story)


def test_a_process_that_always_has_requests_gives_way(engine: Engine, server: HttpServer) -> None:
    def answer(asking: Asking) -> None:
        asking.pause(0.05)
        asking.answer(b"<eml/>")

    url = server.route("/a.xml", answer)

    async def story(first: Fetcher, second: Fetcher) -> None:
        async def fetch_on() -> None:
            while not others.done():
                await first.fetch(url)

        await first.fetch(url)
        others = asyncio.gather(*(second.fetch(url) for _ in range(4)))
        await asyncio.gather(others, *(fetch_on() for _ in range(4)))
        await first.fetch(url)

    with_two(engine, story)
    assert server.most_at_once == HTTP.connections_per_host


def test_waiting_for_a_host_ends_in_time_and_at_the_end_of_the_run(engine: Engine, server: HttpServer) -> None:
    server.route("/slow.xml", lambda asking: asking.pause(60))
    url = server.serve("/a.xml", b"<eml/>")

    async def story(first: Fetcher, second: Fetcher) -> None:
        slow = asyncio.create_task(first.fetch(server.url("/slow.xml")))
        await until(lambda: server.requests)
        assert await rule_of(second.fetch(url, patience=0.2)) == "http.busy"
        waiting = asyncio.create_task(rule_of(second.fetch(url)))
        await asyncio.sleep(0.1)
        second.end_waiting()
        assert await waiting == "http.busy"
        slow.cancel()
        await asyncio.wait([slow])

    with_two(engine, story)
    assert [request.path for request in server.requests] == ["/slow.xml"]


@pytest.mark.slow
def test_a_request_is_aborted_when_the_lease_is_lost(
    engine: Engine, server: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.route("/slow.xml", lambda asking: asking.pause(60))

    async def story(first: Fetcher, second: Fetcher) -> None:
        slow = asyncio.create_task(first.fetch(server.url("/slow.xml")))
        await until(lambda: server.requests)
        with engine.begin() as connection:
            connection.execute(text("UPDATE host_lease SET holder = 'another process'"))
        with pytest.raises(NotAsked, match="could not confirm that no other process") as error:
            await slow
        assert error.value.retry_after == 1
        assert (await second.fetch(server.serve("/a.xml", b"<eml/>")))[1] == b"<eml/>"

    with_two(engine, story)
    assert "The lease of the host 127.0.0.1 was lost" in caplog.text


@pytest.mark.slow
def test_requests_end_when_the_database_is_away(engine: Engine, server: HttpServer) -> None:
    server.route("/slow.xml", lambda asking: asking.pause(60))
    url = server.serve("/a.xml", b"<eml/>")

    async def story(first: Fetcher, second: Fetcher) -> None:
        slow = asyncio.create_task(first.fetch(server.url("/slow.xml")))
        await until(lambda: server.requests)
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE host_lease RENAME TO elsewhere"))
        assert await rule_of(slow) == "http.busy"
        with pytest.raises(DatabaseError, match="no such table"):
            await first.fetch(url)
        with pytest.raises(DatabaseError, match="no such table"):
            await second.fetch(url)
        with engine.begin() as connection:
            connection.execute(text("ALTER TABLE elsewhere RENAME TO host_lease"))
        await asyncio.sleep(1)
        assert (await second.fetch(url))[1] == b"<eml/>"

    with_two(engine, story)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)
