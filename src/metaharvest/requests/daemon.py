"""The daemon notes that it is there, and when it runs next, for people who wait for it."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete
from sqlalchemy.orm import Session

from metaharvest.database.models import DaemonState


def note(session: Session, host: str, pid: int, next_run: datetime | None, zone: str, now: datetime) -> None:
    """Note the daemon of this process as the one that was seen last."""
    session.merge(DaemonState(daemon_id=1, host=host[:255], pid=pid, next_run_at=next_run, zone=zone[:64], seen_at=now))


def forget(session: Session, host: str, pid: int) -> None:
    """Delete the note of this daemon, as it ends."""
    session.execute(delete(DaemonState).where(DaemonState.host == host[:255], DaemonState.pid == pid))
