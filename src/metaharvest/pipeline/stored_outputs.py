"""The outputs that the stage `cleaning` has stored, as JSON without a loss. Missing values are left out."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from pydantic import TypeAdapter
from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.pipeline_models import OutputRecord
from metaharvest.database.statements import rows_with
from metaharvest.model.outputs import Output


def json_of(output: Output) -> str:
    """The output as JSON on one line."""
    return _adapter().dump_json(output, exclude_defaults=True).decode()


def output_of(content: str | bytes) -> Output:
    """The output of the JSON that `json_of` made. Raises ValueError for any other text."""
    return _adapter().validate_json(content)


@cache
def _adapter() -> TypeAdapter[Output]:
    """Made at the first use: it takes some milliseconds."""
    return TypeAdapter(Output)


def read_outputs(session: Session, numbers: Iterable[int]) -> dict[int, Output]:
    """The outputs of these documents by their numbers; a document without an output is left out."""
    number = OutputRecord.catalogue_document_id
    rows = rows_with(session, select(number, OutputRecord.content), number, sorted(numbers))
    return {number: output_of(content) for number, content in rows}
