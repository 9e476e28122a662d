"""The tables of a Metacat Harvester, as its own database scripts make them, with rows that people have left in them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, create_engine, text

from support.databases import Servers

SCHEDULE = [
    *("SITE_SCHEDULE_ID", "DOCUMENTLISTURL", "LDAPDN", "DATENEXTHARVEST", "DATELASTHARVEST", "UPDATEFREQUENCY"),
    *("UNIT", "CONTACT_EMAIL", "LDAPPWD"),
]
LOG = ["HARVEST_LOG_ID", "HARVEST_DATE", "STATUS", "MESSAGE", "HARVEST_OPERATION_CODE", "SITE_SCHEDULE_ID"]
DETAIL_LOG = [
    *("DETAIL_LOG_ID", "HARVEST_LOG_ID", "SCOPE", "IDENTIFIER", "REVISION"),
    *("DOCUMENT_URL", "ERROR_MESSAGE", "DOCUMENT_TYPE"),
]

_TABLES = {
    "HARVEST_SITE_SCHEDULE": (SCHEDULE, "int varchar(255) varchar(255) {date} {date} int varchar(50) text varchar(50)"),
    "HARVEST_LOG": (LOG, "int {date} int text varchar(64) int"),
    "HARVEST_DETAIL_LOG": (DETAIL_LOG, "int int varchar(64) bigint bigint varchar(255) text varchar(128)"),
}

_DATES = {"sqlite": "timestamp", "postgresql": "timestamp", "mysql": "datetime", "mariadb": "datetime"}

Rows = Mapping[str, Sequence[Sequence[object]]]
"""Rows by table, each value in the order of the columns."""


@contextmanager
def metacat_database(kind: str, servers: Servers, folder: Path, rows: Rows, *, upper: bool = False) -> Iterator[str]:
    """The URL of a Metacat's database with these rows. `upper`: names in upper case and quoted, dates with a time."""
    if kind == "sqlite":
        engine = create_engine(f"sqlite:///{folder / 'metacat.db'}")
        fill(engine, rows, upper)
        engine.dispose()
        yield f"sqlite:///{folder / 'metacat.db'}"
        return
    with servers.bare(kind) as engine:
        fill(engine, rows, upper)
        yield engine.url.render_as_string(hide_password=False)


def fill(engine: Engine, rows: Rows, upper: bool) -> None:
    quote = engine.dialect.identifier_preparer.quote_identifier
    with engine.begin() as connection:
        for table, (columns, types) in _TABLES.items():
            kinds = types.format(date=_DATES[engine.dialect.name] if upper else "date").split()
            name = quote(table) if upper else table.lower()
            named = [quote(column) if upper else column.lower() for column in columns]
            defined = ", ".join(f"{each} {kind} NULL" for each, kind in zip(named, kinds, strict=True))
            connection.execute(text(f"CREATE TABLE {name} ({defined})"))
            for row in rows.get(table, ()):
                marks = ", ".join(f":v{number}" for number in range(len(row)))
                values = {f"v{number}": value for number, value in enumerate(row)}
                connection.execute(text(f"INSERT INTO {name} VALUES ({marks})"), values)


def write_csv(file: Path, columns: Sequence[str], rows: Sequence[Sequence[object]], delimiter: str = ",") -> Path:
    """A table as a CSV file; None is written as an empty value."""
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, delimiter=delimiter)
        writer.writerow(columns)
        writer.writerows(["" if value is None else value for value in row] for row in rows)
    return file
