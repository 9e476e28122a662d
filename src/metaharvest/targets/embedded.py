"""The embedded target: a repository in the harvester's own database, the table document_revision.

It keeps every revision of every document, the bytes exactly as received, and writes in the journal's own transaction,
so that a document and what is said of it are there together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import and_, func, insert, select, update
from sqlalchemy.orm import Session, aliased, defer

from metaharvest.database.engine import Sessions
from metaharvest.database.models import DocumentRevision
from metaharvest.errors import TargetError
from metaharvest.records import Action, Finding, Holding
from metaharvest.targets import Upload


class EmbeddedTarget:
    """Documents as rows. A document belongs to the site that its highest revision came from."""

    writes_in_journal = True

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def describe(self) -> str:
        """The target in a few words."""
        return "the embedded repository"

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The highest revision of each of these documents, with its digest and the site it came from."""
        with self._sessions() as session:
            return {holding.document_id: holding for holding in _highest(session, document_ids)}

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """Whether exactly these bytes are there under this docid."""
        statement = select(DocumentRevision.sha256).where(
            DocumentRevision.document_id == document_id, DocumentRevision.revision == revision
        )
        with self._sessions() as session:
            return session.scalar(statement) == sha256

    def upload(self, upload: Upload, session: Session | None) -> Action:
        """Store the revision through `session`; TargetError where it, or a higher one, is there already."""
        if session is None:
            raise TypeError("the embedded target writes in the journal's session")
        fetched, document = upload.fetched, upload.fetched.document
        held = next(_highest(session, [document.document_id]), None)
        if held is not None and held.revision >= document.revision:
            raise TargetError(
                Finding(
                    "target.exists",
                    f"The repository has revision {held.revision} of {document.document_id} by now.",
                    f"If this document is newer, list it as revision {held.revision + 1}.",
                )
            )
        session.execute(
            insert(DocumentRevision).values(
                document_id=document.document_id,
                revision=document.revision,
                document_type=document.document_type,
                content=fetched.content,
                size=len(fetched.content),
                sha256=fetched.sha256,
                source_url=document.url,
                site_schedule_id=upload.site_id,
                inserted_at=upload.at,
            )
        )
        return Action.UPDATE if held is not None else Action.INSERT

    def documents(self) -> Iterator[DocumentRevision]:
        """Every document's highest revision, in the order of their ids, without the bytes."""
        later = aliased(DocumentRevision)
        statement = (
            select(DocumentRevision)
            .options(defer(DocumentRevision.content))
            .where(
                ~select(later.document_id)
                .where(later.document_id == DocumentRevision.document_id, later.revision > DocumentRevision.revision)
                .exists()
            )
            .order_by(DocumentRevision.document_id)
            .execution_options(yield_per=1000)
        )
        with self._sessions() as session:
            yield from session.scalars(statement)

    def revisions(self, document_id: str) -> list[DocumentRevision]:
        """All revisions of one document, the highest first, without their bytes."""
        statement = (
            select(DocumentRevision)
            .options(defer(DocumentRevision.content))
            .where(DocumentRevision.document_id == document_id)
            .order_by(DocumentRevision.revision.desc())
        )
        with self._sessions() as session:
            return list(session.scalars(statement))

    def content(self, document_id: str, revision: int) -> bytes | None:
        """The exact bytes of one revision; None where it is not there."""
        statement = select(DocumentRevision.content).where(
            DocumentRevision.document_id == document_id, DocumentRevision.revision == revision
        )
        with self._sessions() as session:
            return session.scalar(statement)

    def transfer(self, document_id: str, site_id: int, session: Session) -> bool:
        """Let a document belong to another site from now on; False where there is no such document."""
        held = next(_highest(session, [document_id]), None)
        if held is None:
            return False
        session.execute(
            update(DocumentRevision)
            .where(DocumentRevision.document_id == document_id, DocumentRevision.revision == held.revision)
            .values(site_schedule_id=site_id)
        )
        return True


def _highest(session: Session, document_ids: Sequence[str]) -> Iterator[Holding]:
    highest = (
        select(DocumentRevision.document_id, func.max(DocumentRevision.revision).label("revision"))
        .where(DocumentRevision.document_id.in_(document_ids))
        .group_by(DocumentRevision.document_id)
        .subquery()
    )
    statement = select(
        DocumentRevision.document_id,
        DocumentRevision.revision,
        DocumentRevision.sha256,
        DocumentRevision.site_schedule_id,
    ).join(
        highest,
        and_(
            DocumentRevision.document_id == highest.c.document_id,
            DocumentRevision.revision == highest.c.revision,
        ),
    )
    for row in session.execute(statement):
        yield Holding(*row)
