"""The memory that fetched documents may take until they are recorded, over all sites of a run."""

from __future__ import annotations

import asyncio

BUDGET_BYTES = 64_000_000


class MemoryBudget:
    """Counts the bytes of documents that arrive, or wait to be checked and recorded. For one event loop.

    While there are `limit` of them, nothing more is begun. What is under way then may go on, up to four times as many:
    a document that would take more than this gives way to the others.
    """

    def __init__(self, limit: int = BUDGET_BYTES) -> None:
        self.limit = limit
        self._most = 4 * limit
        self._taken = 0
        self._has_room = asyncio.Event()
        self._has_room.set()

    @property
    def has_room(self) -> bool:
        """Whether another document may be asked for."""
        return self._taken < self.limit

    async def room(self) -> None:
        """Wait until another document may be asked for."""
        while not self.has_room:
            await self._has_room.wait()

    def take(self, number: int) -> None:
        """So many bytes arrived."""
        self._taken += number
        if not self.has_room:
            self._has_room.clear()

    def give_back(self, number: int) -> None:
        """So many bytes were recorded, or dropped."""
        self._taken -= number
        if self.has_room:
            self._has_room.set()

    def must_give_way(self, own: int) -> bool:
        """Whether an exchange that has taken `own` bytes has to give them back, and begin again when there is room.

        The last one that holds any never has to, so that there is always progress.
        """
        return self._taken > self._most and self._taken > own
