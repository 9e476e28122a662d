"""Removes the bytes of deleted rows from the files of a database, as far as the database allows."""

from __future__ import annotations

import sqlite3

from sqlalchemy import Engine

from metaharvest.database.dialects import reason_of

_OF_SERVERS = {
    "postgresql": "PostgreSQL keeps the bytes of deleted rows until VACUUM, and in its write-ahead log and archives.",
    "mysql": "MariaDB keeps the bytes of deleted rows until InnoDB uses their place again, and in its binary logs.",
}
_OF_SERVERS["mariadb"] = _OF_SERVERS["mysql"]


def scrub(engine: Engine) -> str:
    """Remove the bytes of deleted rows; returns a sentence about the bytes that stay, empty if none do.

    SQLite writes the file again with VACUUM, which needs as much free room as the file takes.
    """
    if engine.dialect.name != "sqlite":
        return _OF_SERVERS.get(engine.dialect.name, "")
    connection = engine.raw_connection()
    try:
        cursor = connection.cursor()
        cursor.execute("VACUUM")
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        busy = (cursor.fetchone() or (0,))[0]
        cursor.close()
    except sqlite3.Error as error:
        return f"The database file still has the bytes of deleted rows: VACUUM failed, since {reason_of(error)}."
    finally:
        connection.close()
    if not busy:
        return ""
    return "Another program reads the database: until it ends, the file beside it (-wal) has the bytes of deleted rows."
