"""No target: documents are fetched and checked, and go nowhere. A rehearsal of a whole network, and of one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from sqlalchemy.orm import Session

from metaharvest.model import Action, Holding, ListedDocument, Site
from metaharvest.targets.base import Deletion, HeldRevision, Holder, Standing, Upload


class ForgettingSession:
    """Knows what another target holds (nothing, if there is none), and forgets what it is given."""

    writes_in_journal: Literal[True] = True
    keeps: bool = False

    def __init__(self, real: Holder | None) -> None:
        self._real = real
        self._first_given: dict[str, int] = {}
        self._is_held: dict[str, bool] = {}

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """What the other target holds."""
        held = self._real.holdings(document_ids) if self._real else {}
        self._is_held |= {document_id: document_id in held for document_id in document_ids}
        return held

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """What the other target says."""
        return self._real.used_up(document_ids) if self._real else {}

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """Whether the other target holds these bytes."""
        return self._real is not None and self._real.holds(document_id, revision, sha256)

    def kept(self, site_id: int) -> int:
        """0: the ledger beside it does not tell what the other target holds."""
        return 0

    def upload(self, uploads: Sequence[Upload], session: Session) -> list[Action]:
        """Say for each whether it would have been an insert or an update, the same if it is handed over again.

        This is called when the other target is logged out already: it is asked only about what it was not asked before.
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
        """What people read in place of a repository's name."""
        return "none: documents are fetched and checked, and go nowhere"

    @contextmanager
    def session(self, site: Site | None) -> Iterator[ForgettingSession]:
        """A session that forgets what it is given."""
        yield ForgettingSession(None)

    def check(self, site: Site | None) -> Iterator[Standing]:
        """That there is nothing to ask."""
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
