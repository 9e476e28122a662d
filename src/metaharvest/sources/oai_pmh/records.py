"""The element of a record, or of a header, made into a listed record: names, metadata as a document, origin."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from lxml import etree

from metaharvest.fetch.url import without_login
from metaharvest.model import Finding, Level, ListedDocument, OaiOptions, RecordOrigin
from metaharvest.model.lengths import ABOUTS, SET_SPEC
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh.bounds import ABOUT_DECLARED, DATE, IDENTIFIER, SET_SPECS, crowd, declared_size
from metaharvest.sources.oai_pmh.datestamps import is_proper
from metaharvest.sources.oai_pmh.oddities import Oddities
from metaharvest.sources.oai_pmh.protocol import ResponseRoot, says_deleted, text_of
from metaharvest.sources.oai_pmh.repair import Unreadable
from metaharvest.sources.oai_pmh.responses import Response
from metaharvest.text import one_line
from metaharvest.validation.titles import title_of

_FEW_BYTES = 50_000
"""The canonical form of metadata with at most this number of bytes is never slow."""

_MOST_LOOKS = 100_000_000
"""Namespace declarations times tags: for this number, canonical XML takes a second or two."""

_MANY_ATTRIBUTES = 100
_SHORT_TAG = 1_000

_has_many_attributes = etree.XPath("boolean(descendant-or-self::*[@*[1000]])")
_DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_DAY = len("2026-11-20")


class Records:
    """Makes the listed records of one source repository and format, and counts what is odd about the list.

    `digests`: origins have digests and titles, as a harvest needs them; they are a third of the work. The content of a
    record has at most `largest` bytes.
    """

    def __init__(self, base_url: str, options: OaiOptions, *, digests: bool = True, largest: int = 52_428_800) -> None:
        self.names = RecordNames(base_url, options)
        self.odd = Oddities()
        self.largest = largest
        self._digests = digests
        self._set_spec = options.set_spec
        self._names_own_set: bool | None = None

    def taken(self, element: etree._Element, answer: Response) -> ListedRecord | None:
        """The record in this element; None if it has no identifier."""
        tags = _tags(answer.root.namespace)
        headers: list[etree._Element] = []
        metadata: list[etree._Element] = []
        abouts: list[etree._Element] = []
        parts, foreign = {tags.header: headers, tags.metadata: metadata, tags.about: abouts}, ""
        for child in element:  # it takes ten times as long if lxml filters the children
            tag = child.tag
            if tag in parts:
                parts[tag].append(child)
            elif isinstance(tag, str) and (own := tags.own(tag)) in parts:
                parts[own].append(child)
                foreign = tag
        if foreign:
            self.odd.note("namespace", foreign.rpartition("}")[0].removeprefix("{") or "none")
        if not headers:
            self.odd.note("nameless")
            return None
        if others := max(len(headers), len(metadata)) - 1:
            self.odd.note("nameless", number=others)
            answer.unusable += [None] * others
            identifier = _header_in(headers[-1], tags).identifier
            return self.lost(Unreadable(identifier, "it runs together with another one"), answer.response_date)
        header = self._checked(headers[0], tags)
        if header is None:
            return None
        self._note_datestamp(header.datestamp, header.identifier)
        deleted = says_deleted(headers[0]) or says_deleted(element)
        if deleted or self.names.too_long(header.identifier):
            return self._without_content(header, answer, deleted=deleted)
        about = self._abouts(abouts, header.identifier) if abouts else ()
        return self._with_content(header, answer, metadata[0] if metadata else None, about)

    def header(self, element: etree._Element, answer: Response) -> ListedRecord | None:
        """A record of which only the header is known; None if it has no identifier."""
        header = self._checked(element, _tags(answer.root.namespace))
        return None if header is None else self._without_content(header, answer, deleted=says_deleted(element))

    def lost(self, lost: Unreadable, response_date: str) -> ListedRecord | None:
        """A record that cannot be read; None if it has no identifier."""
        if not lost.identifier:
            self.odd.note("nameless")
            return None
        finding = _too_large(lost.identifier, lost.why) if lost.is_large else _damaged(lost.identifier, lost.why)
        return ListedRecord(self.names.document_of(lost.identifier, response_date), None, findings=(finding,))

    def _checked(self, element: etree._Element, tags: _Tags) -> _Header | None:
        """The header, without values that are too long; None if it has no identifier."""
        header = identifier, datestamp, sets, others = _header_in(element, tags)
        if not identifier:
            self.odd.note("nameless")
            return None
        if others:
            self.odd.note("nameless", number=others)
        kept = self._sets(sets, identifier) if sets else sets
        if kept is sets and len(identifier) <= IDENTIFIER and len(datestamp) <= DATE:
            return header  # Almost every header is short.
        return _Header(shortened(identifier), datestamp[:DATE], kept)

    def _note_datestamp(self, datestamp: str, identifier: str) -> None:
        if not is_proper(datestamp):
            self.odd.note("datestamp", f"{one_line(identifier, 100)}: {datestamp or 'none'}")
        elif len(datestamp) == _DAY:
            self.odd.note("days")

    def _sets(self, sets: tuple[str, ...], identifier: str) -> tuple[str, ...]:
        """The setSpecs of a record, without those that are too long. Note if it is not in the requested set.

        If the first record is not in that set, headers do not name it.
        """
        if sum(map(len, sets)) > SET_SPEC:
            kept, size = [], 0
            for each in sets:
                size += len(each)
                if len(each) <= SET_SPEC and size <= SET_SPECS:
                    kept.append(each)
            if number := len(sets) - len(kept):
                self.odd.note("too-long", f"a setSpec of {one_line(identifier, 100)} ({size:,} characters)", number)
            sets = tuple(kept)
        if sets and (wanted := self._set_spec):
            is_in = any(each == wanted or each.startswith(f"{wanted}:") for each in sets)
            if self._names_own_set is None:
                self._names_own_set = is_in
            if self._names_own_set and not is_in:
                self.odd.note("foreign", f"{identifier} ({', '.join(sets)})")
        return sets

    def _abouts(self, abouts: Sequence[etree._Element], identifier: str) -> tuple[bytes, ...]:
        """The parts of a record's about containers, each as a document, until they are too much."""
        kept: list[bytes] = []
        size = declared = 0
        for part in chain.from_iterable(about.iterchildren("*") for about in abouts):
            declared += declared_size(part.nsmap)
            if declared > ABOUT_DECLARED or crowd(part):
                break
            content = _as_document(part)
            size += len(content)
            if size > ABOUTS:
                break
            kept.append(content)
        else:
            return tuple(kept)
        left_out = sum(map(len, abouts)) - len(kept)
        example = f"{left_out:,} parts of the about containers of {one_line(identifier, 100)}"
        self.odd.note("too-long", example, left_out)
        return tuple(kept)

    def _without_content(self, header: _Header, answer: Response, *, deleted: bool) -> ListedRecord:
        """A record that is deleted, or is fetched individually; with an error if its identifier is too long."""
        names = self.names
        too_long = None if deleted else names.too_long(header.identifier)
        origin = RecordOrigin(
            names.base_url, header.identifier, names.prefix, header.datestamp, answer.response_date, sets=header.sets
        )
        return ListedRecord(names.document(origin), None, deleted, (too_long,) if too_long else ())

    def _with_content(
        self, header: _Header, answer: Response, metadata: etree._Element | None, about: tuple[bytes, ...]
    ) -> ListedRecord:
        """A record with its metadata; with an error if they cannot be accepted."""
        identifier, datestamp, sets, _ = header
        root, finding = _root_in(metadata, identifier)
        content: bytes | None = None
        namespace = digest = title = ""
        if root is not None:
            content, why = self._content(root)
            if why:
                content, finding = None, _too_large(identifier, why)
            else:
                namespace = str(root.tag).rpartition("}")[0].removeprefix("{")
                digest, title = (_digest(root, content), title_of(root)) if self._digests else ("", "")
        date, names = answer.response_date, self.names
        origin = RecordOrigin(
            names.base_url, identifier, names.prefix, datestamp, date, namespace, digest, sets, about, title
        )
        return ListedRecord(names.document(origin), content, findings=(finding,) if finding else ())

    def _content(self, root: etree._Element) -> tuple[bytes, str]:
        """The metadata as a document; and why they are too large, or "".

        The time to write an element grows with its attributes and the namespaces in scope. Few namespaces are in scope
        if its start tag is short: this is the quicker check.
        """
        if len(root.attrib) > _MANY_ATTRIBUTES and (why := crowd(root)):
            return b"", why
        content = _as_document(root)
        if len(content) > self.largest:
            return content, f"it has {len(content):,} bytes; {self.largest:,} are taken"
        return content, "" if b">" in content[len(_DECLARATION) : _SHORT_TAG] else crowd(root)


