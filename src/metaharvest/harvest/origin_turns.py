"""The sites of one origin take turns in a run, and their deletions wait until all of them have listed.

A record that moves from one of them to another in a night is otherwise deleted, and comes back with a new revision.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class OriginTurns:
    """The turns of the sites of one origin, of which `number` are harvested in this run."""

    def __init__(self, number: int) -> None:
        self._to_list = number
        self._all_listed = asyncio.Event()
        self._lock = asyncio.Lock()

    def turn(self) -> Turn:
        """The turn of one of the sites, to be entered once: first come, first served."""
        return Turn(self)

    def one_listed(self) -> bool:
        """Note that one more site has listed, or has ended; True if it is the last one."""
        self._to_list -= 1
        if self._to_list <= 0:
            self._all_listed.set()
        return self._all_listed.is_set()

    async def all_listed(self) -> None:
        """Wait until all sites have listed, or have ended."""
        await self._all_listed.wait()

    async def take(self) -> None:
        """Wait for the turn."""
        await self._lock.acquire()

    def give_up(self) -> None:
        """Let another site have the turn."""
        self._lock.release()


class Turn:
    """The turn of one site, an asynchronous context manager. However its body ends, the others go on."""

    def __init__(self, turns: OriginTurns) -> None:
        self._turns = turns
        self._has_listed = False
        self._is_held = False

    async def __aenter__(self) -> Self:
        try:
            await self._take()
        except BaseException:
            self._turns.one_listed()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_held:
            self._turns.give_up()
        if not self._has_listed:
            self._turns.one_listed()

    async def listed(self) -> None:
        """Let the others list, until all of them have listed or ended. When the run is stopped, they end at once."""
        if self._has_listed:
            return
        self._has_listed = True
        if self._turns.one_listed():
            return
        self._turns.give_up()
        self._is_held = False
        await self._turns.all_listed()
        await self._take()

    async def _take(self) -> None:
        await self._turns.take()
        self._is_held = True
