"""The memory that fetched documents may take while they wait to be recorded, over all sites of a run."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

ROOM_BYTES = 256_000_000
"""While what waits takes so much, nothing more is fetched; what is under way then comes on top."""


class Room:
    """Counts bytes, from any thread; who finds no room leaves word whom to call."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._taken = 0
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def is_left(self) -> bool:
        """Whether another document may be fetched; always, where none waits."""
        return self._taken < ROOM_BYTES

    def take(self, number: int) -> None:
        """So many bytes were fetched."""
        with self._mutex:
            self._taken += number

    def give_back(self, number: int) -> None:
        """So many bytes were recorded, or given up."""
        with self._mutex:
            self._taken -= number
        self.call_next()

    def join(self, call: Callable[[], None]) -> None:
        """Have `call` called, once, when there is room; it has to call the next afterwards."""
        with self._mutex:
            if not self.is_left:
                self._waiting.append(call)
                return
        call()

    def call_next(self) -> None:
        """Call who has waited longest, if there is room."""
        with self._mutex:
            if not self._waiting or not self.is_left:
                return
            call = self._waiting.popleft()
        call()


class Share:
    """What one site has of it; the rest is given back at the end, however that comes."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._mutex = threading.Lock()
        self._taken = 0
        self._ended = False

    def take(self, number: int) -> None:
        """So many bytes were fetched."""
        with self._mutex:
            if not self._ended:
                self._taken += number
                self._room.take(number)

    def give_back(self, number: int) -> None:
        """So many bytes were recorded."""
        with self._mutex:
            self._taken -= number
        self._room.give_back(number)

    def __enter__(self) -> Share:
        return self

    def __exit__(self, *_: object) -> None:
        with self._mutex:
            self._ended, left = True, self._taken
        self._room.give_back(left)