class _Tags(NamedTuple):
    """The names of a record's elements, in the namespace of its answer."""

    identifier: str
    datestamp: str
    set_spec: str
    header: str
    metadata: str
    about: str

    def own(self, tag: str) -> str:
        """The name of an element in the namespace of the answer, if it is in another one.

        Seen at https://github.com/LearningRegistry/LearningRegistry/issues/57.
        """
        return self.header.removesuffix("header") + tag.rpartition("}")[2]


@lru_cache(maxsize=16)
def _tags(namespace: str) -> _Tags:
    name = ResponseRoot(namespace, "2.0").name
    return _Tags(*map(name, ("identifier", "datestamp", "setSpec", "header", "metadata", "about")))


class _Header(NamedTuple):
    identifier: str
    datestamp: str
    sets: tuple[str, ...]
    others: int = 0
    """Further identifiers: of records whose own headers are lost."""


def _header_in(element: etree._Element, tags: _Tags) -> _Header:
    """The values of a header; empty if it lacks them. The last identifier counts."""
    identifier, datestamp, sets, number = "", "", [], 0
    identifier_tag, datestamp_tag, set_tag, *_ = tags
    for child in element:
        tag, text = child.tag, text_of(child)
        if tag not in tags and isinstance(tag, str):
            tag = tags.own(tag)
        if tag == identifier_tag:
            identifier, number = text, number + 1
        elif tag == datestamp_tag:
            datestamp = text
        elif tag == set_tag and text:
            sets.append(text)
    return _Header(identifier, datestamp, tuple(sets), max(0, number - 1))


