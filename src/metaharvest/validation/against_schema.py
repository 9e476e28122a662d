"""Decides with libxml2 whether a document is valid by its schema, in bounded time and memory.

`explain` puts the errors into words.

lxml keeps the path of every error, and finding the path of one among very many sibling elements takes long: a hostile
document of some megabytes, with hundreds of thousands of errors, could take hours and gigabytes. So a document that is
not small is first read again from its source, without building a tree, by a parser that validates while it reads and
can be stopped. lxml is asked for paths only if that reading has shown that they are cheap.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from lxml import etree

from metaharvest.model import Level
from metaharvest.text import shown_url
from metaharvest.validation import explain, lenient
from metaharvest.validation.places import ElementFinding, evaluated, shown_name
from metaharvest.validation.schemas import Described

_STREAMED_BYTES = 250_000
"""A document larger than this is validated from its source first; a smaller one has no room for very many errors."""

_LONG_TEXT = 10_000
"""A text longer than this is not validated while the source is read, when it comes in pieces: libxml2 takes as long to
add a piece as there is text before it."""

_FEW_PIECES = 1000

_CHUNK = 65_536
_MAX_ERRORS = 10_000
"""Number of errors after which reading stops."""

_MAX_ATTRIBUTES = 1_000
"""The most attributes of an element: 12,000 on one element took 13 seconds."""

_LEAST_LONG_TAG = 5 * _MAX_ATTRIBUTES
"""The bytes of a tag with this number of attributes, each with a blank, a name, an equals sign and two quotes."""

_MAX_PATH_STEPS = 5_000_000_000
"""Number of errors times bytes of the document up to which paths are cheap, even with very many sibling elements."""

_UNUSUAL_URL = "Try it in a browser. Brackets are written %5B and %5D, and a port is a number."
_NO_PORT = re.compile(r"\s*+[^:/?#]*+://[^/?#]*:(?:[/?#]|\s*\Z)")
_TWICE = re.compile(r"\s*(?:https?|ftp)://(?:https?|ftp)://?", re.IGNORECASE)

_long_texts = etree.XPath(f"//text()[string-length() > {_LONG_TEXT}]")
_has_20_000_children = etree.XPath("boolean(//*[*[20000]])")
_with_too_many_attributes = etree.XPath(f"(//*[@*[{_MAX_ATTRIBUTES + 1}]])[1]")


def schema_findings(
    root: etree._Element, content: bytes, schema: etree.XMLSchema, described: Described
) -> list[ElementFinding]:
    """The schema's errors of the document, and warnings about doubtful URLs; empty if there is nothing to say."""
    if (crowded := crowded_element(root, content)) is not None:
        message = f"{shown_name(crowded)} has more than {_MAX_ATTRIBUTES:,} attributes."
        remedy = "Remove them; no element of EML has more than a few."
        return [ElementFinding("schema.unexpected-attribute", message, remedy, crowded)]
    if len(content) > _STREAMED_BYTES:
        reading = _StreamedValidation(root, content)
        if reading.is_valid(schema) and not reading.shortened:
            return []
        number = len(reading.errors) if len(reading.errors) > reading.shortened else 0
        if reading.was_stopped or (
            number * len(content) > _MAX_PATH_STEPS and evaluated(_has_20_000_children, root, True)
        ):
            # A document whose reading was stopped is refused: its rest is not known.
            errors = _true_errors(reading.errors)
            if errors or reading.was_stopped:
                return explain.findings_without_places(errors or reading.errors)
            return [_url_warning(url, None) for _, url in _accepted_urls(reading.errors)]
    tree = root.getroottree()
    if schema.validate(tree):
        return []
    log = cast(list[Any], schema.error_log)
    errors = _true_errors(log)
    found = explain.explained_findings(root, errors, content, described) if errors else []
    if len(errors) < len(log):
        found += [_url_warning(url, explain.element_at(tree, entry.path)) for entry, url in _accepted_urls(log)]
    return found


def crowded_element(root: etree._Element, content: bytes) -> etree._Element | None:
    """The first element whose many attributes make its validation slow, or None."""
    # In UTF-16 an equals sign is this byte and another one.
    if not _has_long_tag(root, content) or content.count(b"=") <= _MAX_ATTRIBUTES:
        return None
    # Very many elements leave no room for long tags.
    return next(iter(evaluated(_with_too_many_attributes, root, list[etree._Element]())), None)


