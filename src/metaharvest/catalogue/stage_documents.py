"""The current documents for the stages of the pipeline, the change feed by their numbers, and counts of the stages."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, bindparam, exists, func, not_, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS, IS_CURRENT, REVISIONS, SITE_OF_CURRENT, SITES, WITHHELD
from metaharvest.catalogue.selection import Hidden, shown
from metaharvest.database.models import CatalogueDocument
from metaharvest.database.pipeline_models import PipelineStep
from metaharvest.model.kinds import StepState
from metaharvest.model.values import frozen

_NUMBER = DOCUMENTS.c.catalogue_document_id
_IS_WITHHELD = exists().where(WITHHELD.c.catalogue_document_id == _NUMBER).correlate(DOCUMENTS)
IS_GONE: ColumnElement[bool] = DOCUMENTS.c.deleted | _IS_WITHHELD
"""True for a document that is deleted or withheld."""

_BY_NUMBER = (
    select(
        *DOCUMENTS.c["catalogue_document_id", "document_id", "item_identifier", "origin", "document_type", "revision"],
        REVISIONS.c.document_revision_id,
        DOCUMENTS.c.change_seq,
        *SITES.c["site_schedule_id", "name"],
        IS_GONE.label("gone"),
    )
    .outerjoin(SITES, SITE_OF_CURRENT)
    .outerjoin(REVISIONS, IS_CURRENT)
    .where(_NUMBER.in_(bindparam("numbers", expanding=True)))
    .order_by(_NUMBER)
)


@frozen
class Document:
    """A current document of the catalogue. `number` is its key there, `revision_id` the key of its bytes.

    `is_gone`: it is deleted or not public, or its content was erased. `site_id` is the registered site, or None.
    """

    number: int
    document_id: str
    item_identifier: str
    origin: str | None
    document_type: str
    revision: int
    revision_id: int | None
    change_seq: int
    site_id: int | None
    site: str | None
    is_gone: bool


def stage_documents(session: Session, numbers: Collection[int]) -> Mapping[int, Document]:
    """These documents by number, in its order."""
    rows = session.connection().execute(_BY_NUMBER, {"numbers": list(numbers)})
    return {row[0]: _document(row) for row in rows}


def gone_among(session: Session, numbers: Collection[int]) -> set[int]:
    """The documents among these that are deleted or withheld."""
    query = select(_NUMBER).where(_NUMBER.in_(numbers), IS_GONE)
    return set(session.scalars(query))


def removed_after(session: Session, after_seq: int, hidden: Hidden | None) -> Mapping[int, int]:
    """The numbers of the last changes after this one that removed documents, by the number of the document.

    A removed document is deleted, withheld, or `hidden`. None: the documents of all sites are published.
    """
    query = select(_NUMBER, DOCUMENTS.c.change_seq).where(DOCUMENTS.c.change_seq > after_seq, not_(_is_shown(hidden)))
    return {row[0]: row[1] for row in session.execute(query)}


def shown_after(session: Session, after_seq: int, hidden: Hidden | None) -> Iterator[int]:
    """The numbers of the documents that changed after this change, and are not removed."""
    yield from session.scalars(select(_NUMBER).where(DOCUMENTS.c.change_seq > after_seq, _is_shown(hidden)))


def _is_shown(hidden: Hidden | None) -> ColumnElement[bool]:
    return not_(IS_GONE) if hidden is None else and_(*shown(hidden))


def changed_numbers(session: Session, after_seq: int, limit: int) -> Sequence[tuple[int, int]]:
    """The next changes after this one in commit order, at most `limit`: their numbers, and the documents' own."""
    change = DOCUMENTS.c.change_seq
    query = select(change, _NUMBER).where(change > after_seq).order_by(change).limit(limit)
    return [(seq, number) for seq, number in session.execute(query)]


def _document(row: Row[*tuple[Any, ...]]) -> Document:
    *values, is_gone = row
    revision_id = values[6]
    return Document(*[*values, bool(is_gone) or revision_id is None])


# -- counts of the stages


@frozen(kw_only=True)
class FailureCount:
    """The number of documents that failed at a stage by a rule, and the earliest time of the next try."""

    stage: str
    rule: str
    number_of_documents: int
    retry_at: datetime | None


def stage_counts(session: Session) -> Mapping[tuple[str, StepState], int]:
    """The number of documents by stage and state; a state without a document is left out."""
    stage, state = PipelineStep.stage, PipelineStep.state
    rows = session.execute(select(stage, state, func.count()).group_by(stage, state))
    return {(stage, StepState(state)): number for stage, state, number in rows}


def failure_counts(session: Session, stages: Sequence[str]) -> list[FailureCount]:
    """The failures at these stages by stage and rule, the most frequent first."""
    number = func.count()
    query = (
        select(PipelineStep.stage, PipelineStep.rule, number, func.min(PipelineStep.retry_at))
        .where(PipelineStep.state == StepState.FAILED.value, PipelineStep.stage.in_(stages))
        .group_by(PipelineStep.stage, PipelineStep.rule)
        .order_by(number.desc(), PipelineStep.stage, PipelineStep.rule)
    )
    return [
        FailureCount(stage=row[0], rule=row[1] or "", number_of_documents=row[2], retry_at=row[3])
        for row in session.execute(query)
    ]


def site_counts(session: Session, site_id: int, stage: str) -> tuple[int, Mapping[str, int]]:
    """The documents of a site that a stage has done, and the failed ones by rule; the most frequent rules first."""
    number = func.count()
    query = (
        select(PipelineStep.state, PipelineStep.rule, number)
        .join(CatalogueDocument, CatalogueDocument.catalogue_document_id == PipelineStep.catalogue_document_id)
        .where(CatalogueDocument.site_schedule_id == site_id, PipelineStep.stage == stage)
        .group_by(PipelineStep.state, PipelineStep.rule)
        .order_by(number.desc(), PipelineStep.rule)
    )
    rows = session.execute(query).all()
    done = sum(number for state, _, number in rows if state == StepState.DONE.value)
    return done, {rule: number for state, rule, number in rows if state == StepState.FAILED.value and rule}


def failed_titles(session: Session, site_id: int, stage: str, rule: str, limit: int) -> Sequence[str]:
    """The titles of some documents of a site that failed at a stage by a rule; the document id where there is none."""
    query = (
        select(CatalogueDocument.title, CatalogueDocument.document_id)
        .join(PipelineStep, CatalogueDocument.catalogue_document_id == PipelineStep.catalogue_document_id)
        .where(CatalogueDocument.site_schedule_id == site_id, PipelineStep.stage == stage, PipelineStep.rule == rule)
        .where(PipelineStep.state == StepState.FAILED.value)
        .order_by(CatalogueDocument.document_id)
        .limit(limit)
    )
    return [title or document_id for title, document_id in session.execute(query)]