def _root_in(metadata: etree._Element | None, identifier: str) -> tuple[etree._Element | None, Finding | None]:
    """The root element of the metadata. The finding is an error if there is none, or a warning."""
    if metadata is not None and len(metadata) == 1 and not metadata.text:
        only = metadata[0]
        if isinstance(only.tag, str) and not only.tail:  # as almost all records
            return only, None
    elements: list[etree._Element] = []
    texts = [] if metadata is None else [metadata.text]
    for child in () if metadata is None else metadata:
        texts.append(child.tail)
        if isinstance(child.tag, str):
            elements.append(child)
    what, rule, level = "", "oai.metadata-parts", Level.ERROR
    remedy = "The repository should write everything into one element, and no text beside it."
    if not elements:
        what = "has no metadata" if metadata is None else "has metadata without any element"
        what, rule = f"{what}, and is not said to be deleted", "oai.no-metadata"
        remedy = 'The repository\'s keeper gives it metadata, or has its header say status="deleted".'
    elif len(elements) > 1:
        what = f"has {len(elements):,} elements as metadata, not one"
    elif "".join(filter(None, texts)).strip():
        what, level = "has text beside its metadata, which is left out", Level.WARNING
    if not what:
        return elements[0], None
    message = f"The repository's record {one_line(identifier, 200)} {what}."
    finding = Finding(rule, message, remedy, level, docid=identifier)
    return None if finding.is_error else elements[0], finding


def _damaged(identifier: str, why: str) -> Finding:
    message = f"The repository's record {one_line(identifier, 200)} cannot be read: {why}."
    remedy = "The repository's keeper corrects the record where it is entered. The harvester tries again by itself."
    return Finding("oai.damaged-record", message, remedy, docid=identifier)


def _too_large(identifier: str, why: str) -> Finding:
    message = f"The repository's record {one_line(identifier, 200)} is too large, and was left out: {why}."
    remedy = (
        "The repository's keeper divides the record, or has data in it linked rather than written into it. The largest "
        "size is max_document_bytes in the section [http] of the settings."
    )
    return Finding("oai.too-large", message, remedy, docid=identifier)


def _digest(root: etree._Element, content: bytes) -> str:
    """The digest of the metadata in canonical XML; of their bytes if that is slow, or not possible."""
    canonical = content
    try:
        if len(content) <= _FEW_BYTES or not _is_slow(root, content):
            canonical = etree.tostring(root, method="c14n", exclusive=True, with_comments=False)
    except (etree.C14NError, ValueError):  # Canonical XML has no relative namespace URIs.
        pass
    return hashlib.sha256(canonical).hexdigest()


