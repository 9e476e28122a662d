"""Where documents come from. A source has two verbs: list the site's documents, and fetch one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Protocol

from metaharvest.model import FetchedDocument, ListedDocument, ListVersion, OriginalColumns


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source lists: its documents, one after the other, in bounded memory; None: the same as in `known`.

    Nothing that was yielded may be harvested before the iterator has ended: it raises ListError, with every problem,
    if the list is not valid, also when that shows at its end. `version` tells this listing from others.
    """

    documents: Iterator[ListedDocument] | None
    version: ListVersion | None = None


class Source(Protocol):
    """One site's documents."""

    async def list_documents(self, known: ListVersion | None, seconds: float = inf) -> Listing:
        """What the site lists now; `known` is the version whose documents are known already, if any.

        The fetching may take so many seconds. Raises FetchError if the list cannot be fetched.
        """

    def original_columns(self, document_id: str) -> OriginalColumns:
        """Scope and identifier of a document id, for the original's columns in the log; None if the source has none."""

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        """The document's bytes as received. Waits `patience` seconds for a free connection. Raises FetchError.

        Called for several documents at once, each in a task of its own.
        """
