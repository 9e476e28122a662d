"""The bytes of an answer: its records, one after the other in bounded memory; or the tree of a short answer.

Nothing is repaired silently: an answer is parsed strictly, and repair.py reads the damaged parts. A DTD is refused: its
entities could change the meaning of a record. The caller's function makes the values from the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from os import SEEK_END
from typing import Any, BinaryIO, TypeVar

from lxml import etree

from metaharvest.fetch.html_page import HEAD_BYTES, html_title, title_of_odd_page
from metaharvest.fetch.xml_bounds import (
    XmlLimits,
    XmlRefused,
    first_tag,
    nodes_in,
    refuse_encoding,
    refuse_excess,
)
from metaharvest.model import Finding, Level
from metaharvest.sources.oai_pmh.bounds import DATE, ERRORS, SHORT_ANSWER, UNUSABLE, URI, crowd, record_limits, words_of
from metaharvest.sources.oai_pmh.oddities import IN_THE_LOG, IN_UTF_8, Oddities, well_formed
from metaharvest.sources.oai_pmh.protocol import (
    ProtocolError,
    ResponseRoot,
    Token,
    item_of,
    root_of,
    text_of,
    token_from,
)
from metaharvest.sources.oai_pmh.repair import (
    NOTICE,
    PARSER_OPTIONS,
    TAIL,
    Envelope,
    Repaired,
    Unreadable,
    cut,
    ends,
    in_notice,
    in_words,
    notice_before,
    repaired_whole,
)
from metaharvest.text import one_line

Item = TypeVar("Item")
Take = Callable[[etree._Element, "Response"], Item | None]

SHORT = 524_288
"""Bytes up to which an answer is short. A record of this size, with any content, is read in less than a second."""

_CHUNK = 65_536
_LARGEST = 52_428_800
"""Bytes of one record, if nothing else is said."""

_BESIDE = ("responseDate", "error", "resumptionToken")
_KNOWN = {*_BESIDE, "request", "requestURL"}
_OF_NOTICES = ("br", "b", "font")
"""The elements of warnings as PHP writes them."""

_MOST_CONTAINERS = 10


class NotOaiResponse(Exception):
    """The answer is not an OAI-PMH answer to the request; `finding` describes it."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class ParseDamage(Exception):
    """An answer is not well-formed; the message is the parser's."""


class Crowded(ParseDamage):
    """A record, or the tags around the records, exceed a limit; the message names it."""


@dataclass(slots=True)
class Response:
    """The facts about an answer beside its records, as far as it was read.

    `date`: the time when it was sent, by the clock of the web server, if known. `is_whole`: it did not break off.
    `has_list`: it has an element for the verb. `damage`: the parser's first error, if it `is_ill_formed`, or the limit
    that it exceeds. `odd` counts oddities that are reported once for the whole list. `unusable` has a key for each
    record that could not be used; None if the record cannot be distinguished from others.
    """

    verb: str
    root: ResponseRoot = field(default_factory=lambda: ResponseRoot("", ""))
    response_date: str = ""
    date: str = ""
    errors: list[ProtocolError] = field(default_factory=list)
    token: Token | None = None
    is_whole: bool = False
    damage: str = ""
    is_ill_formed: bool = False
    has_list: bool = False
    odd: Oddities = field(default_factory=Oddities)
    unusable: list[int | None] = field(default_factory=list)


class TooDamaged(Exception):
    """An answer has very many unusable records, each of which takes time: it is read no further."""


def refuse_unusable(answer: Response, number: int) -> None:
    """Raises TooDamaged if this number of unusable records is too large."""
    if number > UNUSABLE:
        answer.damage = f"more than {UNUSABLE:,} of its records cannot be read, or have no identifier"
        raise TooDamaged


