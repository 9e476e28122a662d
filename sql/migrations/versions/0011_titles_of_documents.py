"""The title of each document that a site lists"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("harvest_document", sa.Column("title", sa.String(300), nullable=True))


def downgrade() -> None:
    op.drop_column("harvest_document", "title")
