"""The highest revision of each document, from the PIDs (which are docids) of the node's listing.

One page lists a thousand objects. On GMN that takes as long as thirty requests about single documents. So the listing
is read if a run must look up more documents than a thirtieth of the listed objects. It is read also if a series is
unknown, as a document without a series id is found by its PID alone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from metaharvest.targets.dataone import refusals
from metaharvest.targets.dataone.node import Node
from metaharvest.targets.dataone.system_metadata import ObjectInfo
from metaharvest.text import whole_number

log = logging.getLogger(__name__)

OBJECTS_PER_QUESTION = 30
"""A page of the listing has this many objects for the time of one request."""

_FEW = 50
"""Up to this number, documents are looked up individually: the responses have more details."""

_WHOLE = 20_000
"""A node with no more objects is listed completely; a larger one, with data beside metadata, by format ids."""

_KEPT_SECONDS = 3600.0
_TIMES = 3
_MOST_CHARACTERS = 50_000_000
"""The most characters of all PIDs of a listing: 50 for each of a million objects."""


class NodeListing:
    """Knows the highest revisions after the listing was read; safe for threads.

    `format_ids` returns the formats of documents. `is_whole` is true if the last listing had all objects of the node,
    and not these formats alone.
    """

    def __init__(self, node: Node, format_ids: Callable[[], Iterable[str]]) -> None:
        self._node = node
        self._format_ids = format_ids
        self.is_whole = True
        self._lock = threading.Lock()
        self._highest: dict[str, int] | None = None
        self._read_at = 0.0
        self._asked = 0
        self._total: int | None = None

    def note_questions(self, number: int) -> bool:
        """Count `number` more documents to look up; True if reading the listing costs less. Raises TargetError."""
        with self._lock:
            if self._current() is not None:
                return True
            self._asked += number
            if self._asked <= _FEW:
                return False
            if self._total is None:
                self._total = self._node.total()
            return self._asked > self._total / OBJECTS_PER_QUESTION

    def highest(self, document_ids: Sequence[str]) -> dict[str, int]:
        """The highest listed revision of each document. Raises TargetError."""
        with self._lock:
            known = self._current()
            if known is None:
                known = self._highest = self._read()
                self._read_at = time.monotonic()
            return {each: known[each] for each in document_ids if each in known}

    def known(self, document_id: str) -> int | None:
        """The highest listed revision, -1 if none is listed; None if the listing was not read yet."""
        with self._lock:
            known = self._current()
            return None if known is None else known.get(document_id, -1)

    def add(self, document_id: str, revision: int) -> None:
        """Add a revision that the node has now."""
        with self._lock:
            if self._highest is not None and self._highest.get(document_id, -1) < revision:
                self._highest[document_id] = revision

    def objects(self) -> Iterator[ObjectInfo]:
        """Every object whose PID is a docid. Raises TargetError, also if the listing may be incomplete."""
        for filters in self._filters():
            found: dict[str, ObjectInfo] = {}

            def note(info: ObjectInfo, found: dict[str, ObjectInfo] = found) -> None:
                if parts_of(info.pid)[0]:
                    found[info.pid] = info

            pids, total = self._read_whole(filters, note)
            if len(pids) != total:
                raise refusals.restless_listing(self._node.url, len(pids), total)
            yield from (info for pid, info in found.items() if pid in pids)

    def _current(self) -> dict[str, int] | None:
        return self._highest if time.monotonic() - self._read_at < _KEPT_SECONDS else None

    def _read(self) -> dict[str, int]:
        found: dict[str, int] = {}

        def note(info: ObjectInfo) -> None:
            document_id, revision = parts_of(info.pid)
            if found.get(document_id, -1) < revision:
                found[document_id] = revision

        for filters in self._filters():
            pids, total = self._read_whole(filters, note)
            if len(pids) != total:
                # A document that is unknown here is looked up individually before it is sent.
                log.warning("%s lists %d objects, and says that there are %d", self._node.url, len(pids), total)
        found.pop("", None)
        return found

    def _read_whole(
        self, filters: Mapping[str, str], note: Callable[[ObjectInfo], object]
    ) -> tuple[Collection[str], int]:
        """The PIDs that are listed, and the number of objects: equal if the list is complete. `note` gets each object.

        A node sorts by the time of the last change. A change during the reading moves other objects: some appear twice,
        others not at all. Then the listing is read again to find the missing ones.
        """
        pids, total = set[str](), 0
        for _ in range(_TIMES):
            characters = 0
            for now, page in self._node.listing(filters):
                if now < total:
                    # Deleted objects may have been counted.
                    pids.clear()
                total = now
                characters += sum(len(each.pid) for each in page)
                if characters > _MOST_CHARACTERS:
                    raise refusals.endless_listing(
                        self._node.url, f"its identifiers have more than {_MOST_CHARACTERS:,} characters"
                    )
                for each in page:
                    pids.add(each.pid)
                    note(each)
            if len(pids) == total:
                break
        return pids, total

    def _filters(self) -> list[Mapping[str, str]]:
        self.is_whole = self._node.total() <= _WHOLE
        return [{}] if self.is_whole else [{"formatId": each} for each in self._format_ids()]


def parts_of(pid: str) -> tuple[str, int]:
    """Document id and revision of a PID that is a docid; an empty id and -1 of any other."""
    document_id, _, revision = pid.rpartition(".")
    number = whole_number(revision)
    if not document_id or number is None or (revision != "0" and revision[0] == "0"):
        return "", -1
    return document_id, number