def short_response(content: bytes, verb: str) -> tuple[etree._Element, Response]:
    """The tree of an answer without records, read without its ill-formed parts. Raises NotOaiResponse.

    Nothing can be concluded from the absence of a part if the answer is not whole. To be called in a thread.
    """
    notice = content[: notice_before(content[:NOTICE])]
    content = b" " * len(notice) + content[len(notice) :] if notice else content
    root = _begun(content[: HEAD_BYTES + _CHUNK], verb)
    answer = Response(verb, root, is_whole=True)
    try:
        refuse_excess(content, SHORT_ANSWER)
    except XmlRefused as refused:
        raise NotOaiResponse(_too_large(f"The answer to {verb} {refused}.")) from None
    try:
        tree = etree.fromstring(content, etree.XMLParser(**PARSER_OPTIONS))
    except etree.XMLSyntaxError as error:
        answer.damage, answer.is_ill_formed = one_line(error.msg or "not well-formed", 200), True
        tree = _recovered(content, answer)
    if notice:
        answer.damage, answer.is_ill_formed = in_notice(notice), True
    containers = [tree, *tree.iterchildren(root.name(verb))]
    for container in containers[:_MOST_CONTAINERS]:
        if why := crowd(container):
            raise NotOaiResponse(_too_large(f"The answer to {verb} cannot be read: {why}."))
        for child in container.iterchildren(*(f"{{*}}{name}" for name in _BESIDE)):
            if container is tree or local_name(child) == "resumptionToken":
                _note(child, answer)
    if not (len(containers) > 1 or answer.errors or root.verb == verb):
        raise NotOaiResponse(_another_verb(verb))
    return tree, answer


def items(
    file: BinaryIO, answer: Response, take: Take[Item], largest: int = _LARGEST, *, cuts: bool = True
) -> Iterator[Item | Unreadable | Repaired[Item]]:
    """What `take` makes of each record (or header) of the answer in `file`, which is open for reading at its start.

    `answer` says at first which verb was asked; it is filled in on the way. A record of more than `largest` bytes is
    lost. To be used in one thread. Raises NotOaiResponse; and ParseDamage, if an answer is not well-formed, or too
    crowded, and not to be cut.
    """
    limits = record_limits(largest)
    head = file.read(HEAD_BYTES)
    answer.root = _begun(head + file.read(_CHUNK), answer.verb)
    file.seek(0)
    number = 0
    damage = ""
    try:
        for item in _strictly(file, answer, take, limits):
            number += 1
            if item is not None:
                yield item
    except ParseDamage as error:  # nothing of it is kept, as it would keep the tree
        if not cuts:
            raise
        damage, answer.is_ill_formed = str(error), not isinstance(error, Crowded)
    if damage:
        file.seek(0)
        answer.errors.clear()
        answer.token, answer.damage = None, damage
        if not answer.is_ill_formed:
            answer.odd.note("crowded", damage)
        yield from _cut(file, answer, take, number, limits)


def _strictly(file: BinaryIO, answer: Response, take: Take[Item], limits: XmlLimits) -> Iterator[Item | None]:
    """Each record as soon as it has come. Raises ParseDamage before a record that is not well-formed, or follows one.

    Before one that exceeds the limits, or has too much declared around it, it raises Crowded.
    """
    room = _Room(limits)
    is_short, is_list = size_of(file) <= SHORT, answer.root.verb == answer.verb
    for tree, is_whole in _trees(file, answer.root.name(answer.root.verb or "OAI-PMH"), room, at_once=is_short):
        has_items = False
        for item in _complete(tree, answer, take, is_list=is_list, is_whole=is_whole):
            has_items = True
            yield item
        if has_items:
            room.clear()
    answer.is_whole = True
    if not (answer.has_list or answer.errors):
        raise NotOaiResponse(_another_verb(answer.verb))


