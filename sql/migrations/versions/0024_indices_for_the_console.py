"""Indices for the pages of the console"""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0024"
down_revision = "0023"

DOCUMENT, SITE_RUN, PROBLEM = "harvest_document", "harvest_site_run", "site_problem"
IS_FAILING = text("failing_since IS NOT NULL")
OF_SITE = ["site_schedule_id", "changed_at", "catalogue_document_id"]


def upgrade() -> None:
    op.create_index("ix_harvest_site_run_site", SITE_RUN, ["site_schedule_id", "site_run_id"])
    op.create_index("ix_harvest_site_run_site_status", SITE_RUN, ["site_schedule_id", "status", "site_run_id"])
    op.drop_index("ix_harvest_site_run_site_schedule_id", SITE_RUN)
    op.create_index("ix_harvest_log_document", "harvest_log", ["document_id"])
    op.create_index("ix_harvest_detail_log_rule", "harvest_detail_log", ["rule"])
    op.create_index("ix_site_problem_rule", PROBLEM, ["state", "rule", "site_schedule_id"])
    op.create_index("ix_site_problem_ended_on", PROBLEM, ["ended_on"])
    op.create_index("ix_harvest_document_document", DOCUMENT, ["document_id", "site_schedule_id"])
    op.create_index("ix_harvest_document_state", DOCUMENT, ["state", "site_schedule_id"])
    op.create_index(
        "ix_harvest_document_failing",
        DOCUMENT,
        ["site_schedule_id", "failing_since"],
        sqlite_where=IS_FAILING,
        postgresql_where=IS_FAILING,
    )
    op.drop_index("ix_catalogue_document_site", "catalogue_document")
    op.create_index("ix_catalogue_document_site", "catalogue_document", [*OF_SITE, "deleted"])


def downgrade() -> None:
    op.drop_index("ix_catalogue_document_site", "catalogue_document")
    op.create_index("ix_catalogue_document_site", "catalogue_document", OF_SITE)
    op.drop_index("ix_harvest_document_failing", DOCUMENT)
    op.drop_index("ix_harvest_document_state", DOCUMENT)
    op.drop_index("ix_harvest_document_document", DOCUMENT)
    op.drop_index("ix_site_problem_ended_on", PROBLEM)
    op.drop_index("ix_site_problem_rule", PROBLEM)
    op.drop_index("ix_harvest_detail_log_rule", "harvest_detail_log")
    op.drop_index("ix_harvest_log_document", "harvest_log")
    op.create_index("ix_harvest_site_run_site_schedule_id", SITE_RUN, ["site_schedule_id"])
    op.drop_index("ix_harvest_site_run_site_status", SITE_RUN)
    op.drop_index("ix_harvest_site_run_site", SITE_RUN)
