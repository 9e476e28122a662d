"""Reads the document of a landing page from the catalogue, without revisions and formats that are not published."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from sqlalchemy.orm import Session

from metaharvest.catalogue.current import content_of, revisions_of
from metaharvest.catalogue.provenance import provenance_of
from metaharvest.catalogue.selection import CatalogueEntry, Hidden, entries_of_item, entry_of
from metaharvest.model import HeldRevision, RecordOrigin
from metaharvest.model.values import frozen
from metaharvest.queries.public_sites import names_of


@frozen
class Landing:
    """A document with its published revisions, the highest first, and the content of the current one.

    `formats` are the other documents of the same record. `site` is the name of its site, "" if this is no longer
    registered; `origin` is the origin of the current revision at its source repository; `source` is the URL of a
    document of a harvest list, or its server alone.
    """

    entry: CatalogueEntry
    content: bytes
    revisions: Sequence[HeldRevision]
    formats: Sequence[CatalogueEntry]
    site: str
    origin: RecordOrigin | None
    source: str


def published_entry(session: Session, document_id: str, hidden: Hidden) -> CatalogueEntry | None:
    """The document with this id, also if it is deleted; None if it is hidden, or if there never was one."""
    # PostgreSQL refuses a text with this character.
    return None if "\0" in document_id else entry_of(session, document_id, hidden)


def published_content(session: Session, entry: CatalogueEntry, revision: int, hidden: Hidden) -> bytes | None:
    """The bytes of a revision of a document that is not deleted; None if it is hidden, or not there."""
    revisions = _published_revisions(session, entry, hidden)
    has_it = any(each.revision == revision for each in revisions)
    return content_of(session, entry.document_id, revision) if has_it else None


def landing(session: Session, entry: CatalogueEntry, hidden: Hidden) -> Landing:
    """The content of the landing page of a document that is not deleted."""
    revisions = _published_revisions(session, entry, hidden)
    formats: Sequence[CatalogueEntry] = ()
    if entry.origin is not None:
        formats = [
            each
            for each in entries_of_item(session, entry.origin, entry.item_identifier, hidden)
            if each.number != entry.number and not each.deleted
        ]
    provenance = provenance_of(session, entry.document_id, entry.revision)
    current = next((each.source_url for each in revisions if each.revision == entry.revision), "")
    return Landing(
        entry,
        content_of(session, entry.document_id, entry.revision) or b"",
        revisions,
        formats,
        names_of(session, () if entry.site_id is None else (entry.site_id,)).get(entry.site_id or 0, ""),
        provenance.origin if provenance is not None and entry.origin is not None else None,
        _public_source(current) if entry.origin is None else "",
    )


def _published_revisions(session: Session, entry: CatalogueEntry, hidden: Hidden) -> Sequence[HeldRevision]:
    """The revisions of a document that came from its own site, or from another one that is public.

    Nothing says whether a site that was removed was public.
    """
    found = revisions_of(session, entry.document_id)
    others = {each.site_id for each in found if each.site_id is not None} - {entry.site_id, *hidden.sites}
    shown = {None, entry.site_id, *names_of(session, others)}
    return [each for each in found if each.revision == entry.revision or each.site_id in shown]


def _public_source(url: str) -> str:
    """A URL of the web; only its server if it has a query, in which some sites have passwords; "" for other URLs."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return ""
    return f"{parts.scheme}://{parts.netloc}/" if parts.query else url
