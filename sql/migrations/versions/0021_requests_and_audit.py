"""Requests of people to the harvester, and the audit of decisions"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0021"
down_revision = "0020"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}
TABLE = {**TEXTS, "sqlite_autoincrement": True}


def upgrade() -> None:
    op.create_table(
        "audit_entry",
        sa.Column("audit_entry_id", KEY, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("actor", sa.String(320), nullable=False),
        sa.Column("via", sa.String(16), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject_kind", sa.String(32), nullable=False),
        sa.Column("subject", TEXT, nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=True),
        sa.Column("before_values", TEXT, nullable=True),
        sa.Column("after_values", TEXT, nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("audit_entry_id", name=op.f("pk_audit_entry")),
        **TABLE,
    )
    op.create_index("ix_audit_entry_site", "audit_entry", ["site_schedule_id", "audit_entry_id"])
    op.create_index("ix_audit_entry_actor", "audit_entry", ["actor", "audit_entry_id"])
    op.create_index(op.f("ix_audit_entry_at"), "audit_entry", ["at"])
    op.create_table(
        "harvest_request",
        sa.Column("request_id", KEY, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=True),
        sa.Column("site_name", sa.String(100), nullable=True),
        sa.Column("scope", sa.String(16), nullable=True),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("asked_by", sa.String(320), nullable=False),
        sa.Column("asked_via", sa.String(16), nullable=False),
        sa.Column("asked_at", MOMENT, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("sentence", TEXT, nullable=True),
        sa.Column("run_id", KEY, nullable=True),
        sa.Column("taken_at", MOMENT, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("open_key", sa.String(64), nullable=True),
        sa.PrimaryKeyConstraint("request_id", name=op.f("pk_harvest_request")),
        sa.UniqueConstraint("open_key", name=op.f("uq_harvest_request_open_key")),
        **TABLE,
    )
    op.create_index("ix_harvest_request_state", "harvest_request", ["state", "kind"])
    op.create_index(op.f("ix_harvest_request_run_id"), "harvest_request", ["run_id"])
    op.create_index(op.f("ix_harvest_request_site_schedule_id"), "harvest_request", ["site_schedule_id"])
    op.create_table(
        "site_progress",
        sa.Column("site_schedule_id", KEY, autoincrement=False, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("site_name", sa.String(100), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("listed", sa.BigInteger(), nullable=False),
        sa.Column("done", sa.BigInteger(), nullable=False),
        sa.Column("errors", sa.BigInteger(), nullable=False),
        sa.Column("began_at", MOMENT, nullable=True),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("site_schedule_id", name=op.f("pk_site_progress")),
        **TEXTS,
    )
    op.create_table(
        "daemon_state",
        sa.Column("daemon_id", KEY, autoincrement=False, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("next_run_at", MOMENT, nullable=True),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("daemon_id", name=op.f("pk_daemon_state")),
        **TEXTS,
    )


def downgrade() -> None:
    for table in ("daemon_state", "site_progress", "harvest_request", "audit_entry"):
        op.drop_table(table)