def _is_slow(root: etree._Element, content: bytes) -> bool:
    """True if canonical XML takes a time that grows with the square of the metadata's namespaces or attributes.

    It looks through all namespaces in scope, for each tag. It sorts attributes in half a minute if there are 80,000.
    """
    return content.count(b"xmlns") * content.count(b"<") > _MOST_LOOKS or bool(_has_many_attributes(root))


def _as_document(element: etree._Element) -> bytes:
    """The element as a document, with all namespaces that are declared around it: values may use their prefixes."""
    return _DECLARATION + etree.tostring(element, encoding="UTF-8", xml_declaration=False, with_tail=False)


# -- the names of a record: its document id and its URL

_LONGEST_ID = 800
"""Characters of a document id."""

_PLAIN = re.compile(r"[A-Za-z0-9._~:/-]*")
_PRINTABLE = "".join(map(chr, range(33, 127)))


class RecordNames:
    """Names the records of one source repository in one format."""

    def __init__(self, base_url: str, options: OaiOptions) -> None:
        self.base_url = without_login(base_url)
        self.prefix = options.prefix
        self._before_identifier = f"{options.origin}/{options.prefix}/"
        self._start = quote(self._before_identifier, safe=_PRINTABLE)
        joint = "&" if urlsplit(self.base_url).query else "?"
        prefix = quote(options.prefix, safe="")
        self._url = f"{self.base_url}{joint}verb=GetRecord&metadataPrefix={prefix}&identifier="

    def document(self, origin: RecordOrigin) -> ListedDocument:
        """The record with this origin as a listed document."""
        document_id, url = self._id_and_url(origin.identifier)
        return ListedDocument(document_id, 0, origin.namespace, url, origin=origin)

    def document_of(self, identifier: str, response_date: str = "") -> ListedDocument:
        """A record as a listed document, if only its identifier is known."""
        return self.document(RecordOrigin(self.base_url, shortened(identifier), self.prefix, "", response_date))

    def document_id(self, identifier: str) -> str:
        """The document id: origin, prefix and identifier. `%` and all but printable ASCII is percent-encoded.

        Two identifiers never have the same document id.
        """
        return self._id_and_url(identifier)[0]

    def url(self, identifier: str) -> str:
        """The URL of the record."""
        return self._id_and_url(identifier)[1]

    def origin_of(self, document_id: str) -> RecordOrigin | None:
        """The origin of the record with this document id, without dates; None if it is no record of these."""
        if not document_id.startswith(self._start):
            return None
        return RecordOrigin(self.base_url, unquote(document_id.removeprefix(self._start)), self.prefix, "", "")

    def _id_and_url(self, identifier: str) -> tuple[str, str]:
        """The document id of the record, and its URL."""
        if _PLAIN.fullmatch(identifier):  # almost all identifiers; quote() takes longer
            document_id, quoted = self._start + identifier, identifier.replace(":", "%3A").replace("/", "%2F")
        else:
            document_id = self._start + quote(identifier.replace("%", "%25"), safe=_PRINTABLE)
            quoted = quote(identifier, safe="")
        if len(document_id) > _LONGEST_ID:
            document_id = shortened(document_id, _LONGEST_ID)
        return document_id, self._url + quoted

    def arguments(self, identifier: str) -> dict[str, str]:
        """The arguments of GetRecord."""
        return {"identifier": identifier, "metadataPrefix": self.prefix}

    def too_long(self, identifier: str) -> Finding | None:
        """The error about an identifier that is too long for a document id; None if it is not."""
        if len(self._before_identifier) + len(identifier) <= _LONGEST_ID:
            return None
        message = f"The identifier has more characters than can be kept: {one_line(identifier, 100)}."
        remedy = f"The repository's keeper gives it a shorter one: a document id has {_LONGEST_ID} at most."
        return Finding("oai.identifier", message, remedy)


def shortened(name: str, longest: int = IDENTIFIER) -> str:
    """The name; or its beginning and a hash of all of it, if it is too long."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - 65]}~{hashlib.sha256(name.encode()).hexdigest()}"
