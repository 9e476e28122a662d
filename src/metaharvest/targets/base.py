"""Where documents go: the target that the harvest keeps up to date.

There are two kinds. A target in the harvester's own database has a `TransactionalTarget`, and is written in the
journal's transactions. Every other target has a `RemoteTarget`, a folder of this machine as well: the journal commits
that an upload is pending before it begins, and its result afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from sqlalchemy.orm import Session

from metaharvest.model import Action, FetchedDocument, Holding, ListedDocument, Site

OF_ANOTHER_SITE = "Give your document an identifier of its own, or ask the administrator to transfer it to your site."
RECORD_OF_ANOTHER_SITE = "The administrator transfers it to this site, if this site is to keep it up to date."
"""What to do about a document that belongs to another site, and about a record of a repository."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A checked document on its way into the target, from the site with this number (0: not from a site).

    What belongs to the other sites of `same_origin` is this site's, too.
    """

    fetched: FetchedDocument
    site_id: int
    at: datetime
    same_origin: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Deletion:
    """What a target that is written in the journal is told of a document which the site's repository has deleted.

    `same_origin`: see Upload.
    """

    document: ListedDocument
    site_id: int
    at: datetime
    same_origin: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class HeldRevision:
    """One revision of a document as a target describes it. What it does not know is None, or empty.

    `size` is in bytes; `source_url` is where it came from, or where the target has it; `site_id`: its first site.
    """

    document_id: str
    revision: int
    document_type: str = ""
    size: int | None = None
    sha256: str | None = None
    inserted_at: datetime | None = None
    source_url: str = ""
    site_id: int | None = None

    @property
    def docid(self) -> str:
        """Document id and revision: `knb-lter-gce.109.6`."""
        return f"{self.document_id}.{self.revision}"


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of the target after it was asked: one fact, as a sentence for the administrator."""

    status: Literal["ok", "warning", "problem"]
    sentence: str


class Holder(Protocol):
    """Says what a repository holds. It knows a document by its document id (opaque, compared exactly) and its revision
    alone. Safe for threads."""

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The highest revision of each of these documents (at most a thousand) that the target holds.

        Raises TargetError where it does not answer.
        """

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """The highest revision that the target had of each of these documents that was deleted (at most a thousand).

        Only what `holdings` leaves out is asked for. Raises TargetError where it does not answer.
        """

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """Whether the target holds exactly these bytes under this docid. Raises TargetError."""


class TransactionalTarget(Holder, Protocol):
    """A target that is written in the journal's own transaction, and is undone with it.

    `keeps` is false if it only says what it would do, and forgets what it is given.
    """

    writes_in_journal: Literal[True]
    keeps: bool

    def kept(self, site_id: int) -> int:
        """How many documents of the site's ledger the target holds just as the ledger says, told in one question.

        0: ask about each document.
        """

    def upload(self, uploads: Sequence[Upload], session: Session) -> list[Action]:
        """Insert these documents or update them; which of the two it was for each.

        Raises TargetError where one is refused: then none of them is there.
        """

    def delete(self, deletion: Deletion, session: Session) -> None:
        """Keep from now on that this document was deleted; nothing happens if there is none.

        `holdings` leaves a deleted document out; its revisions are used up all the same. Raises TargetError where it
        belongs to another site.
        """

    def restamp(self, documents: Sequence[ListedDocument], session: Session) -> None:
        """Keep that these revisions, which are there, come from records that have newer datestamps now."""


class RemoteTarget(Holder, Protocol):
    """A target outside of the journal's database, logged in for one site; safe for threads.

    The journal has committed that the upload is pending before `upload` is called. What a later run finds pending it
    looks up with `holds` before anything is sent again. There is never more than one upload of a document id at a time.
    """

    writes_in_journal: Literal[False]

    def upload(self, upload: Upload) -> Action:
        """Insert this document, or update the one that is there; which of the two it was.

        Raises TargetError where it is refused, or a higher revision is there; `transient` where the target did not
        answer, so that it is not known whether it arrived.
        """

    def delete(self, document_id: str) -> bool:
        """Have the target say from now on that this document was deleted; False if it holds none, or said so already.

        `holdings` leaves a deleted document out; its revisions are used up all the same. Raises TargetError.
        """


TargetSession = TransactionalTarget | RemoteTarget


class Target(Protocol):
    """A repository, as the settings describe it."""

    @property
    def uploads_at_once(self) -> int:
        """How many documents it may be sent side by side."""

    def describe(self) -> str:
        """The target in a few words, for reports; no secrets."""

    def session(self, site: Site | None) -> AbstractContextManager[TargetSession]:
        """The target as this site's documents go into it, logged in as that site where it asks for a login.

        Without a site, as the settings of the target itself say. Raises TargetError, `transient` where it does not
        answer: otherwise nothing of the site may be uploaded.
        """

    def check(self, site: Site | None) -> Iterable[Standing]:
        """Whether it answers, as whom it knows us, and what we may do there. Writes nothing; raises nothing of ours."""

    def held(self) -> Iterable[HeldRevision]:
        """Every revision that it holds: document by document in the order of their ids, each in ascending order.

        Raises TargetError where it does not answer, or cannot list what it holds.
        """

    def revisions(self, document_id: str) -> list[HeldRevision]:
        """The revisions of one document, the highest first; empty if it has none. Raises TargetError."""

    def content(self, document_id: str, revision: int) -> bytes | None:
        """The exact bytes of one revision; None if it is not there. Raises TargetError."""
