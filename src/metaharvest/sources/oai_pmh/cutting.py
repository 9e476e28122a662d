"""Answers that are not well-formed: cut where records begin, each record read for itself, and mended if need be.

A record that is well-formed by itself is taken as it is. In others, bytes that are no text and characters that XML does
not have are replaced by U+FFFD; if that does not help, the record is lost, and only that record. Records of which only
parts are found are lost too: by their identifiers, or as a number.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from html import unescape
from itertools import islice
from typing import BinaryIO, Generic, TypeVar

from lxml import etree

from metaharvest.fetch.xml_bounds import XmlLimits, XmlRefused, refuse_excess
from metaharvest.sources.oai_pmh.bounds import record_limits
from metaharvest.sources.oai_pmh.namespaces import Declarations
from metaharvest.sources.oai_pmh.protocol import AnswerRoot
from metaharvest.sources.oai_pmh.spooled import (
    LONGEST_TAG,
    WINDOW,
    Data,
    blanked,
    bytes_of,
    give_back,
    hidden_tags,
    search,
)
from metaharvest.text import one_line

Item = TypeVar("Item")

_LARGEST = 268_435_456
"""Bytes of one record: the end of a longer one is not looked for."""

_LARGEST_UTF_16 = 33_554_432
"""Bytes of an answer in UTF-16 that can be cut; cutting needs three times its memory."""

_MOST_TRACES = 100_000
"""The most records that are counted in one damaged part of an answer."""

_HEAD = 1_048_576
TAIL = 262_144
"""Bytes, each, of what follows the last record and of the end of the answer: what is beside records is found there."""

_MOST_NESTED = 20
"""Records with headers within the metadata of one: if there are more, its own end is missing."""

_MOST_BESIDE = 50
_NOT_BLANK = re.compile(rb"\S")
_NO_BEGINNING = "its beginning is damaged"


def _compiled(pattern: str) -> re.Pattern[bytes]:
    """A pattern in which `~` is the prefix of an element's name, or none."""
    return re.compile(pattern.replace("~", r"(?:[A-Za-z_][\w.-]{0,99}:)?").encode())


BEFORE = re.compile(rb"(?:\xef\xbb\xbf|\s)*")
"""What should not come before the XML declaration: blank lines, byte order marks."""

