"""The start of worker processes that check documents."""

from __future__ import annotations

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pebble
import pytest

from metaharvest.harvest.checks import worker_pool


def test_pools_that_start_at_once_leave_the_switches_between_threads_as_they_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[object] = []

    class Pool:
        """The first pool is up a moment after the second one has begun to start, if that may begin."""

        second_begins, first_is_up = threading.Event(), threading.Event()

        def __init__(self, **_options: object) -> None:
            pass

        @property
        def active(self) -> bool:
            begun.append(self)
            if self is begun[0]:
                self.second_begins.wait(0.5)
                self.first_is_up.set()
            else:
                self.second_begins.set()
                self.first_is_up.wait(60)
                time.sleep(0.2)
            return True

    before = sys.getswitchinterval()
    monkeypatch.setattr(pebble, "ProcessPool", Pool)
    try:
        with ThreadPoolExecutor(2) as threads:
            for _ in range(2):
                threads.submit(worker_pool._started, 1, ((), 0.0, 3.0, 0))
        assert sys.getswitchinterval() == before
    finally:
        sys.setswitchinterval(before)
