"""Transfers of documents from site to site, with who and when; those that the log tells of are taken over"""

import re

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0007"
down_revision = "0006"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
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
TOLD = re.compile(
    r".* was transferred from (?:the site '(?P<former>.*)'|no registered site)"
    r" to the site '(?P<new>.*?)'(?: by (?P<by>.*))?\.",
    re.DOTALL,
)


def upgrade() -> None:
    op.create_table(
        "document_transfer",
        sa.Column("transfer_id", KEY, nullable=False),
        sa.Column("document_id", IDENTIFIER, nullable=False),
        sa.Column("from_site_id", KEY, nullable=True),
        sa.Column("from_site", sa.String(100), nullable=True),
        sa.Column("to_site_id", KEY, nullable=True),
        sa.Column("to_site", sa.String(100), nullable=False),
        sa.Column("transferred_on", sa.Date(), nullable=False),
        sa.Column("transferred_at", TIME, nullable=False),
        sa.Column("transferred_by", sa.String(255), nullable=False),
        sa.Column("run_id", KEY, nullable=True),
        sa.Column("message", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("transfer_id", name=op.f("pk_document_transfer")),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_index("ix_document_transfer_document_id", "document_transfer", ["document_id"])
    take_over(op.get_bind())


def take_over(connection: sa.Connection) -> None:
    """The transfers that harvest_log tells of; where the sentence cannot be read, all that the row knows."""
    log = sa.table(
        "harvest_log",
        *map(sa.column, ("harvest_log_id", "site_run_id", "site_schedule_id", "document_id", "revision", "run_id")),
        sa.column("message"),
        sa.column("harvest_date", sa.Date()),
        sa.column("logged_at", TIME),
    )
    transfers = sa.table(
        "document_transfer",
        *map(sa.column, ("document_id", "from_site_id", "from_site", "to_site_id", "to_site")),
        *map(sa.column, ("transferred_by", "run_id", "message")),
        sa.column("transferred_on", sa.Date()),
        sa.column("transferred_at", TIME),
    )
    if connection.scalar(sa.select(sa.func.count()).select_from(transfers)):
        return
    rows = connection.execute(
        sa.select(log)
        .where(log.c.site_run_id.is_(None), log.c.document_id.is_not(None), log.c.revision.is_(None))
        .order_by(log.c.harvest_log_id)
    )
    values = []
    for row in rows.mappings().all():
        told = TOLD.fullmatch(row["message"])
        former, new, by = told.group("former", "new", "by") if told else (None, None, None)
        values.append(
            {
                "document_id": row["document_id"],
                "from_site_id": row["site_schedule_id"],
                "from_site": former,
                "to_site_id": number_of(connection, new),
                "to_site": new or "",
                "transferred_on": row["harvest_date"],
                "transferred_at": row["logged_at"],
                "transferred_by": by or "",
                "run_id": row["run_id"],
                "message": row["message"],
            }
        )
    if values:
        connection.execute(sa.insert(transfers), values)


def number_of(connection: sa.Connection, name: str | None) -> int | None:
    """The site of this name: the registered one, else the last one that was harvested under it."""
    for statement in (
        "SELECT site_schedule_id FROM harvest_site_schedule WHERE name = :name",
        "SELECT site_schedule_id FROM harvest_site_run WHERE site_name = :name ORDER BY site_run_id DESC LIMIT 1",
    ):
        number = connection.scalar(sa.text(statement), {"name": name})
        if number is not None:
            return int(number)
    return None


def downgrade() -> None:
    op.drop_table("document_transfer")
