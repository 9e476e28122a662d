"""The sites of one origin take turns in a run, and their deletions wait until all of them have listed.

Otherwise a record that moves from one site to another in a night is deleted, and comes back with a new revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self


class OriginTurns:
    """The turns of the sites of one origin, of which `number` are harvested in this run.

    `unread` are the names of the sites whose list did not come to its end. The names from an earlier part of the
    harvest come first.
    """

    def __init__(self, number: int, unread: Iterable[str] = ()) -> None:
        self.unread = list(unread)
        self._to_list = number
        self._all_listed = asyncio.Event()
        self._lock = asyncio.Lock()

    def turn(self, name: str = "") -> Turn:
        """The turn of one site: first come, first served. `name`: it has a list to read."""
        return Turn(self, name)

    def note_listed(self) -> bool:
        """Note that one more site has listed, or has ended. Returns True if it is the last one."""
        self._to_list -= 1
        if self._to_list <= 0:
            self._all_listed.set()
        return self._all_listed.is_set()

    async def wait_for_all(self) -> None:
        """Wait until all sites have listed, or have ended."""
        await self._all_listed.wait()

    async def take(self) -> None:
        """Wait for the turn."""
        await self._lock.acquire()

    def give_up(self) -> None:
        """Let another site have the turn."""
        self._lock.release()


class Turn:
    """The turn of one site, an asynchronous context manager. The others go on however its body ends."""

    def __init__(self, turns: OriginTurns, name: str = "") -> None:
        self._turns = turns
        self._name = name
        self._has_listed = False
        self._has_turn = False

    async def __aenter__(self) -> Self:
        try:
            await self._take()
        except BaseException:
            self._turns.note_listed()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._has_turn:
            self._turns.give_up()
        if not self._has_listed:
            self._note_unread()
            self._turns.note_listed()

    @property
    def unread(self) -> Sequence[str]:
        """The names of the sites of the origin whose list did not come to its end in this run."""
        return [name for name in self._turns.unread if name != self._name]

    async def wait_for_others(self, *, to_the_end: bool = True) -> None:
        """Let the others list, and wait until all of them have listed or ended. A stop of the run ends them at once.

        `to_the_end`: the site's own list came to its end.
        """
        if self._has_listed:
            return
        self._has_listed = True
        if not to_the_end:
            self._note_unread()
        if self._turns.note_listed():
            return
        self._turns.give_up()
        self._has_turn = False
        await self._turns.wait_for_all()
        await self._take()

    def has_no_list(self) -> None:
        """Note that the source repository does not have the site's set or format: no record has moved there."""
        self._name = ""

    def _note_unread(self) -> None:
        if self._name:
            self._turns.unread.append(self._name)

    async def _take(self) -> None:
        await self._turns.take()
        self._has_turn = True
