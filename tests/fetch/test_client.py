"""The one client for what sites serve: what it asks, what it accepts, and that no server can harm it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pycurl
import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st

from metaharvest import __version__
from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError, NotAsked, SettingsError
from metaharvest.fetch.backoff import seconds_to_wait
from metaharvest.fetch.client import user_agent
from metaharvest.fetch.error_messages import Circumstances, failure
from metaharvest.fetch.exchange import Exchange, Limits
from metaharvest.fetch.url import parse_url
from metaharvest.model import Finding, Reach
from metaharvest.rules import RULES
from metaharvest.text import clean
from support.fetching import WaitingFetcher as Fetcher
from support.http_server import Asking, HttpServer, Route, dripped, endless, raw, reset_after, silent
from support.ports import free_port
from support.waiting import wait_until

LOOPBACK = ip_network("127.0.0.1/32")
OK = b"HTTP/1.1 200 OK\r\n"
LIMIT = 100_000

MakeFetcher = Callable[..., Fetcher]


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as server:
        yield server


@pytest.fixture
def fetcher_with() -> Iterator[MakeFetcher]:
    """Makes fetchers with short limits, and closes them."""
    made: list[Fetcher] = []

    def make(lowest_speed: int = 0, **http: Any) -> Fetcher:
        values = {
            "contact_url": "https://example.org/harvester",
            "connect_timeout": 1,
            "read_timeout": 1,
            "document_deadline": 1.5,
            "list_deadline": 5,
            "max_document_bytes": LIMIT,
            "max_list_bytes": 200 * LIMIT,
            "allow_networks": (LOOPBACK,),
        }
        settings = HttpSettings(**{**values, **http})
        made.append(Fetcher(settings, name="Example network", administrator="a@example.org", lowest_speed=lowest_speed))
        return made[-1]

    yield make
    for fetcher in made:
        fetcher.close()


@pytest.fixture
def fetcher(fetcher_with: MakeFetcher) -> Fetcher:
    return fetcher_with()


def refused(fetcher: Fetcher, url: str, rule: str, *, transient: bool = False, **options: Any) -> Finding:
    """Fetch `url`, which must fail by `rule`; whatever fails names its URL, has a remedy and is told in time."""
    began = time.monotonic()
    with pytest.raises(FetchError) as caught:
        fetcher.fetch(url, **options)
    assert time.monotonic() - began < 15  # the servers never end, and some tests have one limit of 20
    (finding,) = caught.value.findings
    assert (finding.rule, caught.value.transient) == (rule, transient)
    assert rule in RULES
    assert finding.remedy
    assert "://" in finding.message
    assert caught.value.seconds is not None
    return finding


class TestAWholeDocument:
    def test_comes_as_it_is_with_its_digest_and_validators(self, server: HttpServer, fetcher: Fetcher) -> None:
        body = "<eml>ä</eml>".encode("utf-16")
        url = server.serve("/eml.xml", body, headers={"ETag": '"7"', "Last-Modified": "Fri, 20 Nov 2026 10:00:00 GMT"})
        response, content = fetcher.fetch(url)
        assert content == body
        assert (response.url, response.status, response.size) == (url, 200, len(body))
        assert response.sha256 == hashlib.sha256(body).hexdigest()
        assert (response.etag, response.last_modified) == ('"7"', "Fri, 20 Nov 2026 10:00:00 GMT")
        assert 0 < response.seconds < 1.5

    def test_is_asked_for_by_name_and_address(self, server: HttpServer, fetcher: Fetcher) -> None:
        fetcher.fetch(server.serve("/eml.xml", b"<eml/>"))
        headers = server.requests[0].headers
        expected = f"metaharvest/{__version__} (Example network; +https://example.org/harvester)"
        assert headers["user-agent"] == fetcher.user_agent == expected
        assert headers["from"] == "a@example.org"
        assert headers["accept-encoding"] == "gzip"
        assert "xml" in headers["accept"]
        assert not {"authorization", "cookie", "referer"} & set(headers)

    def test_without_an_administrator_has_no_from_header(self, server: HttpServer) -> None:
        with Fetcher(HttpSettings(allow_networks=(LOOPBACK,)), name="x", administrator=None) as fetcher:
            fetcher.fetch(server.serve("/eml.xml", b"<eml/>"))
        assert "from" not in server.requests[0].headers

    # https://github.com/code4craft/webmagic/issues/796
    @pytest.mark.parametrize("coding", ["identity", "UTF-8", "utf8"])
    def test_is_taken_with_a_charset_as_its_coding(self, server: HttpServer, fetcher: Fetcher, coding: str) -> None:
        url = server.serve("/eml.xml", b"<eml/>", headers={"Content-Encoding": coding})
        assert fetcher.fetch(url)[1] == b"<eml/>"
        assert len(server.requests) == 1

    # https://github.com/curl/curl/issues/3315
    def test_is_taken_with_none_as_its_coding(self, server: HttpServer, fetcher: Fetcher) -> None:
        url = server.serve("/eml.xml", b"<eml/>", headers={"Content-Encoding": "none"})
        assert fetcher.fetch(url)[1] == b"<eml/>"
        assert len(server.requests) == 1

    @pytest.mark.parametrize("copies", [1, 3])
    def test_is_decompressed_also_from_several_members(self, server: HttpServer, fetcher: Fetcher, copies: int) -> None:
        url = server.serve("/eml.xml", gzip.compress(b"<eml/>") * copies, headers={"Content-Encoding": "gzip"})
        response, content = fetcher.fetch(url)
        assert content == b"<eml/>" * copies
        assert (response.size, response.sha256) == (len(content), hashlib.sha256(content).hexdigest())

    @pytest.mark.parametrize("coding", ["", "gzip"])
    def test_may_be_exactly_as_large_as_the_limit(self, server: HttpServer, fetcher: Fetcher, coding: str) -> None:
        body = gzip.compress(b"a" * LIMIT) if coding else b"a" * LIMIT
        assert fetcher.fetch(server.serve("/x", body, headers={"Content-Encoding": coding}))[0].size == LIMIT

    def test_may_come_in_chunks_or_up_to_the_end_of_the_connection(self, server: HttpServer, fetcher: Fetcher) -> None:
        chunked = raw(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\nETag: x\r\n\r\n")
        assert fetcher.fetch(server.route("/chunked", chunked))[1] == b"abcdef"
        assert fetcher.fetch(server.route("/old", raw(b"HTTP/1.0 200 OK\r\n\r\nabc")))[1] == b"abc"

    def test_may_have_spaces_and_other_characters_in_its_url(self, server: HttpServer, fetcher: Fetcher) -> None:
        server.serve("/a b/ä.xml", b"<eml/>")
        response, _ = fetcher.fetch(server.url("/a b/ä.xml"))
        assert server.requests[0].path == "/a%20b/%C3%A4.xml"
        assert response.url == server.url("/a%20b/%C3%A4.xml")

    def test_may_have_an_international_host_name(self, server: HttpServer, fetcher: Fetcher) -> None:
        server.serve("/eml.xml", b"<eml/>")
        assert fetcher.fetch(server.url("/eml.xml", host="１２７.0.0.1"))[1] == b"<eml/>"

    def test_is_streamed_into_a_file_where_that_is_asked(
        self, server: HttpServer, fetcher: Fetcher, tmp_path: Path
    ) -> None:
        body = b"<document/>" * 1_000_000
        url = server.serve("/list.xml", gzip.compress(body, 1), headers={"Content-Encoding": "gzip"})
        with (tmp_path / "list.xml").open("wb") as file:
            response = fetcher.fetch_to(url, file)
        assert (tmp_path / "list.xml").read_bytes() == body
        assert (response.size, response.sha256) == (len(body), hashlib.sha256(body).hexdigest())

    def test_a_disk_that_is_full_is_not_the_server_s_fault(self, server: HttpServer, fetcher: Fetcher) -> None:
        with Path("/dev/full").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            fetcher.fetch_to(server.serve("/list.xml", b"<list/>"), file)
        assert fetcher.fetch(server.url("/list.xml"))[1] == b"<list/>"


@pytest.mark.parametrize("name", ["Ökologie\r\nX-Evil: 1", "(a; b) \\ c", "生态", "a\x00b", "x" * 100, "\u2028"])
def test_the_user_agent_is_safe_whatever_the_harvester_is_called(name: str) -> None:
    agent = user_agent(name, "https://example.org/über uns\n")
    assert agent.isascii()
    assert agent.isprintable()
    assert agent.startswith(f"metaharvest/{__version__} (")
    assert agent.endswith("+https://example.org/%C3%BCberuns)")
    assert agent.count("(") == agent.count(")") == 1


class TestAServerThatIsSlow:
    def test_drips_headers_until_the_deadline(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        url = server.route("/x", raw(OK, *[b"X-Drip: 1\r\n"] * 1000, pause=0.1))
        fetcher = fetcher_with(document_deadline=0.5)
        assert "0.5 seconds" in refused(fetcher, url, "http.deadline", transient=True).message

    def test_drips_a_body_until_the_deadline(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        url = server.route("/x", dripped(OK + b"Content-Length: 1000\r\n\r\n", b"x" * 1000))
        refused(fetcher_with(document_deadline=0.5), url, "http.deadline", transient=True)

    def test_drips_a_body_below_the_lowest_speed(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        url = server.route("/x", dripped(OK + b"Content-Length: 1000\r\n\r\n", b"x" * 1000))
        fetcher = fetcher_with(lowest_speed=1_000_000, read_timeout=0.5, document_deadline=60)
        assert "came too slowly" in refused(fetcher, url, "http.timeout-read", transient=True).message

    def test_drips_through_redirects_until_the_deadline(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        for number in range(10):
            answer = f"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: /{number + 1}\r\n\r\n".encode()
            server.route(f"/{number}", raw(b"", answer, pause=0.2))
        url = server.url("/0")
        finding = refused(fetcher_with(max_redirects=20, document_deadline=1.5), url, "http.deadline", transient=True)
        assert f"(redirected from {url})" in finding.message

    def test_says_nothing_at_all_until_the_read_time_out(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        fetcher = fetcher_with(read_timeout=0.3, document_deadline=20)
        finding = refused(fetcher, server.route("/x", silent()), "http.timeout-read", transient=True)
        assert "0.3 seconds, before the document began" in finding.message

    def test_falls_silent_in_the_middle(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        fetcher = fetcher_with(read_timeout=0.3, document_deadline=20)
        url = server.route("/x", silent(OK + b"Content-Length: 10\r\n\r\nabc"))
        assert "after 3 bytes" in refused(fetcher, url, "http.timeout-read", transient=True).message

    def test_floods_with_interim_answers(self, server: HttpServer, fetcher: Fetcher) -> None:
        url = server.route("/x", endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"))
        refused(fetcher, url, "http.protocol")

    def test_does_not_accept_a_connection(self, fetcher_with: MakeFetcher) -> None:
        with socket.socket() as listening, socket.socket() as first, socket.socket() as second:
            listening.bind(("127.0.0.1", 0))
            listening.listen(0)
            for filler in (first, second):
                filler.setblocking(False)
                filler.connect_ex(listening.getsockname())
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/x"
            fetcher = fetcher_with(connect_timeout=0.3, document_deadline=20)
            finding = refused(fetcher, url, "http.timeout-connect", transient=True)
        assert "no connection to 127.0.0.1 within 0.3 seconds" in finding.message

    def test_does_not_keep_ctrl_c_from_stopping_the_program(
        self, server: HttpServer, fetcher_with: MakeFetcher
    ) -> None:
        def interrupt(asking: Asking) -> None:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            asking.pause(60)

        url = server.route("/x", interrupt)
        fetcher = fetcher_with(read_timeout=60, document_deadline=60)
        # Whoever starts the tests may have it ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                fetcher.fetch(url)
        finally:
            signal.signal(signal.SIGINT, before)


class TestAServerThatSendsTooMuch:
    @pytest.mark.parametrize(
        ("route", "figure"),
        [
            (raw(OK + b"Content-Length: 5000000\r\n\r\n"), "5,000,000 bytes"),
            (raw(OK + b"\r\n" + b"x" * (LIMIT + 1)), "more than that"),
            (endless(OK + b"\r\n", b"x" * 20_000), "more than that"),
            (endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"3e8\r\n" + b"x" * 1000 + b"\r\n"), "more than that"),
        ],
    )
    def test_is_stopped_at_the_limit(self, server: HttpServer, fetcher: Fetcher, route: Route, figure: str) -> None:
        finding = refused(fetcher, server.route("/x", route), "http.too-large")
        assert "100,000 bytes" in finding.message
        assert figure in finding.message

    def test_a_gzip_bomb_writes_no_more_than_the_limit(self, server: HttpServer, fetcher: Fetcher) -> None:
        bomb = gzip.compress(b"\0" * 100_000_000)
        url = server.serve("/list.xml", bomb, headers={"Content-Encoding": "gzip"})
        file = io.BytesIO()
        with pytest.raises(FetchError) as caught:
            fetcher.fetch_to(url, file)
        assert caught.value.findings[0].rule == "http.too-large"
        assert "after decompression" in caught.value.findings[0].message
        assert len(file.getvalue()) <= 200 * LIMIT

    def test_endless_empty_gzip_members_are_stopped(self, server: HttpServer, fetcher: Fetcher) -> None:
        url = server.route("/x", endless(OK + b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b"") * 500))
        refused(fetcher, url, "http.encoding")

    def test_very_many_tiny_gzip_members_are_not_decompressed(self, server: HttpServer) -> None:
        """As `bgzip` writes them, there may be any number; ten megabytes of empty ones would take seconds each time."""
        blocks = gzip.compress(b"a" * 65_280) * 700
        headers = {"Content-Encoding": "gzip"}
        with Fetcher(HttpSettings(allow_networks=(LOOPBACK,)), name="x", administrator=None) as fetcher:
            assert fetcher.fetch(server.serve("/blocks", blocks, headers=headers))[0].size == 700 * 65_280
            empty = server.serve("/empty", gzip.compress(b"<eml/>") + gzip.compress(b"") * 500_000, headers=headers)
            refused(fetcher, empty, "http.encoding")

    @pytest.mark.parametrize("headers", [b"X-Much: 1234567890\r\n" * 50_000, b"X-Long: " + b"x" * 1_000_000 + b"\r\n"])
    def test_headers_too(self, server: HttpServer, fetcher: Fetcher, headers: bytes) -> None:
        refused(fetcher, server.route("/x", raw(OK + headers + b"\r\nabc")), "http.protocol")

    def test_a_large_error_page_is_still_told_as_the_error(self, server: HttpServer, fetcher: Fetcher) -> None:
        page = b"<html><title>Gone fishing</title>" + b"x" * 2 * LIMIT
        for path, headers in (("/a", b"Content-Length: %d\r\n" % len(page)), ("/b", b"")):
            url = server.route(path, raw(b"HTTP/1.1 404 Not Found\r\n" + headers + b"\r\n" + page))
            assert "404 Not Found, with a page titled 'Gone fishing'" in refused(fetcher, url, "http.status").message


class TestAServerThatBreaksOff:
    @pytest.mark.parametrize(
        "route",
        [
            raw(OK + b"Content-Length: 1000\r\n\r\nabc"),
            raw(OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabc"),
            raw(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
            reset_after(OK + b"Content-Length: 1000\r\n\r\nabc"),
            raw(OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"<eml/>" * 1000)[:-9]),
            raw(OK + b"Content-Encoding: gzip\r\nContent-Length: 22\r\n\r\n" + gzip.compress(b"<eml/>" * 1000)[:22]),
        ],
    )
    def test_has_sent_a_part_only(self, server: HttpServer, fetcher: Fetcher, route: Route) -> None:
        assert "bytes" in refused(fetcher, server.route("/x", route), "http.truncated", transient=True).message

    def test_has_answered_if_it_announces_chunks_and_sends_none(self, server: HttpServer, fetcher: Fetcher) -> None:
        url = server.route("/x", raw(OK + b"Transfer-Encoding: chunked\r\n\r\n<eml/>"))
        assert "broke off (chunk" in refused(fetcher, url, "http.truncated", transient=True).message

    @pytest.mark.parametrize("route", [raw(), reset_after(), reset_after(OK), raw(OK)])
    def test_before_the_document_has_not_answered(self, server: HttpServer, fetcher: Fetcher, route: Route) -> None:
        with pytest.raises(FetchError) as caught:
            fetcher.fetch(server.route("/x", route))
        assert caught.value.findings[0].rule in ("http.connection", "http.truncated", "http.empty")

    def test_or_is_not_there(self, fetcher: Fetcher) -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{bound.getsockname()[1]}/x"
            assert "Connection refused" in refused(fetcher, url, "http.connection", transient=True).message

    def test_between_two_documents_is_asked_again_on_a_new_connection(
        self, server: HttpServer, fetcher: Fetcher
    ) -> None:
        def once(asking: Asking) -> None:
            asking.answer(b"<eml/>")
            asking.end()

        url = server.route("/x", once)
        assert [fetcher.fetch(url)[1] for _ in range(3)] == [b"<eml/>"] * 3

    def test_or_whose_name_is_not_known(self, fetcher: Fetcher) -> None:
        assert "example.onion" in refused(fetcher, "http://example.onion/x", "http.dns", transient=True).message


class TestAnAnswerThatIsNone:
    @pytest.mark.parametrize(
        "route",
        [
            raw(b"SSH-2.0-OpenSSH_9.2\r\n"),
            raw(b"<eml/>"),
            raw(OK + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde"),
            raw(OK + b"Content-Length: -3\r\n\r\nabc"),
            raw(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
            raw(OK + b"X-Nul: a\0b\r\n\r\nabc"),
        ],
    )
    def test_breaks_the_rules_of_http(self, server: HttpServer, fetcher: Fetcher, route: Route) -> None:
        refused(fetcher, server.route("/x", route), "http.protocol")

    @pytest.mark.parametrize("status", [200, 204])
    def test_is_empty(self, server: HttpServer, fetcher: Fetcher, status: int) -> None:
        refused(fetcher, server.serve("/x", b"", status=status), "http.empty")

    @pytest.mark.parametrize(
        ("coding", "body"),
        [
            ("gzip", b"<eml/>"),
            ("gzip", gzip.compress(b"<eml/>" * 9, mtime=0)[:-8] + b"badcheck"),
            ("gzip, gzip", gzip.compress(gzip.compress(b"<eml/>", mtime=0), mtime=0)),
            ("br", b"\x0b\x02\x80abc\x03"),
            ("no-such-coding", b"<eml/>"),
        ],
    )
    def test_cannot_be_decompressed(self, server: HttpServer, fetcher: Fetcher, coding: str, body: bytes) -> None:
        finding = refused(fetcher, server.serve("/x", body, headers={"Content-Encoding": coding}), "http.encoding")
        assert f"'{coding}'" in finding.message

    def test_is_a_part_that_nobody_asked_for(self, server: HttpServer, fetcher: Fetcher) -> None:
        assert "206 Partial Content" in refused(fetcher, server.serve("/x", b"abc", status=206), "http.status").message


class TestAnErrorStatus:
    @pytest.mark.parametrize("status", [304, 400, 401, 403, 404, 405, 410, 418, 451, 500, 501, 999])
    def test_is_lasting(self, server: HttpServer, fetcher: Fetcher, status: int) -> None:
        assert str(status) in refused(fetcher, server.serve("/x", b"no", status=status), "http.status").message

    def test_for_a_login_says_whether_one_was_sent(self, server: HttpServer, fetcher: Fetcher) -> None:
        url = server.serve("/x", b"no", status=401)
        assert "Make the file readable for everybody." in refused(fetcher, url, "http.status").remedy
        remedy = refused(fetcher, url.replace("://", "://me:sesame@"), "http.status").remedy
        assert remedy == "The server does not accept the user name and password in the URL: correct them."

    @pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
    def test_is_passing(self, server: HttpServer, fetcher: Fetcher, status: int) -> None:
        refused(fetcher, server.serve("/x", b"no", status=status), "http.status", transient=True)

    @pytest.mark.parametrize("status", [408, 520, 521, 522, 523, 524])
    def test_of_a_server_that_is_down_is_temporary(self, server: HttpServer, fetcher: Fetcher, status: int) -> None:
        url = server.serve("/x", b"error code: %d" % status, status=status)
        assert refused(fetcher, url, "http.status", transient=True).remedy.startswith("The harvester tries again")

    @pytest.mark.parametrize("compressed", [False, True])
    def test_quotes_the_title_of_its_page(self, server: HttpServer, fetcher: Fetcher, compressed: bool) -> None:
        page = b"<!DOCTYPE html><html><head><title>Sorry,\n page &amp; site moved\x1b[0m</title></head></html>"
        headers = {"Content-Encoding": "gzip"} if compressed else {}
        url = server.serve("/x", gzip.compress(page) if compressed else page, status=404, headers=headers)
        message = refused(fetcher, url, "http.status").message
        assert "404 Not Found, with a page titled 'Sorry, page & site moved\ufffd[0m'" in message

    def test_counts_even_where_its_page_breaks_off(self, server: HttpServer, fetcher: Fetcher) -> None:
        url = server.route("/x", raw(b"HTTP/1.1 410 Gone\r\nContent-Length: 1000\r\n\r\nabc"))
        refused(fetcher, url, "http.status")

    @pytest.mark.parametrize(
        ("value", "least", "most"), [("120", 120, 120), ("an hour", 3500, 3600), ("999999999999", 86400, 86400)]
    )
    def test_says_when_to_come_back(
        self, server: HttpServer, fetcher: Fetcher, value: str, least: float, most: float
    ) -> None:
        later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
        value = later if value == "an hour" else value
        with pytest.raises(FetchError) as caught:
            fetcher.fetch(server.serve("/x", b"no", status=503, headers={"Retry-After": value}))
        assert caught.value.retry_after is not None
        assert least <= caught.value.retry_after <= most

    @pytest.mark.parametrize("value", ["", "soon", "-5", "1.5", "٣", "Fri, 99 Nov 2026 00:00:00 GMT", "0x10", ","])
    def test_may_say_so_in_a_way_that_is_of_no_use(self, value: str) -> None:
        assert seconds_to_wait(value, datetime(2026, 11, 20, tzinfo=UTC)) is None

    @pytest.mark.parametrize(
        "value",
        [
            "120",
            "000000000120",
            "Fri, 20 Nov 2026 00:02:00 GMT",
            "Friday, 20-Nov-26 00:02:00 GMT",
            "Fri Nov 20 00:02:00 2026",
        ],
    )
    def test_may_say_so_in_every_form_of_the_standard(self, value: str) -> None:
        assert seconds_to_wait(value, datetime(2026, 11, 20, tzinfo=UTC)) == 120

    def test_says_so_by_its_own_clock(self, server: HttpServer, fetcher: Fetcher) -> None:
        clock = {"Date": "Mon, 01 Jan 2001 00:00:00 GMT", "Retry-After": "Mon, 01 Jan 2001 00:05:00 GMT"}
        with pytest.raises(FetchError) as caught:
            fetcher.fetch(server.serve("/x", b"no", status=503, headers=clock))
        assert caught.value.retry_after == 300

    def test_may_want_to_be_left_alone_and_is(self, server: HttpServer, fetcher: Fetcher) -> None:
        with pytest.raises(FetchError):
            fetcher.fetch(server.serve("/x", b"no", status=503, headers={"Retry-After": "120"}))
        with pytest.raises(NotAsked) as caught:
            fetcher.fetch(server.serve("/y", b"<eml/>"))
        assert 119 < (caught.value.retry_after or 0) <= 120
        assert [request.path for request in server.requests] == ["/x"]

    def test_is_never_told_to_come_back_in_the_past(self) -> None:
        assert seconds_to_wait("Fri, 20 Nov 2026 00:00:00 GMT", datetime(2026, 11, 21, tzinfo=UTC)) == 0

    @pytest.mark.parametrize(
        ("status", "title", "headers"),
        [
            (403, "Just a moment...", {"Server": "cloudflare"}),
            (503, "Checking your browser before accessing", {}),
            (403, "", {"cf-mitigated": "challenge"}),
            (429, "Please solve this CAPTCHA", {}),
            (403, "Access denied", {"Server": "ddos-guard"}),
            (401, "Making sure you're not a bot!", {}),
        ],
    )
    def test_of_a_protection_service_comes_with_a_letter(
        self, server: HttpServer, fetcher: Fetcher, status: int, title: str, headers: dict[str, str]
    ) -> None:
        page = f"<!DOCTYPE html><html><title>{title}</title>".encode()
        url = server.serve("/x", page, status=status, headers=headers)
        finding = refused(fetcher, url, "http.blocked", transient=status in (429, 503))
        assert f'"{fetcher.user_agent}"' in finding.remedy
        assert url in finding.remedy

    def test_without_a_challenge_is_no_protection_service(self, server: HttpServer, fetcher: Fetcher) -> None:
        page = b"<html><title>403 Forbidden</title>"
        refused(fetcher, server.serve("/x", page, status=403, headers={"Server": "nginx"}), "http.status")
        refused(fetcher, server.serve("/y", page, status=404, headers={"Server": "cloudflare"}), "http.status")


class TestARedirect:
    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_is_followed(self, server: HttpServer, fetcher: Fetcher, status: int) -> None:
        server.serve("/folder/new.xml", b"<eml/>")
        url = server.redirect("/folder/old.xml", "new.xml", status=status)
        response, content = fetcher.fetch(url)
        assert (content, response.url) == (b"<eml/>", server.url("/folder/new.xml"))

    def test_leaves_nothing_of_its_own_page_in_the_document(self, server: HttpServer, fetcher: Fetcher) -> None:
        server.serve("/new", b"<eml/>")
        url = server.serve("/old", b"moved" * 50_000, status=301, headers={"Location": "/new"})
        assert fetcher.fetch(url)[1] == b"<eml/>"

    def test_may_lead_to_other_characters(self, server: HttpServer, fetcher: Fetcher) -> None:
        server.serve("/ä b.xml", b"<eml/>")
        location = "/ä b.xml".encode()
        url = server.route("/x", raw(b"HTTP/1.1 302 Found\r\nLocation: " + location + b"\r\n\r\n"))
        assert fetcher.fetch(url)[1] == b"<eml/>"

    def test_in_a_circle_ends(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        fetcher = fetcher_with(max_redirects=3)
        refused(fetcher, server.redirect("/loop", "/loop"), "http.redirects")
        assert len(server.requests) == 4

    def test_until_a_cookie_comes_back_ends_and_says_so(self, server: HttpServer, fetcher: Fetcher) -> None:
        headers = {"Location": "/x", "Set-Cookie": "session=1"}
        finding = refused(fetcher, server.serve("/x", b"", status=302, headers=headers), "http.redirects")
        assert finding.message.endswith("may wait for it; the harvester sends no cookies.")

    def test_the_caller_sees_each_redirect_and_may_refuse_it(
        self, server: HttpServer, fetcher_with: MakeFetcher
    ) -> None:
        server.serve("/c", b"<eml/>")
        server.redirect("/b", "/c")
        seen: list[str] = []

        async def look(url: str) -> None:
            seen.append(url)
            if url.endswith("/secret"):
                raise RuntimeError("refused by the caller")

        fetcher = fetcher_with()
        assert fetcher.fetch(server.redirect("/a", "/b"), on_redirect=look)[1] == b"<eml/>"
        assert seen == [server.url("/b"), server.url("/c")]
        with pytest.raises(RuntimeError, match="refused by the caller"):
            fetcher.fetch(server.redirect("/a", "/secret"), on_redirect=look)
        assert server.asked("/secret") == []

    def test_an_answer_has_its_type_and_all_its_links(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        head = (
            OK
            + b"Content-Type: text/html\r\nLink: </a>; rel=item\r\nlink: </b>; rel=item\r\nContent-Length: 2\r\n\r\nok"
        )
        response, _ = fetcher_with().fetch(server.route("/x", raw(head)))
        assert (response.media_type, response.link) == ("text/html", "</a>; rel=item, </b>; rel=item")

    def test_as_often_as_allowed_is_followed(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        server.serve("/c", b"<eml/>")
        server.redirect("/b", "/c")
        assert fetcher_with(max_redirects=2).fetch(server.redirect("/a", "/b"))[1] == b"<eml/>"
        refused(fetcher_with(max_redirects=1), server.url("/a"), "http.redirects")

    @pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x", "gopher://127.0.0.1/", "dict:x"])
    def test_to_something_else_than_a_web_server_is_refused(
        self, server: HttpServer, fetcher: Fetcher, location: str
    ) -> None:
        assert location in refused(fetcher, server.redirect("/x", location), "http.scheme").message

    def test_to_something_else_is_to_be_corrected_on_the_server(self, server: HttpServer, fetcher: Fetcher) -> None:
        remedy = "Correct the redirect on the web server: it must lead to an http:// or https:// URL."
        for location, rule in (("ftp://h/x", "http.scheme"), ("http://:80/", "http.bad-url")):
            assert refused(fetcher, server.redirect("/x", location), rule).remedy == remedy
        said = refused(fetcher, server.redirect("/x", "file:///srv/eml.xml"), "http.scheme").remedy
        assert said.startswith(remedy)
        assert "file: URL" in said

    def test_to_nowhere_is_refused(self, server: HttpServer, fetcher: Fetcher) -> None:
        for location in ("http://:80/", "//[/x", "http://[::1", "http://u:p@h:port/"):
            refused(fetcher, server.redirect("/x", location), "http.bad-url")
        refused(fetcher, server.serve("/y", b"", status=302), "http.status")

    @pytest.mark.parametrize(
        "host", ["127.0.0.2", "[::1]", "[::ffff:127.0.0.2]", "127.2", "0x7f000002", "10.255.255.1"]
    )
    def test_to_a_private_address_is_refused(self, server: HttpServer, fetcher: Fetcher, host: str) -> None:
        with HttpServer(host="127.0.0.2") as private:
            private.serve("/secret", b"<secret/>")
            url = server.redirect("/x", f"http://{host}:{private.port}/secret")
            assert url in refused(fetcher, url, "http.address-not-public").message
            assert private.connections == 0


class TestAnAddressThatIsNotPublic:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"])
    def test_is_not_connected_to(self, server: HttpServer, fetcher_with: MakeFetcher, host: str) -> None:
        url = server.url("/x", host=host)
        finding = refused(fetcher_with(allow_networks=()), url, "http.address-not-public")
        assert "allow_networks" in finding.remedy
        assert server.connections == 0

    def test_may_be_allowed_for_one_call(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        url = server.serve("/x", b"<eml/>")
        assert fetcher_with(allow_networks=()).fetch(url, reach=Reach((LOOPBACK,)))[1] == b"<eml/>"

    def test_is_not_reached_on_a_connection_that_another_site_opened(
        self, server: HttpServer, fetcher_with: MakeFetcher
    ) -> None:
        fetcher = fetcher_with(allow_networks=())
        url = server.serve("/x", b"<eml/>")
        fetcher.fetch(url, reach=Reach((LOOPBACK,)))
        refused(fetcher, url, "http.address-not-public")
        assert len(server.requests) == 1
        assert fetcher.fetch(url, reach=Reach((LOOPBACK,)))[1] == b"<eml/>"

    def test_that_was_refused_for_one_site_is_open_to_another(
        self, server: HttpServer, fetcher_with: MakeFetcher
    ) -> None:
        fetcher = fetcher_with(allow_networks=())
        url = server.serve("/x", b"<eml/>")
        refused(fetcher, url, "http.address-not-public")
        assert fetcher.fetch(url, reach=Reach((LOOPBACK,)))[1] == b"<eml/>"


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "gopher://127.0.0.1:1/x", "ldap://h/"])
def test_a_url_of_another_kind_is_refused(fetcher: Fetcher, url: str) -> None:
    assert url in refused(fetcher, url, "http.scheme").message


def test_a_text_that_is_no_url_is_refused_without_its_password(fetcher: Fetcher) -> None:
    assert "secret" not in refused(fetcher, "http://u:secret@bad host/", "http.bad-url").message


class TestCredentials:
    def test_in_a_url_are_used_for_its_own_host(self, server: HttpServer, fetcher: Fetcher) -> None:
        server.serve("/new", b"<eml/>")
        server.redirect("/old", "/new")
        response, _ = fetcher.fetch(server.url("/old", host="anna:s%3Acret@127.0.0.1"))
        sent = [request.headers.get("authorization") for request in server.requests]
        assert sent == ["Basic YW5uYTpzOmNyZXQ="] * 2
        assert "cret" not in response.url

    def test_may_have_any_characters(self, server: HttpServer, fetcher: Fetcher) -> None:
        server.serve("/x", b"<eml/>")
        fetcher.fetch(server.url("/x", host="ännä:pässwörd@127.0.0.1"))
        expected = base64.b64encode("ännä:pässwörd".encode()).decode()
        assert server.requests[0].headers["authorization"] == f"Basic {expected}"

    def test_are_not_sent_to_another_host_nor_with_the_next_request(
        self, server: HttpServer, fetcher_with: MakeFetcher
    ) -> None:
        with HttpServer(host="127.0.0.2") as other:
            server.redirect("/old", other.serve("/new", b"<eml/>"))
            fetcher = fetcher_with(allow_networks=[ip_network("127.0.0.0/8")])
            fetcher.fetch(server.url("/old", host="anna:secret@127.0.0.1"))
            fetcher.fetch(server.serve("/x", b"<eml/>"))
            assert "authorization" in server.asked("/old")[0].headers
            assert "authorization" not in other.requests[0].headers
            assert "authorization" not in server.asked("/x")[0].headers

    def test_are_never_shown(self, server: HttpServer, fetcher: Fetcher) -> None:
        server.redirect("/loop", server.url("/loop", host="anna:secret@127.0.0.1"))
        for path, rule in (("/missing", "http.status"), ("/loop", "http.redirects")):
            finding = refused(fetcher, server.url(path, host="anna:secret@127.0.0.1"), rule)
            assert "secret" not in repr(finding)

    def test_of_the_user_s_netrc_are_not_used(
        self, server: HttpServer, fetcher: Fetcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / ".netrc").write_text("machine 127.0.0.1 login anna password secret\n", encoding="utf-8")
        monkeypatch.setenv("HOME", str(tmp_path))
        fetcher.fetch(server.serve("/x", b"<eml/>"))
        assert "authorization" not in server.requests[0].headers


class TestConnections:
    def test_are_used_again(self, server: HttpServer, fetcher: Fetcher) -> None:
        url = server.serve("/x", b"<eml/>")
        for _ in range(10):
            fetcher.fetch(url)
        refused(fetcher, server.url("/missing"), "http.status")
        assert (server.connections, len(server.requests)) == (1, 11)

    def test_to_one_host_are_bounded_over_all_threads(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        def slowly(asking: Asking) -> None:
            asking.pause(0.2)
            asking.answer(b"<eml/>")

        fetcher = fetcher_with(connections_per_host=2)
        url = server.route("/x", slowly)
        with ThreadPoolExecutor(8) as threads:
            responses = [response for response, _ in threads.map(fetcher.fetch, [url] * 16)]
        assert server.most_at_once == server.connections == 2
        assert max(response.seconds for response in responses) < 1.2

    def test_that_others_hold_for_too_long_are_not_waited_for(
        self, server: HttpServer, fetcher_with: MakeFetcher
    ) -> None:
        fetcher = fetcher_with(connections_per_host=1, list_deadline=0.3, read_timeout=60, document_deadline=60)
        began, over = threading.Event(), threading.Event()

        def hold(asking: Asking) -> None:
            began.set()
            over.wait(60)
            asking.answer(b"<eml/>")

        with ThreadPoolExecutor(1) as thread:
            holding = thread.submit(fetcher.fetch, server.route("/hold", hold))
            assert began.wait(60)
            refused(fetcher, server.serve("/x", b"<eml/>"), "http.busy", transient=True)
            over.set()
            holding.result()
        assert fetcher.fetch(server.url("/x"))[1] == b"<eml/>"

    def test_to_one_host_do_not_hold_up_another(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        fetcher = fetcher_with(connections_per_host=1, allow_networks=[ip_network("127.0.0.0/8")])
        with HttpServer(host="127.0.0.2") as other:
            other.redirect("/x", server.serve("/x", b"<eml/>"))
            server.redirect("/y", other.url("/x"))
            with ThreadPoolExecutor(8) as threads:
                urls = [server.url("/y"), other.url("/x")] * 8
                assert [content for _, content in threads.map(fetcher.fetch, urls)] == [b"<eml/>"] * 16
            assert (server.most_at_once, other.most_at_once) == (1, 1)

    def test_are_closed_at_the_end(self, server: HttpServer) -> None:
        with Fetcher(HttpSettings(allow_networks=(LOOPBACK,)), name="x", administrator=None) as fetcher:
            fetcher.fetch(server.serve("/x", b"<eml/>"))
        wait_until(lambda: server.open_connections == 0)


class TestAProxy:
    def test_of_the_environment_is_not_used(
        self, server: HttpServer, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with HttpServer() as proxy:
            for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.url())
            assert fetcher.fetch(server.serve("/x", b"<eml/>"))[1] == b"<eml/>"
            assert proxy.connections == 0

    def test_of_the_settings_is_used_whatever_the_environment_says(
        self, fetcher_with: MakeFetcher, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("no_proxy", "*")
        with HttpServer() as proxy:
            proxy.serve("http://site.example/x", b"<eml/>")
            fetcher = fetcher_with(proxy=proxy.url(), allow_networks=())
            assert fetcher.fetch("http://site.example/x")[1] == b"<eml/>"

    @pytest.mark.parametrize("host", ["10.0.0.1", "127.1", "[::1]", "localhost"])
    def test_is_not_asked_for_addresses_that_are_not_public(self, fetcher_with: MakeFetcher, host: str) -> None:
        with HttpServer() as proxy:
            fetcher = fetcher_with(proxy=proxy.url(), allow_networks=())
            refused(fetcher, f"http://{host}/x", "http.address-not-public")
            assert proxy.connections == 0

    def test_that_does_not_work_is_not_the_site_s_fault(self, server: HttpServer, fetcher_with: MakeFetcher) -> None:
        with HttpServer() as proxy:
            proxy_url = proxy.url()
        fetcher = fetcher_with(proxy=proxy_url)
        assert "administrator" in refused(fetcher, "http://site.example/x", "http.proxy", transient=True).remedy

    @pytest.mark.parametrize("url", ["http://site.example/x", "https://site.example/x"])
    def test_that_wants_a_password_is_not_the_site_s_fault(self, fetcher_with: MakeFetcher, url: str) -> None:
        with HttpServer() as proxy:
            proxy.serve("http://site.example/x", b"", status=407)
            assert url in refused(fetcher_with(proxy=proxy.url()), url, "http.proxy", transient=True).message

    @pytest.mark.parametrize("status", [500, 502, 503, 504])
    def test_that_cannot_reach_the_site_is_not_at_fault(self, fetcher_with: MakeFetcher, status: int) -> None:
        with HttpServer() as proxy:
            proxy.serve("site.example:443", b"no such host", status=status)
            finding = refused(
                fetcher_with(proxy=proxy.url()), "https://site.example/x", "http.connection", transient=True
            )
            assert "the harvester's proxy could not connect to site.example" in finding.message
            assert str(status) in finding.message
            assert finding.remedy.startswith("The server may be down.")

    def test_gets_no_request_for_a_site_that_it_could_not_reach(self, fetcher_with: MakeFetcher) -> None:
        with HttpServer() as proxy:
            proxy.serve("site.example:443", b"", status=503)
            fetcher = fetcher_with(proxy=proxy.url(), retry_wait=3600, retry_wait_limit=3600)
            refused(fetcher, "https://site.example/x", "http.connection", transient=True)
            with pytest.raises(NotAsked, match="could not be reached 1 time in a row"):
                fetcher.fetch("https://site.example/y")
            assert len(proxy.requests) == 1

    def test_cannot_redirect_an_encrypted_request(self, fetcher_with: MakeFetcher) -> None:
        with HttpServer() as proxy:
            proxy.redirect("site.example:443", "http://portal.example/login")
            refused(fetcher_with(proxy=proxy.url()), "https://site.example/x", "http.proxy", transient=True)
            assert [request.path for request in proxy.requests] == ["site.example:443"]

    def test_may_be_encrypted(self, authority: trustme.CA, ca_file: Path, fetcher_with: MakeFetcher) -> None:
        with tls_server(authority.issue_cert("127.0.0.1")) as proxy:
            proxy.serve("http://site.example/x", b"<eml/>")
            fetcher = fetcher_with(proxy=proxy.url(), ca_file=ca_file)
            assert fetcher.fetch("http://site.example/x")[1] == b"<eml/>"

    @pytest.mark.parametrize("url", ["http://site.example/x", "https://site.example/x"])
    def test_without_a_trusted_certificate_is_at_fault_itself(
        self, authority: trustme.CA, fetcher_with: MakeFetcher, url: str
    ) -> None:
        with tls_server(authority.issue_cert("127.0.0.1")) as proxy:
            finding = refused(fetcher_with(proxy=proxy.url()), url, "http.proxy", transient=True)
            assert "unable to get local issuer certificate" in finding.message


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    return file


def tls_server(certificate: trustme.LeafCert) -> HttpServer:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    server = HttpServer(tls=context)
    server.serve("/x", b"<eml/>")
    return server


class TestACertificate:
    def test_of_an_authority_in_the_settings_is_accepted(
        self, authority: trustme.CA, ca_file: Path, fetcher_with: MakeFetcher
    ) -> None:
        with tls_server(authority.issue_cert("127.0.0.1")) as server:
            fetcher = fetcher_with(ca_file=ca_file)
            assert [fetcher.fetch(server.url("/x"))[1] for _ in range(3)] == [b"<eml/>"] * 3
            assert server.connections == 1

    def test_of_an_unknown_authority_is_not(self, authority: trustme.CA, fetcher: Fetcher) -> None:
        with tls_server(authority.issue_cert("127.0.0.1")) as server:
            finding = refused(fetcher, server.url("/x"), "http.tls")
            assert "authority that this harvester does not trust" in finding.message
            assert "send the certificate of the authority to the harvester's administrator" in finding.remedy
            assert server.requests == []

    def test_for_another_host_is_not(self, authority: trustme.CA, ca_file: Path, fetcher_with: MakeFetcher) -> None:
        with tls_server(authority.issue_cert("example.org")) as server:
            finding = refused(fetcher_with(ca_file=ca_file), server.url("/x"), "http.tls")
            assert "for another host name" in finding.message

    def test_that_has_expired_is_not(self, authority: trustme.CA, ca_file: Path, fetcher_with: MakeFetcher) -> None:
        past = datetime.now(UTC) - timedelta(days=1)
        expired = authority.issue_cert("127.0.0.1", not_before=past - timedelta(days=9), not_after=past)
        with tls_server(expired) as server:
            assert "it has expired" in refused(fetcher_with(ca_file=ca_file), server.url("/x"), "http.tls").message

    def test_that_is_not_valid_yet_may_come_from_a_wrong_clock(
        self, authority: trustme.CA, ca_file: Path, fetcher_with: MakeFetcher
    ) -> None:
        """A machine without a clock of its own starts in 1970. Then the site has nothing to correct."""
        early = authority.issue_cert("127.0.0.1", not_before=datetime.now(UTC) + timedelta(days=1))
        with tls_server(early) as server:
            finding = refused(fetcher_with(ca_file=ca_file), server.url("/x"), "http.tls")
            assert "it is not valid yet, or the harvester's clock is wrong." in finding.message

    def test_is_needed_by_a_server_of_https(self, server: HttpServer, fetcher: Fetcher) -> None:
        finding = refused(fetcher, server.url("/x").replace("http:", "https:"), "http.tls")
        port = server.url("/x").rpartition(":")[2].partition("/")[0]
        assert f"127.0.0.1 answers without encryption (TLS) on port {port}" in finding.message
        assert "write http:// in place of https://" in finding.remedy

    def test_file_that_cannot_be_used_is_told_at_the_start(self, tmp_path: Path) -> None:
        for content in (None, "not a certificate"):
            file = tmp_path / "ca.pem"
            if content:
                file.write_text(content, encoding="utf-8")
            with pytest.raises(SettingsError, match=r"ca\.pem .*ca_file"):
                Fetcher(HttpSettings(ca_file=file), name="x", administrator=None)


GZIPPED = gzip.compress(b"<eml/>" * 50, mtime=0)
ANSWERS = [
    OK + b"Content-Length: 6\r\n\r\n<eml/>",
    OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n",
    OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(GZIPPED), GZIPPED),
    b"HTTP/1.1 302 Found\r\nLocation: ?a=b\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 503 Busy\r\nRetry-After: Fri, 20 Nov 2026 10:00:00 GMT\r\n\r\n<html><title>x</title>",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=x\r\nSet-Cookie: a=b\r\n\r\nno",
]


@pytest.mark.slow
@settings(max_examples=150)
@given(st.sampled_from(ANSWERS), st.integers(0, 400), st.integers(0, 20), st.binary(max_size=8))
def test_whatever_is_wrong_with_an_answer_only_a_finding_comes_out(
    answer: bytes, place: int, removed: int, added: bytes
) -> None:
    broken = answer[:place] + added + answer[place + removed :]
    http = HttpSettings(allow_networks=(LOOPBACK,), max_document_bytes=LIMIT, read_timeout=1, document_deadline=2)
    with HttpServer() as server, Fetcher(http, name="x", administrator=None) as fetcher:
        finding = None
        try:
            response, content = fetcher.fetch(server.route("/x", raw(broken)))
        except FetchError as error:
            (finding,) = error.findings
        else:
            assert response.size == len(content) > 0
    assert finding is None or (finding.rule in RULES and clean(finding.message).splitlines() == [finding.message])


CURL_CODES = sorted({getattr(pycurl, name) for name in dir(pycurl) if name.startswith("E_")} | set(range(130)))


@pytest.mark.slow
@pytest.mark.parametrize("proxy", ["", "http://proxy.example/"])
@pytest.mark.parametrize("code", [code for code in CURL_CODES if code > 0])
def test_every_error_of_libcurl_becomes_a_finding(code: int, proxy: str) -> None:
    given = Circumstances(HttpSettings(proxy=proxy), "metaharvest", "http://example.org/x", 120.0)
    for status in (0, 200):
        exchange = Exchange(parse_url("http://example.org/x"), io.BytesIO(), Limits(120.0, 1000), ())
        exchange.code, exchange.words, exchange.status, exchange.seconds = code, "words of libcurl.", status, 0.5
        error = failure(exchange, given)
        assert isinstance(error, FetchError)
        assert error.findings[0].rule in RULES
        assert error.findings[0].rule.startswith("http.")
        assert "http://example.org/x" in error.findings[0].message
        assert error.seconds == 0.5


class TestAHostNameWithMoreThanOneAnswer:
    """DNS rebinding: the address that is judged is the one that is connected to, at each connection anew.

    127.0.0.1 stands for a public address, 127.0.0.2 for one inside; libcurl's own table stands for the name server.
    """

    HOST = "rebinding.example"

    @pytest.fixture
    def server(self) -> Iterator[HttpServer]:
        """At a port that no connection of another test can have at the other address."""
        with HttpServer(port=free_port("127.0.0.1", "127.0.0.2")) as running:
            yield running

    @pytest.fixture
    def answers(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, str], None]:
        """Sets what the name server says from now on."""
        said: list[str] = []

        class Resolving(pycurl.Curl):
            """A libcurl handle that asks the name server anew for each request."""

            def setopt(self, option: int, value: Any | None, *, use_memoryview: bool = False) -> None:
                super().setopt(option, value)
                if option == pycurl.URL:
                    super().setopt(pycurl.RESOLVE, said)

        monkeypatch.setattr(pycurl, "Curl", Resolving)

        def say(port: int, addresses: str) -> None:
            said[:] = [f"-{self.HOST}:{port}", f"{self.HOST}:{port}:{addresses}"]

        return say

    def test_is_refused_when_the_second_look_up_leads_inside(
        self, server: HttpServer, fetcher_with: MakeFetcher, answers: Callable[[int, str], None]
    ) -> None:
        server.route("/x", raw(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<eml/>"))  # and closes the connection
        with inside(server.port) as private:
            fetcher, url = fetcher_with(allow_networks=[LOOPBACK]), server.url("/x", host=self.HOST)
            answers(server.port, "127.0.0.1")
            assert fetcher.fetch(url)[1] == b"<eml/>"
            answers(server.port, "127.0.0.2")
            assert "127.0.0.2" in refused(fetcher, url, "http.address-not-public").message
            answers(server.port, "127.0.0.1")
            assert fetcher.fetch(url)[1] == b"<eml/>"
            assert private.connections == 0

    def test_is_refused_when_a_redirect_to_itself_leads_inside(
        self, server: HttpServer, fetcher_with: MakeFetcher, answers: Callable[[int, str], None]
    ) -> None:
        def turn(asking: Asking) -> None:
            answers(server.port, "127.0.0.2")
            asking.end()
            asking.answer(b"", 302, {"Location": "/secret", "Connection": "close"})

        server.route("/x", turn)
        with inside(server.port) as private:
            private.serve("/secret", b"<secret/>")
            answers(server.port, "127.0.0.1")
            refused(
                fetcher_with(allow_networks=[LOOPBACK]), server.url("/x", host=self.HOST), "http.address-not-public"
            )
            assert (len(server.requests), private.connections) == (1, 0)

    @pytest.mark.parametrize(
        "addresses", ["127.0.0.2,127.0.0.1", "127.0.0.1,127.0.0.2", "[::ffff:127.0.0.2],127.0.0.1"]
    )
    def test_is_asked_only_at_the_addresses_that_may_be(
        self,
        server: HttpServer,
        fetcher_with: MakeFetcher,
        answers: Callable[[int, str], None],
        addresses: str,
    ) -> None:
        server.serve("/x", b"<eml/>")
        with inside(server.port) as private:
            answers(server.port, addresses)
            fetcher = fetcher_with(allow_networks=[LOOPBACK])
            assert fetcher.fetch(server.url("/x", host=self.HOST))[1] == b"<eml/>"
            assert private.connections == 0


def inside(port: int) -> HttpServer:
    """A server on 127.0.0.2, at the same port."""
    return HttpServer(host="127.0.0.2", port=port)
