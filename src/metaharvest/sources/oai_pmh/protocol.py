"""The values of the protocol: errors, tokens, formats, sets, Identify; and the answers of older versions as of 2.0."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta

from lxml import etree

from metaharvest.model.lengths import TOKEN
from metaharvest.model.values import frozen
from metaharvest.sources.oai_pmh.bounds import DATE

VERBS = ("Identify", "ListMetadataFormats", "ListSets", "ListIdentifiers", "ListRecords", "GetRecord")


@frozen
class ResponseRoot:
    """The root element of an answer. `verb` is empty in 2.0, where another element names it.

    `namespace` is the one of all elements of the protocol in this answer; `version` is 2.0, 1.1 or 1.0.
    """

    namespace: str
    version: str
    verb: str = ""

    @property
    def is_old(self) -> bool:
        """True for the versions 1.0 and 1.1."""
        return self.version != "2.0"

    def name(self, local: str) -> str:
        """The name of one of the protocol's elements, as lxml has it."""
        return f"{{{self.namespace}}}{local}" if self.namespace else local

    def names(self, *local: str) -> tuple[str, ...]:
        """The names of several elements."""
        return tuple(map(self.name, local))


def text_of(element: etree._Element) -> str:
    """The text of an element, including text after comments and processing instructions within it."""
    text = str(element.xpath("string()")) if len(element) else element.text
    return text.strip() if text else ""


def says_deleted(element: etree._Element) -> bool:
    """True if a header, or a record in 1.x, says that the record is deleted."""
    status = element.get("status")
    return status is not None and status.strip().lower() == "deleted"


@frozen
class ProtocolError:
    """An error in an answer: one of the protocol's codes, and the source repository's words for it."""

    code: str
    words: str = ""

    def __str__(self) -> str:
        return f"{self.code} ({self.words})" if self.words else self.code


@frozen
class Token:
    """A resumption token, and its information about the list; `text` is empty at the list's end.

    `is_blank`: it is only white space, where a token or nothing is expected. `too_long`: its number of characters, if
    it is too long to be kept and sent back; then `text` is empty.
    """

    text: str
    expires: str = ""
    size: int | None = None
    is_blank: bool = False
    too_long: int = 0


def token_from(text: str | None, attributes: Iterable[tuple[str, str]]) -> Token:
    """The token in an element. A size that is not a number is ignored."""
    given = {name: value.strip()[:DATE] for name, value in attributes if name in _ATTRIBUTES}
    size = given.get("completeListSize", "")
    number = int(size) if size.isascii() and size.isdigit() and len(size) < 16 else None
    stripped = (text or "").strip()
    too_long = len(stripped) if len(stripped) > TOKEN else 0
    kept = "" if too_long else stripped
    return Token(kept, given.get("expirationDate", ""), number or None, bool(text) and not stripped, too_long)


_ATTRIBUTES = ("completeListSize", "expirationDate")


@frozen
class MetadataFormat:
    """A metadata format that a source repository offers."""

    prefix: str
    schema: str = ""
    namespace: str = ""


@frozen
class Set:
    """A set of a source repository: its name in requests, and its name for people."""

    spec: str
    name: str = ""


@frozen
class Identity:
    """The answer of a source repository to Identify. `granularity` and `deleted_record` are in its own words.

    `friends` are base URLs of other source repositories; `version` is the version of the protocol in the answer. The
    source repository's clock, which `response_date` shows, is `ahead` of its web server's; below 0: behind. The
    identifiers of its records begin with `oai:` and `identifiers`, if it says so (repositoryIdentifier).
    """

    name: str
    base_url: str
    version: str
    emails: tuple[str, ...] = ()
    earliest: str = ""
    deleted_record: str = ""
    granularity: str = ""
    compression: tuple[str, ...] = ()
    friends: tuple[str, ...] = ()
    response_date: str = ""
    ahead: timedelta = timedelta(0)
    identifiers: str = ""

    @property
    def has_seconds(self) -> bool:
        """True if datestamps have a time of day."""
        return self.version == "2.0" and "T" in self.granularity


# -- versions 1.0 and 1.1
# The root element is the verb, in a namespace that names the verb too. ListIdentifiers has identifiers without headers.
# A record that does not exist in a format has a header and nothing else.

_NAMESPACE = re.compile(r"http://www\.openarchives\.org/OAI/(?:(1\.[01])/)?OAI_\w+")


def root_of(tag: str) -> ResponseRoot | None:
    """The root element of an answer, in any version; None: the answer is not OAI-PMH.

    The namespace may be another one: https://github.com/DSpace/xoai/issues/71
    """
    namespace, _, local = tag.rpartition("}")
    namespace = namespace.removeprefix("{")
    if local == "OAI-PMH":
        return ResponseRoot(namespace, "2.0")
    old = _NAMESPACE.fullmatch(namespace)
    return ResponseRoot(namespace, old[1] or "1.0", local) if old and local in VERBS else None


def item_of(root: ResponseRoot, verb: str) -> str:
    """The local name of the elements in a list."""
    if verb == "ListIdentifiers":
        return "identifier" if root.is_old else "header"
    return "record"


def as_in_2_0(element: etree._Element, root: ResponseRoot) -> etree._Element | None:
    """An identifier as a header without datestamp; a record unchanged. None: the record is not in this format."""
    if element.tag == root.name("identifier"):
        made = etree.Element(root.name("header"))
        made.set("status", element.get("status", ""))
        etree.SubElement(made, element.tag).text = text_of(element)
        return made
    header = element.find(root.name("header"))
    is_deleted = says_deleted(element) or (header is not None and says_deleted(header))
    is_there = header is None or is_deleted or element.find(root.name("metadata")) is not None
    return element if is_there else None
