"""Site runs whose documents went nowhere, as the site had no target, are marked as rehearsals"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.add_column("harvest_site_run", sa.Column("rehearsal", sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    op.drop_column("harvest_site_run", "rehearsal")
