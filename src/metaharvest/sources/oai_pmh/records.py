"""The element of a record, or of a header, made into a listed record: id, metadata as a document, origin."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any
from urllib.parse import quote, urlsplit
from xml.parsers import expat

from lxml import etree

from metaharvest.fetch.url import without_login
from metaharvest.model import Finding, Level, ListedDocument, OaiOptions, RecordOrigin
from metaharvest.model.lengths import ABOUTS, SET_SPEC
from metaharvest.sources.base import ListedRecord
from metaharvest.sources.oai_pmh.answers import Answer, well_formed
from metaharvest.sources.oai_pmh.bounds import ABOUT_DECLARED, DATE, IDENTIFIER, SET_SPECS, URI, crowd, declared_size
from metaharvest.sources.oai_pmh.datestamps import is_proper
from metaharvest.sources.oai_pmh.protocol import AnswerRoot, says_deleted, text_of
from metaharvest.sources.oai_pmh.repair import Lost
from metaharvest.text import one_line
from metaharvest.validation.titles import title_of

_MAX_DOCUMENT_ID = 800
_PARTS = ("header", "metadata", "about")
_OF_HEADER = ("identifier", "datestamp", "setSpec")
_FEW_ATTRIBUTES_BYTES = 50_000
"""Up to so many bytes it does not matter how many attributes an element has: libxml2 takes a time that grows with the
square of their number to put them in order, half a minute for 80,000."""

_FEW_DECLARATIONS = 200
_PIECE = 65_536
_MOST_LOOKS = 100_000_000
"""Namespaces in scope, summed over the elements: this number takes a second or two."""

_MANY_ATTRIBUTES, _MOST_PAIRS = 100, 1_000_000
"""To write an element takes a time that grows with its attributes and the namespaces that are in scope there."""

_SHORT_TAG = 1_000
"""Bytes of a start tag that is too short to have too many namespaces."""

_has_many_attributes = etree.XPath("boolean(descendant-or-self::*[@*[1000]])")
_DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
_PLAIN = re.compile(r"[A-Za-z0-9._~:/-]*")
_PRINTABLE = "".join(map(chr, range(33, 127)))
_MEND_RECORD = "The repository's keeper mends the record where it is entered. The harvester tries again by itself."
_IN_ORDER = (
    "The repository's keeper has the records listed in an order that does not change while they are read, such as that "
    "of their identifiers. A full harvest finds what was left out."
)
_MEND_LARGE = (
    "The repository's keeper divides the record, or has data in it linked rather than written into it. The largest "
    "size is max_document_bytes in the section [http] of the settings."
)
_REMEDIES = {
    "oai.no-metadata": 'The repository\'s keeper gives it metadata, or has its header say status="deleted".',
    "oai.metadata-parts": "The repository's keeper has everything written into one element, and no text beside it.",
}


class Records:
    """Makes the listed records of one repository and prefix. `odd` counts what is told of a list as a whole.

    `digests`: their origins have digests and titles, as a harvest needs them; they are a third of the work. The content
    of a record has at most `largest` bytes.
    """

    def __init__(self, base_url: str, options: OaiOptions, *, digests: bool = True, largest: int = 52_428_800) -> None:
        self.largest = largest
        self._digests = digests
        self._base_url = without_login(base_url)
        self._prefix = options.prefix
        self._set_spec = options.set_spec
        self._tells_sets: bool | None = None
        self._start = f"{options.origin}/{options.prefix}/"
        joint = "&" if urlsplit(self._base_url).query else "?"
        prefix = quote(options.prefix, safe="")
        self._url = f"{self._base_url}{joint}verb=GetRecord&metadataPrefix={prefix}&identifier="
        self._root = AnswerRoot("", "")
        self._parts: tuple[str, ...] = ()
        self._of_header: tuple[str, ...] = ()
        self.odd: Counter[str] = Counter()
        self.example: dict[str, str] = {}

    def taken(self, element: etree._Element, answer: Answer) -> ListedRecord | None:
        """The record in this element; None for one that cannot be named."""
        self._heed(answer.root)
        header = metadata = None
        is_one = True
        abouts: list[etree._Element] = []
        header_tag, metadata_tag, about_tag = self._parts
        for child in element:  # to have them filtered by lxml takes ten times as long
            tag = child.tag
            if tag == header_tag:
                is_one = is_one and header is None
                header = child
            elif tag == metadata_tag:
                is_one = is_one and metadata is None
                metadata = child
            elif tag == about_tag:
                abouts.append(child)
        if header is None:
            self.note("nameless", "")
            return None
        if not is_one:
            return self._run_together(element, answer)
        deleted = says_deleted(header) or says_deleted(element)
        return self._listed(header, answer, metadata, abouts, deleted=deleted)

    def _run_together(self, element: etree._Element, answer: Answer) -> ListedRecord | None:
        """Several records of which the borders are lost: the last one by its name, the others are counted."""
        headers = list(element.iterchildren(self._parts[0]))
        others = max(len(headers), len(list(element.iterchildren(self._parts[1])))) - 1
        self.odd["nameless"] += others
        self.example.setdefault("nameless", "")
        answer.unusable += [None] * others
        names, _, _ = _read_header(headers[-1], self._of_header)
        return self.lost(Lost(names[-1] if names else "", "it runs together with another one"), answer.response_date)

    def _heed(self, root: AnswerRoot) -> None:
        """Make the names of a record's elements, once for an answer."""
        if root is not self._root:
            self._root, self._parts, self._of_header = root, root.names(*_PARTS), root.names(*_OF_HEADER)

    def header(self, element: etree._Element, answer: Answer) -> ListedRecord | None:
        """A record of which only the header is known."""
        self._heed(answer.root)
        return self._listed(element, answer, None, (), deleted=says_deleted(element), is_header=True)

    def not_in_format(self, identifier: str) -> None:
        """Count a record that does not exist in this format (1.x)."""
        self.note("no-format", identifier)

    def lost(self, lost: Lost, response_date: str) -> ListedRecord | None:
        """A record that cannot be read."""
        if not lost.identifier:
            self.note("nameless", "")
            return None
        message = f"The repository's record {one_line(lost.identifier, 200)} cannot be read: {lost.why}."
        finding = Finding("oai.damaged-record", message, _MEND_RECORD, docid=lost.identifier)
        if lost.is_large:
            finding = _too_large(lost.identifier, lost.why)
        return self.unhad(self.document(lost.identifier, "", (), response_date), finding)

    def unhad(self, document: ListedDocument, *findings: Finding) -> ListedRecord:
        """A record that cannot be had."""
        return ListedRecord(document, None, findings=findings)

    def document(self, identifier: str, datestamp: str, sets: tuple[str, ...], response_date: str) -> ListedDocument:
        """A record by its identifier, of which the metadata are not known."""
        identifier = _bounded(identifier)
        document_id = self.document_id(identifier)
        origin = RecordOrigin(self._base_url, identifier, self._prefix, datestamp, response_date, sets=sets)
        return ListedDocument(document_id, 0, "", self.url(identifier), origin=origin)

    def document_id(self, identifier: str) -> str:
        """The document id: the identifier, of which `%` and all that is not printable ASCII is percent-encoded.

        No two identifiers have the same one.
        """
        document_id = self._start + identifier
        if len(document_id) <= _MAX_DOCUMENT_ID and _PLAIN.fullmatch(document_id):
            return document_id
        document_id = self._start + identifier.replace("%", "%25")
        if not (document_id.isascii() and document_id.isprintable() and " " not in document_id):
            document_id = quote(document_id, safe=_PRINTABLE)
        if len(document_id) <= _MAX_DOCUMENT_ID:
            return document_id
        return f"{document_id[: _MAX_DOCUMENT_ID - 65]}~{hashlib.sha256(document_id.encode()).hexdigest()}"

    def too_long(self, identifier: str) -> Finding | None:
        """Why a record cannot be kept, if its identifier is too long for that."""
        if len(self._start + identifier) <= _MAX_DOCUMENT_ID:
            return None
        message = f"The identifier has more characters than can be kept: {one_line(identifier, 100)}."
        remedy = f"The repository's keeper gives it a shorter one: a document id has {_MAX_DOCUMENT_ID} at most."
        return Finding("oai.identifier", message, remedy)

    def arguments(self, identifier: str) -> dict[str, str]:
        """Those of GetRecord."""
        return {"identifier": identifier, "metadataPrefix": self._prefix}

    def url(self, identifier: str) -> str:
        """The address of the record by itself."""
        if _PLAIN.fullmatch(identifier):  # almost every one: to quote it takes longer
            return self._url + identifier.replace(":", "%3A").replace("/", "%2F")
        return self._url + quote(identifier, safe="")

    def _listed(
        self,
        header: etree._Element,
        answer: Answer,
        metadata: etree._Element | None,
        abouts: Sequence[etree._Element],
        *,
        deleted: bool,
        is_header: bool = False,
    ) -> ListedRecord | None:
        identifiers, datestamp, sets = _read_header(header, self._of_header)
        identifier = _bounded(identifiers[-1]) if identifiers else ""
        if not identifier or len(identifiers) > 1:
            self.note("nameless", "")
        if not identifier:
            return None
        if not is_proper(datestamp) if datestamp else not answer.root.is_old:
            self.note("datestamp", f"{one_line(identifier, 100)}: {datestamp[:DATE] or 'none'}")
        elif len(datestamp) == len("2026-11-20"):
            self.odd["days"] += 1
        if len(datestamp) > DATE:
            datestamp = datestamp[:DATE]
        if sets:
            sets = self._kept_sets(identifier, sets)
            if self._set_spec and sets:
                self._note_sets(identifier, sets, self._set_spec)
        document_id = self.document_id(identifier)
        if len(document_id) >= _MAX_DOCUMENT_ID and (too_long := self.too_long(identifier)):
            document = self.document(identifier, datestamp, sets, answer.response_date)
            if deleted:
                return ListedRecord(document, None, deleted=True)
            return self.unhad(document, too_long)
        about = self._abouts(abouts, identifier) if abouts else ()
        findings: tuple[Finding, ...] = ()
        content, namespace, digest, title = None, "", "", ""
        if not (deleted or is_header):
            root, findings = _only_child(metadata, identifier)
            if root is not None:
                content, namespace, digest, findings = self._content(root, identifier, findings)
                title = title_of(root) if digest else ""
        date, url = answer.response_date, self._base_url
        origin = RecordOrigin(url, identifier, self._prefix, datestamp, date, namespace, digest, sets, about, title)
        document = ListedDocument(document_id, 0, namespace, self.url(identifier), origin=origin)
        return ListedRecord(document, content, deleted, findings)

    def _content(
        self, root: etree._Element, identifier: str, findings: tuple[Finding, ...]
    ) -> tuple[bytes | None, str, str, tuple[Finding, ...]]:
        """The metadata as a document of its own, their namespace, and their digest; what is odd about them.

        Of metadata that exceed a limit, there is nothing but a finding.
        """
        namespace = str(root.tag).rpartition("}")[0].removeprefix("{")
        why = ""
        if len(namespace) > URI:
            why = f"its metadata are in a namespace of {len(namespace):,} characters; {URI:,} are taken"
        elif len(root.attrib) > _MANY_ATTRIBUTES and len(root.attrib) * len(root.nsmap) > _MOST_PAIRS:
            why = "one of its elements has very many attributes and namespaces"
        content = b"" if why else _standing_alone(root)
        is_short = content.find(b">", len(_DECLARATION), len(_DECLARATION) + _SHORT_TAG) > 0
        if not (why or is_short) and (around := root.getparent()) is not None:
            why = crowd(around)
        if len(content) > self.largest:
            why = f"it has {len(content):,} bytes; {self.largest:,} are taken"
        if why:
            return None, "", "", (_too_large(identifier, why),)
        return content, namespace, _digest(root, content) if self._digests else "", findings

    def _abouts(self, abouts: Iterable[etree._Element], identifier: str) -> tuple[bytes, ...]:
        """What is in the about containers of a record, each as a document; what is too much is left out, and noted."""
        found: list[bytes] = []
        size = copied = left_out = 0
        for about in abouts:
            if copied > ABOUT_DECLARED or size > ABOUTS:
                left_out += len(about)
                continue
            is_crowded, around = bool(crowd(about)), declared_size(about.nsmap)
            for each in about.iterchildren("*"):
                copied += around
                is_left_out = is_crowded or copied > ABOUT_DECLARED or size > ABOUTS
                content = b"" if is_left_out else _standing_alone(each)
                size += len(content)
                if is_left_out or size > ABOUTS:
                    left_out += 1
                else:
                    found.append(content)
        if left_out:
            shown = one_line(identifier, 100)
            self.odd["too-long"] += left_out
            self.example.setdefault("too-long", f"{left_out:,} parts of the about containers of {shown}")
        return tuple(found)

    def _kept_sets(self, identifier: str, sets: tuple[str, ...]) -> tuple[str, ...]:
        """The setSpecs that are kept; what is too much is left out, and noted."""
        if sum(map(len, sets)) <= SET_SPEC:
            return sets
        kept, size = [], 0
        for each in sets:
            size += len(each)
            if len(each) > SET_SPEC or size > SET_SPECS:
                longest = f"a setSpec of {one_line(identifier, 100)} ({len(each):,} characters, {size:,} in all)"
                self.note("too-long", longest)
            else:
                kept.append(each)
        return tuple(kept)

    def _note_sets(self, identifier: str, sets: Sequence[str], asked: str) -> None:
        """Note if it is not in the set that is asked for; where the first one is not, headers do not tell."""
        is_own = any(each == asked or each.startswith(f"{asked}:") for each in sets)
        if self._tells_sets is None:
            self._tells_sets = is_own
        if self._tells_sets and not is_own:
            self.note("foreign", f"{identifier} ({', '.join(sets)})")

    def heed(self, answer: Answer) -> None:
        """What was odd about the answer as a whole, which was read to its end."""
        self.add({what: (number, answer.example.get(what, "")) for what, number in answer.odd.items()})

    def count_from(self, counted: Mapping[str, Sequence[Any]]) -> None:
        """Begin again with what was odd before a part of the list that is read once more; see counted."""
        self.odd.clear()
        self.add(counted)

    def add(self, counted: Mapping[str, Sequence[Any]]) -> None:
        """What was odd about a part of the list, which was read before; see counted."""
        for what, (number, example) in counted.items():
            self.odd[what] += number
            self.example.setdefault(what, example)

    def counted(self) -> dict[str, tuple[int, str]]:
        """What is odd about the list until now, each with its number and the first example."""
        return {what: (number, self.example.get(what, "")) for what, number in self.odd.items() if number}

    def note(self, what: str, example: str) -> None:
        """Something is odd about the list; see findings."""
        self.odd[what] += 1
        self.example.setdefault(what, one_line(example, 200))

    def without_time(self) -> Finding | None:
        """What is said of datestamps without a time of day, where the repository says that they have one."""
        number = self.odd["days"]
        if not number:
            return None
        message = (
            f"The repository says that its datestamps have seconds; those of {number:,} of the list's records are "
            "days. What changes later on such a day would not be listed, and whole days are asked for from now on."
        )
        remedy = (
            "The repository's keeper corrects the granularity in Identify, or has the datestamps written with seconds."
        )
        return Finding("oai.granularity", message, remedy, Level.WARNING)

    def findings(self, *, is_whole: bool = True) -> tuple[Finding, ...]:
        """What was odd about the list, each with its number; of one that is not `is_whole`, not what came twice."""
        found = [
            Finding(rule, sentence.format(self.odd[what], self.example[what]), remedy, level)
            for what, (rule, sentence, remedy, level) in _ODD.items()
            if self.odd[what]
        ]
        if number := self.odd["ill-formed"]:
            answers = "1 answer of the list was" if number == 1 else f"{number:,} answers of the list were"
            message = f"{answers} not well-formed XML ({self.example['ill-formed']}); what could be read was taken."
            remedy = well_formed(self.example["ill-formed"])
            found.append(Finding("oai.ill-formed", message, remedy, Level.WARNING))
        if is_whole and (number := self.odd["twice"]):
            records = "1 record" if number == 1 else f"{number:,} records"
            message = f"{records} came twice in the list. Where that is because the list moved while it was read, "
            message += "others may have been left out."
            # https://github.com/artefactual/atom/issues/1581, https://github.com/DOAJ/doaj/issues/712
            found.append(Finding("oai.duplicates", message, _IN_ORDER, Level.WARNING))
        return tuple(found)


