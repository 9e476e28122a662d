"""An answer's bytes: its records, one after the other in bounded memory; or the tree of an answer that is short.

Nothing is repaired silently: an answer is parsed strictly, and what is not well-formed is left to repair.py. A DTD is
refused: its entities could change what a record says. What a record is made into is for the caller's function.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from os import SEEK_END
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

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
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh.bounds import DATE, ERRORS, SHORT_ANSWER, UNUSABLE, URI, crowd, words_of
from metaharvest.sources.oai_pmh.old import item_of, root_of
from metaharvest.sources.oai_pmh.protocol import ProtocolError, ResponseRoot, Token, text_of, token_from
from metaharvest.sources.oai_pmh.repair import TAIL, TOO_DEEP, Envelope, ends, in_words, repaired_whole
from metaharvest.text import one_line

Take = Callable[[etree._Element], ListedRecord | None]

IN_MEMORY = 1_048_576
"""Bytes of an answer; a longer one is on the disk."""

CHUNK = 65_536
"""Bytes of an answer that are parsed together."""

_BESIDE = ("responseDate", "error", "resumptionToken")
_KNOWN = {*_BESIDE, "request", "requestURL"}
_MOST_CONTAINERS = 10


class NotOaiResponse(Exception):
    """What came is no answer of OAI-PMH to what was asked; `finding` says what it is."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding

    def __str__(self) -> str:
        return self.finding.message


class ParseDamage(Exception):
    """An answer is not well-formed; the message is the parser's."""


class Crowded(ParseDamage):
    """A record, or the tags around the records, exceed a limit; the message names it."""


class TooDamaged(Exception):
    """An answer has very many unusable records, each of which takes time: it is read no further."""


