"""Hands messages over: to a mail server by SMTP, or into a Maildir folder. Every library error becomes a sentence here.

Which messages, to whom, and what is written down about it, is outbox.py's business. Standards: RFC 5321 (a 4xx answer
is transient, a 5xx one lasting), RFC 3207 (STARTTLS), RFC 4954 (AUTH), RFC 6531 (SMTPUTF8); Maildir as its inventor
described it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import smtplib
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from metaharvest.config.paths import at_home
from metaharvest.config.secret_references import resolve_secret
from metaharvest.config.settings import MailSettings, Settings
from metaharvest.errors import SettingsError
from metaharvest.reports.message import ascii_address, safe_file_name
from metaharvest.text import one_line

_MENDABLE = (530, 534, 535, 538)
"""Answers that speak of our own login, not of the recipient: an operator can mend that, so the message waits."""

_CLOSING = 421


@dataclass(frozen=True, slots=True)
class Letter:
    """One message to be handed over, and to whom."""

    message_id: str
    content: bytes
    created_at: datetime
    recipients: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """How an attempt ended: `sent`, `queued` (worth another) or `refused`. `stop`: no use trying more this time.

    `there`: it counts as sent, for this very message had arrived before.
    `put_off`: the server answered for this recipient that it will not take mail for now.
    """

    status: str
    error: str | None = None
    stop: bool = False
    there: bool = False
    put_off: bool = False


class Backend(Protocol):
    """Somewhere to hand messages over to; `at_once`: how many before it is written down that they are there."""

    at_once: int

    def parcels(self, recipients: Sequence[str]) -> list[tuple[str, ...]]:
        """The recipients, grouped as they are to be served: a message each, or one for all."""

    def send(self, letters: Sequence[Letter]) -> list[Attempt]:
        """Hand over messages, at most `at_once`: how each attempt ended, up to the first that says stop.

        Never raises for what the other side does.
        """

    def probe(self) -> str | None:
        """Look whether messages could be handed over now, without any: None, or a sentence about what is wrong."""

    def close(self) -> None:
        """Let go of whatever is open."""


def backend_for(settings: Settings) -> Backend:
    """The backend that the settings name."""
    if settings.mail.backend == "maildir":
        return Maildir(settings.path(settings.mail.folder))
    return SmtpServer(settings)


class Maildir:
    """A Maildir folder. A file's name follows from Message-ID and recipients, so each message is there exactly once."""

    at_once = 20

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def parcels(self, recipients: Sequence[str]) -> list[tuple[str, ...]]:
        """One file for all recipients."""
        return [tuple(sorted(recipients))]

    def send(self, letters: Sequence[Letter]) -> list[Attempt]:
        """Write each message to tmp/, then move it to new/; a file of that name in new/ or cur/ is this very message.

        None of them counts as sent before it is safe on the disk.
        """
        stopped: list[Attempt] = []
        written = 0
        try:
            for name in ("tmp", "new", "cur"):
                (self._folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
            names = [self._name(letter) for letter in letters]
            there = self._there(names)
            try:
                for name, letter in zip(names, letters, strict=True):
                    if name not in there:
                        self._write(name, letter.content.replace(b"\r\n", b"\n"))
                    written += 1
            except OSError as error:
                stopped = [self._stopped(error)]
            _sync(self._folder / "new")
        except OSError as error:
            return [self._stopped(error)]
        return [Attempt("sent", there=name in there) for name in names[:written]] + stopped

    def _stopped(self, error: OSError) -> Attempt:
        reason = one_line(error.strerror or str(error))
        return Attempt("queued", f"The mail folder {self._folder} cannot be written: {reason}.", stop=True)

    def probe(self) -> str | None:
        """Whether the folder, or the nearest one above it that is there, may be written to."""
        folder = self._folder
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return None
        return f"The mail folder {self._folder} cannot be written: let this user write to {folder}."

    def close(self) -> None:
        """Nothing is kept open."""

    @staticmethod
    def _name(letter: Letter) -> str:
        text = "\0".join((letter.message_id, *letter.recipients))
        digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
        domain = safe_file_name(letter.message_id.strip("<>").rpartition("@")[2])
        return f"{int(letter.created_at.timestamp())}.{digest}.{domain}"

    def _there(self, names: Sequence[str]) -> set[str]:
        """Those of the names that are there already."""
        there = {name for name in names if (self._folder / "new" / name).exists()}
        # Mail programs move a file that was seen to cur/ and append their flags, as in `name:2,S`.
        with os.scandir(self._folder / "cur") as entries:
            return there | {entry.name.partition(":")[0] for entry in entries}.intersection(names)

    def _write(self, name: str, content: bytes) -> None:
        temporary = self._folder / "tmp" / name
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self._folder / "new" / name)


