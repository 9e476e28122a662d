"""Says of a document's bytes whether it may go into the target, and if not, why, for the person who can mend it.

The levels, in this order; the first that has an error decides, with all of its findings, and the warnings of earlier
levels are kept: well-formed (`wellformed`), an EML root that agrees with the list (`identity`), schema-valid
(`against_schema`, `explain`ed), EML-valid (`eml`) and the document that the list says it is (`identity`). Whether the
document was fetched whole, and is no HTML page, is the fetching's business.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import Protocol

from lxml import etree

from metaharvest.model import Finding, Level, ListedDocument, Verdict, limited
from metaharvest.validation import against_schema, catalogue, eml, identity, places, turns, wellformed
from metaharvest.validation.catalogue import VERSIONS, EmlVersion

__all__ = ["VERSIONS", "Validator"]

_SMALL = 50_000
"""Bytes up to which a document is checked in the thread that asks. libxml2 keeps every name that it reads until the
thread ends, hundreds of megabytes of a few hostile documents: larger ones get a thread of their own, and take their
names with them."""


class Types(Protocol):
    """Settings that say which document types beside EML are taken as they are."""

    @property
    def other_document_types(self) -> tuple[str, ...]:
        """As harvest lists name them."""
        ...


class Validator:
    """Checks documents. May be shared among threads: `at_once` of them check, one for each core; others wait."""

    def __init__(self, settings: Types, at_once: int = os.cpu_count() or 1) -> None:
        self._other_types = frozenset(kind.strip() for kind in settings.other_document_types)
        self._explainers = catalogue.Explainers()
        self._idle: SimpleQueue[_Tools] = SimpleQueue()
        for _ in range(at_once):
            self._idle.put(_Tools(wellformed.new_parser(), {}))

    def check(self, content: bytes, document: ListedDocument, package_id_mismatch: Level) -> Verdict:
        """The verdict on `content`, listed as `document`. `package_id_mismatch`: how grave a packageId that is not the
        docid is."""
        tools = self._idle.get()
        try:
            if len(content) <= _SMALL:
                return self._verdict_of(content, document, package_id_mismatch, tools)
            # A parser that was used in another thread would bring the names of that thread along.
            alone = _Tools(wellformed.new_parser(), tools.schemas)
            with ThreadPoolExecutor(1) as apart:
                return apart.submit(self._verdict_of, content, document, package_id_mismatch, alone).result()
        finally:
            self._idle.put(tools)

    def check_quickly(self, content: bytes, document: ListedDocument, package_id_mismatch: Level) -> Verdict | None:
        """The verdict where it takes no more than some milliseconds; None where the document is large or not valid."""
        if len(content) > _SMALL:
            return None
        tools = self._idle.get()
        try:
            return self._verdict_of(content, document, package_id_mismatch, tools, explain=False)
        except _NotExplained:
            return None
        finally:
            self._idle.put(tools)

    def _verdict_of(
        self,
        content: bytes,
        document: ListedDocument,
        package_id_mismatch: Level,
        tools: _Tools,
        *,
        explain: bool = True,
    ) -> Verdict:
        try:
            with turns.parsing():
                root = wellformed.parse(content, tools.parser)
        except wellformed.NotReadable as error:
            return Verdict(limited(error.findings))
        version = identity.version_of(root)
        if version is None:
            if document.document_type.strip() in self._other_types:
                return Verdict()
            return self._verdict([identity.not_eml(root, document.document_type)], content, root)
        warnings = identity.listed_type(root, version, document.document_type)
        schema = tools.schema(version)
        with turns.parsing():
            if explain:
                problems = against_schema.problems(root, content, schema, version, self._explainers)
            elif schema.validate(root.getroottree()):
                problems = []
            else:
                raise _NotExplained
        if version.is_ambiguous:
            problems += eml.additional_metadata(root)
        if not any(problem.level is Level.ERROR for problem in problems):
            problems += eml.problems(root) + identity.package_id(root, document, package_id_mismatch)
        return self._verdict(warnings + problems, content, root)

    @staticmethod
    def _verdict(problems: list[places.Problem], content: bytes, root: etree._Element) -> Verdict:
        if not problems:
            return Verdict()
        found: tuple[Finding, ...] = limited(places.findings(places.in_document_order(problems, root), content, root))
        return Verdict(found)


class _NotExplained(Exception):
    """A document is not valid, and to say why would take long."""


class _Tools:
    """A parser and compiled schemas, for one thread at a time: the error log of a shared schema would mix threads."""

    def __init__(self, parser: etree.XMLParser, schemas: dict[str, etree.XMLSchema]) -> None:
        self.parser = parser
        self.schemas = schemas

    def schema(self, version: EmlVersion) -> etree.XMLSchema:
        """The schema of `version`, compiled the first time."""
        if version.namespace not in self.schemas:
            self.schemas[version.namespace] = catalogue.compile_schema(version)
        return self.schemas[version.namespace]
