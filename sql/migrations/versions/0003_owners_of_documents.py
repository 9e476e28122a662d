"""To which site a document belongs that is in a target outside of this database"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0003"
down_revision = "0002"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
IDENTIFIER = (
    sa.String(800)
    .with_variant(sa.String(800, collation="C"), "postgresql")
    .with_variant(mysql.VARCHAR(800, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
)
MYSQL = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


def upgrade() -> None:
    op.create_table(
        "document_owner",
        sa.Column("document_id", IDENTIFIER, nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=False),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_document_owner")),
        **MYSQL,
    )
    op.create_index("ix_document_owner_site_schedule_id", "document_owner", ["site_schedule_id"])


def downgrade() -> None:
    op.drop_table("document_owner")
