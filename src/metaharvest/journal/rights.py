"""The right of a run alone to write, by the run lock. Each commit asks for it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sqlalchemy import Engine, bindparam, update
from sqlalchemy.orm import Session

from metaharvest.database.engine import database_errors
from metaharvest.database.locks import HeldLock
from metaharvest.database.models import Base, HarvestRun
from metaharvest.errors import DatabaseError, RunLost
from metaharvest.journal.writer import LOST, MayWrite
from metaharvest.model import RunStatus

_RUNS = Base.metadata.tables[HarvestRun.__tablename__]
_HEARTBEAT = (
    update(_RUNS)
    .where(_RUNS.c.run_id == bindparam("run"), _RUNS.c.status == RunStatus.RUNNING.value)
    .values(heartbeat_at=bindparam("now"))
)


def by_lock(engine: Engine, lock: HeldLock, run_id: int, clock: Callable[[], datetime]) -> MayWrite:
    """The right of a run alone: it is still running, and its process still holds the run lock."""

    def may_write(session: Session) -> bool:
        if session.connection().execute(_HEARTBEAT, {"run": run_id, "now": clock()}).rowcount != 1:
            return False
        try:
            with database_errors(engine):
                return lock.still_held()
        except DatabaseError as error:
            raise RunLost(f"{LOST} {error}") from error

    return may_write
