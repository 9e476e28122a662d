"""The order of documents: by scope and number, so that `knb.2` comes before `knb.10`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Text, func
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

_DIGITS = "0123456789"


class _WithoutNumber(FunctionElement[str]):
    """A document id without the digits at its end."""

    type = Text()
    inherit_cache = True
    name = "without_number"


@compiles(_WithoutNumber)
def _without_number(element: _WithoutNumber, compiler: Any, **options: Any) -> str:
    return f"RTRIM({compiler.process(element.clauses, **options)}, '{_DIGITS}')"


@compiles(_WithoutNumber, "mysql")
@compiles(_WithoutNumber, "mariadb")
def _of_mariadb(element: _WithoutNumber, compiler: Any, **options: Any) -> str:
    return f"REGEXP_REPLACE({compiler.process(element.clauses, **options)}, '[0-9]+$', '')"


def by_document(document_id: Any) -> tuple[ColumnElement[Any], ...]:
    """The order for a statement. No index has it: sort the rows of one site or of one site run, not all of a table."""
    return _WithoutNumber(document_id), func.length(document_id), document_id


def place_of(document_id: str) -> tuple[str, int, str]:
    """The key for `sorted`, in the same order."""
    return document_id.rstrip(_DIGITS), len(document_id), document_id
