"""Accounts of the console: users, sessions, links that sign in, keys of the API"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0020"
down_revision = "0019"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}
TABLE = {**TEXTS, "sqlite_autoincrement": True}


def upgrade() -> None:
    op.create_table(
        "console_user",
        sa.Column("user_id", KEY, nullable=False),
        sa.Column("address", sa.String(320), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("disabled_at", MOMENT, nullable=True),
        sa.Column("issuer", sa.String(255), nullable=True),
        sa.Column("subject", sa.String(255), nullable=True),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_console_user")),
        sa.UniqueConstraint("address", name=op.f("uq_console_user_address")),
        sa.UniqueConstraint("issuer", "subject", name="uq_console_user_subject"),
        **TABLE,
    )
    op.create_table(
        "console_session",
        sa.Column("session_id", KEY, nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("address", sa.String(320), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("last_seen_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("user_agent", sa.String(300), nullable=False),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_console_session")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_console_session_token_hash")),
        **TABLE,
    )
    op.create_index(op.f("ix_console_session_address"), "console_session", ["address"])
    op.create_index(op.f("ix_console_session_expires_at"), "console_session", ["expires_at"])
    op.create_table(
        "console_link",
        sa.Column("link_id", KEY, nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("address", sa.String(320), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=False),
        sa.Column("spent_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("link_id", name=op.f("pk_console_link")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_console_link_token_hash")),
        **TABLE,
    )
    op.create_index("ix_console_link_address", "console_link", ["address", "created_at"])
    op.create_index(op.f("ix_console_link_expires_at"), "console_link", ["expires_at"])
    op.create_table(
        "api_key",
        sa.Column("api_key_id", KEY, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("key_hash", sa.String(64), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("created_by", sa.String(320), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("api_key_id", name=op.f("pk_api_key")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_key_key_hash")),
        **TABLE,
    )


def downgrade() -> None:
    for table in ("api_key", "console_link", "console_session", "console_user"):
        op.drop_table(table)
