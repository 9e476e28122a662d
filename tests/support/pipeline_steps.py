"""Steps of the pipeline in the tables, as a stage leaves them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import CatalogueDocument
from metaharvest.database.pipeline_models import PipelineStep
from metaharvest.model.kinds import StepState


def add_step(session: Session, document_id: str, stage: str, state: StepState, **values: Any) -> None:
    """The step of a document of the catalogue at a stage; `values` are other columns."""
    its = CatalogueDocument.document_id == document_id
    number = session.scalars(select(CatalogueDocument.catalogue_document_id).where(its)).one()
    same = {"woken": 1, "attempts": 1 if state is StepState.FAILED else 0}
    session.add(PipelineStep(catalogue_document_id=number, stage=stage, state=state.value, **{**same, **values}))


def add_failure(
    session: Session, document_id: str, rule: str, message: str, stage: str = "full-text", at: datetime | None = None
) -> None:
    """The failed step of a document; `at` is the time of its next try."""
    add_step(session, document_id, stage, StepState.FAILED, rule=rule, message=message, retry_at=at)
