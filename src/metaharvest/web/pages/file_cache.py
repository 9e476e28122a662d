"""Texts that take long to make, and that are kept for a short time: sitemaps, and the number of documents."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from contextlib import AbstractContextManager
from threading import Lock
from time import monotonic

from metaharvest.web.turns import Busy

KEPT_SECONDS = 120
_WAIT_SECONDS = 2
_MOST = 100
"""Texts that are kept: sitemaps of five million documents."""


class FileCache:
    """Texts in gzip, by name, for several threads. One is made at a time, inside `turn`."""

    def __init__(self, turn: Callable[[], AbstractContextManager[None]]) -> None:
        self._turn = turn
        self._making = Lock()
        self._found: dict[str, tuple[float, bytes]] = {}

    def get(self, name: str, make: Callable[[], str]) -> bytes:
        """The text with this name, in gzip; `make` makes it. Raises Busy if others are made meanwhile."""
        if (kept := self._fresh(name)) is not None:
            return kept
        if not self._making.acquire(timeout=_WAIT_SECONDS):
            raise Busy
        try:
            # Another request may have made it meanwhile.
            kept = self._fresh(name)
            if kept is None:
                with self._turn():
                    kept = gzip.compress(make().encode(), 5)
                self._keep(name, kept)
            return kept
        finally:
            self._making.release()

    def _fresh(self, name: str) -> bytes | None:
        until, content = self._found.get(name, (0.0, b""))
        return content if monotonic() < until else None

    def _keep(self, name: str, content: bytes) -> None:
        self._found.pop(name, None)
        if len(self._found) >= _MOST:
            # The oldest one.
            del self._found[next(iter(self._found))]
        self._found[name] = (monotonic() + KEPT_SECONDS, content)
