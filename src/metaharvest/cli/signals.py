"""SIGTERM and Ctrl-C: the first one finishes the work in progress; the second one ends the process at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from metaharvest.cli.json_lines import JsonLines

if TYPE_CHECKING:
    from metaharvest.services.runs import StopSignal

_STOPPING = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_on_signal(at_once: str = "") -> Iterator[StopSignal]:
    """A stop signal that the first SIGTERM or SIGINT sets; the second of them ends the process at once.

    `at_once` replaces the sentence about a run in that case.
    """
    from metaharvest.services.runs import StopSignal

    stop = StopSignal()

    def ask_to_stop(_number: int, _frame: object) -> None:
        stop.by_signal = True
        stop.set()
        for number in _STOPPING:
            signal.signal(number, lambda _number, _frame: _end_at_once(at_once))

    with handled(ask_to_stop, *_STOPPING):
        yield stop


@contextmanager
def handled(handler: Callable[[int, FrameType | None], object], *numbers: signal.Signals) -> Iterator[None]:
    """`handler` for these signals as long as the context lasts; only the main thread can have handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) or signal.SIG_DFL for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _end_at_once(said: str) -> NoReturn:
    """End the process as a power cut would: an exception would wait for every transfer that is under way."""
    from metaharvest.cli import STOPPED
    from metaharvest.services.exit_codes import ExitCode

    # The progress bars have hidden the terminal's cursor.
    cursor = "\033[?25h\n" if sys.stderr is not None and sys.stderr.isatty() else ""
    line = sys.stderr.line(said or STOPPED) if isinstance(sys.stderr, JsonLines) else f"{cursor}{said or STOPPED}\n"
    with suppress(OSError):
        os.write(2, line.encode())
    os._exit(ExitCode.INTERRUPTED)
