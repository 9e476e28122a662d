"""Hands messages over to a mail server by SMTP. Every error of the library becomes a sentence here.

outbox.py marks deliveries in the database. Standards: RFC 5321 (a 4xx answer is transient, a 5xx one is permanent), RFC
3207 (STARTTLS), RFC 4954 (AUTH), RFC 6531 (SMTPUTF8).

`smtplib` waits for each part of an answer, and reads as many lines as come: a server that never ends its answer took
all memory, or held the run for ever. Its clients get limits here: the length of an answer, and the time until it is
whole.
"""

from __future__ import annotations

import base64
import smtplib
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from metaharvest.config.paths import at_home
from metaharvest.config.secret_references import resolve_secret
from metaharvest.config.settings import MailSettings, Settings
from metaharvest.config.trust_store import BadAuthorities, read_authorities
from metaharvest.errors import SettingsError
from metaharvest.mail.delivery import Attempt, Letter
from metaharvest.mail.message import ascii_address
from metaharvest.text import one_line

_CORRECTABLE = (530, 534, 535, 538)
"""Answers about our own login, not about the recipient: an operator can correct that, so the message waits."""

_CLOSING = 421

_TLS_PORT = 465


class SmtpServer:
    """A mail server. One session serves many messages and is opened again if the server closes it.

    `is_hurried`: true if a person waits, or the run must end. Then the answer to a message must come within `timeout`.
    It is called each second.
    """

    at_once = 1

    def __init__(self, settings: Settings, is_hurried: Callable[[], bool] = lambda: True) -> None:
        self._is_hurried = is_hurried
        self._settings: MailSettings = settings.mail
        self._folder = settings.folder
        self._where = f"{settings.mail.host}, port {settings.mail.port}"
        self._session: SmtpClient | SmtpTlsClient | None = None
        self._secret = ""
        self._failures = 0

    def parcels(self, recipients: Sequence[str]) -> list[tuple[str, ...]]:
        """A message for each recipient, so that each has an answer of its own."""
        return [(recipient,) for recipient in recipients]

    def send(self, letters: Sequence[Letter]) -> list[Attempt]:
        """One mail transaction, for one recipient."""
        [letter] = letters
        try:
            attempt = self._transaction(letter, letter.recipients[0])
        except SettingsError as error:
            return [Attempt("queued", one_line(str(error), 1000), stop=True)]
        except (smtplib.SMTPException, OSError, ValueError) as error:
            was_open, sentence = self._session is not None, self._sentence(error)
            self._drop()
            self._failures += 1
            return [Attempt("queued", sentence, stop=not was_open or self._failures > 1)]
        self._failures = 0
        return [attempt]

    def probe(self) -> str | None:
        """Check that the server answers, speaks TLS as configured and accepts the login."""
        try:
            self._connected()
        except SettingsError as error:
            return one_line(str(error), 1000)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            return self._sentence(error)
        return None

    def close(self) -> None:
        """End the session, if the server still answers."""
        if self._session is not None:
            with suppress(smtplib.SMTPException, OSError):
                self._session.quit()
        self._drop()

    def _drop(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session = None

    def _transaction(self, letter: Letter, recipient: str) -> Attempt:
        address = ascii_address(recipient)
        if not address.isascii() and not self._connected().has_extn("smtputf8"):
            why = f"and the mail server ({self._where}) does not take such addresses (SMTPUTF8)"
            said = f"{recipient} has letters beyond ASCII, {why}: use another address of this person."
            return Attempt("refused", said)
        session, code, text = self._begin(letter, address)
        if code != 250:
            # 552: the message is too long for this server. Everything else is about us, not about the recipient.
            return self._failed("refused" if code == 552 else "queued", code, text)
        code, text = session.rcpt(address)
        if code not in (250, 251):
            return replace(self._failed(_lasting(code), code, text), put_off=400 <= code < 500)
        session.patience = lambda: 0.0 if self._is_hurried() else _AFTER_MESSAGE
        try:
            code, text = session.data(letter.content)
        except smtplib.SMTPDataError as error:
            code, text = error.smtp_code, _as_bytes(error.smtp_error)
        session.patience = None
        return Attempt("sent") if 200 <= code < 300 else self._failed(_lasting(code), code, text)

    def _connected(self) -> SmtpClient | SmtpTlsClient:
        self._session = session = self._session or self._open()
        return session

    def _begin(self, letter: Letter, address: str) -> tuple[SmtpClient | SmtpTlsClient, int, bytes]:
        """Open the transaction, in a new session if the server has closed the one that served the last message."""
        if self._session is not None:
            with suppress(smtplib.SMTPServerDisconnected, OSError):
                code, text = self._mail_from(self._session, letter, address)
                if code != _CLOSING:
                    return self._session, code, text
            self._drop()
        session = self._connected()
        return session, *self._mail_from(session, letter, address)

    def _mail_from(self, session: smtplib.SMTP, letter: Letter, address: str) -> tuple[int, bytes]:
        options = [f"size={len(letter.content)}"] if session.has_extn("size") else []
        options += [] if address.isascii() else ["SMTPUTF8"]
        return session.mail(ascii_address(self._settings.sender), options)

    def _failed(self, status: str, code: int, text: bytes) -> Attempt:
        if code == _CLOSING:
            raise smtplib.SMTPResponseException(code, text)
        try:
            if self._session is not None:
                self._session.rset()
        except (smtplib.SMTPException, OSError):
            self._drop()
        return Attempt(status, self._answer(code, text), by_server=status == "refused")

    def _open(self) -> SmtpClient | SmtpTlsClient:
        mail = self._settings
        context = self._context()
        self._secret = resolve_secret(mail.password, self._folder)
        session: SmtpClient | SmtpTlsClient
        if mail.security == "tls":
            session = SmtpTlsClient(mail.host, mail.port, timeout=mail.timeout, context=context)
        else:
            session = SmtpClient(mail.host, mail.port, timeout=mail.timeout)
        try:
            session.ehlo_or_helo_if_needed()
            if mail.security == "starttls":
                session.starttls(context=context)
                session.ehlo_or_helo_if_needed()
            if mail.username:
                session.login(mail.username, self._secret)
        except BaseException:
            session.close()
            raise
        return session

    def _context(self) -> ssl.SSLContext | None:
        """The TLS context; None without TLS, as it takes longer to make than a mail to send."""
        authorities = b""
        if self._settings.ca_file is not None:
            path = self._folder / at_home(self._settings.ca_file)
            try:
                authorities = read_authorities(path)
            except BadAuthorities as error:
                problem = f"mail.ca_file = {path} cannot be used as a list of certificates: {error}."
                raise SettingsError(problem) from error
        if self._settings.security == "none":
            return None
        context = ssl.create_default_context()
        if authorities:
            context.load_verify_locations(cadata=authorities.decode("ascii", "ignore"))
        return context

    def _answer(self, code: int, text: bytes) -> str:
        said = one_line(text.decode("utf-8", "replace"), 400)
        if code < 0:
            # The library has cut off the code, so the answer is not shown.
            where = f"The mail server ({self._where})"
            return (
                f"{where} gave an answer that is not SMTP: check that mail.host and mail.port belong to a mail server."
            )
        return self._masked(f"The mail server ({self._where}) answered {code}: {said}")

    def _sentence(self, error: Exception) -> str:
        """The fault of the connection, for the person who looks after the settings."""
        match error:
            case smtplib.SMTPAuthenticationError() if error.smtp_code >= 500:
                said = one_line(_as_bytes(error.smtp_error).decode("utf-8", "replace"), 400)
                fault = f"does not accept the user name and password of the section [mail]: {error.smtp_code} {said}"
            case smtplib.SMTPResponseException():
                return self._answer(error.smtp_code, _as_bytes(error.smtp_error))
            case smtplib.SMTPNotSupportedError():
                fault = f"cannot do what mail.security or mail.username ask for: {error}"
            case smtplib.SMTPException() if str(error).startswith("No suitable authentication method"):
                fault = "offers no login with a user name and a password (CRAM-MD5, PLAIN, LOGIN)."
            case UnicodeEncodeError():
                fault = "takes mail.username and mail.password in ASCII characters only."
            case smtplib.SMTPServerDisconnected() if isinstance(error.__context__, AnswerTooLong):
                fault = f"gave an answer of more than {LONGEST_ANSWER:,} bytes, which was not read to its end."
            case smtplib.SMTPServerDisconnected() if not isinstance(error.__context__, TimeoutError):
                fault = "closed the connection."
            case ssl.SSLCertVerificationError():
                fault = f"has a certificate that cannot be trusted: {error.verify_message}. "
                fault += "If it is one of your own, name its authority's file in mail.ca_file."
            case ssl.SSLError():
                fault = f"does not speak TLS as mail.security asks for: {error.reason or error}."
            case TimeoutError() | smtplib.SMTPServerDisconnected():
                seconds = self._session.seconds() if self._session else self._settings.timeout
                fault = f"did not answer within {seconds:g} seconds."
                if self._settings.port == _TLS_PORT and self._settings.security != "tls":
                    fault += f' On port {_TLS_PORT}, mail.security is usually "tls".'
            case socket.gaierror():
                fault = "is not known by that name: look at mail.host."
            case OSError():
                fault = f"cannot be reached: {error.strerror or error}."
            case _:
                fault = f"could not be spoken to: {error}."
        return self._masked(one_line(f"The mail server ({self._where}) {fault}", 1000))

    def _masked(self, sentence: str) -> str:
        if not self._secret:
            return sentence
        login = f"\0{self._settings.username}\0{self._secret}"  # as AUTH PLAIN sends it
        for form in (self._secret, *(base64.b64encode(text.encode()).decode() for text in (self._secret, login))):
            sentence = sentence.replace(form, "(not shown)")
        return sentence


def _lasting(code: int) -> str:
    return "refused" if code >= 500 and code not in _CORRECTABLE else "queued"


def _as_bytes(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")


LONGEST_ANSWER = 65_536
"""Bytes of one answer with all its lines; RFC 5321, 4.5.3.1.5, allows 512 for a line."""

_PIECE = 4_096

_AFTER_MESSAGE = 600.0
"""Seconds for the answer to a message, at least: RFC 5321, 4.5.3.2.6. A client that gives up early sends it twice."""


class AnswerTooLong(OSError):
    """An answer that was not read to its end."""


class _AnswerReader:
    """Reads lines from a connection. The library calls `readline` and `close`; `begin` starts a new answer."""

    def __init__(self, connection: socket.socket, seconds: Callable[[], float]) -> None:
        self._connection = connection
        self._seconds = seconds
        self._received = b""
        self._read = 0
        self._began = 0.0

    def begin(self) -> None:
        """The next line is the first one of an answer, which must be whole in `seconds`, asked again each second."""
        self._read = 0
        self._began = time.monotonic()

    def readline(self, limit: int) -> bytes:
        """A line, or the beginning of a longer one; empty at the end. Raises AnswerTooLong, TimeoutError."""
        while (end := self._received.find(b"\n", 0, limit)) < 0 and len(self._received) < limit:
            if not (piece := self._piece()):
                break
            self._received += piece
        size = end + 1 if end >= 0 else min(limit, len(self._received))
        line, self._received = self._received[:size], self._received[size:]
        self._read += size
        if self._read > LONGEST_ANSWER:
            raise AnswerTooLong(f"an answer of more than {LONGEST_ANSWER:,} bytes")
        return line

    def close(self) -> None:
        """Nothing: the connection is the client's to close."""

    def _piece(self) -> bytes:
        before = self._connection.gettimeout()
        try:
            while (left := self._began + self._seconds() - time.monotonic()) > 0:
                self._connection.settimeout(min(left, 1.0))
                with suppress(TimeoutError):
                    return self._connection.recv(_PIECE)
            raise TimeoutError("timed out")
        finally:
            self._connection.settimeout(before)


class _BoundedAnswers:
    """Bounds the answers of both clients. After STARTTLS the library makes a new reader, which drops earlier text."""

    file: _AnswerReader | None
    sock: socket.socket
    timeout: float
    patience: Callable[[], float] | None = None
    """Seconds for the next answers, if they are more than `timeout`."""

    def seconds(self) -> float:
        """The seconds that the next answer may take now."""
        return max(self.timeout, self.patience() if self.patience else 0.0)

    def getreply(self) -> tuple[int, bytes]:
        """Code and text of an answer. Raises SMTPServerDisconnected, whose context has the reason."""
        if self.file is None:
            self.file = _AnswerReader(self.sock, self.seconds)
        self.file.begin()
        return super().getreply()  # type: ignore[misc, no-any-return]


class SmtpClient(_BoundedAnswers, smtplib.SMTP):  # type: ignore[misc]
    """Speaks SMTP, and STARTTLS."""


class SmtpTlsClient(_BoundedAnswers, smtplib.SMTP_SSL):  # type: ignore[misc]
    """Speaks SMTP over TLS from the beginning."""
