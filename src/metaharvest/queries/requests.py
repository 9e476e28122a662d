"""The requests of people: waiting, taken by a run, ended; and the daemon that may take them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from metaharvest.database.models import DaemonState, HarvestRequest, HarvestRun
from metaharvest.model import RunStatus
from metaharvest.model.mappings import record_of
from metaharvest.model.requests import OPEN, RequestKind, RequestState
from metaharvest.model.values import frozen
from metaharvest.queries.records import equalities, row_of

_DAEMON_SILENT_AFTER = timedelta(minutes=2)
"""A daemon that was not seen for this time has ended, or its machine has: it notes itself every half minute."""


@frozen(kw_only=True)
class RequestRecord:
    """A request. `kind`, `scope` and `state` are values of model/requests.py; `site` is None for a whole run."""

    request_id: int
    kind: str
    site_id: int | None
    site: str | None
    scope: str | None
    priority: int
    asked_by: str
    asked_via: str
    asked_at: datetime
    state: str
    sentence: str | None
    run_id: int | None
    taken_at: datetime | None
    ended_at: datetime | None

    @property
    def is_open(self) -> bool:
        """True if it waits, or a run has taken it."""
        return self.state in OPEN


@frozen
class RequestFilter:
    """The selection of requests; None or empty: any."""

    site_id: int | None = None
    kinds: Sequence[RequestKind] = ()
    states: Sequence[RequestState] = ()


@frozen
class DaemonRecord:
    """The daemon that is there, and the time of its next run; None while it harvests."""

    host: str
    pid: int
    next_run_at: datetime | None
    zone: str


def requests(
    session: Session, wanted: RequestFilter, limit: int | None = None, after: int | None = None
) -> list[RequestRecord]:
    """The requests, the newest first; the next page begins `after` the last request of this one."""
    conditions = equalities(
        (HarvestRequest.site_schedule_id, wanted.site_id),
        (HarvestRequest.kind, wanted.kinds),
        (HarvestRequest.state, wanted.states),
    )
    if after is not None:
        conditions.append(HarvestRequest.request_id < after)
    rows = select(HarvestRequest).where(*conditions).order_by(HarvestRequest.request_id.desc()).limit(limit)
    return [_record(row) for row in session.scalars(rows)]


def open_requests(session: Session, site_id: int | None = None) -> list[RequestRecord]:
    """The requests that wait, or that a run has taken, the newest first: all of them, or of this site."""
    return requests(session, RequestFilter(site_id, states=(RequestState.WAITING, RequestState.TAKEN)))


def request_record(session: Session, request_id: int) -> RequestRecord | None:
    """The request of this number; None if there is none."""
    row = row_of(session, HarvestRequest, request_id)
    return None if row is None else _record(row)


def daemon(session: Session, now: datetime) -> DaemonRecord | None:
    """The daemon, if it is there. It does not note itself while it harvests."""
    row = session.get(DaemonState, 1)
    if row is None:
        return None
    its = (HarvestRun.host == row.host, HarvestRun.pid == row.pid, HarvestRun.status == RunStatus.RUNNING.value)
    if now - row.seen_at > _DAEMON_SILENT_AFTER and session.scalar(select(HarvestRun.run_id).where(*its)) is None:
        return None
    next_run = row.next_run_at if row.next_run_at is not None and row.next_run_at > now else None
    return DaemonRecord(row.host, row.pid, next_run, row.zone)


def _record(row: HarvestRequest) -> RequestRecord:
    return record_of(RequestRecord, row, site_id=row.site_schedule_id, site=row.site_name)
