"""No target: documents are fetched and checked, and stored nowhere. For rehearsals of a network, and of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from sqlalchemy.orm import Session

from metaharvest.model import Action, Holding, ListedDocument, Site
from metaharvest.targets.base import Deletion, HeldRevision, Holder, Standing, Upload


class ForgettingSession:
    """Knows the holdings of another target (none, if there is no such target), and stores no upload."""

    writes_in_journal: Literal[True] = True
    keeps: bool = False

    def __init__(self, real: Holder | None) -> None:
        self._real = real
        self._first_given: dict[str, int] = {}
        self._is_held: dict[str, bool] = {}

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The other target's holdings."""
        held = self._real.holdings(document_ids) if self._real else {}
        self._is_held |= {document_id: document_id in held for document_id in document_ids}
        return held

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """The other target's used-up revisions."""
        return self._real.used_up(document_ids) if self._real else {}

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """True if the other target holds these bytes."""
        return self._real is not None and self._real.holds(document_id, revision, sha256)

    def kept(self, site_id: int) -> int:
        """0: the ledger beside it does not describe the other target."""
        return 0

    def upload(self, uploads: Sequence[Upload], session: Session) -> list[Action]:
        """Report for each if it would be an insert or an update, with the same result for a second upload.

        The other target is logged out already: this looks up only documents that it has not looked up before.
        """
        documents = [upload.fetched.document for upload in uploads]
        if unasked := [each.document_id for each in documents if each.document_id not in self._is_held]:
            self.holdings(unasked)
        actions = []
        for document in documents:
            first = self._first_given.setdefault(document.document_id, document.revision)
            is_new = not self._is_held[document.document_id] and document.revision == first
            actions.append(Action.INSERT if is_new else Action.UPDATE)
        return actions

    def restamp(self, documents: Sequence[ListedDocument], session: Session) -> None:
        """Nothing is kept."""

    def delete(self, deletion: Deletion, session: Session) -> None:
        """Forget it."""


class NoTarget:
    """Holds nothing and keeps nothing: every document of every list is fetched and checked in every harvest."""

    uploads_at_once = 1

    def describe(self) -> str:
        """The description for people."""
        return "none: documents are fetched and checked, and go nowhere"

    @contextmanager
    def session(self, site: Site | None) -> Iterator[ForgettingSession]:
        """A session that stores nothing."""
        yield ForgettingSession(None)

    def check(self, site: Site | None) -> Iterator[Standing]:
        """The fact that there is nothing to check."""
        yield Standing("warning", "There is no repository: documents are fetched and checked, and nothing is uploaded.")

    def held(self) -> Iterator[HeldRevision]:
        """Nothing."""
        return iter(())

    def revisions(self, document_id: str) -> list[HeldRevision]:
        """None."""
        return []

    def content(self, document_id: str, revision: int) -> bytes | None:
        """None."""
        return None
