"""The clock of the database, which all machines share: leases depend on it, not on the clock of a machine."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import TextClause, text
from sqlalchemy.orm import Session

_EXPRESSIONS = {
    "postgresql": "timezone('UTC', clock_timestamp())",
    "mariadb": "UTC_TIMESTAMP(6)",
    "mysql": "UTC_TIMESTAMP(6)",
}
_NOW = {dialect: text(f"SELECT {expression}") for dialect, expression in _EXPRESSIONS.items()}


def database_now(session: Session) -> datetime:
    """The time by the clock of the database, in UTC. SQLite has the clock of this machine."""
    statement = _NOW.get(session.get_bind().dialect.name)
    if statement is None:
        return datetime.now(UTC)
    now: datetime = session.execute(statement).scalar_one()
    return now.replace(tzinfo=UTC)


def now_by_database(session: Session) -> datetime | TextClause:
    """The same as a value for a statement, which the database calculates itself."""
    expression = _EXPRESSIONS.get(session.get_bind().dialect.name)
    return datetime.now(UTC) if expression is None else text(expression)