_ODD = {
    "nameless": (
        "oai.identifier",
        "{0:,} of the list's records have no identifier that can be read; they cannot be harvested.",
        "The repository's keeper has each header have its identifier.",
        Level.ERROR,
    ),
    # https://github.com/geopython/pycsw/issues/899
    "element": (
        "oai.protocol",
        "The list has {0:,} elements that are neither records nor a resumption token, such as {1}; they are left out.",
        "The repository's keeper has its lists written with records, and at the end a resumptionToken, alone.",
        Level.ERROR,
    ),
    "tokens": (
        "oai.token",
        "{0:,} of the list's answers have several resumption tokens; the last that is not empty was followed ({1}).",
        "The repository's keeper has each page end with one resumption token, empty on the last page alone.",
        Level.WARNING,
    ),
    "namespace": (
        "oai.protocol",
        "{0:,} of the list's records are not in the namespace of their answer (but in: {1}); they were taken.",
        "The repository's keeper has them written in the namespace of the answer: other harvesters leave them out.",
        Level.WARNING,
    ),
    "crowded": (
        "oai.too-large",
        "{0:,} of the list's answers were read record by record, as they have too much in one place: {1}.",
        "The repository's keeper looks what is so large in its answers: no harvester needs as much.",
        Level.WARNING,
    ),
    "too-long": (
        "oai.too-long",
        "{0:,} values of the list are longer than is kept, and were left out or cut: such as {1}.",
        "The repository's keeper looks what is written into them; a setSpec has 1,024 characters at most, what is in "
        "the about containers of one record 1 MB.",
        Level.WARNING,
    ),
    "no-format": (
        "oai.no-metadata",
        "{0:,} of the list's records do not exist in this format, such as {1}.",
        "Nothing is to be done, unless they should exist.",
        Level.WARNING,
    ),
    # https://github.com/MarkVSullivan/SobekCM-Web-Application/issues/6
    "foreign": (
        "oai.protocol",
        "{0:,} of the list's records are not in the set that was asked for, though others are: such as {1}. They "
        "were taken.",
        "The repository's keeper looks whether all pages of a list are of its set: resumption tokens may lose it.",
        Level.WARNING,
    ),
    # https://github.com/TreeBASE/treebase/issues/194, https://github.com/infrae/pyoai/pull/30
    "datestamp": (
        "oai.datestamp",
        "{0:,} of the list's records have a datestamp that OAI-PMH does not have, such as {1}.",
        "The repository's keeper has them written in UTC, like 2026-11-20T03:00:00Z or 2026-11-20.",
        Level.WARNING,
    ),
}


