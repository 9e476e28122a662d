"""An output as JSON, as the table `output` has it, and back without a loss. Missing values are left out."""

from __future__ import annotations

from functools import cache

from pydantic import TypeAdapter

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
