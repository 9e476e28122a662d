"""Values that several read models share: findings as they are stored, docids."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import fields
from functools import reduce
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from metaharvest.database.models import Base, HarvestDetailLog, HarvestLog
from metaharvest.database.statements import rows_with
from metaharvest.model import ERROR_OUTCOMES, WOULD_BE, OutcomeKind
from metaharvest.model.values import frozen
from metaharvest.text import LARGEST_ID, whole_number

Row = TypeVar("Row", bound=Base)


@frozen
class StoredFinding:
    """A finding as the log has it."""

    level: str
    rule: str
    message: str
    remedy: str | None
    line: int | None
    column: int | None
    xpath: str | None
    excerpt: str | None


FINDING = (
    HarvestDetailLog.level,
    HarvestDetailLog.rule,
    HarvestDetailLog.error_message.label("message"),
    HarvestDetailLog.remedy,
    HarvestDetailLog.line_number.label("line"),
    HarvestDetailLog.column_number.label("column"),
    HarvestDetailLog.xpath,
    HarvestDetailLog.excerpt,
)
"""The columns of a StoredFinding, in its order and by its names."""


def findings_under(session: Session, log_ids: Sequence[int]) -> dict[int, list[StoredFinding]]:
    """The findings of these rows of the log, by row, in the order in which they were written."""
    found: dict[int, list[StoredFinding]] = {log_id: [] for log_id in log_ids}
    query = select(HarvestDetailLog.harvest_log_id, *FINDING).order_by(HarvestDetailLog.detail_log_id)
    for log_id, *values in rows_with(session, query, HarvestDetailLog.harvest_log_id, log_ids):
        found[log_id].append(StoredFinding(*values))
    return found


def equalities(*wanted: tuple[InstrumentedAttribute[Any], Any]) -> list[ColumnElement[bool]]:
    """For each column the condition that it has its wanted value, or one of several; none for None, or no values."""
    return [
        column.in_([*map(str, value)]) if isinstance(value, tuple | list) else column == value
        for column, value in wanted
        if value is not None and value not in ((), [])
    ]


def row_of(session: Session, table: type[Row], number: int) -> Row | None:
    """The row with this number; None if there is none, also for a number that no database can have."""
    return session.get(table, number) if 0 <= number <= LARGEST_ID else None


def columns(table: type[Base], names: str) -> list[InstrumentedAttribute[Any]]:
    """The columns of these names, in their order."""
    return [getattr(table, name) for name in names.split()]


def columns_for(model: type, table: type[Base]) -> list[InstrumentedAttribute[Any]]:
    """The columns of a table that have the names of values of this read model, in the order of the values."""
    return [getattr(table, each.name) for each in fields(model) if each.name in table.__table__.columns]


def is_after(first: tuple[Any, Any], second: tuple[Any, Any]) -> ColumnElement[bool]:
    """The condition for rows after a place in the order of two columns, each with its value at that place."""
    (column, value), (tie, tie_value) = first, second
    is_later = or_(column > value, and_(column == value, tie > tie_value))
    # Repeated, for databases that use an index only for a condition on every row.
    return and_(column >= value, is_later)


def is_named(name: str) -> ColumnElement[bool]:
    """The condition for rows of the log about a document: `name` is a document id, or a docid."""
    is_document: ColumnElement[bool] = HarvestLog.document_id == name
    if parts := parts_of_docid(name):
        return or_(is_document, and_(HarvestLog.document_id == parts[0], HarvestLog.revision == parts[1]))
    return is_document


FAILING = (*(kind for kind in OutcomeKind if kind in ERROR_OUTCOMES), OutcomeKind.DEFERRED)
"""The outcomes of documents that were not accepted, or were put off."""


def failing(site_run: Any) -> Any:
    """The number of documents of a site run, or of the table of site runs, that are FAILING."""
    return reduce(operator.add, (getattr(site_run, kind.column) for kind in FAILING))


def docid(document_id: str | None, revision: int | None) -> str | None:
    """Document id and revision as people write them."""
    return document_id if document_id is None or revision is None else f"{document_id}.{revision}"


def shown_revision(revision: int | None, outcome: str | None, datestamp: str | None) -> int | None:
    """The revision of a row of the ledger; None for a record that was left out: it has none before it goes in."""
    is_record = datestamp is not None
    return None if is_record and outcome == OutcomeKind.FILTERED.value else revision


def would_be(outcome: str | None, message: str | None) -> str:
    """The words of the log in place of this outcome, if the target only looked at the document; empty if it took it."""
    words = WOULD_BE.get(OutcomeKind(outcome), "") if outcome else ""
    return words if words and f" {words}." in (message or "") else ""


def parts_of_docid(name: str) -> tuple[str, int] | None:
    """Document id and revision, if `name` may be a docid."""
    head, _, tail = name.rpartition(".")
    revision = whole_number(tail)
    return None if not head or revision is None else (head, revision)
