"""An answer's bytes: its records, one after the other in bounded memory; or the tree of an answer that is short.

Nothing is repaired silently: an answer is parsed strictly, and what is not well-formed is left to cutting.py. A DTD is
refused: its entities could change what a record says. What a record is made into is for the caller's function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
from metaharvest.sources.oai_pmh.cutting import (
    BEFORE,
    TAIL,
    TOO_DEEP,
    Crowded,
    Damage,
    Lost,
    Mended,
    Surrounding,
    cut,
    ends,
    in_words,
    mended_whole,
)
from metaharvest.sources.oai_pmh.protocol import AnswerRoot, ProtocolError, Token, root_of, token_from
from metaharvest.text import one_line

Item = TypeVar("Item")
Take = Callable[[etree._Element, "Answer"], Item | None]

SHORT = 524_288
"""Bytes up to which an answer is short. A record of so many bytes, whatever is in it, is read in less than a second."""

_CHUNK = 65_536
_LARGEST = 52_428_800
"""Bytes of one record, if nothing else is said."""

_MOST_INNER = 1_000
"""Elements within one record that are named as the protocol's: the time that each takes grows with its depth."""

_BESIDE = ("responseDate", "error", "resumptionToken")
_KNOWN = {*_BESIDE, "request", "requestURL"}
_MOST_CONTAINERS = 10
_ITEMS = {"ListRecords": "record", "GetRecord": "record", "ListIdentifiers": "header"}


class NoAnswer(Exception):
    """What came is no answer of OAI-PMH to what was asked; `finding` says what it is."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(slots=True)
class Answer:
    """What is known of an answer beside its records, as far as it was read.

    `date`: when it was sent, by the clock of the web server, if that is known. `is_whole`: it did not break off.
    `damage`: what the parser found first, if it `is_ill_formed`, or what is too much to be read as it is. `odd` counts
    oddities that are reported once for the whole list.
    `unusable` has a key for each record of which nothing was made, None where not even that can be told from others.
    """

    verb: str
    root: AnswerRoot = field(default_factory=lambda: AnswerRoot("", ""))
    response_date: str = ""
    date: str = ""
    errors: list[ProtocolError] = field(default_factory=list)
    token: Token | None = None
    is_whole: bool = False
    damage: str = ""
    is_ill_formed: bool = False
    odd: Counter[str] = field(default_factory=Counter)
    example: dict[str, str] = field(default_factory=dict)
    unusable: list[int | None] = field(default_factory=list)

    def note(self, what: str, example: str) -> None:
        """Something is odd about the list; the number of what is, with the first example."""
        self.odd[what] += 1
        self.example.setdefault(what, one_line(example, 200))


class TooDamaged(Exception):
    """An answer has very many unusable records, each of which takes time: it is read no further."""


def refuse_unusable(answer: Answer, number: int) -> None:
    """Raises TooDamaged if this number of unusable records is too large."""
    if number > UNUSABLE:
        answer.damage = f"more than {UNUSABLE:,} of its records cannot be read, or have no identifier"
        raise TooDamaged


def short_answer(content: bytes, verb: str) -> tuple[etree._Element, Answer]:
    """The tree of an answer that has no records; what is not well-formed in it is passed over. Raises NoAnswer.

    Of one that is not whole, nothing can be concluded from what it does not have. To be called in a thread.
    """
    root = _begun(content[: HEAD_BYTES + _CHUNK], verb)
    answer = Answer(verb, root, is_whole=True)
    try:
        refuse_excess(content, SHORT_ANSWER)
    except XmlRefused as refused:
        raise NoAnswer(_too_large(f"The answer to {verb} {refused}.")) from None
    try:
        tree = etree.fromstring(content, _parser())
    except etree.XMLSyntaxError as error:
        answer.damage, answer.is_ill_formed = one_line(error.msg or "not well-formed", 200), True
        tree = _recovered(content, answer)
    containers = [tree, *tree.iterchildren(root.name(verb))]
    for container in containers[:_MOST_CONTAINERS]:
        if why := crowd(container):
            raise NoAnswer(_too_large(f"The answer to {verb} cannot be read: {why}."))
        for child in container.iterchildren(*(f"{{*}}{name}" for name in _BESIDE)):
            if container is tree or local_name(child) == "resumptionToken":
                _note(child, answer)
    if not (len(containers) > 1 or answer.errors or root.verb == verb):
        raise NoAnswer(_another_verb(verb))
    return tree, answer


def items(
    file: BinaryIO, answer: Answer, take: Take[Item], largest: int = _LARGEST, *, cuts: bool = True
) -> Iterator[Item | Lost | Mended[Item]]:
    """What `take` makes of each record (or header) of the answer in `file`, which is open for reading at its start.

    `answer` says at first which verb was asked; it is filled in on the way. A record of more than `largest` bytes is
    lost. To be used within one thread. Raises NoAnswer; and Damage, if an answer that is not well-formed, or is too
    crowded, is not to be cut.
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
    except Damage as error:  # nothing of it is kept, as it would keep the tree
        if not cuts:
            raise
        damage, answer.is_ill_formed = str(error), not isinstance(error, Crowded)
    if damage:
        file.seek(0)
        answer.errors.clear()
        answer.token, answer.damage = None, damage
        if not answer.is_ill_formed:
            answer.note("crowded", damage)
        yield from _cut(file, answer, take, number, limits)


