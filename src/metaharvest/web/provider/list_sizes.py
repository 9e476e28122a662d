"""The numbers of records of lists, kept until the catalogue changes: to count takes longer than to make a page."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy.orm import Session

from metaharvest.catalogue.change_feed import last_change
from metaharvest.catalogue.publication import has_several_formats
from metaharvest.catalogue.selection import Selection, number_of_entries

_MOST = 100
"""Numbers that are kept."""


class ListSizes:
    """The numbers of records of lists, for several threads."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Selection, int], int] = {}

    def size(self, session: Session, selection: Selection) -> int:
        """The number of records of a list."""
        key = selection, last_change(session)
        if (kept := self._kept.get(key)) is not None:
            return kept
        counted = selection if has_several_formats(session) else replace(selection, one_of=None)
        found = number_of_entries(session, counted)
        if selection.has_site:
            # A site can be removed while the catalogue stays the same.
            return found
        if len(self._kept) >= _MOST:
            self._kept = {}
        self._kept[key] = found
        return found
