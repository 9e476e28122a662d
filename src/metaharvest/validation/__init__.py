"""Says of a document's bytes whether it may go into the target, and if not, why, for the person who can mend it.

The levels, in this order; the first that has an error decides, with all of its findings, and the warnings of earlier
levels are kept: well-formed (`wellformed`), an EML root that agrees with the list (`identity`), schema-valid
(`against_schema`, `explain`ed), EML-valid (`eml`) and the document that the list says it is (`identity`). Whether the
document was fetched whole, and is no HTML page, is the fetching's business.
"""

from __future__ import annotations

import threading

from lxml import etree

from metaharvest.records import Finding, Level, ListedDocument, Verdict, limited
from metaharvest.settings import ValidationSettings
from metaharvest.validation import against_schema, catalogue, eml, identity, places, turns, wellformed
from metaharvest.validation.catalogue import VERSIONS, EmlVersion

__all__ = ["VERSIONS", "Validator"]


class Validator:
    """Checks documents. May be shared among threads: each gets a parser and compiled schemas of its own."""

    def __init__(self, settings: ValidationSettings) -> None:
        self._other_types = frozenset(kind.strip() for kind in settings.other_document_types)
        self._explainers = catalogue.Explainers()
        self._own = _PerThread()

    def check(self, content: bytes, document: ListedDocument, package_id_mismatch: Level) -> Verdict:
        """The verdict on `content`, listed as `document`. `package_id_mismatch`: how grave a packageId that is not the
        docid is."""
        try:
            with turns.parsing():
                root = wellformed.parse(content, self._own.parser)
        except wellformed.NotReadable as error:
            return Verdict(limited(error.findings))
        version = identity.version_of(root)
        if version is None:
            if document.document_type.strip() in self._other_types:
                return Verdict()
            return self._verdict([identity.not_eml(root, document.document_type)], content, root)
        warnings = identity.listed_type(root, version, document.document_type)
        schema = self._own.schema(version)
        with turns.parsing():
            problems = against_schema.problems(root, content, schema, version, self._explainers)
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


class _PerThread(threading.local):
    """One thread's parser and compiled schemas; libxml2's error log of a shared schema would mix the threads."""

    def __init__(self) -> None:
        self.parser = wellformed.new_parser()
        self._schemas: dict[str, etree.XMLSchema] = {}

    def schema(self, version: EmlVersion) -> etree.XMLSchema:
        """The schema of `version`, compiled the first time."""
        if version.namespace not in self._schemas:
            self._schemas[version.namespace] = catalogue.compile_schema(version)
        return self._schemas[version.namespace]
