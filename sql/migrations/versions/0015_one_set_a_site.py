"""A site asks for one set: a site with several sets becomes several sites

The first set keeps the row, and with it the number, the name, the log and the ledger. The number 0 of a list in the
ledger is that of all lists from before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

LONGEST_NAME = 100
COPIED = (
    "source_kind", "documentlisturl", "ldapdn", "ldappwd", "datenextharvest", "datelastharvest", "updatefrequency",
    "unit", "day_of_month", "contact_email", "notify", "enabled",
)  # fmt: skip


def upgrade() -> None:
    connection = op.get_bind()
    names = {name for (name,) in _texts(connection, "name", "")}
    for site_id, name, stored in list(_with_options(connection, "sets")):
        oai = {key: value for key, value in stored["oai"].items() if key != "sets"}
        sets = stored["oai"]["sets"]
        if not isinstance(sets, list) or not all(isinstance(each, str) and each for each in sets):
            continue  # nobody could harvest it before
        first, *others = list(dict.fromkeys(sets)) or [None]
        stored |= {"split_from": name} if others else {}
        _set_options(connection, site_id, {**stored, "oai": {**oai, "set": first} if first else oai})
        if others:
            _forget_list(connection, site_id)
        for spec in others:
            names.add(own := _name(name, spec, names))
            values = {"id": site_id, "name": own, "options": json.dumps({**stored, "oai": {**oai, "set": spec}})}
            columns = ", ".join(COPIED)
            copy = f"INSERT INTO harvest_site_schedule (name, options, {columns}) SELECT :name, :options, {columns}"
            connection.execute(sa.text(f"{copy} FROM harvest_site_schedule WHERE site_schedule_id = :id"), values)


def downgrade() -> None:
    """The sites stay as many as they are."""
    connection = op.get_bind()
    for site_id, _, stored in list(_with_options(connection, "set")):
        oai = {key: value for key, value in stored["oai"].items() if key != "set"}
        stored.pop("split_from", None)
        _set_options(connection, site_id, {**stored, "oai": {**oai, "sets": [stored["oai"]["set"]]}})


def _with_options(connection: sa.Connection, key: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """The sites that have this option of a source repository: number, name and all options."""
    for site_id, name, text in _texts(
        connection, "site_schedule_id, name, options", f"WHERE options LIKE '%\"{key}\"%'"
    ):
        try:
            stored = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(stored, dict) and isinstance(stored.get("oai"), dict) and key in stored["oai"]:
            yield site_id, name, stored


def _texts(connection: sa.Connection, columns: str, where: str) -> list[tuple[Any, ...]]:
    """Rows of the schedule, whatever encoding their texts have: on SQLite they may have any."""
    if connection.dialect.name == "sqlite":
        columns = ", ".join(f"CAST({each} AS BLOB)" if "_" not in each else each for each in columns.split(", "))
    rows = connection.execute(sa.text(f"SELECT {columns} FROM harvest_site_schedule {where} ORDER BY site_schedule_id"))
    return [tuple(each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in row) for row in rows]


def _set_options(connection: sa.Connection, site_id: int, stored: dict[str, Any]) -> None:
    update = sa.text("UPDATE harvest_site_schedule SET options = :options WHERE site_schedule_id = :id")
    connection.execute(update, {"options": json.dumps(stored), "id": site_id})


def _forget_list(connection: sa.Connection, site_id: int) -> None:
    """The next list is a full one, which shows what of the ledger is in the first set."""
    named = sa.text("UPDATE harvest_document SET listing = 0 WHERE site_schedule_id = :id AND listing IS NOT NULL")
    connection.execute(named, {"id": site_id})
    nothing = "checkpoint = NULL, site_run_id = NULL, unchanged = 0, duplicate = 0"
    connection.execute(sa.text(f"UPDATE site_checkpoint SET {nothing} WHERE site_schedule_id = :id"), {"id": site_id})


def _name(name: str, spec: str, taken: set[str]) -> str:
    """`NAME-set`, or with something behind it where that is too long, or taken."""
    full = f"{name}-{spec}"
    if len(full) > LONGEST_NAME:
        full = f"{full[: LONGEST_NAME - 9]}-{hashlib.sha256(full.encode()).hexdigest()[:8]}"
    number, found = 1, full
    while found in taken:
        number += 1
        found = f"{full[: LONGEST_NAME - len(str(number)) - 1]}-{number}"
    return found