_ENCODING = re.compile(rb"""(?:\xef\xbb\xbf|\s)*<\?xml[^<>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_ONE_BYTE = re.compile(r"us-ascii|iso-8859-(?:[1-9]|1[0-6])|windows-125[0-8]|koi8-[ru]")
"""The encodings beside UTF-8 whose tags can be found in bytes, and whose texts Python decodes."""
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"<\0": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\0<": "utf-16-be"}
"""What begins so, with a byte order mark or a tag."""

_IDENTIFIER = _compiled(r"<~identifier[^<>]*>([^<>]{1,2000})<")
_METADATA = _compiled(r"<~metadata[\s/>]")
_BAD_REFERENCE = re.compile(r"&#(?:[xX]([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BARE_AMPERSAND = re.compile(rb"&(?!#?\w+;)")
_BESIDE = _compiled(r"<(~(responseDate|error|resumptionToken))(?:\s[^<>]*)?/?>")
_PART_OF_ONE = _compiled(r"</?~(error|resumptionToken)\b")
_PART_OF_TOKEN = re.compile(rb"resumption|Token")
"""Before the list there may be a request that quotes one."""

_PIECE = 65_536
_LONGEST_REFERENCE = len("&#x12345678;")
_WORDS = 1000
"""Bytes of an error that is not well-formed."""


class _EndsMore(Exception):
    """A part of an answer that is well-formed only as it has the end of what is around it."""


_ILL_FORMED = (etree.XMLSyntaxError, _EndsMore)


class Damage(Exception):
    """An answer is not well-formed; the message is the parser's."""


class Crowded(Damage):
    """A record, or the tags around the records, exceed a limit; the message names it."""


TOO_DEEP = "its elements are nested more than 2,048 levels deep"


def in_words(message: str) -> str:
    """A message of the parser; in other words where it speaks of how the parser may be set."""
    return TOO_DEEP if message.startswith("Excessive depth") else one_line(message, 200)


@dataclass(frozen=True, slots=True)
class Lost:
    """A record that cannot be read; `identifier` is empty if not even that can."""

    identifier: str
    why: str


@dataclass(frozen=True, slots=True)
class TooLarge(Lost):
    """A record that is not read, as it exceeds a limit."""


@dataclass(frozen=True, slots=True)
class Mended(Generic[Item]):
    """A record in which characters were replaced."""

    item: Item


@dataclass(frozen=True, slots=True)
class Surrounding:
    """What an answer has beside its records, and whether its end was there.

    `unread`: the local names of the elements of which only parts could be read. `has_list`: there is an element for
    what was asked.
    """

    elements: list[etree._Element]
    unread: frozenset[str]
    is_whole: bool
    has_list: bool


def cut(
    file: BinaryIO, root: AnswerRoot, verb: str, item: str, skip: int, limits: XmlLimits | None = None
) -> Iterator[etree._Element | Lost | Mended[etree._Element] | Surrounding]:
    """The records of the answer in `file`, without the first `skip`, and what is beside them at last."""
    data = _in_utf_8(bytes_of(file))
    tags = _Tags(item, data)
    start = tags.first()
    at = start.start() if start else len(data)
    head, tail = data[max(at - _HEAD, 0) : at], b""
    if not start:
        head, tail = data[: min(max(at - TAIL, 0), _HEAD)], data[max(at - TAIL, 0) :]
    frame = _Frame(head, data[:_HEAD], root, verb, limits or record_limits(_LARGEST))
    if not skip:
        yield from tags.traces(0, at, _NO_BEGINNING)
    number = given_back = 0
    while start:
        begin, end, number = start.start(), tags.end_of(start), number + 1
        at = begin if end is None else end
        if at - given_back > WINDOW:
            give_back(data, at)
            given_back = at
        read: etree._Element | Lost | Mended[etree._Element] | None = None
        if number > skip:
            read = Lost("", "it has no end") if end is None else frame.read(data, begin, end)
            if isinstance(read, TooLarge):
                read = TooLarge(tags.name_of(begin, at), read.why)
        is_sure = isinstance(read, TooLarge) or not isinstance(read, Lost | Mended)
        start = tags.next(max(at, begin + 1), is_sure=is_sure)
        behind = start.start() if start else len(data)
        if start is None:
            tail = data[at : at + TAIL] + data[max(at + TAIL, len(data) - TAIL) :]
        if isinstance(read, TooLarge) or not isinstance(read, Lost):
            if read is not None:
                yield read
            if number >= skip:
                yield from tags.traces(at, behind, _NO_BEGINNING)
        elif start or end or ends(tail, root, verb):  # if the answer breaks off in a record, it is asked for again
            yield from tags.traces(begin, behind, read.why, least=1)
    yield frame.surrounding(head, tail)


def mended(data: bytes, encoding: str = "utf-8") -> bytes:
    """`data` in UTF-8, with U+FFFD where there was no text, or a character that XML does not have."""
    text = data.decode(encoding, "replace")
    return b"".join(
        _NO_XML.sub("\ufffd", _BAD_REFERENCE.sub(_proper_reference, piece)).encode() for piece in _pieces(text)
    )


def _pieces(text: str) -> Iterator[str]:
    """A text in pieces, so that other threads have their turn. No piece ends within a character reference."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text) and (begun := text.rfind("&", end - _LONGEST_REFERENCE, end)) > start:
            end = begun
        yield text[start:end]
        start = end


def mended_whole(content: bytes) -> bytes:
    """A whole document, mended, in UTF-8 whatever it declares."""
    content = bytes(_in_utf_8(content))
    text = mended(content, _encoding(content))
    return re.sub(rb"^<\?xml[^<>]*\?>\s*", b"", BEFORE.sub(b"", text, 1))


class _Tags:
    """How what is listed begins and ends: records, their headers alone, or in 1.x their identifiers.

    A `start` is any beginning; a `headed` one is followed by what a record or a header begins with, as metadata may
    have elements of that name too.
    """

    def __init__(self, item: str, data: Data) -> None:
        self._data = data
        self._hidden = hidden_tags(data)
        tag = rf"<((~){item})(?:\s[^<>]*)?"
        self._start = _compiled(tag + "/?>")
        if item == "identifier":
            self._headed = self._start
            self._names = _compiled(r"</~identifier\s*>")
            self._counted = [self._names]
            return
        first = "header" if item == "record" else "identifier"
        self._headed = _compiled(tag + rf">\s*(?:<!--(?:[^-]|-(?!->)){{0,200}}-->\s*)?<\2{first}[\s/>]")
        stamped = r"\s*<~datestamp\s*>[^<>]{0,200}</~datestamp\s*>\s*(?:<~setSpec|</~header)[\s>]"
        self._names = _compiled(rf"</~identifier\s*>(?={stamped})")
        self._counted = [_compiled(r"</~(?:datestamp|setSpec)\s*>\s*</~header\s*>")]
        if item == "header":
            self._counted += [_compiled(r"<~datestamp[\s>]"), _compiled(r"</~datestamp[\s>]")]

    def first(self) -> re.Match[bytes] | None:
        """Where the first item begins."""
        return self._found(self._headed, 0) or self._found(self._start, 0)

    def next(self, at: int, *, is_sure: bool) -> re.Match[bytes] | None:
        """The next beginning; behind parts of records only one that is `headed`, as it may be within metadata."""
        found = self._found(self._start, at) if is_sure else None
        is_next = found is not None and search(_NOT_BLANK, self._data, at, found.start()) is None
        return found if is_next else self._found(self._headed, at)

    def end_of(self, start: re.Match[bytes]) -> int | None:
        """Where the item ends that begins at `start`, with elements of the same name within it."""
        depth = nested = 0
        begin, limit = start.start(), min(start.start() + _LARGEST, len(self._data))
        tag = re.compile(rb"</?" + re.escape(start[1]) + rb"(?:\s[^<>]*)?/?>")
        for found in self._all(tag, begin, limit):
            text = found[0]
            if text.startswith(b"</"):
                depth -= 1
            elif not text.endswith(b"/>"):
                nested += bool(depth and self._headed.match(self._data, found.start(), found.start() + 2 * LONGEST_TAG))
                depth += 1
            if not depth:
                return found.end()
            if nested > _MOST_NESTED:
                break
        following = self._found(self._headed, start.end())
        closing = re.compile(rb"</" + re.escape(start[1]) + rb"(?:\s[^<>]*)?>")
        last = None
        for each in self._all(closing, begin, min(following.start() if following else limit, limit)):
            last = each.end()
        return last

    def name_of(self, begin: int, end: int) -> str:
        """The identifier of the record between these places; empty if there is none to read."""
        return next(self._identifiers(begin, end), "")

    def traces(self, begin: int, end: int, why: str, least: int = 0) -> Iterator[Lost]:
        """The items of which there are parts, by their identifiers; those without, but `least` of all, as a number."""
        names = dict.fromkeys(islice(self._identifiers(begin, end), _MOST_TRACES))
        counted = (islice(self._all(each, begin, end), _MOST_TRACES) for each in self._counted)
        number = max(least, *(sum(1 for _ in each) for each in counted))
        yield from (Lost(name, why) for name in names)
        yield from (Lost("", why) for _ in range(len(names), number))

    def _identifiers(self, begin: int, end: int) -> Iterator[str]:
        metadata = self._found(_METADATA, begin, end)
        until = metadata.start() if metadata else end
        if own := self._found(_IDENTIFIER, begin, min(until, begin + 65_536)):
            yield _text(own[1])
        for found in self._all(self._names, begin, end):
            text = self._data[max(found.start() - 2000, begin) : found.start()].rpartition(b">")[2]
            if text and b"<" not in text:
                yield _text(text)

    def _found(self, pattern: re.Pattern[bytes], begin: int, end: int | None = None) -> re.Match[bytes] | None:
        return next(self._all(pattern, begin, len(self._data) if end is None else end), None)

    def _all(self, pattern: re.Pattern[bytes], begin: int, end: int) -> Iterator[re.Match[bytes]]:
        """What matches between there, but not where tags are none."""
        while found := search(pattern, self._data, begin, end):
            number = bisect_right(self._hidden, (found.start(), len(self._data))) - 1
            hidden_until = self._hidden[number][1] if number >= 0 else 0
            if hidden_until <= found.start():
                yield found
            begin = max(found.end(), hidden_until)


class _Frame:
    """The start tags that records of an answer are in, which declare prefixes that the records may use."""

    def __init__(self, head: bytes, first: bytes, root: AnswerRoot, verb: str, limits: XmlLimits) -> None:
        self._limits = limits
        self._encoding = _encoding(first)
        self._root, self._verb = root, verb
        self._list = _compiled(rf"</?~{verb}[\s/>]")
        names = [verb] if root.is_old else ["OAI-PMH", verb]
        head, first = blanked(head), blanked(first)
        self._depth = len(names)
        self._open: list[Declarations] = []
        self._close = b""
        for name in names:
            pattern = _compiled(rf"<(~{name})(?:\s[^<>]*)?>")
            tag = pattern.search(head) or pattern.search(first)
            opened = tag[0] if tag else f'<{name} xmlns="{root.namespace}">'.encode()
            self._open.append(Declarations(opened))
            self._close = b"</" + (tag[1] if tag else name.encode()) + b">" + self._close

    def read(self, data: Data, begin: int, end: int) -> etree._Element | Lost | Mended[etree._Element]:
        """The record between these places: parsed, repaired, or lost with the reason."""
        if end - begin > self._limits.size:
            return TooLarge("", f"it has more than {self._limits.size:,} bytes")
        record = data[begin:end]
        try:
            refuse_excess(record, self._limits)
            return self._parsed(record, self._encoding)
        except XmlRefused as refused:
            return TooLarge("", f"it {refused}")
        except _ILL_FORMED:
            pass
        try:
            return Mended(self._parsed(mended(record, self._encoding), "utf-8"))
        except _ILL_FORMED as error:
            why = error.msg if isinstance(error, etree.XMLSyntaxError) else str(error)
            return Lost("", in_words(why or "it is not well-formed"))

    def surrounding(self, head: bytes, tail: bytes) -> Surrounding:
        """The protocol's elements before and after the records."""
        text, at = head + tail, 0
        shown = blanked(text)
        starts = list(_BESIDE.finditer(shown))
        elements, unread, between = [], set(), []
        for start in starts if len(starts) <= 2 * _MOST_BESIDE else starts[:_MOST_BESIDE] + starts[-_MOST_BESIDE:]:
            if start.start() < at:
                continue
            between.append(shown[at : start.start()])
            closing = -1 if start[0].endswith(b"/>") else shown.find(b"</" + start[1], start.end())
            at = shown.find(b">", closing) + 1 if closing > 0 else start.end()
            element = self._beside(start, text[start.start() : at], text[start.end() : start.end() + _WORDS])
            if element is None:
                unread.add(start[2].decode())
            else:
                elements.append(element)
        rest = b"".join([*between, shown[at:]])
        unread.update(found[1].decode() for found in _PART_OF_ONE.finditer(rest))
        if (begun := self._list.search(rest)) and _PART_OF_TOKEN.search(rest, begun.end()):
            unread.add("resumptionToken")
        is_whole = ends(tail, self._root, self._verb)
        return Surrounding(elements, frozenset(unread), is_whole, self._list.search(shown) is not None)

    def _beside(self, start: re.Match[bytes], whole: bytes, behind: bytes) -> etree._Element | None:
        """One element of the protocol, repaired if need be. For an error, the start tag with its code is enough."""
        data = mended(whole, self._encoding)
        for text in (data, _BARE_AMPERSAND.sub(b"&amp;", data)):
            with suppress(*_ILL_FORMED):
                return self._parsed(text, "utf-8")
        if start[2] == b"error":
            with suppress(*_ILL_FORMED):
                error = self._parsed(mended(start[0][:-1] + b"/>", self._encoding), "utf-8")
                words = blanked(behind.partition(b"</" + start[1])[0])
                error.text = mended(words, self._encoding).decode()
                return error
        return None

    def _parsed(self, record: bytes, encoding: str) -> etree._Element:
        declaration = f'<?xml version="1.0" encoding="{encoding}"?>'.encode()
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
        opened = b"".join(each.tag_for(record) for each in self._open)
        element = etree.fromstring(declaration + opened + record + self._close, parser)
        for _ in range(self._depth):
            if not len(element):
                raise _EndsMore("it ends what is around it")
            element = element[0]
        return element


def _in_utf_8(data: Data) -> Data:
    """UTF-16 in UTF-8, as tags are looked for in bytes; what is too long for that is left as it is."""
    encoding = _UTF_16.get(data[:2])
    if encoding is None or len(data) > _LARGEST_UTF_16:
        return data
    return bytes(data).decode(encoding, "replace").encode("utf-8", "replace")


def ends(tail: bytes, root: AnswerRoot, verb: str) -> bool:
    """Whether the answer comes to its end there."""
    end = _compiled(rf"</~(?:{verb}|{verb if root.is_old else 'OAI-PMH'})\s*>")
    return end.search(blanked(tail)) is not None


def _text(identifier: bytes) -> str:
    return unescape(identifier.decode("utf-8", "replace")).strip()


def _encoding(head: bytes) -> str:
    declared = _ENCODING.match(head[:1000])
    name = declared[1].decode().lower() if declared else "utf-8"
    return name if _ONE_BYTE.fullmatch(name) else "utf-8"


def _proper_reference(found: re.Match[str]) -> str:
    number = int(found[1], 16) if found[1] else int(found[2])
    is_proper = number <= 0x10FFFF and not _NO_XML.match(chr(number))
    return found[0] if is_proper else "\ufffd"
