"""Removes an address, or the text about a document, from a report in the outbox.

The message keeps its Message-ID, its date and its other recipients: it stays known that it was sent.
"""

from __future__ import annotations

import gzip
import html
import re
from collections.abc import Callable, Iterator
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any
from urllib.parse import quote
from zlib import error as ZlibError  # noqa: N812 - the library's name is a lower-case word

from markupsafe import escape

from metaharvest.mail.message import ascii_address

REMOVED = "(address removed)"
"""Replaces an address."""

_POLICY = SMTP.clone(cte_type="7bit")
_ADDRESS_HEADERS = ("To", "Reply-To", "Cc")


def address_pattern(address: str) -> re.Pattern[str]:
    """Finds an address in a text, not as a part of a longer address: also as HTML, in a link, its domain in ASCII."""
    in_links = {quote(form, safe="/@") for form in (address, ascii_address(address))}
    written = _written(address, ascii_address(address), *in_links)
    return re.compile(rf"(?<![\w.%+-])(?:{written})(?![\w-]|\.\w)", re.IGNORECASE)


def _written(*forms: str) -> str:
    """The pattern of these forms as text, as HTML by the standard library, and as HTML by the templates."""
    found = {each for form in forms for each in (form, html.escape(form), str(escape(form)))}
    return "|".join(sorted(map(re.escape, found), reverse=True))


def without_address(content: bytes, address: str) -> bytes | None:
    """The message without this address; None if it does not name it."""
    pattern = address_pattern(address)
    message = _parsed(content)
    headers = [name for name in _ADDRESS_HEADERS if pattern.search(str(message.get(name, "")))]
    before = str(message["Subject"] or "")
    subject = pattern.sub(REMOVED, before)
    for name in headers:
        kept = [each for each in message[name].addresses if not pattern.fullmatch(each.addr_spec)]
        del message[name]
        if kept:
            message[name] = tuple(kept)
        elif name == "To":
            message[name] = "undisclosed-recipients:;"
    if subject != before:
        message.replace_header("Subject", subject)
    texts = _rewritten(message, lambda text: pattern.sub(REMOVED, text))
    return message.as_bytes(policy=_POLICY) if headers or subject != before or texts else None


def without_document(content: bytes, document_id: str, sentence: str) -> bytes | None:
    """The message with this sentence in place of its text and attachments; None if it does not name the document."""
    message = _parsed(content)
    # The revision may follow. Other documents have ids that begin or end with this one.
    pattern = re.compile(rf"(?<![\w.-])(?:{_written(document_id)})(?![\w-])")
    if not any(pattern.search(text) for _, text in _texts(message)):
        return None
    message.clear_content()
    message.set_content(f"{sentence}\n")
    return message.as_bytes(policy=_POLICY)


def _parsed(content: bytes) -> EmailMessage:
    message = message_from_bytes(content, policy=_POLICY)
    assert isinstance(message, EmailMessage)
    return message


def _texts(message: EmailMessage) -> Iterator[tuple[EmailMessage, str]]:
    """The parts that are text, with it; tables are text too, gzipped or not."""
    for part in message.walk():
        assert isinstance(part, EmailMessage)
        if part.get_content_maintype() == "text":
            yield part, str(part.get_content())
        elif part.get_content_type() == "application/gzip":
            payload = part.get_payload(decode=True)
            try:
                yield part, gzip.decompress(payload if isinstance(payload, bytes) else b"").decode("utf-8", "replace")
            except (OSError, EOFError, ZlibError):
                continue


def _rewritten(message: EmailMessage, change: Callable[[str], str]) -> int:
    """Change the texts of a message; return the number of changed ones."""
    number = 0
    for part, text in list(_texts(message)):
        changed = change(text)
        if changed == text:
            continue
        number += 1
        name, disposition = part.get_filename(), part.get_content_disposition() or "attachment"
        as_file: dict[str, Any] = {"disposition": disposition, "filename": name} if name is not None else {}
        if part.get_content_maintype() == "text":
            part.set_content(changed, subtype=part.get_content_subtype(), **as_file)
        else:
            part.set_content(gzip.compress(changed.encode(), mtime=0), "application", "gzip", **as_file)
    return number
