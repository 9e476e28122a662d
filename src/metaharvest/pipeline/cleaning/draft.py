"""Collects the values of one document, and makes its output. What depends on several values is decided at the end.

Each list has at most 1,000 values, each once. A text has at most 10,000 characters, an output at most 200,000 of texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from typing import NamedTuple, TypeVar

from lxml import etree

from metaharvest.model.outputs import (
    Access,
    Agent,
    DateValue,
    FileLink,
    FileRole,
    Identifier,
    Licence,
    Output,
    Relation,
    ResourceType,
    Text,
)
from metaharvest.pipeline.cleaning.dates import edtf_of, year_of
from metaharvest.pipeline.cleaning.identifiers import identified, identifiers_in
from metaharvest.pipeline.cleaning.languages import language_of
from metaharvest.pipeline.cleaning.licences import access_of, embargo_in, spdx_of
from metaharvest.pipeline.cleaning.tex import with_letters
from metaharvest.pipeline.cleaning.types import BROADER, type_of
from metaharvest.text import only_xml, unescaped
from metaharvest.transform.crosswalks.rows import plain

MOST = 1_000
"""Values of a list of an output, and elements that are read for one row."""

LONGEST = 10_000
_ROOM = 8 * LONGEST
_MOST_CHARACTERS = 200_000
_LONGEST_URL = 4_000

XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"

_TAG = re.compile(
    r"</?(?:p|br|i|b|em|strong|sub|sup|span|div|a|u|ul|ol|li|h[1-6]|font|tt|small|hr|table|t[rdh]|tbody|blockquote|"
    r"(?:jats|mml):[a-z-]{1,20}|inline-formula|img|section|sec|title|italic|bold)(?:\s[^<>]{0,1000})?/?>",
    re.IGNORECASE,
)
_INLINE_TAG = re.compile(r"</?(?:i|b|em|strong|sub|sup|span|u|font|tt|small|italic|bold|a)\b", re.IGNORECASE)
_SEVERAL = re.compile(r"\s{0,3}[;,/|]\s{0,3}")
_REFERENCE = re.compile(r"&(?:[a-zA-Z]{2,8}|#\d{1,7}|#x[0-9a-fA-F]{1,6});")

_FILE_TYPES = {
    "pdf": "application/pdf",
    "xml": "application/xml",
    "txt": "text/plain",
    "html": "text/html",
    "htm": "text/html",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "odt": "application/vnd.oasis.opendocument.text",
    "rtf": "application/rtf",
    "epub": "application/epub+zip",
    "ps": "application/postscript",
    "tex": "application/x-tex",
    "csv": "text/csv",
    "zip": "application/zip",
}
_FULL_TEXT_TYPES = frozenset(
    _FILE_TYPES[name] for name in ("pdf", "doc", "docx", "odt", "rtf", "epub", "ps", "tex")
) | {"application/jats+xml", "application/x-pdf"}
_EXTENSION = re.compile(r"\.([a-zA-Z0-9]{2,4})$")
_MEDIA_TYPE = re.compile(r"[a-z]{2,20}/[a-z0-9.+-]{1,100}")

_PUBLISHED = ("Issued", "Available", "Copyrighted", "Accepted", "Submitted", "Created", "Updated", "Other")
"""The kinds of dates, by how well each says when the output was published."""

_Value = TypeVar("_Value")

_NO_TITLE = re.compile(
    r"[\[(]?(?:n/?a|none|null|no title|untitled|unknown|not available|sin t[ií]tulo|sem t[ií]tulo|ohne titel|"
    r"sans titre|:[a-z]{3,4})[\])]?|[-.?]+",
    re.IGNORECASE,
)
"""A text in place of a title."""


@dataclass(slots=True)
class Draft:
    """The values of a document with this format, as they are found. Each method takes a value and its source."""

    format: str
    titles: dict[tuple[str, str | None], Text] = field(default_factory=dict)
    creators: list[Agent] = field(default_factory=list)
    contributors: list[Agent] = field(default_factory=list)
    publishers: dict[str, Text] = field(default_factory=dict)
    abstracts: dict[str, Text] = field(default_factory=dict)
    subjects: dict[str, Text] = field(default_factory=dict)
    types: dict[str, ResourceType] = field(default_factory=dict)
    dates: dict[tuple[str, str], DateValue] = field(default_factory=dict)
    languages: dict[str, Text] = field(default_factory=dict)
    identifiers: dict[tuple[str, str], Identifier] = field(default_factory=dict)
    relations: dict[tuple[str, str, str], Relation] = field(default_factory=dict)
    licences: dict[tuple[str, str | None], Licence] = field(default_factory=dict)
    files: dict[str, FileLink] = field(default_factory=dict)
    access: Access | None = None
    embargo_until: str | None = None
    characters: int = 0

    def title(self, text: str, source: str, language: str | None = None) -> None:
        """A title; the first one that is more than `n/a` is the main title. Library catalogues end it with a slash."""
        if value := self._text(text.rstrip().removesuffix(" /"), source, language):
            _keep(self.titles, (value.text.casefold(), value.language), value)

    def abstract(self, text: str, source: str, language: str | None = None) -> None:
        """An abstract or a description."""
        if value := self._text(text, source, language):
            _keep(self.abstracts, value.text, value)

    def subject(self, text: str, source: str, language: str | None = None) -> None:
        """A subject or keyword."""
        if value := self._text(text, source, language):
            _keep(self.subjects, value.text.casefold(), value)

    def publisher(self, text: str, source: str, language: str | None = None) -> None:
        """The name of a publisher."""
        if value := self._text(text, source, language):
            _keep(self.publishers, value.text.casefold(), value)

    def creator(self, agents: Iterable[Agent]) -> None:
        """Creators, in their order."""
        self._agents(self.creators, agents)

    def contributor(self, agents: Iterable[Agent]) -> None:
        """Contributors, in their order."""
        self._agents(self.contributors, agents)

    def date(self, text: str, kind: str, source: str) -> None:
        """A date of this kind; a text that is no date is left out."""
        if edtf := edtf_of(text):
            _keep(self.dates, (edtf, kind), DateValue(edtf, kind, source))

    def type(self, text: str, source: str, address: str = "") -> None:
        """A type, in any vocabulary, as a text, as the address of a term, or both."""
        if value := self._text(text or address, source):
            coar, label = type_of(address) or type_of(value.text) or (None, None)
            _keep(self.types, value.text.casefold(), ResourceType(value.text, source, coar, label))

    def language(self, text: str, source: str) -> None:
        """A language of the output, a code or its name; or several ones."""
        value = self._text(text, source)
        if value is None:
            return
        parts = [value.text] if language_of(value.text) else _SEVERAL.split(value.text)
        several = parts if len(parts) > 1 and all(map(language_of, parts)) else [value.text]
        for part in several[:MOST]:
            _keep(self.languages, part.casefold(), replace(value, text=part, language=language_of(part)))

    def identifier(self, text: str, source: str, scheme: str = "") -> None:
        """An identifier of the output."""
        if line := one_line(text)[:_LONGEST_URL]:
            for name, value in identifiers_in(line, scheme):
                _keep(self.identifiers, (name, value), Identifier(name, value, source))

    def relation(self, kind: str, text: str, source: str, scheme: str = "") -> None:
        """A relation to another output. `kind` is a relation type of DataCite."""
        if line := one_line(text)[:_LONGEST_URL]:
            name, value = identified(line, scheme)
            _keep(self.relations, (kind, name, value), Relation(kind, name, value, source))

    def rights(self, text: str, source: str, url: str = "") -> None:
        """A licence, a statement of rights, or rights of access, as a text, a URL or both."""
        line, url = one_line(text)[:LONGEST], one_line(url)[:_LONGEST_URL]
        if not line and not url:
            return
        access = access_of(line) or access_of(url)
        self.access = self.access or access
        self.embargo(embargo_in(line))
        if access is not None and len(line or url) < 100:
            return
        self.characters += len(line)
        spdx = spdx_of(url) or spdx_of(line)
        where = url or (line if line.lower().startswith(("http://", "https://")) and " " not in line else "")
        _keep(self.licences, (spdx or line or url, where or None), Licence(line or url, source, spdx, where or None))

    def allow(self, access: Access | None) -> None:
        """The access rights that the document names as such: they count more than what a statement of rights says."""
        self.access = access or self.access

    def embargo(self, text: str | None) -> None:
        """The date on which an embargo ends; the first one counts."""
        if text and self.embargo_until is None and (edtf := edtf_of(text)) and "/" not in edtf:
            self.embargo_until = edtf.rstrip("~?%")

    def file(
        self, url: str, source: str, role: FileRole = FileRole.UNKNOWN, *, media_type: str = "", licence: str = ""
    ) -> None:
        """A link to a file. If its role is unknown, its type says if it is the full text."""
        url = one_line(url)
        if not _is_address(url):
            return
        kind = media_type.strip().lower().partition(";")[0]
        kind = kind if _MEDIA_TYPE.fullmatch(kind) else media_type_of(url)
        if role is FileRole.UNKNOWN and kind in _FULL_TEXT_TYPES:
            role = FileRole.FULL_TEXT
        spdx = spdx_of(licence) or one_line(licence) or None
        _keep(self.files, url, FileLink(url, source, role, kind or None, spdx))

    def page(self, url: str, source: str) -> None:
        """A link to a page about the output."""
        url = one_line(url)
        if _is_address(url) and not url.lower().startswith("ftp:"):
            _keep(self.files, url, FileLink(url, source, FileRole.LANDING_PAGE))

    def output(self) -> Output:
        """The output with all values."""
        dates = self._dates()
        languages = tuple(self.languages.values())
        titles, abstracts = tuple(self.titles.values()), tuple(self.abstracts.values())
        if any(scheme == "arxiv" for scheme, _ in self.identifiers):
            titles, abstracts = _without_tex(titles), _without_tex(abstracts)
        return Output(
            format=self.format,
            titles=tuple(sorted(titles, key=lambda each: _NO_TITLE.fullmatch(each.text) is not None)),
            creators=tuple(self.creators),
            contributors=tuple(self.contributors),
            publishers=tuple(self.publishers.values()),
            abstracts=abstracts,
            subjects=tuple(self.subjects.values()),
            types=self._types(),
            dates=dates,
            year=self._year(dates),
            languages=languages,
            language=next((each.language for each in languages if each.language), None),
            identifiers=tuple(self.identifiers.values()),
            relations=tuple(self.relations.values()),
            licences=tuple(self.licences.values()),
            access=Access.EMBARGOED if self.access is None and self.embargo_until else self.access,
            embargo_until=self._embargo(dates),
            files=tuple(self.files.values()),
        )

    def _types(self) -> tuple[ResourceType, ...]:
        """The types, the most specific ones first."""
        broader = {BROADER.get(each.coar or "") for each in self.types.values()}
        order = {None: 3, "c_1843": 3, "c_18cf": 2}
        return tuple(sorted(self.types.values(), key=lambda each: order.get(each.coar, each.coar in broader)))

    def _dates(self) -> tuple[DateValue, ...]:
        """The dates, the best date of publication first. Of the same kind, the earliest is first."""
        rank = {kind: place for place, kind in enumerate(_PUBLISHED)}
        return tuple(sorted(self.dates.values(), key=lambda each: (rank.get(each.kind, len(rank)), each.edtf)))

    def _year(self, dates: Iterable[DateValue]) -> int | None:
        """The year of the first date that has one; the time of the data is not the time of their publication."""
        years = (year_of(each.edtf) for each in dates if each.kind != "Collected")
        return next((year for year in years if year is not None), None)

    def _embargo(self, dates: Iterable[DateValue]) -> str | None:
        """The end of the embargo; DataCite and OpenAIRE give it as the date from which the output is available."""
        if self.embargo_until is None and self.access is Access.EMBARGOED:
            return next((each.edtf for each in dates if each.kind == "Available" and "/" not in each.edtf), None)
        return self.embargo_until

    def _text(self, text: str, source: str, language: str | None = None) -> Text | None:
        """The text without markup, on one line; None without one, or if the output is full."""
        line = plain_line(text)
        if not line or self.characters > _MOST_CHARACTERS:
            return None
        self.characters += len(line)
        return Text(line, source, language_of(language) if language else None)

    def _agents(self, kept: list[Agent], agents: Iterable[Agent]) -> None:
        for agent in islice(agents, MOST):
            if len(kept) < MOST and self.characters <= _MOST_CHARACTERS:
                self.characters += len(agent.name)
                kept.append(agent)


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value) -> None:
    """The value, unless there is one with this key, or the list is full."""
    if len(kept) < MOST:
        kept.setdefault(key, value)


_Key = TypeVar("_Key")


def _without_tex(texts: Sequence[Text]) -> tuple[Text, ...]:
    return tuple(replace(each, text=with_letters(each.text)) for each in texts)


def _is_address(line: str) -> bool:
    return line.lower().startswith(("http://", "https://", "ftp://")) and len(line) <= _LONGEST_URL and " " not in line


def one_line(text: str) -> str:
    """The text on one line, without characters that XML does not have."""
    return " ".join(only_xml(text[:_ROOM], "").split())


def plain_line(text: str) -> str:
    """The text on one line, without markup of HTML and JATS in it; a long one ends with an ellipsis."""
    text = text[:_ROOM]
    if "&" in text and _REFERENCE.search(text):
        text = unescaped(text)
    if "<" in text:
        text = _TAG.sub(lambda found: "" if _INLINE_TAG.match(found[0]) else " ", text)
    line = one_line(text)
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def media_type_of(url: str) -> str:
    """The media type of a file by the end of its address; "" if that says nothing."""
    path = url.partition("#")[0].partition("?")[0]
    found = _EXTENSION.search(path[-10:])
    return _FILE_TYPES.get(found[1].lower(), "") if found and path.count("/") > 2 else ""


# -- tables

Read = Callable[[Draft, etree._Element, str], None]
"""How an element at the path of a row is read into the draft."""


class Row(NamedTuple):
    """A row of a format: what is found at `path`, and how it is read."""

    path: str
    read: Read


def in_language(take: Callable[[Draft, str, str, str | None], None]) -> Read:
    """Takes the text of an element, with the language of its attribute `xml:lang`: `in_language(Draft.abstract)`."""
    return lambda draft, element, source: take(draft, plain(element), source, element.get(XML_LANG))


def value(take: Callable[[Draft, str, str], None], text: Callable[[etree._Element], str] = plain) -> Read:
    """Takes the text of an element: `value(Draft.language)`."""
    return lambda draft, element, source: take(draft, text(element), source)


def people(
    take: Callable[[Draft, Iterator[Agent]], None], read: Callable[[etree._Element, str], Iterator[Agent]]
) -> Read:
    """Takes the agents of an element, as `read` finds them: `people(Draft.creator, _agents)`."""
    return lambda draft, element, source: take(draft, read(element, source))


def date(kind: str, text: Callable[[etree._Element], str] = plain) -> Read:
    """Takes the text of an element as a date of this kind."""
    return lambda draft, element, source: draft.date(text(element), kind, source)


def relation(kind: str, text: Callable[[etree._Element], str] = plain) -> Read:
    """Takes the text of an element as a relation of this kind."""
    return lambda draft, element, source: draft.relation(kind, text(element), source)


def fill(
    draft: Draft, rows: Sequence[Row], start: etree._Element, namespaces: Mapping[str, str], shown: str = ""
) -> None:
    """Read what the rows find from `start` on. `shown` is the place of `start` in the sources of the values."""
    known = dict(namespaces)
    for row in rows:
        for number, element in enumerate(islice(start.iterfind(row.path, known), MOST), 1):
            row.read(draft, element, f"{shown}{_shown(row.path)}[{number}]")


@cache
def _shown(path: str) -> str:
    return path.replace("m:", "").replace("{*}", "")
