"""Records of repositories: their outcomes, how far their listing has come, where they are from, tombstones"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0009"
down_revision = "0007"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TEXT = sa.Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
BYTES = sa.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
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
OUTCOMES = ("deleted", "filtered")
OF_RECORDS = ("digest", "datestamp", "listing", "to_delete", "missing_since")


def number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), server_default="0", nullable=False)


def upgrade() -> None:
    for name in OUTCOMES:
        op.add_column("harvest_site_run", number(name))
    op.add_column("harvest_document", sa.Column("digest", sa.String(64), nullable=True))
    op.add_column("harvest_document", sa.Column("datestamp", sa.String(40), nullable=True))
    op.add_column("harvest_document", sa.Column("listing", sa.BigInteger(), nullable=True))
    op.add_column("harvest_document", sa.Column("to_delete", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("harvest_document", sa.Column("missing_since", sa.Date(), nullable=True))
    op.create_table(
        "site_checkpoint",
        sa.Column("site_schedule_id", KEY, autoincrement=False, nullable=False),
        sa.Column("checkpoint", TEXT, nullable=True),
        number("listing"),
        sa.Column("site_run_id", KEY, nullable=True),
        number("unchanged"),
        number("duplicate"),
        number("confirmed"),
        sa.PrimaryKeyConstraint("site_schedule_id", name=op.f("pk_site_checkpoint")),
        **MYSQL,
    )
    op.create_table(
        "document_origin",
        sa.Column("document_origin_id", KEY, nullable=False),
        sa.Column("document_id", IDENTIFIER, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("base_url", TEXT, nullable=False),
        sa.Column("identifier", TEXT, nullable=False),
        sa.Column("prefix", TEXT, nullable=False),
        sa.Column("datestamp", sa.String(40), nullable=False),
        sa.Column("response_date", sa.String(40), nullable=False),
        sa.Column("namespace", TEXT, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("altered", sa.Boolean(), nullable=False),
        sa.Column("sets", TEXT, nullable=False),
        sa.Column("about", TEXT, nullable=False),
        sa.Column("received", BYTES, nullable=True),
        sa.PrimaryKeyConstraint("document_origin_id", name=op.f("pk_document_origin")),
        sa.UniqueConstraint("document_id", "revision", name="uq_document_origin"),
        sqlite_autoincrement=True,
        **MYSQL,
    )
    op.create_table(
        "document_tombstone",
        sa.Column("document_id", IDENTIFIER, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("site_schedule_id", KEY, nullable=True),
        sa.Column("datestamp", sa.String(40), nullable=False),
        sa.Column("deleted_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("document_id", name=op.f("pk_document_tombstone")),
        **MYSQL,
    )


def downgrade() -> None:
    for table in ("document_tombstone", "document_origin", "site_checkpoint"):
        op.drop_table(table)
    for name in OF_RECORDS:
        op.drop_column("harvest_document", name)
    for name in OUTCOMES:
        op.drop_column("harvest_site_run", name)
