"""Damaged answers: cut at record boundaries, so that every whole record is taken.

A record begins with its start tag and that of its header. It ends before the next one begins, with the end tag of its
last part and its own. Each record is parsed strictly. Where that fails, what is no text is replaced by U+FFFD, and the
record is parsed strictly again. Where that fails too, the record is lost: named if its identifier can be read,
otherwise counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from html import unescape
from io import UnsupportedOperation
from itertools import islice
from mmap import ACCESS_READ, MADV_DONTNEED, PAGESIZE, mmap
from typing import BinaryIO
from xml.sax.saxutils import quoteattr

from lxml import etree

from metaharvest.fetch.xml_bounds import XmlLimits, XmlRefused, refuse_excess
from metaharvest.sources.oai_pmh.bounds import URI
from metaharvest.sources.oai_pmh.protocol import ResponseRoot
from metaharvest.text import one_line

Data = bytes | mmap

TAIL = 262_144
"""Bytes of the end of an answer, in which its end tag and its token are looked for."""

_HEAD = 1_048_576
"""Bytes before the first record, in which namespaces, errors and the responseDate are looked for."""

_LONGEST_TAG = 65_536
"""Bytes of a tag: a longer one is not found."""

_PIECE = 262_144
WINDOW = 4_194_304
"""Bytes of a mapped file that are searched before their memory is released."""

_MOST_LOST = 100_000
"""Lost records that are counted between two others."""

_MOST_BESIDE = 100
"""Elements of the protocol beside the records that are read."""

_MOST_DECLARED = 100
"""Namespaces that are declared around a record, and that it uses."""


def _compiled(pattern: str) -> re.Pattern[bytes]:
    """A pattern in which `~` is the prefix of an element's name, or none."""
    return re.compile(pattern.replace("~", r"(?:[A-Za-z_][\w.-]{0,99}:)?").encode(), re.DOTALL)


_GAP = r"\s*(?:<!--[^<>]{0,200}-->\s*)?"
"""Between two tags: white space, or a comment."""

_BOUNDARIES = {
    "record": _compiled(
        rf"(?P<begin><(?P<prefix>~)record(?:\s[^<>]*)?>(?={_GAP}<(?P=prefix)header[\s/>]))|"
        rf"(?P<end>(?:</~(?:header|metadata|about)\s*>|<~(?:header|metadata)(?:\s[^<>]*)?/>){_GAP}</~record\s*>)|"
        r"</~record\s*>"
    ),
    "header": _compiled(
        rf"(?P<begin><(?P<prefix>~)header(?:\s[^<>]*)?>(?={_GAP}<(?P=prefix)identifier[\s/>]))|(?P<end></~header\s*>)"
    ),
    "identifier": _compiled(r"(?P<begin><~identifier(?:\s[^<>]*)?>)|(?P<end></~identifier\s*>)"),
}
"""What begins and ends the items of a list: records, headers, or in 1.x identifiers.

Metadata may have elements of these names too, such as the <record> of MARC. If no certain `end` follows a beginning,
the last end tag is the end.
"""

_METADATA = _compiled(r"<~metadata[\s/>]")
_IDENTIFIER = _compiled(r"<~identifier[^<>]*>([^<>]{1,2000})<")
_IDENTIFIER_END = _compiled(r"</~identifier\s*>")
_IDENTIFIER_END_IN_HEADER = _compiled(
    r"</~identifier\s*>(?=\s*<~datestamp\s*>[^<>]{0,200}</~datestamp\s*>\s*(?:<~setSpec|</~header)[\s>])"
)
_HEADER_END = _compiled(r"</~(?:datestamp|setSpec)\s*>\s*</~header\s*>")

