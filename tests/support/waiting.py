"""Waits for what another process or thread is about to do, and tells if it does not."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def wait_until(condition: Callable[[], Found], seconds: float = 30) -> Found:
    """What `condition` returns as soon as that is true. Fails if it is not within so many seconds."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, f"it did not happen within {seconds:g} seconds"
        time.sleep(0.01)
    return found
