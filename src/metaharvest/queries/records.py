"""Rows as mappings of their columns by name, and the rows that belong to others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import InstrumentedAttribute, Session

from metaharvest.database.models import Base
from metaharvest.model import WOULD_BE, OutcomeKind
from metaharvest.text import whole_number

Record = Mapping[str, Any]
"""A row: its columns by name."""

_ONE_NAME = {
    "document_url": "url",
    "source_url": "url",
    "target_revision": "repository_revision",
    "size": "bytes",
    "site_schedule_id": "site_id",
    "site_name": "site",
    "harvest_log_id": "log_id",
    "error_message": "message",
    "line_number": "line",
    "column_number": "column",
}
"""Columns of the tables -> the one name that every command and every CSV table has for their content."""

LARGEST_ID = 2**63 - 1
_PARENTS_AT_ONCE = 500


def columns(table: type[Base], names: str) -> list[InstrumentedAttribute[Any]]:
    """The columns of these names, in their order."""
    return [getattr(table, name) for name in names.split()]


def with_one_name(record: Record) -> Record:
    """The row, with each value that has another name in a table also under its common name."""
    also = {_ONE_NAME[name]: value for name, value in record.items() if name in _ONE_NAME}
    return {**record, **also}


def docid(document_id: str | None, revision: int | None) -> str | None:
    """Document id and revision as people write them."""
    return document_id if document_id is None or revision is None else f"{document_id}.{revision}"


def revision_of(row: Record) -> int | None:
    """The revision of a row of the ledger; None for a record that was left out: it has none before it goes in."""
    is_record = row["datestamp"] is not None
    return None if is_record and row["outcome"] == OutcomeKind.FILTERED.value else row["revision"]


def would_be(outcome: str | None, message: str | None) -> str:
    """The words of the log in place of this outcome, if the target only looked at the document; empty if it took it."""
    words = WOULD_BE.get(OutcomeKind(outcome), "") if outcome else ""
    return words if words and f" {words}." in (message or "") else ""


def parts_of_docid(name: str) -> tuple[str, int] | None:
    """Document id and revision, if `name` may be a docid."""
    head, _, tail = name.rpartition(".")
    revision = whole_number(tail, LARGEST_ID)
    return None if not head or revision is None else (head, revision)


def records_under(
    session: Session, parent: InstrumentedAttribute[int], parents: Sequence[int], names: str = ""
) -> dict[int, list[Record]]:
    """The rows whose column `parent` is one of `parents`, by that number, in the order in which they were written.

    Each has the columns of these names, or all of them.
    """
    table: Any = parent.class_
    [key] = table.__table__.primary_key
    names = names or " ".join(table.__table__.columns.keys())
    found: dict[int, list[Record]] = {number: [] for number in parents}
    for start in range(0, len(parents), _PARENTS_AT_ONCE):
        chosen = parent.in_(parents[start : start + _PARENTS_AT_ONCE])
        for number, *row in session.execute(select(parent, *columns(table, names)).where(chosen).order_by(key)):
            found[number].append(dict(zip(names.split(), row, strict=True)))
    return found
