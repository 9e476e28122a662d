"""Indices for the queries of reports, decisions and the purge; unused ones removed"""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.drop_index("ix_harvest_document_pending", "harvest_document")
    op.drop_index("ix_harvest_document_retry", "harvest_document")
    op.create_index("ix_harvest_document_retry", "harvest_document", ["next_attempt", "site_schedule_id"])
    op.create_index("ix_harvest_site_run_site_name", "harvest_site_run", ["site_name"])
    op.create_index("ix_report_outbox_site_run_id", "report_outbox", ["site_run_id"])
    op.create_index("ix_harvest_log_run", "harvest_log", ["run_id", "site_run_id"])
    op.drop_index("ix_harvest_log_run_id", "harvest_log")


def downgrade() -> None:
    op.create_index("ix_harvest_log_run_id", "harvest_log", ["run_id"])
    op.drop_index("ix_harvest_log_run", "harvest_log")
    op.drop_index("ix_report_outbox_site_run_id", "report_outbox")
    op.drop_index("ix_harvest_site_run_site_name", "harvest_site_run")
    op.drop_index("ix_harvest_document_retry", "harvest_document")
    op.create_index("ix_harvest_document_retry", "harvest_document", ["site_schedule_id", "next_attempt"])
    op.create_index("ix_harvest_document_pending", "harvest_document", ["pending_run"])