def _bounded(identifier: str) -> str:
    """The identifier; of one that is too long to be harvested, the beginning and a hash of all."""
    if len(identifier) <= IDENTIFIER:
        return identifier
    return f"{identifier[: IDENTIFIER - 65]}~{hashlib.sha256(identifier.encode()).hexdigest()}"


def _read_header(header: etree._Element, tags: tuple[str, ...]) -> tuple[list[str], str, tuple[str, ...]]:
    """The identifiers of a header, of which there should be one, its datestamp, and its sets."""
    identifier_tag, datestamp_tag, set_tag = tags
    identifiers, datestamp = [], ""
    sets = []
    for child in header:
        tag, text = child.tag, child.text
        if len(child):
            text = text_of(child)
        if tag == identifier_tag:
            identifiers.append((text or "").strip())
        elif tag == datestamp_tag:
            datestamp = (text or "").strip()
        elif tag == set_tag and text:
            sets.append(text.strip())
    return identifiers, datestamp, tuple(sets)


def _only_child(metadata: etree._Element | None, identifier: str) -> tuple[etree._Element | None, tuple[Finding, ...]]:
    """The one element that metadata are; an error if it is none, or not the only one."""
    if metadata is not None and len(metadata) == 1 and not metadata.text:
        only = metadata[0]
        if isinstance(only.tag, str) and not only.tail:
            return only, ()
    elements = () if metadata is None else tuple(islice(metadata.iterchildren("*"), 2))
    if metadata is None or not elements:
        what = "has no metadata" if metadata is None else "has metadata without any element"
        return None, (_about(identifier, "oai.no-metadata", f"{what}, and is not said to be deleted"),)
    if len(elements) > 1:
        number = sum(1 for _ in metadata.iterchildren("*"))
        return None, (_about(identifier, "oai.metadata-parts", f"has {number} elements as metadata, not one"),)
    texts = chain((metadata.text,), (child.tail for child in metadata))
    if any(text and not text.isspace() for text in texts):
        why = "has text beside its metadata, which is left out"
        return elements[0], (_about(identifier, "oai.metadata-parts", why, Level.WARNING),)
    return elements[0], ()


