"""A temporary place in which a site's listed documents wait until the whole list is known to be right.

A list can be wrong at its very end, may name a document's revisions in any order and may be a million entries long: so
it is read once, in bounded memory, and harvested from here. Documents that exceed the memory go into a temporary SQLite
table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice
from operator import attrgetter

from metaharvest.model import MAX_FINDINGS, ListedDocument

FEW = 5000
"""The number of documents that are kept in memory."""

MOST_DUPLICATES = MAX_FINDINGS
"""The number of duplicate entries of a list that are reported one by one; the others are only counted."""


class Staging:
    """The staged documents of one site run; a context manager that leaves nothing behind.

    `count` entries were staged. batches() has left out `left_out` of them, as they are duplicates.
    """

    def __init__(self) -> None:
        self._few: list[ListedDocument] = []
        self._table: sqlite3.Connection | None = None
        self.count = 0
        self.left_out = 0

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        if self._table is not None:
            self._table.close()

    def fill(self, documents: Iterable[ListedDocument]) -> None:
        """Stage all of `documents`. Their exceptions pass through; after one, nothing may be read from here."""
        rest = iter(documents)
        self._few = list(islice(rest, FEW + 1))
        self.count = len(self._few)
        if self.count > FEW:
            self._table = _new_table()
            self.count = _fill(self._table, chain(self._few, rest))
            self._few = []
        else:
            self._few.sort(key=attrgetter("document_id", "revision"))

    def batches(self, size: int) -> Iterator[list[ListedDocument]]:
        """The staged documents in ascending order of document id and revision, about `size` documents at a time.

        All revisions of a document are in one batch; of the same docid, the one that was listed first comes first.
        """
        staged = iter(self._few) if self._table is None else _read(self._table)
        documents = groupby(self._with_few_duplicates(staged), key=attrgetter("document_id"))
        batch: list[ListedDocument] = []
        for number, (_, revisions) in enumerate(documents, 1):
            batch.extend(revisions)
            if number % size == 0:
                yield batch
                batch = []
        if batch:
            yield batch

    def _with_few_duplicates(self, staged: Iterator[ListedDocument]) -> Iterator[ListedDocument]:
        """All documents, and MOST_DUPLICATES of the entries that name one of them again."""
        last, duplicates = None, 0
        for document in staged:
            docid = document.document_id, document.revision
            duplicates += docid == last
            if docid != last or duplicates <= MOST_DUPLICATES:
                yield document
            else:
                self.left_out += 1
            last = docid


def _new_table() -> sqlite3.Connection:
    # One thread at a time fills and reads it, but not always the same one. A database without a name is SQLite's own
    # temporary file: in memory as long as it is small, gone when closed.
    table = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    table.executescript(
        "PRAGMA journal_mode=OFF; PRAGMA cache_size=-4000;"
        "CREATE TABLE listed (document_id TEXT, revision INTEGER, document_type TEXT, url TEXT, line INTEGER,"
        " seq INTEGER PRIMARY KEY)"
    )
    return table


def _fill(table: sqlite3.Connection, documents: Iterable[ListedDocument]) -> int:
    """Insert the documents. Returns their number."""
    count = 0
    rows = ((d.document_id, d.revision, d.document_type, d.url, d.line) for d in documents)
    table.execute("BEGIN")
    while chunk := list(islice(rows, 10_000)):
        table.executemany(
            "INSERT INTO listed (document_id, revision, document_type, url, line) VALUES (?, ?, ?, ?, ?)", chunk
        )
        count += len(chunk)
    table.execute("CREATE INDEX listed_order ON listed (document_id, revision, seq)")
    table.execute("COMMIT")
    return count


def _read(table: sqlite3.Connection) -> Iterator[ListedDocument]:
    rows = table.execute(
        "SELECT document_id, revision, document_type, url, line FROM listed ORDER BY document_id, revision, seq"
    )
    return (ListedDocument(*row) for row in rows)