def _strictly(file: BinaryIO, answer: Answer, take: Take[Item], limits: XmlLimits) -> Iterator[Item | None]:
    """Each record as soon as it has come. Raises Damage before a record that is not well-formed, or follows one.

    Before one that exceeds the limits, or has too much declared around it, it raises Crowded.
    """
    verb, item = answer.verb, answer.root.name(_item(answer))
    is_short = size_of(file) <= SHORT
    room = _Room(limits)
    found, known, inner = False, 0, 0
    root = holder = element = parent = last = looked_at = None
    for ended in _all_ended(file, item, verb) if is_short else _ended(file, item, verb, room):
        for _, element in ended:
            parent = element.getparent()
            if parent is not None and parent is not looked_at:
                if not _is_around(parent):
                    inner += 1
                    if inner > _MOST_INNER:
                        raise Crowded(f"a record has more than {_MOST_INNER:,} elements named as those around it")
                    continue
                looked_at, inner = parent, 0
                if why := crowd(parent):
                    raise Crowded(why)
            if element.tag == item:
                if parent is holder or _is_top(parent, verb):
                    holder, last, known = parent, element, known + 1
                    room.clear()
                    yield take(element, answer)
            elif parent is None or parent.getparent() is None:
                root = parent
                _note(element, answer)
                if local_name(element) == verb:
                    if len(element) > known or element is not holder:
                        yield from _others(element, answer, take)
                    found, holder = True, None
            elif _is_top(parent, verb):
                holder, last, known = parent, element, known + 1
                _note(element, answer)
        if holder is None and root is not None and not found:
            holder = root if local_name(root) == verb else next(root.iterchildren(f"{{*}}{verb}"), None)
        if holder is not None:
            if len(holder) and len(holder) - 1 > known - (holder[-1] is last):
                yield from _others(list(holder)[:-1], answer, take)
            known = int(len(holder) > 0 and holder[-1] is last)
            # To remove an element to which something refers takes a time that grows with the square of its parts.
            element = parent = last = looked_at = None
            del holder[:-1]  # not the last one, of which more may come, or text behind it
            last = holder[-1] if known else None
    answer.is_whole = True
    if not found and not answer.errors:
        raise NoAnswer(_another_verb(answer.verb))


class _Room:
    """Counts what has come since the last record, and cannot be forgotten yet."""

    def __init__(self, limits: XmlLimits) -> None:
        self._limits = limits
        self.clear()

    def clear(self) -> None:
        """A record has ended."""
        self._size = self._nodes = 0

    def take(self, chunk: bytes) -> None:
        """Count the next piece of the answer. Raises Crowded if that is too much."""
        self._size += len(chunk)
        self._nodes += nodes_in(chunk)
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


def _all_ended(file: BinaryIO, item: str, verb: str) -> Iterator[Iterable[tuple[str, etree._Element]]]:
    """The same, all at once, which is quicker; piece by piece if that cannot be. Raises Damage as _ended does."""
    parser, tree = _parser(), None
    with suppress(etree.XMLSyntaxError):
        tree = etree.fromstring(file.read(), parser)
    if tree is None or parser.error_log.filter_from_errors():
        file.seek(0)
        yield from _ended(file, item, verb, _Room(record_limits(SHORT)))
        return
    if why := crowd(tree) or next(filter(None, map(crowd, tree.iterchildren(f"{{*}}{verb}"))), ""):
        raise Crowded(why)
    names = (item, *(f"{{*}}{name}" for name in (verb, *_BESIDE)))
    tops = tree.iterchildren(*names)
    listed = (each for top in tops for each in (*(top.iterchildren(*names) if local_name(top) == verb else ()), top))
    yield [("end", each) for each in listed]
    if local_name(tree) == verb:
        yield [("end", tree)]


