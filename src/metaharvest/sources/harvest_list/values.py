"""Checks the values of one harvest-list entry: scope, identifier, revision, document type, URL.

Pure functions of a text. Each returns the value, or raises BadValue with a sentence and a remedy; parser.py
knows the place of the value in the list.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

from metaharvest.fetch.local_files import is_file_url
from metaharvest.fetch.url import shown
from metaharvest.sources.harvest_list.elements import Mistake
from metaharvest.text import character_in_words, invisible_character, one_line, shown_url

XML_SPACE = " \t\r\n"
"""White space in XML; Python counts more characters as white space."""

MAX_DOCUMENT_ID = 800
"""Characters of a document id, the limit of Metacat."""

MAX_LONG = 2**63 - 1
"""The largest xs:long."""

_SCOPE = re.compile(r"[!-.0-~]+")
_PLAIN_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_LONG = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
"""The beginning of a path on Windows."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN_URL = re.compile(
    r"https?://[A-Za-z0-9][A-Za-z0-9.-]*(:([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}))?(/[!-~]*)?"
)


class BadValue(Exception):
    """An unusable value: the rule, the mistake, and the remedy."""

    def __init__(self, rule: str, message: str, remedy: str) -> None:
        super().__init__(message)
        self.mistake = Mistake(rule, message, remedy)


def quoted(text: str) -> str:
    """A value in messages: in quotes, on one line, cut if it is long, without credentials."""
    return f"'{one_line(shown_url(text), 80)}'"


@lru_cache(maxsize=16)
def check_scope(text: str) -> str:
    """The scope, trimmed: printable ASCII without white space and `/`, as in Metacat's document ids."""
    scope = text.strip(XML_SPACE)
    if _SCOPE.fullmatch(scope):
        return scope
    if not scope:
        raise BadValue("list.scope", "The scope is empty.", "Write the scope of your site, as in <scope>alder</scope>.")
    bad = next(c for c in scope if not _SCOPE.fullmatch(c))
    message = f"The scope {quoted(scope)} contains {character_in_words(bad)}, which no document id may contain."
    remedy = "Use letters, digits, hyphens, dots and underscores only, as in <scope>knb-lter-gce</scope>."
    raise BadValue("list.scope", message, remedy)


def check_number(name: str, text: str) -> int:
    """The identifier or revision (`name`): an xs:long that is not negative; leading zeros and a `+` are allowed."""
    number = text.strip(XML_SPACE)
    if _PLAIN_NUMBER.fullmatch(number):
        return int(number)
    rule, remedy = f"list.{name}", f"Write it in digits alone, as in <{name}>12</{name}>."
    if not number:
        raise BadValue(rule, f"The {name} is empty.", remedy)
    if not _LONG.fullmatch(number):
        odd = next((c for c in number if not c.isprintable()), None)
        mistake = f"contains {character_in_words(odd)}" if odd else "is not a whole number"
        raise BadValue(rule, f"The {name} {quoted(number)} {mistake}.", remedy)
    digits = number.lstrip("+-").lstrip("0") or "0"
    if number.startswith("-") and digits != "0":
        raise BadValue(rule, f"The {name} {quoted(number)} is negative.", remedy)
    if len(digits) > 19 or int(digits) > MAX_LONG:
        message = f"The {name} {quoted(number)} is too large: the largest possible is {MAX_LONG}."
        raise BadValue(rule, message, f"Give the document a smaller {name}.")
    return int(digits)


def check_document_id(scope: str, identifier: int) -> str:
    """Scope and identifier as one document id of at most MAX_DOCUMENT_ID characters."""
    document_id = f"{scope}.{identifier}"
    if len(document_id) > MAX_DOCUMENT_ID:
        message = f"Scope and identifier together have {len(document_id):,} characters; {MAX_DOCUMENT_ID} are possible."
        raise BadValue("list.scope", message, "Use a shorter scope.")
    return document_id


def document_id_of(scope: str, identifier: str) -> str:
    """The document id of these two values of an entry."""
    return check_document_id(check_scope(scope), check_number("identifier", identifier))


@lru_cache(maxsize=16)
def check_type(text: str) -> str:
    """The document type, trimmed; any text."""
    document_type = text.strip(XML_SPACE)
    if not document_type:
        example = "<documentType>https://eml.ecoinformatics.org/eml-2.2.0</documentType>"
        remedy = f"Write the namespace of the document's root element, as in {example}."
        raise BadValue("list.document-type", "The documentType is empty.", remedy)
    return document_type


def check_url(text: str, files_allowed: bool = False, base: str = "") -> str:
    """The document's URL, trimmed: an absolute http or https URL, or, if files are allowed, a file: URL as written.

    With `base`, the URL of the list's own file, it may also be relative to that.
    """
    url = text.strip(XML_SPACE)
    if _PLAIN_URL.fullmatch(url):
        return url
    whole = "Write the whole URL, as in <documentURL>https://www.example.org/eml/alder.12.2.xml</documentURL>."
    if not url:
        raise BadValue("list.url", "The documentURL is empty.", whole)
    if odd := invisible_character(url):
        message = f"The documentURL {_quoted_url(url)} contains {character_in_words(odd)}."
        remedy = "Write a space in a URL as %20, and keep the URL on one line."
        if odd not in XML_SPACE:
            remedy = "Delete this character, which editors may not show; write a space in a URL as %20."
        raise BadValue("list.url", message, remedy)
    if files_allowed and is_file_url(url):
        return url
    if base and _is_relative(url):
        return urljoin(base, url)
    return _check_parts(url, whole)


def _is_relative(url: str) -> bool:
    """True if this names a file by a path alone; False for a web address without its https://."""
    return not url.lower().startswith(("//", "\\", "www.")) and _SCHEME.match(url) is None


def _check_parts(url: str, whole: str) -> str:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        # The library's message would quote a part of the URL, which may be a password.
        message = f"The documentURL {_quoted_url(url)} is not a URL: its host name or port is not written correctly."
        raise BadValue("list.url", message, whole) from None
    if parts.scheme == "file" or _DRIVE.match(url):
        raise BadValue(
            "list.url",
            f"The documentURL {_quoted_url(url)} is a file on some computer; only http and https URLs are harvested.",
            "Put the document on your web server and list its https:// URL. For files on the harvester's own machine, "
            'its administrator can allow your site a folder: file_folder in [sites."NAME"] of the settings.',
        )
    if parts.scheme not in ("http", "https"):
        # In `user:password@host` the text before the colon is not a scheme, and must not be shown.
        kind = f"begins with '{one_line(parts.scheme, 20)}:'" if parts.scheme and "@" not in url else "is not absolute"
        if "@" in url and "://" in url:
            kind = "is of another kind"
        message = f"The documentURL {_quoted_url(url)} {kind}; only http and https URLs are harvested."
        raise BadValue("list.url", message, whole)
    if not host or port == 0:
        lack = "names no server" if not host else "names the port 0, which does not exist"
        raise BadValue("list.url", f"The documentURL {_quoted_url(url)} {lack}.", whole)
    return url


def _quoted_url(url: str) -> str:
    """As `quoted`, but the URL may be broken, and the text before an `@` in it may be a password."""
    return f"'{one_line(shown(url), 80)}'" if "@" in url else quoted(url)