def _complete(
    parent: etree._Element, answer: Response, take: Take[Item], *, is_list: bool, is_whole: bool
) -> Iterator[Item | None]:
    """The items among the complete children: all but the last one, if more is to come; these are removed.

    The time to remove an element that is still referenced grows with the square of its parts: nothing references it.
    """
    if why := crowd(parent):
        raise Crowded(why)
    answer.has_list = answer.has_list or is_list
    local = item_of(answer.root, answer.verb)
    item = answer.root.name(local)
    number = max(0, len(parent) - (not is_whole))
    child: etree._Element | None = None
    for child in islice(parent, number):
        if child.tag == item and is_list:
            yield take(child, answer)
        elif isinstance(child.tag, str):
            name = local_name(child)
            if name in _BESIDE:
                _note(child, answer)
            elif not is_list and name == answer.verb:
                yield from _complete(child, answer, take, is_list=True, is_whole=True)
            elif is_list and name == local:
                yield _taken(child, answer, take)
            elif is_list and name not in _KNOWN:
                answer.odd.note("notice" if name in _OF_NOTICES else "element", f"<{name}>")
    if not is_whole:
        child = None
        del parent[:number]
        if not is_list and len(parent) and local_name(parent[-1]) == answer.verb:
            yield from _complete(parent[-1], answer, take, is_list=True, is_whole=False)


class _Room:
    """Counts what has come since the last record, and cannot be forgotten yet."""

    def __init__(self, limits: XmlLimits) -> None:
        self._limits = limits
        self._uncounted: list[bytes] = []
        self.clear()

    def clear(self) -> None:
        """A record has ended in the last piece."""
        self._size = self._nodes = 0
        self._uncounted.clear()

    def take(self, chunk: bytes) -> None:
        """Count the next piece of the answer. Raises Crowded if that is too much.

        A short record cannot have too many nodes. They are not counted, as that takes a tenth of the time.
        """
        self._size += len(chunk)
        self._uncounted.append(chunk)
        if self._size > self._limits.nodes:
            self._nodes += sum(map(nodes_in, self._uncounted))
            self._uncounted.clear()
        if self._size > self._limits.size + _CHUNK:
            raise Crowded(f"a record has more than {self._limits.size:,} bytes")
        if self._nodes > self._limits.nodes:
            raise Crowded(f"a record has more than {self._limits.nodes:,} elements and attributes")


def size_of(file: BinaryIO) -> int:
    """The bytes in a file, which is at its start before and afterwards."""
    file.seek(0, SEEK_END)
    size = file.tell()
    file.seek(0)
    return size


def _trees(file: BinaryIO, tag: str, room: _Room, *, at_once: bool) -> Iterator[tuple[etree._Element, bool]]:
    """The tree of an answer with this root element, whenever more of it has come, and whether it is whole.

    Raises ParseDamage before a part that is not well-formed. To read it `at_once` is quicker.
    """
    if at_once:
        parser, tree = etree.XMLParser(**PARSER_OPTIONS), None
        with suppress(etree.XMLSyntaxError):
            tree = etree.fromstring(file.read(), parser)
        if tree is not None and not parser.error_log.filter_from_errors():
            yield tree, True
            return
        file.seek(0)
    puller: Any = etree.XMLPullParser(events=("start",), tag=tag, **PARSER_OPTIONS)
    root = None
    while chunk := file.read(_CHUNK):
        room.take(chunk)
        try:
            puller.feed(chunk)
        except etree.XMLSyntaxError as error:
            raise ParseDamage(in_words(error.msg or "not well-formed")) from None
        if len(puller.feed_error_log) and (wrong := puller.feed_error_log.filter_from_errors()):
            raise ParseDamage(in_words(wrong[0].message))
        for _, element in puller.read_events():
            root = element if root is None else root
        if root is not None:
            yield root, False
    try:
        yield puller.close(), True
    except etree.XMLSyntaxError as error:
        raise ParseDamage(error.msg or "not well-formed") from None


def _cut(
    file: BinaryIO, answer: Response, take: Take[Item], number: int, limits: XmlLimits
) -> Iterator[Item | Unreadable | Repaired[Item]]:
    """The records after the first `number` of an answer that is not well-formed. Raises NotOaiResponse."""
    found = number > 0
    for record in cut(file, answer.root, answer.verb, item_of(answer.root, answer.verb), number, limits):
        if isinstance(record, Envelope):
            _conclude(answer, record, found=found)
        elif isinstance(record, Unreadable):
            yield record
        else:
            is_repaired = isinstance(record, Repaired)
            item = _taken(record.item if isinstance(record, Repaired) else record, answer, take)
            if item is not None:
                yield Repaired(item) if is_repaired else item
        found = True


