"""What the findings of a site amount to over the nights: new, still there, fixed"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0004"
down_revision = "0003"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
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
    op.add_column("harvest_detail_log", sa.Column("fingerprint", sa.String(32), nullable=True))
    op.create_table(
        "site_problem",
        sa.Column("site_problem_id", KEY, nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=False),
        sa.Column("fingerprint", sa.String(32), nullable=False),
        sa.Column("document_id", IDENTIFIER, nullable=True),
        sa.Column("rule", sa.String(64), nullable=False),
        sa.Column("needs_attention", sa.Boolean(), nullable=False),
        sa.Column("detail_log_id", KEY, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("first_seen", sa.Date(), nullable=False),
        sa.Column("first_site_run", KEY, nullable=False),
        sa.Column("last_seen", sa.Date(), nullable=False),
        sa.Column("last_site_run", KEY, nullable=False),
        sa.Column("nights", sa.Integer(), nullable=False),
        sa.Column("ended_on", sa.Date(), nullable=True),
        sa.Column("ended_site_run", KEY, nullable=True),
        sa.PrimaryKeyConstraint("site_problem_id", name=op.f("pk_site_problem")),
        sa.UniqueConstraint("site_schedule_id", "fingerprint", name="uq_site_problem"),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_index("ix_site_problem_state", "site_problem", ["site_schedule_id", "state"])
    op.create_index("ix_site_problem_ended_site_run", "site_problem", ["ended_site_run"])


def downgrade() -> None:
    op.drop_table("site_problem")
    op.drop_column("harvest_detail_log", "fingerprint")
