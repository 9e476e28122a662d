"""Lets what many threads want to have written go in together: whoever comes first writes for all who wait.

A transaction costs about as much for thirty sites as for one, and threads that wait for their turn do not contend for
the interpreter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from metaharvest.errors import DatabaseError, RunLost

GATHER_SECONDS = 0.005
"""For how long one who could write waits for others."""

_Value = TypeVar("_Value")
_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class _Request:
    """What a thread waits to have written: a value, the function that writes many such, and how that ended."""

    write: Callable[[Session, Sequence[Any]], Sequence[Any]]
    value: object
    is_done: bool = False
    answer: Any = None
    error: Exception | None = None


class Together:
    """Writes values by whoever holds `turn`; `in_transaction` makes one, again where that is worth it."""

    def __init__(
        self,
        turn: AbstractContextManager[object],
        in_transaction: Callable[[Callable[[Session], None]], None],
    ) -> None:
        self._turn = turn
        self._in_transaction = in_transaction
        self._handover = threading.Lock()
        self._requests: list[_Request] = []

    def write(self, write: Callable[[Session, Sequence[_Value]], Sequence[_Answer]], value: _Value) -> _Answer:
        """Have a value written, in one transaction with what other threads are waiting to have written; the answer.

        `write` takes all values of its kind at once, and may be called again where that failed.
        """
        request = _Request(write, value)
        with self._handover:
            self._requests.append(request)
        with self._turn:
            if not request.is_done:
                time.sleep(GATHER_SECONDS)
                self._serve()
        if request.error is not None:
            raise request.error
        answer: _Answer = request.answer
        return answer

    def _serve(self) -> None:
        with self._handover:
            requests, self._requests = self._requests, []
        error = self._error_of(requests)
        if error is not None:
            # What the database, or the loss of the run, keeps from being written for one, it keeps from all.
            alone = len(requests) > 1 and not isinstance(error, DatabaseError | RunLost)
            for request in requests:
                request.error = self._error_of([request]) if alone else error
        for request in requests:
            request.is_done = True

    def _error_of(self, requests: Sequence[_Request]) -> Exception | None:
        """Write these; what went wrong."""
        try:
            self._in_transaction(lambda session: self._write(session, requests))
        except Exception as error:  # noqa: BLE001 - it is raised in the thread that waits
            return error
        return None

    def _write(self, session: Session, requests: Sequence[_Request]) -> None:
        """Those of one kind in one go."""
        kinds: dict[object, list[_Request]] = {}
        for request in requests:
            kinds.setdefault(request.write, []).append(request)
        for of_a_kind in kinds.values():
            answers = of_a_kind[0].write(session, [request.value for request in of_a_kind])
            for request, answer in zip(of_a_kind, answers, strict=True):
                request.answer = answer
