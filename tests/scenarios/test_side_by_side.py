"""Many sites and documents at once: how much is under way side by side, what it may take, and how it is ended."""

from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable, Iterator
from datetime import date

import pytest

from metaharvest.harvest.deadlines import StopSignal
from metaharvest.harvest.limits import CheckLimits, RunLimits
from metaharvest.harvest.run import RunRequest
from metaharvest.journal.writer import GroupLimits
from support.harvester import Harvester, eml, harvest_list
from support.http_server import Asking, HttpServer, Route

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

TODAY = date(2026, 11, 20)


@pytest.fixture
def hosts() -> Iterator[HttpServer]:
    """One server at all addresses of this machine: to the harvester, 127.0.0.1, 127.0.0.2 and so on are hosts."""
    with HttpServer(host="0.0.0.0") as running:
        yield running


def publish_at(server: HttpServer, number: int, routes: dict[str, Route]) -> str:
    """Serve documents and their list at the host of this number; the list's URL."""
    host = f"127.0.0.{number}"
    entries = []
    for docid, route in routes.items():
        server.route(f"/{docid}.xml", route)
        entries.append((docid, server.url(f"/{docid}.xml", host=host)))
    server.serve(f"/{number}.xml", harvest_list(entries))
    return server.url(f"/{number}.xml", host=host)


class Together:
    """Requests wait in the server until so many are there, then go on slowly; `missed`: they were not all there."""

    def __init__(self, number: int) -> None:
        self._barrier = threading.Barrier(number)
        self.missed = False

    def __call__(self, answer: Callable[[Asking], None]) -> Route:
        def route(asking: Asking) -> None:
            try:
                self._barrier.wait(20)
            except threading.BrokenBarrierError:
                self.missed = True
            asking.pause(0.1)
            answer(asking)

        return route


def answer_with(content: bytes) -> Route:
    return lambda asking: asking.answer(content)


def slowly(content: bytes) -> Route:
    def route(asking: Asking) -> None:
        asking.pause(0.1)
        asking.answer(content)

    return route


def test_twenty_six_slow_sites_are_served_side_by_side_without_any_setting(
    harvester: Harvester, hosts: HttpServer
) -> None:
    """Their lists all at once, and then a document of each."""
    lists, documents = Together(26), Together(26)
    docids = []
    for site in range(1, 27):
        of_site = [f"site{site}.{number}.1" for number in range(4)]
        routes = {docid: slowly(eml(docid)) for docid in of_site}
        routes[of_site[0]] = documents(answer_with(eml(of_site[0])))
        url = publish_at(hosts, site, routes)
        entries = [(docid, hosts.url(f"/{docid}.xml", host=f"127.0.0.{site}")) for docid in of_site]
        hosts.route(f"/{site}.xml", lists(answer_with(harvest_list(entries))))
        harvester.add_site(f"site{site}", url)
        docids += of_site
    run = harvester.run("2026-11-20")
    assert not lists.missed
    assert not documents.missed
    assert run["status"] == "succeeded"
    assert set(harvester.held()) == set(docids)
    assert hosts.most_at_once >= 26


LARGE = 800_000


def large(docid: str) -> bytes:
    """A valid document of that many bytes, most of them white space."""
    return eml(docid).replace(b"<dataset>", b"<dataset>" + b" " * LARGE)


def test_many_large_documents_at_once_keep_to_the_memory_budget_and_all_arrive(
    harvester: Harvester, hosts: HttpServer
) -> None:
    """All are asked for before the first byte of any comes: most of them have to give way, and are asked for again."""
    harvester.limits = RunLimits(
        memory=1_000_000, group=GroupLimits(size=250_000), check=CheckLimits(few=10**9, small=10**9)
    )
    together = Together(40)
    again: list[str] = []

    def once(docid: str) -> Route:
        waiting = together(answer_with(large(docid)))
        asked: list[int] = []

        def route(asking: Asking) -> None:
            asked.append(1)
            if len(asked) == 1:
                waiting(asking)
            else:
                again.append(docid)
                asking.answer(large(docid))

        return route

    docids = [[f"site{site}.{number}.1" for number in range(4)] for site in range(1, 11)]
    for site, of_site in enumerate(docids, 1):
        harvester.add_site(f"site{site}", publish_at(hosts, site, {docid: once(docid) for docid in of_site}))
    tracemalloc.start()
    try:
        run = harvester.run("2026-11-20")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not together.missed
    assert run["status"] == "succeeded"
    assert set(harvester.held()) == {docid for of_site in docids for docid in of_site}
    assert again
    assert len(set(again)) == len(again)
    # Documents on their way take four times the budget at most; the rest is for the server, and what was imported.
    assert peak < 40 * LARGE / 2