def _ended(file: BinaryIO, item: str, verb: str, room: _Room) -> Iterator[Iterable[tuple[str, etree._Element]]]:
    """The elements that end, some at a time. Raises Damage before those of a part that is not well-formed."""
    parser = _pull_parser((item, *(f"{{*}}{name}" for name in (verb, *_BESIDE))))
    while chunk := file.read(_CHUNK):
        room.take(chunk)
        try:
            parser.feed(chunk)
        except etree.XMLSyntaxError as error:
            raise Damage(in_words(error.msg or "not well-formed")) from None
        if len(parser.feed_error_log) and (wrong := parser.feed_error_log.filter_from_errors()):
            raise Damage(in_words(wrong[0].message))
        yield parser.read_events()
    try:
        parser.close()
    except etree.XMLSyntaxError as error:
        raise Damage(error.msg or "not well-formed") from None


def _cut(
    file: BinaryIO, answer: Answer, take: Take[Item], number: int, limits: XmlLimits
) -> Iterator[Item | Lost | Mended[Item]]:
    """The records after the first `number`, each for itself, of an answer that is not well-formed. Raises NoAnswer."""
    found = number > 0
    for record in cut(file, answer.root, answer.verb, _item(answer), number, limits):
        if isinstance(record, Lost):
            yield record
        elif isinstance(record, etree._Element):
            item = _taken(record, answer, take)
            if item is not None:
                yield item
        elif isinstance(record, Mended):
            item = _taken(record.item, answer, take)
            if item is not None:
                yield Mended(item)
        else:
            _conclude(answer, record, found=found)
        found = True


def _conclude(answer: Answer, around: Surrounding, *, found: bool) -> None:
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
        raise NoAnswer(_another_verb(answer.verb))


def _item(answer: Answer) -> str:
    """The local name of what is listed: 1.x has identifiers without headers."""
    return "identifier" if answer.root.is_old and answer.verb == "ListIdentifiers" else _ITEMS[answer.verb]


def _is_top(element: etree._Element | None, verb: str) -> bool:
    """Whether this is the container of the answer, none that is within a record."""
    return element is not None and local_name(element) == verb and _is_around(element)


def _is_around(element: etree._Element) -> bool:
    """True for the root element and its children: the records of an answer are in one of these."""
    parent = element.getparent()
    return parent is None or parent.getparent() is None


def text_of(element: etree._Element) -> str:
    """The text of an element, whatever comments or processing instructions are within it."""
    text = str(element.xpath("string()")) if len(element) else element.text
    return text.strip() if text else ""


def own_text(element: etree._Element) -> str:
    """The text of an element without that of its child elements, whatever comments are within it.

    The time that it takes grows with the children of the element alone, not with all that is below it.
    """
    others = (child.tail for child in element if not isinstance(child.tag, str))
    return "".join(filter(None, (element.text, *others))).strip()


def local_name(element: etree._Element) -> str:
    """The name of an element without its namespace: the elements of some repositories are in none, or another one."""
    return str(element.tag).rpartition("}")[2]


def _taken(element: etree._Element, answer: Answer, take: Take[Item]) -> Item | None:
    """What `take` makes of an element that may be in another namespace than its answer, and its parts with it."""
    namespace = str(element.tag).rpartition("}")[0].removeprefix("{")
    if namespace == answer.root.namespace:
        return take(element, answer)
    answer.note("namespace", namespace or "none")
    return take(element, replace(answer, root=replace(answer.root, namespace=namespace)))


def _others(children: Iterable[etree._Element], answer: Answer, take: Take[Item]) -> Iterator[Item | None]:
    """The items of a list that are in another namespace than its answer. What it should not have is counted."""
    local = _item(answer)
    for child in children:
        if isinstance(child.tag, str) and child.tag != answer.root.name(local):
            if local_name(child) == local:
                yield _taken(child, answer, take)
            elif local_name(child) not in _KNOWN:
                answer.note("element", f"<{local_name(child)}>")


def _note(element: etree._Element, answer: Answer) -> None:
    name = local_name(element)
    if name == "resumptionToken":
        token, before = _token(element), answer.token
        if before is not None and token.text != before.text:
            answer.note("tokens", token.text or before.text)
        if token.text or token.too_long or not (before and before.text):
            answer.token = token
    elif name == "responseDate":
        date = text_of(element)
        if len(date) > DATE:
            answer.note("too-long", f"responseDate ({len(date):,} characters)")
        answer.response_date = date[:DATE]
    elif name == "error" and len(answer.errors) < ERRORS:
        code = (element.get("code") or "")[:DATE].strip() or "error"
        answer.errors.append(ProtocolError(one_line(code, 60), one_line(words_of(element, 4_000), 300)))


def _token(element: etree._Element) -> Token:
    text = text_of(element) or element.text  # of one that is nothing but white space, that is told
    return token_from(text, ((str(name), str(value)) for name, value in element.attrib.items()))


