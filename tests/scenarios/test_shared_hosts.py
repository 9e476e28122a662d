"""Several processes harvest at a time: each host sees what it would see of one process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import Engine, text

from support.databases import KINDS, Servers, open_sqlite_file
from support.fetching_process import HTTP, FetchingProcess
from support.http_server import Asking, HttpServer
from support.ports import free_port
from support.waiting import wait_until

LEASE = 6.0


@pytest.fixture(scope="module")
def processes() -> Iterator[list[FetchingProcess]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FetchingProcess()) for _ in range(3)]


@pytest.fixture(params=KINDS)
def engine(
    request: pytest.FixtureRequest, servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    if request.param == "sqlite":
        made = open_sqlite_file(tmp_path_factory.mktemp("database") / "x.db")
        yield made
        made.dispose()
        return
    made = servers.require(request.param).engine
    with made.begin() as connection:
        connection.execute(text("DELETE FROM host_lease"))
    yield made


def test_a_host_sees_no_more_requests_at_a_time_than_its_setting(
    processes: list[FetchingProcess], engine: Engine, server: HttpServer
) -> None:
    def answer(asking: Asking) -> None:
        asking.pause(0.02)
        asking.answer(b"<eml/>")

    urls = [server.route(f"/{number}.xml", answer) for number in range(20)]
    for process in processes:
        process.begin(engine.url, urls, LEASE)
    assert [process.answers() for process in processes] == [["6"] * 20] * 3
    assert server.most_at_once == HTTP.connections_per_host
    assert len(server.requests) == 60
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM host_lease")) == 0


def test_a_pause_that_a_server_asks_of_one_process_holds_for_the_others(
    processes: list[FetchingProcess], engine: Engine, server: HttpServer
) -> None:
    url = server.serve("/busy.xml", b"", status=503, headers={"Retry-After": "100"})
    processes[0].begin(engine.url, [url], LEASE)
    assert processes[0].answers() == ["http.status"]
    processes[1].begin(engine.url, [url, server.serve("/a.xml", b"<eml/>")], LEASE)
    assert processes[1].answers() == ["http.retry-after"] * 2
    assert [request.path for request in server.requests] == ["/busy.xml"]


def test_a_server_that_one_process_could_not_reach_is_given_up_by_the_others(
    processes: list[FetchingProcess], engine: Engine, server: HttpServer
) -> None:
    away = f"http://127.0.0.1:{free_port()}/a.xml"
    for process in (*processes, *processes[:2]):
        process.begin(engine.url, [away], LEASE)
        assert process.answers() == ["http.connection"]
        time.sleep(0.1)  # the pause after a failure
    processes[2].begin(engine.url, [away, server.serve("/a.xml", b"<eml/>")], LEASE)
    assert processes[2].answers() == ["http.server-stopped", "6"]


def is_wanted(engine: Engine) -> bool:
    with engine.connect() as connection:
        return bool(connection.scalar(text("SELECT count(*) FROM host_lease WHERE wanted_at IS NOT NULL")))


@pytest.mark.parametrize("engine", KINDS[:1], indirect=True)  # tests/database/test_host_leases.py has the others
def test_the_host_of_a_process_that_was_killed_is_free_after_its_lease(
    processes: list[FetchingProcess], engine: Engine, server: HttpServer
) -> None:
    server.route("/slow.xml", lambda asking: asking.pause(60))
    with FetchingProcess() as killed:
        killed.begin(engine.url, [server.url("/slow.xml")], seconds=2)
        wait_until(lambda: server.requests)
        began = time.monotonic()
        processes[0].begin(engine.url, [server.serve("/a.xml", b"<eml/>")], LEASE)
        wait_until(lambda: is_wanted(engine))
        killed.kill()
    assert processes[0].answers() == ["6"]
    assert server.requests[-1].at - began > 1
