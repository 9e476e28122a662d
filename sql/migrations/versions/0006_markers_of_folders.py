"""Which marker was found in a folder that is a target"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0006"
down_revision = "0005"

TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
MYSQL = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}


def upgrade() -> None:
    op.create_table(
        "folder_marker",
        sa.Column("path_sha256", sa.String(64), nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("folder_id", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("path_sha256", name=op.f("pk_folder_marker")),
        **MYSQL,
    )


def downgrade() -> None:
    op.drop_table("folder_marker")