def _sync(folder: Path) -> None:
    """Make sure that the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class SmtpServer:
    """A mail server. One session serves many messages and is reopened where the server closes it."""

    at_once = 1

    def __init__(self, settings: Settings) -> None:
        self._settings: MailSettings = settings.mail
        self._folder = settings.folder
        self._where = f"{settings.mail.host}, port {settings.mail.port}"
        self._session: smtplib.SMTP | None = None
        self._secret = ""
        self._failures = 0

    def parcels(self, recipients: Sequence[str]) -> list[tuple[str, ...]]:
        """A message for each recipient, so that one's answer is never another's."""
        return [(recipient,) for recipient in recipients]

    def send(self, letters: Sequence[Letter]) -> list[Attempt]:
        """One mail transaction, for one recipient."""
        [letter] = letters
        return [self._sent(letter)]

    def _sent(self, letter: Letter) -> Attempt:
        try:
            attempt = self._transaction(letter, letter.recipients[0])
        except SettingsError as error:
            return Attempt("queued", one_line(str(error), 1000), stop=True)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            was_open = self._session is not None
            self._drop()
            self._failures += 1
            return Attempt("queued", self._sentence(error), stop=not was_open or self._failures > 1)
        self._failures = 0
        return attempt

    def probe(self) -> str | None:
        """Whether the server answers, speaks TLS as asked and takes the login."""
        try:
            self._session = self._session or self._open()
        except SettingsError as error:
            return one_line(str(error), 1000)
        except (smtplib.SMTPException, OSError, ValueError) as error:
            return self._sentence(error)
        return None

    def close(self) -> None:
        """Say goodbye, as far as the server still listens."""
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
        if not address.isascii() and not self._takes_utf8():
            return Attempt(
                "refused",
                f"{recipient} has letters beyond ASCII, and the mail server ({self._where}) does not take such "
                "addresses (SMTPUTF8): use another address of this person.",
            )
        session, code, text = self._begin(letter, address)
        if code != 250:
            # 552: the message is too long for this server. Everything else is about us, not about the recipient.
            return self._failed("refused" if code == 552 else "queued", code, text)
        code, text = session.rcpt(address)
        if code not in (250, 251):
            return replace(self._failed(_lasting(code), code, text), put_off=400 <= code < 500)
        try:
            code, text = session.data(letter.content)
        except smtplib.SMTPDataError as error:
            code, text = error.smtp_code, _as_bytes(error.smtp_error)
        return Attempt("sent") if 200 <= code < 300 else self._failed(_lasting(code), code, text)

    def _takes_utf8(self) -> bool:
        """Whether the server knows RFC 6531."""
        self._session = session = self._session or self._open()
        return session.has_extn("smtputf8")

    def _begin(self, letter: Letter, address: str) -> tuple[smtplib.SMTP, int, bytes]:
        """Open the transaction, in a new session where the server has closed the one that served the last message."""
        if self._session is not None:
            with suppress(smtplib.SMTPServerDisconnected, OSError):
                code, text = self._mail_from(self._session, letter, address)
                if code != _CLOSING:
                    return self._session, code, text
            self._drop()
        self._session = session = self._open()
        return session, *self._mail_from(session, letter, address)

    def _mail_from(self, session: smtplib.SMTP, letter: Letter, address: str) -> tuple[int, bytes]:
        options = [f"size={len(letter.content)}"] if session.has_extn("size") else []
        options += [] if address.isascii() else ["SMTPUTF8"]
        return session.mail(ascii_address(self._settings.sender), options)

    def _failed(self, status: str, code: int, text: bytes) -> Attempt:
        if code == _CLOSING:
            raise smtplib.SMTPResponseException(code, text)
        if self._session is not None:
            try:
                self._session.rset()
            except (smtplib.SMTPException, OSError):
                self._drop()
        return Attempt(status, self._answer(code, text))

    def _open(self) -> smtplib.SMTP:
        mail = self._settings
        context = self._context()
        self._secret = resolve_secret(mail.password, self._folder)
        if mail.security == "tls":
            session: smtplib.SMTP = smtplib.SMTP_SSL(mail.host, mail.port, timeout=mail.timeout, context=context)
        else:
            session = smtplib.SMTP(mail.host, mail.port, timeout=mail.timeout)
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

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self._settings.ca_file is None:
            return context
        path = self._folder / at_home(self._settings.ca_file)
        try:
            context.load_verify_locations(path)
        except (OSError, ssl.SSLError) as error:
            raise SettingsError(f"mail.ca_file = {path} cannot be used as a list of certificates: {error}.") from error
        return context

    def _answer(self, code: int, text: bytes) -> str:
        said = one_line(text.decode("utf-8", "replace"), 400)
        return self._masked(f"The mail server ({self._where}) answered {code}: {said}")

    def _sentence(self, error: Exception) -> str:
        """What went wrong with the connection, for the person who looks after the settings."""
        server = f"The mail server ({self._where})"
        match error:
            case smtplib.SMTPAuthenticationError():
                sentence = (
                    f"{server} does not accept the user name and password of the section [mail] ({error.smtp_code})."
                )
            case smtplib.SMTPResponseException():
                return self._answer(error.smtp_code, _as_bytes(error.smtp_error))
            case smtplib.SMTPNotSupportedError():
                sentence = f"{server} cannot do what mail.security or mail.username ask for: {error}"
            case smtplib.SMTPServerDisconnected():
                sentence = f"{server} closed the connection."
            case ssl.SSLCertVerificationError():
                sentence = (
                    f"{server} has a certificate that cannot be trusted: {error.verify_message}. "
                    "If it is one of your own, name its authority's file in mail.ca_file."
                )
            case ssl.SSLError():
                sentence = f"{server} does not speak TLS as mail.security asks for: {error.reason or error}."
            case TimeoutError():
                sentence = f"{server} did not answer within {self._settings.timeout:g} seconds."
            case socket.gaierror():
                sentence = f"{server} is not known by that name: look at mail.host."
            case OSError():
                sentence = f"{server} cannot be reached: {error.strerror or error}."
            case _:
                sentence = f"{server} could not be spoken to: {error}."
        return self._masked(one_line(sentence, 1000))

    def _masked(self, sentence: str) -> str:
        if not self._secret:
            return sentence
        for form in (self._secret, base64.b64encode(self._secret.encode()).decode()):
            sentence = sentence.replace(form, "(not shown)")
        return sentence


def _lasting(code: int) -> str:
    return "refused" if code >= 500 and code not in _MENDABLE else "queued"


def _as_bytes(text: bytes | str) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")
