"""Registrations of sites that wait for a decision"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0022"
down_revision = "0021"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}

TABLE = "site_registration"
INDEXED = (
    "state", "site_schedule_id", "mailbox", "host", "asked_at", "address_token", "source_token", "source_mailed_to",
)  # fmt: skip


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("registration_id", KEY, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("state", sa.String(24), nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=True),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("source_kind", sa.String(32), nullable=False),
        sa.Column("url", TEXT, nullable=False),
        sa.Column("prefix", sa.String(255), nullable=True),
        sa.Column("set_spec", TEXT, nullable=True),
        sa.Column("address", sa.String(255), nullable=False),
        sa.Column("mailbox", sa.String(255), nullable=False),
        sa.Column("frequency", sa.Integer(), nullable=False),
        sa.Column("unit", sa.String(16), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False),
        sa.Column("summary", TEXT, nullable=True),
        sa.Column("address_token", sa.String(64), nullable=True),
        sa.Column("address_mails", sa.Integer(), server_default="0", nullable=False),
        sa.Column("address_proved_at", MOMENT, nullable=True),
        sa.Column("list_token", sa.String(64), nullable=True),
        sa.Column("list_looks", sa.Integer(), server_default="0", nullable=False),
        sa.Column("source_contacts", TEXT, nullable=True),
        sa.Column("source_token", sa.String(64), nullable=True),
        sa.Column("source_mailed_to", sa.String(255), nullable=True),
        sa.Column("source_mailed_at", MOMENT, nullable=True),
        sa.Column("source_mails", sa.Integer(), server_default="0", nullable=False),
        sa.Column("source_proved_at", MOMENT, nullable=True),
        sa.Column("source_proof", sa.String(16), nullable=True),
        sa.Column("mail_problem", TEXT, nullable=True),
        sa.Column("decided_at", MOMENT, nullable=True),
        sa.Column("decided_by", sa.String(255), nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("registration_id", name=op.f("pk_site_registration")),
        sqlite_autoincrement=True,
        **TEXTS,
    )
    for column in INDEXED:
        op.create_index(op.f(f"ix_site_registration_{column}"), TABLE, [column])


def downgrade() -> None:
    op.drop_table(TABLE)
