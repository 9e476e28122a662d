"""The clock of the database, which all machines share: leases depend on it, not on the clock of a machine."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine, TextClause, text
from sqlalchemy.orm import Session

from metaharvest.database.engine import database_errors, readers
from metaharvest.errors import DatabaseError

_EXPRESSIONS = {
    "postgresql": "timezone('UTC', clock_timestamp())",
    "mariadb": "UTC_TIMESTAMP(6)",
    "mysql": "UTC_TIMESTAMP(6)",
}
_READ_EVERY, _FIRST_AGAIN = 60.0, 1.0
"""Seconds from one reading to the next one, and from a first reading that failed."""
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


class DatabaseClock:
    """The clock of the database for one process, which reads it once a minute.

    `engine` returns the engine of the database, or None while there is none.
    In between, and while the database is away, the time goes on from the last answer. Before the first one, and with
    SQLite, it is the time of this machine. All callers wait for the first answer; a thread reads the clock later on.
    """

    def __init__(self, engine: Callable[[], Engine | None]) -> None:
        self._engine = engine
        self._answer: tuple[datetime, float] | None = None
        self._next = 0.0
        self._reading = threading.Lock()

    def __call__(self) -> datetime:
        """The time, in UTC."""
        engine = self._engine()
        if engine is not None and engine.dialect.name in _EXPRESSIONS and time.monotonic() >= self._next:
            if self._answer is None:
                with self._reading:
                    if time.monotonic() >= self._next:
                        self._read(engine)
            elif self._reading.acquire(blocking=False):
                self._begin_to_read(engine)
        if self._answer is None:
            return datetime.now(UTC)
        answer, at = self._answer
        return answer + timedelta(seconds=time.monotonic() - at)

    def _read(self, engine: Engine) -> None:
        with suppress(DatabaseError), database_errors(engine), readers(engine)() as session:
            self._answer = database_now(session), time.monotonic()
        self._next = time.monotonic() + (_FIRST_AGAIN if self._answer is None else _READ_EVERY)

    def _begin_to_read(self, engine: Engine) -> None:
        def read() -> None:
            try:
                self._read(engine)
            finally:
                self._reading.release()

        try:
            threading.Thread(target=read, name="clock", daemon=True).start()
        except RuntimeError:  # the machine has no thread left: the time goes on from the last answer
            self._reading.release()
