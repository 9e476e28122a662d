"""Writes the catalogue: revisions with their origins, the current documents with their sets, and tombstones.

All writes belong to the caller's transaction. Each document that changes gets the next number of the change feed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, delete, update
from sqlalchemy.orm import Session

from metaharvest.catalogue import provenance
from metaharvest.catalogue.change_feed import THIS_DOCUMENT, move, move_other_formats, take_numbers
from metaharvest.catalogue.current import DOCUMENTS, FORMER, REVISIONS, SETS, Current, current_documents, revisions_of
from metaharvest.catalogue.selection import LONGEST_SET
from metaharvest.catalogue.withholding import settle
from metaharvest.database.rows import insert_rows
from metaharvest.errors import TargetError
from metaharvest.model import Deletion, Finding, ListedDocument, Upload
from metaharvest.model.namespaces import OAI_DC
from metaharvest.text import shown_url

_LONGEST_TYPE = 255

_FORGET_FORMAT = delete(FORMER).where(
    FORMER.c.catalogue_document_id == bindparam("this"), FORMER.c.document_type == bindparam("type")
)
_MOVE_TO_SITE = update(REVISIONS).where(
    REVISIONS.c.document_id == bindparam("this"), REVISIONS.c.revision == bindparam("highest")
)


def store(session: Session, uploads: Sequence[Upload], known: Mapping[str, Current]) -> None:
    """Store these revisions, the last one of each document as the current one.

    `known` are the documents among them that are in the catalogue. Raises TargetError if a value is too long, or a
    document was transferred after `known` was read.
    """
    connection = session.connection()
    insert_rows(connection, REVISIONS, [_revision_row(upload) for upload in uploads])
    provenance.note_origins(session, uploads, [each for each, before in known.items() if before.deleted])
    newest = {upload.fetched.document.document_id: upload for upload in uploads}
    taken = take_numbers(session, len(newest))
    _refuse_transferred(session, known)
    same = {"changed_at": taken.at, "deleted": False}
    new: list[dict[str, object]] = []
    changed: list[dict[str, Any]] = []
    sets: dict[int, Sequence[str]] = {}
    sites: dict[int, int] = {}
    formats: dict[int, tuple[str, str]] = {}
    for seq, (document_id, upload) in enumerate(newest.items(), taken.first):
        before, values = known.get(document_id), _values(upload)
        if before and before.document_type != values["document_type"]:
            formats[before.number] = (before.document_type, str(values["document_type"]))
        if upload.site_id:
            sites[before.number if before else seq] = upload.site_id
        if before is None:
            new.append({"catalogue_document_id": seq, "document_id": document_id, "change_seq": seq, **values})
        else:
            changed.append({"this": before.number, "change_seq": seq, **values, **same})
        if origin := upload.fetched.document.origin:
            sets[before.number if before else seq] = origin.sets
    if new:
        insert_rows(connection, DOCUMENTS, new, same)
    if changed:
        connection.execute(THIS_DOCUMENT, changed)
        _forget_sets(session, [each.number for each in known.values()])
    if formats:
        _note_formats(session, formats, taken.at)
        move_other_formats(session, [row["this"] for row in changed if row["this"] in formats])
    _write_sets(session, sets)
    settle(session, sites, first_new=taken.first)


def delete_document(session: Session, deletion: Deletion, document: Current) -> None:
    """Delete a document: write its tombstone. Its revisions stay, and can be read."""
    provenance.write_tombstone(session, deletion, document.holding.revision)
    _delete(session, document)


def erase(session: Session, document_id: str) -> int:
    """Delete the content, the origins and the title of a document. Returns the number of revisions.

    Its sets stay: readers of a set learn of the deletion.
    """
    number = provenance.erase(session, document_id)
    if document := current_documents(session, [document_id]).get(document_id):
        _delete(session, document, title="")
    return number


def restore(session: Session, document_id: str) -> None:
    """Remove the tombstone of a document. A document whose content was erased stays deleted."""
    provenance.remove_tombstones(session, [document_id])
    document = current_documents(session, [document_id]).get(document_id)
    if document and document.deleted and revisions_of(session, document_id):
        move(session, [document.number], deleted=False)


def restamp(session: Session, documents: Sequence[ListedDocument]) -> None:
    """Update the datestamps, sets and descriptions of the records of these revisions.

    Only a record whose values differ counts as changed.
    """
    if changed := provenance.restamp(session, documents):
        if others := {number: sets for number, sets in changed.items() if sets is not None}:
            _forget_sets(session, list(others))
            _write_sets(session, others)
        move(session, list(changed))


def transfer(session: Session, document_ids: Sequence[str], site_id: int) -> None:
    """Transfer the documents among these that are not deleted to another site."""
    found = current_documents(session, document_ids).values()
    if moved := [each for each in found if not each.deleted and each.holding.site_id != site_id]:
        rows = [{"this": each.holding.document_id, "highest": each.holding.revision} for each in moved]
        session.connection().execute(_MOVE_TO_SITE.values(site_schedule_id=site_id), rows)
        move(session, [each.number for each in moved], site_schedule_id=site_id)
        settle(session, {each.number: site_id for each in moved})


def _refuse_transferred(session: Session, known: Mapping[str, Current]) -> None:
    """Raise TargetError if one of these documents was transferred to another site.

    The lock of the counter keeps the owner until the commit.
    """
    now = current_documents(session, known.keys()) if known else {}
    for document_id, before in known.items():
        if now[document_id].holding.site_id != before.holding.site_id:
            message = f"{document_id} belongs to another site by now."
            raise TargetError(Finding("target.other-site", message, "The next harvest of the list decides again."))


def _delete(session: Session, document: Current, **values: Any) -> None:
    move(session, [document.number], deleted=True, **values)
    move_other_formats(session, [document.number])


def _note_formats(session: Session, changed: Mapping[int, tuple[str, str]], at: datetime) -> None:
    """Note the former and the present type of documents, by number, whose types have changed.

    Every item is there in Dublin Core, whatever its formats are.
    """
    connection = session.connection()
    connection.execute(_FORGET_FORMAT, [{"this": number, "type": present} for number, (_, present) in changed.items()])
    left = {number: former for number, (former, _) in changed.items() if former not in ("", OAI_DC)}
    if left:
        rows = [{"catalogue_document_id": number, "document_type": former} for number, former in left.items()]
        insert_rows(connection, FORMER, rows, {"changed_at": at})


def _forget_sets(session: Session, numbers: Sequence[int]) -> None:
    session.connection().execute(delete(SETS).where(SETS.c.catalogue_document_id.in_(numbers)))


def _write_sets(session: Session, sets: Mapping[int, Sequence[str]]) -> None:
    rows = [
        {"catalogue_document_id": number, "set_spec": each}
        for number, specs in sets.items()
        for each in dict.fromkeys(specs)
        if each.isascii() and len(each) <= LONGEST_SET
    ]
    if rows:
        insert_rows(session.connection(), SETS, rows)


def _values(upload: Upload) -> dict[str, object]:
    """The columns of the current document that an upload sets."""
    fetched, document = upload.fetched, upload.fetched.document
    origin, item = None, document.document_id
    # The document id of a record is its origin, its prefix and its identifier; a plug-in may make others.
    if document.origin is not None and len(parts := document.document_id.split("/", 2)) == 3:
        origin, _, item = parts
    return {
        "item_identifier": item,
        "origin": origin,
        "document_type": document.document_type[:_LONGEST_TYPE] if upload.is_embeddable else "",
        "revision": document.revision,
        "sha256": fetched.sha256,
        "title": upload.title,
        "site_schedule_id": upload.site_id or None,
    }


def _revision_row(upload: Upload) -> dict[str, object]:
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
