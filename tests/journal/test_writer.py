"""The one thread that writes: what goes into a transaction together, and what a failure costs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Self

import pytest
from sqlalchemy import Engine, insert, select, update
from sqlalchemy.orm import Session

from metaharvest.database.engine import readers, run_lock, writers
from metaharvest.database.models import HarvestRun, HarvestSiteSchedule
from metaharvest.errors import DatabaseError, RunLost
from metaharvest.journal.writer import GroupLimits, Writer, by_lock
from support.databases import open_sqlite_file

NOW = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
FOR_EVER = GroupLimits(notes=1000, size=1000, seconds=60)


@dataclass(frozen=True)
class Named:
    """A note, which is written as a site of this name."""

    name: str
    size: int = 1
    site_id: int = 1

    def refused(self, reason: str) -> Self | None:
        """None: there is no smaller note."""

    def put_off(self) -> Self:
        """It stores nothing."""
        return self


def add(session: Session, names: Sequence[str]) -> Sequence[str]:
    """Write sites of these names."""
    for name in names:
        session.execute(insert(HarvestSiteSchedule).values(name=name, documentlisturl="u", contact_email="c"))
    return [f"{name} of {len(names)}" for name in names]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = open_sqlite_file(tmp_path / "journal.db")
    yield made
    made.dispose()


@contextmanager
def writer_on(engine: Engine, limits: GroupLimits = FOR_EVER) -> Iterator[Writer]:
    """The writer of a run."""
    with writers(engine).begin() as session:
        run = HarvestRun(harvest_date=date(2026, 11, 20), started_at=NOW, heartbeat_at=NOW, status="running", host="h")
        run.pid = 1
        session.add(run)
        session.flush()
        run_id = run.run_id

    def write_notes(session: Session, notes: Sequence[Named]) -> None:
        add(session, [note.name for note in notes])

    with run_lock(engine) as lock:
        made = Writer(engine, by_lock(engine, lock, run_id, lambda: NOW), write_notes, limits)
        try:
            yield made
        finally:
            made.close()


def names(engine: Engine) -> list[str]:
    with readers(engine)() as session:
        return list(session.scalars(select(HarvestSiteSchedule.name).order_by(HarvestSiteSchedule.site_schedule_id)))


def test_what_was_handed_over_is_written_before_the_request_that_came_after_it(engine: Engine) -> None:
    with writer_on(engine) as writer:
        writer.hand_over(Named("first"))
        writer.hand_over(Named("second"))
        assert writer.request(add, "third").result(20) == "third of 1"
        assert names(engine) == ["first", "second", "third"]


def test_requests_of_one_kind_that_wait_are_written_together_and_each_gets_its_own_answer(engine: Engine) -> None:
    is_busy, go_on = threading.Event(), threading.Event()

    def hold(session: Session, values: Sequence[str]) -> Sequence[str]:
        is_busy.set()
        assert go_on.wait(20)
        return values

    with writer_on(engine) as writer:
        held = writer.request(hold, "held", hurry=True)
        assert is_busy.wait(20)
        waiting = [writer.request(add, name) for name in ("a", "b", "c")]
        go_on.set()
        assert held.result(20) == "held"
        assert [each.result(20) for each in waiting] == ["a of 3", "b of 3", "c of 3"]


def test_a_request_that_fails_costs_itself_alone(engine: Engine) -> None:
    is_busy, go_on = threading.Event(), threading.Event()

    def hold(session: Session, values: Sequence[str]) -> Sequence[str]:
        is_busy.set()
        assert go_on.wait(20)
        return values

    def fail(session: Session, values: Sequence[str]) -> Sequence[str]:
        raise ValueError("not this one")

    with writer_on(engine) as writer:
        writer.request(hold, "held", hurry=True)
        assert is_busy.wait(20)
        writer.hand_over(Named("note"))
        good, bad = writer.request(add, "good"), writer.request(fail, "bad")
        go_on.set()
        assert good.result(20) == "good of 1"
        with pytest.raises(ValueError, match="not this one"):
            bad.result(20)
        writer.require_writable()
        assert names(engine) == ["note", "good"]


def test_notes_are_written_without_a_request_when_there_are_enough_of_them(engine: Engine) -> None:
    stored, sizes = threading.Event(), list[int]()
    with writer_on(engine, GroupLimits(notes=2, size=1000, seconds=60)) as writer:

        def note(size: int) -> None:
            sizes.append(size)
            stored.set()

        writer.stored = note
        writer.hand_over(Named("first", 3))
        writer.hand_over(Named("second", 4))
        assert stored.wait(20)
        assert sizes == [7]


def test_the_bytes_of_a_note_that_the_database_refuses_are_given_back(engine: Engine) -> None:
    given_back = list[int]()
    with writer_on(engine) as writer:
        writer.stored = given_back.append
        writer.hand_over(Named("good", 4))
        writer.hand_over(Named("good", 3))
    assert names(engine) == ["good"]
    assert sum(given_back) == 7


def test_what_waits_is_written_before_the_writer_is_closed(engine: Engine) -> None:
    with writer_on(engine) as writer:
        writer.hand_over(Named("last"))
    assert names(engine) == ["last"]


def test_a_run_that_another_one_has_taken_over_writes_nothing_more(engine: Engine) -> None:
    with writer_on(engine) as writer:
        with writers(engine).begin() as session:
            session.execute(update(HarvestRun).values(status="interrupted"))
        with pytest.raises(RunLost):
            writer.request(add, "late").result(20)
        with pytest.raises(RunLost):
            writer.hand_over(Named("later"))
        with pytest.raises(RunLost):
            writer.require_writable()
    assert names(engine) == []


def test_an_abandoned_run_writes_nothing_of_what_waits(engine: Engine) -> None:
    with writer_on(engine) as writer:
        writer.hand_over(Named("waits"))
        writer.abandon()
        with pytest.raises(RunLost):
            writer.request(add, "late").result(20)
    assert names(engine) == []


class Unmeasured(Named):
    """A note that fails in the writer's thread for lack of memory."""

    def __getattribute__(self, name: str) -> object:
        if name == "size" and threading.current_thread().name == "writer":
            raise MemoryError
        return super().__getattribute__(name)


def test_without_memory_nobody_waits_for_ever(engine: Engine) -> None:
    with writer_on(engine) as writer:
        writer.hand_over(Unmeasured("a"))
        with pytest.raises(DatabaseError):
            writer.request(add, "b").result(timeout=20)


def test_a_moment_without_memory_costs_nothing(engine: Engine) -> None:
    tries = []

    def add_soon(session: Session, names: Sequence[str]) -> Sequence[str]:
        tries.append(names)
        if len(tries) < 3:
            raise MemoryError
        return add(session, names)

    with writer_on(engine) as writer:
        writer.hand_over(Named("a"))
        assert writer.request(add_soon, "b").result(timeout=20) == "b of 1"
    assert names(engine) == ["a", "b"]
