"""Where documents come from. A source has two verbs: list the site's documents, and fetch one of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol, runtime_checkable

from metaharvest.model import Checkpoint, FetchedDocument, Finding, ListedDocument, ListVersion, OriginalColumns


class TimeBudget(Protocol):
    """How long a listing may take: the deadlines of the run."""

    def left(self) -> float:
        """Seconds until the nearest deadline, infinite if there is none."""

    async def sleep(self, seconds: float) -> None:
        """Wait so long, but no longer than there is time; a signal ends it."""

    def stop_reason(self) -> Finding | None:
        """Why nothing more is to be begun; None as long as there is time."""


@dataclass(frozen=True, slots=True)
class ListedRecord:
    """One record as a repository lists it, with its content in hand.

    `document` has its origin, and the revision 0. `content` is None for a record that is `deleted`, and for one that
    cannot be had: then an error in `findings` says why. Warnings say what was mended.
    """

    document: ListedDocument
    content: bytes | None
    deleted: bool = False
    findings: tuple[Finding, ...] = ()
    is_away: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """Some records of a repository's list, at most a few hundred: they are harvested before the next ones are had.

    `checkpoint`: from here the listing can go on in another run; None: it cannot yet. `findings` are about the list.
    `announced`: how many records the repository says the list has in all, if it does. `is_last`: the list has come
    to its end; every list that does has such a page, with which it is noted what the list did not name. So many records
    may have been left out of it (`left_out`, infinite where nobody can say how many); with the checkpoint `again` the
    next harvest asks once more for what this one has asked for, None where it was asked for again already. Beside a
    list of changes the repository may have been asked how many records it has `in_all`; in its last full list they
    were `in_all_before`.
    """

    records: Sequence[ListedRecord]
    checkpoint: Checkpoint | None = None
    findings: tuple[Finding, ...] = ()
    announced: int | None = None
    is_last: bool = False
    left_out: float = 0
    repeat: Checkpoint | None = None
    in_all: int | None = None
    in_all_before: int = 0


@dataclass(frozen=True, slots=True)
class PagedListing:
    """A repository's list, page by page; what was yielded may be harvested at once.

    `is_complete`: it names everything that there is, not only what has changed, so that what it does not name is
    missing once it has ended. `goes_on`: it goes on from a checkpoint. `is_other`: it asks for other records than
    the list before, another format or another set. `is_empty`: everything was asked for, and nothing was listed, which
    is not taken for complete. `findings` are about the repository. `pages` raises BrokenOff where the list does not
    come to its end; if it does, the checkpoint of the last page is the one from which the next harvest knows what to
    ask for. They are closed when no more are wanted.
    """

    pages: AsyncGenerator[Page, None]
    is_complete: bool
    goes_on: bool
    findings: tuple[Finding, ...] = ()
    is_other: bool = False
    is_empty: bool = False


class DocumentSource(Protocol):
    """One site's documents, one by one."""

    def original_columns(self, document_id: str) -> OriginalColumns:
        """Scope and identifier of a document id, for the original's columns in the log; None if the source has none."""

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        """The document's bytes as received. Waits `patience` seconds for a free connection. Raises FetchError.

        Called for several documents at once, each in a task of its own.
        """


@runtime_checkable
class PagedSource(DocumentSource, Protocol):
    """A repository whose documents have no revisions, and come with the list that names them.

    `fetch` gives one record by itself, its metadata as a document with its origin; it may be called while the list is
    being read. The original's columns have no place for its identifiers.
    """

    async def list_records(
        self, checkpoint: Checkpoint | None, patience: TimeBudget, *, full: bool, resumed: bool = False
    ) -> PagedListing:
        """What the repository lists: what has changed since the checkpoint, or all of it.

        `full`: all of it from its beginning, whatever the checkpoint says. `resumed`: the checkpoint was written in
        the same site run, before that was interrupted, so that a full list goes on. Raises FetchError and ListError
        where it cannot be begun.
        """


@dataclass(frozen=True, slots=True)
class Listing:
    """What a source lists: its documents, one after the other, in bounded memory; None: the same as in `known`.

    Nothing that was yielded may be harvested before the iterator has ended: it raises ListError, with every problem,
    if the list is not valid, also when that shows at its end. `version` tells this listing from others. `findings` are
    warnings about where the list is.
    """

    documents: Iterator[ListedDocument] | None
    version: ListVersion | None = None
    findings: tuple[Finding, ...] = ()


@runtime_checkable
class RefetchingSource(DocumentSource, Protocol):
    """A source that can ask for a document only if it is another one than before."""

    async def fetch_again(
        self, document: ListedDocument, known: ListVersion, patience: float = inf
    ) -> FetchedDocument | None:
        """The document if it may be another one than `known`; None if its server says that it is not.

        Raises FetchError.
        """


class Source(DocumentSource, Protocol):
    """A site that lists documents with their revisions, each of which is fetched by itself."""

    async def list_documents(self, known: ListVersion | None, seconds: float = inf) -> Listing:
        """What the site lists now; `known` is the version whose documents are known already, if any.

        The fetching may take so many seconds. Raises FetchError if the list cannot be fetched.
        """
