"""Documents that an administrator has withdrawn"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0012"
down_revision = "0011"

TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
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
        "document_withdrawal",
        sa.Column("document_id", IDENTIFIER, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.Column("site", sa.String(100), nullable=True),
        sa.Column("withdrawn_on", sa.Date(), nullable=False),
        sa.Column("withdrawn_at", TIME, nullable=False),
        sa.Column("withdrawn_by", sa.String(255), nullable=False),
        sa.Column("erased", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_document_withdrawal")),
        **MYSQL,
    )


def downgrade() -> None:
    op.drop_table("document_withdrawal")
