"""Deleted rows leave their bytes in the files of a database: has them go, as far as the database lets us."""

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
    """Have the bytes of deleted rows leave the files; a sentence about the bytes that stay, empty if none do.

    SQLite writes the file again with VACUUM, which takes as much room as the file has.
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
    reads = (
        "Another program reads the database: until it ends, the file beside it (-wal) has the bytes of deleted rows."
    )
    return reads if busy else ""
