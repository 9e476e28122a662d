"""The operation code of a log that was not purged, as the clock may be wrong"""

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Nothing but the number: an upgrade adds the rows that are missing in harvest_operation."""


def downgrade() -> None:
    """The row stays, as log rows may name it."""
