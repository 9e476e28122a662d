"""Builds the message that is sent: headers, text and HTML, an attachment, as 7-bit bytes within the limits of mail.

What the message says is decided elsewhere. Whatever reaches a header is made harmless here: control characters, line
breaks and encoded words smuggled in by a name. Limits: RFC 5322, section 2.1.1 (998 octets a line).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from email import quoprimime
from email.headerregistry import Address, HeaderRegistry
from email.message import EmailMessage, MIMEPart
from email.policy import SMTP
from functools import lru_cache
from typing import Any

from metaharvest.config.settings import Settings
from metaharvest.text import one_line


class _Headers(HeaderRegistry):
    """Makes the class of a header once for each name; the library's own makes one for each header."""

    def __init__(self) -> None:
        super().__init__()
        self._classes: dict[str, type[Any]] = {}

    def __getitem__(self, name: str) -> type[Any]:
        if name not in self._classes:
            self._classes[name] = super().__getitem__(name)
        return self._classes[name]


_POLICY = SMTP.clone(cte_type="7bit", header_factory=_Headers())
_HEADERS = _POLICY.clone(max_line_length=300)
# A subject a little longer than 78 characters would begin on a line of its own, and some programs show that as a blank.
_ENCODED_HEADERS = _POLICY.clone(max_line_length=76)
# An encoded word may have 75 characters (RFC 2047, section 2); the library makes it as long as the line allows.
MAX_SUBJECT = 250

_LINE = 78
"""Characters of a line of the text, encoded."""


@dataclass(frozen=True, slots=True)
class Report:
    """One rendered report. `content` is the whole message as it will be sent; `key` makes a second one impossible."""

    kind: str
    key: str
    recipients: tuple[str, ...]
    subject: str
    text: str
    html: str
    content: bytes
    message_id: str


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that travels with a report."""

    file_name: str
    content: bytes
    gzipped: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """What a report says, as rendered: a subject on one line, the text, the HTML."""

    subject: str
    text: str
    html: str


def message_id(key: str, seed: Iterable[object], settings: Settings) -> str:
    """A Message-ID that depends on nothing but the report's key, the run it belongs to, and the sender's domain."""
    text = "\0".join((key, *(str(part) for part in seed)))
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
    domain = ascii_address(settings.mail.sender).rpartition("@")[2]
    return f"<{digest}@{domain}>"


def ascii_address(address: str) -> str:
    """`address` with an international domain in its ASCII form (IDNA 2008); as it is where it has none."""
    local, _, domain = address.rpartition("@")
    if domain.isascii():
        return address
    import idna

    try:
        return f"{local}@{idna.encode(domain, uts46=True).decode('ascii')}"
    except UnicodeError:
        return address


def header_text(text: str, limit: int = MAX_SUBJECT) -> str:
    """`text` as it may stand in a header: one line, and nothing that reads as an encoded word."""
    return re.sub(r"=(?=\?)", "= ", one_line(text, limit))


def safe_file_name(text: str) -> str:
    """`text` as a plain file name: ASCII letters, digits, dots, hyphens and underscores."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:80] or "report"


def build(
    kind: str,
    key: str,
    identifier: str,
    recipients: tuple[str, ...],
    body: Body,
    attachment: Attachment | None,
    settings: Settings,
    now: datetime,
) -> Report:
    """The report with its whole message. `now` becomes its Date; replies go to the administrators."""
    subject, name = header_text(body.subject), header_text(settings.harvester.name, 100)
    message = EmailMessage(policy=_POLICY)
    message["Subject"] = subject
    message["From"] = _header("From", name, (settings.mail.sender,))
    if _writable(recipients):
        message["To"] = _header("To", "", _writable(recipients))
    if _writable(settings.harvester.administrators):
        message["Reply-To"] = _header("Reply-To", "", _writable(settings.harvester.administrators))
    message["Date"] = now
    message["Message-ID"] = identifier
    message["Auto-Submitted"] = "auto-generated"
    message["MIME-Version"] = "1.0"
    message["Content-Type"] = "multipart/alternative"
    message.set_payload([_part("plain", body.text), _part("html", body.html)])
    if attachment is not None:
        _attach(message, attachment)
    content = message.as_bytes(policy=_HEADERS if (subject + name).isascii() else _ENCODED_HEADERS)
    return Report(kind, key, recipients, subject, body.text, body.html, content, identifier)


@lru_cache(maxsize=64)
def _header(name: str, display_name: str, addresses: tuple[str, ...]) -> Any:
    """A header with addresses. Most are those of the last report: to put one together takes long."""
    parts = (ascii_address(address).rpartition("@") for address in addresses)
    return _POLICY.header_factory(name, tuple(Address(display_name, local, domain) for local, _, domain in parts))


def _part(subtype: str, text: str) -> MIMEPart:
    """The text as `set_content` would put it, in a copy of a part whose headers are there already."""
    lines = text.encode("utf-8", "surrogateescape").splitlines()
    part = copy(_empty_part(subtype))
    part.set_payload(quoprimime.body_encode((b"\n".join(lines) + b"\n").decode("latin-1"), _LINE))
    return part


@lru_cache(maxsize=2)
def _empty_part(subtype: str) -> MIMEPart:
    part = MIMEPart(policy=_POLICY)
    part.set_content("", subtype=subtype, cte="quoted-printable")
    return part


def _writable(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """The addresses that a header can hold in ASCII; a local part that is not needs a mail server that speaks UTF-8."""
    return tuple(address for address in addresses if ascii_address(address).isascii())


def _attach(message: EmailMessage, attachment: Attachment) -> None:
    if attachment.gzipped:
        message.add_attachment(
            attachment.content, maintype="application", subtype="gzip", filename=attachment.file_name
        )
        return
    message.add_attachment(
        attachment.content,
        maintype="text",
        subtype="csv",
        params={"charset": "utf-8"},
        filename=attachment.file_name,
    )
