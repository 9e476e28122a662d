"""Readers for the replies of Metacat's old interface: pure functions for the modules beside it.

The result is in the body; the status is 200 for errors too, except for errors of servers in between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from metaharvest.errors import TargetError
from metaharvest.model import Finding
from metaharvest.model.actions import Remedy, todo
from metaharvest.targets.http import HttpAnswer
from metaharvest.text import one_line, shown_url, unescaped, whole_number

_MOST_WORDS = 500
_LONGEST = 65_536
"""The number of characters of a reply that are searched; Metacat gives its result at the beginning."""

_LONGEST_DOCID = 1_000
NO_RECORD = re.compile(r"\bno (?:such )?record\b", re.IGNORECASE)
"""An error about a document: Metacat never had one of this name."""

TOO_HIGH = re.compile(r"cannot be greater than", re.IGNORECASE)
"""An error about a revision: the document's highest revision is lower."""

THERE_ALREADY = re.compile(r"already in use|already exists|can't be less than or equal|outdated", re.IGNORECASE)
"""An upload was refused: this revision, or a higher one, is there."""

_NOT_THERE = re.compile(r"\bdoes not exist\b|\bnot found\b|\bno (?:such )?(?:record|document)\b", re.IGNORECASE)
_NOBODY = re.compile(r"\b(?:user|for)\W{0,3}(?:public|null)\b|session|permission denied", re.IGNORECASE)
_GONE = re.compile(r"original Metacat API has been replaced|no longer supported", re.IGNORECASE)
_DROPPED = re.compile(r"action not specified", re.IGNORECASE)

Login = Literal["in", "refused", "away", ""]


def text_of(answer: HttpAnswer) -> str:
    """The beginning of the body as text, from UTF-8."""
    return answer.body[:_LONGEST].decode("utf-8", "replace")


def error_of(text: str) -> str | None:
    """The words in `<error>`, on one line; None if there is no error."""
    _, found, rest = text.partition("<error>")
    return _words(rest.partition("</error>")[0]) or "no reason was given" if found else None


def is_error(content: bytes) -> bool:
    """True if the reply is an error in place of a document."""
    head = content[:_LONGEST].lstrip()
    if head.startswith(b"<?xml"):
        head = head.partition(b"?>")[2].lstrip()
    return head.startswith(b"<error>")


def is_success(text: str) -> bool:
    """True if the request was carried out: `<success>`, and no `<error>`."""
    return "<success>" in text and "<error>" not in text


def login_of(text: str) -> tuple[Login, str]:
    """The result of a login, and its message; empty if it is no reply to a login."""
    message = _content_of(text, "message")
    words = error_of(text) or "" if message is None else _words(message)
    if "<login>" in text:
        return "in", words
    if "<error_login>" in text:
        return "away", words
    return ("refused" if "<unauth_login>" in text or "<error>" in text else "", words)


def revision_of(text: str) -> int | None:
    """The revision in `revision;doctype`; None for any other reply."""
    number, found, _ = text.strip().partition(";")
    return whole_number(number) if found else None


def docids_of(listing: bytes) -> Iterator[str]:
    """The docids of a listing, one by one, as a listing may be long."""
    start, end, at = b"<docid>", b"</docid>", 0
    while (at := listing.find(start, at)) >= 0:
        at += len(start)
        docid, found, _ = listing[at : at + _LONGEST_DOCID].partition(end)
        if found and b"<" not in docid:
            yield unescaped(docid.decode("utf-8", "replace").strip())


def username_of(text: str) -> str:
    """Our user name there; empty if it does not say."""
    return one_line(unescaped(_content_of(text, "username") or ""), 200)


def version_of(text: str) -> str:
    """The version of Metacat; empty if it does not say."""
    return one_line(unescaped(_content_of(text, "metacatVersion") or ""), 60)


def not_there(words: str) -> bool:
    """True if an error about a revision means that it is not there."""
    return any(each.search(words) for each in (_NOT_THERE, TOO_HIGH))


def knows_nobody(words: str, username: str) -> bool:
    """True if a request was refused because the login has ended; False if the reply names the user."""
    return _NOBODY.search(words) is not None and not (username and username.lower() in words.lower())


def is_gone(text: str) -> bool:
    """True if the Metacat no longer has the old interface."""
    return "<error>" in text and _GONE.search(text) is not None


def refusal(answer: HttpAnswer, doing: str, size: int = 0) -> TargetError:
    """The error about a reply that is neither a success nor a known error; `doing`: the request."""
    words = error_of(text_of(answer)) or ""
    if answer.status == 301 or _GONE.search(words):
        return gone(answer.url)
    if answer.status == 413 or (size and answer.ok and (_DROPPED.search(words) or not answer.body.strip())):
        message = (
            f"{shown_url(answer.url)} did not take the document: its {size:,} bytes are more than the server lets in."
        )
        remedy = (
            "The people who run the Metacat should raise the size of forms that it takes (Tomcat: maxPostSize of its "
        )
        return TargetError(Finding("target.answer", message, remedy + "connector, 2 MB where nothing is said)."))
    if not answer.ok:
        return answer.refusal(words)
    if words:
        remedy = Remedy(
            "The administrator should ask the people who run the Metacat; the check of the target says more ({}).",
            todo("targets.check"),
        )
        return TargetError(Finding("target.refused", f"Metacat refused {doing}: {words.rstrip('.')}.", remedy))
    page = answer.refusal().findings[0].message.partition(": a page titled ")[2]
    what = f"a page titled {page.rstrip('.')}" if page else f"'{one_line(text_of(answer), 100)}'" if answer.body else ""
    message = (
        f"{shown_url(answer.url)} answered {doing} with neither a success nor an error{what and f', but with {what}'}."
    )
    remedy = (
        "The administrator should check url in the target's settings: it has to be that of Metacat's servlet, such as "
    )
    return TargetError(Finding("target.answer", message, f"{remedy}https://HOST/CONTEXT/metacat."))


def gone(url: str) -> TargetError:
    """The error about a Metacat that no longer has the old interface."""
    message = f"This Metacat ({shown_url(url)}) no longer has that interface."
    remedy = f'The administrator should use the dataone target: kind = "dataone" and url = "{dataone_url(url)}".'
    return TargetError(Finding("target.moved", message, remedy))


def dataone_url(url: str) -> str:
    """The probable URL of the DataONE interface of the same Metacat: its context is the first part of the path."""
    parts = urlsplit(shown_url(url))
    context = next((part for part in parts.path.split("/") if part), "metacat")
    return urlunsplit((parts.scheme, parts.netloc, f"/{context}/d1/mn/v2", "", ""))


def _content_of(text: str, name: str) -> str | None:
    """The content of the first element of this name; None if it is missing, or has no end."""
    content, found, _ = text.partition(f"<{name}>")[2].partition(f"</{name}>")
    return content if found else None


def _words(text: str) -> str:
    """A message without markup, on one line."""
    return one_line(unescaped(re.sub(r"<[^<>]{0,200}>", " ", text)), _MOST_WORDS)
