"""The index of documents to retry has only these: most documents have no date, and each insert wrote an entry"""

from __future__ import annotations

from typing import Any

from alembic import op
from sqlalchemy import text

revision = "0033"
down_revision = "0032"

INDEX, DOCUMENT, COLUMNS = "ix_harvest_document_retry", "harvest_document", ["next_attempt", "site_schedule_id"]
HAS_DATE = text("next_attempt IS NOT NULL")


def upgrade() -> None:
    _replace(sqlite_where=HAS_DATE, postgresql_where=HAS_DATE)


def downgrade() -> None:
    _replace()


def _replace(**options: Any) -> None:
    """Replace the index. On PostgreSQL the table can be read while the new one is made: only the drop locks it."""
    dialect = op.get_bind().dialect.name
    if dialect == "sqlite":
        op.drop_index(INDEX, DOCUMENT)
        op.create_index(INDEX, DOCUMENT, COLUMNS, **options)
    elif dialect == "postgresql":
        op.create_index(f"{INDEX}_new", DOCUMENT, COLUMNS, **options)
        op.drop_index(INDEX, DOCUMENT)
        op.execute(f"ALTER INDEX {INDEX}_new RENAME TO {INDEX}")
