"""Regular expressions from a person's file, matched in bounded time: the library `regex` can be given a time limit."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING

from metaharvest.text import one_line

if TYPE_CHECKING:
    import regex

MAX_PATTERN = 2000
"""Characters of a regular expression."""

SECONDS = 2.0
"""The processor time that all regular expressions of a file may take for one document."""


class BadPattern(Exception):
    """This is no regular expression; the message has the reason."""


class TransformTooCostly(Exception):
    """The work on this document took too long, or was too much."""


class TimeLeft:
    """The time that is left for the regular expressions on one document."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._end = time.process_time() + seconds

    def left(self) -> float:
        """Seconds of processor time. Raises TransformTooCostly if there are none."""
        left = self._end - time.process_time()
        if left <= 0:
            raise TransformTooCostly
        return left


def require_pattern(pattern: str) -> None:
    """Raises BadPattern if this cannot be used as a regular expression."""
    import regex

    if len(pattern) > MAX_PATTERN:
        raise BadPattern(f"it has more than {MAX_PATTERN:,} characters")
    try:
        _compiled(pattern, False)
    except regex.error as error:
        raise BadPattern(one_line(str(error))) from None
    except (RecursionError, OverflowError, MemoryError, ValueError):
        raise BadPattern("it is nested too deeply, or repeats too much") from None


def matches(pattern: str, ignores_case: bool, text: str, time_left: TimeLeft) -> bool:
    """True if the pattern is found anywhere in the text. Raises TransformTooCostly."""
    try:
        return _compiled(pattern, ignores_case).search(text, timeout=time_left.left()) is not None
    except (TimeoutError, MemoryError):  # the library also gives up if it would need too much memory
        raise TransformTooCostly from None


@lru_cache(500)
def _compiled(pattern: str, ignores_case: bool) -> regex.Pattern[str]:
    import regex

    return regex.compile(pattern, regex.IGNORECASE if ignores_case else 0)
