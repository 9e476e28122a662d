"""Servers with right plain answers, and empty or damaged compressed ones."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from ipaddress import ip_network

import pytest

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError
from support.fetching import WaitingFetcher as Fetcher
from support.http_server import Asking, HttpServer

GZIP = {"Content-Encoding": "gzip"}
WHOLE = gzip.compress(b"<eml>whole</eml>" * 20, mtime=0)
BROKEN = {
    "empty": (b"", GZIP),
    "empty-without-a-word": (b"", {}),
    "gzip-of-nothing": (gzip.compress(b""), GZIP),
    "not-gzip": (b"<eml/>", GZIP),
    "damaged": (WHOLE[:-8] + b"badcheck", GZIP),
    "cut-off": (WHOLE[:-12], GZIP),
    "unknown": (b"\x0b\x02\x80abc\x03", {"Content-Encoding": "br"}),
}


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer() as made:
        yield made


@pytest.fixture
def fetcher() -> Iterator[Fetcher]:
    http = HttpSettings(allow_networks=(ip_network("127.0.0.0/8"),), retry_wait=0)
    with Fetcher(http, name="x", administrator=None) as made:
        yield made


def serve(server: HttpServer, path: str, broken: tuple[bytes, dict[str, str]], plain: bytes) -> str:
    """An answer `broken` to requests that accept compression, and `plain` to others."""

    def answer(asking: Asking) -> None:
        body, headers = broken if "gzip" in asking.headers["Accept-Encoding"] else (plain, {})
        asking.answer(body, 200, headers)

    return server.route(path, answer)


def codings(server: HttpServer) -> list[str]:
    return [request.headers["accept-encoding"] for request in server.requests]


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_the_answer_is_asked_for_without_compression_and_the_host_from_then_on(
    server: HttpServer, fetcher: Fetcher, broken: tuple[bytes, dict[str, str]]
) -> None:
    response, content = fetcher.fetch(serve(server, "/a.xml", broken, b"<eml>a</eml>"))
    assert (content, response.size) == (b"<eml>a</eml>", 12)
    file = io.BytesIO()
    fetcher.fetch_to(serve(server, "/list.xml", broken, b"<list/>"), file)
    assert file.getvalue() == b"<list/>"
    assert codings(server) == ["gzip", "identity", "identity"]


def test_the_repetition_without_compression_is_no_redirect() -> None:
    http = HttpSettings(allow_networks=(ip_network("127.0.0.0/8"),), retry_wait=0, max_redirects=1)
    with HttpServer() as server, Fetcher(http, name="x", administrator=None) as fetcher:
        there = serve(server, "/b.xml", BROKEN["damaged"], b"<eml>b</eml>")
        here = server.route("/a.xml", lambda asking: asking.answer(b"", 302, {"Location": there}))
        assert fetcher.fetch(here)[1] == b"<eml>b</eml>"
        assert codings(server) == ["gzip", "gzip", "identity"]


def test_a_list_is_asked_for_without_compression(server: HttpServer, fetcher: Fetcher) -> None:
    file = io.BytesIO()
    fetcher.fetch_to(serve(server, "/list.xml", BROKEN["damaged"], b"<list/>"), file)
    assert file.getvalue() == b"<list/>"


def test_an_answer_that_is_empty_either_way_is_asked_for_twice_and_costs_no_compression(
    server: HttpServer, fetcher: Fetcher
) -> None:
    with pytest.raises(FetchError) as caught:
        fetcher.fetch(server.serve("/empty.xml", b""))
    assert caught.value.findings[0].rule == "http.empty"
    fetcher.fetch(server.serve("/a.xml", b"<eml/>"))
    assert codings(server) == ["gzip", "identity", "gzip"]
    with pytest.raises(FetchError):
        fetcher.fetch(server.url("/empty.xml"))
    assert codings(server)[3:] == ["gzip"]
