"""The plans of the statements that a read model executes, and the large tables that they read from end to end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session

LARGE = frozenset(
    {"harvest_log", "harvest_detail_log", "harvest_document", "harvest_site_run", "site_problem", "catalogue_document",
     "document_revision", "report_outbox", "pipeline_step"}
)  # fmt: skip
"""The tables that grow with the documents and the nights."""

_SCAN = re.compile(r"^SCAN (\w+)")
_ALIASES = re.compile(r"(?:FROM|JOIN|,)\s+(\w+) AS (\w+)")


def full_scans(engine: Engine, read: Callable[[Session], object]) -> list[str]:
    """A sentence for each statement of `read` that reads a large table from end to end."""
    with executed(engine) as statements, Session(engine) as session:
        read(session)
    explain = _of_sqlite if engine.dialect.name == "sqlite" else _of_postgresql
    found = []
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":  # small tables are scanned although they have an index
            for way in ("seqscan", "hashjoin", "mergejoin"):
                connection.execute(text(f"SET LOCAL enable_{way} = off"))
        for statement, values in dict.fromkeys((each, repr(values)) for each, values in statements):
            given = next(v for each, v in statements if each == statement and repr(v) == values)
            found += [
                f"{table} is read from end to end by: {statement}" for table in explain(connection, statement, given)
            ]
        connection.rollback()
    return found


def sqlite_plans(engine: Engine, read: Callable[[Session], object]) -> list[str]:
    """The lines of SQLite's plans for the statements of `read`."""
    with executed(engine) as statements, Session(engine) as session:
        read(session)
    with engine.connect() as connection:
        return [
            str(row[3])
            for statement, values in statements
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
        ]


@contextmanager
def executed(engine: Engine) -> Iterator[list[tuple[str, Any]]]:
    """The SELECT statements that are executed meanwhile, with their values."""
    seen: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_others: Any) -> None:
        if statement.lstrip().startswith(("SELECT", "WITH")):
            seen.append((statement, values))

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


def _of_sqlite(connection: Any, statement: str, values: Any) -> Iterator[str]:
    names = {alias: table for table, alias in _ALIASES.findall(statement)}
    lines = [str(row[3]) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)]
    stops_early = " LIMIT " in statement and not any("FOR ORDER BY" in line or "GROUP BY" in line for line in lines)
    for line in lines:
        for name in _SCAN.findall(line):
            if (table := str(names.get(name, name))) in LARGE and not stops_early:
                yield table


def _of_postgresql(connection: Any, statement: str, values: Any) -> Iterator[str]:
    rows = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", values)
    plan = rows.scalar_one()
    [top] = json.loads(plan) if isinstance(plan, str) else plan
    yield from _scanned(top["Plan"], False)


def _scanned(node: dict[str, Any], stops_early: bool) -> Iterator[str]:
    """The large tables that this part of a plan reads without a condition on an index, unless a LIMIT ends it."""
    kind, table = node["Node Type"], str(node.get("Relation Name", ""))
    is_bound = "Index Cond" in node or "Recheck Cond" in node
    if table in LARGE and kind.endswith("Scan") and not is_bound and not (stops_early and kind != "Seq Scan"):
        yield table
    early = kind == "Limit" or (stops_early and kind not in ("Sort", "Aggregate", "Hash"))
    for part in node.get("Plans", ()):
        yield from _scanned(part, early)
