"""Does what there is to do in threads, a few at a time; what is to be tried again waits, and takes no place."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

from metaharvest.harvest.deadlines import Ending

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
    turn: _Turn[Todo] = field(compare=False)


@dataclass(slots=True)
class _Turn(Generic[Todo]):
    """What is next to be done of a chain, and what comes after it."""

    todo: Todo
    rest: deque[Todo]


def side_by_side(
    chains: Iterator[deque[Todo]],
    work: Callable[[Sequence[Todo]], Sequence[Done | Again[Todo] | InLine[Todo]]],
    together: Callable[[], int],
    following: Callable[[Done, Todo], Todo],
    workers: Executor,
    at_once: int,
    ending: Ending,
    idle: Callable[[], None],
) -> Iterator[tuple[Todo, Done]]:
    """The results of `work` as they come, `at_once` threads under way; what is in one chain is done in its order.

    `work` gets as many to do, one after the other, as `together` says, and gives what became of the first, and of as
    many more as it did. `following` gives the next of a chain once the result of the one before is known. `idle` is
    called now and then while there is nothing to give. Once it is to end, what waits is handed out at once.
    """
    under_way: dict[Future[Sequence[Done | Again[Todo]]], list[_Turn[Todo]]] = {}
    ended: SimpleQueue[Future[Sequence[Done | Again[Todo]]]] = SimpleQueue()
    ready: deque[_Turn[Todo]] = deque()
    waiting: list[_Waiting[Todo]] = []
    numbers = count()

    def begin(turns: list[_Turn[Todo]]) -> None:
        submitted: _Submitted[Todo, Done] = _Submitted([turn.todo for turn in turns], work, workers)
        future = submitted.future
        under_way[future] = turns
        future.add_done_callback(ended.put)

    def begin_more() -> None:
        while len(under_way) < at_once:
            if waiting and (waiting[0].at <= time.monotonic() or ending.why()):
                begin([heappop(waiting).turn])
                continue
            wanted = together()
            while len(ready) < wanted and len(waiting) < MOST_WAITING and (chain := next(chains, None)) is not None:
                ready.append(_Turn(chain.popleft(), chain))
            if not ready:
                return
            begin([ready.popleft() for _ in range(min(wanted, len(ready)))])

    try:
        begin_more()
        while under_way or waiting or ready:
            try:
                future = ended.get(timeout=_patience(waiting, len(under_way) < at_once))
            except Empty:
                idle()
                begin_more()
                continue
            turns, results = under_way.pop(future), future.result()
            ready.extendleft(reversed(turns[len(results) :]))
            done: list[tuple[_Turn[Todo], Done]] = []
            for turn, result in zip(turns, results, strict=False):
                if isinstance(result, Again):
                    heappush(waiting, _Waiting(result.at, next(numbers), _Turn(result.todo, turn.rest)))
                else:
                    done.append((turn, result))
            begin_more()
            for turn, result in done:
                yield turn.todo, result
                if turn.rest:
                    # Only now, as the one before it is recorded: revisions go in in ascending order.
                    ready.appendleft(_Turn(following(result, turn.rest.popleft()), turn.rest))
            begin_more()
    finally:
        for future in under_way:
            future.cancel()
        wait(under_way)


class _Submitted(Generic[Todo, Done]):
    """What `work` gives in the end, as a future; while it waits in a line it holds no thread.

    No function that refers to itself, as results, with documents in them, would live until the garbage collector comes.
    """

    def __init__(
        self,
        todos: Sequence[Todo],
        work: Callable[[Sequence[Todo]], Sequence[Done | Again[Todo] | InLine[Todo]]],
        workers: Executor,
    ) -> None:
        self.future: Future[Sequence[Done | Again[Todo]]] = Future()
        self._work = work
        self._workers = workers
        self._submit(todos, None)

    def _submit(self, todos: Sequence[Todo], line: Line | None) -> None:
        self._workers.submit(self._attempt, todos, line)

    def _attempt(self, todos: Sequence[Todo], line: Line | None) -> None:
        future = self.future
        try:
            results = [] if future.cancelled() else self._work(todos)
        except BaseException as error:  # noqa: BLE001 - raised again by whoever asks for the result
            if future.set_running_or_notify_cancel():
                future.set_exception(error)
            return
        finally:
            if line is not None:
                line.call_next()
        if results and isinstance(first := results[0], InLine):
            first.line.join(partial(self._submit, [first.todo, *todos[1:]], first.line))
        elif future.set_running_or_notify_cancel():
            # One that has to wait for its turn after others were done is simply not done yet.
            future.set_result([result for result in results if not isinstance(result, InLine)])


def _patience(waiting: list[_Waiting[Todo]], is_place: bool) -> float:
    """How long to wait for a result: not beyond the next turn, and not long, for the run may end meanwhile."""
    if not waiting or not is_place:
        return IDLE_SECONDS
    return min(_LOOK_SECONDS, max(0.0, waiting[0].at - time.monotonic()))
