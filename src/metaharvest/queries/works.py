"""Works: the outputs that are the same, pairs that a person should look at, and what people decided about them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, exists, func, or_, select, tuple_
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS
from metaharvest.database.models import Base
from metaharvest.database.pipeline_models import OutputDecision, OutputPair, OutputRecord, OutputWork
from metaharvest.database.statements import rows_with
from metaharvest.errors import MetaharvestError, UnknownDocument
from metaharvest.model.actions import todo
from metaharvest.model.values import frozen
from metaharvest.queries.records import is_after
from metaharvest.text import one_line, without_marks

_OUTPUTS = Base.metadata.tables[OutputRecord.__tablename__]
_PAIRS = Base.metadata.tables[OutputPair.__tablename__]
_WORKS = Base.metadata.tables[OutputWork.__tablename__]
_DECISIONS = Base.metadata.tables[OutputDecision.__tablename__]
_MOST_OUTPUTS = 500
_MOST_PAIRS = 500
_NUMBER = DOCUMENTS.c.catalogue_document_id
MOST_COUNTED = 1000
_TO_LOOK_AT = (
    _PAIRS.c.answer == "look",
    ~exists().where(
        _DECISIONS.c.catalogue_document_id == _PAIRS.c.catalogue_document_id,
        _DECISIONS.c.other_id == _PAIRS.c.other_id,
        _DECISIONS.c.kind == "duplicate",
    ),
)
"""The pairs about which a person should decide, and nobody has yet."""


@frozen
class OutputLine:
    """An output in a few words. `origin` is the name of its source repository; None if it has none."""

    number: int
    document_id: str
    title: str
    creators: tuple[str, ...]
    year: int | None
    doi: str | None
    origin: str | None


@frozen
class PairLine:
    """Two outputs, with the answer of the rules, and the decision of a person, if there is one.

    `answer` is same, version, look or different; `agreement` is the agreement of the titles, 0 to 100.
    """

    first: OutputLine
    second: OutputLine
    answer: str
    agreement: float | None
    reason: str
    decided: str | None = None
    decided_by: str = ""
    decided_at: datetime | None = None
    decision_reason: str | None = None


@frozen
class WorkRecord:
    """A work: its outputs, the first one first, and the pairs that they are in: why they are the same, and versions.

    `related` are the pairs of one document about which a person said that they are related, or that they are not.
    """

    first_output: str
    outputs: tuple[OutputLine, ...]
    pairs: tuple[PairLine, ...]
    related: tuple[PairLine, ...] = ()


@frozen
class LookPage:
    """Pairs to look at; `next` is the place of the last one, as `first-second`; None at the end."""

    pairs: Sequence[PairLine]
    next: str | None


def number_of(session: Session, document_id: str) -> int:
    """The number of a document in the catalogue. Raises UnknownDocument, or MetaharvestError if it has no output."""
    query = select(_NUMBER, _WORKS.c.work_id).outerjoin(_WORKS, _WORKS.c.catalogue_document_id == _NUMBER)
    row = session.execute(query.where(DOCUMENTS.c.document_id == document_id)).first()
    if row is None:
        raise UnknownDocument(f"The catalogue has no document '{one_line(document_id)}'.")
    if row[1] is None:
        raise MetaharvestError(
            f"The pipeline has not compared the document '{one_line(document_id)}' yet, or it is not public. "
            f"{todo('pipeline.run')} processes the documents that wait."
        )
    number: int = row[0]
    return number


def work_of(session: Session, document_id: str) -> WorkRecord:
    """The work of a document. Raises MetaharvestError if there is none."""
    number = number_of(session, document_id)
    work_id = session.scalar(select(_WORKS.c.work_id).where(_WORKS.c.catalogue_document_id == number))
    members = session.scalars(
        select(_WORKS.c.catalogue_document_id)
        .where(_WORKS.c.work_id == work_id)
        .order_by(_WORKS.c.catalogue_document_id)
        .limit(_MOST_OUTPUTS)
    ).all()
    decisions = _decisions_of(session, members)
    about_related = _decisions_of(session, [number], "related")
    rows = _pairs_of(session, members) | _pairs_at(session, decisions)
    lines = output_lines(session, {*members, *(each for pair in (*rows, *decisions, *about_related) for each in pair)})
    pairs = _pair_lines(lines, rows, decisions, sorted({*rows, *decisions}))
    related = _pair_lines(lines, rows, about_related, sorted(about_related))
    outputs = tuple(lines[each] for each in members if each in lines)
    return WorkRecord(outputs[0].document_id if outputs else document_id, outputs, pairs, related)


def has_work(session: Session, document_id: str) -> bool:
    """True if the pipeline has compared this document with others."""
    its = _WORKS.c.catalogue_document_id == _NUMBER, DOCUMENTS.c.document_id == document_id
    return session.scalar(select(_WORKS.c.work_id).where(*its)) is not None


def pairs_to_look_at(session: Session, after: tuple[int, int], limit: int) -> LookPage:
    """The pairs about which a person should decide, and nobody has yet, after these numbers of two documents."""
    first, second = _PAIRS.c.catalogue_document_id, _PAIRS.c.other_id
    following = is_after((first, after[0]), (second, after[1]))
    query = select(_PAIRS).where(*_TO_LOOK_AT, following).order_by(first, second).limit(limit)
    rows = {(row[0], row[1]): row for row in session.execute(query)}
    lines = output_lines(session, {each for pair in rows for each in pair})
    last = "{}-{}".format(*list(rows)[-1]) if len(rows) == limit else None
    return LookPage(_pair_lines(lines, rows, {}, rows), last)


def number_to_look_at(session: Session) -> int:
    """The number of pairs about which a person should decide; MOST_COUNTED stands for it and for any higher number."""
    some = select(_PAIRS.c.other_id).where(*_TO_LOOK_AT).limit(MOST_COUNTED)
    return session.scalar(select(func.count()).select_from(some.subquery())) or 0


def newest_decisions(session: Session, limit: int) -> Sequence[PairLine]:
    """The last decisions of people about outputs that may be the same, the newest first."""
    query = select(_DECISIONS).where(_DECISIONS.c.kind == "duplicate")
    found = session.execute(query.order_by(_DECISIONS.c.decided_at.desc()).limit(limit))
    decisions = {(row[0], row[1]): row for row in found}
    lines = output_lines(session, {each for pair in decisions for each in pair})
    return _pair_lines(lines, _pairs_at(session, decisions), decisions, decisions)


def output_lines(session: Session, numbers: Collection[int]) -> dict[int, OutputLine]:
    """These outputs in a few words, by number."""
    found: dict[int, OutputLine] = {}
    query = select(_NUMBER, *DOCUMENTS.c["document_id", "origin"], *_OUTPUTS.c["year", "doi", "content"]).join_from(
        DOCUMENTS, _OUTPUTS, _OUTPUTS.c.catalogue_document_id == _NUMBER
    )
    for number, document_id, origin, year, doi, content in rows_with(session, query, _NUMBER, sorted(numbers)):
        output: Mapping[str, Any] = json.loads(content)
        titles, creators = output.get("titles") or (), output.get("creators") or ()
        title = one_line(without_marks(titles[0]["text"])) if titles else ""
        names = tuple(one_line(each["name"]) for each in creators)
        found[number] = OutputLine(number, document_id, title, names, year, doi, origin)
    return found


def decided_numbers(session: Session, number: int, kind: str) -> dict[int, str]:
    """The other outputs about which a person decided together with this one, and the answers."""
    return {
        (second if first == number else first): row.answer
        for (first, second), row in _decisions_of(session, [number], kind).items()
    }


def document_ids(session: Session, numbers: Iterable[int]) -> dict[int, str]:
    """The ids of these documents, by number."""
    rows = rows_with(session, select(_NUMBER, DOCUMENTS.c.document_id), _NUMBER, sorted(numbers))
    return {row[0]: row[1] for row in rows}


def _pairs_of(session: Session, numbers: Sequence[int]) -> dict[tuple[int, int], Row[Any]]:
    """The first pairs that these outputs are in."""
    first, second = _PAIRS.c.catalogue_document_id, _PAIRS.c.other_id
    query = select(_PAIRS).where(or_(first.in_(numbers), second.in_(numbers)))
    found = session.execute(query.order_by(first, second).limit(_MOST_PAIRS))
    return {(row[0], row[1]): row for row in found}


def _pairs_at(session: Session, keys: Collection[tuple[int, int]]) -> dict[tuple[int, int], Row[Any]]:
    """These pairs, as far as the rules have an answer about them."""
    key = tuple_(_PAIRS.c.catalogue_document_id, _PAIRS.c.other_id)
    return {(row[0], row[1]): row for row in rows_with(session, select(_PAIRS), key, sorted(keys))}


def _decisions_of(session: Session, numbers: Sequence[int], kind: str = "duplicate") -> dict[tuple[int, int], Row[Any]]:
    first, second = _DECISIONS.c.catalogue_document_id, _DECISIONS.c.other_id
    query = select(_DECISIONS).where(_DECISIONS.c.kind == kind, or_(first.in_(numbers), second.in_(numbers)))
    return {(row[0], row[1]): row for row in session.execute(query)}


def _pair_lines(
    lines: Mapping[int, OutputLine],
    rows: Mapping[tuple[int, int], Row[Any]],
    decisions: Mapping[tuple[int, int], Row[Any]],
    pairs: Collection[tuple[int, int]],
) -> tuple[PairLine, ...]:
    """These pairs, without the outputs that are gone."""
    return tuple(
        _pair_line(lines[pair[0]], lines[pair[1]], rows.get(pair), decisions.get(pair))
        for pair in pairs
        if lines.keys() >= set(pair)
    )


def _pair_line(first: OutputLine, second: OutputLine, row: Row[Any] | None, decision: Row[Any] | None) -> PairLine:
    answer, score, reason = "different", None, "The rules find nothing in common."
    if row is not None:
        answer, score, reason = row.answer, row.score, row.reason
    if decision is None:
        return PairLine(first, second, answer, score, reason)
    about = (decision.answer, decision.decided_by, decision.decided_at, decision.reason)
    return PairLine(first, second, answer, score, reason, *about)
