"""Tries a filters or normalising file on local documents. It fetches and writes nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from lxml import etree

from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.sources.oai_pmh.protocol import VERBS, ProtocolError, ResponseRoot, root_of, says_deleted
from metaharvest.text import one_line
from metaharvest.transform import (
    Filters,
    Normalization,
    NotEvaluated,
    TimeLeft,
    TransformTooCostly,
    read_filters,
    read_normalization,
)
from metaharvest.validation import wellformed
from metaharvest.validation.processing_policy import too_costly
from metaharvest.validation.worker_processes import WorkerContext

_SECONDS = 10.0
"""Seconds for all records of one file: nothing else ends the evaluation of an XPath."""

_RECORD = ResponseRoot("http://www.openarchives.org/OAI/2.0/", "2.0")
"""The root element of a record that is in no answer, but in a file of its own, or in a static repository."""


_Tried = TypeVar("_Tried")


@frozen
class TriedRecord:
    """A record on which the filters were tried, in the document of this name.

    `identifier` is empty for a document that is not in an OAI-PMH record. `is_taken` is None if that could not be
    decided, or the record `is_deleted`; `reason` says why in any case, `filter` is the one that decided.
    """

    name: str
    identifier: str
    is_taken: bool | None
    filter: int | None
    reason: str
    is_deleted: bool = False


@frozen
class NormalizedRecord:
    """A record before and after normalising.

    `added` is the number of added elements. If `reason` says why it could not be tried, both texts are empty.
    """

    name: str
    identifier: str
    before: str
    after: str
    added: int
    reason: str = ""
    is_deleted: bool = False


@frozen
class _Part:
    """A document, or an OAI-PMH record in it. Without a `root`, `reason` says why it cannot be tried."""

    identifier: str
    root: etree._Element | None
    reason: str = ""
    is_deleted: bool = False


def try_filters(file: Path, documents: Iterable[tuple[str, bytes]]) -> Iterator[TriedRecord]:
    """The result of the filters in this file for each of these named documents, and each OAI-PMH record in them.

    Raises TransformError if the file cannot be used.
    """
    for name, tried in _each(partial(_decided, read_filters(file)), documents):
        yield from tried or [TriedRecord(name, "", None, None, too_costly().message)]


def try_normalization(file: Path, documents: Iterable[tuple[str, bytes]]) -> Iterator[NormalizedRecord]:
    """The text before and after the normalising in this file, for each of these documents, and each record in them.

    Raises TransformError if the file cannot be used.
    """
    for name, tried in _each(partial(_added, read_normalization(file)), documents):
        yield from tried or [NormalizedRecord(name, "", "", "", 0, too_costly().message)]


def _each(
    tried: Callable[[str, _Part], _Tried], documents: Iterable[tuple[str, bytes]]
) -> Iterator[tuple[str, list[_Tried]]]:
    """The results of the parts of each document, with its name; none for a document that took too long."""
    from pebble import ProcessExpired, ProcessPool

    with ProcessPool(max_workers=1, context=WorkerContext()) as pool:
        for name, content in documents:
            try:
                yield name, pool.schedule(_tried_parts, (tried, name, content), timeout=_SECONDS).result()
            except (TimeoutError, ProcessExpired):
                yield name, []


def _tried_parts(tried: Callable[[str, _Part], _Tried], name: str, content: bytes) -> list[_Tried]:
    return [tried(name, part) for part in _parts(content)]


def _parts(content: bytes) -> list[_Part]:
    """The document, or the OAI-PMH records in it, as a harvest would see them."""
    try:
        root = wellformed.parse(content, wellformed.new_parser(keeps_all=True))
    except wellformed.NotReadable as error:
        return [_Part("", None, str(error))]
    answer = root_of(str(root.tag))
    records = list(root.iter((answer or _RECORD).name("record")))
    if answer is not None and not records:
        return [_Part("", None, _no_record(root, answer))]
    return [_part(record, answer or _RECORD) for record in records] or [_Part("", root)]


def _part(record: etree._Element, answer: ResponseRoot) -> _Part:
    identifier = one_line(record.findtext(f"{answer.name('header')}/{answer.name('identifier')}") or "", 800)
    is_deleted = any(map(says_deleted, (record, *record.iterfind(answer.name("header")))))
    metadata = None if is_deleted else record.find(f"{answer.name('metadata')}/*")
    if metadata is not None:
        alone = copy.deepcopy(metadata)
        alone.tail = None
        return _Part(identifier, alone)
    return _Part(identifier, None, "" if is_deleted else "The record has no metadata.", is_deleted)


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


def _decided(filters: Filters, name: str, part: _Part) -> TriedRecord:
    if part.root is None:
        reason = part.reason or "Filters do not see a record that is deleted."
        return TriedRecord(name, part.identifier, None, None, reason, part.is_deleted)
    try:
        decision = filters.decision(part.root, TimeLeft())
    except TransformTooCostly:
        return TriedRecord(name, part.identifier, None, None, too_costly().message)
    except NotEvaluated as why:
        return TriedRecord(name, part.identifier, None, None, f"{_NOT_APPLIED}: {why}.")
    return TriedRecord(name, part.identifier, decision.is_taken, decision.tried[-1].filter.number, decision.reason)


def _added(normalization: Normalization, name: str, part: _Part) -> NormalizedRecord:
    if part.root is None:
        reason = part.reason or "A record that is deleted is not normalised."
        return NormalizedRecord(name, part.identifier, "", "", 0, reason, part.is_deleted)
    before = etree.tostring(part.root, encoding="unicode")
    try:
        added = normalization.add_to(part.root, TimeLeft())
    except TransformTooCostly:
        return NormalizedRecord(name, part.identifier, "", "", 0, too_costly().message)
    except NotEvaluated as why:
        return NormalizedRecord(name, part.identifier, "", "", 0, f"{_NOT_APPLIED}: {why}.")
    return NormalizedRecord(name, part.identifier, before, etree.tostring(part.root, encoding="unicode"), added)


_NOT_APPLIED = "An XPath cannot be applied to this document"
