"""The embedded target: a store in the harvester's own database, the table document_revision.

It keeps every revision of every document, the bytes exactly as received, and writes in the journal's own transaction,
so that a document and its log row are written together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from sqlalchemy import bindparam, exists, func, select, update
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from metaharvest.database.dialects import document_size_for, largest_packet, reason_of
from metaharvest.database.engine import Sessions, database_errors
from metaharvest.database.models import Base, DocumentRevision, HarvestDocument, HarvestSiteSchedule
from metaharvest.database.rows import insert_rows
from metaharvest.errors import TargetError
from metaharvest.model import Action, Finding, Holding, ListedDocument, OutcomeKind, Site
from metaharvest.targets import provenance, transfers
from metaharvest.targets.base import (
    OF_ANOTHER_SITE,
    RECORD_OF_ANOTHER_SITE,
    Deletion,
    HeldRevision,
    Standing,
    Upload,
)
from metaharvest.text import shown_url

_REVISIONS = Base.metadata.tables[DocumentRevision.__tablename__]
_DESCRIBED = select(
    *_REVISIONS.c["document_id", "revision", "document_type", "size", "sha256", "inserted_at", "source_url"],
    _REVISIONS.c.site_schedule_id.label("site_id"),
)
_PAGE = (
    _DESCRIBED.where(_REVISIONS.c.document_id > bindparam("after"), ~provenance.is_buried(_REVISIONS.c.document_id))
    .order_by(_REVISIONS.c.document_id, _REVISIONS.c.revision)
    .limit(bindparam("number"))
)
_ROWS_AT_ONCE = 1000


class EmbeddedTarget:
    """Documents as rows. A document belongs to the site of its highest revision, or to its receiver in a transfer."""

    writes_in_journal: Literal[True] = True
    keeps: bool = True
    uploads_at_once = 1

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def describe(self) -> str:
        """The target in a few words."""
        return "the embedded repository"

    @contextmanager
    def session(self, site: Site | None) -> Iterator[EmbeddedTarget]:
        """The same for every site: the journal decides about the owner before it uploads a document."""
        yield self

    def check(self, site: Site | None) -> Iterator[Standing]:
        """The number of documents that it holds."""
        try:
            with self._sessions() as session:
                query = select(func.count(_REVISIONS.c.document_id.distinct()))
                number = session.scalar(query.where(~provenance.is_buried(_REVISIONS.c.document_id))) or 0
        except DBAPIError as error:
            yield Standing("problem", f"The harvester's own database does not answer: {reason_of(error)}.")
        else:
            documents = "1 document" if number == 1 else f"{number:,} documents"
            yield Standing("ok", f"The embedded repository holds {documents}.")

    def held(self) -> Iterator[HeldRevision]:
        """Every revision, without its bytes, of the documents that are not deleted.

        It reads page by page, each in its own session: the caller may take long over a page.
        """
        after, number = "", _ROWS_AT_ONCE
        while True:
            with self._reading() as session:
                rows = session.execute(_PAGE, {"after": after, "number": number}).mappings()
                found = [HeldRevision(**row) for row in rows]
            is_last = len(found) < number
            # The last document may have more revisions than this page: the next page reads it.
            page = found if is_last else [each for each in found if each.document_id != found[-1].document_id]
            yield from page
            if is_last:
                return
            after = page[-1].document_id if page else after
            number = _ROWS_AT_ONCE if page else number * 2

    def revisions(self, document_id: str) -> list[HeldRevision]:
        """The revisions of one document, the highest first."""
        query = _DESCRIBED.where(_REVISIONS.c.document_id == document_id).order_by(_REVISIONS.c.revision.desc())
        with self._reading() as session:
            # Compared here too: MariaDB ignores spaces at the end.
            found = [HeldRevision(**row) for row in session.execute(query).mappings()]
        return [each for each in found if each.document_id == document_id]

    def content(self, document_id: str, revision: int) -> bytes | None:
        """The exact bytes of one revision; None if it is not there."""
        query = select(_REVISIONS.c.content).where(
            _REVISIONS.c.document_id == document_id, _REVISIONS.c.revision == revision
        )
        with self._reading() as session:
            return session.scalar(query)

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The highest revision of each of these documents, with its digest and the site it belongs to."""
        with self._reading() as session:
            held = {holding.document_id: holding for holding in _highest(session, document_ids)}
            for document_id, taken_from in transfers.taken_from(session, document_ids).items():
                if document_id in held:
                    held[document_id] = replace(held[document_id], taken_from=taken_from)
            return held

    def used_up(self, document_ids: Sequence[str]) -> Mapping[str, int]:
        """The highest revision of each of these documents that has a tombstone."""
        with self._reading() as session:
            return provenance.used_up(session, document_ids)

    def holds(self, document_id: str, revision: int, sha256: str) -> bool:
        """True if exactly these bytes are there under this docid."""
        statement = select(DocumentRevision.document_id, DocumentRevision.sha256).where(
            DocumentRevision.document_id == document_id, DocumentRevision.revision == revision
        )
        with self._reading() as session:
            # Compared here too: MariaDB ignores spaces at the end.
            return session.execute(statement).first() == (document_id, sha256)

    def kept(self, site_id: int) -> int:
        """The number of the site's ledger entries that agree with this target: document, site, highest revision."""
        with self._sessions() as session:
            return session.connection().execute(_KEPT, {"site": site_id}).scalar_one()

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        """A short session. Raises DatabaseUnavailable: this is the harvester's own database."""
        with self._sessions() as session, database_errors(session.get_bind().engine):
            yield session

    def upload(self, uploads: Sequence[Upload], session: Session) -> list[Action]:
        """Store the revisions through `session`.

        Raises TargetError if this or a higher revision exists already, or the document belongs to another site.
        """
        document_ids = list({upload.fetched.document.document_id for upload in uploads})
        held = {holding.document_id: holding for holding in _highest(session, document_ids)}
        used_up = provenance.revive(session, [upload.fetched.document for upload in uploads])
        packet = largest_packet(session.connection())
        actions = []
        for upload in uploads:
            document = upload.fetched.document
            before = held.get(document.document_id)
            _refuse(upload, before, used_up.get(document.document_id))
            _refuse_too_large(upload, packet)
            actions.append(Action.INSERT if before is None else Action.UPDATE)
            held[document.document_id] = Holding(document.document_id, document.revision, None, upload.site_id)
        insert_rows(session.connection(), _REVISIONS, [_row(upload) for upload in uploads])
        provenance.note_origins(session, uploads)
        return actions

    def delete(self, deletion: Deletion, session: Session) -> None:
        """Write a tombstone for this document; its revisions stay, and can be read.

        Raises TargetError if the document belongs to another site.
        """
        document_id = deletion.document.document_id
        for held in _highest(session, [document_id]):
            _refuse_other_site(deletion, document_id, held, RECORD_OF_ANOTHER_SITE)
            provenance.bury(session, deletion)

    def erase(self, document_id: str, session: Session) -> int:
        """Delete the content and the origins of all revisions of a document. Returns the number of revisions."""
        return provenance.erase(session, document_id)

    def restore(self, document_id: str, session: Session) -> None:
        """Remove the tombstone of a document. The target holds its remaining revisions again."""
        provenance.unbury(session, document_id)

    def restamp(self, documents: Sequence[ListedDocument], session: Session) -> None:
        """Update the datestamps, sets and descriptions of the records of these revisions."""
        provenance.restamp(session, documents)

    def owners(self, document_ids: Sequence[str], session: Session) -> Mapping[str, int]:
        """The registered site of each of these documents, if it has one."""
        held = _highest(session, document_ids)
        return {each.document_id: each.site_id for each in held if each.site_id is not None}

    def transfer(self, document_ids: Sequence[str], site_id: int, session: Session) -> None:
        """Transfer documents to another site."""
        rows = [{"this": each.document_id, "highest": each.revision} for each in _highest(session, document_ids)]
        if rows:
            session.connection().execute(_GIVE.values(site_schedule_id=site_id), rows)

    def documents_between(self, first: str, end: str) -> list[str]:
        """The documents with ids from `first` up to, but not, `end`, byte by byte, in this order."""
        within = (_REVISIONS.c.document_id >= first, _REVISIONS.c.document_id < end)
        with self._sessions() as session:
            query = select(_REVISIONS.c.document_id).distinct().where(*within).order_by(_REVISIONS.c.document_id)
            return list(session.scalars(query))