def _conclude(answer: Response, around: Envelope, *, found: bool) -> None:
    """What an answer that is not well-formed has beside its records. What cannot be read of it, is not passed over."""
    for element in around.elements:
        _note(element, answer)
    if "error" in around.unread and not answer.errors:
        answer.errors.append(ProtocolError("error", "its words cannot be read"))
    answer.is_whole = around.is_whole
    if "resumptionToken" in around.unread:
        answer.token, answer.is_whole = None, False
        answer.damage = f"its resumption token cannot be read ({answer.damage})"
    elif around.is_whole and not (found or around.has_list or answer.errors):
        raise NotOaiResponse(_another_verb(answer.verb))


def own_text(element: etree._Element) -> str:
    """The text of an element without the text of its child elements, including text after comments within it.

    The time grows with the number of its children alone, not with the elements below them.
    """
    others = (child.tail for child in element if not isinstance(child.tag, str))
    return "".join(filter(None, (element.text, *others))).strip()


def local_name(element: etree._Element) -> str:
    """The name of an element without its namespace: some source repositories use none, or another one."""
    return str(element.tag).rpartition("}")[2]


def _taken(element: etree._Element, answer: Response, take: Take[Item]) -> Item | None:
    """What `take` makes of an element that may be in another namespace than its answer, and its parts with it."""
    namespace = str(element.tag).rpartition("}")[0].removeprefix("{")
    if namespace == answer.root.namespace:
        return take(element, answer)
    answer.odd.note("namespace", namespace or "none")
    return take(element, replace(answer, root=replace(answer.root, namespace=namespace)))


def _note(element: etree._Element, answer: Response) -> None:
    name = local_name(element)
    if name == "resumptionToken":
        token, before = _token(element), answer.token
        if before is not None and token.text != before.text:
            answer.odd.note("tokens", token.text or before.text)
        if token.text or token.too_long or not (before and before.text):
            answer.token = token
    elif name == "responseDate":
        date = text_of(element)
        if len(date) > DATE:
            answer.odd.note("too-long", f"responseDate ({len(date):,} characters)")
        answer.response_date = date[:DATE]
    elif name == "error" and len(answer.errors) < ERRORS:
        code = (element.get("code") or "")[:DATE].strip() or "error"
        answer.errors.append(ProtocolError(one_line(code, 60), one_line(words_of(element, 4_000), 300)))


def _token(element: etree._Element) -> Token:
    text = text_of(element) or element.text  # white space alone is kept, for Token.is_blank
    return token_from(text, ((str(name), str(value)) for name, value in element.attrib.items()))


def _recovered(content: bytes, answer: Response) -> etree._Element:
    """The tree that the parser makes of an answer that is not well-formed. Raises NotOaiResponse."""
    text = repaired_whole(content)
    if text.count(b"&") > SHORT_ANSWER.nodes:  # each reference to an unknown entity becomes a node of the tree
        message = f"The answer to {answer.verb} is no well-formed XML, and has more than {SHORT_ANSWER.nodes:,} &."
        raise NotOaiResponse(_too_large(message))
    answer.is_whole = ends(text[-TAIL:], answer.root, answer.verb)
    with suppress(etree.XMLSyntaxError):
        tree = etree.fromstring(text, etree.XMLParser(recover=True, **PARSER_OPTIONS))
        if tree is not None and root_of(str(tree.tag)) == answer.root:
            return tree
    raise NotOaiResponse(replace(ill_formed(answer), level=Level.ERROR))


