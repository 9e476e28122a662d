"""Facts about a database for its operator: the version of its server or library, and its size."""

from __future__ import annotations

from sqlalchemy import Connection, text

_SIZES = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
}
_OTHER = "SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = DATABASE()"


def server_version(connection: Connection) -> str:
    """The version of the server, or of SQLite."""
    is_sqlite = connection.dialect.name == "sqlite"
    return str(connection.scalar(text("SELECT sqlite_version()" if is_sqlite else "SELECT version()")))


def size_in_bytes(connection: Connection) -> int:
    """The size of all tables and indices."""
    return int(connection.scalar(text(_SIZES.get(connection.dialect.name, _OTHER))) or 0)