_BEFORE = re.compile(rb"(?:\xef\xbb\xbf|\s)*(?:<\?xml[^<>]*\?>\s*)?")
"""What may come before the root element, and blank lines and byte order marks, which should not.

Seen at https://github.com/omeka/Omeka/issues/541.
"""
_ENCODING = re.compile(rb"""(?:\xef\xbb\xbf|\s)*<\?xml[^<>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_ONE_BYTE = re.compile(r"us-ascii|iso-8859-(?:[1-9]|1[0-6])|windows-125[0-8]|koi8-[ru]")
"""The encodings beside UTF-8 whose tags can be found in bytes, and whose texts Python decodes."""

_HIDDEN = re.compile(
    rb"<!--[^-]*+(?:-(?!-)[^-]*+)*+-->|"
    rb"<!\[CDATA\[[^\]<]*+(?:(?:\](?!\]>)|<(?!!\[CDATA\[))[^\]<]*+)*+\]\]>|"
    rb"<\?[^?<]*+(?:(?:\?(?!>)|<(?!\?))[^?<]*+)*+\?>"
)
"""A comment, CDATA section or instruction. If another one of its kind begins in it, its end is missing."""

_PREFIX = re.compile(rb"""(?<![^\s<>/="'(,;])([^\s<>/="':(,;]++):""")
_BAD_REFERENCE = re.compile(r"&#(?:[xX]([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BARE_AMPERSAND = re.compile(rb"&(?!#?\w+;)")
_BESIDE = _compiled(
    r"<(?P<name>~(?P<local>error|resumptionToken))(?P<attributes>\s[^<>]*?)?"
    r"(?:/>|>(?P<words>[^<]*+(?:<(?!/?(?P=name)\b)[^<]*+)*+)</(?P=name)\s*>)"
)
_RESPONSE_DATE = _compiled(r"<~responseDate(?:\s[^<>]*)?>([^<>]{1,64})<")
_PART_OF_ERROR = _compiled(r"</?~error\b")
_PART_OF_TOKEN = re.compile(rb"resumption|Token")

TOO_DEEP = "its elements are nested more than 2,048 levels deep"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that cannot be read; `identifier` is empty if not even that can. `is_large`: it exceeds a limit."""

    identifier: str
    why: str
    is_large: bool = False


@dataclass(frozen=True, slots=True)
class Whole:
    """The element of a record that can be read; `is_repaired`: characters were replaced in it."""

    element: etree._Element
    is_repaired: bool


@dataclass(frozen=True, slots=True)
class Envelope:
    """What an answer has beside its records. `is_whole`: its end tag is there. `has_list`: it answers the question.

    `unread`: the local names of the elements of which only parts could be read.
    """

    elements: list[etree._Element]
    unread: frozenset[str]
    is_whole: bool
    has_list: bool


class DamagedResponse:
    """An answer that is not well-formed, or too crowded to be read as it is.

    Records that are not well-formed: https://github.com/IQSS/dataverse/issues/12120. A bare & beside them:
    https://github.com/artefactual/atom/issues/803. Texts behind them: https://github.com/findsorguk/findsorguk/issues/843
    """

    def __init__(self, file: BinaryIO, root: ResponseRoot, verb: str, item: str, limits: XmlLimits) -> None:
        self._data = mapped(file)
        self._root, self._verb, self._item, self._limits = root, verb, item, limits
        head = self._data[:_HEAD]
        self._encoding = _encoding(head)
        self._list = _compiled(rf"<~{verb}[\s/>]")
        shown = blanked(head)
        begun = _compiled(rf"<~{verb}(?:\s[^<>]*)?>").search(shown)
        dated = _RESPONSE_DATE.search(shown, 0, begun.start() if begun else len(shown))
        self.response_date = _text(dated[1]) if dated else ""
        declared = _declared(repaired_whole(head[: begun.end()] if begun else head), root, verb)
        self._declared = {prefix: _declaration(prefix, uri) for prefix, uri in declared.items()}
        self._first = self._last = max(0, len(self._data) - TAIL)  # if there are no records
        self._has_records = False

    def records(self) -> Iterator[Whole | Unreadable]:
        """The records, whole or lost."""
        size = len(self._data)
        for begin, end, following in self._places():
            if not self._has_records:
                self._first, self._has_records = begin, True
                yield from self._lost(0, begin, Unreadable("", "its beginning is damaged"))
            self._last = begin if end is None else end
            read = Unreadable("", "it has no end") if end is None else self._read(begin, end)
            if isinstance(read, Whole) or read.is_large:
                yield read
                yield from self._lost(self._last, following, Unreadable("", "its beginning is damaged"))
            elif end is not None or following < size or ends(self._data[-TAIL:], self._root, self._verb):
                yield from self._lost(begin, following, read, least=1)  # unless the answer breaks off in it
        if not self._has_records:
            yield from self._lost(0, size, Unreadable("", "its beginning is damaged"))

    def _places(self) -> Iterator[tuple[int, int | None, int]]:
        """Where each record begins and ends (None if its end is missing), and where the next one begins."""
        begin = end = last = None
        for tag in matches(_BOUNDARIES[self._item], self._data, 0, len(self._data)):
            if tag["begin"]:
                if begin is not None:
                    yield begin, end or last, tag.start()
                begin, end, last = tag.start(), None, None
            elif tag["end"]:
                end = end or tag.end()
            else:
                last = tag.end()
        if begin is not None:
            yield begin, end or last, len(self._data)

    def _read(self, begin: int, end: int) -> Whole | Unreadable:
        """The record between these places: parsed, repaired, or lost with the reason."""
        why = f"it has more than {self._limits.size:,} bytes"
        if end - begin <= self._limits.size:
            record = self._data[begin:end]
            try:
                refuse_excess(record, self._limits)
                with suppress(etree.XMLSyntaxError):
                    return Whole(self._parsed(record, self._encoding), is_repaired=False)
                return Whole(self._parsed(repaired(record, self._encoding), "utf-8"), is_repaired=True)
            except etree.XMLSyntaxError as error:
                return Unreadable("", in_words(error.msg or "it is not well-formed"))
            except XmlRefused as refused:
                why = f"it {refused}"
        return Unreadable(next(self._identifiers(begin, end), ""), why, is_large=True)

    def _lost(self, begin: int, end: int, lost: Unreadable, least: int = 0) -> Iterator[Unreadable]:
        """The records of which parts are between these places, named or counted; at least this number."""
        names = dict.fromkeys(islice(self._identifiers(begin, end), _MOST_LOST))
        ends_of_each = {"record": [_HEADER_END], "header": [_HEADER_END, _IDENTIFIER_END]}
        counted = (matches(each, self._data, begin, end) for each in ends_of_each.get(self._item, [_IDENTIFIER_END]))
        number = max(least, *(sum(1 for _ in islice(each, _MOST_LOST)) for each in counted))
        yield from (replace(lost, identifier=name) for name in names)
        yield from (lost for _ in range(len(names), number))

    def _identifiers(self, begin: int, end: int) -> Iterator[str]:
        """The identifier of the first record, and each one that a datestamp follows, as in a header."""
        near = min(begin + _LONGEST_TAG, end)
        metadata = _METADATA.search(self._data, begin, near)
        if first := _IDENTIFIER.search(self._data, begin, metadata.start() if metadata else near):
            yield _text(first[1])
        in_list = _IDENTIFIER_END if self._item == "identifier" else _IDENTIFIER_END_IN_HEADER
        for found in matches(in_list, self._data, begin, end):
            text = self._data[max(found.start() - 2_000, begin) : found.start()].rpartition(b">")[2]
            if text and b"<" not in text:
                yield _text(text)

    def envelope(self) -> Envelope:
        """The protocol's elements before the first record, and behind the last one. To be called after records()."""
        size, behind = len(self._data), self._last + TAIL
        tail = self._data[self._last : behind] + self._data[max(behind, size - TAIL) :]
        text = self._data[max(self._first - _HEAD, 0) : self._first] + tail
        shown = blanked(text)
        elements, unread = [], set()
        for number, found in enumerate(_BESIDE.finditer(shown)):
            words = text[slice(*found.span("words"))] if found["words"] else b""
            element = self._beside(found, words) if number < _MOST_BESIDE else None
            if element is None:
                unread.add(found["local"].decode())
            else:
                elements.append(element)
        rest = _BESIDE.sub(b"", shown)
        if _PART_OF_ERROR.search(rest):
            unread.add("error")
        # Before the list there may be a request that quotes a token.
        if (begun := self._list.search(rest)) and _PART_OF_TOKEN.search(rest, begun.end()):
            unread.add("resumptionToken")
        is_whole = ends(tail, self._root, self._verb)
        has_list = self._has_records or self._list.search(shown) is not None
        return Envelope(elements, frozenset(unread), is_whole, has_list)

    def _beside(self, found: re.Match[bytes], words: bytes) -> etree._Element | None:
        """One element of the protocol, repaired if need be. For an error, the start tag with its code is enough."""
        tag = b"<" + found["name"] + (found["attributes"] or b"")
        data = repaired(tag + b">" + words + b"</" + found["name"] + b">", self._encoding)
        for text in (data, _BARE_AMPERSAND.sub(b"&amp;", data)):
            with suppress(etree.XMLSyntaxError, XmlRefused):
                return self._parsed(text, "utf-8")
        if found["local"] == b"error":
            with suppress(etree.XMLSyntaxError, XmlRefused):
                error = self._parsed(repaired(tag + b"/>", self._encoding), "utf-8")
                error.text = repaired(words, self._encoding).decode()
                return error
        return None

    def _parsed(self, text: bytes, encoding: str) -> etree._Element:
        """One element, within an element that declares the namespaces. Raises XMLSyntaxError, and XmlRefused."""
        declaration = f'<?xml version="1.0" encoding="{encoding}"?>'.encode()
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
        return etree.fromstring(declaration + b"<oai" + self._declarations(text) + b">" + text + b"</oai>", parser)[0]

    def _declarations(self, text: bytes) -> bytes:
        """The declarations of the namespaces that this record uses. Raises XmlRefused if these are too many."""
        used = {None, *(found[1].decode("utf-8", "replace") for found in _PREFIX.finditer(text))}
        declarations = [declared for prefix, declared in self._declared.items() if prefix in used]
        if len(declarations) > _MOST_DECLARED:
            raise XmlRefused(f"uses more than {_MOST_DECLARED} namespaces that are declared around it")
        if (longest := max(map(len, declarations), default=0)) > URI:
            raise XmlRefused(f"uses a namespace of some {longest:,} characters; {URI:,} are taken")
        return b"".join(declarations)


def _declared(head: bytes, root: ResponseRoot, verb: str) -> dict[str | None, str]:
    """The namespaces in scope at the records, by prefix."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, recover=True)
    tree = None
    with suppress(etree.XMLSyntaxError):
        tree = etree.fromstring(head, parser)
    if tree is None:
        return {None: root.namespace}
    return {None: root.namespace} | dict(next(tree.iter(f"{{*}}{verb}"), tree).nsmap)


def _declaration(prefix: str | None, uri: str) -> bytes:
    return f" xmlns{':' if prefix else ''}{prefix or ''}={quoteattr(uri)}".encode()


def mapped(file: BinaryIO) -> Data:
    """All of a file, which is not read into memory if it is on a disk."""
    try:
        number = file.fileno()
    except UnsupportedOperation:
        file.seek(0)
        return file.read()
    file.flush()
    return mmap(number, 0, access=ACCESS_READ)


def matches(pattern: re.Pattern[bytes], data: Data, begin: int, end: int) -> Iterator[re.Match[bytes]]:
    """What matches the pattern between these places. The system gets the memory of what was searched back."""
    at = released = begin
    for start in range(begin, end, _PIECE):
        until = min(start + _PIECE, end)
        for found in pattern.finditer(data, max(start, at), min(until + _LONGEST_TAG, end)):
            if found.start() >= until:
                break
            at = found.end()
            yield found
        if until - released >= WINDOW and isinstance(data, mmap):
            data.madvise(MADV_DONTNEED, 0, until - until % PAGESIZE)
            released = until


def repaired(data: bytes, encoding: str = "utf-8") -> bytes:
    """`data` in UTF-8, with U+FFFD where there was no text, or a character that XML does not have.

    Seen at https://github.com/IQSS/dataverse/issues/9987 and https://github.com/TreeBASE/treebase/issues/193.
    """
    text = _BAD_REFERENCE.sub(_proper_reference, data.decode(encoding, "replace"))
    return _NO_XML.sub("\ufffd", text).encode()


def repaired_whole(content: bytes) -> bytes:
    """A document from its root element on, repaired, in UTF-8 whatever it declares."""
    text = repaired(content, _encoding(content))
    before = _BEFORE.match(text)
    return text[before.end() :] if before else text


def ends(tail: bytes, root: ResponseRoot, verb: str) -> bool:
    """True if the answer comes to its end there."""
    end = _compiled(rf"</~(?:{verb}|{root.verb or 'OAI-PMH'})\s*>")
    return end.search(blanked(tail)) is not None


def blanked(text: bytes) -> bytes:
    """As long a text, in which comments, CDATA sections and processing instructions are blank."""
    return _HIDDEN.sub(lambda hidden: b" " * len(hidden[0]), text)


def in_words(message: str) -> str:
    """A message of the parser; in other words where it speaks of how the parser may be set."""
    return TOO_DEEP if message.startswith("Excessive depth") else one_line(message, 200)


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
