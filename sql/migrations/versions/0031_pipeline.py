"""The pipeline: its steps, outputs, files, texts, references, and works"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0031"
down_revision = "0030"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
BYTES = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
DOUBLE = sa.Float(53).with_variant(mysql.DOUBLE(asdecimal=False), "mysql", "mariadb")
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}
TABLE = {**TEXTS, "sqlite_autoincrement": True}
TABLES = (
    "pipeline_feed",
    "pipeline_stage",
    "pipeline_step",
    "output",
    "output_title",
    "output_file",
    "output_text",
    "output_reference",
    "lookup_answer",
    "pipeline_leftover",
    "output_block",
    "output_pair",
    "output_decision",
    "output_work",
    "output_vector",
)


def upgrade() -> None:
    op.create_table(
        "pipeline_feed",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("change_seq", sa.BigInteger(), nullable=False),
        sa.Column("moved_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_pipeline_feed")),
        **TEXTS,
    )
    op.create_table(
        "pipeline_stage",
        sa.Column("stage", sa.String(32), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("stage", name=op.f("pk_pipeline_stage")),
        **TEXTS,
    )
    op.create_table(
        "pipeline_step",
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.Column("stage", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("woken", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("rule", sa.String(64), nullable=True),
        sa.Column("message", TEXT, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("retry_at", MOMENT, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("catalogue_document_id", "stage", name=op.f("pk_pipeline_step")),
        **TEXTS,
    )
    op.create_index("ix_pipeline_step_ended", "pipeline_step", ["stage", "ended_at"])
    op.create_index("ix_pipeline_step_retry", "pipeline_step", ["stage", "retry_at"])
    op.create_index("ix_pipeline_step_state", "pipeline_step", ["stage", "state", "catalogue_document_id"])
    op.create_table(
        "output",
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("year", sa.Integer(), nullable=True),
        sa.Column("doi", sa.String(255), nullable=True),
        sa.Column("content", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("catalogue_document_id", name=op.f("pk_output")),
        **TEXTS,
    )
    op.create_index(op.f("ix_output_doi"), "output", ["doi"])
    op.create_table(
        "output_title",
        sa.Column("title_key", sa.String(64), nullable=False),
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.PrimaryKeyConstraint("title_key", "catalogue_document_id", name=op.f("pk_output_title")),
        **TEXTS,
    )
    op.create_index("ix_output_title_document", "output_title", ["catalogue_document_id"])
    op.create_table(
        "output_file",
        sa.Column("output_file_id", KEY, nullable=False),
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("url", TEXT, nullable=False),
        sa.Column("final_url", TEXT, nullable=False),
        sa.Column("found_by", sa.String(64), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("media_type", sa.String(100), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.Column("licence", TEXT, nullable=True),
        sa.Column("etag", TEXT, nullable=True),
        sa.Column("last_modified", sa.String(100), nullable=True),
        sa.Column("fetched_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("output_file_id", name=op.f("pk_output_file")),
        **TABLE,
    )
    op.create_index("ix_output_file_document", "output_file", ["catalogue_document_id", "rank"])
    op.create_index(op.f("ix_output_file_sha256"), "output_file", ["sha256"])
    op.create_table(
        "output_text",
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("file_sha256", sa.String(64), nullable=False),
        sa.Column("text_sha256", sa.String(64), nullable=False),
        sa.Column("characters", sa.Integer(), nullable=False),
        sa.Column("pages", sa.Integer(), nullable=True),
        sa.Column("language", sa.String(16), nullable=False),
        sa.Column("language_score", DOUBLE, nullable=True),
        sa.PrimaryKeyConstraint("catalogue_document_id", name=op.f("pk_output_text")),
        **TEXTS,
    )
    op.create_index(op.f("ix_output_text_file_sha256"), "output_text", ["file_sha256"])
    op.create_index(op.f("ix_output_text_text_sha256"), "output_text", ["text_sha256"])
    op.create_table(
        "output_reference",
        sa.Column("output_reference_id", KEY, nullable=False),
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("raw", TEXT, nullable=False),
        sa.Column("doi", sa.String(255), nullable=True),
        sa.Column("matched_id", KEY, nullable=True),
        sa.Column("method", sa.String(32), nullable=True),
        sa.Column("score", DOUBLE, nullable=True),
        sa.PrimaryKeyConstraint("output_reference_id", name=op.f("pk_output_reference")),
        **TABLE,
    )
    op.create_index("ix_output_reference_document", "output_reference", ["catalogue_document_id", "position"])
    op.create_index(op.f("ix_output_reference_doi"), "output_reference", ["doi"])
    op.create_index(op.f("ix_output_reference_matched_id"), "output_reference", ["matched_id"])
    op.create_table(
        "lookup_answer",
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("answer", TEXT, nullable=False),
        sa.Column("answered_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("request_sha256", name=op.f("pk_lookup_answer")),
        **TEXTS,
    )
    op.create_table(
        "pipeline_leftover",
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("kind", "sha256", name=op.f("pk_pipeline_leftover")),
        **TEXTS,
    )
    op.create_table(
        "output_block",
        sa.Column("block", sa.String(64), nullable=False),
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.PrimaryKeyConstraint("block", "catalogue_document_id", name=op.f("pk_output_block")),
        **TEXTS,
    )
    op.create_index("ix_output_block_document", "output_block", ["catalogue_document_id"])
    op.create_table(
        "output_pair",
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.Column("other_id", KEY, nullable=False),
        sa.Column("answer", sa.String(16), nullable=False),
        sa.Column("method", sa.String(16), nullable=False),
        sa.Column("score", DOUBLE, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("catalogue_document_id", "other_id", name=op.f("pk_output_pair")),
        **TEXTS,
    )
    op.create_index("ix_output_pair_answer", "output_pair", ["answer", "catalogue_document_id", "other_id"])
    op.create_index("ix_output_pair_other", "output_pair", ["other_id"])
    op.create_table(
        "output_decision",
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.Column("other_id", KEY, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("answer", sa.String(16), nullable=False),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("decided_by", sa.String(255), nullable=False),
        sa.Column("decided_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("catalogue_document_id", "other_id", "kind", name=op.f("pk_output_decision")),
        **TEXTS,
    )
    op.create_index("ix_output_decision_other", "output_decision", ["other_id"])
    op.create_table(
        "output_work",
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.Column("work_id", KEY, nullable=False),
        sa.PrimaryKeyConstraint("catalogue_document_id", name=op.f("pk_output_work")),
        **TEXTS,
    )
    op.create_index(op.f("ix_output_work_work_id"), "output_work", ["work_id"])
    op.create_table(
        "output_vector",
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.Column("model", sa.String(64), nullable=False),
        sa.Column("vector", BYTES, nullable=False),
        sa.PrimaryKeyConstraint("catalogue_document_id", name=op.f("pk_output_vector")),
        **TEXTS,
    )


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
