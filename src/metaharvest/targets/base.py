"""The target: the store of documents that the harvest keeps up to date.

There are two kinds. A target in the harvester's own database has a `TransactionalTarget`, and is written in the
journal's transactions. Every other target has a `RemoteTarget`, a folder of this machine as well: the journal commits
that an upload is pending before it begins, and its result afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from sqlalchemy.orm import Session

from metaharvest.model import Action, Holding, ListedDocument, Site
from metaharvest.model import Deletion as Deletion
from metaharvest.model import HeldRevision as HeldRevision
from metaharvest.model import Upload as Upload
from metaharvest.model.values import frozen

OF_ANOTHER_SITE = "Give your document an identifier of its own, or ask the administrator to transfer it to your site."
RECORD_OF_ANOTHER_SITE = "The administrator transfers it to this site, if this site is to keep it up to date."
"""The request for a document that belongs to another site, and the one for a record of a source repository."""


@frozen
class Standing:
    """One fact about the state of the target, as a sentence for the administrator."""

    status: Literal["ok", "warning", "problem"]
    sentence: str


class Holder(Protocol):
    """Knows the holdings of a target. It identifies a document by its document id (opaque, compared exactly) and its
    revision alone. Safe for threads."""

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The highest revision of each of these documents (at most a thousand) that the target holds.

        Raises TargetError if the target does not answer.
        """

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """The highest revision that the target had of each deleted document (at most a thousand).

        Call this for documents that `holdings` leaves out. Call it for documents that were deleted before `holdings`,
        as some targets learn of the deletion only here. Raises TargetError if the target does not answer.
        """

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """True if the target holds exactly these bytes under this docid. Raises TargetError."""


class TransactionalTarget(Holder, Protocol):
    """A target that is written in the journal's own transaction, and is rolled back with it.

    `keeps` is false if it only reports what it would do, and stores nothing.
    """

    writes_in_journal: Literal[True]
    keeps: bool

    def kept(self, site_id: int) -> int:
        """The number of documents in the site's ledger that the target holds exactly as the ledger says.

        One query counts them. 0: check each document.
        """

    def upload(self, uploads: Sequence[Upload], session: Session) -> list[Action]:
        """Insert or update these documents; returns the action for each.

        Raises TargetError if one is refused: then the target takes none of them.
        """

    def delete(self, deletion: Deletion, session: Session) -> None:
        """Record that this document was deleted; nothing happens if there is none.

        `holdings` leaves a deleted document out; its revisions stay used up. Raises TargetError if it belongs to
        another site.
        """

    def restamp(self, documents: Sequence[ListedDocument], session: Session) -> None:
        """Record that these revisions, which are there, come from records with newer datestamps now."""


class RemoteTarget(Holder, Protocol):
    """A target outside of the journal's database, logged in for one site; safe for threads.

    The journal commits that the upload is pending before `upload` is called. A later run that finds it pending checks
    with `holds` before it sends anything again. A document id never has more than one upload at a time.
    """

    writes_in_journal: Literal[False]

    def upload(self, upload: Upload) -> Action:
        """Insert this document, or update the one that is there; returns the action.

        Raises TargetError if the target refuses it, or has a higher revision. The error is `transient` if the target
        did not answer: the document may have arrived.
        """

    def delete(self, document_id: str) -> bool:
        """Mark this document as deleted in the target; False if it holds none, or has it marked already.

        `holdings` leaves a deleted document out; its revisions stay used up. Raises TargetError.
        """


TargetSession = TransactionalTarget | RemoteTarget


class Target(Protocol):
    """A target, as the settings describe it."""

    @property
    def uploads_at_once(self) -> int:
        """The number of parallel uploads that it accepts."""

    def describe(self) -> str:
        """The target in a few words, for reports; no secrets."""

    def session(self, site: Site | None) -> AbstractContextManager[TargetSession]:
        """The target for the documents of this site, logged in as that site if it requires a login.

        Without a site, the settings of the target itself apply. Raises TargetError, which is `transient` if the target
        does not answer; then no document of the site may be uploaded.
        """

    def check(self, site: Site | None) -> Iterable[Standing]:
        """Report if the target answers, our identity and our rights. Writes nothing; raises no MetaharvestError."""

    def held(self) -> Iterable[HeldRevision]:
        """Every revision that it holds: document by document in the order of their ids, revisions in ascending order.

        Raises TargetError if it does not answer, or cannot list its holdings.
        """

    def revisions(self, document_id: str) -> list[HeldRevision]:
        """The revisions of one document, the highest first; empty if it has none. Raises TargetError."""

    def content(self, document_id: str, revision: int) -> bytes | None:
        """The exact bytes of one revision; None if it is not there. Raises TargetError."""
