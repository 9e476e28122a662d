"""Tries a file of filters on documents at hand: which filter decides, and why. Nothing is fetched or written."""

from __future__ import annotations

import copy
import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    """A record that the filters were tried on; `identifier` is empty for a document that is not in an OAI-PMH record.

    `is_taken` is None where that could not be decided; `reason` says why in any case, `filter` which one decided.
    """

    file: Path
    identifier: str
    is_taken: bool | None
    filter: int | None
    reason: str


def try_filters(filters: Filters, files: Sequence[Path]) -> Iterator[TriedRecord]:
    """What becomes of each document in these files, and of each record in a file of OAI-PMH records.

    Raises OSError if a file cannot be read.
    """
    from pebble import ProcessExpired, ProcessPool

    with ProcessPool(max_workers=1, context=multiprocessing.get_context("spawn")) as pool:
        for file in files:
            content = file.read_bytes()
            try:
                yield from pool.schedule(_tried, (filters, file, content), timeout=_SECONDS).result()
            except (TimeoutError, ProcessExpired):
                yield TriedRecord(file, "", None, None, too_costly().message)


def _tried(filters: Filters, file: Path, content: bytes) -> list[TriedRecord]:
    try:
        root = wellformed.parse(content, wellformed.new_parser(keeps_all=True))
    except wellformed.NotReadable as error:
        return [TriedRecord(file, "", None, None, str(error))]
    return [_tried_one(filters, file, *each) for each in _records(root)]


def _records(root: etree._Element) -> Iterator[tuple[str, etree._Element | None]]:
    """Each record's identifier and metadata, if it has any; or the document itself."""
    records = list(root.iter(f"{_OAI}record"))
    if not records:
        yield "", root
    for record in records:
        metadata = record.find(f"{_OAI}metadata/*")
        identifier = one_line(record.findtext(f"{_OAI}header/{_OAI}identifier") or "", 800)
        yield identifier, None if metadata is None else copy.deepcopy(metadata)


def _tried_one(filters: Filters, file: Path, identifier: str, root: etree._Element | None) -> TriedRecord:
    if root is None:
        return TriedRecord(file, identifier, None, None, "The record has no metadata.")
    try:
        decision = filters.decision(root, TimeLeft())
    except TransformTooCostly:
        return TriedRecord(file, identifier, None, None, too_costly().message)
    except NotEvaluated as why:
        return TriedRecord(file, identifier, None, None, f"An XPath cannot be applied to this document: {why}.")
    return TriedRecord(file, identifier, decision.is_taken, decision.tried[-1].filter.number, decision.reason)
