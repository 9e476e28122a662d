"""An event loop that waits for no thread that has died.

A thread without memory may die before it delivers its result, or its result may not reach the event loop. The call then
fails with MemoryError, which costs one document or one site; otherwise the run would wait without end, with its lock.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

_LOOK_SECONDS = 5.0
"""Seconds between two looks at the calls. A call is lost if two looks in a row find that it has ended."""


class RunLoop(asyncio.SelectorEventLoop):
    """The event loop of a run. A call in a thread raises MemoryError if its thread dies."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[asyncio.Future[Any], _Call] = {}
        self._reading: ThreadPoolExecutor | None = None
        self._look: asyncio.TimerHandle | None = None

    def set_default_executor(self, executor: ThreadPoolExecutor) -> None:  # type: ignore[override]
        """Let calls without an executor run in these threads."""
        super().set_default_executor(executor)
        self._reading = executor

    def run_in_executor(  # type: ignore[override]
        self, executor: ThreadPoolExecutor | None, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Call `func` in a thread of `executor`, or of the default one."""
        call = _Call(partial(func, *args), executor or self._reading)
        answer: asyncio.Future[Any] = super().run_in_executor(executor, call)
        self._calls[answer] = call
        answer.add_done_callback(self._forget)
        if self._look is None:
            self._look = self.call_later(_LOOK_SECONDS, self._look_for_lost)
        return answer

    def _forget(self, answer: asyncio.Future[Any]) -> None:
        self._calls.pop(answer, None)

    def _look_for_lost(self) -> None:
        try:
            for answer, call in list(self._calls.items()):
                if call.is_lost() and not answer.done():
                    answer.set_exception(MemoryError("a thread died"))
        finally:
            self._look = self.call_later(_LOOK_SECONDS, self._look_for_lost) if self._calls else None


class _Call:
    """A call, the thread that has taken it, and the state of both."""

    def __init__(self, call: Callable[[], Any], pool: ThreadPoolExecutor | None) -> None:
        self._call = call
        self._pool = pool
        self._thread: threading.Thread | None = None
        self._has_ended = False
        self._was_over = False

    def __call__(self) -> Any:
        self._thread = threading.current_thread()
        try:
            return self._call()
        finally:
            self._has_ended = True

    def is_lost(self) -> bool:
        """True if the call was over at the last look, too: its result does not come any more."""
        was_over, self._was_over = self._was_over, self._is_over()
        return was_over and self._was_over

    def _is_over(self) -> bool:
        """True if the call has ended, or no thread is left that could begin or end it."""
        # `_threads` is a name of Python's own.
        threads = [self._thread] if self._thread else list(getattr(self._pool, "_threads", ()))
        return self._has_ended or not any(thread.is_alive() for thread in threads)