def _begun(head: bytes, verb: str) -> ResponseRoot:
    """The root element in this beginning of a file. Raises NotOaiResponse for a page, another document, or a DTD."""
    if not head.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        remedy = "The repository's keeper sees in its log why nothing was sent."
        raise NotOaiResponse(Finding("oai.not-oai", f"The answer to {verb} is empty.", remedy))
    title = html_title(head[:HEAD_BYTES])
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n\v\f")
    tag, has_dtd = first_tag(text) if title is None else (None, False)
    if tag is None and title is None and text.startswith(b"<"):  # its declaration may be damaged
        tag, has_dtd = first_tag(repaired_whole(head))
    if title is None:
        title = title_of_odd_page(head, tag)
    if title is not None:
        raise NotOaiResponse(_page(verb, title))
    if text.startswith(b"<"):
        try:
            refuse_encoding(text)
        except XmlRefused as refused:
            raise NotOaiResponse(Finding("oai.encoding", f"The answer to {verb} {refused}.", IN_UTF_8)) from None
    if tag is None and text.startswith(b"<") and len(head) >= HEAD_BYTES + _CHUNK:
        raise NotOaiResponse(_too_large(f"The first {len(head):,} bytes of the answer to {verb} have no whole tag."))
    if tag is None:
        raise NotOaiResponse(Finding("oai.not-oai", f"The answer to {verb} is no XML.", _IF_NOT_OAI))
    if has_dtd:
        message = f"The answer to {verb} begins with a DTD (<!DOCTYPE …>), which can change what records say."
        raise NotOaiResponse(Finding("oai.dtd", message, "Have the repository answer without a DOCTYPE."))
    root = root_of(tag) if len(tag) <= URI else None
    if root is None:
        message = f"The answer to {verb} is a document <{one_line(tag, 120)}>, not one of OAI-PMH."
        raise NotOaiResponse(Finding("oai.not-oai", message, _IF_NOT_OAI))
    if root.verb and root.verb != verb:
        raise NotOaiResponse(_another_verb(verb))
    return root


def _too_large(message: str) -> Finding:
    remedy = "The repository's keeper should make its large parts smaller: no harvester needs as much."
    return Finding("oai.too-large", message, remedy)


_IF_NOT_OAI = (
    "Check the base URL: with ?verb=Identify behind it, it must answer with an OAI-PMH document. If it does in a "
    "browser, something keeps programs out."
)


_USUAL = (
    "The base URL of a DSpace often ends in /oai/request or /server/oai/request, of EPrints in /cgi/oai2, of a journal "
    "in OJS in /index.php/JOURNAL/oai, of Dataverse in /oai, of Invenio in /oai2d, of Omeka in "
    "/oai-pmh-repository/request."
)


def _page(verb: str, title: str) -> Finding:
    titled = f" titled '{one_line(title, 200)}'" if title else ""
    message = f"The answer to {verb} is an HTML page{titled}, not one of OAI-PMH."
    return Finding("oai.not-oai", message, f"{_IF_NOT_OAI} {_USUAL}" if verb == "Identify" else _IF_NOT_OAI)


def _another_verb(verb: str) -> Finding:
    message = f"The repository answered something else than {verb}, which it was asked."
    remedy = "The repository's keeper checks that a cache or proxy before it does not ignore the text after the ?."
    return Finding("oai.not-oai", message, remedy)


def ill_formed(answer: Response) -> Finding:
    """The finding about an answer that is not well-formed, and was read nevertheless."""
    message = f"The answer to {answer.verb} is no well-formed XML: {answer.damage}. What could be read of it was taken."
    return Finding("oai.ill-formed", message, well_formed(answer.damage), Level.WARNING)


def cut_off(answer: Response) -> Finding:
    """The finding about an answer that is not whole."""
    message = f"An answer to {answer.verb} breaks off before its end: {one_line(answer.damage, 200)}."
    if answer.errors:
        errors = ", ".join(map(str, answer.errors))
        message = f"An answer to {answer.verb} has records, and then an error: {errors}."
    return Finding("oai.cut-off", message, IN_THE_LOG)
