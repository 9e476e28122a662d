"""Damaged answers: cut at record boundaries, so that every whole record is used.

Each record is parsed strictly. Where that fails, what is no text is replaced by U+FFFD, and the record is parsed
strictly again. Where that fails too, the record is lost: named if its identifier can be read, otherwise counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, BinaryIO, Generic, TypeVar

from lxml import etree

from metaharvest.fetch.xml_bounds import DECLARATION_BYTES, XmlLimits, XmlRefused, refuse_excess
from metaharvest.model.values import frozen
from metaharvest.sources.charset import ONE_BYTE
from metaharvest.sources.oai_pmh.bounds import URI, declared_size
from metaharvest.sources.oai_pmh.mapped_file import LONGEST_TAG, WINDOW, Data, bytes_of, matches, release
from metaharvest.sources.oai_pmh.protocol import ResponseRoot
from metaharvest.text import one_line, only_xml, unescaped

Item = TypeVar("Item")

PARSER_OPTIONS: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": True}
"""The options of each parser of answers."""

TAIL = 262_144
"""Bytes at the end of an answer in which its end tag and its token are searched."""

NOTICE = 65_536
"""Bytes of an answer in which a text before it ends."""

_HEAD = 1_048_576
"""Bytes before the first record in which namespaces, errors and the responseDate are searched."""

_LARGEST_UTF_16 = 33_554_432
"""Bytes of an answer in UTF-16 that can be cut; cutting needs three times its memory."""

_MOST_NESTED = 20
"""Records within the metadata of one record: if there are more, its own end is missing."""

_MOST_LOST = 100_000
"""Lost records that are counted between two others."""

_MOST_BESIDE = 50
_MOST_DECLARED, _USUAL_DECLARED = 100, 4_096
"""Namespaces that one record gets, and characters of those that go with each record whether it uses them or not."""

_XSI: dict[str | None, str] = {"xsi": "http://www.w3.org/2001/XMLSchema-instance"}
"""The prefix that records may use without a declaration: it has one meaning.

Seen at https://github.com/OPUS4/application/issues/427.
"""


def _compiled(pattern: str) -> re.Pattern[bytes]:
    """A pattern in which `~` is the prefix of an element's name, or none."""
    return re.compile(pattern.replace("~", r"(?:[A-Za-z_][\w.-]{0,99}:)?").encode())


_BEFORE = re.compile(rb"(?:\xef\xbb\xbf|\s)*(?:<\?xml[^<>]*\?>\s*)?")
"""The text that may come before the root element; and blank lines and byte order marks, which should not.

Seen at https://github.com/omeka/Omeka/issues/541.
"""
_OAI_PMH = _compiled(r"<~OAI-PMH[\s>]")
_NO_NOTICE = re.compile(
    rb"<!DOCTYPE|<(?:[A-Za-z_][\w.-]{0,99}:)?(?:html|Identify|GetRecord|List\w+)[\s>]", re.IGNORECASE
)
"""A page, a DTD, or an answer of version 1.x, which may have an answer of version 2.0 in it."""

