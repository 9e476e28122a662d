"""Tries a file of filters on documents at hand: which filter decides, and why. Nothing is fetched or written."""

from __future__ import annotations

import copy
import multiprocessing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lxml import etree

from metaharvest.text import one_line
from metaharvest.transform import Filters, NotEvaluated, TimeLeft, TransformTooCostly
from metaharvest.validation import wellformed
from metaharvest.validation.treatment import too_costly

_SECONDS = 10.0
"""Seconds that all records of one file may take: nothing else ends the evaluation of an XPath."""

_OAI = "{http://www.openarchives.org/OAI/2.0/}"


@dataclass(frozen=True, slots=True)
class TriedRecord:
    """A record that the filters were tried on, in the document of this name.

    `identifier` is empty for a document that is not in an OAI-PMH record. `is_taken` is None where that could not be
    decided; `reason` says why in any case, `filter` which one decided.
    """

    name: str
    identifier: str
    is_taken: bool | None
    filter: int | None
    reason: str


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
    return [_tried_one(filters, name, *each) for each in _records(root)]


def _records(root: etree._Element) -> Iterator[tuple[str, etree._Element | None]]:
    """Each record's identifier and metadata, if it has any; or the document itself."""
    records = list(root.iter(f"{_OAI}record"))
    if not records:
        yield "", root
    for record in records:
        metadata = record.find(f"{_OAI}metadata/*")
        identifier = one_line(record.findtext(f"{_OAI}header/{_OAI}identifier") or "", 800)
        yield identifier, None if metadata is None else copy.deepcopy(metadata)


def _tried_one(filters: Filters, name: str, identifier: str, root: etree._Element | None) -> TriedRecord:
    if root is None:
        return TriedRecord(name, identifier, None, None, "The record has no metadata.")
    try:
        decision = filters.decision(root, TimeLeft())
    except TransformTooCostly:
        return TriedRecord(name, identifier, None, None, too_costly().message)
    except NotEvaluated as why:
        return TriedRecord(name, identifier, None, None, f"An XPath cannot be applied to this document: {why}.")
    return TriedRecord(name, identifier, decision.is_taken, decision.tried[-1].filter.number, decision.reason)
