"""What fails transiently is tried again within the run: how often, when, and what is told; servers are left alone."""

import random
import signal
import socket
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import chain
from typing import Any

import pytest

from support.harvester import Harvester, eml, harvest_list, publish
from support.http_server import Asking, HttpServer, Route, answering, in_turn, raw, reset_after, silent
from support.mails import words_of
from support.waiting import wait_until

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
"""Nothing here depends on the database."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: 1000\r\n\r\n"
DAY = "2026-11-20"


def told(harvester: Harvester) -> list[tuple[Any, ...]]:
    """(document id, rule, message) of every finding."""
    sql = "SELECT document_id, rule, error_message FROM harvest_detail_log ORDER BY detail_log_id"
    return harvester.rows(sql)


def seconds_between(server: HttpServer, path: str) -> list[float]:
    """How long after the first request for `path` each further one came."""
    first, *others = [request.at for request in server.asked(path)]
    return [at - first for at in others]


@pytest.fixture
def longest_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance has every wait as long as it may be."""
    monkeypatch.setattr(random, "uniform", lambda least, most: most)


@pytest.mark.parametrize(
    "failure",
    [
        *(pytest.param(answering(b"no", status=status), id=str(status)) for status in (408, 425, 429, 502, 503, 504)),
        pytest.param(raw(HEAD + b"<eml"), id="truncated"),
        pytest.param(reset_after(), id="reset"),
        pytest.param(reset_after(HEAD + b"<eml"), id="reset in the middle"),
        pytest.param(raw(b""), id="nothing"),
        pytest.param(raw(b"HTTP/1.1 200 OK\r\nContent-Type: appl"), id="headers that break off"),
        pytest.param(silent(HEAD), id="silence"),
    ],
)
@pytest.mark.quick
def test_what_fails_twice_and_then_comes_is_as_if_it_had_come_at_once(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, failure: Route
) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__READ_TIMEOUT", "0.2")
    url = publish(server, "a.1.1", "a.2.1")
    server.route("/a.1.1.xml", in_turn(failure, failure, answering(eml("a.1.1"))))
    harvester.add_site("site", url)
    run = harvester.run(DAY)
    assert harvester.outcomes(1) == {"a.1.1": "inserted", "a.2.1": "inserted"}
    assert (run["status"], run["exit_code"]) == ("succeeded", 0)
    assert len(server.asked("/a.1.1.xml")) == 3
    assert told(harvester) == []
    codes = "SELECT document_id, harvest_operation_code FROM harvest_log WHERE document_id IS NOT NULL ORDER BY 1, 2"
    rows = harvester.rows(codes)
    assert [code for document, code in rows if document == "a.1"] == [c for d, c in rows if d == "a.2"]
    assert harvester.rows("SELECT attempts FROM harvest_document WHERE document_id = 'a.1'") == [(0,)]


