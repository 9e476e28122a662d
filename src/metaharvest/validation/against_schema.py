"""Is a document valid by its schema? libxml2 decides, in bounded time and memory; `explain` says what is wrong.

lxml keeps every error with its path, and the path of one element among very many takes long to find: a document of
some megabytes can be made that has hundreds of thousands of errors and takes hours and gigabytes. So a document that is
not small is first read again from its source, without a tree, by a parser that checks it as it reads and can be
stopped. Paths are asked for only where that has shown that it is cheap.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from lxml import etree

from metaharvest.model import Level
from metaharvest.text import one_line, shown_url
from metaharvest.validation import explain, lenient
from metaharvest.validation.catalogue import EmlVersion, Explainers
from metaharvest.validation.places import Problem

_SMALL = 250_000
"""Bytes up to which a document is checked at once: it has no room for very many errors."""

_CHUNK = 65_536
_MAX_ERRORS = 10_000
"""Errors after which a document is read no further."""

_MAX_ATTRIBUTES = 10_000
"""Attributes of one element: each may be an error, and they are read all at once."""

_MAX_STEPS = 5_000_000_000
"""Errors times bytes up to which paths are cheap even in a wide document."""

_GENERAL = "Try it in a browser. Brackets are written %5B and %5D, and a port is a number."
_NO_PORT = re.compile(r"\s*[^:/?#]*://[^/?#]*:(?:[/?#]|\s*\Z)")
_TWICE = re.compile(r"\s*(?:https?|ftp)://(?:https?|ftp)://?", re.IGNORECASE)

_is_wide = etree.XPath("boolean(//*[*[20000]])")
_with_too_many_attributes = etree.XPath(f"(//*[@*[{_MAX_ATTRIBUTES + 1}]])[1]")


def problems(
    root: etree._Element, content: bytes, schema: etree.XMLSchema, version: EmlVersion, explainers: Explainers
) -> list[Problem]:
    """What is wrong with a document by its schema, and warnings of what is doubtful; empty where all is well."""
    tree = root.getroottree()
    if len(content) > _SMALL:
        crowded = _crowded(root) if len(content) > explain.LARGE else None
        if crowded is not None:
            return [_too_many_attributes(crowded)]
        reading = _Reading(root, content)
        if reading.is_valid(schema):
            return []
        if reading.was_stopped or (len(reading.errors) * len(content) > _MAX_STEPS and _wide(root)):
            return _without_places(reading)
    if schema.validate(tree):
        return []
    log = cast(list[Any], schema.error_log)
    real = _real(log)
    found = explain.problems(root, real, len(content), version, explainers) if real else []
    if len(real) < len(log):
        found += [_doubtful(url, explain.element_at(tree, entry.path)) for entry, url in _urls(log)]
    return found


def _without_places(reading: _Reading) -> list[Problem]:
    """What was found in reading the source; where it was broken off, the rest is not known, and it is refused."""
    real = _real(reading.errors)
    if real or reading.was_stopped:
        return explain.without_places(real or reading.errors)
    return [_doubtful(url, None) for _, url in _urls(reading.errors)]


def _wide(root: etree._Element) -> bool:
    try:
        return bool(_is_wide(root))
    except etree.XPathError:  # beyond ten million elements
        return True


def _crowded(root: etree._Element) -> etree._Element | None:
    """An element with very many attributes, if there is one."""
    try:
        return next(iter(cast(list[etree._Element], _with_too_many_attributes(root))), None)
    except etree.XPathError:  # beyond ten million elements, which leaves no room for long tags
        return None


class _Reading:
    """One reading of a source by a parser that checks it and builds no tree, broken off after too many errors."""

    def __init__(self, root: etree._Element, content: bytes) -> None:
        is_plain = content.removeprefix(codecs.BOM_UTF8)[:1] in (b"<", b" ", b"\t", b"\r", b"\n")
        self._source = content if is_plain and content[1:2] != b"\0" else etree.tostring(root, encoding="UTF-8")
        self._parser: etree.XMLParser
        self._position = 0
        self.was_stopped = False

    def is_valid(self, schema: etree.XMLSchema) -> bool:
        """True where all of the source was read without an error."""
        self._parser = etree.XMLParser(
            target=cast(Any, _NoTree()), schema=schema, resolve_entities=False, no_network=True, load_dtd=False
        )
        try:
            etree.parse(self, self._parser)  # type: ignore[arg-type]
        except etree.XMLSyntaxError:
            return False
        return not self._parser.error_log

    @property
    def errors(self) -> list[Any]:
        """What the schema has against what was read: entries without places."""
        return [entry for entry in self._parser.error_log if entry.domain == etree.ErrorDomains.SCHEMASV]

    def read(self, _size: int = -1) -> bytes:
        """The next piece of the source, for the parser."""
        if self._position and len(self._parser.error_log) > _MAX_ERRORS:
            self.was_stopped = True
            return b""
        start, self._position = self._position, self._position + _CHUNK
        return self._source[start : self._position]


class _NoTree:
    """A parser's target that wants to hear of nothing."""

    def close(self) -> None:
        """The end of the document."""


def _real(log: Iterable[Any]) -> list[Any]:
    """The errors that the standard's validator would find too."""
    return [e for e in log if lenient.url_in(e.message) is None and not lenient.is_right_date(e.message)]


def _urls(log: Iterable[Any]) -> Iterator[tuple[Any, str]]:
    """The errors that are none because the standard takes the URL, each with the URL."""
    for entry in log:
        url = lenient.url_in(entry.message)
        if url is not None:
            yield entry, url


def _doubtful(url: str, element: etree._Element | None) -> Problem:
    where = "" if element is None else f" in {one_line(str(etree.QName(element).localname), 100)}"
    what = f"The URL '{shown_url(url)}'{where}"
    message, remedy = f"{what} is unusual, and some programs cannot follow it.", _GENERAL
    if _NO_PORT.match(url):
        message = f"{what} has a colon after the host name, and no port number after the colon."
        remedy = "Remove the colon, or write the port number after it."
    if _TWICE.match(url):
        message, remedy = f"{what} begins twice.", "Remove the first of the two beginnings."
    return Problem("schema.bad-url", message, remedy, element, Level.WARNING)


def _too_many_attributes(element: etree._Element) -> Problem:
    return Problem(
        "schema.unexpected-attribute",
        f"{one_line(str(etree.QName(element).localname), 100)} has more than {_MAX_ATTRIBUTES:,} attributes.",
        "Remove them; no element of EML has more than a few.",
        element,
    )
