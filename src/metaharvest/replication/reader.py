"""The target that documents are copied from: its documents, their owners, and their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import groupby, islice
from operator import attrgetter

from sqlalchemy import Engine

from metaharvest.database.engine import database_errors, readers
from metaharvest.errors import TargetError
from metaharvest.harvest.site_target import TargetHealth
from metaharvest.harvest.tasks import in_thread
from metaharvest.model import FetchedDocument, Finding, ListedDocument
from metaharvest.replication.result import CopyOutcome, CopyTally
from metaharvest.targets import owners
from metaharvest.targets.base import HeldRevision, Target

_AT_ONCE = 500
"""Documents that are planned together. Sessions with the target stay open for them."""


@dataclass(frozen=True, slots=True)
class CopiedDocument:
    """A document as the source has it: its revisions in ascending order, and the site that owns it, if known."""

    document_id: str
    revisions: Sequence[HeldRevision]
    owner: int | None


class CopySource:
    """The target that documents are copied from. `only`: the documents of this site alone."""

    def __init__(self, target: Target, engine: Engine, only: int | None, tally: CopyTally) -> None:
        self.target = target
        self._engine = engine
        self._only = only
        self._tally = tally
        self._health = TargetHealth()

    def batches(self) -> Iterator[Sequence[CopiedDocument]]:
        """The documents. Raises TargetError; to be called in a thread."""
        documents = (list(revisions) for _, revisions in groupby(self.target.held(), key=attrgetter("document_id")))
        while several := list(islice(documents, _AT_ONCE)):
            with database_errors(self._engine), readers(self._engine)() as session:
                known = owners.owners_of(session, [each[0].document_id for each in several])
            found = [_document(revisions, known) for revisions in several]
            if wanted := [each for each in found if self._only in (None, each.owner)]:
                yield wanted

    def broke_off(self, error: TargetError) -> None:
        """Note that the source does not name its other documents."""
        self._tally.cut(self.target, error.findings, for_good=not error.transient)

    async def fetch(self, revision: HeldRevision) -> FetchedDocument | CopyOutcome:
        """The revision with its bytes. If they cannot be fetched, report that, and return the outcome."""
        try:
            content = await in_thread(partial(self.target.content, revision.document_id, revision.revision))
        except TargetError as error:
            if error.transient:
                self._health.failed(error.findings)
            if self._health.given_up:
                self._tally.cut(self.target, self._health.given_up)
            return self._tally.end(
                revision, CopyOutcome.LEFT if error.transient else CopyOutcome.UNREADABLE, error.findings[0]
            )
        self._health.answered()
        digest = "" if content is None else sha256(content).hexdigest()
        if content is None or (revision.sha256 or digest) != digest:
            return self._tally.end(revision, CopyOutcome.UNREADABLE, _unreadable(revision, digest))
        listed = ListedDocument(revision.document_id, revision.revision, revision.document_type, revision.source_url)
        return FetchedDocument(listed, content, digest, 0.0)


def _document(revisions: Sequence[HeldRevision], known: Mapping[str, int]) -> CopiedDocument:
    """The document; the owner of its highest revision owns it."""
    ascending = sorted(revisions, key=attrgetter("revision"))
    document_id, owner = ascending[-1].document_id, ascending[-1].site_id
    return CopiedDocument(document_id, ascending, known.get(document_id) if owner is None else owner)


def _unreadable(revision: HeldRevision, digest: str) -> Finding:
    docid = revision.docid
    if not digest:
        message = f"The source lists {docid}, but has no such document."
    else:
        message = f"The source has {docid} with SHA-256 {revision.sha256}, but gave bytes with {digest}."
    remedy = "Look into the repository that it is copied from: its document may be damaged."
    return Finding("copy.unreadable", message, remedy)
