"""The first tables"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0001"
down_revision = None

TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
BYTES = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
DOUBLE = sa.Float(precision=53).with_variant(mysql.DOUBLE(asdecimal=False), "mysql", "mariadb")
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
        "document_revision",
        sa.Column("document_revision_id", KEY, nullable=False),
        sa.Column("document_id", IDENTIFIER, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("document_type", TEXT, nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("source_url", TEXT, nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=True),
        sa.Column("inserted_at", TIMESTAMP, nullable=False),
        sa.Column("content", BYTES, nullable=False),
        sa.PrimaryKeyConstraint("document_revision_id", name=op.f("pk_document_revision")),
        sa.UniqueConstraint("document_id", "revision", name="uq_document_revision"),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_table(
        "harvest_document",
        sa.Column("harvest_document_id", KEY, nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=False),
        sa.Column("document_id", IDENTIFIER, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("document_url", TEXT, nullable=False),
        sa.Column("document_type", TEXT, nullable=False),
        sa.Column("target_revision", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("failing_since", sa.Date(), nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("next_attempt", sa.Date(), nullable=True),
        sa.Column("pending_run", sa.BigInteger(), nullable=True),
        sa.Column("pending_sha256", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("harvest_document_id", name=op.f("pk_harvest_document")),
        sa.UniqueConstraint("site_schedule_id", "document_id", "revision", name="uq_harvest_document"),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_index("ix_harvest_document_pending", "harvest_document", ["pending_run"], unique=False)
    op.create_index("ix_harvest_document_retry", "harvest_document", ["site_schedule_id", "next_attempt"], unique=False)

    op.create_table(
        "harvest_operation",
        sa.Column("harvest_operation_code", sa.String(length=64), nullable=False),
        sa.Column("explanation", sa.String(length=255), nullable=False),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.PrimaryKeyConstraint("harvest_operation_code", name=op.f("pk_harvest_operation")),
        **MYSQL,
    )
    op.create_table(
        "harvest_run",
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("harvest_date", sa.Date(), nullable=False),
        sa.Column("started_at", TIMESTAMP, nullable=False),
        sa.Column("ended_at", TIMESTAMP, nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("heartbeat_at", TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_harvest_run")),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_index("ix_harvest_run_status", "harvest_run", ["status"], unique=False)

    op.create_table(
        "harvest_site_schedule",
        sa.Column("site_schedule_id", KEY, nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("source_kind", sa.String(length=32), server_default="harvest-list", nullable=False),
        sa.Column("documentlisturl", TEXT, nullable=False),
        sa.Column("ldapdn", sa.String(length=255), nullable=True),
        sa.Column("ldappwd", sa.String(length=255), nullable=True),
        sa.Column("datenextharvest", sa.Date(), nullable=True),
        sa.Column("datelastharvest", sa.Date(), nullable=True),
        sa.Column("updatefrequency", sa.Integer(), server_default="1", nullable=True),
        sa.Column("unit", sa.String(length=50), server_default="days", nullable=True),
        sa.Column("day_of_month", sa.Integer(), nullable=True),
        sa.Column("contact_email", TEXT, nullable=True),
        sa.Column("notify", sa.String(length=16), server_default="always", nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("options", TEXT, nullable=True),
        sa.Column("list_etag", TEXT, nullable=True),
        sa.Column("list_last_modified", sa.String(length=100), nullable=True),
        sa.Column("list_sha256", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("site_schedule_id", name=op.f("pk_harvest_site_schedule")),
        sa.UniqueConstraint("name", name=op.f("uq_harvest_site_schedule_name")),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_table(
        "harvest_site_run",
        sa.Column("site_run_id", KEY, nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=False),
        sa.Column("site_name", sa.String(length=100), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("started_at", TIMESTAMP, nullable=False),
        sa.Column("ended_at", TIMESTAMP, nullable=True),
        sa.Column("failure_reason", TEXT, nullable=True),
        sa.Column("list_url", TEXT, nullable=True),
        sa.Column("listed", sa.BigInteger(), nullable=False),
        sa.Column("inserted", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.Column("unchanged", sa.BigInteger(), nullable=False),
        sa.Column("stale", sa.BigInteger(), nullable=False),
        sa.Column("duplicate", sa.BigInteger(), nullable=False),
        sa.Column("deferred", sa.BigInteger(), nullable=False),
        sa.Column("access_error", sa.BigInteger(), nullable=False),
        sa.Column("invalid", sa.BigInteger(), nullable=False),
        sa.Column("upload_error", sa.BigInteger(), nullable=False),
        sa.Column("warnings", sa.BigInteger(), nullable=False),
        sa.Column("next_harvest", sa.Date(), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["harvest_run.run_id"], name=op.f("fk_harvest_site_run_run_id")),
        sa.PrimaryKeyConstraint("site_run_id", name=op.f("pk_harvest_site_run")),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_index("ix_harvest_site_run_run_id", "harvest_site_run", ["run_id"], unique=False)
    op.create_index("ix_harvest_site_run_site_schedule_id", "harvest_site_run", ["site_schedule_id"], unique=False)
    op.create_index("ix_harvest_site_run_status", "harvest_site_run", ["status"], unique=False)

    op.create_table(
        "harvest_log",
        sa.Column("harvest_log_id", KEY, nullable=False),
        sa.Column("harvest_date", sa.Date(), nullable=False),
        sa.Column("logged_at", TIMESTAMP, nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("message", TEXT, nullable=False),
        sa.Column("harvest_operation_code", sa.String(length=64), nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=True),
        sa.Column("site_run_id", KEY, nullable=True),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("document_id", IDENTIFIER, nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=True),
        sa.Column("document_url", TEXT, nullable=True),
        sa.Column("outcome", sa.String(length=16), nullable=True),
        sa.Column("target_revision", sa.BigInteger(), nullable=True),
        sa.Column("seconds", DOUBLE, nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["harvest_operation_code"],
            ["harvest_operation.harvest_operation_code"],
            name=op.f("fk_harvest_log_harvest_operation_code"),
        ),
        sa.ForeignKeyConstraint(["run_id"], ["harvest_run.run_id"], name=op.f("fk_harvest_log_run_id")),
        sa.ForeignKeyConstraint(
            ["site_run_id"], ["harvest_site_run.site_run_id"], name=op.f("fk_harvest_log_site_run_id")
        ),
        sa.PrimaryKeyConstraint("harvest_log_id", name=op.f("pk_harvest_log")),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_index("ix_harvest_log_harvest_date", "harvest_log", ["harvest_date"], unique=False)
    op.create_index("ix_harvest_log_run_id", "harvest_log", ["run_id"], unique=False)
    op.create_index("ix_harvest_log_site_run_document", "harvest_log", ["site_run_id", "document_id"], unique=False)

    op.create_table(
        "report_outbox",
        sa.Column("report_id", KEY, nullable=False),
        sa.Column("idempotency_key", sa.String(length=100), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("run_id", KEY, nullable=False),
        sa.Column("site_run_id", KEY, nullable=True),
        sa.Column("message_id", sa.String(length=255), nullable=False),
        sa.Column("subject", TEXT, nullable=False),
        sa.Column("content", BYTES, nullable=False),
        sa.Column("created_at", TIMESTAMP, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["harvest_run.run_id"], name=op.f("fk_report_outbox_run_id")),
        sa.ForeignKeyConstraint(
            ["site_run_id"], ["harvest_site_run.site_run_id"], name=op.f("fk_report_outbox_site_run_id")
        ),
        sa.PrimaryKeyConstraint("report_id", name=op.f("pk_report_outbox")),
        sa.UniqueConstraint("idempotency_key", name=op.f("uq_report_outbox_idempotency_key")),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_index("ix_report_outbox_run_id", "report_outbox", ["run_id"], unique=False)

    op.create_table(
        "harvest_detail_log",
        sa.Column("detail_log_id", KEY, nullable=False),
        sa.Column("harvest_log_id", KEY, nullable=False),
        sa.Column("level", sa.String(length=16), nullable=False),
        sa.Column("scope", TEXT, nullable=True),
        sa.Column("identifier", sa.BigInteger(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=True),
        sa.Column("document_id", TEXT, nullable=True),
        sa.Column("document_url", TEXT, nullable=True),
        sa.Column("document_type", TEXT, nullable=True),
        sa.Column("error_message", TEXT, nullable=False),
        sa.Column("rule", sa.String(length=64), nullable=False),
        sa.Column("line_number", sa.BigInteger(), nullable=True),
        sa.Column("column_number", sa.BigInteger(), nullable=True),
        sa.Column("xpath", TEXT, nullable=True),
        sa.Column("excerpt", TEXT, nullable=True),
        sa.Column("remedy", TEXT, nullable=True),
        sa.ForeignKeyConstraint(
            ["harvest_log_id"], ["harvest_log.harvest_log_id"], name=op.f("fk_harvest_detail_log_harvest_log_id")
        ),
        sa.PrimaryKeyConstraint("detail_log_id", name=op.f("pk_harvest_detail_log")),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_index("ix_harvest_detail_log_harvest_log_id", "harvest_detail_log", ["harvest_log_id"], unique=False)

    op.create_table(
        "report_delivery",
        sa.Column("delivery_id", KEY, nullable=False),
        sa.Column("report_id", KEY, nullable=False),
        sa.Column("recipient", sa.String(length=320), nullable=False),
        sa.Column("status", sa.String(length=16), server_default="queued", nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_error", TEXT, nullable=True),
        sa.Column("last_attempt_at", TIMESTAMP, nullable=True),
        sa.ForeignKeyConstraint(["report_id"], ["report_outbox.report_id"], name=op.f("fk_report_delivery_report_id")),
        sa.PrimaryKeyConstraint("delivery_id", name=op.f("pk_report_delivery")),
        sa.UniqueConstraint("report_id", "recipient", name="uq_report_delivery"),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_index("ix_report_delivery_status", "report_delivery", ["status"], unique=False)


def downgrade() -> None:
    op.drop_table("report_delivery")
    op.drop_table("harvest_detail_log")
    op.drop_table("report_outbox")
    op.drop_table("harvest_log")
    op.drop_table("harvest_site_run")
    op.drop_table("harvest_site_schedule")
    op.drop_table("harvest_run")
    op.drop_table("harvest_operation")
    op.drop_table("harvest_document")
    op.drop_table("document_revision")
