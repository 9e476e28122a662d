"""The documents that no answer may have any more, and that the index may still have until the pipeline has run.

The stage `index` notes the last change whose removals the index has. A search hides the documents that were removed
later, so that totals and facets are right at once.
"""

from __future__ import annotations

from collections.abc import Collection
from threading import Lock

from sqlalchemy.orm import Session

from metaharvest.catalogue.change_feed import last_change
from metaharvest.catalogue.selection import Hidden
from metaharvest.catalogue.stage_documents import removed_after, shown_after
from metaharvest.pipeline import feed

INDEX_FEED = "pipeline-index"
"""The name of the index among the readers of the change feed."""


class Removals:
    """The removals that the index may lack, for several threads. Each change is looked at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._hidden: Hidden | None = None
        self._from = -1
        self._to = -1
        self._found: dict[int, int] = {}
        self._numbers: Collection[int] = ()

    def numbers(self, session: Session, hidden: Hidden | None) -> Collection[int]:
        """The numbers of these documents. `hidden`: sites and origins that are not published; None: all are."""
        with self._lock:
            seen, last = feed.position(session, INDEX_FEED), last_change(session)
            if hidden != self._hidden or seen < self._from or last < self._to:
                self._hidden, self._to, self._found, self._numbers = hidden, seen, {}, ()
            if seen != self._from or last != self._to:
                self._look(session, seen, last)
            return self._numbers

    def _look(self, session: Session, seen: int, last: int) -> None:
        after = max(seen, self._to)
        if self._found:
            for number in shown_after(session, after, self._hidden):
                self._found.pop(number, None)
        self._found |= removed_after(session, after, self._hidden)
        self._found = {number: change for number, change in self._found.items() if change > seen}
        self._from, self._to, self._numbers = seen, last, frozenset(self._found)