def _has_long_tag(root: etree._Element, content: bytes) -> bool:
    """True if a tag may have too many attributes: many bytes without the beginning of another one. True if in doubt.

    To count equals signs takes ten times as long.
    """
    if b"\0" in content or root.getroottree().docinfo.encoding not in ("UTF-8", "utf-8"):
        return True
    begun = 0
    while begun + _LEAST_LONG_TAG < len(content):
        begun = content.rfind(b"<", begun + 1, begun + _LEAST_LONG_TAG)
        if begun < 0:
            return True
    return False


class _StreamedValidation:
    """Validates a source while reading it, without building a tree; stops after too many errors.

    `shortened` is the number of long texts that were cut: this number of errors, or their absence, may be due to that.
    """

    def __init__(self, root: etree._Element, content: bytes) -> None:
        is_plain = content.removeprefix(codecs.BOM_UTF8)[:1] in (b"<", b" ", b"\t", b"\r", b"\n")
        # Very many elements leave no room for long texts.
        long = evaluated(_long_texts, root, list[Any]()) if _comes_in_pieces(content) else []
        self.shortened = len(long)
        if long or not is_plain or content[1:2] == b"\0":
            self._source = _serialized(root, long)
        else:
            self._source = content
        self._parser: etree.XMLParser
        self._position = 0
        self.was_stopped = False

    def is_valid(self, schema: etree.XMLSchema) -> bool:
        """True if all of the source was read without an error."""
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
        """The schema's errors of what was read; they have no paths."""
        return [entry for entry in self._parser.error_log if entry.domain == etree.ErrorDomains.SCHEMASV]

    def read(self, _size: int = -1) -> bytes:
        """The next piece of the source, for the parser."""
        if self._position and len(self._parser.error_log) > _MAX_ERRORS:
            self.was_stopped = True
            return b""
        start, self._position = self._position, self._position + _CHUNK
        return self._source[start : self._position]


def _comes_in_pieces(content: bytes) -> bool:
    """True if a text of this may come in very many pieces: they end at other than ASCII, `&`, and CDATA sections."""
    if not content.isascii() or b"\0" in content:
        return True
    return sum(map(content.count, (b"&", b"<!", b"<?"))) > _FEW_PIECES


def _serialized(root: etree._Element, long: list[Any]) -> bytes:
    """The tree as a source, in which the long texts are short; the tree is as before."""
    places = [(text, text.getparent(), "text" if text.is_text else "tail") for text in long]
    try:
        for text, element, name in places:
            setattr(element, name, text[:_LONG_TEXT])
        return etree.tostring(root, encoding="UTF-8")
    finally:
        for text, element, name in places:
            setattr(element, name, text)


class _NoTree:
    """A parser's target that builds nothing."""

    def close(self) -> None:
        """The end of the document."""


def _true_errors(log: Iterable[Any]) -> list[Any]:
    """The errors that the standard's validator would find too."""
    return [e for e in log if lenient.accepted_url(e.message) is None and not lenient.is_accepted_date(e.message)]


def _accepted_urls(log: Iterable[Any]) -> Iterator[tuple[Any, str]]:
    """The entries about a URL that the standard accepts, each with the URL."""
    for entry in log:
        url = lenient.accepted_url(entry.message)
        if url is not None:
            yield entry, url


def _url_warning(url: str, element: etree._Element | None) -> ElementFinding:
    where = "" if element is None else f" in {shown_name(element)}"
    what = f"The URL '{shown_url(url)}'{where}"
    message, remedy = f"{what} is unusual, and some programs cannot follow it.", _UNUSUAL_URL
    if _NO_PORT.match(url):
        message = f"{what} has a colon after the host name, and no port number after the colon."
        remedy = "Remove the colon, or write the port number after it."
    if _TWICE.match(url):
        message, remedy = f"{what} begins twice.", "Remove the first of the two beginnings."
    return ElementFinding("schema.bad-url", message, remedy, element, Level.WARNING)