@dataclass(slots=True)
class Response:
    """What is known of an answer beside its records, as far as it was read.

    `date`: when it was sent, by the clock of the web server, if that is known. `is_whole`: it did not break off.
    `has_list`: it has an element for the verb. `damage`: what the parser found first, if it `is_ill_formed`, or what is
    too much to be read as it is. `odd` counts oddities that are reported once for the whole list.
    `unusable` has a key for each record of which nothing was made, None where not even that can be told from others.
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
    odd: Counter[str] = field(default_factory=Counter)
    example: dict[str, str] = field(default_factory=dict)
    unusable: list[int | None] = field(default_factory=list)

    def note(self, what: str, example: str) -> None:
        """Something is odd about the list; the number of what is, with the first example."""
        self.odd[what] += 1
        self.example.setdefault(what, one_line(example, 200))

    def become(self, other: Response) -> None:
        """Take over what is known of the same answer, when it is read again; the date stays."""
        for each in fields(Response):
            if each.name != "date":
                setattr(self, each.name, getattr(other, each.name))

    def begin_again(self, why: ParseDamage) -> None:
        """Forget what was read: repair.py reads the answer again from its start."""
        is_ill_formed = not isinstance(why, Crowded)
        self.become(Response(self.verb, self.root, damage=str(why), is_ill_formed=is_ill_formed))
        if not is_ill_formed:
            self.note("crowded", str(why))

    def add_envelope(self, around: Envelope) -> None:
        """What a damaged answer has beside its records. What cannot be read of it, is not passed over."""
        for element in around.elements:
            _note(element, self)
        if "error" in around.unread and not self.errors:
            self.errors.append(ProtocolError("error", "its words cannot be read"))
        self.is_whole = around.is_whole
        if "resumptionToken" in around.unread:
            self.token, self.is_whole = None, False
            self.damage = f"its resumption token cannot be read ({self.damage})"
        elif around.is_whole and not (around.has_list or self.errors):
            raise NotOaiResponse(_another_verb(self.verb))


def refuse_many(number: int) -> None:
    """Raises TooDamaged if an answer has this number of records of one kind that cannot be read."""
    if number > UNUSABLE:
        raise TooDamaged(f"more than {UNUSABLE:,} of its records cannot be read, or have no identifier")


def spool() -> BinaryIO:
    """A file for an answer; up to IN_MEMORY bytes of it are in memory."""
    return cast(BinaryIO, SpooledTemporaryFile(max_size=IN_MEMORY, prefix="metaharvest-"))


def short_response(content: bytes, verb: str) -> tuple[etree._Element, Response]:
    """The tree of an answer that has no records; what is not well-formed in it is passed over. Raises NotOaiResponse.

    Of one that is not whole, nothing can be concluded from what it does not have. To be called in a thread.
    """
    root = _begun(content[: HEAD_BYTES + CHUNK], verb)
    answer = Response(verb, root, is_whole=True)
    try:
        refuse_excess(content, SHORT_ANSWER)
    except XmlRefused as refused:
        raise NotOaiResponse(_too_large(f"The answer to {verb} {refused}.")) from None
    try:
        tree = etree.fromstring(content, _parser())
    except etree.XMLSyntaxError as error:
        answer.damage, answer.is_ill_formed = one_line(error.msg or "not well-formed", 200), True
        tree = _recovered(content, answer)
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


def root_in(file: BinaryIO, verb: str) -> ResponseRoot:
    """The root element of the answer in `file`, which is at its start before and afterwards. Raises NotOaiResponse."""
    head = file.read(HEAD_BYTES + CHUNK)
    file.seek(0)
    return _begun(head, verb)


def strictly(file: BinaryIO, answer: Response, take: Take, limits: XmlLimits) -> Iterator[ListedRecord | None]:
    """What `take` makes of each record (or header) of the answer in `file`, as soon as it has come.

    Raises NotOaiResponse. Raises ParseDamage before a record that is not well-formed, or follows one. Before a record
    that exceeds the limits, or has too much declared around it, it raises Crowded. To be used within one thread.
    """
    parser: Any = etree.XMLPullParser(events=("start",), tag=answer.root.name(answer.root.verb or "OAI-PMH"), **_SAFE)
    is_list = answer.root.verb == answer.verb
    root = None
    size = nodes = 0
    try:
        while chunk := file.read(CHUNK):
            size, nodes = size + len(chunk), nodes + nodes_in(chunk)
            if size > limits.size + CHUNK:
                raise Crowded(f"a record has more than {limits.size:,} bytes")
            if nodes > limits.nodes:
                raise Crowded(f"a record has more than {limits.nodes:,} elements and attributes")
            parser.feed(chunk)
            _refuse_errors(parser.feed_error_log)
            for _, element in parser.read_events():
                root = element if root is None else root
            if root is not None:
                for record in _complete(root, answer, take, is_list=is_list, is_whole=False):
                    size = nodes = 0
                    yield record
        yield from _complete(parser.close(), answer, take, is_list=is_list, is_whole=True)
    except etree.XMLSyntaxError as error:
        raise ParseDamage(in_words(error.msg or "not well-formed")) from None
    answer.is_whole = True
    if not (answer.has_list or answer.errors):
        raise NotOaiResponse(_another_verb(answer.verb))


def _refuse_errors(log: Any) -> None:
    """Raises ParseDamage if the parser has found an error, such as an undeclared prefix, and went on."""
    if len(log) and (wrong := log.filter_from_errors()):
        raise ParseDamage(in_words(wrong[0].message))


def _complete(
    parent: etree._Element, answer: Response, take: Take, *, is_list: bool, is_whole: bool
) -> Iterator[ListedRecord | None]:
    """The records among the complete children: all but the last one, if more is to come; these are removed.

    The time to remove an element that is still referred to grows with the square of its parts: nothing refers to it.
    """
    if why := crowd(parent):
        raise Crowded(why)
    answer.has_list = answer.has_list or is_list
    local = item_of(answer.root, answer.verb)
    item = answer.root.name(local)
    number = max(0, len(parent) - (not is_whole))
    child: etree._Element | None = None
    for child in islice(parent, number):
        if is_list and child.tag == item:
            yield take(child)
        elif isinstance(child.tag, str):
            name = local_name(child)
            if name in _BESIDE:
                _note(child, answer)
            elif not is_list and name == answer.verb:
                yield from _complete(child, answer, take, is_list=True, is_whole=True)
            elif is_list and name == local:
                yield take(child)
            elif is_list and name not in _KNOWN:
                answer.note("element", f"<{name}>")
    if not is_whole:
        child = None
        del parent[:number]
        if not is_list and len(parent) and local_name(parent[-1]) == answer.verb:
            yield from _complete(parent[-1], answer, take, is_list=True, is_whole=False)


def size_of(file: BinaryIO) -> int:
    """The bytes in a file, which is at its start before and afterwards."""
    file.seek(0, SEEK_END)
    size = file.tell()
    file.seek(0)
    return size


def own_text(element: etree._Element) -> str:
    """The text of an element without that of its child elements, whatever comments are within it.

    The time that it takes grows with the children of the element alone, not with all that is below it.
    """
    others = (child.tail for child in element if not isinstance(child.tag, str))
    return "".join(filter(None, (element.text, *others))).strip()


def local_name(element: etree._Element) -> str:
    """The name of an element without its namespace: the elements of some repositories are in none, or another one."""
    return str(element.tag).rpartition("}")[2]


def _note(element: etree._Element, answer: Response) -> None:
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


def _recovered(content: bytes, answer: Response) -> etree._Element:
    """What the parser makes of an answer that is not well-formed. Raises NotOaiResponse."""
    text = repaired_whole(content)
    if text.count(b"&") > SHORT_ANSWER.nodes:  # each reference to an unknown entity becomes a node of the tree
        message = f"The answer to {answer.verb} is no well-formed XML, and has more than {SHORT_ANSWER.nodes:,} &."
        raise NotOaiResponse(_too_large(message))
    answer.is_whole = ends(text[-TAIL:], answer.root, answer.verb)
    with suppress(etree.XMLSyntaxError):
        tree = etree.fromstring(text, _parser(recover=True))
        if tree is not None and root_of(str(tree.tag)) == answer.root:
            return tree
    raise NotOaiResponse(replace(ill_formed(answer), level=Level.ERROR))


_SAFE: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": True}


def _parser(*, recover: bool = False) -> etree.XMLParser:
    return etree.XMLParser(recover=recover, **_SAFE)


def _begun(head: bytes, verb: str) -> ResponseRoot:
    """The root element of what begins like this. Raises NotOaiResponse for a page, another document, or a DTD."""
    if not head.strip(b"\0 \t\r\n\xef\xbb\xbf"):
        remedy = "The repository's keeper sees in its log why nothing was sent."
        raise NotOaiResponse(Finding("oai.not-oai", f"The answer to {verb} is empty.", remedy))
    title = html_title(head[:HEAD_BYTES])
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n\v\f")
    tag, has_dtd = first_tag(text) if title is None else (None, False)
    if title is None:
        title = title_of_odd_page(head, tag)
    if title is not None:
        raise NotOaiResponse(_page(verb, title))
    if text.startswith(b"<"):
        try:
            refuse_encoding(text)
        except XmlRefused as refused:
            remedy = "The repository's keeper has its answers written in UTF-8, as the protocol says."
            raise NotOaiResponse(Finding("oai.encoding", f"The answer to {verb} {refused}.", remedy)) from None
    if tag is None and text.startswith(b"<") and len(head) >= HEAD_BYTES + CHUNK:
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


def ill_formed(answer: Response) -> Finding:
    """An answer is not well-formed, and was read all the same."""
    message = f"The answer to {answer.verb} is no well-formed XML: {answer.damage}. What could be read of it was taken."
    return Finding("oai.ill-formed", message, well_formed(answer.damage), Level.WARNING)


def cut_off(answer: Response) -> Finding:
    """Why an answer is not taken for a whole one."""
    message = f"An answer to {answer.verb} breaks off before its end: {one_line(answer.damage, 200)}."
    if answer.errors:
        errors = ", ".join(map(str, answer.errors))
        message = f"An answer to {answer.verb} has records, and then an error: {errors}."
    return Finding("oai.cut-off", message, IN_THE_LOG)
