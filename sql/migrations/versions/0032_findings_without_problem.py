"""An index of the findings without a problem: they are few, while a rule may have a million other findings"""

from __future__ import annotations

from alembic import op
from sqlalchemy import text

revision = "0032"
down_revision = "0031"

INDEX, DETAIL = "ix_harvest_detail_log_without_problem", "harvest_detail_log"
IS_WITHOUT = text("fingerprint IS NULL")


def upgrade() -> None:
    op.create_index(INDEX, DETAIL, ["rule", "fingerprint"], sqlite_where=IS_WITHOUT, postgresql_where=IS_WITHOUT)


def downgrade() -> None:
    op.drop_index(INDEX, DETAIL)
