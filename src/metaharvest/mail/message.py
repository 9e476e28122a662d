"""Builds the message that is sent: headers, text and HTML, an attachment, as 7-bit bytes within the limits of mail.

Its content comes from the templates. Text for headers is made harmless here: control characters, line breaks and
encoded words in a name. Limits: RFC 5322, section 2.1.1 (998 octets a line).

The library's email package writes the headers that have to be folded or encoded, and the attachments. The other parts
are put together here, byte for byte as that package would do it: its message objects take ten times as long, and a run
writes a message for every site.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from email import quoprimime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP, EmailPolicy
from email.utils import format_datetime
from functools import lru_cache
from unicodedata import normalize

from metaharvest.config.settings import Settings
from metaharvest.model.values import frozen
from metaharvest.text import one_line

_CONTENT = SMTP.clone(cte_type="7bit")
_HEADERS = _CONTENT.clone(max_line_length=300)
# A subject a little longer than 78 characters would begin on a line of its own, and some programs show that as a blank.
_ENCODED_HEADERS = _CONTENT.clone(max_line_length=76)
# An encoded word may have 75 characters (RFC 2047, section 2); the library makes it as long as the line allows.
MAX_SUBJECT = 250

_LINE = 78
"""Characters of a line of the text, encoded."""

_CRLF = "\r\n"
_NOBODY_WRITABLE = f"To: undisclosed-recipients:;{_CRLF}"
"""The text in the place of addresses: a message without recipients in its header may be taken for spam."""

_SOFT_BREAK = "=\r\n"
_LINE_PARTS = re.compile(r".{75}(?==.{3})|.{76}(?==..)|.{77}(?=..)|.+")
"""The parts of a line that is longer than `_LINE`: a soft break follows each but the last, and none divides `=3D`."""

_PLAIN_ADDRESS = re.compile(r"\w+(?:[.+-]\w+)*@\w+(?:[.-]\w+)*", re.ASCII)
"""An address that needs no quotes or encoding in a header; the library writes the others."""


@frozen
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
    tone: str = ""


@frozen
class Attachment:
    """A file that is attached to a report."""

    file_name: str
    content: bytes
    gzipped: bool = False


@frozen
class RenderedText:
    """A rendered report: a subject on one line, the text, the HTML."""

    subject: str
    text: str
    html: str


def message_id(key: str, seed: Iterable[object], settings: Settings) -> str:
    """A Message-ID that depends only on the report's key, the run it belongs to (`seed`), and the sender's domain."""
    text = "\0".join((key, *(str(part) for part in seed)))
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
    domain = ascii_address(settings.mail.sender).rpartition("@")[2]
    return f"<{digest}@{domain}>"


def ascii_address(address: str) -> str:
    """`address` with an international domain in its ASCII form (IDNA 2008); unchanged if it has no such form."""
    local, _, domain = address.rpartition("@")
    if domain.isascii():
        return address
    import idna

    try:
        return f"{local}@{idna.encode(domain, uts46=True).decode('ascii')}"
    except UnicodeError:
        return address


def header_text(text: str, limit: int = MAX_SUBJECT) -> str:
    """`text` in a form for a header: one line, and nothing that reads as an encoded word."""
    return re.sub(r"=(?=\?)", "= ", one_line(text, limit))


def safe_file_name(text: str) -> str:
    """`text` as a plain file name: ASCII letters without accents, digits, dots, hyphens and underscores."""
    without_accents = re.sub("[\u0300-\u036f]", "", normalize("NFKD", text))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", without_accents).strip("-.")[:80] or "report"


def build(
    kind: str,
    key: str,
    identifier: str,
    recipients: tuple[str, ...],
    rendered: RenderedText,
    attachment: Attachment | None,
    settings: Settings,
    now: datetime,
    tone: str = "",
) -> Report:
    """The report with its whole message. `now` becomes its Date; replies go to the administrators."""
    subject, name = header_text(rendered.subject), header_text(settings.harvester.name, 100)
    policy = _HEADERS if (subject + name).isascii() else _ENCODED_HEADERS
    headers = [
        _header("Subject", subject, policy),
        _address_header("From", name, (settings.mail.sender,), policy),
        _address_header("To", "", _writable(recipients), policy) or _NOBODY_WRITABLE,
        _address_header("Reply-To", "", _writable(settings.harvester.administrators), policy),
        _header("Date", format_datetime(now), policy),
        _header("Message-ID", identifier, policy),
        f"Auto-Submitted: auto-generated{_CRLF}MIME-Version: 1.0{_CRLF}",
    ]
    body = [_text_part("plain", rendered.text), _text_part("html", rendered.html)]
    digest = hashlib.sha256(identifier.encode()).hexdigest()
    message = _multipart("alternative", body, digest[:19], policy)
    if attachment is not None:
        message = _multipart("mixed", [message, _attachment_part(attachment, policy)], digest[19:38], policy)
    content = "".join(headers).encode("ascii") + message
    return Report(kind, key, recipients, subject, rendered.text, rendered.html, content, identifier, tone)


def _header(name: str, value: str, policy: EmailPolicy[EmailMessage]) -> str:
    """A header with its line break. The library writes those that are not plain or do not fit on a line."""
    line = f"{name}: {value}"
    if value and value.isascii() and value.isprintable() and len(line) <= (policy.max_line_length or 0):
        return line + _CRLF
    return str(policy.header_factory(name, value).fold(policy=policy))


def _address_header(name: str, display_name: str, addresses: tuple[str, ...], policy: EmailPolicy[EmailMessage]) -> str:
    """A header with addresses; nothing if there are none."""
    if not addresses:
        return ""
    if not display_name and all(map(_PLAIN_ADDRESS.fullmatch, addresses)):
        return _header(name, ", ".join(addresses), policy)
    return _library_address_header(name, display_name, addresses, policy)


@lru_cache(maxsize=64)
def _library_address_header(
    name: str, display_name: str, addresses: tuple[str, ...], policy: EmailPolicy[EmailMessage]
) -> str:
    """In the library's form, cached: most headers are the same as in the last report."""
    parts = (ascii_address(address).rpartition("@") for address in addresses)
    value = tuple(Address(display_name, local, domain) for local, _, domain in parts)
    return str(policy.header_factory(name, value).fold(policy=policy))


