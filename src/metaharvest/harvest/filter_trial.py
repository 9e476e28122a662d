"""Tries a file of filters on documents at hand: which filter decides, and why. Nothing is fetched or written."""

from __future__ import annotations

import copy
import multiprocessing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lxml import etree

from metaharvest.sources.oai_pmh.protocol import VERBS, AnswerRoot, ProtocolError, root_of
from metaharvest.sources.oai_pmh.records import says_deleted
from metaharvest.text import one_line
from metaharvest.transform import Filters, NotEvaluated, TimeLeft, TransformTooCostly
from metaharvest.validation import wellformed
from metaharvest.validation.treatment import too_costly

_SECONDS = 10.0
"""Seconds that all records of one file may take: nothing else ends the evaluation of an XPath."""

_RECORD = AnswerRoot("http://www.openarchives.org/OAI/2.0/", "2.0")
"""What a record is called that is in no answer, but in a file of its own, or in a static repository."""


@dataclass(frozen=True, slots=True)
class TriedRecord:
    """A record that the filters were tried on, in the document of this name.

    `identifier` is empty for a document that is not in an OAI-PMH record. `is_taken` is None where that could not be
    decided, or the record `is_deleted`; `reason` says why in any case, `filter` which one decided.
    """

    name: str
    identifier: str
    is_taken: bool | None
    filter: int | None
    reason: str
    is_deleted: bool = False


def try_filters(filters: Filters, documents: Iterable[tuple[str, bytes]]) -> Iterator[TriedRecord]:
    """What becomes of each of these documents, given with their names, and of each OAI-PMH record in one."""
    from pebble import ProcessExpired, ProcessPool

    with ProcessPool(max_workers=1, context=multiprocessing.get_context("spawn")) as pool:
        for name, content in documents:
            try:
                yield from pool.schedule(_tried, (filters, name, content), timeout=_SECONDS).result()
            except (TimeoutError, ProcessExpired):
                yield TriedRecord(name, "", None, None, too_costly().message)


def _tried(filters: Filters, name: str, content: bytes) -> list[TriedRecord]:
    try:
        root = wellformed.parse(content, wellformed.new_parser(keeps_all=True))
    except wellformed.NotReadable as error:
        return [TriedRecord(name, "", None, None, str(error))]
    answer = root_of(str(root.tag))
    records = list(root.iter((answer or _RECORD).name("record")))
    if answer is not None and not records:
        return [TriedRecord(name, "", None, None, _no_record(root, answer))]
    if not records:
        return [_tried_one(filters, name, "", root)]
    return [_tried_record(filters, name, record, answer or _RECORD) for record in records]


def _tried_record(filters: Filters, name: str, record: etree._Element, answer: AnswerRoot) -> TriedRecord:
    identifier = one_line(record.findtext(f"{answer.name('header')}/{answer.name('identifier')}") or "", 800)
    metadata = record.find(f"{answer.name('metadata')}/*")
    if metadata is not None:
        return _tried_one(filters, name, identifier, copy.deepcopy(metadata))
    if any(map(says_deleted, (record, *record.iterfind(answer.name("header"))))):
        return TriedRecord(
            name, identifier, None, None, "Filters do not see a record that is deleted.", is_deleted=True
        )
    return TriedRecord(name, identifier, None, None, "The record has no metadata.")


def _no_record(root: etree._Element, answer: AnswerRoot) -> str:
    """Why there is nothing to be tried in an answer of a repository, and what can be."""
    error = root.find(answer.name("error"))
    if error is None:
        verb = answer.verb or next((verb for verb in VERBS if root.find(answer.name(verb)) is not None), "")
        what = f"an answer to {verb}" if verb else "an answer"
    else:
        what = f"the error {ProtocolError(one_line(error.get('code', ''), 80), one_line(error.text or '', 200))}"
    return (
        f"There is no record in it: it is {what} of an OAI-PMH repository. Give it what `metaharvest oai get` prints, "
        "or an answer to GetRecord or ListRecords."
    )


def _tried_one(filters: Filters, name: str, identifier: str, root: etree._Element) -> TriedRecord:
    try:
        decision = filters.decision(root, TimeLeft())
    except TransformTooCostly:
        return TriedRecord(name, identifier, None, None, too_costly().message)
    except NotEvaluated as why:
        return TriedRecord(name, identifier, None, None, f"An XPath cannot be applied to this document: {why}.")
    return TriedRecord(name, identifier, decision.is_taken, decision.tried[-1].filter.number, decision.reason)
