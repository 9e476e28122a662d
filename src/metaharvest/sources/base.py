"""Sources of documents. A source has two verbs: list the site's documents, and fetch one of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from math import inf
from typing import Protocol, runtime_checkable

from metaharvest.model import Checkpoint, FetchedDocument, Finding, ListedDocument, ListVersion, OriginalColumns
from metaharvest.model.values import frozen


class TimeBudget(Protocol):
    """The time that a listing may take: the deadlines of the run."""

    def left(self) -> float:
        """Seconds until the nearest deadline, infinite if there is none."""

    async def sleep(self, seconds: float) -> None:
        """Wait for this time, but not beyond the nearest deadline; a signal ends the wait."""

    def stop_reason(self) -> Finding | None:
        """Why nothing new may begin; None as long as there is time."""


@frozen
class ListedRecord:
    """One record in the list of a source repository, with its content in memory.

    `document` has its origin, and the revision 0. `content` is None if the record is `deleted`, or cannot be fetched:
    then an error in `findings` says why. `is_away`: another try may fetch it. Warnings name repairs.
    """

    document: ListedDocument
    content: bytes | None
    deleted: bool = False
    findings: tuple[Finding, ...] = ()
    is_away: bool = False


@frozen
class Page:
    """An answer of a source repository's list, or a part of a long answer: at most a few hundred records.

    They are harvested before the next page comes. The last page of each answer has a checkpoint.
    """

    records: Sequence[ListedRecord]
    checkpoint: Checkpoint | None = None
    """The checkpoint from which another run can go on; None: it cannot go on from here."""
    findings: tuple[Finding, ...] = ()
    """Findings about the list."""
    announced: int | None = None
    """The number of records that the source repository announces for the list; None: it announces none."""
    is_last: bool = False
    """True if the list has come to its end without holes: the harvest notes the records that it did not name."""
    left_out: float = 0
    """The number of records that the list may have left out; infinite: unknown."""
    repeat: Checkpoint | None = None
    """The checkpoint from which the next harvest repeats the list, if it may have left out a known number of records.

    None: the list is a repetition already, or has not ended.
    """
    in_all: int | None = None
    """The number of all records, if the source repository was asked for it after a list of changes."""
    in_all_before: int = 0
    """The number of records of its last full list."""
    lacks_token: bool = False
    """True if the list was cut, and ends here without the empty resumption token of the protocol."""

    @property
    def reports_end(self) -> bool:
        """True if the page says that the list has ended, or how many records the list may have left out."""
        return self.is_last or self.repeat is not None or self.left_out > 0


@frozen
class PagedListing:
    """A source repository's list, page by page; each page may be harvested at once.

    The caller closes `pages` when it needs no more.
    """

    pages: AsyncGenerator[Page, None]
    """Raises ListIncomplete if the list breaks off or has holes. The next harvest begins at the last checkpoint."""
    is_complete: bool
    """True if it names every record, not only changes: records are missing if it does not name them."""
    goes_on: bool
    """True if it goes on from a checkpoint."""
    findings: tuple[Finding, ...] = ()
    """Findings about the source repository."""
    is_other: bool = False
    """True if it requests other records than the last list: another format or another set."""
    is_empty: bool = False
    """True if it requested everything, and brought nothing; such a list does not count as complete."""


class DocumentSource(Protocol):
    """One site's documents, fetched individually."""

    def original_columns(self, document_id: str) -> OriginalColumns:
        """Scope and identifier of a document id, for the original's columns in the log; None if the source has none."""

    async def fetch(self, document: ListedDocument, patience: float = inf) -> FetchedDocument:
        """The document's bytes as received. Waits `patience` seconds for a free connection. Raises FetchError.

        Called for several documents at once, each in a task of its own.
        """


@runtime_checkable
class PagedSource(DocumentSource, Protocol):
    """A source repository. Its documents have no revisions, and come with the list that names them.

    `fetch` fetches one record individually, with its metadata as a document and its origin. It may be called while the
    list is being read. The original's columns have no place for its identifiers.
    """

    async def list_records(
        self, checkpoint: Checkpoint | None, patience: TimeBudget, *, full: bool, resumed: bool = False
    ) -> PagedListing:
        """The list of the source repository: all changes since the checkpoint, or all records.

        `full`: all records from the beginning, whatever the checkpoint says. `resumed`: the checkpoint was written in
        the same site run, before an interruption, so that a full list goes on. Raises FetchError and ListError if the
        list cannot begin.
        """


@frozen
class Listing:
    """The documents of a source, one after the other, in bounded memory; None: the same as in `known`.

    No document may be harvested before the iterator has ended: it raises ListError, with every problem, if the list is
    not valid, even if that shows at its end. `version` identifies this version of the list. `findings` are warnings
    about the list's address.
    """

    documents: Iterator[ListedDocument] | None
    version: ListVersion | None = None
    findings: tuple[Finding, ...] = ()


@runtime_checkable
class RefetchingSource(DocumentSource, Protocol):
    """A source that can fetch a document only if it has changed."""

    async def fetch_again(
        self, document: ListedDocument, known: ListVersion, patience: float = inf
    ) -> FetchedDocument | None:
        """The document if it may differ from `known`; None if its server says that it does not.

        Raises FetchError.
        """


class Source(DocumentSource, Protocol):
    """A site that lists documents with their revisions, each of which is fetched individually."""

    async def list_documents(self, known: ListVersion | None, seconds: float = inf) -> Listing:
        """The present list of the site; `known` is the version whose documents are known already, if any.

        The fetch may take this number of seconds. Raises FetchError if the list cannot be fetched.
        """