def test_what_fails_at_every_try_says_how_often_it_was_tried(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1", "a.2.1", also=[("a.3.1", server.url("/gone.xml"))])
    server.serve("/a.1.1.xml", b"no", status=503)
    harvester.add_site("site", url)
    harvester.run(DAY)
    assert harvester.outcomes(1) == {"a.1.1": "access-error", "a.2.1": "inserted", "a.3.1": "access-error"}
    messages = {document: message for document, _, message in told(harvester)}
    assert "503" in messages["a.1"]
    assert "It was tried 3 times over 0." in messages["a.1"]
    assert "tried" not in messages["a.3"]
    assert (len(server.asked("/a.1.1.xml")), len(server.asked("/gone.xml"))) == (3, 1)
    # For the ledger it is one failure, of this night.
    assert harvester.rows("SELECT attempts, next_attempt FROM harvest_document WHERE document_id = 'a.1'") == [(1, DAY)]


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_the_settings_say_how_often(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, retries: int
) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__RETRIES", str(retries))
    url = publish(server, "a.1.1")
    server.serve("/a.1.1.xml", b"no", status=503)
    harvester.add_site("site", url)
    harvester.run(DAY)
    assert len(server.asked("/a.1.1.xml")) == retries + 1


def test_the_waits_double_up_to_their_limit(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, longest_waits: None
) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__RETRIES", "3")
    monkeypatch.setenv("METAHARVEST_HTTP__RETRY_WAIT", "0.2")
    monkeypatch.setenv("METAHARVEST_HTTP__RETRY_WAIT_LIMIT", "0.5")
    url = publish(server, "a.1.1")
    server.serve("/a.1.1.xml", b"no", status=503)
    harvester.add_site("site", url)
    harvester.run(DAY)
    second, third, fourth = seconds_between(server, "/a.1.1.xml")
    assert 0.2 <= second < 0.6
    assert 0.6 <= third < 1.1
    assert 1.1 <= fourth < 1.8


def test_what_took_its_server_as_long_as_a_document_may_take_is_not_asked_for_again(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__DOCUMENT_DEADLINE", "0.5")
    url = publish(server, "a.1.1")
    server.route("/a.1.1.xml", silent(HEAD))
    harvester.add_site("site", url)
    harvester.run(DAY)
    assert harvester.outcomes(1) == {"a.1.1": "access-error"}
    assert len(server.asked("/a.1.1.xml")) == 1


def test_a_list_is_tried_again_too(harvester: Harvester, server: HttpServer) -> None:
    publish(server, "a.1.1")
    whole = harvest_list([("a.1.1", server.url("/a.1.1.xml"))])
    server.route("/list.xml", in_turn(answering(b"no", status=502), reset_after(HEAD), answering(whole)))
    harvester.add_site("good", server.url("/list.xml"))
    server.serve("/bad.xml", b"no", status=503)
    harvester.add_site("bad", server.url("/bad.xml"))
    server.serve("/gone.xml", b"no", status=404)
    harvester.add_site("gone", server.url("/gone.xml"))
    run = harvester.run(DAY)
    status = {site["site_name"]: site["status"] for site in run["sites"]}
    assert status == {"good": "succeeded", "bad": "list-failed", "gone": "list-failed"}
    reasons = {site["site_name"]: site["failure_reason"] for site in run["sites"]}
    assert "It was tried 3 times over" in reasons["bad"]
    assert "tried" not in reasons["gone"]
    asked = [len(server.asked(path)) for path in ("/list.xml", "/bad.xml", "/gone.xml")]
    assert asked == [3, 3, 1]
    [mail] = [mail for mail in harvester.mails() if "bad: " in mail["Subject"]]
    assert "It was tried 3 times" in words_of(mail)


def test_a_host_name_that_is_not_known_is_looked_up_again(harvester: Harvester, server: HttpServer) -> None:
    harvester.add_site("site", publish(server, also=[("a.1.1", "http://nowhere.invalid/a.xml")]))
    harvester.run(DAY)
    [(_, rule, message)] = told(harvester)
    assert rule == "http.dns"
    assert "It was tried 3 times" in message


def test_a_document_that_waits_takes_neither_a_thread_nor_a_connection(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, longest_waits: None
) -> None:
    for name, value in (("HTTP__CONNECTIONS_PER_HOST", 1), ("HARVESTER__WORKERS", 1), ("HTTP__RETRY_WAIT", 0.7)):
        monkeypatch.setenv(f"METAHARVEST_{name}", str(value))
    docids = [f"a.{number}.1" for number in range(1, 6)]
    url = publish(server, *docids)
    server.route("/a.1.1.xml", in_turn(answering(b"no", status=503), answering(eml("a.1.1"))))
    harvester.add_site("site", url)
    harvester.run(DAY)
    assert set(harvester.held()) == set(docids)
    paths = [request.path for request in server.requests]
    assert paths == ["/list.xml", *(f"/{docid}.xml" for docid in docids), "/a.1.1.xml"]


def test_the_revisions_of_a_document_that_waits_stay_in_order(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1", "a.1.2", "a.2.1")
    server.route("/a.1.1.xml", in_turn(reset_after(), reset_after(), answering(eml("a.1.1"))))
    harvester.add_site("site", url)
    harvester.run(DAY)
    assert harvester.outcomes(1) == {"a.1.1": "inserted", "a.1.2": "updated", "a.2.1": "inserted"}
    revisions = [request.path for request in server.requests if request.path.startswith("/a.1.")]
    assert revisions == ["/a.1.1.xml"] * 3 + ["/a.1.2.xml"]


def in_seconds(_asking: Asking) -> dict[str, str]:
    return {"Retry-After": "1"}


def as_a_date_by_the_servers_clock(_asking: Asking) -> dict[str, str]:
    """A clock that is years behind."""
    now = datetime(2001, 1, 1, tzinfo=UTC)
    later = now + timedelta(seconds=1)
    return {"Date": format_datetime(now, usegmt=True), "Retry-After": format_datetime(later, usegmt=True)}


@pytest.mark.parametrize("headers", [in_seconds, as_a_date_by_the_servers_clock])
@pytest.mark.parametrize("status", [429, 503])
def test_a_host_that_asks_to_be_left_alone_is_left_alone_with_all_its_documents(
    harvester: Harvester,
    server: HttpServer,
    monkeypatch: pytest.MonkeyPatch,
    headers: Callable[[Asking], dict[str, str]],
    status: int,
) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__CONNECTIONS_PER_HOST", "1")
    docids = [f"a.{number}.1" for number in range(1, 6)]
    url = publish(server, *docids)

    def busy(asking: Asking) -> None:
        asking.answer(b"busy", status, headers(asking))

    server.route("/a.2.1.xml", in_turn(busy, answering(eml("a.2.1"))))
    harvester.add_site("site", url)
    run = harvester.run(DAY)
    assert (run["status"], set(harvester.held())) == ("succeeded", set(docids))
    asked = [(request.path, request.at) for request in server.requests]
    assert [path for path, _ in asked[:3]] == ["/list.xml", "/a.1.1.xml", "/a.2.1.xml"]
    assert len(asked) == 7
    assert 1 <= asked[3][1] - asked[2][1] < 3


def test_a_list_whose_host_asks_to_be_left_alone_waits(harvester: Harvester, server: HttpServer) -> None:
    publish(server, "a.1.1")
    whole = harvest_list([("a.1.1", server.url("/a.1.1.xml"))])
    busy = answering(b"busy", status=503, headers={"Retry-After": "1"})
    server.route("/list.xml", in_turn(busy, answering(whole)))
    harvester.add_site("site", server.url("/list.xml"))
    assert harvester.run(DAY)["status"] == "succeeded"
    assert seconds_between(server, "/list.xml")[0] >= 1


@pytest.mark.parametrize("nonsense", ["-5", "soon", "1.5", "0", "Fri, 99 Nov 2026 00:00:00 GMT", ""])
def test_nonsense_in_retry_after_is_no_reason_to_wait(harvester: Harvester, server: HttpServer, nonsense: str) -> None:
    url = publish(server, "a.1.1")
    busy = answering(b"busy", status=503, headers={"Retry-After": nonsense})
    server.route("/a.1.1.xml", in_turn(busy, answering(eml("a.1.1"))))
    harvester.add_site("site", url)
    assert harvester.run(DAY)["status"] == "succeeded"
    assert seconds_between(server, "/a.1.1.xml")[0] < 1


@pytest.mark.parametrize("value", ["3600", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_a_host_that_wants_to_be_left_alone_for_longer_is_left_to_the_next_run(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("METAHARVEST_HTTP__CONNECTIONS_PER_HOST", "1")
    docids = [f"a.{number}.1" for number in range(10, 30)]
    url = publish(server, *docids)
    server.serve("/a.11.1.xml", b"busy", status=429, headers={"Retry-After": value})
    harvester.add_site("site", url)
    site = harvester.run(DAY)["sites"][0]
    assert (site["listed"], site["inserted"], site["access_error"], site["deferred"]) == (20, 1, 1, 18)
    assert len(server.requests) == 3
    (_, _, failed), (_, rule, put_off) = told(harvester)
    assert f"left alone for {'3,600' if value == '3600' else '86,400'} seconds" in failed
    assert rule == "http.retry-after"
    assert "asked to be left alone until 20" in put_off
    assert "18 documents were put off" in put_off

    server.serve("/a.11.1.xml", eml("a.11.1"))
    assert harvester.run("2026-11-21")["sites"][0]["inserted"] == 19


def test_sites_that_share_a_host_leave_it_alone_together(harvester: Harvester, server: HttpServer) -> None:
    """Site b's list is answered only after a document of site a was refused; then b's document has to wait."""
    refused = threading.Event()

    def busy(asking: Asking) -> None:
        asking.answer(b"busy", 429, {"Retry-After": "1"})
        asking.wfile.flush()
        refused.set()

    def list_of_b(asking: Asking) -> None:
        refused.wait(10)
        asking.pause(0.2)
        asking.answer(harvest_list([("b.1.1", server.url("/b.1.1.xml"))]))

    publish(server, "b.1.1")
    harvester.add_site("a", publish(server, "a.1.1", path="/a.xml"))
    server.route("/a.1.1.xml", in_turn(busy, answering(eml("a.1.1"))))
    server.route("/b.xml", list_of_b)
    harvester.add_site("b", server.url("/b.xml"))
    assert harvester.run(DAY)["status"] == "succeeded"
    [refusal, again], [of_b] = server.asked("/a.1.1.xml"), server.asked("/b.1.1.xml")
    assert again.at - refusal.at >= 1
    assert of_b.at - refusal.at >= 1


def test_a_host_behind_a_redirect_is_left_alone_too(harvester: Harvester, server: HttpServer) -> None:
    with HttpServer() as other:
        docids = [f"a.{number}.1" for number in range(1, 4)]
        url = publish(server, *docids)
        for docid in docids:
            server.redirect(f"/{docid}.xml", other.serve(f"/{docid}.xml", eml(docid)))
        other.serve("/a.1.1.xml", b"busy", status=503, headers={"Retry-After": "3600"})
        harvester.add_site("site", url)
        harvester.config.write_text(harvester.config.read_text() + "connections_per_host = 1\n")
        site = harvester.run(DAY)["sites"][0]
        assert (site["access_error"], site["deferred"]) == (1, 2)
        assert len(other.requests) == 1


def test_a_server_that_was_away_for_a_moment_is_not_given_up(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, longest_waits: None
) -> None:
    """Twenty refused connections take no time: without pauses the server would be given up at once."""
    monkeypatch.setenv("METAHARVEST_HTTP__RETRY_WAIT", "0.6")
    docids = [f"a.{number}.1" for number in range(1, 21)]
    down_until = [0.0]

    def sometimes(docid: str) -> Route:
        def route(asking: Asking) -> None:
            down_until[0] = down_until[0] or time.monotonic() + 0.4
            if time.monotonic() < down_until[0]:
                asking.reset()
            asking.answer(eml(docid))

        return route

    url = publish(server, *docids)
    for docid in docids:
        server.route(f"/{docid}.xml", sometimes(docid))
    harvester.add_site("site", url)
    run = harvester.run(DAY)
    assert (run["status"], set(harvester.held())) == ("succeeded", set(docids))


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_thousands_of_documents_on_a_dead_server_cost_a_few_tries_and_one_finding(
    harvester: Harvester, server: HttpServer
) -> None:
    dead = f"http://127.0.0.1:{closed_port()}"
    harvester.add_site("site", publish(server, also=[(f"a.{n}.1", f"{dead}/{n}.xml") for n in range(5000)]))
    began = time.monotonic()
    site = harvester.run(DAY)["sites"][0]
    assert time.monotonic() - began < 60
    assert site["access_error"] <= 10
    assert site["access_error"] + site["deferred"] == 5000
    stopped = [message for _, rule, message in told(harvester) if rule == "http.server-stopped"]
    assert len(stopped) == 1
    assert f"{site['deferred']:,} documents were put off" in stopped[0]


def test_eight_sites_on_one_dead_server_find_that_out_together(harvester: Harvester, server: HttpServer) -> None:
    dead = f"http://127.0.0.1:{closed_port()}"
    for site in range(8):
        entries = [(f"site{site}.{n}.1", f"{dead}/{site}/{n}.xml") for n in range(50)]
        harvester.add_site(f"site{site}", publish(server, path=f"/{site}.xml", also=entries))
    run = harvester.run(DAY)
    assert {site["status"] for site in run["sites"]} == {"with-errors"}
    assert all(site["access_error"] + site["deferred"] == 50 for site in run["sites"])
    # Each on its own would need five tries: as many as were under way together, and a few, are enough.
    assert sum(site["access_error"] for site in run["sites"]) < 20


def test_a_host_of_many_sites_that_was_away_for_a_moment_is_not_given_up(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch, longest_waits: None
) -> None:
    """Its sites find out together that it is away, and wait together: one request finds out whether it is back."""
    monkeypatch.setenv("METAHARVEST_HTTP__RETRY_WAIT", "0.2")
    port = closed_port()
    docids = [[f"site{site}.{number}.1" for number in range(10)] for site in range(6)]
    for site, of_site in enumerate(docids):
        entries = [(docid, f"http://127.0.0.1:{port}/{docid}.xml") for docid in of_site]
        harvester.add_site(f"site{site}", publish(server, path=f"/{site}.xml", also=entries))
    came_back: list[HttpServer] = []

    def come_back() -> None:
        back = HttpServer(port=port)
        came_back.append(back)
        for docid in chain(*docids):
            back.serve(f"/{docid}.xml", eml(docid))

    def first_list(asking: Asking) -> None:
        threading.Timer(0.4, come_back).start()
        asking.answer(harvest_list((docid, f"http://127.0.0.1:{port}/{docid}.xml") for docid in docids[0]))

    server.route("/0.xml", first_list)
    try:
        run = harvester.run(DAY)
    finally:
        for back in came_back:
            back.close()
    assert (run["status"], set(harvester.held())) == ("succeeded", set(chain(*docids)))


def test_sites_on_a_host_that_hangs_do_not_hold_up_a_site_on_another(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits for a connection to it holds no thread, and there are as many such documents as threads."""
    monkeypatch.setenv("METAHARVEST_HTTP__RETRIES", "0")
    served = threading.Event()
    in_time: list[bool] = []

    def hang(asking: Asking) -> None:
        in_time.append(served.wait(25))
        asking.reset()

    def good(asking: Asking) -> None:
        asking.answer(eml(asking.path.removeprefix("/").removesuffix(".xml")))
        if {request.path for request in server.requests} >= {f"/good.{number}.1.xml" for number in range(30)}:
            served.set()

    with HttpServer(host="127.0.0.2") as hanging:
        for site in range(4):
            docids = [f"bad{site}.{number}.1" for number in range(2)]
            entries = [(docid, hanging.route(f"/{docid}.xml", hang)) for docid in docids]
            harvester.add_site(f"bad{site}", publish(server, path=f"/bad{site}.xml", also=entries))
        for number in range(30):
            server.route(f"/good.{number}.1.xml", good)

        def list_of_good(asking: Asking) -> None:
            while len(hanging.requests) < 4:
                asking.pause(0.01)
            asking.pause(0.1)
            asking.answer(harvest_list((f"good.{n}.1", server.url(f"/good.{n}.1.xml")) for n in range(30)))

        server.route("/good.xml", list_of_good)
        harvester.add_site("good", server.url("/good.xml"))
        run = harvester.run(DAY)
    assert {site["site_name"]: site["status"] for site in run["sites"]}["good"] == "succeeded"
    assert all(in_time)


def test_what_waits_for_a_connection_for_too_long_is_left_to_the_next_run(
    harvester: Harvester, server: HttpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("CONNECTIONS_PER_HOST", "1"), ("LIST_DEADLINE", "1"), ("READ_TIMEOUT", "2"), ("RETRIES", "0")):
        monkeypatch.setenv(f"METAHARVEST_HTTP__{name}", value)
    with HttpServer(host="127.0.0.2") as hanging:
        for site in "ab":
            entries = [(f"{site}.1.1", hanging.route(f"/{site}.xml", silent()))]
            harvester.add_site(site, publish(server, path=f"/{site}.xml", also=entries))
        run = harvester.run(DAY)
        assert len(hanging.requests) == 1
    assert sorted((site["access_error"], site["deferred"]) for site in run["sites"]) == [(0, 1), (1, 0)]
    assert {rule for _, rule, _ in told(harvester)} == {"http.timeout-read", "http.busy"}


def test_a_site_with_broken_documents_does_not_keep_others_on_its_host_from_theirs(
    harvester: Harvester, server: HttpServer
) -> None:
    bad = publish(server, *(f"a.{n}.1" for n in range(40)), path="/a.xml")
    for n in range(40):
        server.serve(f"/a.{n}.1.xml", b"no", status=503)
    good = publish(server, *(f"b.{n}.1" for n in range(40)), path="/b.xml")
    harvester.add_site("bad", bad)
    harvester.add_site("good", good)
    run = harvester.run(DAY)
    assert {site["site_name"]: site["status"] for site in run["sites"]} == {"bad": "with-errors", "good": "succeeded"}


@pytest.mark.parametrize(
    ("path", "status", "counts"), [("/a.1.1.xml", "with-errors", (1, 1, 18)), ("/list.xml", "list-failed", (0, 0, 0))]
)
def test_a_stop_signal_ends_the_waiting_at_once(
    harvester: Harvester, server: HttpServer, path: str, status: str, counts: tuple[int, ...]
) -> None:
    harvester.config.write_text(harvester.config.read_text() + "connections_per_host = 1\n")
    url = publish(server, *(f"a.{number}.1" for number in range(20)))
    server.serve(path, b"busy", status=503, headers={"Retry-After": "50"})
    harvester.add_site("site", url)
    process = harvester.start("run")
    wait_until(lambda: server.asked(path))
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 15
    assert (process.returncode, len(server.asked(path))) == (130, 1), err
    sql = "SELECT status, inserted, access_error, deferred FROM harvest_site_run"
    assert harvester.rows(sql) == [(status, *counts)]
    assert any("503" in message for _, _, message in told(harvester))


def test_a_rehearsal_shows_the_first_failure(harvester: Harvester, server: HttpServer) -> None:
    url = publish(server, "a.1.1")
    server.serve("/a.1.1.xml", b"no", status=503)
    said = harvester("check", url)
    assert "503" in said.out
    assert len(server.asked("/a.1.1.xml")) == 1
