"""Does what there is to do in threads, a few at a time; what is to be tried again waits, and takes no place."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

from metaharvest.ending import Ending

MOST_WAITING = 1000
"""While so many wait to be tried again, nothing new is begun: memory stays bounded."""

IDLE_SECONDS = 1.0
_LOOK_SECONDS = 0.2
"""How long one waits for a result before the time-keeper is called; before one looks whether the waiting is over."""

Todo = TypeVar("Todo")
Done = TypeVar("Done")


@dataclass(frozen=True, slots=True)
class Again(Generic[Todo]):
    """What a thread returns where `todo` is to be done once more, not before `at` (time.monotonic)."""

    at: float
    todo: Todo


class Line(Protocol):
    """Where one waits for something that is in use."""

    def join(self, call: Callable[[], None]) -> None:
        """Have `call` called once it seems to be free."""

    def call_next(self) -> None:
        """Call who comes next, if it is still free."""


@dataclass(frozen=True, slots=True)
class InLine(Generic[Todo]):
    """What a thread returns where `todo` is to be done once it is its turn; it counts as under way until then."""

    line: Line
    todo: Todo


@dataclass(order=True, slots=True)
class _Waiting(Generic[Todo]):
    """A turn that waits, and those of the same document that come after it; `number` keeps the order of arrival."""

    at: float
    number: int
    todo: Todo = field(compare=False)
    rest: deque[Todo] = field(compare=False)


def side_by_side(
    chains: Iterator[deque[Todo]],
    work: Callable[[Todo], Done | Again[Todo] | InLine[Todo]],
    following: Callable[[Done, Todo], Todo],
    workers: Executor,
    at_once: int,
    ending: Ending,
    idle: Callable[[], None],
) -> Iterator[tuple[Todo, Done]]:
    """The results of `work` as they come, `at_once` under way at a time; what is in one chain is done in its order.

    `following` gives the next of a chain once the result of the one before is known. `idle` is called now and then
    while there is nothing to give. Once it is to end, what waits is handed out at once.
    """
    under_way: dict[Future[Done | Again[Todo]], tuple[Todo, deque[Todo]]] = {}
    ended: SimpleQueue[Future[Done | Again[Todo]]] = SimpleQueue()
    waiting: list[_Waiting[Todo]] = []
    numbers = count()

    def begin(todo: Todo, rest: deque[Todo]) -> None:
        future: Future[Done | Again[Todo]] = _submitted(todo, work, workers)
        under_way[future] = (todo, rest)
        future.add_done_callback(ended.put)

    def begin_more() -> None:
        while len(under_way) < at_once:
            if waiting and (waiting[0].at <= time.monotonic() or ending.why()):
                turn = heappop(waiting)
                begin(turn.todo, turn.rest)
            elif len(waiting) < MOST_WAITING and (chain := next(chains, None)) is not None:
                begin(chain.popleft(), chain)
            else:
                return

    try:
        begin_more()
        while under_way or waiting:
            try:
                future = ended.get(timeout=_patience(waiting, len(under_way) < at_once))
            except Empty:
                idle()
                begin_more()
                continue
            todo, rest = under_way.pop(future)
            result = future.result()
            if isinstance(result, Again):
                heappush(waiting, _Waiting(result.at, next(numbers), result.todo, rest))
                begin_more()
                continue
            if not rest:
                begin_more()
            yield todo, result
            if rest:
                # Only now, as the one before it is recorded: revisions go in in ascending order.
                begin(following(result, rest.popleft()), rest)
    finally:
        for future in under_way:
            future.cancel()
        wait(under_way)


def _submitted(
    todo: Todo, work: Callable[[Todo], Done | Again[Todo] | InLine[Todo]], workers: Executor
) -> Future[Done | Again[Todo]]:
    """What `work` gives in the end; while it waits in a line it holds no thread."""
    future: Future[Done | Again[Todo]] = Future()

    def attempt(todo: Todo, line: Line | None) -> None:
        try:
            result = None if future.cancelled() else work(todo)
        except BaseException as error:  # noqa: BLE001 - raised again by whoever asks for the result
            if future.set_running_or_notify_cancel():
                future.set_exception(error)
            return
        finally:
            if line is not None:
                line.call_next()
        if isinstance(result, InLine):
            result.line.join(partial(submit, result.todo, result.line))
        elif future.set_running_or_notify_cancel():
            assert result is not None
            future.set_result(result)

    def submit(todo: Todo, line: Line | None) -> None:
        workers.submit(attempt, todo, line)

    submit(todo, None)
    return future


def _patience(waiting: list[_Waiting[Todo]], is_place: bool) -> float:
    """How long to wait for a result: not beyond the next turn, and not long, for the run may end meanwhile."""
    if not waiting or not is_place:
        return IDLE_SECONDS
    return min(_LOOK_SECONDS, max(0.0, waiting[0].at - time.monotonic()))
