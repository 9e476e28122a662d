"""The catalogue: the current document of the embedded target, its sets, and the number of its last change"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0018"
down_revision = "0017"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
IDENTIFIER = (
    sa.String(800)
    .with_variant(mysql.VARCHAR(800, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
    .with_variant(sa.String(800, collation="C"), "postgresql")
)
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}

SECONDS = {
    "sqlite": "strftime('%Y-%m-%d %H:%M:%S.000000', {})",
    "postgresql": "date_trunc('second', {})",
    "mysql": "CAST(DATE_FORMAT({}, '%Y-%m-%d %H:%i:%s') AS DATETIME)",
}
POSITION = {"sqlite": "instr({}, '/')", "postgresql": "strpos({}, '/')", "mysql": "instr({}, '/')"}
COLUMNS = "document_id, revision, document_type, sha256, site_schedule_id, title, deleted, origin, item_identifier"
SETS_AT_ONCE = 2000

SETS = sa.table("catalogue_set", sa.column("catalogue_document_id"), sa.column("set_spec", IDENTIFIER))


def upgrade() -> None:
    op.create_table(
        "catalogue_document",
        sa.Column("catalogue_document_id", KEY, autoincrement=False, nullable=False),
        sa.Column("document_id", IDENTIFIER, nullable=False),
        sa.Column("item_identifier", IDENTIFIER, nullable=False),
        sa.Column("origin", sa.String(200), nullable=True),
        sa.Column("document_type", sa.String(255), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("title", sa.String(300), nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=True),
        sa.Column("deleted", sa.Boolean(), nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.Column("change_seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("catalogue_document_id", name=op.f("pk_catalogue_document")),
        sa.UniqueConstraint("change_seq", name=op.f("uq_catalogue_document_change_seq")),
        sa.UniqueConstraint("document_id", name=op.f("uq_catalogue_document_document_id")),
        **TEXTS,
    )
    op.create_table(
        "catalogue_set",
        sa.Column("catalogue_set_id", KEY, nullable=False),
        sa.Column("catalogue_document_id", KEY, nullable=False),
        sa.Column("set_spec", IDENTIFIER, nullable=False),
        sa.PrimaryKeyConstraint("catalogue_set_id", name=op.f("pk_catalogue_set")),
        sqlite_autoincrement=True,
        **TEXTS,
    )
    op.create_table(
        "catalogue_counter",
        sa.Column("counter_id", KEY, autoincrement=False, nullable=False),
        sa.Column("change_seq", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("counter_id", name=op.f("pk_catalogue_counter")),
        **TEXTS,
    )
    fill()
    document = "catalogue_document"
    op.create_index("ix_catalogue_document_item", document, ["item_identifier", "origin"])
    op.create_index("ix_catalogue_document_changed", document, ["changed_at", "catalogue_document_id"])
    op.create_index("ix_catalogue_document_type", document, ["document_type", "changed_at", "catalogue_document_id"])
    op.create_index(op.f("ix_catalogue_set_catalogue_document_id"), "catalogue_set", ["catalogue_document_id"])
    op.create_index("ix_catalogue_set_spec", "catalogue_set", ["set_spec", "catalogue_document_id"])


def downgrade() -> None:
    for table in ("catalogue_counter", "catalogue_set", "catalogue_document"):
        op.drop_table(table)


def fill() -> None:
    """One row for each document, numbered by the time of its last revision or its deletion."""
    connection = op.get_bind()
    # A first attempt may have broken off, on a database that commits each new table.
    for table in ("catalogue_counter", "catalogue_set", "catalogue_document"):
        op.execute(f"DELETE FROM {table}")
    now = sa.bindparam("now", datetime.now(UTC).replace(tzinfo=None, microsecond=0), MOMENT)
    dialect = "mysql" if connection.dialect.name == "mariadb" else connection.dialect.name
    for statement in (held(dialect), erased(dialect)):
        connection.execute(sa.text(statement).bindparams(now))
    fill_sets(connection)
    op.execute(
        "INSERT INTO catalogue_counter (counter_id, change_seq, changed_at) "
        "SELECT 1, MAX(change_seq), MAX(changed_at) FROM catalogue_document HAVING COUNT(*) > 0"
    )


def held(dialect: str) -> str:
    """The statement for documents with revisions. Only the numbers of rows and times are sorted."""
    slash = POSITION[dialect].format("r.document_id")
    of_record = f"o.prefix <> '' AND {slash} > 0"
    last = "CASE WHEN t.deleted_at > r.inserted_at THEN t.deleted_at ELSE r.inserted_at END"
    newest = "SELECT document_id, MAX(revision) AS revision FROM document_revision GROUP BY document_id"
    ordered = f"""
        SELECT ROW_NUMBER() OVER (ORDER BY changed, number) AS seq, changed, number FROM (
            SELECT {not_later_than_now(last)} AS changed, r.document_revision_id AS number
            FROM ({newest}) newest
            JOIN document_revision r ON r.document_id = newest.document_id AND r.revision = newest.revision
            LEFT JOIN document_tombstone t ON t.document_id = r.document_id
        ) stamped
    """
    # The document id of a record is origin/prefix/identifier.
    return f"""
        INSERT INTO catalogue_document (catalogue_document_id, change_seq, changed_at, {COLUMNS})
        SELECT seq, seq, {SECONDS[dialect].format("changed")}, r.document_id, r.revision,
            substr(r.document_type, 1, 255), r.sha256, r.site_schedule_id, COALESCE(h.title, ''),
            t.document_id IS NOT NULL,
            CASE WHEN {of_record} THEN substr(r.document_id, 1, {slash} - 1) END,
            CASE WHEN {of_record} THEN substr(r.document_id, {slash} + length(o.prefix) + 2) ELSE r.document_id END
        FROM ({ordered}) ordered
        JOIN document_revision r ON r.document_revision_id = ordered.number
        LEFT JOIN document_origin o ON o.document_id = r.document_id AND o.revision = r.revision
        LEFT JOIN document_tombstone t ON t.document_id = r.document_id
        LEFT JOIN harvest_document h ON h.site_schedule_id = r.site_schedule_id
            AND h.document_id = r.document_id AND h.revision = r.revision
    """


def erased(dialect: str) -> str:
    """The statement for documents that have a tombstone alone, behind the others."""
    return f"""
        INSERT INTO catalogue_document (catalogue_document_id, change_seq, changed_at, {COLUMNS})
        SELECT seq, seq, {SECONDS[dialect].format("changed")}, document_id, revision, '', '', site_schedule_id, '',
            1 = 1, NULL, document_id
        FROM (
            SELECT ROW_NUMBER() OVER (ORDER BY t.deleted_at, t.document_id) + known.number AS seq,
                {not_later_than_now("t.deleted_at")} AS changed, t.document_id, t.revision, t.site_schedule_id
            FROM document_tombstone t
            CROSS JOIN (SELECT COUNT(*) AS number FROM catalogue_document) known
            WHERE NOT EXISTS (SELECT 1 FROM document_revision r WHERE r.document_id = t.document_id)
        ) numbered
    """


def not_later_than_now(moment: str) -> str:
    """A document from a clock that went ahead does not hold up the times of later changes."""
    return f"CASE WHEN {moment} > :now THEN :now ELSE {moment} END"


def fill_sets(connection: sa.Connection) -> None:
    """The sets of the current documents, some documents at a time."""
    query = sa.text(
        "SELECT d.catalogue_document_id, o.sets FROM catalogue_document d "
        "JOIN document_origin o ON o.document_id = d.document_id AND o.revision = d.revision "
        "WHERE d.catalogue_document_id > :after AND o.sets <> '[]' ORDER BY d.catalogue_document_id LIMIT :number"
    )
    after = 0
    while rows := connection.execute(query, {"after": after, "number": SETS_AT_ONCE}).all():
        after = rows[-1][0]
        if found := [values for number, sets in rows for values in set_rows(number, sets)]:
            connection.execute(sa.insert(SETS), found)


def set_rows(number: int, sets: str) -> list[dict[str, Any]]:
    return [
        {"catalogue_document_id": number, "set_spec": each}
        for each in dict.fromkeys(json.loads(sets))
        if each.isascii() and len(each) <= 800
    ]
