"""The clock that all machines with workers share."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self

import pytest
from sqlalchemy import create_engine

from metaharvest.database import clock
from metaharvest.monitoring.worker_checks import check_clock
from support.databases import TestDatabase
from support.harvester import Harvester


class TenMinutesAhead(datetime):
    """The clock of a machine that is wrong."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Self:
        right = datetime.now(tz) + timedelta(minutes=10)
        return cls.fromtimestamp(right.timestamp(), tz)


@pytest.fixture
def machine_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "datetime", TenMinutesAhead)


@pytest.mark.usefixtures("machine_ahead")
def test_with_workers_the_time_is_the_time_of_the_database(harvester: Harvester, database: TestDatabase) -> None:
    settings = harvester.config.read_text(encoding="utf-8")
    harvester.config.write_text(f'{settings}[workers]\nbroker = "amqp://guest@127.0.0.1:1/"\n', encoding="utf-8")
    opened = harvester.opened()
    opened.engine  # noqa: B018 - it is read only while the database is open
    minutes = round((opened.now() - datetime.now(UTC)) / timedelta(minutes=1))
    opened.close()
    assert minutes == (10 if database.kind == "sqlite" else 0)


def test_only_the_first_time_waits_for_the_database() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        engine = create_engine(f"postgresql+psycopg://nobody@127.0.0.1:{silent.getsockname()[1]}/nothing")
        shared = clock.DatabaseClock(lambda: engine)
        shared._answer = datetime(2026, 11, 20, tzinfo=UTC), time.monotonic()
        assert shared().date().isoformat() == "2026-11-20"
        assert shared._reading.locked(), "a thread still waits"
    with shared._reading:
        assert shared._next > time.monotonic()


def test_a_machine_without_threads_goes_on_from_the_last_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    engine = create_engine("postgresql+psycopg://nobody@127.0.0.1/nothing")
    shared = clock.DatabaseClock(lambda: engine)
    shared._answer = datetime(2026, 11, 20, tzinfo=UTC), time.monotonic()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert shared().date().isoformat() == "2026-11-20"
    assert not shared._reading.locked(), "the next call tries again"


@pytest.mark.usefixtures("machine_ahead")
def test_all_callers_wait_for_the_first_answer(harvester: Harvester, database: TestDatabase) -> None:
    shared = clock.DatabaseClock(lambda: harvester.engine)
    with ThreadPoolExecutor(8) as threads:
        times = [each.result() for each in [threads.submit(shared) for _ in range(8)]]
    right = datetime.now(UTC) + timedelta(minutes=10 if database.kind == "sqlite" else 0)
    assert all(abs(each - right) < timedelta(minutes=1) for each in times)


def test_a_machine_with_another_time_than_the_database_is_a_warning() -> None:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    assert not list(check_clock(now, now + timedelta(seconds=50)))
    [warning] = check_clock(now + timedelta(minutes=10), now)
    assert "It is 10 minutes ahead of the clock of the database" in warning.message
    [warning] = check_clock(now - timedelta(minutes=1, seconds=1), now)
    assert "It is 1 minute behind the clock of the database" in warning.message
