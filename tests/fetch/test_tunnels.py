"""Proxies that open a tunnel to the server of a site: what is the server's, what is theirs."""

from __future__ import annotations

import socket
import socketserver
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path

import pytest
import trustme

from metaharvest.config.settings import HttpSettings
from metaharvest.errors import FetchError
from support.fetching import WaitingFetcher as Fetcher
from support.tcp_servers import serving

URL = "https://site.example/x"


@contextmanager
def proxy(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """Host and port of a proxy that answers each connection so, and closes it."""

    class Conversation(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            answer(self.request)

    with serving(Conversation) as port:
        yield f"127.0.0.1:{port}"


def failure(proxy_url: str, ca_file: Path | None = None) -> FetchError:
    http = HttpSettings(
        proxy=proxy_url, ca_file=ca_file, allow_networks=(ip_network("127.0.0.1/32"),), connect_timeout=1, retries=0
    )
    with Fetcher(http, name="x", administrator=None) as fetcher, pytest.raises(FetchError) as caught:
        fetcher.fetch(URL)
    return caught.value


def open_tunnel(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")


def test_a_server_that_closes_a_tunnel_without_an_answer_has_sent_no_headers(tmp_path: Path) -> None:
    authority, tls = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("site.example").configure_cert(tls)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    def close(connection: socket.socket) -> None:
        open_tunnel(connection)
        with tls.wrap_socket(connection, server_side=True) as server:
            server.recv(4096)
            server.unwrap()

    with proxy(close) as there:
        error = failure(f"http://{there}", tmp_path / "ca.pem")
    assert [finding.rule for finding in error.findings] == ["http.connection"]
    assert (error.status, error.counted) == (0, False)


def test_a_server_that_is_silent_at_the_end_of_a_tunnel_was_not_reached() -> None:
    def wait(connection: socket.socket) -> None:
        open_tunnel(connection)
        while connection.recv(4096):
            pass

    with proxy(wait) as there:
        error = failure(f"http://{there}")
    assert str(error) == f"{URL}: no connection to site.example within 1 second."
    assert error.counted


def test_a_tunnel_that_closes_at_once_is_a_temporary_failure() -> None:
    with proxy(open_tunnel) as there:
        error = failure(f"http://{there}")
    assert [finding.rule for finding in error.findings] == ["http.connection"]
    assert error.transient


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        *((code, "http.connection") for code in (1, 3, 4, 5, 6)),
        *((code, "http.proxy") for code in (2, 7, 8)),
    ],
)
def test_a_socks_proxy_says_whether_the_server_cannot_be_reached(reply: int, rule: str) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"\5\0")
        connection.recv(4096)
        connection.sendall(bytes([5, reply, 0, 1, *(0,) * 6]))

    with proxy(answer) as there:
        error = failure(f"socks5h://{there}")
    assert ([finding.rule for finding in error.findings], error.transient, error.counted) == ([rule], True, True)
    assert ("the harvester's proxy could not connect to site.example" in str(error)) == (rule == "http.connection")


def test_a_socks4_proxy_that_fails_has_not_reached_the_server() -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(bytes([0, 91, *(0,) * 6]))

    with proxy(answer) as there:
        error = failure(f"socks4a://{there}")
    assert [finding.rule for finding in error.findings] == ["http.connection"]
