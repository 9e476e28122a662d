"""What `doctor` says of runs and of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from metaharvest.config.settings import Settings, WorkersSettings
from metaharvest.database.engine import writers
from metaharvest.database.models import HarvestRun
from metaharvest.database.worker_models import Job, Worker
from metaharvest.monitoring import database_checks, metrics
from metaharvest.monitoring.worker_checks import check_workers
from support.databases import open_sqlite_file
from support.journal_rows import NOW, JournalRows, new_database
from support.ports import free_port


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = open_sqlite_file(tmp_path / "journal.db")
    yield made
    made.dispose()


@pytest.mark.parametrize(
    ("status", "follows", "said"),
    [
        ("running", False, "never ended. The next run takes up what it left."),
        ("succeeded", False, "No run is under way."),
        ("succeeded", True, "is under way; its last sign of life"),
    ],
)
def test_a_run_that_ends_while_the_doctor_looks_has_ended(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, status: str, follows: bool, said: str
) -> None:
    with writers(engine).begin() as session:
        number = JournalRows(session).run().run_id

    def lock_is_held(_engine: Engine) -> bool:
        with writers(engine).begin() as session:
            session.get_one(HarvestRun, number).status = status
            if follows:
                JournalRows(session).run()
        return False

    monkeypatch.setattr(database_checks, "_lock_is_held", lock_is_held)
    with Session(engine) as session:
        checks = list(database_checks._runs(session, engine, NOW, has_workers=False))
    assert said in checks[0].message
    assert [each.message for each in checks[1:]] == (
        [] if status == "running" else [f"Run {number} of 2026-11-20 ended as succeeded."]
    )


def _worker(name: str, seen: datetime) -> Worker:
    return Worker(name=name, host="a", pid=1, version="1", began_at=seen, seen_at=seen, is_ending=False, jobs=0)


def _job(not_before: datetime) -> Job:
    return Job(
        kind="harvest_site", subject="alder", work="{}", host="", priority=0, state="ready", not_before=not_before,
        made_at=not_before,
    )  # fmt: skip


def test_silent_workers_do_not_count_as_workers() -> None:
    now, engine = datetime.now(UTC), new_database()
    with Session(engine) as session:
        session.add_all([_worker("there", now), _worker("dead", now - timedelta(minutes=5)), _job(now)])
        session.flush()
        gauges = metrics._Gauges()
        metrics._jobs(session, gauges)
    assert "metaharvest_workers 1.0" in generate_latest(gauges.registry).decode()


@pytest.mark.parametrize(("minutes", "said"), [(61, "1 hour:"), (125, "2 hours:")])
def test_a_job_that_waits_is_reported_with_its_hours(minutes: int, said: str) -> None:
    now, engine = datetime.now(UTC), new_database()
    with Session(engine) as session:
        session.add_all([_worker("there", now), _job(now - timedelta(minutes=minutes))])
        session.flush()
        settings = Settings(workers=WorkersSettings(broker=f"amqp://127.0.0.1:{free_port()}/"))
        checks = [each.message for each in check_workers(session, settings) if each.name == "jobs"]
    assert checks == [f"A job has waited for {said} more workers may be needed."]