def _writable(addresses: tuple[str, ...]) -> tuple[str, ...]:
    """The addresses that a header can hold in ASCII; a local part that is not needs a mail server that speaks UTF-8."""
    return tuple(address for address in addresses if ascii_address(address).isascii())


def _multipart(subtype: str, parts: Sequence[bytes], token: str, policy: EmailPolicy[EmailMessage]) -> bytes:
    """The parts as one part. `token` makes its boundary different from the other boundaries of the message.

    Quoted-printable text has no `==`, and base64 only at its end, so no part contains the boundary (RFC 2045, 6.7).
    """
    boundary = f"==============={token}=="
    head = _header("Content-Type", f'multipart/{subtype}; boundary="{boundary}"', policy)
    between = f"{_CRLF}--{boundary}"
    start, end = f"{head}{between}{_CRLF}".encode("ascii"), f"{between}--{_CRLF}".encode("ascii")
    return start + f"{between}{_CRLF}".encode("ascii").join(parts) + end


def _text_part(subtype: str, text: str) -> bytes:
    head = f'Content-Type: text/{subtype}; charset="utf-8"{_CRLF}Content-Transfer-Encoding: quoted-printable{_CRLF}'
    return f"{head}{_CRLF}{_quoted_printable(text)}".encode("ascii")


def _quoted_printable(text: str) -> str:
    """The text encoded as in RFC 2045, section 6.7, with a line break at its end."""
    whole = text if text.endswith("\n") else f"{text}\n"
    if not whole.isascii() or not whole.replace("\n", "").isprintable() or " \n" in whole:
        lines = text.encode("utf-8", "surrogateescape").splitlines()
        return quoprimime.body_encode((b"\n".join(lines) + b"\n").decode("latin-1"), _LINE, _CRLF)
    # The library checks each character; if only `=` needs it, this takes a fifth of the time.
    encoded = whole.replace("=", "=3D").split("\n")
    return _CRLF.join([line if len(line) <= _LINE else _SOFT_BREAK.join(_LINE_PARTS.findall(line)) for line in encoded])


def _attachment_part(attachment: Attachment, policy: EmailPolicy[EmailMessage]) -> bytes:
    part = EmailMessage(policy=_CONTENT)
    main, sub, params = ("application", "gzip", None) if attachment.gzipped else ("text", "csv", {"charset": "utf-8"})
    part.set_content(attachment.content, maintype=main, subtype=sub, params=params, filename=attachment.file_name)
    return part.as_bytes(policy=policy)
