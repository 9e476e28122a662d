"""When a report was first sent, and to whom somebody asked for it to be sent"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0005"
down_revision = "0004"

TIMESTAMP = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def upgrade() -> None:
    op.add_column("report_delivery", sa.Column("first_sent_at", TIMESTAMP, nullable=True))
    op.add_column("report_delivery", sa.Column("by_hand", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute("UPDATE report_delivery SET first_sent_at = last_attempt_at WHERE status = 'sent'")


def downgrade() -> None:
    op.drop_column("report_delivery", "by_hand")
    op.drop_column("report_delivery", "first_sent_at")