def _refuse_other_site(by: Upload | Deletion, document_id: str, held: Holding, remedy: str) -> None:
    if held.site_id not in (None, by.site_id, *by.same_origin):
        message = f"{document_id} belongs to another site by now."
        raise TargetError(Finding("target.other-site", message, remedy))


def _refuse(upload: Upload, held: Holding | None, used_up: int | None) -> None:
    document = upload.fetched.document
    if held is not None:
        remedy = OF_ANOTHER_SITE if document.origin is None else RECORD_OF_ANOTHER_SITE
        _refuse_other_site(upload, document.document_id, held, remedy)
    highest = held.revision if held else used_up
    if highest is not None and highest >= document.revision:
        has, end = ("has", "by now") if held else ("had", "which was deleted")
        message = f"The repository {has} revision {highest} of {document.document_id}{'' if held else ','} {end}."
        remedy = f"If this document is newer, list it as revision {highest + 1}."
        raise TargetError(Finding("target.exists", message, remedy))


def _refuse_too_large(upload: Upload, packet: int | None) -> None:
    size = len(upload.fetched.content)
    if packet is not None and size > (largest := document_size_for(packet)):
        takes = f"the repository's database takes {largest:,} at most: its max_allowed_packet is {packet:,}"
        remedy = "The administrator should raise max_allowed_packet; `metaharvest doctor` says to what."
        raise TargetError(Finding("target.not-stored", f"The document has {size:,} bytes, and {takes}.", remedy))


