"""Worker processes note that they are there, and what they do; jobs note each step of their life."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from metaharvest.database.base import Base
from metaharvest.database.clock import database_now
from metaharvest.database.rows import insert_rows
from metaharvest.database.worker_models import Job, JobEvent, Worker
from metaharvest.jobs.claims import Claim
from metaharvest.model.jobs import OPEN, Step
from metaharvest.model.values import frozen

_EVENTS = Base.metadata.tables[JobEvent.__tablename__]
_MOST_COUNTED = 10_000

SILENT_AFTER = timedelta(seconds=30)
"""A worker notes every ten seconds that it is there. After this time without a note, it may have died."""

GONE_AFTER = timedelta(minutes=10)
"""A worker that was not seen for this time is forgotten."""


@frozen
class WorkerProcess:
    """A worker process: its unique name, its machine and number, and the version of the program."""

    name: str
    host: str
    pid: int
    version: str


def note(session: Session, process: WorkerProcess, job_ids: Sequence[int], *, is_ending: bool = False) -> None:
    """Note that a worker is there, and its jobs."""
    now = database_now(session)
    row = session.scalar(select(Worker).where(Worker.name == process.name))
    if row is None:
        row = Worker(name=process.name, began_at=now)
        session.add(row)
    elif row.pid != process.pid or row.host != process.host[:255]:
        row.began_at = now
    row.host, row.pid, row.version = process.host[:255], process.pid, process.version[:32]
    row.seen_at, row.is_ending = now, is_ending
    row.job_id, row.jobs = next(iter(job_ids), None), len(job_ids)


def share(session: Session, held: int) -> int:
    """The number of jobs that a worker which has `held` jobs may claim, at least one: no worker takes all of them.

    The jobs that workers have are counted, too: the last worker to look gets as many as the first.
    """
    now = database_now(session)
    open_jobs = select(Job.job_id).where(Job.state.in_(OPEN), Job.not_before <= now).limit(_MOST_COUNTED)
    number = session.scalar(select(func.count()).select_from(open_jobs.subquery())) or 0
    its = (Worker.seen_at > now - SILENT_AFTER, Worker.is_ending.is_(False))
    there = session.scalar(select(func.count()).select_from(Worker).where(*its)) or 0
    return max(1, math.ceil(number / max(1, there)) - held)


def forget(session: Session, name: str) -> None:
    """Delete the note of a worker, as it ends."""
    session.execute(delete(Worker).where(Worker.name == name))


def forget_lost(session: Session) -> None:
    """Delete the notes of workers that were not seen for a long time."""
    session.execute(delete(Worker).where(Worker.seen_at < database_now(session) - GONE_AFTER))


def note_steps(session: Session, steps: Sequence[tuple[Claim, Step, str]], now: datetime) -> None:
    """Note steps in the life of jobs, each with a sentence or an empty one, in one statement."""
    rows = [
        {
            "job_id": claim.job_id,
            "fence": claim.fence,
            "step": step.value,
            "worker": claim.worker,
            "sentence": sentence or None,
        }
        for claim, step, sentence in steps
    ]
    if rows:
        insert_rows(session.connection(), _EVENTS, rows, {"at": now})
