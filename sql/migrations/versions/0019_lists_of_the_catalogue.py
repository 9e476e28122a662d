"""Indices for lists of the catalogue by origin and by site, and for an item by its identifier alone"""

from __future__ import annotations

from alembic import op

revision = "0019"
down_revision = "0018"

DOCUMENT = "catalogue_document"
POSITION = ("changed_at", "catalogue_document_id")


def upgrade() -> None:
    op.drop_index("ix_catalogue_document_item", DOCUMENT)
    op.create_index("ix_catalogue_document_item", DOCUMENT, ["item_identifier", "origin"])
    op.create_index("ix_catalogue_document_origin", DOCUMENT, ["origin", *POSITION])
    op.create_index("ix_catalogue_document_site", DOCUMENT, ["site_schedule_id", *POSITION])


def downgrade() -> None:
    op.drop_index("ix_catalogue_document_site", DOCUMENT)
    op.drop_index("ix_catalogue_document_origin", DOCUMENT)
    op.drop_index("ix_catalogue_document_item", DOCUMENT)
    op.create_index("ix_catalogue_document_item", DOCUMENT, ["origin", "item_identifier"])
