"""The check of a document: its parts in order, and the verdict."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import field, replace
from functools import partial
from queue import SimpleQueue

from lxml import etree

from metaharvest.model import Level, ListedDocument, ValidationLevel, Verdict, limited
from metaharvest.model.values import frozen
from metaharvest.validation import (
    against_schema,
    eml,
    explain,
    formats,
    identity,
    parse_lock,
    places,
    schemas,
    wellformed,
)
from metaharvest.validation.processing_policy import (
    BY_EML,
    ProcessingPolicy,
    TransformLimit,
    by_normalizing,
    transformed,
)
from metaharvest.validation.schemas import Described, EmlVersion
from metaharvest.validation.titles import title_of

_OWN_THREAD_BYTES = 50_000
"""A document larger than this is checked in a thread of its own. libxml2 keeps every name that it reads until the
thread ends; the names of a few hostile documents take hundreds of megabytes, which are freed with their thread."""


class _OwnThread(threading.Thread):
    """A thread for one check."""

    def __init__(self, check: Callable[[], Verdict]) -> None:
        super().__init__(name="check")
        self._check = check
        self._verdict: Verdict | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Check, and keep the verdict or the error."""
        try:
            self._verdict = self._check()
        except BaseException as error:  # noqa: BLE001 - verdict() raises it
            self._error = error

    def verdict(self) -> Verdict:
        """Wait for the verdict. Raises the error of the check, and MemoryError if the thread had no memory to run."""
        self.join()
        if self._verdict is not None:
            return self._verdict
        error, self._error = self._error or MemoryError(), None
        try:
            raise error
        finally:
            del error  # otherwise the error, and the document with it, stays in memory until a collection


class Validator:
    """Checks documents; safe for threads. At most `at_once` documents are checked at the same time, others wait.

    `other_document_types`: the types, as harvest lists name them, of documents that are accepted if they are
    well-formed, although they are not EML. `limit` is around the work of a site's own filters and normalising.
    """

    def __init__(
        self,
        other_document_types: Iterable[str] = (),
        at_once: int = os.cpu_count() or 1,
        limit: TransformLimit = nullcontext,
    ) -> None:
        self._other_types = frozenset(kind.strip() for kind in other_document_types)
        self._limit = limit
        self._idle: SimpleQueue[_ParserAndSchemas] = SimpleQueue()
        for _ in range(at_once):
            self._idle.put(_ParserAndSchemas({}))

    def check(self, content: bytes, document: ListedDocument, how: ProcessingPolicy = BY_EML) -> Verdict:
        """The verdict on `content`, listed as `document`; with what it has become, if it was normalised.

        Raises MemoryError.
        """
        tools = self._idle.get()
        try:
            if len(content) <= _OWN_THREAD_BYTES:
                return self._verdict(content, document, how, tools)
            # A parser that was used in another thread would bring the names of that thread along.
            own_tools = _ParserAndSchemas(tools.schemas)
            thread = _OwnThread(partial(self._verdict, content, document, how, own_tools))
            thread.start()
            return thread.verdict()
        finally:
            self._idle.put(tools)

    def _verdict(
        self, content: bytes, document: ListedDocument, how: ProcessingPolicy, tools: _ParserAndSchemas
    ) -> Verdict:
        check = _Check(content, document, how, tools, self._other_types)
        if not how.transforms:
            return check.verdict()
        changed = transformed(content, how, tools.parser_of_all, self._limit, is_record=document.origin is not None)
        if isinstance(changed, Verdict):
            return changed
        verdict = replace(check, content=changed).verdict()
        if changed is content:
            return verdict
        if not verdict.acceptable and check.verdict().acceptable:
            verdict = replace(verdict, findings=limited((by_normalizing(), *verdict.findings)))
        return replace(verdict, content=changed)


