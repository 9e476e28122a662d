"""The former formats of documents in the catalogue, and no format for documents that no answer can have"""

from __future__ import annotations

import re
from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op
from lxml import etree
from sqlalchemy.dialects import mysql

revision = "0029"
down_revision = "0027"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}
AT_ONCE = 50
# Records were cut out of an answer: only documents of harvest lists, and copies, can have a DOCTYPE.
OF_LISTS = (
    "SELECT d.catalogue_document_id, r.content FROM catalogue_document d "
    "JOIN document_revision r ON r.document_id = d.document_id AND r.revision = d.revision "
    "WHERE d.origin IS NULL AND d.catalogue_document_id > :after ORDER BY d.catalogue_document_id LIMIT :number"
)
DOCTYPE = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|<\?.*?\?>|<!--.*?-->)*+(<!DOCTYPE)", re.DOTALL)
HARMLESS = re.compile(rb"<!DOCTYPE(?:[^\[>\"']|\"[^\"]*\"|'[^']*')*+>")


def upgrade() -> None:
    op.create_table(
        "catalogue_former_format",
        sa.Column("catalogue_document_id", KEY, autoincrement=False, nullable=False),
        sa.Column("document_type", sa.String(255), nullable=False),
        sa.Column("changed_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("catalogue_document_id", "document_type", name=op.f("pk_catalogue_former_format")),
        **TEXTS,
    )
    op.create_index(
        "ix_catalogue_former_format_type",
        "catalogue_former_format",
        ["document_type", "changed_at", "catalogue_document_id"],
    )
    connection, after = op.get_bind(), 0
    while rows := connection.execute(sa.text(OF_LISTS), {"after": after, "number": AT_ONCE}).all():
        after = rows[-1][0]
        set_no_format(connection, [number for number, content in rows if not is_embeddable(bytes(content))])


def downgrade() -> None:
    op.drop_table("catalogue_former_format")


def set_no_format(connection: sa.Connection, numbers: Sequence[int]) -> None:
    if numbers:
        statement = sa.text("UPDATE catalogue_document SET document_type = '' WHERE catalogue_document_id IN :numbers")
        connection.execute(statement.bindparams(sa.bindparam("numbers", expanding=True)), {"numbers": numbers})


def is_embeddable(content: bytes) -> bool:
    found = DOCTYPE.match(content) if b"<!DOCTYPE" in content else None
    if found is not None:
        if (harmless := HARMLESS.match(content, found.start(1))) is None:
            return False
        content = content[: found.start(1)] + content[harmless.end() :]
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True)
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError):
        return False
    return root.getroottree().docinfo.internalDTD is None
