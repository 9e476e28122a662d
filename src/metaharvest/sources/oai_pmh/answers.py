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
from metaharvest.model import Finding, Level
from metaharvest.sources.oai_pmh.cutting import (
    BEFORE,
    TAIL,
    TOO_DEEP,
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
_BESIDE = ("responseDate", "error", "resumptionToken")
_KNOWN = {*_BESIDE, "request", "requestURL"}
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
    `damage`: what the parser found first, if it is not well-formed. `odd` counts what is told of a list as a whole.
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
    odd: Counter[str] = field(default_factory=Counter)
    example: dict[str, str] = field(default_factory=dict)
    unusable: list[int | None] = field(default_factory=list)

    def note(self, what: str, example: str) -> None:
        """Something is odd about the list; the number of what is, with the first example."""
        self.odd[what] += 1
        self.example.setdefault(what, one_line(example, 200))


def short_answer(content: bytes, verb: str) -> tuple[etree._Element, Answer]:
    """The tree of an answer that has no records; what is not well-formed in it is passed over. Raises NoAnswer.

    Of one that is not whole, nothing can be concluded from what it does not have.
    """
    root = _begun(content, verb)
    answer = Answer(verb, root, is_whole=True)
    try:
        tree = etree.fromstring(content, _parser())
    except etree.XMLSyntaxError as error:
        answer.damage = one_line(error.msg or "not well-formed", 200)
        tree = _recovered(content, answer)
    found = False
    for child in tree:
        _note(child, answer)
        found = found or child.tag == root.name(verb)
        if child.tag == root.name(verb):
            for each in child.iterchildren(root.name("resumptionToken")):
                _note(each, answer)
    if not (found or answer.errors or root.verb == verb):
        raise NoAnswer(_another_verb(verb))
    return tree, answer


def items(file: BinaryIO, answer: Answer, take: Take[Item]) -> Iterator[Item | Lost | Mended[Item]]:
    """What `take` makes of each record (or header) of the answer in `file`, which is open for reading at its start.

    `answer` says at first which verb was asked; it is filled in on the way. To be used within one thread. Raises
    NoAnswer.
    """
    head = file.read(HEAD_BYTES)
    answer.root = _begun(head + file.read(_CHUNK), answer.verb)
    file.seek(0)
    number = 0
    try:
        for item in _strictly(file, answer, take):
            number += 1
            if item is not None:
                yield item
    except Damage as damage:
        file.seek(0)
        answer.errors.clear()
        answer.token, answer.damage = None, str(damage)
        yield from _cut(file, answer, take, number)


def _strictly(file: BinaryIO, answer: Answer, take: Take[Item]) -> Iterator[Item | None]:
    """Each record as soon as it has come. Raises Damage before a record that is not well-formed, or follows one."""
    verb, item = answer.verb, answer.root.name(_item(answer))
    ending = _all_ended if size_of(file) <= SHORT else _ended
    found, known = False, 0
    root = holder = last = None
    for ended in ending(file, item, verb):
        for _, element in ended:
            parent = element.getparent()
            if element.tag == item:
                if parent is holder or _is_top(parent, verb):
                    holder, last, known = parent, element, known + 1
                    yield take(element, answer)
            elif parent is None or parent.getparent() is None:
                root = parent
                _note(element, answer)
                if _local(element) == verb:
                    if len(element) > known or element is not holder:
                        yield from _others(element, answer, take)
                    found, holder = True, None
            elif _is_top(parent, verb):
                holder, last, known = parent, element, known + 1
                _note(element, answer)
        if holder is None and root is not None and not found:
            holder = next((each for each in (root, *root) if _local(each) == verb), None)
        if holder is not None:
            if len(holder) and len(holder) - 1 > known - (holder[-1] is last):
                yield from _others(list(holder)[:-1], answer, take)
            del holder[:-1]  # not the last one, of which more may come, or text behind it
            known = int(len(holder) > 0 and holder[-1] is last)
    answer.is_whole = True
    if not found and not answer.errors:
        raise NoAnswer(_another_verb(answer.verb))


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
        yield from _ended(file, item, verb)
        return
    listed = (each for child in tree for each in ((*child, child) if _local(child) == verb else (child,)))
    names = {verb, *_BESIDE}
    yield [("end", each) for each in (*listed, tree) if each.tag == item or _local(each) in names]


def _ended(file: BinaryIO, item: str, verb: str) -> Iterator[Iterable[tuple[str, etree._Element]]]:
    """The elements that end, some at a time. Raises Damage before those of a part that is not well-formed."""
    parser = _pull_parser((item, *(f"{{*}}{name}" for name in (verb, *_BESIDE))))
    while chunk := file.read(_CHUNK):
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


def _cut(file: BinaryIO, answer: Answer, take: Take[Item], number: int) -> Iterator[Item | Lost | Mended[Item]]:
    """The records after the first `number`, each for itself, of an answer that is not well-formed. Raises NoAnswer."""
    found = number > 0
    for record in cut(file, answer.root, answer.verb, _item(answer), number):
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
    if element is None or _local(element) != verb:
        return False
    parent = element.getparent()
    return parent is None or parent.getparent() is None


def text_of(element: etree._Element) -> str:
    """The text of an element, whatever comments or processing instructions are within it."""
    text = str(element.xpath("string()")) if len(element) else element.text
    return text.strip() if text else ""


def _local(element: etree._Element) -> str:
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
            if _local(child) == local:
                yield _taken(child, answer, take)
            elif _local(child) not in _KNOWN:
                answer.note("element", f"<{_local(child)}>")


def _note(element: etree._Element, answer: Answer) -> None:
    name = _local(element)
    if name == "resumptionToken":
        token, before = _token(element), answer.token
        if before is not None and token.text != before.text:
            answer.note("tokens", token.text or before.text)
        if token.text or not (before and before.text):
            answer.token = token
    elif name == "responseDate":
        answer.response_date = text_of(element)
    elif name == "error":
        code = (element.get("code") or "").strip() or "error"
        answer.errors.append(ProtocolError(one_line(code, 60), one_line("".join(map(str, element.itertext())), 300)))


def _token(element: etree._Element) -> Token:
    text = text_of(element) or element.text  # of one that is nothing but white space, that is told
    return token_from(text, ((str(name), str(value)) for name, value in element.attrib.items()))


def _recovered(content: bytes, answer: Answer) -> etree._Element:
    """What the parser makes of an answer that is not well-formed. Raises NoAnswer."""
    text = mended_whole(content)
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
    tag, has_dtd = _first_tag(head) if title is None else (None, False)
    if title is None:
        title = title_of_odd_page(head, tag)
    if title is not None:
        raise NoAnswer(_page(verb, title))
    if tag is None:
        raise NoAnswer(Finding("oai.not-oai", f"The answer to {verb} is no XML.", _IF_NOT_OAI))
    if has_dtd:
        message = f"The answer to {verb} begins with a DTD (<!DOCTYPE …>), which can change what records say."
        raise NoAnswer(Finding("oai.dtd", message, "Have the repository answer without a DOCTYPE."))
    root = root_of(tag)
    if root is None:
        message = f"The answer to {verb} is a document <{one_line(tag, 120)}>, not one of OAI-PMH."
        raise NoAnswer(Finding("oai.not-oai", message, _IF_NOT_OAI))
    if root.verb and root.verb != verb:
        raise NoAnswer(_another_verb(verb))
    return root


def _first_tag(head: bytes) -> tuple[str | None, bool]:
    """The name of the root element, if one begins, and whether there is a DTD; entities cannot grow meanwhile."""
    parser: Any = etree.XMLPullParser(events=("start",), resolve_entities=False, no_network=True, load_dtd=False)
    before = BEFORE.match(head)
    for start in range(before.end() if before else 0, len(head), 512):
        with suppress(etree.XMLSyntaxError):
            parser.feed(head[start : start + 512])
        for _, element in parser.read_events():
            return str(element.tag), element.getroottree().docinfo.internalDTD is not None
    return None, False


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
