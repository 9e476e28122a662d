"""The DDL of all tables, for people to read: `python -m metaharvest.database.ddl sqlite > sql/ddl/sqlite.sql`.

The tables themselves are created by the migrations in `sql/migrations`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from metaharvest.database.all_tables import Base
from metaharvest.database.operations import OPERATIONS
from metaharvest.model.actions import todo

_DIALECTS: dict[str, Any] = {"sqlite": sqlite.dialect, "postgresql": postgresql.dialect, "mariadb": mysql.dialect}


def ddl(database: str) -> str:
    """Every table, index and operation code as SQL for `database`: sqlite, postgresql or mariadb."""
    dialect = _DIALECTS[database]()
    lines = [
        f"-- The tables of metaharvest on {database}, for reading: "
        f"{todo('installation.make')} creates and upgrades them.\n"
    ]
    lines += [str(statement.compile(dialect=dialect)).strip() + ";\n" for statement in _statements()]
    for code, (level, explanation) in OPERATIONS.items():
        values = ", ".join("'" + value.replace("'", "''") + "'" for value in (code, explanation, level))
        lines.append(f"INSERT INTO harvest_operation VALUES ({values});")
    return "\n".join(lines) + "\n"


def _statements() -> Iterator[CreateTable | CreateIndex]:
    for table in Base.metadata.sorted_tables:
        yield CreateTable(table)
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            yield CreateIndex(index)


if __name__ == "__main__":
    sys.stdout.write(ddl(sys.argv[1]))
