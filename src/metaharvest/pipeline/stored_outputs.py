"""Reads the outputs that the stage `cleaning` has stored."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.pipeline_models import OutputRecord
from metaharvest.model.outputs import Output
from metaharvest.pipeline.cleaning.json import output_of


def read_outputs(session: Session, numbers: Iterable[int]) -> dict[int, Output]:
    """The outputs of these documents by their numbers; a document without an output is left out."""
    query = select(OutputRecord.catalogue_document_id, OutputRecord.content)
    return {
        number: output_of(content)
        for some in batches(sorted(numbers))
        for number, content in session.execute(query.where(OutputRecord.catalogue_document_id.in_(some)))
    }
