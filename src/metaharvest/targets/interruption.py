"""Ends the requests of a target to a server when the run, or the site, must end.

One call of a target may send a server thousands of requests. The caller sets a check for the end with `interrupted_by`.
Each loop over a server's responses calls `require_time`. An upload that has begun is finished.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import ParamSpec, TypeVar

from metaharvest.errors import TargetError
from metaharvest.model import Finding

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

Reason = Callable[[], Finding | None]
"""The reason to begin nothing more; None: go on."""

_reason: ContextVar[Reason] = ContextVar("reason", default=lambda: None)
_LOOK_EVERY = 0.2


class Interrupted(TargetError):
    """The requests to a target ended, as the run or the site must end. It is not the target's fault."""


@contextmanager
def interrupted_by(reason: Reason) -> Iterator[None]:
    """Calls in this context, and in the tasks and threads that it starts, end when `reason` gives one."""
    before = _reason.set(reason)
    try:
        yield
    finally:
        _reason.reset(before)


def require_time() -> None:
    """Raises Interrupted if the requests must end."""
    if why := _reason.get()():
        raise Interrupted(why, transient=True)


def pause(seconds: float) -> bool:
    """Wait this number of seconds. True after them; False at once if the requests must end."""
    end = time.monotonic() + seconds
    while _reason.get()() is None:
        if (left := end - time.monotonic()) <= 0:
            return True
        time.sleep(min(left, _LOOK_EVERY))
    return False


def carried(call: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """`call` with this context, for threads of a pool, which have another one."""
    context = copy_context()

    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        return context.copy().run(call, *arguments, **named)

    return run