def _row(upload: Upload) -> dict[str, object]:
    fetched, document = upload.fetched, upload.fetched.document
    return {
        "document_id": document.document_id,
        "revision": document.revision,
        "document_type": document.document_type,
        "content": fetched.content,
        "size": len(fetched.content),
        "sha256": fetched.sha256,
        "source_url": shown_url(document.url),
        "site_schedule_id": upload.site_id or None,
        "inserted_at": upload.at,
    }


def _highest(session: Session, document_ids: Sequence[str]) -> Iterator[Holding]:
    """The highest revision of each; it belongs to the site that it came from, if that is registered."""
    rows = session.connection().execute(_HELD, {"documents": document_ids}).all()
    # In ascending order: the last row of a document is its highest revision.
    return (Holding(*row) for row in {row[0]: row for row in rows}.values())


_SITES = Base.metadata.tables[HarvestSiteSchedule.__tablename__]
_HELD = (
    select(_REVISIONS.c.document_id, _REVISIONS.c.revision, _REVISIONS.c.sha256, _SITES.c.site_schedule_id)
    .outerjoin(_SITES, _SITES.c.site_schedule_id == _REVISIONS.c.site_schedule_id)
    .where(
        _REVISIONS.c.document_id.in_(bindparam("documents", expanding=True)),
        ~provenance.is_buried(_REVISIONS.c.document_id),
    )
    .order_by(_REVISIONS.c.document_id, _REVISIONS.c.revision)
)

_GIVE = update(_REVISIONS).where(
    _REVISIONS.c.document_id == bindparam("this"), _REVISIONS.c.revision == bindparam("highest")
)

_LEDGER = Base.metadata.tables[HarvestDocument.__tablename__]
_HIGHER = _REVISIONS.alias()
_KEPT = (
    select(func.count())
    .select_from(_LEDGER)
    .join(
        _REVISIONS,
        (_REVISIONS.c.document_id == _LEDGER.c.document_id)
        & (_REVISIONS.c.revision == _LEDGER.c.target_revision)
        & (_REVISIONS.c.site_schedule_id == _LEDGER.c.site_schedule_id),
    )
    .where(
        _LEDGER.c.site_schedule_id == bindparam("site"),
        _LEDGER.c.outcome == OutcomeKind.UNCHANGED.value,
        _LEDGER.c.pending_sha256.is_(None),
        ~exists().where(_HIGHER.c.document_id == _LEDGER.c.document_id, _HIGHER.c.revision > _LEDGER.c.target_revision),
    )
)
