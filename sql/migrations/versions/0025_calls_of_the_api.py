"""Calls of the API with an Idempotency-Key"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0025"
down_revision = "0024"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}
TABLE = {**TEXTS, "sqlite_autoincrement": True}


def upgrade() -> None:
    op.create_table(
        "api_call",
        sa.Column("api_call_id", KEY, nullable=False),
        sa.Column("api_key_id", KEY, nullable=False),
        sa.Column("idempotency_key", sa.String(255), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("called_at", MOMENT, nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("api_call_id", name=op.f("pk_api_call")),
        sa.UniqueConstraint("api_key_id", "idempotency_key", name="uq_api_call"),
        **TABLE,
    )
    op.create_index(op.f("ix_api_call_called_at"), "api_call", ["called_at"])


def downgrade() -> None:
    op.drop_table("api_call")
