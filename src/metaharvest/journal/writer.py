"""The one thread that writes: it takes requests from one queue and commits waiting ones together (group commit).

Outcomes of documents are handed over without waiting; they are committed when there are many of them, or many bytes, or
when they are old. Everything else is a request whose caller waits for the answer: it is committed at once, together
with everything that was handed over before it. Every commit checks that the run is still the one that may write.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime
from typing import Any, Protocol, Self, TypeVar

from sqlalchemy import Engine, bindparam, update
from sqlalchemy.orm import Session

from metaharvest.database.batches import grouped
from metaharvest.database.dialects import (
    is_about_statement,
    is_full,
    is_locked_out,
    may_be_about_statement,
    reason_of,
)
from metaharvest.database.engine import database_errors, writers
from metaharvest.database.locks import HeldLock
from metaharvest.database.models import Base, HarvestRun
from metaharvest.errors import DatabaseError, NotWritten, RunLost
from metaharvest.model import RunStatus
from metaharvest.model.values import frozen

log = logging.getLogger(__name__)

GATHER_SECONDS = 0.005
"""The time that a request waits for others that could be written in the same transaction."""

_FURTHER_TRIES = 3

_MEMORY_SECONDS = 0.5
"""The time until a transaction that had no memory is tried again: large documents hold it while they are checked."""

_MEMORY_TRIES = 6
"""The number of such waits of one writer, so that heartbeats go on."""

_RUNS = Base.metadata.tables[HarvestRun.__tablename__]
_HEARTBEAT = (
    update(_RUNS)
    .where(_RUNS.c.run_id == bindparam("run"), _RUNS.c.status == RunStatus.RUNNING.value)
    .values(heartbeat_at=bindparam("now"))
)

_Value = TypeVar("_Value")
_Answer = TypeVar("_Answer")

MayWrite = Callable[[Session], bool]
"""True if the writer is still the one that may write. It may raise RunLost with a sentence of its own."""

Write = Callable[[Session, Sequence[_Value]], Sequence[_Answer]]
"""Writes all values of its kind at once, with an answer for each. It may be called again if the transaction failed."""


@frozen
class GroupLimits:
    """Notes are committed at this number, at this number of bytes of documents, or at this age.

    Two pages of records are 400 notes: the next request commits them.
    """

    notes: int = 500
    size: int = 16_000_000
    seconds: float = 1.0


class Note(Protocol):
    """A value that is handed over; nobody waits for its commit."""

    @property
    def size(self) -> int:
        """Size in bytes of the document that it stores."""

    @property
    def site_id(self) -> int:
        """The site that it is about."""

    def refused(self, reason: str) -> Self | None:
        """The same with less to write, as the database refused it alone; None if there is nothing less."""

    def put_off(self) -> Self:
        """The same without its document, as the database has no room for it."""


@frozen
class _Request:
    """A value to be written, and the future that its caller waits for."""

    write: Write[Any, Any]
    value: object
    answer: Future[Any] = field(default_factory=Future)


class Writer:
    """Writes for one run as long as `may_write` is true. `write_notes` writes a group of notes.

    `may_write` is called in each transaction, before anything is written.

    `stored` is called in the writer's thread with the bytes of the documents of a group, also of documents that the
    database refused: they are no longer in memory.

    A statement that the database refuses costs only its own note or request. A full disk costs the site that has stored
    most in this run: `without_room` has the sites whose documents are put off.

    After a transaction failed because the database is away, or the run is lost, nothing is written any more: otherwise
    a site run could be closed without some of its outcomes, or documents deferred only because of the database. The
    next run resumes all of it.
    """

    def __init__(
        self,
        engine: Engine,
        may_write: MayWrite,
        write_notes: Callable[[Session, Sequence[Any]], None],
        limits: GroupLimits,
    ) -> None:
        self._engine = engine
        self._may_write = may_write
        self._write_notes = write_notes
        self._limits = limits
        self._sessions = writers(engine)
        self._queue: deque[Note | _Request] = deque()
        self._handed_over = self._taken = 0
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._is_open = True
        self._failure: DatabaseError | RunLost | None = None
        self._memory_tries_left = _MEMORY_TRIES
        self.stored: Callable[[int], None] = lambda size: None
        self.without_room: set[int] = set()
        self._stored_by: Counter[int] = Counter()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> int:
        """The approximate number of notes and requests that wait to be written."""
        return len(self._queue)

    def hand_over(self, note: Note) -> None:
        """Have this written, with others, in the order in which they come.

        Raises DatabaseError or RunLost if the run cannot write any more.
        """
        self.require_writable()
        self._queue.append(note)
        self._handed_over += note.size
        if len(self._queue) >= self._limits.notes or self._handed_over - self._taken >= self._limits.size:
            self._wake.set()

    def request(self, write: Write[_Value, _Answer], value: _Value, *, hurry: bool = False) -> Future[_Answer]:
        """Write this value after everything that was handed over before it; return the answer, or raise the error.

        `hurry`: it does not wait for others that could be written in the same transaction, as there are none.
        """
        if hurry:
            self._hurry.set()
        request = _Request(write, value)
        self._queue.append(request)
        self._wake.set()
        return request.answer

    def abandon(self) -> None:
        """Stop writing: the next run resumes the work that is under way."""
        self._failure = self._failure or RunLost("This run was ended; the next run goes on with what is left.")

    def close(self) -> None:
        """End the thread, after it has written the waiting values."""
        self._is_open = False
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        """Write waiting values when a caller waits, when there are many, and otherwise now and then."""
        while self._is_open or self._queue:
            if self._is_open and self._wake.wait(self._limits.seconds):
                self._wake.clear()
                if len(self._queue) < self._limits.notes:
                    self._hurry.wait(GATHER_SECONDS)
                    self._hurry.clear()
            notes: list[Note] = []
            requests: list[_Request] = []
            try:
                self._gather(notes, requests)
                size = sum(note.size for note in notes)
                self._serve(notes, requests)
                if size:
                    self.stored(size)
            except Exception as error:
                # If the thread ended, everybody would wait. Some notes may be lost, and with them the run.
                message = f"The journal could not be written: {type(error).__name__}: {error}"
                self._failure = self._failure or DatabaseError(message)
                self._fail([request for request in requests if not request.answer.done()], error)
                self._wake.set()
                log.exception("The journal could not be written")

    def _gather(self, notes: list[Note], requests: list[_Request]) -> None:
        """Move waiting values into the next transaction, in their order, up to the limits."""
        size = 0
        while self._queue and len(notes) < self._limits.notes and size < self._limits.size:
            item = self._queue[0]
            if isinstance(item, _Request):
                requests.append(item)
                self._queue.popleft()
                # From here on it cannot be cancelled any more.
                if not item.answer.set_running_or_notify_cancel():
                    requests.pop()
            else:
                self._queue.popleft()
                notes.append(item)
                size += item.size
        self._taken += size
        if self._queue:
            self._wake.set()

    def _serve(self, notes: Sequence[Note], requests: Sequence[_Request]) -> None:
        """Write these in one transaction; if that fails, write less: see _serve_less()."""
        if not notes and not requests:
            return
        if self.without_room:
            notes = [note.put_off() if note.site_id in self.without_room else note for note in notes]
        try:
            answers = self._commit(notes, requests)
        except Exception as error:  # noqa: BLE001 - raised again where the answer is awaited
            self._serve_less(notes, requests, error)
            return
        for request, answer in zip(requests, answers, strict=True):
            request.answer.set_result(answer)
        for note in notes:
            self._stored_by[note.site_id] += note.size

    def _serve_less(self, notes: Sequence[Note], requests: Sequence[_Request], error: Exception) -> None:
        """After a failure: without the documents of the largest writer, or each alone, or one with less in it."""
        if self._failure is not None:
            self._fail(requests, error)
        elif is_full(error):
            self._serve_without_largest(notes, requests, error)
        elif len(notes) + len(requests) > 1:
            for note in notes:
                self._serve([note], ())
            for request in requests:
                self._serve((), [request])
        elif notes:
            log.warning("The database refused a row of the journal: %s", error)
            self._serve([less for note in notes if (less := note.refused(reason_of(_behind(error))))], ())
        else:
            refused = NotWritten(reason_of(_behind(error))) if isinstance(error, DatabaseError) else error
            self._fail(requests, refused)

    def _serve_without_largest(self, notes: Sequence[Note], requests: Sequence[_Request], error: Exception) -> None:
        """The disk is full: put off the documents of the site that has stored most; without one, nothing can go in."""
        would_be = self._stored_by.copy()
        for note in notes:
            would_be[note.site_id] += note.size
        largest = next((site for site, size in would_be.most_common() if size and site not in self.without_room), None)
        if largest is None:
            self._failure = error if isinstance(error, DatabaseError) else DatabaseError(str(error))
            self._fail(requests, self._failure)
            return
        log.warning("The database is full: the documents of the site that has stored most are put off")
        self.without_room.add(largest)
        self._serve(notes, requests)

    def _fail(self, requests: Sequence[_Request], error: Exception) -> None:
        for request in requests:
            request.answer.set_exception(error)

    def _commit(self, notes: Sequence[Note], requests: Sequence[_Request]) -> list[object]:
        """The answers to the requests. Tries again a few times after a deadlock, a lock time-out, or without memory."""
        tries_left = _FURTHER_TRIES
        while True:
            self.require_writable()
            try:
                with self._transaction() as session:
                    return self._write(session, notes, requests)
            except MemoryError:
                if not self._memory_tries_left:
                    raise
                self._memory_tries_left -= 1
                log.warning("There was no memory to write the journal; it is tried again in %s s", _MEMORY_SECONDS)
                time.sleep(_MEMORY_SECONDS)
            except (DatabaseError, RunLost) as error:
                if tries_left and is_locked_out(error):
                    tries_left -= 1
                    log.warning("The journal writes again what the database gave up: %s", error)
                    continue
                if not (is_full(error) or is_about_statement(error) or self._closed_for_statement(error)):
                    self._failure = self._failure or error
                raise

    def _closed_for_statement(self, error: Exception) -> bool:
        """True if the connection was lost at a large statement, and another one works: the statement was at fault."""
        if not may_be_about_statement(error):
            return False
        try:
            with self._transaction():
                return True
        except (DatabaseError, RunLost):
            return False

    def require_writable(self) -> None:
        """Raises DatabaseError or RunLost if the run cannot write any more, also if it was abandoned meanwhile."""
        if self._failure is not None:
            raise type(self._failure)(str(self._failure)) from self._failure

    def _write(self, session: Session, notes: Sequence[Note], requests: Sequence[_Request]) -> list[object]:
        """Notes first: closing a site run counts its outcomes. Requests of one kind are written together."""
        if notes:
            self._write_notes(session, notes)
        kinds = grouped((request.write, number) for number, request in enumerate(requests))
        answers: dict[int, object] = {}
        for write, numbers in kinds.items():
            written = write(session, [requests[number].value for number in numbers])
            answers |= zip(numbers, written, strict=True)
        return [answers[number] for number in range(len(requests))]

    @contextmanager
    def _transaction(self) -> Iterator[Session]:
        """A transaction that commits only if the run is still ours."""
        with database_errors(self._engine), self._sessions.begin() as session:
            if not self._may_write(session):
                raise RunLost(LOST)
            yield session


def _behind(error: Exception) -> BaseException:
    """The error of the database behind the sentence about it."""
    return error.__cause__ or error


LOST = "This run has lost its lock, or another run has taken over; the next run goes on with what is left."


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
