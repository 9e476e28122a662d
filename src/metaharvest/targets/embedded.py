"""The embedded target: the catalogue, in the harvester's own database.

It keeps every revision of every document, the bytes exactly as received, and writes in the journal's own transaction,
so that a document and its log row are written together or not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from metaharvest.catalogue import current, provenance, writing
from metaharvest.catalogue.change_feed import take_numbers
from metaharvest.database.dialects import document_size_for, largest_packet, reason_of
from metaharvest.database.engine import Sessions, database_errors
from metaharvest.errors import TargetError
from metaharvest.model import Action, Finding, Holding, ListedDocument, Site
from metaharvest.model.actions import Remedy, todo
from metaharvest.targets import transfers
from metaharvest.targets.base import OF_ANOTHER_SITE, RECORD_OF_ANOTHER_SITE, Deletion, HeldRevision, Standing, Upload
from metaharvest.text import counted

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
                number = current.number_held(session)
        except DBAPIError as error:
            yield Standing("problem", f"The harvester's own database does not answer: {reason_of(error)}.")
        else:
            documents = counted(number, "document")
            yield Standing("ok", f"The embedded repository holds {documents}.")

    def held(self) -> Iterator[HeldRevision]:
        """Every revision, without its bytes, of the documents that are not deleted.

        It reads page by page, each in its own session: the caller may take long over a page.
        """
        after, number = "", _ROWS_AT_ONCE
        while True:
            with self._reading() as session:
                found = current.held_page(session, after, number)
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
        with self._reading() as session:
            return list(current.revisions_of(session, document_id))

    def content(self, document_id: str, revision: int) -> bytes | None:
        """The exact bytes of one revision; None if it is not there."""
        with self._reading() as session:
            return current.content_of(session, document_id, revision)

    def holdings(self, document_ids: Sequence[str]) -> Mapping[str, Holding]:
        """The current revision of each of these documents, with its digest and the site it belongs to."""
        with self._reading() as session:
            held = dict(current.held_documents(session, document_ids))
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
        with self._reading() as session:
            return current.has_bytes(session, document_id, revision, sha256)

    def kept(self, site_id: int) -> int:
        """The number of the site's ledger entries that agree with this target: document, site, revision."""
        with self._sessions() as session:
            return current.number_as_in_ledger(session, site_id)

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        """A short session. Raises DatabaseUnavailable: this is the harvester's own database."""
        with self._sessions() as session, database_errors(session.get_bind().engine):
            yield session

    def upload(self, uploads: Sequence[Upload], session: Session) -> list[Action]:
        """Store the revisions through `session`.

        Raises TargetError if this or a higher revision exists already, or the document belongs to another site.
        """
        known = current.current_documents(session, {upload.fetched.document.document_id for upload in uploads})
        held = {document_id: each.holding for document_id, each in known.items() if not each.deleted}
        # If an upload is refused, the rollback restores them.
        used_up = provenance.remove_tombstones(session, known.keys() - held.keys())
        packet = largest_packet(session.connection())
        actions = []
        for upload in uploads:
            document = upload.fetched.document
            before = held.get(document.document_id)
            _refuse(upload, before, used_up.get(document.document_id))
            _refuse_too_large(upload, packet)
            actions.append(Action.INSERT if before is None else Action.UPDATE)
            held[document.document_id] = Holding(document.document_id, document.revision, None, upload.site_id)
        writing.store(session, uploads, known)
        return actions

    def delete(self, deletion: Deletion, session: Session) -> None:
        """Write a tombstone for this document; its revisions stay, and can be read.

        Raises TargetError if the document belongs to another site.
        """
        take_numbers(session, 0)  # a transfer under way holds this lock
        document_id = deletion.document.document_id
        document = current.current_documents(session, [document_id]).get(document_id)
        if document is not None and not document.deleted:
            _refuse_other_site(deletion, document_id, document.holding, RECORD_OF_ANOTHER_SITE)
            writing.delete_document(session, deletion, document)

    def erase(self, document_id: str, session: Session) -> int:
        """Delete the content and the origins of all revisions of a document. Returns the number of revisions."""
        return writing.erase(session, document_id)

    def restore(self, document_id: str, session: Session) -> None:
        """Remove the tombstone of a document. The target holds its remaining revisions again."""
        writing.restore(session, document_id)

    def restamp(self, documents: Sequence[ListedDocument], session: Session) -> None:
        """Update the datestamps, sets and descriptions of the records of these revisions."""
        writing.restamp(session, documents)


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
        check = todo("installation.check")
        remedy = Remedy("The administrator should raise max_allowed_packet; {} says to what.", check)
        raise TargetError(Finding("target.not-stored", f"The document has {size:,} bytes, and {takes}.", remedy))
