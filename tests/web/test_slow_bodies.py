"""A body that does not arrive in time: the request gets an answer, and its connection is closed."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import pytest

from metaharvest.database.engine import writers
from metaharvest.database.models import HarvestRun
from metaharvest.services import accounts
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


@pytest.mark.parametrize("goes_away", [True, False])
def test_a_call_whose_body_does_not_arrive_whole_is_not_carried_out(
    harvester: Harvester, monkeypatch: pytest.MonkeyPatch, goes_away: bool
) -> None:
    harvester.add_site("elm", "http://127.0.0.1:1/elm.xml")
    monkeypatch.setattr(slow_bodies, "BODY_SECONDS", 60 if goes_away else 0.2)
    with served_console(harvester) as console:
        now = console.harvester.now()
        moments = {"started_at": now, "heartbeat_at": now, "harvest_date": now.date()}
        with writers(harvester.engine).begin() as session:
            session.add(HarvestRun(run_id=7, status="running", host="h", pid=1, **moments))
        secret = accounts.add_key(console.harvester, "portal", "steward", "test", 30)
        key = f"Authorization: Bearer {secret}\r\n"
        answer = slow_answer(console.url, "/api/v1/stops", header=key, goes_away=goes_away)
        assert answer[:13] == (b"" if goes_away else b"HTTP/1.1 408 ")
    # The server has ended, and all calls with it.
    assert harvester.rows("SELECT kind FROM harvest_request") == []
    assert harvester.rows("SELECT action FROM audit_entry WHERE via = 'api'") == []


def slow_answer(url: str, path: str, *, header: str = "", goes_away: bool = False) -> bytes:
    """The whole answer to a request with a tenth of its body, until the server closes the connection."""
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        connection.sendall(f"{head}{header}Content-Length: 100\r\n\r\naddress=ab".encode())
        if goes_away:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        while part := connection.recv(65_536):
            answer += part
    return answer