def _recovered(content: bytes, answer: Answer) -> etree._Element:
    """What the parser makes of an answer that is not well-formed. Raises NoAnswer."""
    text = mended_whole(content)
    if text.count(b"&") > SHORT_ANSWER.nodes:  # each reference to an unknown entity becomes a node of the tree
        message = f"The answer to {answer.verb} is no well-formed XML, and has more than {SHORT_ANSWER.nodes:,} &."
        raise NoAnswer(_too_large(message))
    answer.is_whole = ends(text[-TAIL:], answer.root, answer.verb)
    with suppress(etree.XMLSyntaxError):
        tree = etree.fromstring(text, _parser(recover=True))
        if tree is not None and root_of(str(tree.tag)) == answer.root:
            return tree
    raise NoAnswer(replace(ill_formed(answer), level=Level.ERROR))


def _parser(*, recover: bool = False) -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True, recover=recover)


def _pull_parser(tags: tuple[str, ...]) -> Any:
    return etree.XMLPullParser(
        events=("end",), tag=tags, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
    )


def _begun(head: bytes, verb: str) -> AnswerRoot:
    """The root element of what begins like this. Raises NoAnswer for a page, another document, or a DTD."""
    if not head.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        remedy = "The repository's keeper sees in its log why nothing was sent."
        raise NoAnswer(Finding("oai.not-oai", f"The answer to {verb} is empty.", remedy))
    title = html_title(head[:HEAD_BYTES])
    text = head[_before(head) :]
    tag, has_dtd = first_tag(text) if title is None else (None, False)
    if title is None:
        title = title_of_odd_page(head, tag)
    if title is not None:
        raise NoAnswer(_page(verb, title))
    if text.startswith(b"<"):
        try:
            refuse_encoding(text)
        except XmlRefused as refused:
            remedy = "The repository's keeper has its answers written in UTF-8, as the protocol says."
            raise NoAnswer(Finding("oai.encoding", f"The answer to {verb} {refused}.", remedy)) from None
    if tag is None and text.startswith(b"<") and len(head) >= HEAD_BYTES + _CHUNK:
        raise NoAnswer(_too_large(f"The first {len(head):,} bytes of the answer to {verb} have no whole tag."))
    if tag is None:
        raise NoAnswer(Finding("oai.not-oai", f"The answer to {verb} is no XML.", _IF_NOT_OAI))
    if has_dtd:
        message = f"The answer to {verb} begins with a DTD (<!DOCTYPE …>), which can change what records say."
        raise NoAnswer(Finding("oai.dtd", message, "Have the repository answer without a DOCTYPE."))
    root = root_of(tag) if len(tag) <= URI else None
    if root is None:
        message = f"The answer to {verb} is a document <{one_line(tag, 120)}>, not one of OAI-PMH."
        raise NoAnswer(Finding("oai.not-oai", message, _IF_NOT_OAI))
    if root.verb and root.verb != verb:
        raise NoAnswer(_another_verb(verb))
    return root


def _before(head: bytes) -> int:
    """How many bytes stand before the beginning that should not: blank lines, byte order marks."""
    before = BEFORE.match(head)
    return before.end() if before else 0


def _too_large(message: str) -> Finding:
    remedy = "The repository's keeper looks what is so large in it: no harvester needs as much."
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
    remedy = "The repository's keeper sees whether a cache or proxy before it takes notice of what stands behind the ?."
    return Finding("oai.not-oai", message, remedy)


IN_THE_LOG = "The repository's keeper sees in its log why, and mends what stopped it."
"""What to do about an answer that the repository did not give, or not to its end."""

_WELL_FORMED = (
    "The repository's keeper has its answers written by a program that writes XML: mostly a & or < in a text is not "
    "escaped, or something stands before <?xml."
)


def well_formed(damage: str) -> str:
    """What is to be done about an answer of which the parser says this."""
    if damage == TOO_DEEP:
        return "The repository's keeper looks for elements that are never closed, and mends the record."
    return IN_THE_LOG if damage.startswith("Premature end") else _WELL_FORMED


def ill_formed(answer: Answer) -> Finding:
    """An answer is not well-formed, and was read all the same."""
    message = f"The answer to {answer.verb} is no well-formed XML: {answer.damage}. What could be read of it was taken."
    return Finding("oai.ill-formed", message, well_formed(answer.damage), Level.WARNING)


def cut_off(answer: Answer) -> Finding:
    """Why an answer is not taken for a whole one."""
    message = f"An answer to {answer.verb} breaks off before its end: {one_line(answer.damage, 200)}."
    if answer.errors:
        errors = ", ".join(map(str, answer.errors))
        message = f"An answer to {answer.verb} has records, and then an error: {errors}."
    return Finding("oai.cut-off", message, IN_THE_LOG)
