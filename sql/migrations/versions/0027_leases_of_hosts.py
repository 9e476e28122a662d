"""Leases of hosts"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0027"
down_revision = "0026"

IDENTIFIER = (
    sa.String(800)
    .with_variant(mysql.VARCHAR(800, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
    .with_variant(sa.String(800, collation="C"), "postgresql")
)
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}


def upgrade() -> None:
    op.create_table(
        "host_lease",
        sa.Column("host", IDENTIFIER, nullable=False),
        sa.Column("holder", sa.String(255), nullable=True),
        sa.Column("lease_until", MOMENT, nullable=False),
        sa.Column("wanted_at", MOMENT, nullable=True),
        sa.Column("servers", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("host", name=op.f("pk_host_lease")),
        **TEXTS,
    )


def downgrade() -> None:
    op.drop_table("host_lease")
