"""The tables of workers: jobs, workers, and leases of hosts."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index, false
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import BigInteger, String

from metaharvest.database.base import DOUBLE, KEY, TABLE, TEXT, TEXTS, Base, Identifier


class HostLease(Base):
    """A host to which the process `holder` sends requests, if several processes harvest: no other process does.

    The lease ends at `lease_until` by the clock of the database; `holder` is null after the host was given back.
    Another process waits since `wanted_at`. `servers` is JSON: servers that want to be left alone, or are not reached.
    """

    __table_args__ = TEXTS

    host: Mapped[str] = mapped_column(Identifier, primary_key=True)
    holder: Mapped[str | None] = mapped_column(String(255))
    lease_until: Mapped[datetime]
    wanted_at: Mapped[datetime | None]
    servers: Mapped[str | None] = mapped_column(TEXT)


class Job(Base):
    """A unit of work that a worker claims: the harvest of the sites of one origin, the end of a run, a delivery.

    `work` is JSON, as the kind needs it. `open_key` names the job while it is open, `host_key` its host while a worker
    has it, and both are null afterwards: their unique indices prevent a second job for the same thing, and a second
    worker for the same host. A worker has the job until `lease_until` by the clock of the database; `fence` grows with
    each claim, and a worker whose number is older may write nothing. `worker` has it, or had it last. `is_to_end`: the
    worker ends at its next checkpoint. `slices` counts the claims that ended by themselves, `attempts` the claims since
    the last one of them.
    """

    __table_args__ = (Index("ix_job_run", "run_id", "state"), TABLE)

    job_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    kind: Mapped[str] = mapped_column(String(32))
    run_id: Mapped[int | None] = mapped_column(KEY)
    subject: Mapped[str] = mapped_column(String(255))
    work: Mapped[str] = mapped_column(TEXT)
    host: Mapped[str] = mapped_column(String(255))
    priority: Mapped[int]
    state: Mapped[str] = mapped_column(String(16))
    not_before: Mapped[datetime]
    open_key: Mapped[str | None] = mapped_column(String(255), unique=True)
    host_key: Mapped[str | None] = mapped_column(String(255), unique=True)
    worker: Mapped[str | None] = mapped_column(String(255))
    fence: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    lease_until: Mapped[datetime | None]
    is_to_end: Mapped[bool] = mapped_column(default=False, server_default=false())
    attempts: Mapped[int] = mapped_column(default=0, server_default="0")
    slices: Mapped[int] = mapped_column(default=0, server_default="0")
    made_at: Mapped[datetime]
    began_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None] = mapped_column(index=True)
    seconds: Mapped[float] = mapped_column(DOUBLE, default=0, server_default="0")
    cpu_seconds: Mapped[float] = mapped_column(DOUBLE, default=0, server_default="0")
    memory_bytes: Mapped[int] = mapped_column(BigInteger, default=0, server_default="0")
    sentence: Mapped[str | None] = mapped_column(TEXT)


Index("ix_job_next", Job.state, Job.priority.desc(), Job.job_id)
"""Jobs in the order in which workers claim them."""


class JobEvent(Base):
    """A step in the life of a job: the claim (`fence`) that it belongs to, its worker, and a sentence if it has one."""

    job_event_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    job_id: Mapped[int] = mapped_column(KEY, index=True)
    fence: Mapped[int] = mapped_column(BigInteger)
    step: Mapped[str] = mapped_column(String(16))
    worker: Mapped[str] = mapped_column(String(255))
    at: Mapped[datetime]
    sentence: Mapped[str | None] = mapped_column(TEXT)


class Worker(Base):
    """A worker process: seen every few seconds. `jobs` is the number of its jobs, `job_id` the oldest of them.

    `is_ending`: it finishes its slices, and takes no further job.
    """

    worker_id: Mapped[int] = mapped_column(KEY, primary_key=True)
    name: Mapped[str] = mapped_column(String(255), unique=True)
    host: Mapped[str] = mapped_column(String(255))
    pid: Mapped[int]
    version: Mapped[str] = mapped_column(String(32))
    began_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    job_id: Mapped[int | None] = mapped_column(KEY)
    jobs: Mapped[int] = mapped_column(default=0, server_default="0")
    is_ending: Mapped[bool] = mapped_column(default=False, server_default=false())
