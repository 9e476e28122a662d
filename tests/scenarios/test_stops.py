"""People stop a site, or a run, that waits for a slow server: it ends within seconds, and is not harvested at once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from support.databases import on_one_database
from support.harvester import Harvester, harvest_list
from support.http_server import Asking, HttpServer
from support.waiting import wait_until

pytestmark = [on_one_database, pytest.mark.slow]

Slow = Callable[[HttpServer, threading.Event], str]


def long_list(server: HttpServer, release: threading.Event, path: str = "/list.xml") -> str:
    """A list that comes byte by byte."""

    def drip(asking: Asking) -> None:
        asking.send_response(200)
        asking.send_header("Content-Length", "1000")
        asking.end_headers()
        while not release.wait(0.2):
            asking.wfile.write(b" ")
            asking.wfile.flush()

    return server.route(path, drip)


def resting_host(server: HttpServer, release: threading.Event) -> str:
    """A list whose server asks for a pause."""
    return server.serve("/list.xml", b"later", status=503, headers={"Retry-After": "50"})


def hanging_documents(server: HttpServer, release: threading.Event) -> str:
    """A list whose documents do not come."""

    def hang(asking: Asking) -> None:
        release.wait(40)

    docids = [f"alder.{number}.1" for number in range(1, 30)]
    for docid in docids:
        server.route(f"/{docid}.xml", hang)
    return server.serve("/list.xml", harvest_list((docid, server.url(f"/{docid}.xml")) for docid in docids))


def slow_robots(server: HttpServer, release: threading.Event) -> str:
    """A list whose server sends its robots.txt byte by byte."""
    long_list(server, release, "/robots.txt")
    return server.serve("/list.xml", harvest_list([("alder.1.1", server.url("/alder.1.1.xml"))]))


SLOW = [long_list, resting_host, hanging_documents, slow_robots]


@contextmanager
def under_way(harvester: Harvester, server: HttpServer, make: Slow) -> Iterator[Callable[[], float]]:
    """A run of a requested, slow site; the function waits for its end, and returns the seconds."""
    release = threading.Event()
    harvester.add_site("alder", make(server, release), datenextharvest="2999-12-24")
    assert harvester("sites", "harvest", "alder").code == 0
    process = harvester.start("run", "--requested", "--date", "2026-11-20")
    began = time.monotonic()

    def seconds_to_end() -> float:
        nonlocal began
        began = time.monotonic()
        process.communicate(timeout=60)
        return time.monotonic() - began

    try:
        wait_until(lambda: len(server.requests) > (2 if make is hanging_documents else 0))
        wait_until(lambda: harvester.rows("SELECT began_at FROM site_progress WHERE began_at IS NOT NULL"))
        yield seconds_to_end
    finally:
        release.set()
        process.kill()
        process.communicate()


@pytest.mark.parametrize("make", SLOW)
def test_a_stopped_site_ends_within_seconds_and_its_request_with_it(
    harvester: Harvester, server: HttpServer, make: Slow
) -> None:
    with under_way(harvester, server, make) as seconds_to_end:
        assert harvester("runs", "stop", "--site", "alder").code == 0
        assert seconds_to_end() < 30
    [(harvest, _), (stop, sentence)] = harvester.rows("SELECT state, sentence FROM harvest_request ORDER BY request_id")
    assert harvest in ("cancelled", "done")
    assert (stop, sentence) == ("done", "Run 1 stopped the harvest of alder.")
    assert harvester("run", "--requested", "--date", "2026-11-20").out == ""


@pytest.mark.parametrize("make", SLOW)
def test_a_stopped_run_ends_within_seconds(harvester: Harvester, server: HttpServer, make: Slow) -> None:
    with under_way(harvester, server, make) as seconds_to_end:
        assert harvester("runs", "stop").code == 0
        assert seconds_to_end() < 30
    assert harvester.rows("SELECT status FROM harvest_run") == [("interrupted",)]
    if make is long_list:
        assert harvester.rows("SELECT status FROM harvest_site_run") == [("stopped",)]
        assert harvester.rows("SELECT state FROM harvest_request") == [("cancelled",), ("done",)]


def test_a_signal_ends_a_long_list_within_seconds_and_keeps_the_request(
    harvester: Harvester, server: HttpServer
) -> None:
    with under_way(harvester, server, long_list) as seconds_to_end:
        [(pid,)] = harvester.rows("SELECT pid FROM harvest_run")
        os.kill(pid, signal.SIGTERM)
        assert seconds_to_end() < 30
    assert harvester.rows("SELECT state FROM harvest_request") == [("waiting",)]


def test_a_signal_ends_a_wait_for_a_binding_robots_txt(harvester: Harvester, server: HttpServer) -> None:
    text = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(text.replace("[http]\n", "[http]\nobey_robots = true\n"), encoding="utf-8")
    with under_way(harvester, server, slow_robots) as seconds_to_end:
        [(pid,)] = harvester.rows("SELECT pid FROM harvest_run")
        os.kill(pid, signal.SIGTERM)
        assert seconds_to_end() < 30
    assert server.asked("/list.xml") == []
    assert harvester.rows("SELECT status FROM harvest_site_run") == [("stopped",)]
