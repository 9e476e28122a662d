"""A scratch table in which a site's listed documents wait until the whole list is known to be right.

A list can be wrong at its very end, may name a document's revisions in any order and may be a million entries long:
so it is read once into a temporary SQLite table, in bounded memory, and harvested from there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from types import TracebackType

from metaharvest.records import ListedDocument

BATCH = 1000
"""How many documents a batch has: as many as the target is asked about at a time."""


class Staging:
    """The staged documents of one site run; a context manager that leaves nothing behind."""

    def __init__(self) -> None:
        # A database without a name is SQLite's own temporary file: in memory as long as it is small, gone when closed.
        self._table = sqlite3.connect("", isolation_level=None)
        self._table.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA cache_size=-4000;"
            "CREATE TABLE listed (document_id TEXT, revision INTEGER, document_type TEXT, url TEXT, line INTEGER,"
            " seq INTEGER PRIMARY KEY)"
        )
        self.count = 0

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._table.close()

    def fill(self, documents: Iterable[ListedDocument]) -> None:
        """Stage all of `documents`; whatever they raise passes through, and then nothing may be read from here."""
        rows = ((d.document_id, d.revision, d.document_type, d.url, d.line) for d in documents)
        self._table.execute("BEGIN")
        while chunk := list(islice(rows, 10_000)):
            self._table.executemany(
                "INSERT INTO listed (document_id, revision, document_type, url, line) VALUES (?, ?, ?, ?, ?)", chunk
            )
            self.count += len(chunk)
        self._table.execute("CREATE INDEX listed_order ON listed (document_id, revision, seq)")
        self._table.execute("COMMIT")

    def batches(self) -> Iterator[list[ListedDocument]]:
        """The staged documents in ascending order of document id and revision, about BATCH documents at a time.

        All revisions of a document are in one batch; of the same docid, the one that was listed first comes first.
        """
        rows = self._table.execute(
            "SELECT document_id, revision, document_type, url, line FROM listed ORDER BY document_id, revision, seq"
        )
        documents = groupby((ListedDocument(*row) for row in rows), key=lambda document: document.document_id)
        batch: list[ListedDocument] = []
        for number, (_, revisions) in enumerate(documents, 1):
            batch.extend(revisions)
            if number % BATCH == 0:
                yield batch
                batch = []
        if batch:
            yield batch
