"""Jobs of workers, and runs whose sites workers harvest"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0030"
down_revision = "0029"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
DOUBLE = sa.Float(53).with_variant(mysql.DOUBLE(asdecimal=False), "mysql", "mariadb")
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}
TABLE = {**TEXTS, "sqlite_autoincrement": True}


def upgrade() -> None:
    op.add_column("harvest_run", sa.Column("distributed", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("harvest_run", sa.Column("due_sites_of", sa.Date(), nullable=True))
    op.create_table(
        "job",
        sa.Column("job_id", KEY, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("run_id", KEY, nullable=True),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("work", TEXT, nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("not_before", MOMENT, nullable=False),
        sa.Column("open_key", sa.String(255), nullable=True),
        sa.Column("host_key", sa.String(255), nullable=True),
        sa.Column("worker", sa.String(255), nullable=True),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("lease_until", MOMENT, nullable=True),
        sa.Column("is_to_end", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("slices", sa.Integer(), server_default="0", nullable=False),
        sa.Column("made_at", MOMENT, nullable=False),
        sa.Column("began_at", MOMENT, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.Column("seconds", DOUBLE, server_default="0", nullable=False),
        sa.Column("cpu_seconds", DOUBLE, server_default="0", nullable=False),
        sa.Column("memory_bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("sentence", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_job")),
        sa.UniqueConstraint("open_key", name=op.f("uq_job_open_key")),
        sa.UniqueConstraint("host_key", name=op.f("uq_job_host_key")),
        **TABLE,
    )
    op.create_index("ix_job_next", "job", ["state", sa.text("priority DESC"), "job_id"])
    op.create_index("ix_job_run", "job", ["run_id", "state"])
    op.create_index(op.f("ix_job_ended_at"), "job", ["ended_at"])
    op.create_table(
        "job_event",
        sa.Column("job_event_id", KEY, nullable=False),
        sa.Column("job_id", KEY, nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.String(16), nullable=False),
        sa.Column("worker", sa.String(255), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("sentence", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("job_event_id", name=op.f("pk_job_event")),
        **TABLE,
    )
    op.create_index(op.f("ix_job_event_job_id"), "job_event", ["job_id"])
    op.create_table(
        "worker",
        sa.Column("worker_id", KEY, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("began_at", MOMENT, nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.Column("job_id", KEY, nullable=True),
        sa.Column("jobs", sa.Integer(), server_default="0", nullable=False),
        sa.Column("is_ending", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.PrimaryKeyConstraint("worker_id", name=op.f("pk_worker")),
        sa.UniqueConstraint("name", name=op.f("uq_worker_name")),
        **TABLE,
    )


def downgrade() -> None:
    op.drop_table("worker")
    op.drop_table("job_event")
    op.drop_table("job")
    op.drop_column("harvest_run", "due_sites_of")
    op.drop_column("harvest_run", "distributed")
