"""Where documents come from. A source has two verbs: list the site's documents, and fetch one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Protocol

from metaharvest.model import FetchedDocument, ListedDocument, ListVersion, Site

if TYPE_CHECKING:
    from metaharvest.fetch.client import Fetcher


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source lists: its documents, one after the other, in bounded memory; None: the same as in `known`.

    Nothing that was yielded may be harvested before the iterator has ended: it raises ListError, with every problem,
    where the list is not valid, also when that shows at its end. `version` tells this listing from others.
    """

    documents: Iterator[ListedDocument] | None
    version: ListVersion | None = None


class Source(Protocol):
    """One site's documents."""

    def list_documents(self, known: ListVersion | None, seconds: float = inf) -> Listing:
        """What the site lists now; `known` is the version whose documents are known already, if any.

        The fetching may take so many seconds. Raises FetchError where the list cannot be fetched.
        """
        ...

    def fetch(self, document: ListedDocument) -> FetchedDocument:
        """The document's bytes as received. Raises FetchError; never waits for a connection to be free.

        Called from several threads at once.
        """
        ...


def source_for(site: Site, fetcher: Fetcher) -> Source:
    """The source that the site's `source_kind` names."""
    from metaharvest.sources.harvest_list.source import HarvestListSource

    return HarvestListSource(site, fetcher)


def original_columns(document_id: str) -> tuple[str, int] | tuple[None, None]:
    """Scope and identifier of a document id, for the original's columns in the log; None where its source has none."""
    scope, _, identifier = document_id.rpartition(".")
    return (scope, int(identifier)) if scope and identifier.isascii() and identifier.isdigit() else (None, None)