_ENCODING = re.compile(rb"""(?:\xef\xbb\xbf|\s)*<\?xml[^<>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_UTF_16 = {b"\xff\xfe": "utf-16-le", b"<\0": "utf-16-le", b"\xfe\xff": "utf-16-be", b"\0<": "utf-16-be"}
"""What begins so, with a byte order mark or a tag."""

_HIDING = rb"<!--|<!\[CDATA\[|<\?"
_HIDING_BEGINS = re.compile(_HIDING)
_HIDING_ENDS = {
    b"<!--": re.compile(rb"-->|--"),
    b"<![CDATA[": re.compile(rb"\]\]>|<!\[CDATA\["),
    b"<?": re.compile(rb"\?>|<\?"),
}
"""The first match ends it; if that is no end, the end is missing, and nothing is hidden."""

_SHORT_ONE = r"!--[^<-]{0,200}+-->|\?[^<?]{0,200}+\?>"
_SHORT_ONES = rf"(?P<run>(?:{_SHORT_ONE})(?:<(?:{_SHORT_ONE})){{0,299}}+)"
"""Short comments and instructions in a row, without the first <. They are skipped together: a record may have millions.
"""


def _seen(pattern: str) -> re.Pattern[bytes]:
    """A pattern as in _compiled, which begins with <, and whatever may hide it.

    Python's re looks for the one < that all of them begin with in a tenth of the time of several alternatives.
    """
    return _compiled(rf"<(?:{_SHORT_ONES}|!--|!\[CDATA\[|\?|(?P<seen>{pattern.removeprefix('<')}))")


_NOT_BLANK = re.compile(rb"\S")
_IDENTIFIER = _compiled(r"<~identifier[^<>]*>([^<>]{1,2000})<")
_METADATA_END = _compiled(r"</~metadata\s*>")
_METADATA = _compiled(r"<~metadata[\s/>]")
_PREFIX = re.compile(rb"""(?<![^\s<>/="'(,;])([^\s<>/="':(,;]++):""")
_BAD_REFERENCE = re.compile(r"&#(?:[xX]([0-9a-fA-F]{1,8})|([0-9]{1,8}));")
_BARE_AMPERSAND = re.compile(rb"&(?!#?\w+;)")
_BESIDE = _compiled(r"<(~(responseDate|error|resumptionToken))(?:\s[^<>]*)?/?>")
_PART_OF_ONE = _compiled(r"</?~(error|resumptionToken)\b")
_PART_OF_TOKEN = re.compile(rb"resumption|Token")
_WORDS = 1_000
"""Bytes of an error that is not well-formed."""

_TAG = re.compile(rb"<[^<>]{0,1000}>")
_NO_END = "it has no end"
TOO_DEEP = "its elements are nested more than 2,048 levels deep"


@frozen
class Unreadable:
    """A record that cannot be read; `identifier` is empty if that is unreadable too. `is_large`: it exceeds a limit."""

    identifier: str
    why: str
    is_large: bool = False


@frozen
class Repaired(Generic[Item]):
    """A record in which characters were replaced."""

    item: Item


@frozen
class Envelope:
    """What an answer has beside its records. `is_whole`: its end tag is there. `has_list`: so is the list's.

    `unread`: the local names of the elements that could be read only partly.
    """

    elements: list[etree._Element]
    unread: frozenset[str]
    is_whole: bool
    has_list: bool


def cut(
    file: BinaryIO, root: ResponseRoot, verb: str, item: str, skip: int, limits: XmlLimits
) -> Iterator[etree._Element | Unreadable | Repaired[etree._Element] | Envelope]:
    """The records of the answer in `file`, without the first `skip`; and at last what is beside them.

    Records that are not well-formed: https://github.com/IQSS/dataverse/issues/12120. A bare & beside them:
    https://github.com/artefactual/atom/issues/803. Texts behind them:
    https://github.com/findsorguk/findsorguk/issues/843
    """
    data = _in_utf_8(bytes_of(file))
    frame = _Frame(data, root, verb, limits)
    items = _Items(item, data)
    start = items.next(frame.list_begin, is_sure=frame.list_begin > 0)
    if not skip:
        yield from items.lost(0, len(data) if start is None else start, Unreadable("", "its beginning is damaged"))
    at = first = max(0, len(data) - TAIL) if start is None else start
    number = released = 0
    while start is not None:
        begin, end, number = start, items.end_of(start), number + 1
        read: etree._Element | Unreadable | Repaired[etree._Element] | None = None
        if number > skip:
            read = Unreadable("", _NO_END) if end is None else frame.read(begin, end)
            is_damaged = isinstance(read, Unreadable) and not read.is_large
            if end is not None and is_damaged and items.has_run_together(begin, end):
                end = items.end_of(begin, nests=False)
                read = Unreadable("", _NO_END) if end is None else frame.read(begin, end)
            if end is not None and isinstance(read, Unreadable) and read.is_large:
                read = replace(read, identifier=items.name_of(begin, end))
        is_damaged = isinstance(read, Unreadable) and not read.is_large
        at = begin + 1 if end is None else end
        if at - released > WINDOW:
            release(data, at)
            released = at
        start = items.next(at, is_sure=not is_damaged)
        behind = len(data) if start is None else start
        if not is_damaged:
            if read is not None:
                yield read
            if number >= skip:
                yield from items.lost(at, behind, Unreadable("", "its beginning is damaged"))
        elif isinstance(read, Unreadable) and (start is not None or end is not None or ends(data[-TAIL:], root, verb)):
            yield from items.lost(begin, behind, read, least=1)  # unless the answer breaks off in it
        if is_damaged and end is None:
            at = begin
    yield frame.envelope(first, at)


class _Items:
    """Finds where records begin and end: whole ones, their headers alone, or in 1.x their identifiers.

    A start tag is certain to be of the list if a record's first element follows, as metadata may have elements of that
    name too. Nothing within a comment, CDATA section or processing instruction is a tag.
    """

    def __init__(self, item: str, data: Data) -> None:
        self._data = data
        self._tags = _seen(rf"</?(?P<name>~{item})(?:\s[^<>]*)?/?>")
        first = {"record": r"<\1header[\s/>]", "header": r"<\1identifier[\s/>]", "identifier": ""}[item]
        comment = r"(?:<!--(?:[^-]|-(?!->)){0,200}-->\s*)?"
        self._certain = _compiled(rf"<(~){item}(?:\s[^<>]*)?>\s*{comment}{first}")
        stamped = r"\s*<~datestamp\s*>[^<>]{0,200}</~datestamp\s*>\s*(?:<~setSpec|</~header)[\s>]"
        is_stamped = item != "identifier"
        self._named = _seen(r"</~identifier\s*>" + (f"(?={stamped})" if is_stamped else ""))
        self._ended = _seen(r"</~(?:datestamp|setSpec)\s*>\s*</~header\s*>")
        of_headers = [r"</~identifier\s*>", r"<~datestamp[\s>]"]
        self._counted = [self._ended, *map(_seen, of_headers if item != "record" else [])]

    def next(self, at: int, *, is_sure: bool) -> int | None:
        """The next start tag that is certain, or the very next tag if it `is_sure` that a record follows."""
        for tag in self._visible(self._tags, at, len(self._data)):
            begin = tag.start()
            if not _is_end(tag):
                if is_sure and begin - at < LONGEST_TAG and not _NOT_BLANK.search(self._data, at, begin):
                    return begin
                if self._is_certain(begin):
                    return begin
            is_sure = False
        return None

    def has_run_together(self, begin: int, end: int) -> bool:
        """True if a damaged record has others in it that are of the list: its end is missing, and a beginning later.

        Its metadata end before the others, or there is one header more than beginnings. Other records are in its
        metadata.
        """
        begun = [tag.start() for tag in self._visible(self._tags, begin + 1, end) if self._is_certain(tag.start())]
        if not begun:
            return False
        has_ended = next(matches(_METADATA_END, self._data, begin, begun[0]), None) is not None
        return has_ended or len(list(islice(self._visible(self._ended, begun[-1], end), 2))) > 1

    def end_of(self, begin: int, *, nests: bool = True) -> int | None:
        """Where the record ends that begins there; None if its end is missing. `nests`: it may have others in it."""
        depth = nested = 0
        name = last = None
        for tag in self._visible(self._tags, begin, len(self._data)):
            name = name or tag["name"]
            if tag["name"] != name:
                continue
            if _is_end(tag):
                depth -= 1
                last = last if nested else tag.end()
            else:
                nested += depth > 0 and self._is_certain(tag.start())
                depth += not tag[0].endswith(b"/>")
            if not depth:
                return tag.end()
            if nested > (_MOST_NESTED if nests else 0):
                break
        return last

    def lost(self, begin: int, end: int, lost: Unreadable, least: int = 0) -> Iterator[Unreadable]:
        """The number of records with parts in the answer, named or counted; there may be more."""
        names = dict.fromkeys(islice(self._identifiers(begin, end), _MOST_LOST))
        counted = (islice(self._visible(each, begin, end), _MOST_LOST) for each in self._counted)
        number = max(least, *(sum(1 for _ in each) for each in counted))
        yield from (replace(lost, identifier=name) for name in names)
        yield from (lost for _ in range(len(names), number))

    def name_of(self, begin: int, end: int) -> str:
        """The identifier of the record between these places; empty if it cannot be read."""
        return next(self._identifiers(begin, end), "")

    def _identifiers(self, begin: int, end: int) -> Iterator[str]:
        """That of the first record; then each one that is followed by a datestamp, as in a header."""
        metadata = next(matches(_METADATA, self._data, begin, min(begin + LONGEST_TAG, end)), None)
        until = metadata.start() if metadata else min(begin + LONGEST_TAG, end)
        if own := _IDENTIFIER.search(self._data, begin, until):
            yield _text(own[1])
        for found in self._visible(self._named, begin, end):
            text = self._data[max(found.start() - 2_000, begin) : found.start()].rpartition(b">")[2]
            if text and b"<" not in text:
                yield _text(text)

    def _is_certain(self, begin: int) -> bool:
        return self._certain.match(self._data, begin, begin + 2 * LONGEST_TAG) is not None

    def _visible(self, pattern: re.Pattern[bytes], begin: int, end: int) -> Iterator[re.Match[bytes]]:
        """What matches the pattern (see _seen) between there."""
        for found in matches(pattern, self._data, begin, end):
            if found.start() >= begin:
                if found["seen"]:
                    yield found
                else:
                    begin = found.end() if found["run"] else _hidden_until(self._data, found, end)


class _Frame:
    """What is around the records: the namespaces that they may use, the encoding, the protocol's other elements."""

    def __init__(self, data: Data, root: ResponseRoot, verb: str, limits: XmlLimits) -> None:
        self._data, self._root, self._verb, self._limits = data, root, verb, limits
        head = data[:_HEAD]
        self._encoding = _encoding(head)
        self._list = _compiled(rf"</?~{verb}[\s/>]")
        begun = _compiled(rf"<~{verb}(?:\s[^<>]*)?>").search(blanked(head))
        self.list_begin = begun.end() if begun else 0
        declared = _XSI | _declared(repaired_whole(head[: self.list_begin or None]), root, verb)
        self._declared = {prefix: _declaration(prefix, uri) for prefix, uri in declared.items()}
        self._is_usual = len(declared) <= _MOST_DECLARED and declared_size(declared) <= _USUAL_DECLARED

    def read(self, begin: int, end: int) -> etree._Element | Unreadable | Repaired[etree._Element]:
        """The record between these places: parsed, repaired, or lost with the reason."""
        if end - begin > self._limits.size:
            return Unreadable("", f"it has more than {self._limits.size:,} bytes", is_large=True)
        record = self._data[begin:end]
        try:
            refuse_excess(record, self._limits)
            with suppress(etree.XMLSyntaxError):
                return self._parsed(record, self._encoding)
            return Repaired(self._parsed(repaired(record, self._encoding), "utf-8"))
        except XmlRefused as refused:
            return Unreadable("", f"it {refused}", is_large=True)
        except etree.XMLSyntaxError as error:
            return Unreadable("", in_words(error.msg or "it is not well-formed"))

    def envelope(self, first: int, last: int) -> Envelope:
        """The protocol's elements before the first record, and behind the last one."""
        data, size = self._data, len(self._data)
        tail = data[last : last + TAIL] + data[max(last + TAIL, size - TAIL) :]
        text, at = data[max(first - _HEAD, 0) : first] + tail, 0
        shown = blanked(text)
        starts = list(_BESIDE.finditer(shown))
        elements, unread, between = [], set(), []
        for start in starts if len(starts) <= 2 * _MOST_BESIDE else starts[:_MOST_BESIDE] + starts[-_MOST_BESIDE:]:
            if start.start() < at:
                continue
            between.append(shown[at : start.start()])
            closing = -1 if start[0].endswith(b"/>") else shown.find(b"</" + start[1], start.end())
            at = (shown.find(b">", closing) + 1 if closing > 0 else 0) or start.end()
            element = self._beside(start, text[start.start() : at], text[start.end() : start.end() + _WORDS])
            if element is None:
                unread.add(start[2].decode())
            else:
                elements.append(element)
        rest = b"".join([*between, shown[at:]])
        unread.update(found[1].decode() for found in _PART_OF_ONE.finditer(rest))
        # Before the list there may be a request that quotes a token.
        if (begun := self._list.search(rest)) and _PART_OF_TOKEN.search(rest, begun.end()):
            unread.add("resumptionToken")
        is_whole = ends(tail, self._root, self._verb)
        return Envelope(elements, frozenset(unread), is_whole, self._list.search(shown) is not None)

    def _beside(self, start: re.Match[bytes], whole: bytes, behind: bytes) -> etree._Element | None:
        """One element of the protocol, repaired if need be. For an error, the start tag with its code is enough."""
        data = repaired(whole, self._encoding)
        for text in (data, _BARE_AMPERSAND.sub(b"&amp;", data)):
            with suppress(etree.XMLSyntaxError, XmlRefused):
                return self._parsed(text, "utf-8")
        if start[2] == b"error":
            with suppress(etree.XMLSyntaxError, XmlRefused):
                error = self._parsed(repaired(start[0][:-1] + b"/>", self._encoding), "utf-8")
                error.text = repaired(blanked(behind.partition(b"</" + start[1])[0]), self._encoding).decode()
                return error
        return None

    def _parsed(self, text: bytes, encoding: str) -> etree._Element:
        """One element, parsed within an element that declares the namespaces. Raises XMLSyntaxError, and XmlRefused."""
        declaration = f'<?xml version="1.0" encoding="{encoding}"?>'.encode()
        whole = declaration + b"<oai" + self._declarations(text) + b">" + text + b"</oai>"
        return etree.fromstring(whole, etree.XMLParser(**PARSER_OPTIONS))[0]

    def _declarations(self, text: bytes) -> bytes:
        """The namespace declarations that go with this record. Raises XmlRefused if it needs too many."""
        if self._is_usual:
            return b"".join(self._declared.values())
        used = {None, *(found[1].decode("utf-8", "replace") for found in _PREFIX.finditer(text))}
        declarations = [declared for prefix, declared in self._declared.items() if prefix in used]
        if len(declarations) > _MOST_DECLARED:
            raise XmlRefused(f"uses more than {_MOST_DECLARED} namespaces that are declared around it")
        if (longest := max(map(len, declarations), default=0)) > URI:
            raise XmlRefused(f"uses a namespace of some {longest:,} characters; {URI:,} are taken")
        return b"".join(declarations)


def _declared(head: bytes, root: ResponseRoot, verb: str) -> dict[str | None, str]:
    """The namespaces in scope at the records, by prefix."""
    tree = None
    with suppress(etree.XMLSyntaxError):
        tree = etree.fromstring(head, etree.XMLParser(recover=True, **PARSER_OPTIONS))
    if tree is None:
        return {None: root.namespace}
    return {None: root.namespace} | dict(next(tree.iter(f"{{*}}{verb}"), tree).nsmap)


_IN_QUOTES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
)
"""xml.sax.saxutils imports an HTTP client with it: 2 MB of the process that reads answers."""


def _declaration(prefix: str | None, uri: str) -> bytes:
    return f' xmlns{":" if prefix else ""}{prefix or ""}="{uri.translate(_IN_QUOTES)}"'.encode()


def repaired(data: bytes, encoding: str = "utf-8") -> bytes:
    """`data` in UTF-8, with U+FFFD for bytes that are not text, and for characters that XML does not have.

    Seen at https://github.com/IQSS/dataverse/issues/9987 and https://github.com/TreeBASE/treebase/issues/193.
    """
    text = _BAD_REFERENCE.sub(_proper_reference, data.decode(encoding, "replace"))
    return only_xml(text).encode()


def notice_before(head: bytes) -> int:
    """The number of bytes of a text before the answer, such as warnings of the program that made it; 0 without one.

    An XML declaration between them belongs to the text, if it names no encoding but UTF-8. Such warnings:
    https://github.com/pkp/pkp-lib/issues/318
    """
    found = _OAI_PMH.search(head)
    before = head[: found.start()] if found else b""
    if not blanked(before).strip(b"\xef\xbb\xbf \t\r\n") or _NO_NOTICE.search(before):
        return 0
    place = before.rfind(b"<?xml")
    declared = _ENCODING.match(before, place) if place >= 0 else None
    return place if declared and declared[1].lower() not in (b"utf-8", b"utf8") else len(before)


def in_notice(notice: bytes) -> str:
    """What is wrong with an answer that begins with this text."""
    words = one_line(_TAG.sub(b" ", notice).decode("utf-8", "replace"), 120).strip()
    return f"it begins with the text '{words}'"


def repaired_whole(content: bytes) -> bytes:
    """A document from its root element on, repaired, in UTF-8 whatever it declares."""
    content = bytes(_in_utf_8(content))
    text = repaired(content, _encoding(content))
    before = _BEFORE.match(text)
    return text[before.end() :] if before else text


def ends(tail: bytes, root: ResponseRoot, verb: str) -> bool:
    """True if the answer has its end there."""
    end = _compiled(rf"</~(?:{verb}|{root.verb or 'OAI-PMH'})\s*>")
    return end.search(blanked(tail)) is not None


def blanked(text: bytes) -> bytes:
    """As long a text, in which comments, CDATA sections and processing instructions are blank."""
    shown, at = bytearray(text), 0
    for found in _HIDING_BEGINS.finditer(text):
        if found.start() >= at:
            at = _hidden_until(text, found, len(text))
            if at > found.end():
                shown[found.start() : at] = b" " * (at - found.start())
    return bytes(shown)


def in_words(message: str) -> str:
    """A message of the parser, in other words if it is about options of the parser."""
    return TOO_DEEP if message.startswith("Excessive depth") else one_line(message, 200)


def _hidden_until(data: Data, begun: re.Match[bytes], end: int) -> int:
    """Where the comment, section or instruction ends; where it begins, if its end is missing."""
    at, closing = begun.end(), _HIDING_ENDS[begun[0]]
    near = min(at + LONGEST_TAG, end)
    found = closing.search(data, at, near)  # what is cut off at `near` may be no whole end
    if found is None or found.end() == near:
        found = next(matches(closing, data, at, end), None)
    return found.end() if found is not None and found[0].endswith(b">") else begun.end()


def _is_end(tag: re.Match[bytes]) -> bool:
    return tag[0].startswith(b"</")


def _in_utf_8(data: Data) -> Data:
    """UTF-16 in UTF-8, as tags are looked for in bytes; what is too long for that is left as it is."""
    encoding = _UTF_16.get(data[:2])
    if encoding is None or len(data) > _LARGEST_UTF_16:
        return data
    return bytes(data).decode(encoding, "replace").encode("utf-8", "replace")


def _text(identifier: bytes) -> str:
    return unescaped(identifier.decode("utf-8", "replace")).strip()


def _encoding(head: bytes) -> str:
    declared = _ENCODING.match(head[:DECLARATION_BYTES])
    name = declared[1].decode().lower() if declared else "utf-8"
    return name if ONE_BYTE.fullmatch(name) else "utf-8"


def _proper_reference(found: re.Match[str]) -> str:
    number = int(found[1], 16) if found[1] else int(found[2])
    is_proper = number <= 0x10FFFF and only_xml(chr(number)) == chr(number)
    return found[0] if is_proper else "\ufffd"
