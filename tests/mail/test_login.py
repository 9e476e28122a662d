"""A login that fails: the sentence names the fault of the password, of the mail server, or of its settings."""

from __future__ import annotations

import socketserver
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from metaharvest.config.settings import Settings
from metaharvest.mail.delivery import Letter
from metaharvest.mail.smtp import SmtpServer
from support.tcp_servers import serving

LETTER = Letter("<1@example.org>", b"Subject: a\r\n\r\nb\r\n", datetime(2026, 11, 20, tzinfo=UTC), ("a@example.org",))


@contextmanager
def mail_server(mechanisms: str, answer: str) -> Iterator[int]:
    """A server that offers these ways to log in, and answers AUTH with `answer`; `{sent}` in it is the line of AUTH."""

    class Conversation(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"220 mx.example.org\r\n")
            while line := self.rfile.readline():
                sent = line.decode().strip()
                said = answer.format(sent=sent) if sent.startswith("AUTH") else "250 ok"
                said = f"250-mx.example.org\r\n250 AUTH {mechanisms}" if sent.lower().startswith("ehlo") else said
                self.wfile.write(f"{said}\r\n".encode())

    with serving(Conversation) as port:
        yield port


def said_of(port: int, monkeypatch: pytest.MonkeyPatch, password: str = "open-sesame", **mail: Any) -> str:
    monkeypatch.setenv("MAIL_PASSWORD", password)
    login = {"username": "harvester", "password": "env:MAIL_PASSWORD", "sender": "h@example.org", "timeout": 3, **mail}
    settings = Settings.model_validate({"mail": {"backend": "smtp", "host": "127.0.0.1", "port": port, **login}})
    [attempt] = SmtpServer(settings).send([LETTER])
    assert (attempt.status, attempt.stop) == ("queued", True)
    return (attempt.error or "").partition(") ")[2]


# The sentence is at https://learn.microsoft.com/exchange/clients-and-mobile-in-exchange-online/authenticated-client-smtp-submission
SWITCHED_OFF = "535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant."


@pytest.mark.parametrize(
    ("mechanisms", "answer", "sentence"),
    [
        ("PLAIN", SWITCHED_OFF, f"does not accept the user name and password of the section [mail]: {SWITCHED_OFF}"),
        ("LOGIN", "454 4.7.0 Temporary authentication failure", "answered 454: 4.7.0 Temporary authentication failure"),
        ("XOAUTH2", "", "offers no login with a user name and a password (CRAM-MD5, PLAIN, LOGIN)."),
        ("PLAIN", "500 what is {sent}", "does not accept the user name and password of the section [mail]: "
         "500 what is AUTH PLAIN (not shown)"),
    ],
)  # fmt: skip
def test_the_sentence_has_the_reason_of_the_server(
    monkeypatch: pytest.MonkeyPatch, mechanisms: str, answer: str, sentence: str
) -> None:
    with mail_server(mechanisms, answer) as port:
        assert said_of(port, monkeypatch) == sentence


def test_a_password_with_letters_beyond_ascii_is_named_as_the_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server("PLAIN", "235 ok") as port:
        said = said_of(port, monkeypatch, "offen-süß")
    assert said == "takes mail.username and mail.password in ASCII characters only."
