"""The change feed with all that is known of each document, for those who copy the catalogue into files."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from metaharvest.catalogue.current import (
    COUNTER,
    DOCUMENTS,
    IS_CURRENT,
    ORIGIN_OF_CURRENT,
    ORIGINS,
    REVISIONS,
    SITE_OF_CURRENT,
    SITES,
    TOMBSTONES,
)
from metaharvest.catalogue.selection import NOTHING, Hidden, is_gone, published
from metaharvest.fetch.url import without_login
from metaharvest.model.mappings import record_of

_CHANGES = (
    select(
        *DOCUMENTS.c["change_seq", "changed_at", "document_id", "revision", "item_identifier", "origin"],
        *DOCUMENTS.c["document_type", "title", "sha256"],
        SITES.c.name.label("site"),
        *REVISIONS.c["document_revision_id", "size", "source_url"],
        *ORIGINS.c["base_url", "datestamp", "sets"],
        TOMBSTONES.c.datestamp.label("deletion_datestamp"),
    )
    .select_from(DOCUMENTS)
    .outerjoin(SITES, SITE_OF_CURRENT)
    .outerjoin(REVISIONS, IS_CURRENT)
    .outerjoin(ORIGINS, ORIGIN_OF_CURRENT)
    .outerjoin(TOMBSTONES, TOMBSTONES.c.document_id == DOCUMENTS.c.document_id)
    .order_by(DOCUMENTS.c.change_seq)
)


@dataclass(frozen=True, slots=True)
class ChangedDocument:
    """A document after its last change: see CatalogueDocument. `revision_id` is the key of its bytes.

    `size` is in bytes. `site` is the name of the registered site, `url` the source of the document. `base_url` is the
    address of its source repository, `datestamp` and `sets` are its own there. A deleted document has no title, bytes,
    source and sets. Unknown values are None.
    """

    change_seq: int
    changed_at: datetime
    is_deleted: bool
    document_id: str
    revision: int
    item_identifier: str
    origin: str | None
    document_type: str
    title: str | None
    site: str | None
    sets: tuple[str, ...]
    datestamp: str | None
    base_url: str | None
    url: str | None
    sha256: str | None
    size: int | None
    revision_id: int | None


def last_change(session: Session) -> int:
    """The number of the last committed change; 0 if there is none."""
    return session.scalar(select(COUNTER.c.change_seq)) or 0


def number_of_changes(session: Session, after_seq: int, hidden: Hidden = NOTHING) -> int:
    """The number of documents whose last change has a higher number than `after_seq`."""
    later = (DOCUMENTS.c.change_seq > after_seq, *published(DOCUMENTS, hidden))
    return session.scalar(select(func.count()).select_from(DOCUMENTS).where(*later)) or 0


def changed_documents(session: Session, after_seq: int, limit: int, hidden: Hidden) -> Sequence[ChangedDocument]:
    """The next documents after this number of a change, in commit order, at most `limit`; deleted ones, too."""
    later = (DOCUMENTS.c.change_seq > after_seq, *published(DOCUMENTS, hidden))
    query = _CHANGES.add_columns(is_gone(DOCUMENTS, hidden).label("deleted")).where(*later).limit(limit)
    return [_document(row) for row in session.execute(query)]


def contents_of(session: Session, revision_ids: Collection[int]) -> Mapping[int, bytes]:
    """The bytes of these revisions by key; erased ones are left out."""
    query = select(*REVISIONS.c["document_revision_id", "content"])
    return {row[0]: row[1] for row in session.execute(query.where(REVISIONS.c.document_revision_id.in_(revision_ids)))}


def _document(row: Row[*tuple[Any, ...]]) -> ChangedDocument:
    is_deleted = bool(row.deleted)
    return record_of(
        ChangedDocument,
        row,
        is_deleted=is_deleted,
        title=None if is_deleted else row.title or None,
        sets=() if is_deleted or row.sets is None else tuple(json.loads(row.sets)),
        datestamp=(row.deletion_datestamp if is_deleted else row.datestamp) or None,
        base_url=without_login(row.base_url) if row.base_url else None,
        url=None if is_deleted or not row.source_url else without_login(row.source_url),
        sha256=None if is_deleted else row.sha256,
        size=None if is_deleted else row.size,
        revision_id=None if is_deleted else row.document_revision_id,
    )
