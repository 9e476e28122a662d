"""When each document was looked at last and as which version; how much time the phases of a site run took"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0010"
down_revision = "0009"

DOUBLE = sa.Float(53).with_variant(mysql.DOUBLE(asdecimal=False), "mysql", "mariadb")
PHASES = ("server_seconds", "waiting_seconds", "checking_seconds", "storing_seconds")


def upgrade() -> None:
    op.add_column("harvest_document", sa.Column("etag", sa.String(100), nullable=True))
    op.add_column("harvest_document", sa.Column("last_modified", sa.String(100), nullable=True))
    op.add_column("harvest_document", sa.Column("looked_at", sa.Date(), nullable=True))
    # When each was fetched is not known of all: they have their turn as if they had come today.
    op.execute("UPDATE harvest_document SET looked_at = CURRENT_DATE")
    op.create_index("ix_harvest_document_look", "harvest_document", ["site_schedule_id", "looked_at"])
    for name in PHASES:
        op.add_column("harvest_site_run", sa.Column(name, DOUBLE, nullable=True))


def downgrade() -> None:
    for name in PHASES:
        op.drop_column("harvest_site_run", name)
    op.drop_index("ix_harvest_document_look", "harvest_document")
    for name in ("looked_at", "last_modified", "etag"):
        op.drop_column("harvest_document", name)
