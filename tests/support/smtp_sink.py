"""A real SMTP server on loopback that keeps what it receives, and refuses, hangs up or demands a login on purpose."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import SMTP as SMTP_POLICY
from types import TracebackType
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from support.ports import free_port


@dataclass(frozen=True, slots=True)
class Received:
    """One message as it came over the wire."""

    sender: str
    recipients: tuple[str, ...]
    content: bytes

    @property
    def message(self) -> EmailMessage:
        return BytesParser(policy=SMTP_POLICY).parsebytes(self.content)


class SmtpSink:
    """A mail server as a context manager, whose faults tests change while it runs.

    `refuses` is the answer to everybody at a command ({"RCPT": "550 no"}): a relay that has a bad hour.
    `answers` are the answers to chosen recipients ("550 no such user"), `data_answers` those to the messages for them,
    `hang_up` is the command (MAIL, RCPT, DATA) at which the connection is cut, `hang_ups` how often that happens,
    `hang_up_after` how many messages are taken before.
    `cut_for` are recipients at whose naming it is always cut, `session_limit` is the number of messages after which a
    session is closed with 421 (0: never).
    `accepted` is called when a message has been taken, before the client gets the answer.
    `security` is none, starttls or tls; `login` the one user name and password that are accepted; `utf8`: addresses
    beyond ASCII are.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        security: str = "none",
        tls: ssl.SSLContext | None = None,
        login: tuple[str, str] | None = None,
        utf8: bool = False,
    ) -> None:
        self.port = port or free_port()
        self.messages: list[Received] = []
        self.sessions = 0
        self.refuses: dict[str, str] = {}
        self.answers: dict[str, str] = {}
        self.data_answers: dict[str, str] = {}
        self.cut_for: set[str] = set()
        self.session_limit = 0
        self.hang_up = ""
        self.hang_ups = 0
        self.hang_up_after = 0
        self.accepted: Callable[[], None] | None = None
        self._login = login
        options: dict[str, Any] = {"decode_data": False, "enable_SMTPUTF8": utf8}
        if security == "starttls":
            options.update(tls_context=tls, require_starttls=True)
        if login:
            options.update(authenticator=self._authenticate, auth_required=True)
        self._controller = Controller(
            self, hostname="127.0.0.1", port=self.port, ssl_context=tls if security == "tls" else None, **options
        )

    def __enter__(self) -> SmtpSink:
        self._controller.start()
        self.sessions = 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._controller.stop()

    def to(self, recipient: str) -> list[EmailMessage]:
        """The messages that this recipient got."""
        return [received.message for received in self.messages if recipient in received.recipients]

    async def handle_EHLO(  # noqa: N802 - the name is aiosmtpd's
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        self.sessions += 1
        session.host_name = hostname
        return responses

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self._cut(server, "MAIL"):
            return "421 closing"
        if "MAIL" in self.refuses:
            return self.refuses["MAIL"]
        session.taken = getattr(session, "taken", 0) + 1  # type: ignore[attr-defined]
        if self.session_limit and session.taken > self.session_limit:  # type: ignore[attr-defined]
            return "421 4.7.0 too many messages in this session"
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self._cut(server, "RCPT"):
            return "421 closing"
        if address in self.cut_for:
            _break_off(server)
            return "421 closing"
        if "RCPT" in self.refuses:
            return self.refuses["RCPT"]
        if address in self.answers:
            return self.answers[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        if self._cut(server, "DATA"):
            return "421 closing"
        if "DATA" in self.refuses:
            return self.refuses["DATA"]
        for address in envelope.rcpt_tos:
            if address in self.data_answers:
                return self.data_answers[address]
        content = envelope.content if isinstance(envelope.content, bytes) else b""
        self.messages.append(Received(envelope.mail_from or "", tuple(envelope.rcpt_tos), content))
        if self.accepted:
            self.accepted()
        return "250 kept"

    def _cut(self, server: SMTP, command: str) -> bool:
        if self.hang_up != command or self.hang_ups <= 0 or len(self.messages) < self.hang_up_after:
            return False
        self.hang_ups -= 1
        _break_off(server)
        return True

    def _authenticate(
        self, server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: LoginPassword
    ) -> AuthResult:
        given = (data.login.decode(), data.password.decode())
        return AuthResult(success=given == self._login, handled=False)


def _break_off(server: SMTP) -> None:
    assert isinstance(server.transport, asyncio.Transport)
    server.transport.abort()
