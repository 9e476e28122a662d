"""Decides from a document's bytes whether it may go into the target; if not, says why to the person who can correct it.

The levels, in this order: well-formed (`wellformed`), an EML root that agrees with the list (`identity`), schema-valid
(`against_schema`, explained by `explain`), EML-valid (`eml`), and the document that the list names (`identity`). The
first level with an error decides: all of its findings are given, and the warnings of the levels before it. That the
document arrived whole, and is not an HTML page, is checked where it is fetched. `worker` is what a worker process runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue

from lxml import etree

from metaharvest.model import Level, ListedDocument, Verdict, limited
from metaharvest.validation import against_schema, catalogue, eml, identity, parse_lock, places, wellformed
from metaharvest.validation.catalogue import VERSIONS, EmlVersion

__all__ = ["VERSIONS", "Validator"]

_OWN_THREAD_BYTES = 50_000
"""A document larger than this is checked in a thread of its own. libxml2 keeps every name that it reads until the
thread ends; the names of a few hostile documents take hundreds of megabytes, which are freed with their thread."""


class Validator:
    """Checks documents; safe for threads. At most `at_once` documents are checked at the same time, others wait.

    `other_document_types`: the types, as harvest lists name them, of documents that are accepted if they are
    well-formed, although they are not EML.
    """

    def __init__(self, other_document_types: Iterable[str] = (), at_once: int = os.cpu_count() or 1) -> None:
        self._other_types = frozenset(kind.strip() for kind in other_document_types)
        self._explaining = catalogue.ExplainingSchemas()
        self._idle: SimpleQueue[_ParserAndSchemas] = SimpleQueue()
        for _ in range(at_once):
            self._idle.put(_ParserAndSchemas({}))

    def check(self, content: bytes, document: ListedDocument, package_id_mismatch: Level) -> Verdict:
        """The verdict on `content`, listed as `document`.

        `package_id_mismatch`: the level of the finding if the document's packageId is not its docid in the list.
        """
        tools = self._idle.get()
        try:
            if len(content) <= _OWN_THREAD_BYTES:
                if self._is_faultless(content, document, package_id_mismatch, tools):
                    return Verdict()
                return self._verdict(content, document, package_id_mismatch, tools)
            # A parser that was used in another thread would bring the names of that thread along.
            own_tools = _ParserAndSchemas(tools.schemas)
            with ThreadPoolExecutor(1) as own_thread:
                return own_thread.submit(self._verdict, content, document, package_id_mismatch, own_tools).result()
        finally:
            self._idle.put(tools)

    def _verdict(
        self, content: bytes, document: ListedDocument, package_id_mismatch: Level, tools: _ParserAndSchemas
    ) -> Verdict:
        try:
            with parse_lock.parsing():
                root = wellformed.parse(content, tools.parser)
        except wellformed.NotReadable as error:
            return Verdict(limited(error.findings))
        version = identity.version_of(root)
        if version is None:
            if document.document_type.strip() in self._other_types:
                return Verdict()
            listed = "" if document.by_itself else document.document_type
            return _verdict_of([identity.not_eml_finding(root, listed)], content, root)
        schema = tools.schema(version)
        with parse_lock.parsing():
            found = against_schema.schema_findings(root, content, schema, version, self._explaining)
        if version.is_ambiguous:
            found += eml.additional_metadata_findings(root)
        if not any(finding.level is Level.ERROR for finding in found):
            found += eml.EmlRules(root).found + identity.package_id_findings(root, document, package_id_mismatch)
        return _verdict_of(identity.listed_type_findings(root, version, document) + found, content, root)

    def _is_faultless(
        self, content: bytes, document: ListedDocument, package_id_mismatch: Level, tools: _ParserAndSchemas
    ) -> bool:
        """Whether a first look finds nothing to complain of, as with most documents: a smaller tree is enough for it.

        False if in doubt, and for whatever has findings: the places that they name are those of the whole tree.
        """
        if not wellformed.has_markup_only(content):
            return False
        with parse_lock.parsing():
            try:
                root = etree.fromstring(content, tools.parser_without_blanks)
            except (etree.XMLSyntaxError, LookupError, ValueError):
                return False
            if root.getroottree().docinfo.internalDTD is not None:
                return False
            version = identity.version_of(root)
            if version is None or version.is_ambiguous or version.namespace not in tools.schemas:
                return False
            if not tools.schemas[version.namespace].validate(root):
                return False
        return not (
            eml.EmlRules(root).found
            or identity.package_id_findings(root, document, package_id_mismatch)
            or identity.listed_type_findings(root, version, document)
        )


def _verdict_of(found: list[places.ElementFinding], content: bytes, root: etree._Element) -> Verdict:
    if not found:
        return Verdict()
    return Verdict(limited(places.with_places(places.in_document_order(found, root), content, root)))


@dataclass(frozen=True, slots=True)
class _ParserAndSchemas:
    """A parser and compiled schemas, for one thread at a time: the error log of a shared schema would mix threads."""

    schemas: dict[str, etree.XMLSchema]
    parser: etree.XMLParser = field(default_factory=wellformed.new_parser)
    parser_without_blanks: etree.XMLParser = field(default_factory=partial(wellformed.new_parser, without_blanks=True))

    def schema(self, version: EmlVersion) -> etree.XMLSchema:
        """The schema of `version`, compiled the first time it is needed."""
        if version.namespace not in self.schemas:
            self.schemas[version.namespace] = catalogue.compile_schema(version)
        return self.schemas[version.namespace]
