"""Mail servers that never end an answer: the run goes on, and its mail waits for the next one."""

from __future__ import annotations

import itertools
import socketserver
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from metaharvest.config.settings import Settings
from metaharvest.mail import outbox
from metaharvest.mail.delivery import Letter
from metaharvest.mail.smtp import SmtpServer
from support.tcp_servers import serving

LETTER = Letter("<1@example.org>", b"Subject: a\r\n\r\nb\r\n", datetime(2026, 11, 20, tzinfo=UTC), ("a@example.org",))
COMMANDS = ("greeting", "EHLO", "MAIL", "RCPT", "DATA", ".")
ANSWERS = {"greeting": b"220 a\r\n", "EHLO": b"250-a\r\n250 SIZE\r\n", "DATA": b"354 go on\r\n"}


@contextmanager
def mail_server(hostile: str, piece: bytes, pause: float) -> Iterator[int]:
    """A server that answers one command with this piece without an end, with pauses. Returns its port."""
    closing = threading.Event()

    class Conversation(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                self._say("greeting")
                while line := self.rfile.readline():
                    command = line.strip().decode().partition(" ")[0].upper().partition(":")[0]
                    if command in ANSWERS or command in COMMANDS or command in ("QUIT", "RSET"):
                        self._say(command)

        def _say(self, command: str) -> None:
            if command != hostile:
                self.wfile.write(ANSWERS.get(command, b"250 ok\r\n"))
                return
            for _ in itertools.count():
                self.wfile.write(piece)
                if pause and closing.wait(pause):
                    return

    with serving(Conversation) as port:
        yield port
        closing.set()


def settings_for(port: int, **mail: Any) -> Settings:
    values = {"sender": "h@example.org", "backend": "smtp", "host": "127.0.0.1", "port": port, "timeout": 1, **mail}
    return Settings.model_validate({"mail": values})


@pytest.mark.parametrize("command", COMMANDS)
def test_an_answer_of_lines_without_end_is_broken_off(command: str) -> None:
    tracemalloc.start()
    with mail_server(command, b"250-" + b"x" * 500 + b"\r\n", 0) as port:
        [attempt] = SmtpServer(settings_for(port, timeout=20)).send([LETTER])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert attempt.status == "queued"
    assert "gave an answer of more than 65,536 bytes" in (attempt.error or "")
    assert peak < 20_000_000


@pytest.mark.parametrize("command", ["greeting", "EHLO", "RCPT"])
@pytest.mark.parametrize("piece", [b"2", b"250-a\r\n"])
def test_an_answer_that_drips_is_broken_off_in_time(command: str, piece: bytes) -> None:
    began = time.monotonic()
    with mail_server(command, piece, 0.1) as port:
        [attempt] = SmtpServer(settings_for(port)).send([LETTER])
    assert (attempt.status, time.monotonic() - began < 15) == ("queued", True)
    assert "did not answer within 1 seconds" in (attempt.error or "")


def test_a_line_without_end_is_broken_off() -> None:
    with mail_server("RCPT", b"250 " + b"x" * 60_000, 0) as port:
        [attempt] = SmtpServer(settings_for(port, timeout=20)).send([LETTER])
    assert attempt.status == "queued"


@pytest.mark.parametrize("command", ["greeting", "EHLO"])
def test_doctor_reports_it_in_a_sentence(command: str) -> None:
    with mail_server(command, b"250-x\r\n", 0) as port:
        assert "gave an answer of more than 65,536 bytes" in (SmtpServer(settings_for(port, timeout=20)).probe() or "")


def test_a_round_ends_after_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:

    assert not outbox._TimeLeft(lambda: False).is_over()
    monkeypatch.setattr(outbox, "_AFTER_STOP", 0.0)
    assert outbox._TimeLeft(lambda: True).is_over()
