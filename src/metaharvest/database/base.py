"""The common base of all tables, and the types of columns that are the same in every database."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, ClassVar

from sqlalchemy import Dialect, MetaData
from sqlalchemy.dialects import mysql
from sqlalchemy.orm import DeclarativeBase, declared_attr
from sqlalchemy.types import BigInteger, DateTime, Float, Integer, LargeBinary, String, Text, TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC timestamp, stored without its zone in every database."""

    # DATETIME on MariaDB and MySQL drops microseconds by default.
    impl = DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To UTC, without the zone."""
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """With the zone UTC."""
        return None if value is None else value.replace(tzinfo=UTC)


class Identifier(TypeDecorator[str]):
    """Text that names a document exactly: printable ASCII, compared and sorted byte by byte.

    A query for a name with other characters finds nothing; without the conversion here, MariaDB would raise an error.
    """

    impl = (
        String(800)
        .with_variant(mysql.VARCHAR(800, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
        .with_variant(String(800, collation="C"), "postgresql")
    )
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Other characters are replaced by DEL, which no name contains."""
        if value is None or value.isascii():
            return value
        return "".join(character if character.isascii() else "\x7f" for character in value)


TEXT = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
BYTES = LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
"""Text and bytes of any length; MariaDB alone would limit them to 64 KB."""

DOUBLE = Float(53).with_variant(mysql.DOUBLE(asdecimal=False), "mysql", "mariadb")
KEY = BigInteger().with_variant(Integer(), "sqlite")
"""A number that the database assigns, SQLite too."""

_MYSQL = {"engine": "InnoDB", "charset": "utf8mb4", "collate": "utf8mb4_bin"}
TEXTS = {f"{dialect}_{option}": value for dialect in ("mysql", "mariadb") for option, value in _MYSQL.items()}
TABLE = {**TEXTS, "sqlite_autoincrement": True}
"""A number is never assigned twice (SQLite); text holds every character and compares exactly (MariaDB, MySQL)."""


class Base(DeclarativeBase):
    """The base of all tables: the class `HarvestLog` is the table harvest_log.

    Every constraint has a name, so that migrations can refer to it.
    """

    @declared_attr.directive
    def __tablename__(cls) -> str:  # noqa: N805
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    __table_args__: Any = TABLE
    type_annotation_map: ClassVar = {datetime: UtcDateTime}
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_N_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
