"""What is public: a flag of each site, and the documents that are withheld"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}


def upgrade() -> None:
    op.add_column("harvest_site_schedule", sa.Column("public", sa.Boolean(), server_default=sa.true(), nullable=False))
    op.create_table(
        "catalogue_withheld",
        sa.Column("catalogue_document_id", KEY, autoincrement=False, nullable=False),
        sa.Column("retracted", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("catalogue_document_id", name=op.f("pk_catalogue_withheld")),
        **TEXTS,
    )


def downgrade() -> None:
    op.drop_table("catalogue_withheld")
    op.drop_column("harvest_site_schedule", "public")
