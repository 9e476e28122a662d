"""How far a sweep has come stands in columns, and no longer among the words of the site's source"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0017"
down_revision = "0016"

TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
COLUMNS: dict[str, sa.types.TypeEngine[Any]] = {
    "treatment": sa.String(64),
    "rechecks": sa.Boolean(),
    "moved": sa.BigInteger(),
    "full_wanted": sa.Boolean(),
    "kind": sa.String(8),
    "windows": TEXT,
    "token": TEXT,
    "received": sa.BigInteger(),
    "announced": sa.BigInteger(),
}
DEFAULTS = {"rechecks": sa.false(), "moved": "0", "full_wanted": sa.false()}
CHECKPOINTS = sa.table(
    "site_checkpoint",
    sa.column("site_schedule_id"),
    sa.column("checkpoint"),
    *(sa.column(name, kind) for name, kind in COLUMNS.items()),
)
KEYS = {"treatment": ("treatment", None), "rechecks": ("again", False), "moved": ("moved", 0)}
"""The key of each column in the JSON, and the value where it has none."""


def upgrade() -> None:
    for name, kind in COLUMNS.items():
        default = DEFAULTS.get(name)
        op.add_column("site_checkpoint", sa.Column(name, kind, server_default=default, nullable=default is None))
    for site_id, checkpoint in _kept():
        values = {column: checkpoint.pop(key, default) for column, (key, default) in KEYS.items()}
        values["full_wanted"] = checkpoint.pop("full", False)
        sweep = checkpoint.get("sweep")
        if isinstance(sweep, dict):
            values["kind"] = "full" if sweep.pop("full") else "changes"
            values["windows"] = json.dumps(sweep.pop("todo"))
            values |= {name: sweep.pop(name) for name in ("token", "received", "announced")}
        _write(site_id, {**values, "checkpoint": json.dumps(checkpoint)})


def downgrade() -> None:
    for site_id, checkpoint in _kept():
        here = CHECKPOINTS.c.site_schedule_id == site_id
        row = op.get_bind().execute(sa.select(*CHECKPOINTS.c[*COLUMNS]).where(here)).mappings().one()
        checkpoint |= {key: row[column] for column, (key, _) in KEYS.items() if row[column] is not None}
        checkpoint |= {"full": True} if row["full_wanted"] else {}
        if isinstance(checkpoint.get("sweep"), dict):
            checkpoint["sweep"] |= {"full": row["kind"] == "full", "todo": json.loads(row["windows"])}
            checkpoint["sweep"] |= {name: row[name] for name in ("token", "received", "announced")}
        _write(site_id, {"checkpoint": json.dumps(checkpoint)})
    for name in COLUMNS:
        op.drop_column("site_checkpoint", name)


def _kept() -> list[tuple[int, dict[str, Any]]]:
    """The checkpoints that a source has written."""
    query = sa.select(CHECKPOINTS.c.site_schedule_id, CHECKPOINTS.c.checkpoint).where(
        CHECKPOINTS.c.checkpoint.is_not(None)
    )
    return [(site_id, json.loads(text)) for site_id, text in op.get_bind().execute(query) if text]


def _write(site_id: int, values: dict[str, Any]) -> None:
    here = CHECKPOINTS.c.site_schedule_id == site_id
    op.get_bind().execute(sa.update(CHECKPOINTS).where(here).values(values))