def _about(identifier: str, rule: str, what: str, level: Level = Level.ERROR) -> Finding:
    message = f"The repository's record {one_line(identifier, 200)} {what}."
    return Finding(rule, message, _REMEDIES[rule], level, docid=identifier)


def _too_large(identifier: str, why: str) -> Finding:
    message = f"The repository's record {one_line(identifier, 200)} is too large, and was left out: {why}."
    return Finding("oai.too-large", message, _MEND_LARGE, docid=identifier)


def _digest(root: etree._Element, content: bytes) -> str:
    """That of the metadata in canonical XML; or as they are, where they cannot be written so."""
    canonical = content
    with suppress(etree.C14NError, ValueError):  # Canonical XML has no relative namespace URIs.
        if not _is_slow_to_order(root, content):
            canonical = etree.tostring(root, method="c14n", exclusive=True, with_comments=False)
    return hashlib.sha256(canonical).hexdigest()


def _is_slow_to_order(root: etree._Element, content: bytes) -> bool:
    """Whether canonical XML takes a time that grows with the square of the metadata's attributes or namespaces."""
    if len(content) <= _FEW_ATTRIBUTES_BYTES:
        return False
    declared, tags = content.count(b"xmlns"), content.count(b"<")
    is_crowded = declared > _FEW_DECLARATIONS and declared * tags > _MOST_LOOKS
    if is_crowded and _most_in_scope(content) * tags > _MOST_LOOKS:
        return True
    return bool(_has_many_attributes(root))


def _most_in_scope(content: bytes) -> int:
    """The largest number of namespace declarations that are in scope at an element of these metadata.

    Expat finds it out: with lxml, each element would take a time that grows with its depth.
    """
    parser = expat.ParserCreate("utf-8", " ")
    depth = most = 0

    def start(_prefix: str | None, _uri: str | None) -> None:
        nonlocal depth, most
        depth += 1
        most = max(most, depth)

    def end(_prefix: str | None) -> None:
        nonlocal depth
        depth -= 1

    parser.StartNamespaceDeclHandler = start
    parser.EndNamespaceDeclHandler = end
    with suppress(expat.ExpatError):
        for at in range(0, len(content), _PIECE):  # other threads have their turn between two pieces
            parser.Parse(content[at : at + _PIECE], False)
        parser.Parse(b"", True)
    return most


def _standing_alone(element: etree._Element) -> bytes:
    """The element as a document, with every namespace that is declared around it: values may use their prefixes."""
    return _DECLARATION + etree.tostring(element, encoding="UTF-8", xml_declaration=False, with_tail=False)
