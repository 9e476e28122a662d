"""Tries a filters or normalising file on local documents. It fetches and writes nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from lxml import etree

from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.sources.oai_pmh.protocol import VERBS, ProtocolError, ResponseRoot, root_of, says_deleted
from metaharvest.text import one_line
from metaharvest.transform.expressions import NotEvaluated, TimeLeft, TransformTooCostly
from metaharvest.transform.filters import Filters, read_filters
from metaharvest.transform.normalize import Normalization, read_normalization
from metaharvest.validation import wellformed
from metaharvest.validation.processing_policy import too_costly
from metaharvest.validation.worker_processes import WorkerContext

_SECONDS = 10.0
"""Seconds for all records of one file: nothing else ends the evaluation of an XPath."""

_RECORD = ResponseRoot("http://www.openarchives.org/OAI/2.0/", "2.0")
"""The root element of a record that is in no answer, but in a file of its own, or in a static repository."""


@frozen
class TriedRecord:
    """A record on which filters or a normalising were tried, in the document of this name.

    `identifier` is empty for a document that is not in an OAI-PMH record. `is_taken` is None if the filters could not
    decide that; `filter` is the one that decided. `before` and `after` are the texts of a normalised record, `added` is
    the number of added elements. `reason` says why the filters decided so, or why the record could not be tried.
    """

    name: str
    identifier: str = ""
    reason: str = ""
    is_deleted: bool = False
    is_taken: bool | None = None
    filter: int | None = None
    before: str = ""
    after: str = ""
    added: int = 0


_Try = Callable[[etree._Element, TriedRecord], TriedRecord]
"""Tries a record, of which this is known."""


def try_filters(file: Path, documents: Iterable[tuple[str, bytes]]) -> Iterator[TriedRecord]:
    """The result of the filters in this file for each of these named documents, and each OAI-PMH record in them.

    Raises TransformError if the file cannot be used.
    """
    return _each(partial(_decided, read_filters(file)), "Filters do not see a record that is deleted.", documents)


def try_normalization(file: Path, documents: Iterable[tuple[str, bytes]]) -> Iterator[TriedRecord]:
    """The text before and after the normalising in this file, for each of these documents, and each record in them.

    Raises TransformError if the file cannot be used.
    """
    return _each(partial(_added, read_normalization(file)), "A record that is deleted is not normalised.", documents)


def _each(try_it: _Try, of_deleted: str, documents: Iterable[tuple[str, bytes]]) -> Iterator[TriedRecord]:
    """The results of the parts of each document; one without a result for a document that took too long."""
    from pebble import ProcessExpired, ProcessPool

    with ProcessPool(max_workers=1, context=WorkerContext()) as pool:
        for name, content in documents:
            try:
                tried = pool.schedule(_tried, (try_it, of_deleted, name, content), timeout=_SECONDS).result()
            except (TimeoutError, ProcessExpired):
                tried = [TriedRecord(name, reason=too_costly().message)]
            yield from tried


def _tried(try_it: _Try, of_deleted: str, name: str, content: bytes) -> list[TriedRecord]:
    """The results for the document, or for the OAI-PMH records in it, as a harvest would see them."""
    try:
        root = wellformed.parse(content, wellformed.new_parser(keeps_all=True))
    except wellformed.NotReadable as error:
        return [TriedRecord(name, reason=str(error))]
    answer = root_of(str(root.tag))
    records = list(root.iter((answer or _RECORD).name("record")))
    if answer is not None and not records:
        return [TriedRecord(name, reason=_no_record(root, answer))]
    if not records:
        return [_tried_one(try_it, root, TriedRecord(name))]
    return [_tried_record(try_it, of_deleted, record, answer or _RECORD, name) for record in records]


def _tried_record(
    try_it: _Try, of_deleted: str, record: etree._Element, answer: ResponseRoot, name: str
) -> TriedRecord:
    identifier = one_line(record.findtext(f"{answer.name('header')}/{answer.name('identifier')}") or "", 800)
    if any(map(says_deleted, (record, *record.iterfind(answer.name("header"))))):
        return TriedRecord(name, identifier, of_deleted, is_deleted=True)
    metadata = record.find(f"{answer.name('metadata')}/*")
    if metadata is None:
        return TriedRecord(name, identifier, "The record has no metadata.")
    alone = copy.deepcopy(metadata)
    alone.tail = None
    return _tried_one(try_it, alone, TriedRecord(name, identifier))


def _tried_one(try_it: _Try, root: etree._Element, known: TriedRecord) -> TriedRecord:
    try:
        return try_it(root, known)
    except TransformTooCostly:
        return replace(known, reason=too_costly().message)
    except NotEvaluated as why:
        return replace(known, reason=f"An XPath cannot be applied to this document: {why}.")


def _decided(filters: Filters, root: etree._Element, known: TriedRecord) -> TriedRecord:
    decision = filters.decision(root, TimeLeft())
    number = decision.tried[-1].filter.number
    return replace(known, is_taken=decision.is_taken, filter=number, reason=decision.reason)


def _added(normalization: Normalization, root: etree._Element, known: TriedRecord) -> TriedRecord:
    before = etree.tostring(root, encoding="unicode")
    added = normalization.add_to(root, TimeLeft())
    return replace(known, before=before, after=etree.tostring(root, encoding="unicode"), added=added)


def _no_record(root: etree._Element, answer: ResponseRoot) -> str:
    """Why an answer of a source repository has nothing to try, and the answers that have."""
    error = root.find(answer.name("error"))
    if error is None:
        verb = answer.verb or next((verb for verb in VERBS if root.find(answer.name(verb)) is not None), "")
        what = f"an answer to {verb}" if verb else "an answer"
    else:
        what = f"the error {ProtocolError(one_line(error.get('code', ''), 80), one_line(error.text or '', 200))}"
    return (
        f"There is no record in it: it is {what} of an OAI-PMH repository. Give it what {todo('repositories.record')} "
        "prints, or an answer to GetRecord or ListRecords."
    )
