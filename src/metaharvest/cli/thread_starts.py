"""A limit for the start of threads.

Python waits without end for a new thread that had no memory to begin: https://github.com/python/cpython/issues/140746
Such a wait in the event loop stops the whole run, which then keeps its lock.
"""

from __future__ import annotations

import threading

_LOOKS = 10
_LOOK_SECONDS = 1.0
"""Seconds of one wait. If a long call keeps all threads from running, it counts as one look, however long it takes."""

_start = threading.Thread.start


class _NotBegun(RuntimeError):
    """The thread has not begun. Python has the same words for a thread that the system refuses."""

    def __init__(self) -> None:
        super().__init__("can't start new thread: it did not begin")


class _Beginning(threading.Event):
    """The event that a new thread sets."""

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the thread. Raises RuntimeError if it does not begin."""
        if timeout is not None:
            return super().wait(timeout)
        if not any(super(_Beginning, self).wait(_LOOK_SECONDS) for _ in range(_LOOKS)):
            raise _NotBegun
        return True


def limit_thread_starts() -> None:
    """Let each start of a thread in this process raise RuntimeError if the thread does not begin within ten seconds.

    This holds for the threads of libraries, too: no public setting does that.
    """
    threading.Thread.start = _limited_start  # type: ignore[method-assign, assignment]


def _limited_start(thread: threading.Thread) -> None:
    # `_started` and `_limbo` are names of Python's own: an instance has the event, and the module its unborn threads.
    begun: threading.Event = thread._started  # type: ignore[attr-defined]
    if not begun.is_set():
        thread._started = _Beginning()  # type: ignore[attr-defined]
    try:
        _start(thread)
    except _NotBegun:
        threading._limbo.pop(thread, None)  # type: ignore[attr-defined]
        raise
