"""Documents for the catalogue: uploads, and rows for documents that a test has put into document_revision itself."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from sqlalchemy import Connection, text

from metaharvest.model import FetchedDocument, ListedDocument, RecordOrigin
from metaharvest.targets.base import Upload

AT = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)
ORIGIN = RecordOrigin("https://r.example.org/oai", "oai:r:1", "oai_dc", "2026-11-20", "", "urn:dc", "0", ("a", "b:c"))

FILL_CATALOGUE = """\
INSERT INTO catalogue_document (catalogue_document_id, document_id, item_identifier, document_type, revision, sha256,
    title, site_schedule_id, deleted, changed_at, change_seq)
SELECT document_revision_id, document_id, document_id, document_type, revision, sha256,
    '', site_schedule_id, FALSE, '2026-11-20 00:00:00', document_revision_id
FROM document_revision r
WHERE revision = (SELECT max(revision) FROM document_revision WHERE document_id = r.document_id)
    AND document_id NOT IN (SELECT document_id FROM catalogue_document)
"""


def fill_catalogue(connection: Connection) -> None:
    connection.execute(text(FILL_CATALOGUE))


def upload(docid: str, title: str = "A title", origin: RecordOrigin | None = None) -> Upload:
    document_id, _, revision = docid.rpartition(".")
    document = ListedDocument(document_id, int(revision), "urn:dc", "https://e.org/1.xml", origin=origin)
    content = docid.encode()
    return Upload(FetchedDocument(document, content, hashlib.sha256(content).hexdigest(), 0.1), 1, AT, title=title)
