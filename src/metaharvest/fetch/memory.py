"""The memory that fetched documents may take until they are recorded, over all sites of a run."""

from __future__ import annotations

import asyncio
from collections import Counter

BUDGET_BYTES = 64_000_000


class MemoryBudget:
    """Counts the bytes of documents that arrive, or wait to be checked and recorded. For one event loop.

    At `limit` bytes, nothing more is begun. Documents that are under way then may continue, up to four times the limit:
    a document that would take more than this gives way to the others.

    Of the bytes of one site, no more than a quarter of `limit` counts for the others: it does not hold them up, however
    large its documents are, and however long their checks take. Of several such sites together, the part that is not
    counted is half of `limit` at most, or the bytes of one of them. Bytes that wait to be recorded count for no site.
    """

    def __init__(self, limit: int = BUDGET_BYTES) -> None:
        self.limit = limit
        self._most = 4 * limit
        self._share = limit // 4
        self._most_uncounted = limit // 2
        self._taken = 0
        self._by_site: Counter[int] = Counter()
        self._uncounted = 0
        self._given_back = asyncio.Event()

    async def room(self, site_id: int = 0) -> None:
        """Wait until another document may be requested, for this site."""
        while not self.has_room(site_id):
            await self._given_back.wait()

    def has_room(self, site_id: int = 0) -> bool:
        """True if another document may be requested, for this site."""
        of_others = self._uncounted - self._uncounted_of(site_id)
        if of_others > self._most_uncounted:
            largest = max(self._uncounted_of(each) for each in self._by_site if each != site_id)
            of_others = min(of_others, max(largest, self._most_uncounted))
        counted = self._taken - of_others
        return counted < self.limit and self._taken < self._most

    def take(self, number: int, site_id: int = 0) -> None:
        """This number of bytes arrived, for this site; 0: for none."""
        self._taken += number
        if site_id:
            before = self._uncounted_of(site_id)
            self._by_site[site_id] += number
            self._uncounted += self._uncounted_of(site_id) - before

    def give_back(self, number: int, site_id: int = 0) -> None:
        """This number of bytes was recorded, or dropped."""
        self.take(-number, site_id)
        # The waiters look again, each in its turn; later ones wait for the next time.
        self._given_back.set()
        self._given_back.clear()

    def _uncounted_of(self, site_id: int) -> int:
        taken = self._by_site[site_id]
        return taken - self._share if taken > self._share else 0

    def must_give_way(self, own: int) -> bool:
        """True if an exchange that has taken `own` bytes has to return them, and begin again when there is room.

        The last one that holds any never has to, so that there is always progress.
        """
        return self._taken > self._most and self._taken > own
