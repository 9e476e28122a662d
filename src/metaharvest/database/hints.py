"""Hints for the planners of databases.

SQLite has no statistics, and may choose an index that has most rows of a table. PostgreSQL has none of a table that has
just been filled: its statements then read the whole table, until autovacuum comes.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Engine, bindparam, func, text
from sqlalchemy.orm import InstrumentedAttribute

from metaharvest.database.models import Base

_GROWN = text(
    "SELECT relname FROM pg_stat_user_tables WHERE schemaname = current_schema() AND relname IN :names"
    " AND n_mod_since_analyze > 500 + n_live_tup / 50"
).bindparams(bindparam("names", expanding=True))


def without_index(column: InstrumentedAttribute[str] | ColumnElement[Any]) -> ColumnElement[str]:
    """A column with text that is never null, so that its index is not used."""
    return func.coalesce(column, "")


def number_without_index(column: InstrumentedAttribute[int]) -> ColumnElement[int]:
    """A column with numbers that is never null, so that its index is not used."""
    return func.coalesce(column, 0)


def refresh_statistics(engine: Engine) -> None:
    """Let PostgreSQL take statistics of the tables in which more rows than 500, and one of 50, have changed.

    autovacuum does so once a minute, or never if it is off. It takes some milliseconds a table.
    """
    if engine.dialect.name != "postgresql":
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for name in connection.scalars(_GROWN, {"names": list(Base.metadata.tables)}).all():
            connection.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {name}")
