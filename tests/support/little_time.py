"""Worker processes in which regular expressions have a quarter of their time for a document."""

from __future__ import annotations

from metaharvest.transform import expressions
from metaharvest.validation import worker

_start = worker.start


def start_with_little_time(*given: object) -> None:
    """The initializer of the processes, in place of worker.start."""
    expressions.TimeLeft.__init__.__defaults__ = (expressions.SECONDS / 4,)
    _start(*given)  # type: ignore[arg-type]
