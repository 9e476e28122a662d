"""The leases of hosts: of all processes that harvest, one at a time may send requests to a host.

A lease ends by the clock of the database, so that a process that dies loses its hosts. The row of a host also keeps the
trouble of its servers, which the next process learns with the lease.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Engine, delete, select, update
from sqlalchemy.orm import Session

from metaharvest.database.batches import batches
from metaharvest.database.clock import database_now
from metaharvest.database.dialects import is_raced
from metaharvest.database.engine import database_errors, writers
from metaharvest.database.worker_models import HostLease
from metaharvest.errors import DatabaseUnavailable
from metaharvest.model import ServerTrouble

_FAILURES_COUNT_FOR = timedelta(hours=1)
"""A server that could not be reached is requested again after this time."""

_KEPT_FOR = timedelta(days=1)
"""The row of a host that nobody holds is deleted after this time. No pause is longer."""


class HostLeases:
    """The leases of one holder. Each lasts `seconds` from its last renewal. Its methods raise DatabaseUnavailable."""

    def __init__(self, engine: Engine, seconds: float = 30.0) -> None:
        self.seconds = seconds
        self.holder = f"{socket.gethostname()[:200]} {os.getpid()} {secrets.token_hex(8)}"
        self._engine = engine

    def take(self, host: str) -> Sequence[ServerTrouble] | None:
        """Take the lease of this host, and return the trouble of its servers; None if another holder has it.

        The other one learns that somebody waits.
        """
        try:
            with self._writing() as session:
                return self._take(session, host)
        except DatabaseUnavailable as error:
            if is_raced(error):
                return None  # another process takes it at this moment
            raise

    def _take(self, session: Session, host: str) -> Sequence[ServerTrouble] | None:
        row = session.get(HostLease, host, with_for_update=True)
        now = database_now(session)
        if row is None:
            row = HostLease(host=host)
            session.add(row)
        elif row.holder not in (None, self.holder) and row.lease_until > now:
            row.wanted_at = row.wanted_at or now
            return None
        row.holder, row.lease_until, row.wanted_at = self.holder, now + timedelta(seconds=self.seconds), None
        return read_trouble(row.servers, now)

    def renew(self, hosts: Collection[str]) -> Mapping[str, bool]:
        """Renew the leases of these hosts. Returns the hosts still held, with True if another holder waits."""
        held: dict[str, bool] = {}
        for some in batches(sorted(hosts)):
            ours = (HostLease.host.in_(some), HostLease.holder == self.holder)
            with self._writing() as session:
                until = database_now(session) + timedelta(seconds=self.seconds)
                session.execute(update(HostLease).where(*ours).values(lease_until=until))
                for host, wanted_at in session.execute(select(HostLease.host, HostLease.wanted_at).where(*ours)):
                    held[host] = wanted_at is not None
        return held

    def note(self, host: str, troubles: Sequence[ServerTrouble]) -> None:
        """Write the trouble of the servers of a held host."""
        with self._writing() as session:
            servers = written_trouble(troubles, database_now(session))
            session.execute(update(HostLease).where(*self._held(host)).values(servers=servers))

    def give_back(self, host: str, troubles: Sequence[ServerTrouble]) -> None:
        """Let another holder take a held host. Without trouble, its row is deleted."""
        with self._writing() as session:
            if not troubles:
                session.execute(delete(HostLease).where(*self._held(host)))
                return
            now = database_now(session)
            free = {"holder": None, "lease_until": now, "wanted_at": None, "servers": written_trouble(troubles, now)}
            session.execute(update(HostLease).where(*self._held(host)).values(free))

    def delete_old(self) -> None:
        """Delete the rows of hosts that no process has held for a day."""
        with self._writing() as session:
            old = HostLease.lease_until < database_now(session) - _KEPT_FOR
            for some in batches(session.scalars(select(HostLease.host).where(old).order_by(HostLease.host)).all()):
                session.execute(delete(HostLease).where(HostLease.host.in_(some), old))

    def _held(self, host: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        return HostLease.host == host, HostLease.holder == self.holder

    @contextmanager
    def _writing(self) -> Iterator[Session]:
        with database_errors(self._engine), writers(self._engine)() as session, session.begin():
            yield session


def written_trouble(troubles: Sequence[ServerTrouble], now: datetime) -> str | None:
    """The trouble as JSON, with moments in place of seconds; None if there is none."""

    def moment(seconds: float) -> str:
        return (now + timedelta(seconds=seconds)).isoformat()

    rows = [
        {
            "server": each.server,
            "rest_until": moment(each.rest),
            "failures": each.failures,
            "failed_at": moment(-each.failed_before),
            "pause_until": moment(each.pause),
        }
        for each in troubles
    ]
    return json.dumps(rows) if rows else None


def read_trouble(servers: str | None, now: datetime) -> list[ServerTrouble]:
    """The trouble that is left now; failures count for an hour."""
    found = []
    for row in json.loads(servers or "[]"):
        rest, pause = (
            max((datetime.fromisoformat(row[name]) - now).total_seconds(), 0.0)
            for name in ("rest_until", "pause_until")
        )
        ago = max(now - datetime.fromisoformat(row["failed_at"]), timedelta())
        counts = row["failures"] and ago < _FAILURES_COUNT_FOR
        if counts:
            found.append(ServerTrouble(row["server"], rest, row["failures"], ago.total_seconds(), pause))
        elif rest:
            found.append(ServerTrouble(row["server"], rest))
    return found