@frozen
class _Check:
    """The check of one document, which is not transformed any more, with the tools of one thread."""

    content: bytes
    document: ListedDocument
    how: ProcessingPolicy
    tools: _ParserAndSchemas
    other_types: frozenset[str]

    def verdict(self) -> Verdict:
        content, document, level = self.content, self.document, self.how.level
        if len(content) <= _OWN_THREAD_BYTES and level is not ValidationLevel.STRICT:
            title = self._title_if_faultless()
            if title is not None:
                return Verdict(title=title)
        try:
            with parse_lock.parsing():
                parse = wellformed.parse if document.origin is None else wellformed.parse_record
                root = parse(content, self.tools.parser)
        except wellformed.NotReadable as error:
            return Verdict(limited(error.findings))
        title = title_of(root)
        if level is ValidationLevel.STRICT:
            return Verdict(title=title)
        version = identity.version_of(root)
        if version is not None:
            found = self._eml_findings(root, version)
        elif level is None:
            if document.document_type.strip() in self.other_types:
                return Verdict(title=title)
            listed = "" if document.by_itself else document.document_type
            found = [identity.not_eml_finding(root, listed)]
        else:
            found = self._findings_by_format(root, level)
        if level is ValidationLevel.LOOSE:
            found = [replace(each, level=Level.WARNING) for each in found]
        placed = places.with_places(places.in_document_order(found, root), content, root) if found else ()
        return Verdict(limited(placed), title=title)

    def _eml_findings(self, root: etree._Element, version: EmlVersion) -> list[places.ElementFinding]:
        found = self._schema_findings(root, version)
        if version.is_ambiguous:
            found += eml.additional_metadata_findings(root)
        if not _has_errors(found):
            found += eml.EmlRules(root).found
            found += identity.package_id_findings(root, self.document, self.how.package_id_mismatch)
        return identity.listed_type_findings(root, version, self.document) + found

    def _findings_by_format(self, root: etree._Element, level: ValidationLevel) -> list[places.ElementFinding]:
        described = formats.format_of(root)
        if described is not None:
            found = explain.folded(self._schema_findings(root, described))
            other = formats.other_format_of(root) if _has_errors(found) else None
            if other is not None and not _has_errors(others := self._schema_findings(root, other)):
                return others
            return found
        return [formats.no_schema_finding(root)] if level is ValidationLevel.VERY_STRICT else []

    def _schema_findings(self, root: etree._Element, described: Described) -> list[places.ElementFinding]:
        schema = self.tools.schema(described)
        with parse_lock.parsing():
            return against_schema.schema_findings(root, self.content, schema, described)

    def _title_if_faultless(self) -> str | None:
        """The title, if a quick check in a smaller tree finds no fault, as in most documents.

        None otherwise: findings need the whole tree for their places.
        """
        compiled = self.tools.schemas
        if not wellformed.has_markup_only(self.content):
            return None
        with parse_lock.parsing():
            try:
                root = etree.fromstring(self.content, self.tools.parser_without_blanks)
            except (etree.XMLSyntaxError, LookupError, ValueError):
                return None
            if root.getroottree().docinfo.internalDTD is not None:
                return None
            if against_schema.crowded_element(root, self.content) is not None:
                return None
            version = identity.version_of(root)
            described = version or (None if self.how.level is None else formats.format_of(root))
            if described is None or described not in compiled or (version and version.is_ambiguous):
                return None
            if not compiled[described].validate(root):
                return None
        if version is not None and (
            eml.EmlRules(root).found
            or identity.package_id_findings(root, self.document, self.how.package_id_mismatch)
            or identity.listed_type_findings(root, version, self.document)
        ):
            return None
        return title_of(root)


def _has_errors(found: Iterable[places.ElementFinding]) -> bool:
    return any(finding.level is Level.ERROR for finding in found)


@frozen
class _ParserAndSchemas:
    """A parser and compiled schemas, for one thread at a time: the error log of a shared schema would mix threads."""

    schemas: dict[Described, etree.XMLSchema]
    parser: etree.XMLParser = field(default_factory=wellformed.new_parser)
    parser_without_blanks: etree.XMLParser = field(default_factory=partial(wellformed.new_parser, without_blanks=True))
    parser_of_all: etree.XMLParser = field(default_factory=partial(wellformed.new_parser, keeps_all=True))

    def schema(self, described: Described) -> etree.XMLSchema:
        """The schema, compiled the first time it is needed."""
        if described not in self.schemas:
            self.schemas[described] = schemas.compile_schema(described)
        return self.schemas[described]
