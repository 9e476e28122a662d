"""Statements for many values, and parts of statements: the order of documents, distinct values, hints for planners."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Column, ColumnElement, Engine, Integer, Row, Select, Text, bindparam, delete, func, select, text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute, Session
from sqlalchemy.sql.functions import FunctionElement

from metaharvest.database.batches import batches
from metaharvest.database.models import Base

_DIGITS = "0123456789"
_GROWN = text(
    "SELECT relname FROM pg_stat_user_tables WHERE schemaname = current_schema() AND relname IN :names"
    " AND n_mod_since_analyze > 500 + n_live_tup / 50"
).bindparams(bindparam("names", expanding=True))


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
    """The order of documents in a statement: by scope and number, so that `knb.2` comes before `knb.10`.

    No index has it: sort the rows of one site or of one site run, not all of a table.
    """
    return _WithoutNumber(document_id), func.length(document_id), document_id


def place_of(document_id: str) -> tuple[str, int, str]:
    """The key for `sorted`, in the same order."""
    return document_id.rstrip(_DIGITS), len(document_id), document_id


def distinct_values(session: Session, column: Column[Any]) -> Select[Any]:
    """The statement for the values of a column that begins an index, in no order, without NULL.

    Each value is one look into the index. For this, MariaDB needs DISTINCT: it reads half of the index for each `min`.
    With DISTINCT, the other databases read the whole index.
    """
    if session.get_bind().dialect.name in ("mysql", "mariadb"):
        return select(column.label("value")).where(column.is_not(None)).distinct()
    following = column.table.alias("following").c[column.name]
    found = select(func.min(column).label("value")).cte("found", recursive=True)
    larger = select(func.min(following)).where(following > found.c.value).correlate(found).scalar_subquery()
    found = found.union_all(select(larger).where(found.c.value.is_not(None)))
    return select(found.c.value).where(found.c.value.is_not(None))


def rows_with(
    session: Session,
    query: Select[*tuple[Any, ...]],
    column: ColumnElement[Any] | InstrumentedAttribute[Any],
    values: Iterable[Any],
) -> Iterator[Row[*tuple[Any, ...]]]:
    """The rows of a query whose column has one of these values: a statement for each batch of values."""
    for some in batches(values):
        yield from session.execute(query.where(column.in_(some)))


def delete_with(session: Session, column: Column[Any], values: Iterable[Any]) -> None:
    """Delete the rows whose column has one of these values: a statement for each batch of values, in their order."""
    for some in batches(sorted(values)):
        session.execute(delete(column.table).where(column.in_(some)))


def without_index(column: InstrumentedAttribute[Any] | ColumnElement[Any]) -> ColumnElement[Any]:
    """A column with texts or numbers that is never null, so that its index is not used.

    SQLite has no statistics, and may choose an index that has most rows of a table.
    """
    return func.coalesce(column, 0 if isinstance(column.type, Integer) else "")


def refresh_statistics(engine: Engine) -> None:
    """Let PostgreSQL take statistics of the tables in which more rows than 500, and one of 50, have changed.

    Without them, statements read the whole of a table that has just been filled. autovacuum takes them once a minute,
    or never if it is off. It takes some milliseconds a table.
    """
    if engine.dialect.name != "postgresql":
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for name in connection.scalars(_GROWN, {"names": list(Base.metadata.tables)}).all():
            connection.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {name}")
