"""The origins of the revisions in the catalogue, and the tombstones of its deleted documents."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, bindparam, delete, insert, select, update
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import DOCUMENTS, ORIGIN_OF_CURRENT, ORIGINS, REVISIONS, TOMBSTONES
from metaharvest.database.models import HarvestDocument
from metaharvest.database.rows import insert_rows
from metaharvest.errors import TargetError
from metaharvest.fetch.url import without_login
from metaharvest.model import Deletion, Finding, ListedDocument, RecordOrigin, Upload
from metaharvest.model.lengths import too_long
from metaharvest.model.mappings import picked

_AGAIN = update(ORIGINS).where(ORIGINS.c.document_id == bindparam("this"), ORIGINS.c.revision == bindparam("number"))
_TEXTS = ("base_url", "identifier", "prefix", "datestamp", "response_date", "namespace", "digest")
PROVENANCE = ORIGINS.c[*_TEXTS, "about", "altered"]
"""The columns that provenance_from() takes."""

_IS_ERASED: ColumnElement[bool] = ORIGINS.c.base_url == ""
"""The origin was erased, and its document was normalised."""

_COMPARED = ("datestamp", "sets", "about")
"""The columns that _compared() has: a list may change them while the metadata is the same."""

_LISTED = (
    select(DOCUMENTS.c.catalogue_document_id, *ORIGINS.c["document_id", "revision", *_COMPARED])
    .join(ORIGINS, ORIGIN_OF_CURRENT)
    .where(DOCUMENTS.c.document_id.in_(bindparam("documents", expanding=True)), ~_IS_ERASED)
)
_ANY_TOMBSTONE = select(TOMBSTONES.c.document_id).limit(1)
_OF_TOMBSTONES = select(TOMBSTONES.c.document_id, TOMBSTONES.c.revision).where(
    TOMBSTONES.c.document_id.in_(bindparam("documents", expanding=True))
)


class Provenance(NamedTuple):
    """The origin of a revision. `altered`: it was normalised."""

    origin: RecordOrigin
    altered: bool


def provenance_of(session: Session, document_id: str, revision: int) -> Provenance | None:
    """The origin of this revision; None for a document of a harvest list in its received form."""
    this = (ORIGINS.c.document_id == document_id, ORIGINS.c.revision == revision)
    row = session.execute(select(*PROVENANCE, ORIGINS.c.sets).where(*this)).first()
    if row is None:
        return None
    *values, sets = row
    return provenance_from(values, json.loads(sets))


def provenance_from(values: Sequence[Any], sets: Sequence[str] = ()) -> Provenance:
    """The provenance with these values of PROVENANCE, and these sets."""
    base_url, identifier, prefix, datestamp, response_date, namespace, digest, about, altered = values
    # Most records have no containers.
    containers = () if about == "[]" else tuple(each.encode() for each in json.loads(about))
    origin = RecordOrigin(
        base_url, identifier, prefix, datestamp, response_date, namespace, digest, tuple(sets), containers
    )
    return Provenance(origin, bool(altered))


def note_origins(session: Session, uploads: Sequence[Upload], back: Collection[str]) -> None:
    """Store the origins of the documents that are records of a source repository, or were normalised.

    `back` are the ids of the documents among them that were deleted until now.
    """
    if back:
        session.execute(delete(ORIGINS).where(ORIGINS.c.document_id.in_(back), _IS_ERASED))
    if rows := [row for upload in uploads if (row := _origin(upload))]:
        insert_rows(session.connection(), ORIGINS, rows)


def restamp(session: Session, documents: Sequence[ListedDocument]) -> Mapping[int, Sequence[str] | None]:
    """Update the origins of these revisions, if their records have other datestamps, sets or descriptions.

    Returns the current documents that changed, by number in the catalogue: the new sets; None if they are the same.
    """
    listed = {(each.document_id, each.revision): each.origin for each in documents}
    changed, rows = dict[int, Sequence[str] | None](), []
    known = session.connection().execute(_LISTED, {"documents": [document_id for document_id, _ in listed]}).all()
    for number, document_id, revision, datestamp, sets, about in known:
        origin = listed.get((document_id, revision))
        if origin is None or (datestamp, sets, about) == _compared(origin) or too_long(origin):
            continue
        values = _listed(origin)
        if sets != values["sets"] and sorted(json.loads(sets)) == sorted(json.loads(values["sets"])):
            values["sets"] = sets  # a repository may list the sets of a record in any order
        if (datestamp, sets, about) != tuple(values[name] for name in _COMPARED):
            changed[number] = None if sets == values["sets"] else origin.sets
            rows.append({"this": document_id, "number": revision, **values})
    if rows:
        session.connection().execute(_AGAIN, rows)
    return changed


def write_tombstone(session: Session, deletion: Deletion, revision: int) -> None:
    """Write a tombstone for a document; `revision` is its highest one."""
    document = deletion.document
    datestamp = select(HarvestDocument.datestamp).where(
        HarvestDocument.site_schedule_id == deletion.site_id, HarvestDocument.document_id == document.document_id
    )
    session.execute(delete(TOMBSTONES).where(TOMBSTONES.c.document_id == document.document_id))
    session.execute(
        insert(TOMBSTONES).values(
            document_id=document.document_id,
            revision=revision,
            site_schedule_id=deletion.site_id or None,
            datestamp=session.scalar(datestamp) or "",
            deleted_at=deletion.at,
        )
    )


def erase(session: Session, document_id: str) -> int:
    """Delete all revisions of a document and their origins. Returns the number of revisions.

    If the document was normalised, an empty origin says so: its public identifier depends on this.
    """
    numbers = dict[str, int]()
    normalised = select(*ORIGINS.c["document_id", "revision", "sets"]).join(DOCUMENTS, ORIGIN_OF_CURRENT)
    kept = session.execute(normalised.where(ORIGINS.c.document_id == document_id, ORIGINS.c.altered)).all()
    for table, key in ((REVISIONS, "document_revision_id"), (ORIGINS, "document_origin_id")):
        found = session.execute(select(table.c[key], table.c.document_id).where(table.c.document_id == document_id))
        # Compared here too: MariaDB ignores spaces at the end.
        keys = [row[0] for row in found if row[1] == document_id]
        session.execute(delete(table).where(table.c[key].in_(keys)))
        numbers[table.name] = len(keys)
    if rows := [row._asdict() for row in kept if row.document_id == document_id]:
        insert_rows(session.connection(), ORIGINS, rows, _ERASED)
    return numbers[REVISIONS.name]


def used_up(session: Session, document_ids: Collection[str]) -> dict[str, int]:
    """The highest revision of each of these documents, if there is a tombstone for it."""
    wanted, connection = set(document_ids), session.connection()
    if connection.execute(_ANY_TOMBSTONE).first() is None:
        return {}
    rows = connection.execute(_OF_TOMBSTONES, {"documents": list(wanted)})
    # Compared here too: MariaDB ignores spaces at the end.
    return {document_id: revision for document_id, revision in rows if document_id in wanted}


def remove_tombstones(session: Session, document_ids: Collection[str]) -> dict[str, int]:
    """Remove the tombstones of these documents. Returns the highest revision of each document that had one."""
    found = used_up(session, document_ids) if document_ids else {}
    if found:
        session.execute(delete(TOMBSTONES).where(TOMBSTONES.c.document_id.in_(found)))
    return found


def _origin(upload: Upload) -> Mapping[str, object] | None:
    """The row; None for a document of a list in its received form. Raises TargetError if a value is too long."""
    fetched, document = upload.fetched, upload.fetched.document
    origin = document.origin
    if origin is None and fetched.received is not None:
        url = without_login(document.url)
        origin = RecordOrigin(url, document.document_id, "", "", "", document.document_type)
    if origin is None:
        return None
    if why := too_long(origin):
        message = f"The record is not stored: {why}."
        raise TargetError(Finding("target.not-stored", message, _TOO_LONG))
    return {
        "document_id": document.document_id,
        "revision": document.revision,
        **picked(origin, "base_url identifier prefix namespace digest"),
        **_listed(origin),
        "altered": fetched.received is not None,
        "received": fetched.received,
    }


def _listed(origin: RecordOrigin) -> dict[str, str]:
    """The values that may differ in the next list, while the metadata is the same."""
    datestamp, sets, about = _compared(origin)
    return {"datestamp": datestamp, "response_date": origin.response_date[:40], "sets": sets, "about": about}


def _compared(origin: RecordOrigin) -> tuple[str, str, str]:
    """The values of `_COMPARED`."""
    about = json.dumps([each.decode("utf-8", "replace") for each in origin.about]) if origin.about else "[]"
    return origin.datestamp[:40], _sets_as_json(origin.sets), about


_ERASED: Mapping[str, object] = {**dict.fromkeys(_TEXTS, ""), "about": "[]", "altered": True, "received": None}
_TOO_LONG = "The keeper of the repository should make it shorter: nothing that describes a record is so long."


@lru_cache(maxsize=256)
def _sets_as_json(sets: tuple[str, ...]) -> str:
    """JSON of the sets; cached, as most records of a list are in the same few sets."""
    return json.dumps(sets)