def test_a_site_that_takes_all_the_memory_holds_up_no_other_one(
    harvester: Harvester, hosts: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two large documents do not come to their end before those of the other site were asked for."""
    monkeypatch.setenv("METAHARVEST_HTTP__LIST_DEADLINE", "4")  # as long as a document waits for memory
    harvester.limits = RunLimits(memory=1_000_000)
    arrived, others = threading.Semaphore(0), threading.Semaphore(0)
    missed: list[str] = []

    def kept_back(docid: str) -> Route:
        def route(asking: Asking) -> None:
            content = large(docid)
            asking.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content[:-1])
            arrived.release()
            if not others.acquire(timeout=10):
                missed.append(docid)
            others.release()
            asking.send(content[-1:])

        return route

    def after_both(asking: Asking) -> None:
        for _ in range(2):
            arrived.acquire(timeout=10)
        asking.pause(0.2)  # until what was sent has been read
        asking.answer(harvest_list([(docid, hosts.url(f"/{docid}.xml", host="127.0.0.2")) for docid in small]))

    def seen(docid: str) -> Route:
        def route(asking: Asking) -> None:
            if docid == small[-1]:
                others.release()
            asking.answer(eml(docid))

        return route

    big, small = ["big.1.1", "big.2.1"], ["small.1.1", "small.2.1"]
    harvester.add_site("big", publish_at(hosts, 1, {docid: kept_back(docid) for docid in big}))
    harvester.add_site("small", publish_at(hosts, 2, {docid: seen(docid) for docid in small}))
    hosts.route("/2.xml", after_both)
    run = harvester.run("2026-11-20")
    assert not missed
    assert run["status"] == "succeeded"
    assert set(harvester.held()) == {*big, *small}


def test_a_signal_ends_the_waiting_for_connections(harvester: Harvester, hosts: HttpServer) -> None:
    """The one document that is under way is finished, all that wait for its connection are put off."""
    harvester.config.write_text(harvester.config.read_text() + "connections_per_host = 1\n")
    stop = StopSignal()

    def last(docid: str) -> Route:
        def route(asking: Asking) -> None:
            stop.set()
            asking.pause(0.3)
            asking.answer(eml(docid))

        return route

    lists = Together(5)
    for site in range(1, 6):
        of_site = [f"site{site}.{number}.1" for number in range(20)]
        publish_at(hosts, 1, {docid: last(docid) for docid in of_site})
        entries = [(docid, hosts.url(f"/{docid}.xml", host="127.0.0.1")) for docid in of_site]
        # The lists have hosts of their own, so that all are read when the first document is asked for.
        url = hosts.route(f"/list{site}.xml", lists(answer_with(harvest_list(entries))))
        harvester.add_site(f"site{site}", url.replace("0.0.0.0", f"127.0.1.{site}"))
    with harvester.opened() as opened:
        result = opened.run(RunRequest(TODAY), stop=stop)
    assert not lists.missed
    assert result.status == "interrupted"
    assert result.cut_short.startswith("The run was stopped before its end")
    documents = [request for request in hosts.requests if request.path.startswith("/site")]
    assert len(documents) == 1
    assert len(harvester.held()) == 1
    outcomes = harvester.rows("SELECT outcome, count(*) FROM harvest_log WHERE outcome IS NOT NULL GROUP BY outcome")
    assert sorted(outcomes) == [("deferred", 99), ("inserted", 1)]
    assert {rule for _, _, rule in harvester.findings(result.run_id)} == {"harvest.stopped"}


def test_lists_wait_for_their_connection_after_a_signal_and_documents_do_not(
    harvester: Harvester, hosts: HttpServer
) -> None:
    """What the sites list is put off for the next run; a list that was given up would be told as one that failed."""
    harvester.config.write_text(harvester.config.read_text() + "connections_per_host = 1\n")
    stop = StopSignal()

    def listing(entries: list[tuple[str, str]]) -> Route:
        def route(asking: Asking) -> None:
            while not stop.is_set() and harvester.rows("SELECT count(*) FROM harvest_site_run") != [(3,)]:
                asking.pause(0.02)
            # By now the two other lists wait for the one connection to their host.
            asking.pause(0.2)
            stop.set()
            asking.answer(harvest_list(entries))

        return route

    for site in range(1, 4):
        of_site = [f"site{site}.{number}.1" for number in range(10)]
        publish_at(hosts, 1, {docid: answer_with(eml(docid)) for docid in of_site})
        entries = [(docid, hosts.url(f"/{docid}.xml", host="127.0.0.1")) for docid in of_site]
        hosts.route(f"/list{site}.xml", listing(entries))
        harvester.add_site(f"site{site}", hosts.url(f"/list{site}.xml", host="127.0.0.1"))
    with harvester.opened() as opened:
        opened.run(RunRequest(TODAY), stop=stop)
    assert sorted(request.path for request in hosts.requests) == ["/list1.xml", "/list2.xml", "/list3.xml"]
    assert harvester.rows("SELECT listed, deferred, status FROM harvest_site_run") == [(10, 10, "with-errors")] * 3
