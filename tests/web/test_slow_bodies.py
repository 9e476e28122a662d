"""A body that does not arrive in time: the request gets an answer, and its connection is closed."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from metaharvest.web import bodies as slow_bodies
from support.console import served_console
from support.databases import on_one_database
from support.harvester import Harvester

pytestmark = on_one_database


def test_a_slow_body_gets_an_answer_and_others_are_served(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_bodies, "BODY_SECONDS", 0.2)
    with served_console(harvester) as console:
        for path in ("/console/login", "/api/v1/harvests", "/oai"):
            answer = slow_answer(console.url, path)
            assert answer.startswith(b"HTTP/1.1 408 "), (path, answer)
            assert b"content-security-policy" in answer.lower()
            assert b"did not arrive within 0.2 seconds. Please send it again.\n" in answer
        assert console.visitor().open("/console/login").status == 200


def slow_answer(url: str, path: str) -> bytes:
    """The whole answer to a request with a tenth of its body, until the server closes the connection."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        connection.sendall(f"{head}Content-Length: 100\r\n\r\naddress=ab".encode())
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    return answer
