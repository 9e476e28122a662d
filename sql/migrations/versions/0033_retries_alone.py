"""The index of documents to retry has only these: most documents have no date, and each insert wrote an entry"""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0033"
down_revision = "0032"

INDEX, DOCUMENT, COLUMNS = "ix_harvest_document_retry", "harvest_document", ["next_attempt", "site_schedule_id"]
HAS_DATE = text("next_attempt IS NOT NULL")


def upgrade() -> None:
    if op.get_bind().dialect.name in ("sqlite", "postgresql"):
        op.drop_index(INDEX, DOCUMENT)
        op.create_index(INDEX, DOCUMENT, COLUMNS, sqlite_where=HAS_DATE, postgresql_where=HAS_DATE)


def downgrade() -> None:
    if op.get_bind().dialect.name in ("sqlite", "postgresql"):
        op.drop_index(INDEX, DOCUMENT)
        op.create_index(INDEX, DOCUMENT, COLUMNS)
