"""The numbers of documents at the stages of the pipeline, and the reasons of failures: for pages and mails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from metaharvest.database.models import CatalogueDocument
from metaharvest.database.pipeline_models import PipelineStep
from metaharvest.model.kinds import StepState


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True)
class SiteCounts:
    """The documents of a site at a stage: the number that the stage has done, and the failed ones by rule."""

    done: int
    failed: Mapping[str, int]


def site_counts(session: Session, site_id: int, stage: str) -> SiteCounts:
    """The documents of a site that a stage has done, or that failed there; the most frequent rules first."""
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
    return SiteCounts(done, {rule: number for state, rule, number in rows if state == StepState.FAILED.value and rule})


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
