"""Where documents go: the repository that the harvest keeps up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlalchemy.orm import Session

from metaharvest.model import Action, FetchedDocument, Holding


@dataclass(frozen=True, slots=True)
class Upload:
    """A checked document on its way into the target."""

    fetched: FetchedDocument
    site_id: int
    at: datetime


class Target(Protocol):
    """A repository. It knows a document by its document id (opaque, compared exactly) and its revision alone.

    Where `writes_in_journal` is true, `upload` writes through the session it is given, and is undone with it.
    Otherwise the journal notes the upload as pending and commits before `upload` is called without a session; what a
    later run finds pending it looks up with `holds` before anything is sent again.
    """

    writes_in_journal: bool

    def describe(self) -> str:
        """The target in a few words, for reports; no secrets."""

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The highest revision of each of these documents (at most a thousand) that the target holds.

        Raises TargetError where it does not answer.
        """

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """Whether the target holds exactly these bytes under this docid. Raises TargetError."""

    def kept(self, site_id: int) -> int:
        """How many documents of the site's ledger the target holds just as the ledger says, told in one question.

        Asked only where `writes_in_journal` is true, as the ledger is beside it then; 0: ask about each document.
        """

    def upload(self, uploads: Sequence[Upload], session: Session | None) -> list[Action]:
        """Insert these documents or update them; which of the two it was for each.

        Raises TargetError where one is refused: then none of them is there. Without a session there is only one.
        """
