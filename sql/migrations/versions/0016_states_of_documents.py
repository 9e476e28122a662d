"""The state of each document in the ledger, which several columns together said before"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

IS_ASKED_FOR = (
    "next_attempt IS NOT NULL AND COALESCE(outcome, '') NOT IN ('access-error', 'invalid', 'upload-error', 'deferred')"
)
IS_HELD = "target_revision IS NOT NULL AND sha256 IS NOT NULL AND COALESCE(outcome, '') <> 'deleted'"
STATES = {
    "to_delete AND outcome = 'deferred' AND next_attempt IS NOT NULL": "to-confirm",
    "to_delete": "to-delete",
    f"pending_sha256 IS NOT NULL AND {IS_ASKED_FOR}": "pending-older",
    "pending_sha256 IS NOT NULL": "pending",
    f"missing_since IS NOT NULL AND {IS_HELD}": "missing",
    f"outcome = 'deleted' AND {IS_ASKED_FOR}": "reappeared",
    f"outcome IS NOT NULL AND {IS_ASKED_FOR}": "older",
    "outcome IN ('inserted', 'updated', 'unchanged')": "held",
    "outcome IN ('filtered', 'stale')": "left-out",
    "outcome IN ('deferred', 'deleted')": "outcome",
}


def upgrade() -> None:
    state = sa.Column("state", sa.String(16), server_default="failed", nullable=False)
    op.add_column("harvest_document", state)
    cases = [f"WHEN {so} THEN {'outcome' if state == 'outcome' else repr(state)}" for so, state in STATES.items()]
    op.execute(f"UPDATE harvest_document SET state = CASE {' '.join(cases)} ELSE 'failed' END")
    # Its list named it: an upload was begun.
    op.execute("UPDATE harvest_document SET missing_since = NULL WHERE state IN ('pending', 'pending-older')")


def downgrade() -> None:
    op.drop_column("harvest_document", "state")
